-- title: Kernels that are too short
-- Work on a device that takes less than a launch costs. Many of them are candidates for fusion, larger batches or graphs.
-- param limit int 20: rows
-- param only_run text '': only this run
-- param max_us real 10: longer ones are left out
-- needs: event WHERE device IS NOT NULL AND track_kind IN ('stream', 'device', 'accelerator') | no work on a device was recorded
-- none: no computation on a device takes 10 us or less
-- instead: top_ops | event WHERE op IS NOT NULL AND dur IS NOT NULL
SELECT run, device, op, count(*) AS runs, sum(dur) / 1e6 AS total_ms, avg(dur) / 1e3 AS mean_us
FROM event
WHERE device IS NOT NULL AND track_kind IN ('stream', 'device', 'accelerator') AND phase = 'compute'
	AND dur <= $max_us * 1e3 AND ($only_run = '' OR run = $only_run)
GROUP BY run, device, op
ORDER BY runs DESC, run, device, op
LIMIT $limit
-- clickhouse: same
