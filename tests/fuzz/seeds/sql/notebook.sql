%%bigquery frame --project p
#standardSQL
SELECT e.name, SAFE_DIVIDE(SUM(e.dur), COUNT(*)) AS mean, APPROX_QUANTILES(e.dur, 100)[OFFSET(50)]
FROM `p.traces.job_1` AS t, UNNEST(t.traceEvents) AS e
WHERE REGEXP_CONTAINS(e.name, r"Mat\w+") AND e.ph = 'X' -- a comment; with a semicolon
GROUP BY 1;
SELECT * EXCEPT(args) FROM `job_2`, UNNEST(traceEvents) /* "and 'another */ LIMIT 5;
