-- title: Operations by their own time
-- Time of each op without what is nested in it (with it where the source has no nesting), over all steps: how often it ran,
-- its share and its longest run.
-- param limit int 20: rows
-- param only_run text '': only this run
-- param device text '': only devices whose name contains this
-- needs: event WHERE op IS NOT NULL AND dur IS NOT NULL | the files have no timed ops
-- instead: hot_functions | sample
-- instead: longest_events | event WHERE dur IS NOT NULL
-- instead: memory_at_peak | memory_peak_view
SELECT run, op, op_type, runs, self_ms, self_ms * 100.0 / all_ms AS percent, mean_us, longest_us
FROM (
	SELECT run, op, op_type, count(*) AS runs, sum(coalesce(self_dur, dur)) / 1e6 AS self_ms, avg(coalesce(self_dur, dur)) / 1e3 AS mean_us,
		max(coalesce(self_dur, dur)) / 1e3 AS longest_us, sum(sum(coalesce(self_dur, dur))) OVER (PARTITION BY run) / 1e6 AS all_ms
	FROM event
	WHERE op IS NOT NULL AND dur IS NOT NULL AND ($only_run = '' OR run = $only_run)
		AND ($device = '' OR device LIKE '%' || $device || '%')
	GROUP BY run, op, op_type
) AS t
WHERE all_ms > 0
ORDER BY self_ms DESC, run, op, op_type
LIMIT $limit
-- clickhouse:
SELECT run, op, op_type, runs, self_ms, self_ms * 100.0 / all_ms AS percent, mean_us, longest_us
FROM (
	SELECT run, op, op_type, count(*) AS runs, sum(coalesce(self_dur, dur)) / 1e6 AS self_ms, avg(coalesce(self_dur, dur)) / 1e3 AS mean_us,
		max(coalesce(self_dur, dur)) / 1e3 AS longest_us
	FROM event
	WHERE op IS NOT NULL AND dur IS NOT NULL AND ($only_run = '' OR run = $only_run)
		AND ($device = '' OR device LIKE concat('%', $device, '%'))
	GROUP BY run, op, op_type
)
GLOBAL ALL INNER JOIN (
	SELECT run, sum(coalesce(self_dur, dur)) / 1e6 AS all_ms
	FROM event
	WHERE op IS NOT NULL AND dur IS NOT NULL AND ($device = '' OR device LIKE concat('%', $device, '%'))
	GROUP BY run
) USING (run)
WHERE all_ms > 0
ORDER BY self_ms DESC, run, op, op_type
LIMIT $limit
