-- title: Stages of the input pipeline
-- Operations that read, decode, transform, batch or prefetch input, by their own time. Whether the job waits for them is in
-- the phase "input" of the query time_by_phase.
-- param limit int 30: rows
-- param only_run text '': only this run
-- needs: event WHERE dur IS NOT NULL | the files have no timed events
-- needs: event WHERE phase = 'input' | no work of an input pipeline was recorded
-- instead: file_ops | op_step WHERE exec_ns > 0 AND lower(op_type) LIKE '%file%'
SELECT run, op, op_type, count(*) AS runs, sum(coalesce(self_dur, dur)) / 1e6 AS self_ms, sum(dur) / 1e6 AS total_ms,
	max(dur) / 1e3 AS longest_us
FROM event
WHERE dur IS NOT NULL AND ($only_run = '' OR run = $only_run) AND (phase = 'input'
	OR lower(op_type) LIKE '%dataset%' OR lower(op_type) LIKE '%iterator%' OR lower(op_type) LIKE '%decode%'
	OR lower(op_type) LIKE '%readfile%' OR lower(op_type) LIKE '%matchingfiles%' OR lower(op_type) LIKE '%reader%'
	OR lower(op_type) LIKE '%queue%' OR lower(op) LIKE '%dataloader%' OR lower(op) LIKE '%prefetch%')
GROUP BY run, op, op_type
ORDER BY self_ms DESC, run, op, op_type
LIMIT $limit
-- clickhouse: same
