-- title: Python functions by their own time
-- Events of Python functions (a trace with stacks) by time without what they call, and their file and line as the tracer
-- names them.
-- param limit int 20: rows
-- param only_run text '': only this run
-- needs: event WHERE dur IS NOT NULL | the files have no timed events
-- needs: event WHERE lower(category) LIKE '%python%' | the trace has no events of Python functions (torch.profiler: with_stack=True)
-- instead: ops_by_line | op WHERE file IS NOT NULL
-- instead: hot_functions | sample
SELECT run, name, count(*) AS calls, sum(coalesce(self_dur, dur)) / 1e6 AS self_ms, sum(dur) / 1e6 AS total_ms, max(dur) / 1e6 AS longest_ms
FROM event
WHERE dur IS NOT NULL AND ($only_run = '' OR run = $only_run) AND (category = 'python_function' OR lower(category) LIKE '%python%'
	OR name LIKE '%.py(%' OR name LIKE '%.py:%')
GROUP BY run, name
ORDER BY self_ms DESC, run, name
LIMIT $limit
-- clickhouse: same
