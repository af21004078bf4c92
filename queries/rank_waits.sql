-- title: Waiting for other ranks by group
-- Collectives by group and kind: how long ranks waited in them for the last one, and how long data moved. Collectives that are not paired with those of
-- other ranks, or whose clocks are not known well enough, are counted apart.
-- param limit int 20: rows
-- param only_run text '': only this run
-- needs: job_collective | the files have no collectives
SELECT run, group_name, kind, count(*) AS calls, sum(dur) / 1e6 AS total_ms, sum(wait) / 1e6 AS wait_ms, sum(transfer) / 1e6 AS transfer_ms,
	max(wait) / 1e3 AS longest_wait_us, count(*) - count(wait) AS unknown_calls
FROM job_collective
WHERE $only_run = '' OR run = $only_run
GROUP BY run, group_name, kind
ORDER BY total_ms DESC, run, group_name, kind
LIMIT $limit
-- clickhouse: same
