-- title: Bandwidth of collectives
-- Bytes and time of messages between ranks by name, and bytes per second of the kernels. Bytes come from the trace: of copies and messages
-- themselves, or from NCCL's arguments (elements and type). Waiting for other ranks is part of the time: see rank_balance.
-- param limit int 20: rows
-- param only_run text '': only this run
-- needs: event WHERE phase = 'communication' | no messages between ranks were recorded
-- needs: event WHERE phase = 'communication' AND device IS NOT NULL AND dur IS NOT NULL | the messages were recorded on hosts only, not on a device
-- instead: communication | (SELECT e.run FROM event AS e JOIN phase AS p ON p.run = e.run AND p.step IS NOT NULL WHERE e.phase = 'communication')
-- instead: copies | event WHERE phase IN ('host_to_device', 'device_to_host')
SELECT run, rank, device, name, count(*) AS messages, sum(dur) / 1e6 AS total_ms, sum(moved) / 1e6 AS total_mb,
	sum(CASE WHEN moved IS NOT NULL THEN moved END) / nullif(sum(CASE WHEN moved IS NOT NULL THEN dur END), 0) AS gb_per_s,
	count(*) - count(moved) AS without_bytes
FROM (
	SELECT run, rank, device, name, dur, coalesce(bytes, TRY_CAST(arg(id, 'In msg nelems') AS BIGINT) * CASE
		WHEN arg(id, 'dtype') IN ('Float', 'Int', 'UInt32', 'Int32') THEN 4
		WHEN arg(id, 'dtype') IN ('Half', 'BFloat16', 'Short') THEN 2
		WHEN arg(id, 'dtype') IN ('Double', 'Long', 'Int64', 'UInt64') THEN 8
		WHEN arg(id, 'dtype') IN ('Char', 'Byte', 'Bool', 'Int8', 'UInt8', 'Float8_e4m3fn', 'Float8_e5m2') THEN 1 END) AS moved
	FROM event
	WHERE phase = 'communication' AND dur IS NOT NULL AND device IS NOT NULL AND ($only_run = '' OR run = $only_run)
) AS t
GROUP BY run, rank, device, name
ORDER BY total_ms DESC, run, rank, device, name
LIMIT $limit
