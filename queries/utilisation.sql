-- title: How busy the devices are
-- Time in which at least one stream of a device worked, of the time from its first to its last work; per input, so per rank.
-- param only_run text '': only this run
-- needs: event WHERE device IS NOT NULL AND track_kind IN ('stream', 'copy', 'device', 'accelerator') | no work on a device was recorded
-- instead: busy_threads | event WHERE dur IS NOT NULL
SELECT run, rank, device, count(*) AS events, sum(fresh) / 1e6 AS busy_ms, (max(ending) - min(ts)) / 1e6 AS span_ms,
	sum(fresh) * 100.0 / nullif(max(ending) - min(ts), 0) AS busy_percent
FROM (
	SELECT run, rank, source_id, device, ts, ts + dur AS ending, greatest(0, ts + dur - greatest(ts, coalesce(max(ts + dur) OVER (
		PARTITION BY run, source_id, device ORDER BY ts, ts + dur ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING), ts))) AS fresh
	FROM event
	WHERE device IS NOT NULL AND dur IS NOT NULL AND track_kind IN ('stream', 'copy', 'device', 'accelerator')
		AND ($only_run = '' OR run = $only_run)
) AS t
GROUP BY run, rank, source_id, device
ORDER BY run, rank, device
