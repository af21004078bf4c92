-- title: Bus bandwidth by size
-- Collectives by kind and size: the time of the rank that waits least, and the bus bandwidth as nccl-tests counts it. A collective counts once, and only
-- where all ranks of its group are among the files.
-- param limit int 40: rows
-- param only_run text '': only this run
-- needs: job_collective WHERE meeting IS NOT NULL | the files have no collectives that two ranks share
-- none: no collective has a known size, a known duration and all its ranks in the files
-- instead: nccl_bandwidth | job_collective
SELECT run, kind, bytes, count(*) AS times, avg(fastest) / 1e3 AS mean_us,
	sum(bytes * CASE WHEN kind = 'all-reduce' THEN 2.0 * (members - 1) / members
		WHEN kind IN ('all-gather', 'reduce-scatter', 'all-to-all') THEN 1.0 * (members - 1) / members ELSE 1.0 END) / sum(fastest) AS bus_gb_per_s
FROM (
	SELECT run, kind, bytes, meeting, members, group_size, min(dur) AS fastest
	FROM job_collective
	WHERE meeting IS NOT NULL AND bytes > 0 AND dur > 0 AND ($only_run = '' OR run = $only_run)
	GROUP BY run, kind, bytes, meeting, members, group_size
) AS t
WHERE group_size IS NULL OR group_size = members
GROUP BY run, kind, bytes
ORDER BY run, kind, bytes
LIMIT $limit
-- clickhouse: same
