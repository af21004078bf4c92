/*
 * metric_rows.h: metrics of the host, a job and its devices as counters of the model, in the same time as everything
 * else. What grows is shown as how much per second; processors as how many were busy.
 */
#ifndef LIVE_METRIC_ROWS_H
#define LIVE_METRIC_ROWS_H

#include "live/metrics.h"
#include "model/builder.h"

struct metric_rows {
	struct builder *b;
	struct host_meter host, host_before;
	struct job_meter job;
	uint64_t job_before[JOB_METRICS];
	struct nvml nvml;
	bool has_nvml;
	track_id host_track, job_track;
	int64_t last_ns; /* of the reading before; INT64_MIN when there is none */
};

/* `name` is the process that counters of the job are shown with. */
void metric_rows_init(struct metric_rows *rows, struct builder *b, const char *name, pid_t pid);
void metric_rows_release(struct metric_rows *rows);
/* Reads everything, for the processes that the job has now. False without memory; rows are the builder's to fail. */
bool metric_rows_read(struct metric_rows *rows, const pid_t *pids, size_t count, int64_t now_ns);

#endif
