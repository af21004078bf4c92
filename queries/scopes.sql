-- title: Time by name scope
-- Ops by the first parts of their names, which in TensorFlow are the scopes of the model.
-- param limit int 20: rows
-- param only_run text '': only this run
-- param depth int 2: how many parts of the name count
-- needs: op_step WHERE op IS NOT NULL | the files have no ops
-- instead: hot_functions | sample
SELECT run, array_to_string(list_slice(string_split(op, '/'), 1, $depth), '/') AS scope, count(DISTINCT op_id) AS ops,
	sum(exec_ns) / 1e6 AS total_ms, sum(accelerator_ns) / 1e6 AS accelerator_ms, sum(cpu_ns) / 1e6 AS cpu_ms
FROM op_step
WHERE op IS NOT NULL AND ($only_run = '' OR run = $only_run)
GROUP BY 1, 2
ORDER BY total_ms DESC, run, scope
LIMIT $limit
-- clickhouse:
SELECT run, arrayStringConcat(arraySlice(splitByChar('/', assumeNotNull(op)), 1, $depth), '/') AS scope, uniqExact(op_id) AS ops,
	sum(exec_ns) / 1e6 AS total_ms, sum(accelerator_ns) / 1e6 AS accelerator_ms, sum(cpu_ns) / 1e6 AS cpu_ms
FROM op_step
WHERE op IS NOT NULL AND ($only_run = '' OR run = $only_run)
GROUP BY run, scope
ORDER BY total_ms DESC, run, scope
LIMIT $limit
