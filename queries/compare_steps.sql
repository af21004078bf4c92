-- title: Runs by their steps
-- How long the steps of each run took: mean, median, shortest, longest, and the mean against that of the first run.
SELECT run, count(*) AS steps, avg(dur) / 1e6 AS mean_ms, median(dur) / 1e6 AS median_ms, min(dur) / 1e6 AS shortest_ms,
	max(dur) / 1e6 AS longest_ms, avg(dur) / first_value(avg(dur)) OVER (ORDER BY place) AS ratio
FROM step
JOIN (SELECT run, number AS place FROM run) AS r USING (run)
WHERE dur IS NOT NULL
GROUP BY run, place
ORDER BY place
