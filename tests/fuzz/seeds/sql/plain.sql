-- plain SQL stays
WITH x AS (SELECT traceEvents FROM (VALUES ([1, 2, 3])) v(traceEvents)) SELECT unnest(traceEvents) FROM x;
SELECT 'it''s', "a ""b""", $tag$ `x` ; $tag$, 1.5e3, CAST(op.id AS STRING) FROM op WHERE name LIKE '%`%';
