-- title: Runs by their steps
-- How long the steps of each run took: mean, median, shortest, longest, and the mean against that of the first run. The last
-- columns are of steady steps only: whole ones after the warm-up, and not the last one.
-- needs: step WHERE dur IS NOT NULL | no steps are known
-- instead: compare_ops | op_step WHERE op IS NOT NULL
-- runs: 2
SELECT run, count(*) AS steps, avg(dur) / 1e6 AS mean_ms, median(dur) / 1e6 AS median_ms, min(dur) / 1e6 AS shortest_ms,
	max(dur) / 1e6 AS longest_ms, avg(dur) / first_value(avg(dur)) OVER (ORDER BY place) AS ratio,
	sum(CASE WHEN steady THEN 1 ELSE 0 END) AS steady_steps, median(CASE WHEN steady THEN dur END) / 1e6 AS steady_ms,
	median(CASE WHEN steady THEN dur END) / first_value(median(CASE WHEN steady THEN dur END)) OVER (ORDER BY place) AS steady_ratio
FROM step
JOIN (SELECT run, number AS place FROM run) AS r USING (run)
WHERE dur IS NOT NULL AND NOT whole
GROUP BY run, place
ORDER BY place
