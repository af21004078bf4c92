-- title: Time of each type of operation in each step
-- Own time of the costliest types of operations, step by step: what grew, what happens in some steps only.
-- param limit int 20: types of operations
-- param type text '': only this type
-- param only_run text '': only this run
-- needs: event WHERE op_type IS NOT NULL AND dur IS NOT NULL AND step IS NOT NULL | the files have no timed ops in steps
-- instead: top_ops | event WHERE op IS NOT NULL AND dur IS NOT NULL
SELECT run, op_type, step, runs, self_ms
FROM (
	SELECT run, op_type, step, runs, self_ms, dense_rank() OVER (PARTITION BY run ORDER BY all_ms DESC, op_type) AS place
	FROM (
		SELECT run, op_type, step, count(*) AS runs, sum(coalesce(self_dur, dur)) / 1e6 AS self_ms,
			sum(sum(coalesce(self_dur, dur))) OVER (PARTITION BY run, op_type) / 1e6 AS all_ms
		FROM event
		WHERE op_type IS NOT NULL AND dur IS NOT NULL AND step IS NOT NULL AND ($only_run = '' OR run = $only_run)
			AND ($type = '' OR op_type = $type)
		GROUP BY run, op_type, step
	) AS t
) AS t
WHERE place <= $limit
ORDER BY run, place, step
