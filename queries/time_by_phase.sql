-- title: Where the time of the steps goes
-- Phases of an average step: input, host, launch, copies, compute, communication, synchronisation, idle. Every moment of a step
-- belongs to one of them. In a profile without a timeline (tfprof) it is the time of the ops by phase, which may run side by side.
-- param only_run text '': only this run
-- needs: step WHERE dur IS NOT NULL | no steps are known
-- instead: time_by_category | event WHERE dur IS NOT NULL
-- instead: hot_functions | sample
SELECT run, phase, count(DISTINCT step) AS steps, sum(share) / 1e6 AS total_ms, avg(share) / 1e6 AS mean_ms, max(share) / 1e6 AS longest_ms
FROM (
	SELECT run, phase, step, share FROM phase
	UNION ALL
	SELECT run, coalesce(phase, CASE
			WHEN regexp_matches(op_type, '^(MatchingFiles|ReadFile|Decode(Jpeg|Png|Gif|Bmp|Image|AndCropJpeg|WebP|Raw|PaddedRaw|CSV|Compressed|JSONExample|Wav|ProtoV2)|ExtractJpegShape|Parse.*Example(V2)?|ParseTensor|IteratorGetNext.*|QueueDequeue.*|ReaderRead.*)$')
				THEN 'input'
			WHEN regexp_matches(op_type, '^(RecvTensor|_?(Host)?(Send|Recv)|Nccl.*|Collective(Reduce|Gather|Bcast).*)$') THEN 'communication'
			WHEN lower(device) LIKE '%gpu%' OR lower(device) LIKE '%tpu%' THEN 'compute' ELSE 'host' END) AS phase,
		step, sum(coalesce(self_dur, dur)) AS share
	FROM event
	WHERE step IS NOT NULL AND run NOT IN (SELECT run FROM phase)
	GROUP BY ALL
) AS p
WHERE ($only_run = '' OR run = $only_run)
GROUP BY run, phase
ORDER BY run, total_ms DESC, phase
-- clickhouse:
SELECT run, phase, uniqExact(step) AS steps, sum(share) / 1e6 AS total_ms, avg(share) / 1e6 AS mean_ms, max(share) / 1e6 AS longest_ms
FROM (
	SELECT run, toString(phase) AS phase, toInt64(assumeNotNull(step)) AS step, toFloat64(share) AS share FROM phase
	UNION ALL
	SELECT run, phase, step, sum(self) AS share
	FROM (
		SELECT run, toString(coalesce(phase, multiIf(
				match(coalesce(op_type, ''), '^(MatchingFiles|ReadFile|Decode(Jpeg|Png|Gif|Bmp|Image|AndCropJpeg|WebP|Raw|PaddedRaw|CSV|Compressed|JSONExample|Wav|ProtoV2)|ExtractJpegShape|Parse.*Example(V2)?|ParseTensor|IteratorGetNext.*|QueueDequeue.*|ReaderRead.*)$'),
				'input',
				match(coalesce(op_type, ''), '^(RecvTensor|_?(Host)?(Send|Recv)|Nccl.*|Collective(Reduce|Gather|Bcast).*)$'), 'communication',
				lower(coalesce(device, '')) LIKE '%gpu%' OR lower(coalesce(device, '')) LIKE '%tpu%', 'compute', 'host'))) AS phase,
			toInt64(assumeNotNull(step)) AS step, toFloat64(coalesce(self_dur, dur, 0)) AS self
		FROM event
		WHERE step IS NOT NULL AND run NOT IN (SELECT run FROM phase)
	)
	GROUP BY run, phase, step
)
WHERE ($only_run = '' OR run = $only_run)
GROUP BY run, phase
ORDER BY run, total_ms DESC, phase
