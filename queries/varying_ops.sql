-- title: Operations whose time varies most
-- Spread of the runs of each op: a mean far from the median, or a long worst case, hides behind averages.
-- param limit int 20: rows
-- param only_run text '': only this run
-- param min_runs int 5: ops that ran less often are left out
-- needs: event WHERE op IS NOT NULL AND dur IS NOT NULL | the files have no timed ops
-- none: no op ran five times
-- instead: hot_functions | sample
SELECT run, op, count(*) AS runs, avg(dur) / 1e3 AS mean_us, stddev_pop(dur) / 1e3 AS deviation_us,
	stddev_pop(dur) / nullif(avg(dur), 0) AS relative, min(dur) / 1e3 AS shortest_us, max(dur) / 1e3 AS longest_us
FROM event
WHERE op IS NOT NULL AND dur IS NOT NULL AND ($only_run = '' OR run = $only_run)
GROUP BY run, op
HAVING count(*) >= $min_runs
ORDER BY round(stddev_pop(dur) * count(*)) DESC, run, op
LIMIT $limit
-- clickhouse:
SELECT run, op, count(*) AS runs, avg(dur) / 1e3 AS mean_us, stddevPop(dur) / 1e3 AS deviation_us,
	stddevPop(dur) / nullIf(avg(dur), 0) AS relative, min(dur) / 1e3 AS shortest_us, max(dur) / 1e3 AS longest_us
FROM event
WHERE op IS NOT NULL AND dur IS NOT NULL AND ($only_run = '' OR run = $only_run)
GROUP BY run, op
HAVING count(*) >= $min_runs
ORDER BY round(stddevPop(dur) * count(*)) DESC, run, op
LIMIT $limit
