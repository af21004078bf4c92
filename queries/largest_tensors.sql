-- title: The largest tensors
-- Tensors seen at run time or in a checkpoint, with their shapes and who made them.
-- param limit int 20: rows
-- param only_run text '': only this run
-- needs: tensor | the files have no tensors
-- instead: memory_at_peak | memory_peak_view
SELECT run, coalesce(name, op) AS tensor, op_type, shape, slot, max(allocated) / 1e6 AS mb, count(*) AS times
FROM tensor
WHERE ($only_run = '' OR run = $only_run)
GROUP BY run, coalesce(name, op), op_type, shape, slot
ORDER BY mb DESC, run, tensor, slot
LIMIT $limit
