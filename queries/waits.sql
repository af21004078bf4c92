-- title: Waiting and synchronisation
-- Calls that wait for a device, a lock, a queue or another thread, by how long they waited.
-- param limit int 20: rows
-- param only_run text '': only this run
-- needs: event WHERE dur IS NOT NULL | the files have no timed events
-- none: no event is a wait for a device, a lock, a queue or a thread
SELECT run, name, track, count(*) AS times, sum(dur) / 1e6 AS total_ms, avg(dur) / 1e3 AS mean_us, max(dur) / 1e3 AS longest_us
FROM event
WHERE dur IS NOT NULL AND ($only_run = '' OR run = $only_run) AND (phase = 'synchronisation' OR lower(name) LIKE '%synchroniz%'
	OR lower(name) LIKE '%.acquire%' OR lower(name) LIKE '%.wait%' OR lower(name) LIKE '%barrier%')
GROUP BY run, name, track
ORDER BY total_ms DESC, run, name, track
LIMIT $limit
-- clickhouse: same
