-- title: Two runs by op
-- Time of each op per step in two runs, and the ratio. Ops that only one of them has count as 0 in the other.
-- param limit int 20: rows
-- param before text '': the run to compare with; empty: the first that is given
-- param after text '': the run to compare; empty: the last that is given
-- needs: op_step WHERE op IS NOT NULL | the files have no ops
-- runs: 2
SELECT op, before_ms, after_ms, after_ms - before_ms AS more_ms, after_ms / nullif(before_ms, 0) AS ratio
FROM (
	SELECT op, sum(CASE WHEN run = first_run THEN ms ELSE 0 END) AS before_ms, sum(CASE WHEN run = last_run THEN ms ELSE 0 END) AS after_ms
	FROM (
		SELECT run, op, sum(exec_ns) / 1e6 / max(steps) AS ms
		FROM op_step
		JOIN (SELECT run, greatest(count(DISTINCT step), 1) AS steps FROM op_step GROUP BY run) AS s USING (run)
		WHERE op IS NOT NULL AND op NOT LIKE 'ProfilerStep%'
		GROUP BY run, op
	) AS t
	CROSS JOIN (
		SELECT CASE WHEN $before = '' THEN arg_min(run, number) ELSE $before END AS first_run,
			CASE WHEN $after = '' THEN arg_max(run, number) ELSE $after END AS last_run
		FROM run
	) AS r
	WHERE run = first_run OR run = last_run
	GROUP BY op
) AS t
ORDER BY abs(after_ms - before_ms) DESC, op
LIMIT $limit
