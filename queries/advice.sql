-- title: Findings of the advice rules
-- What the rules found, the most severe first, with what to try and what it saves.
-- param only_run text '': only this run
-- needs: finding | no rule of advice has its data in these files
-- none: no rule of advice has its data in these files; 'opwatch advise' lists what each of them lacks
SELECT run, severity, rule, what, location, advice, saving_low, saving_high, saving_after, confidence
FROM finding
WHERE checked AND ($only_run = '' OR run = $only_run)
ORDER BY run, CASE severity WHEN 'high' THEN 0 WHEN 'medium' THEN 1 WHEN 'low' THEN 2 ELSE 3 END, rule, what
-- clickhouse:
SELECT run, severity, rule, what, location, advice, saving_low, saving_high, saving_after, confidence
FROM finding
WHERE checked = 1 AND ($only_run = '' OR run = $only_run)
ORDER BY run, CASE WHEN severity = 'high' THEN 0 WHEN severity = 'medium' THEN 1 WHEN severity = 'low' THEN 2 ELSE 3 END, rule, what
