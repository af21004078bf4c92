-- title: What ran when in one step
-- The longest slices of one step, counted from its start, so that the steps of two runs can be laid over each other.
-- param step int -1: number of the step; -1: the steady one nearest the median
-- param rank int -1: only this rank; -1: the lowest
-- param limit int 400: slices of each run
-- param only_run text '': only this run
-- needs: step WHERE dur IS NOT NULL | no steps are known
-- needs: step WHERE number IS NOT NULL | no steps are known, only the recording as a whole
-- none: no slice with a duration lies in this step
-- instead: longest_events | event WHERE dur IS NOT NULL
SELECT run, step, track, track_kind, depth, name, phase, at_us, dur_us
FROM (
	SELECT e.run AS run, s.number AS step, e.track AS track, e.track_kind AS track_kind, e.track_id AS track_id, e.depth AS depth, e.name AS name,
		e.phase AS phase, (e.ts - coalesce(w.start_ns, s.start_ns)) / 1e3 AS at_us, e.dur / 1e3 AS dur_us,
		row_number() OVER (PARTITION BY e.run ORDER BY e.dur DESC, e.ts, e.id) AS place
	FROM (
		SELECT run, id, number, start_ns, end_ns,
			row_number() OVER (PARTITION BY run ORDER BY CASE WHEN steady THEN 0 ELSE 1 END, abs(dur - middle), number) AS nth
		FROM (
			SELECT *, coalesce(median(CASE WHEN steady THEN dur END) OVER (PARTITION BY run), median(dur) OVER (PARTITION BY run)) AS middle
			FROM step
			WHERE dur IS NOT NULL AND number IS NOT NULL AND ($step < 0 OR number = $step) AND ($only_run = '' OR run = $only_run)
		) AS t
	) AS s
	JOIN event AS e ON e.step_id = s.id
	LEFT JOIN (SELECT step_id, source_id, min(start_ns) AS start_ns FROM step_window GROUP BY step_id, source_id) AS w
		ON w.step_id = s.id AND w.source_id = e.source_id
	JOIN (SELECT run, min(rank) AS lowest FROM event GROUP BY run) AS r ON r.run = e.run
	WHERE s.nth = 1 AND e.dur > 0 AND e.track_kind <> 'frames' AND coalesce(e.rank, -1) = coalesce(CASE WHEN $rank < 0 THEN r.lowest ELSE $rank END, -1)
) AS t
WHERE place <= $limit
ORDER BY run, track_id, depth, at_us, place
