-- title: What holds memory
-- Ops by the most memory that they held at one time in a step, with what they keep and what they hand on.
-- param limit int 20: rows
-- param only_run text '': only this run
-- needs: op_step WHERE peak_bytes > 0 | the files have no memory of single ops
-- instead: memory_at_peak | memory_peak_view
SELECT run, op, op_type, device, max(peak_bytes) / 1e6 AS peak_mb, max(residual_bytes) / 1e6 AS kept_mb,
	max(output_bytes) / 1e6 AS output_mb, max(requested_bytes) / 1e6 AS requested_mb
FROM op_step
WHERE peak_bytes > 0 AND ($only_run = '' OR run = $only_run)
GROUP BY run, op, op_type, device
ORDER BY peak_mb DESC, run, op
LIMIT $limit
-- clickhouse: same
