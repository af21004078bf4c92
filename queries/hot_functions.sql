-- title: Functions by the samples in them
-- Where a sampled program was: weight of the samples whose innermost frame is the function. Percent is of all samples of the metric;
-- metrics are never added up.
-- param limit int 20: rows
-- param only_run text '': only this run
-- needs: sample | the files have no sampled stacks
-- instead: top_ops | event WHERE op IS NOT NULL AND dur IS NOT NULL
SELECT run, metric, function, module, file, min(line) AS line, count(*) AS samples, sum(weight) AS weight, unit,
	sum(weight) * 100.0 / nullif(sum(sum(weight)) OVER (PARTITION BY run, metric), 0) AS percent
FROM sample
WHERE ($only_run = '' OR run = $only_run)
GROUP BY run, metric, function, module, file, unit
ORDER BY percent DESC, run, metric, function
LIMIT $limit
