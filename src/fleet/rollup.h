/*
 * rollup.h: data about the jobs of this host, as rows for a server that has the jobs of all hosts (ClickHouse), and as
 * OpenTelemetry metrics. One row for each job, each rank and each costly operation; anomalies as they happen.
 */
#ifndef FLEET_ROLLUP_H
#define FLEET_ROLLUP_H

#include "base/pseudonym.h"
#include "base/buf.h"
#include "opwatch/live.h"
#include "watch/anomaly.h"

enum rollup_table { ROLLUP_JOB, ROLLUP_RANK, ROLLUP_OP, ROLLUP_ANOMALY, ROLLUP_TABLES };
extern const char *const rollup_names[ROLLUP_TABLES];
/* CREATE TABLE IF NOT EXISTS statements, for servers from version 18.16 on. */
extern const char *const rollup_create[ROLLUP_TABLES];

/* The facts that all rows of a roll-up share. */
struct rollup {
	const char *host, *user;
	/* replaces the names of jobs, users and operators; NULL: names are sent as they are */
	struct pseudonyms *names;
	int64_t time_ns;   /* ns since 1970 */
	const char *batch; /* the same text if a row is sent twice */
	/* resource use of the job's processes; negative: unknown */
	double run_wait, read_rate, write_rate;
	int64_t memory;
};

/* Appends the name of a job or user as a JSON string, or its pseudonym. If memory runs out `to` fails, and no name is sent. */
void rollup_name(struct buf *to, const struct rollup *r, const char *name);

/* Append rows in the format JSONEachRow. With pseudonyms, an anomaly has neither a reason nor a file: these contain names. */
void rollup_job(struct buf *to, const struct rollup *r, const struct ow_job *job);
void rollup_ranks(struct buf *to, const struct rollup *r, const struct ow_job *job);
void rollup_ops(struct buf *to, const struct rollup *r, const struct ow_job *job);
void rollup_anomaly(struct buf *to, const struct rollup *r, const struct anomaly_event *event);

/* Steps per second of the last steps; negative when there are none. */
double rollup_throughput(const struct ow_job *job);

/* Writes an ExportMetricsServiceRequest in the JSON of OTLP 1.x: begin, one call for each job, end. */
void otlp_begin(struct buf *to, const struct rollup *r);
void otlp_job(struct buf *to, const struct rollup *r, const struct ow_job *job, bool first);
void otlp_end(struct buf *to);

#endif
