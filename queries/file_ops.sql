-- title: Listing, matching and opening files
-- Operations on file names and metadata, which on network storage often take longer than reading: MatchingFiles, globs,
-- stat, exists, ListFiles.
-- param limit int 20: rows
-- param only_run text '': only this run
-- needs: op_step WHERE exec_ns > 0 | the files have no timed ops
-- none: no op lists, matches or opens files
SELECT run, op, op_type, CAST(sum(run_count) AS BIGINT) AS runs, sum(exec_ns) / 1e6 AS total_ms, max(exec_ns) / 1e6 AS longest_step_ms
FROM op_step
WHERE exec_ns > 0 AND ($only_run = '' OR run = $only_run) AND (lower(op_type) LIKE '%matchingfiles%'
	OR lower(op_type) LIKE '%listfiles%' OR lower(op_type) LIKE '%glob%' OR lower(op_type) LIKE '%fileexists%'
	OR lower(op_type) LIKE '%filesystem%' OR lower(op_type) LIKE '%readfile%' OR lower(op_type) LIKE '%wholefilereader%'
	OR lower(op) LIKE '%listdir%' OR lower(op) LIKE '%os.stat%' OR lower(op) LIKE '%scandir%')
GROUP BY run, op, op_type
ORDER BY total_ms DESC, run, op
LIMIT $limit
-- clickhouse:
SELECT run, op, op_type, sum(run_count) AS runs, sum(exec_ns) / 1e6 AS total_ms, max(exec_ns) / 1e6 AS longest_step_ms
FROM op_step
WHERE exec_ns > 0 AND ($only_run = '' OR run = $only_run) AND (lower(op_type) LIKE '%matchingfiles%'
	OR lower(op_type) LIKE '%listfiles%' OR lower(op_type) LIKE '%glob%' OR lower(op_type) LIKE '%fileexists%'
	OR lower(op_type) LIKE '%filesystem%' OR lower(op_type) LIKE '%readfile%' OR lower(op_type) LIKE '%wholefilereader%'
	OR lower(op) LIKE '%listdir%' OR lower(op) LIKE '%os.stat%' OR lower(op) LIKE '%scandir%')
GROUP BY run, op, op_type
ORDER BY total_ms DESC, run, op
LIMIT $limit
