-- title: Damaged and left out parts
-- What reading the files had to repair, drop or do without.
-- param only_run text '': only this run
-- needs: loss | nothing was damaged or left out
SELECT run, kind, source, times, text
FROM loss
WHERE ($only_run = '' OR run = $only_run)
ORDER BY run, kind, source, text
-- clickhouse: same
