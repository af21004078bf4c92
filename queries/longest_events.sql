-- title: The longest single events
-- One row per event, with where and when it ran; times are from the first event of its run.
-- param limit int 20: rows
-- param only_run text '': only this run
-- param name text '': only names that contain this
-- needs: event WHERE dur IS NOT NULL | the files have no timed events
-- instead: hot_functions | sample
SELECT run, name, category, track, step, dur / 1e6 AS ms, self_dur / 1e6 AS self_ms, (ts - first_ts) / 1e6 AS at_ms, id
FROM (
	SELECT run, id, name, category, track, step, dur, self_dur, ts, min(ts) OVER (PARTITION BY run) AS first_ts
	FROM event
	WHERE ($only_run = '' OR run = $only_run)
) AS t
WHERE dur IS NOT NULL AND ($name = '' OR name LIKE '%' || $name || '%')
ORDER BY ms DESC, id
LIMIT $limit
