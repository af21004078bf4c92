-- title: Kernels by the operator that launched them
-- Time on devices by kernel and by the innermost operator around its launch on the host: which line of the model a kernel belongs to.
-- param limit int 20: rows
-- param only_run text '': only this run
-- needs: link WHERE kind = 'launch' | nothing in the files joins launches to kernels
-- none: the launched work has no known duration
-- instead: small_kernels | event WHERE device IS NOT NULL AND track_kind IN ('stream', 'device', 'accelerator')
-- instead: top_ops | event WHERE op IS NOT NULL AND dur IS NOT NULL
SELECT run, operator, kernel, count(*) AS launches, sum(dur) / 1e6 AS total_ms, avg(dur) / 1e3 AS mean_us,
	sum(dur) * 100.0 / nullif(sum(sum(dur)) OVER (PARTITION BY run), 0) AS percent
FROM (
	SELECT d.run AS run, d.name AS kernel, d.dur AS dur, coalesce(max_by(o.name, o.depth), any_value(s.name)) AS operator
	FROM link AS l
	JOIN event AS s ON s.id = l.src_id
	JOIN event AS d ON d.id = l.dst_id
	LEFT JOIN event AS o ON o.track_id = s.track_id AND o.ts <= s.ts AND o.ts + o.dur >= s.ts + s.dur AND o.depth < s.depth
		AND (o.category = 'cpu_op' OR o.op_id IS NOT NULL) AND o.name NOT LIKE 'ProfilerStep%'
	WHERE l.kind = 'launch' AND d.dur IS NOT NULL AND ($only_run = '' OR l.run = $only_run)
	GROUP BY d.id, d.run, d.name, d.dur
) AS t
GROUP BY run, operator, kernel
ORDER BY total_ms DESC, run, operator, kernel
LIMIT $limit
