-- title: Time by line of code
-- Innermost lines that made the ops, by the time these take: lines of libraries, too, and for gradients the line
-- that asked for them. The view lines counts both for the line of your own code that they belong to.
-- param limit int 20: rows
-- param only_run text '': only this run
-- param file text '': only files whose name contains this
-- needs: op_step | the files have no ops
-- needs: op WHERE file IS NOT NULL | the files do not say which line of code made their ops
-- instead: python_lines | event WHERE lower(category) LIKE '%python%'
-- instead: hot_functions | sample
SELECT o.run AS run, o.file AS file, o.line AS line, o.function AS function, count(DISTINCT o.id) AS ops,
	sum(s.exec_ns) / 1e6 AS total_ms, sum(s.accelerator_ns) / 1e6 AS accelerator_ms, sum(s.cpu_ns) / 1e6 AS cpu_ms
FROM op AS o
JOIN op_step AS s ON s.op_id = o.id
WHERE o.file IS NOT NULL AND ($only_run = '' OR o.run = $only_run) AND ($file = '' OR o.file LIKE '%' || $file || '%')
GROUP BY o.run, o.file, o.line, o.function
ORDER BY total_ms DESC, run, file, line
LIMIT $limit
-- clickhouse:
SELECT run, file, line, function, uniqExact(op_id) AS ops, sum(exec_ns) / 1e6 AS total_ms,
	sum(accelerator_ns) / 1e6 AS accelerator_ms, sum(cpu_ns) / 1e6 AS cpu_ms
FROM (SELECT run, op_id, exec_ns, accelerator_ns, cpu_ns FROM op_step WHERE $only_run = '' OR run = $only_run)
GLOBAL ALL INNER JOIN (
	SELECT run, id AS op_id, file, line, function FROM op
	WHERE file IS NOT NULL AND ($file = '' OR file LIKE concat('%', $file, '%'))
) USING (run, op_id)
GROUP BY run, file, line, function
ORDER BY total_ms DESC, run, file, line
LIMIT $limit
