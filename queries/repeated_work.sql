-- title: Compilation and repeated set-up
-- Events that compile, trace, build or tune something, and in how many steps: what happens in more than the first step is
-- done again each time, often because shapes change.
-- param limit int 20: rows
-- param only_run text '': only this run
-- needs: event WHERE dur IS NOT NULL | the files have no timed events
-- none: no event has a name that says compile, trace, load or tune
SELECT run, name, count(*) AS times, count(DISTINCT step) AS steps, sum(dur) / 1e6 AS total_ms, max(dur) / 1e6 AS longest_ms
FROM event
WHERE dur IS NOT NULL AND ($only_run = '' OR run = $only_run) AND (lower(name) LIKE '%compil%' OR lower(name) LIKE '%autotun%'
	OR lower(name) LIKE '%xlacompile%' OR lower(name) LIKE '%_retrace%' OR lower(name) LIKE '%modulelo%'
	OR lower(name) LIKE '%graphinstantiate%' OR lower(name) LIKE '%benchmark%' OR lower(name) LIKE '%dynamo%')
GROUP BY run, name
ORDER BY total_ms DESC, run, name
LIMIT $limit
-- clickhouse:
SELECT run, name, count(*) AS times, uniqExact(step) AS steps, sum(dur) / 1e6 AS total_ms, max(dur) / 1e6 AS longest_ms
FROM event
WHERE dur IS NOT NULL AND ($only_run = '' OR run = $only_run) AND (lower(name) LIKE '%compil%' OR lower(name) LIKE '%autotun%'
	OR lower(name) LIKE '%xlacompile%' OR lower(name) LIKE '%_retrace%' OR lower(name) LIKE '%modulelo%'
	OR lower(name) LIKE '%graphinstantiate%' OR lower(name) LIKE '%benchmark%' OR lower(name) LIKE '%dynamo%')
GROUP BY run, name
ORDER BY total_ms DESC, run, name
LIMIT $limit
