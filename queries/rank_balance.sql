-- title: Balance between workers
-- Steps by rank: how long each took, and how long the others may have waited for the slowest.
-- param only_run text '': only this run
SELECT run, rank, count(*) AS steps, avg(ms) AS mean_ms, min(ms) AS shortest_ms, max(ms) AS longest_ms,
	sum(most_ms - ms) AS waits_ms
FROM (
	SELECT run, rank, step, (end_ns - start_ns) / 1e6 AS ms, max((end_ns - start_ns) / 1e6) OVER (PARTITION BY run, step) AS most_ms
	FROM step_window
	WHERE start_ns IS NOT NULL AND end_ns IS NOT NULL AND ($only_run = '' OR run = $only_run)
) AS t
GROUP BY run, rank
ORDER BY run, mean_ms DESC, rank
-- clickhouse:
SELECT run, rank, count(*) AS steps, avg(ms) AS mean_ms, min(ms) AS shortest_ms, max(ms) AS longest_ms,
	sum(most_ms - ms) AS waits_ms
FROM (
	SELECT run, step, rank, (end_ns - start_ns) / 1e6 AS ms FROM step_window
	WHERE start_ns IS NOT NULL AND end_ns IS NOT NULL AND ($only_run = '' OR run = $only_run)
)
GLOBAL ALL INNER JOIN (
	SELECT run, step, max((end_ns - start_ns) / 1e6) AS most_ms FROM step_window
	WHERE start_ns IS NOT NULL AND end_ns IS NOT NULL
	GROUP BY run, step
) USING (run, step)
GROUP BY run, rank
ORDER BY run, mean_ms DESC, rank
