-- title: Counters, summed up
-- Every series of every counter: how many samples, from what to what, and its mean.
-- param only_run text '': only this run
-- needs: counter | the files have no counters
SELECT run, process, name, series, count(*) AS samples, min(value) AS least, avg(value) AS mean, max(value) AS most
FROM counter
WHERE ($only_run = '' OR run = $only_run)
GROUP BY run, process, name, series
ORDER BY run, process, name, series
-- clickhouse: same
