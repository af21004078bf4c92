-- title: Memory in use at the peak
-- What was in use when a device's memory was at its peak, by operation, scope, line of code or purpose.
-- param limit int 20: rows
-- param only_run text '': only this run
-- param grouping text 'op': op, scope, line or purpose
-- param device text '': only devices whose name has this in it
-- needs: memory_peak_view | the files have no history of allocations
-- none: the files do not say which op holds the memory; try --grouping purpose, scope or line
-- instead: memory_peak | op_step WHERE peak_bytes > 0
SELECT run, device, allocator, rank, name, bytes / 1e6 AS mb, percent, blocks
FROM memory_peak_view
WHERE grouped_by = $grouping AND ($only_run = '' OR run = $only_run) AND ($device = '' OR device LIKE '%' || $device || '%')
ORDER BY mb DESC, run, device, name
LIMIT $limit
-- clickhouse: same
