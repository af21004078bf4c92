-- title: Queueing on streams
-- How much work was waiting on each stream when more was launched: launched but not started, at its most and on average.
-- param only_run text '': only this run
-- needs: link WHERE kind = 'launch' | nothing in the files joins launches to kernels
-- instead: top_ops | event WHERE op IS NOT NULL AND dur IS NOT NULL
SELECT run, stream, device, count(*) AS launches, CAST(max(waiting) AS BIGINT) AS most_waiting, avg(waiting) AS mean_waiting, avg(delay_us) AS mean_delay_us
FROM (
	SELECT q.run, q.stream, q.device, q.dst_track_id, q.delay_us,
		sum(q.change) OVER (PARTITION BY q.run, q.dst_track_id ORDER BY q.at, q.change ROWS UNBOUNDED PRECEDING) AS waiting, q.change
	FROM (
		SELECT l.run, l.dst_track_id, d.track AS stream, d.device, s.ts AS at, 1 AS change, (d.ts - s.ts) / 1e3 AS delay_us
		FROM link AS l
		JOIN event AS s ON s.id = l.src_id
		JOIN event AS d ON d.id = l.dst_id
		WHERE l.kind = 'launch' AND ($only_run = '' OR l.run = $only_run)
		UNION ALL
		SELECT l.run, l.dst_track_id, d.track, d.device, d.ts, -1, NULL
		FROM link AS l
		JOIN event AS d ON d.id = l.dst_id
		WHERE l.kind = 'launch' AND ($only_run = '' OR l.run = $only_run)
	) AS q
) AS t
WHERE change = 1
GROUP BY run, dst_track_id, stream, device
ORDER BY run, mean_waiting DESC, stream
