/*
 * rollup.h: what jobs of this host do now, as rows for a server that has the jobs of all hosts (ClickHouse), and as metrics of
 * OpenTelemetry. One row per job, per rank and per costly operation; anomalies as they happen.
 */
#ifndef FLEET_ROLLUP_H
#define FLEET_ROLLUP_H

#include "base/buf.h"
#include "opwatch/live.h"
#include "watch/anomaly.h"

enum rollup_table { ROLLUP_JOB, ROLLUP_RANK, ROLLUP_OP, ROLLUP_ANOMALY, ROLLUP_TABLES };
extern const char *const rollup_names[ROLLUP_TABLES];
/* CREATE TABLE IF NOT EXISTS, for a server of any version from 18.16 on. */
extern const char *const rollup_create[ROLLUP_TABLES];

/* Whose rows they are. */
struct rollup {
	const char *host, *user;
	int64_t time_ns;   /* since 1970 */
	const char *batch; /* the same for a row that came twice */
	/* what the processes of the job use; negative: not known */
	double run_wait, read_rate, write_rate;
	int64_t memory;
};

/* Rows in the format JSONEachRow. */
void rollup_job(struct buf *to, const struct rollup *r, const struct ow_job *job);
void rollup_ranks(struct buf *to, const struct rollup *r, const struct ow_job *job);
void rollup_ops(struct buf *to, const struct rollup *r, const struct ow_job *job);
void rollup_anomaly(struct buf *to, const struct rollup *r, const struct anomaly_event *event);

/* Steps per second of the last steps; negative when there are none. */
double rollup_throughput(const struct ow_job *job);

/* An ExportMetricsServiceRequest in the JSON of OTLP 1.x. Begin, one call per job, end. */
void otlp_begin(struct buf *to, const struct rollup *r);
void otlp_job(struct buf *to, const struct rollup *r, const struct ow_job *job, bool first);
void otlp_end(struct buf *to);

#endif
