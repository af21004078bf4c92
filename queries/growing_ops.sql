-- title: Operations that take longer from step to step
-- The slope of each op's time over the steps it ran in, by least squares. What grows points to a leak, to inputs that get
-- longer, or to a cache that fills.
-- param limit int 20: rows
-- param only_run text '': only this run
-- param min_steps int 3: ops that ran in fewer steps are left out
-- needs: op_step WHERE step IS NOT NULL | the files have no ops in steps
-- needs: step WHERE number IS NOT NULL | no steps are known, only the recording as a whole
-- needs: (SELECT run FROM step GROUP BY run HAVING count(number) > 2) | a trend needs three steps, and the files have fewer
-- none: no op takes longer from step to step in at least three steps
-- instead: top_ops | event WHERE op IS NOT NULL AND dur IS NOT NULL
SELECT run, op, count(*) AS steps, regr_slope(ms, nth) AS ms_per_step, corr(ms, nth) AS correlation,
	min_by(ms, nth) AS first_ms, max_by(ms, nth) AS last_ms
FROM (
	SELECT run, op, exec_ns / 1e6 AS ms, CAST(row_number() OVER (PARTITION BY run, op_id ORDER BY step) AS DOUBLE) AS nth
	FROM op_step
	WHERE step IS NOT NULL AND exec_ns > 0 AND ($only_run = '' OR run = $only_run)
) AS t
GROUP BY run, op
HAVING count(*) >= $min_steps AND regr_slope(ms, nth) > 0
ORDER BY ms_per_step * count(*) DESC, run, op
LIMIT $limit
