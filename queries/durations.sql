-- title: How long the runs of an operation take
-- Durations of one type of operation, or of all, as a histogram: four classes each time the duration doubles.
-- param type text '': only this type
-- param only_run text '': only this run
-- needs: event WHERE op_type IS NOT NULL AND dur > 0 | the files have no timed ops
-- none: no run of this type has a duration
-- instead: hot_functions | sample
SELECT run, pow(2, class / 4.0) / 1e3 AS from_us, pow(2, (class + 1) / 4.0) / 1e3 AS to_us, count(*) AS runs, sum(dur) / 1e6 AS total_ms
FROM (
	SELECT run, dur, floor(4 * log2(dur)) AS class
	FROM event
	WHERE op_type IS NOT NULL AND dur > 0 AND ($only_run = '' OR run = $only_run) AND ($type = '' OR op_type = $type)
) AS t
GROUP BY run, class
ORDER BY run, class
