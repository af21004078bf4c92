-- title: Communication, exposed and overlapped
-- Per step, how long messages between ranks took, how much of that ran beside compute, and how much the step waited for.
-- Only the exposed part costs time.
-- param only_run text '': only this run
-- needs: phase | the files have no timeline with steps or phases
-- needs: event WHERE phase = 'communication' | no messages between ranks were recorded
-- instead: rank_balance | phase WHERE step IS NOT NULL
SELECT run, step, rank, device, total / 1e6 AS total_ms, exposed / 1e6 AS exposed_ms, overlapped / 1e6 AS overlapped_ms,
	overlapped * 100.0 / nullif(total, 0) AS overlapped_percent
FROM phase
WHERE phase = 'communication' AND total > 0 AND ($only_run = '' OR run = $only_run)
ORDER BY run, step, rank, device
-- clickhouse:
SELECT run, step, rank, device, total / 1e6 AS total_ms, exposed / 1e6 AS exposed_ms, overlapped / 1e6 AS overlapped_ms,
	overlapped * 100.0 / nullIf(total, 0) AS overlapped_percent
FROM phase
WHERE phase = 'communication' AND total > 0 AND ($only_run = '' OR run = $only_run)
ORDER BY run, step, rank, device
