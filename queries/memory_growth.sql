-- title: Memory that grows
-- Memory of each device and allocator from step to step: what was in use at the end of each, and by how much that grew.
-- param limit int 100: rows
-- param only_run text '': only this run
-- param min_mb real 0: only steps that grew by this much
-- needs: memory_steps_view | the files have no allocations in steps
-- none: the memory of no device grows from step to step
-- instead: memory_at_peak | memory_peak_view
-- instead: memory_peak | op_step WHERE peak_bytes > 0
SELECT run, device, allocator, rank, step, peak_bytes / 1e6 AS peak_mb, end_bytes / 1e6 AS end_mb, growth_bytes / 1e6 AS growth_mb,
	allocations, allocated_bytes / 1e6 AS allocated_mb
FROM memory_steps_view
WHERE growth_bytes / 1e6 >= $min_mb AND ($only_run = '' OR run = $only_run)
ORDER BY run, device, allocator NULLS FIRST, rank, step
LIMIT $limit
-- clickhouse: same
