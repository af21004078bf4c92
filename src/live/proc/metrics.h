/*
 * metrics.h: how much of the machine is used: by the host as a whole, by a job (a set of processes), by NVIDIA devices.
 * Sums only grow, also when processes of a job end. A few small files of /proc are read each time: some microseconds per
 * process.
 */
#ifndef LIVE_METRICS_H
#define LIVE_METRICS_H

#include "base/buf.h"
#include "live/nvml.h"
#include "live/processes.h"

enum metric_kind { METRIC_SUM, METRIC_LEVEL };

#define HOST_METRIC(id, ...) HOST_##id,
#define JOB_METRIC(id, ...)
#define GPU_METRIC(id, ...)
enum host_metric {
#include "live/metrics.def"
	HOST_METRICS
};
#undef HOST_METRIC
#undef JOB_METRIC
#define HOST_METRIC(id, ...)
#define JOB_METRIC(id, ...) JOB_##id,
enum job_metric {
#include "live/metrics.def"
	JOB_METRICS
};
#undef HOST_METRIC
#undef JOB_METRIC
#undef GPU_METRIC

struct metric_info {
	const char *counter, *series;
	enum metric_kind kind;
	double scale;
	const char *family, *label, *help;
};
extern const struct metric_info host_metric_info[HOST_METRICS];
extern const struct metric_info job_metric_info[JOB_METRICS];
extern const struct metric_info gpu_metric_info[GPU_METRICS];

struct host_meter {
	uint64_t values[HOST_METRICS];
};
/* What could not be read keeps its value. */
void host_meter_read(struct host_meter *meter);

struct job_meter {
	struct mem *mem;
	struct metered_process *items;
	size_t count, cap;
	bool begun;
	uint64_t values[JOB_METRICS];
	/* Of processes that have ended: the system adds what they read and wrote to whoever waits for them. */
	uint64_t inherited[JOB_METRICS];
	unsigned inherited_age; /* calls since then: not everybody is waited for */
};
void job_meter_init(struct job_meter *meter, struct mem *mem);
void job_meter_release(struct job_meter *meter);
/* The processes that the job has now. What they did before the first call is not counted. False without memory. */
bool job_meter_read(struct job_meter *meter, const pid_t *pids, size_t count);

/* ---- as text for Prometheus and its kin ---- */

struct job_text {
	const char *name; /* the label `job` */
	const uint64_t *values;
	const struct job_counts *counts; /* of its recording, or NULL */
};
struct job_counts {
	uint64_t records, dropped, steps, disk_bytes;
	int64_t step_ns; /* 0: not known */
};
/* OpenMetrics 1.0, with its last line; host and nvml may be NULL. The caller looks at to->failed. */
void metrics_text(struct buf *to, const struct host_meter *host, const struct job_text *jobs,
		  size_t job_count, const struct nvml *nvml);
#define METRICS_CONTENT_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"

#endif
