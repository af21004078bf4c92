-- title: Balance between workers
-- Steps by rank: how long each took, and how long the others may have waited for the slowest.
-- param only_run text '': only this run
-- needs: phase WHERE step IS NOT NULL | the files have no timeline with steps
SELECT run, rank, count(*) AS steps, avg(ms) AS mean_ms, min(ms) AS shortest_ms, max(ms) AS longest_ms,
	sum(most_ms - ms) AS waits_ms
FROM (
	SELECT run, rank, step, ms, max(ms) OVER (PARTITION BY run, step) AS most_ms
	FROM (SELECT run, rank, source_id, step_id, step, max(dur) / 1e6 AS ms FROM phase GROUP BY run, rank, source_id, step_id, step) AS w
	WHERE step IS NOT NULL AND ($only_run = '' OR run = $only_run)
) AS t
GROUP BY run, rank
ORDER BY run, mean_ms DESC, rank
-- clickhouse:
SELECT run, rank, count(*) AS steps, avg(ms) AS mean_ms, min(ms) AS shortest_ms, max(ms) AS longest_ms,
	sum(most_ms - ms) AS waits_ms
FROM (
	SELECT run, step, rank, source_id, max(dur) / 1e6 AS ms FROM phase
	WHERE step IS NOT NULL AND ($only_run = '' OR run = $only_run)
	GROUP BY run, step, rank, source_id
)
GLOBAL ALL INNER JOIN (
	SELECT run, step, max(dur) / 1e6 AS most_ms FROM phase
	WHERE step IS NOT NULL
	GROUP BY run, step
) USING (run, step)
GROUP BY run, rank
ORDER BY run, mean_ms DESC, rank
