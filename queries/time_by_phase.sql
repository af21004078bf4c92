-- title: Where the time of the steps goes
-- Phases of an average step: input, host, launch, copies, compute, communication, synchronisation, idle. Every moment of a step
-- belongs to one of them.
-- param only_run text '': only this run
SELECT run, phase, count(DISTINCT step) AS steps, sum(share) / 1e6 AS total_ms, avg(share) / 1e6 AS mean_ms, max(share) / 1e6 AS longest_ms
FROM phase
WHERE ($only_run = '' OR run = $only_run)
GROUP BY run, phase
ORDER BY run, total_ms DESC, phase
-- clickhouse:
SELECT run, phase, uniqExact(step) AS steps, sum(share) / 1e6 AS total_ms, avg(share) / 1e6 AS mean_ms, max(share) / 1e6 AS longest_ms
FROM phase
WHERE ($only_run = '' OR run = $only_run)
GROUP BY run, phase
ORDER BY run, total_ms DESC, phase
