-- title: Threads and streams by busy time
-- Time that events of the outermost level cover, per track, with its part of the time from its first event to its last.
-- param limit int 20: rows
-- param only_run text '': only this run
-- needs: event WHERE dur IS NOT NULL | the files have no timed events
-- instead: hot_functions | sample
SELECT run, process, track, track_kind, track_id, count(*) AS events, sum(dur) / 1e6 AS busy_ms,
	sum(dur) * 100.0 / nullif(max(ts + dur) - min(ts), 0) AS busy_percent
FROM event
WHERE dur IS NOT NULL AND (depth = 0 OR depth IS NULL) AND ($only_run = '' OR run = $only_run)
GROUP BY run, process, track, track_kind, track_id
ORDER BY busy_ms DESC, run, track_id
LIMIT $limit
