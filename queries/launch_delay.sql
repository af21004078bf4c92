-- title: From launch to start of kernels
-- How long work waited between the call that launched it and its start on the device, by the op that was launched. A long
-- delay is a full queue (good: the device is busy) unless the device was idle meanwhile: see idle_gaps.
-- param limit int 20: rows
-- param only_run text '': only this run
-- needs: link WHERE kind = 'launch' | nothing in the files joins launches to kernels
-- instead: top_ops | event WHERE op IS NOT NULL AND dur IS NOT NULL
SELECT l.run AS run, l.dst_op AS op, count(*) AS launches, avg(d.ts - s.ts) / 1e3 AS mean_us, max(d.ts - s.ts) / 1e3 AS longest_us,
	min(d.ts - s.ts) / 1e3 AS shortest_us, avg(d.dur) / 1e3 AS mean_run_us
FROM link AS l
JOIN event AS s ON s.id = l.src_id
JOIN event AS d ON d.id = l.dst_id
WHERE l.kind = 'launch' AND ($only_run = '' OR l.run = $only_run)
GROUP BY l.run, l.dst_op
ORDER BY mean_us DESC, run, op
LIMIT $limit
-- clickhouse:
SELECT run, op, count(*) AS launches, avg(start - called) / 1e3 AS mean_us, max(start - called) / 1e3 AS longest_us,
	min(start - called) / 1e3 AS shortest_us, avg(took) / 1e3 AS mean_run_us
FROM (
	SELECT run, dst_id, dst_op AS op, called
	FROM (SELECT run, src_id, dst_id, dst_op FROM link WHERE kind = 'launch' AND ($only_run = '' OR run = $only_run))
	GLOBAL ALL INNER JOIN (SELECT run, id AS src_id, ts AS called FROM event) USING (run, src_id)
)
GLOBAL ALL INNER JOIN (SELECT run, id AS dst_id, ts AS start, dur AS took FROM event) USING (run, dst_id)
GROUP BY run, op
ORDER BY mean_us DESC, run, op
LIMIT $limit
