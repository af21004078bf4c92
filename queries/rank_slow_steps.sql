-- title: Steps in which one rank was slower than its peers
-- Own work of a rank in a steady step against the median of the ranks of its role, largest excess first.
-- param limit int 20: rows
-- param only_run text '': only this run
-- param min_percent real 10: smallest excess
-- needs: job_step WHERE peers_own_work IS NOT NULL | the files do not have the same steady steps of two ranks
-- none: no step of a rank has that much more own work than its peers
SELECT run, rank, step, own_work / 1e6 AS own_work_ms, peers_own_work / 1e6 AS peers_ms, 100.0 * (own_work - peers_own_work) / peers_own_work AS more_percent,
	wait / 1e6 AS wait_ms, dur / 1e6 AS step_ms
FROM job_step
WHERE peers_own_work > 0 AND 100.0 * (own_work - peers_own_work) / peers_own_work >= $min_percent AND ($only_run = '' OR run = $only_run)
ORDER BY own_work - peers_own_work DESC, run, number, step
LIMIT $limit
-- clickhouse: same
