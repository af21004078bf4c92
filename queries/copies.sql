-- title: Copies by direction and size
-- Copies between host and device and within devices, in classes of size: how many, how much, how fast. Many small ones are
-- better put together; slow large ones are rarely from pinned memory.
-- param only_run text '': only this run
-- needs: event WHERE dur IS NOT NULL | the files have no timed events
-- needs: event WHERE phase IN ('host_to_device', 'device_to_host') | no copies between host and device were recorded
-- none: no copy has a known duration
SELECT run, phase AS direction, size_class, count(*) AS copies, sum(bytes) / 1e6 AS mb, sum(dur) / 1e6 AS ms,
	sum(bytes) / nullif(sum(dur), 0) AS gb_per_s
FROM (
	SELECT run, phase, bytes, dur, CASE WHEN bytes IS NULL THEN 'unknown' WHEN bytes < 4096 THEN '1: below 4 kB'
		WHEN bytes < 65536 THEN '2: below 64 kB' WHEN bytes < 1048576 THEN '3: below 1 MB'
		WHEN bytes < 67108864 THEN '4: below 64 MB' ELSE '5: larger' END AS size_class
	FROM event
	WHERE phase IN ('host_to_device', 'device_to_host') AND dur IS NOT NULL AND ($only_run = '' OR run = $only_run)
) AS t
GROUP BY run, phase, size_class
ORDER BY run, direction, size_class
-- clickhouse:
SELECT run, phase AS direction, size_class, count(*) AS copies, sum(bytes) / 1e6 AS mb, sum(dur) / 1e6 AS ms,
	sum(bytes) / nullIf(sum(dur), 0) AS gb_per_s
FROM (
	SELECT run, phase, bytes, dur, CASE WHEN bytes IS NULL THEN 'unknown' WHEN bytes < 4096 THEN '1: below 4 kB'
		WHEN bytes < 65536 THEN '2: below 64 kB' WHEN bytes < 1048576 THEN '3: below 1 MB'
		WHEN bytes < 67108864 THEN '4: below 64 MB' ELSE '5: larger' END AS size_class
	FROM event
	WHERE phase IN ('host_to_device', 'device_to_host') AND dur IS NOT NULL AND ($only_run = '' OR run = $only_run)
)
GROUP BY run, phase, size_class
ORDER BY run, direction, size_class
