-- title: When a device did nothing
-- Gaps between one piece of work of a device and the next, over all its streams, with what ended before and what began after
-- the gap; at_ms is from the first work of a device. Many small gaps mean that launching is too slow; a few large ones that the device waits for input or a copy.
-- param limit int 20: rows
-- param only_run text '': only this run
-- param min_us real 10: shorter gaps are left out
-- needs: event WHERE device IS NOT NULL AND track_kind IN ('stream', 'copy', 'device', 'accelerator') | no work on a device was recorded
-- none: no device was idle for 10 us or longer between two pieces of work
-- instead: busy_threads | event WHERE dur IS NOT NULL
SELECT run, rank, device, before_op, after_op, gap_us, at_ms, step
FROM (
	SELECT run, rank, device, step, op AS after_op,
		arg_max(op, ts + dur) OVER w AS before_op,
		(ts - max(ts + dur) OVER w) / 1e3 AS gap_us,
		(max(ts + dur) OVER w - min(ts) OVER (PARTITION BY run)) / 1e6 AS at_ms
	FROM event
	WHERE device IS NOT NULL AND dur IS NOT NULL AND track_kind IN ('stream', 'copy', 'device', 'accelerator')
		AND ($only_run = '' OR run = $only_run)
	WINDOW w AS (PARTITION BY run, source_id, device ORDER BY ts, ts + dur ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING)
) AS t
WHERE gap_us >= $min_us
ORDER BY gap_us DESC, run, device, at_ms
LIMIT $limit
