-- title: Ranks by their own work
-- What the steps of each rank consist of: own work, waits for others in collectives, and transfers; and whether it is slower than its peers.
-- The rank that waits least is the one that the others wait for.
-- param limit int 20: rows
-- param only_run text '': only this run
-- needs: job_rank WHERE steps IS NOT NULL | the files have no timeline with steps
SELECT run, rank, host, stage, steps, step / 1e6 AS step_ms, own_work / 1e6 AS own_work_ms, wait / 1e6 AS wait_ms, transfer / 1e6 AS transfer_ms,
	straggler, slowdown_caused, cause
FROM job_rank
WHERE NOT left_out AND steps IS NOT NULL AND ($only_run = '' OR run = $only_run)
ORDER BY coalesce(own_work, 0) DESC, run, number
LIMIT $limit
-- clickhouse:
SELECT run, rank, host, stage, steps, step / 1e6 AS step_ms, own_work / 1e6 AS own_work_ms, wait / 1e6 AS wait_ms, transfer / 1e6 AS transfer_ms,
	straggler, slowdown_caused, cause
FROM job_rank
WHERE NOT left_out AND steps IS NOT NULL AND ($only_run = '' OR run = $only_run)
ORDER BY ifNull(own_work, 0) DESC, run, number
LIMIT $limit
