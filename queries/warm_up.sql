-- title: The first step against the others
-- What takes longer in the first step than in the later ones on average: compilation, autotuning, allocation, cold caches.
-- param limit int 20: rows
-- param only_run text '': only this run
-- needs: op_step WHERE step IS NOT NULL | the files have no ops in steps
-- needs: step WHERE number IS NOT NULL | no steps are known, only the recording as a whole
-- needs: (SELECT run FROM step GROUP BY run HAVING count(number) > 1) | the files have one step each, and nothing to compare it with
-- none: nothing takes longer in the first step than in the others
-- instead: top_ops | event WHERE op IS NOT NULL AND dur IS NOT NULL
SELECT run, op, first_ms, later_ms, first_ms - later_ms AS more_ms
FROM (
	SELECT run, op, sum(CASE WHEN step = first_step THEN exec_ns ELSE 0 END) / 1e6 AS first_ms,
		sum(CASE WHEN step = first_step THEN 0 ELSE exec_ns END) / 1e6 / nullif(max(steps) - 1, 0) AS later_ms
	FROM (
		SELECT run, op, step, exec_ns, min(step) OVER (PARTITION BY run) AS first_step
		FROM op_step
		WHERE step IS NOT NULL AND op NOT LIKE 'ProfilerStep%' AND ($only_run = '' OR run = $only_run)
	) AS e
	JOIN (SELECT run, count(DISTINCT step) AS steps FROM op_step GROUP BY run) AS s USING (run)
	GROUP BY run, op
) AS t
WHERE first_ms > later_ms
ORDER BY more_ms DESC, run, op
LIMIT $limit
