-- title: Time by category of events
-- How many events of each category there are, and how long they took, with and without what is nested in them.
-- param only_run text '': only this run
-- needs: event WHERE dur IS NOT NULL | the files have no timed events
-- instead: hot_functions | sample
SELECT run, category, track_kind, count(*) AS events, sum(dur) / 1e6 AS total_ms, sum(coalesce(self_dur, dur)) / 1e6 AS self_ms
FROM event
WHERE dur IS NOT NULL AND ($only_run = '' OR run = $only_run)
GROUP BY run, category, track_kind
ORDER BY self_ms DESC, run, category, track_kind
-- clickhouse: same
