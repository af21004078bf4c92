-- title: The slowest steps, and what grew in them
-- Each step compared with the median of its run, and the phase that takes the most time more than it does in the median
-- step: where to look for why this step was slow. In a profile without phases (tfprof) it is the type of op.
-- param limit int 10: rows
-- param only_run text '': only this run
-- needs: step WHERE dur IS NOT NULL | no steps are known
-- needs: step WHERE number IS NOT NULL | no steps are known, only the recording as a whole
-- none: no step has a phase or an op with a known time
-- instead: top_ops | event WHERE op IS NOT NULL AND dur IS NOT NULL
-- instead: hot_functions | sample
SELECT run, step, step_ms, median_ms, step_ms / nullif(median_ms, 0) AS ratio, CASE WHEN more_ms > 0 THEN phase END AS grew, more_ms
FROM (
	SELECT run, step, phase, step_ms, phase_ms - median(phase_ms) OVER (PARTITION BY run, phase) AS more_ms,
		median(step_ms) OVER (PARTITION BY run) AS median_ms,
		row_number() OVER (PARTITION BY run, step ORDER BY phase_ms - median_phase_ms DESC, phase) AS nth
	FROM (
		SELECT run, step, phase, max(dur) / 1e6 AS step_ms, sum(share) / 1e6 AS phase_ms,
			median(sum(share) / 1e6) OVER (PARTITION BY run, phase) AS median_phase_ms
		FROM (
			SELECT run, step, phase, dur, share FROM phase
			UNION ALL
			SELECT s.run, s.number, o.op_type, s.dur, sum(o.exec_ns)
			FROM step AS s
			JOIN op_step AS o ON o.step_id = s.id
			WHERE s.dur IS NOT NULL AND s.run NOT IN (SELECT run FROM phase)
			GROUP BY ALL
		) AS u
		WHERE step IS NOT NULL AND ($only_run = '' OR run = $only_run)
		GROUP BY run, step, phase
	) AS p
) AS t
WHERE nth = 1
ORDER BY step_ms DESC, run, step
LIMIT $limit
