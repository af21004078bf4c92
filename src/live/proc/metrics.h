/*
 * metrics.h: how much of the machine is used by the host, by a job (a set of processes) and by NVIDIA devices.
 * Sums only grow, even when processes of a job end. Each reading costs a few small files of /proc: some
 * microseconds per process.
 *
 * NVML is the library of NVIDIA's driver; it is opened when it is there. That part follows NVML's documentation
 * and was never run with a device.
 */
#ifndef LIVE_METRICS_H
#define LIVE_METRICS_H

#include "base/base.h"
#include "base/buf.h"
#include "live/proc/proc.h"
#include "model/builder.h"

#define HOST_METRIC(id, ...)
#define JOB_METRIC(id, ...)
#define GPU_METRIC(id, ...) GPU_##id,
enum gpu_metric {
#include "live/proc/metrics.def"
	GPU_METRICS
};
#undef HOST_METRIC
#undef JOB_METRIC
#undef GPU_METRIC

#define NVML_DEVICES 64

struct nvml_device {
	void *handle;
	char name[96];
	uint64_t values[GPU_METRICS];
	bool known[GPU_METRICS];
};

struct nvml {
	void *library;
	struct nvml_device devices[NVML_DEVICES];
	uint32_t count;
};

/* Loads the NVIDIA library; false if there is no library or no device. `name` is NULL for the
 * default. */
bool nvml_open(struct nvml *nvml, const char *name);
void nvml_read(struct nvml *nvml);
void nvml_close(struct nvml *nvml);

enum metric_kind { METRIC_SUM, METRIC_LEVEL };

#define HOST_METRIC(id, ...) HOST_##id,
#define JOB_METRIC(id, ...)
#define GPU_METRIC(id, ...)
enum host_metric {
#include "live/proc/metrics.def"
	HOST_METRICS
};
#undef HOST_METRIC
#undef JOB_METRIC
#define HOST_METRIC(id, ...)
#define JOB_METRIC(id, ...) JOB_##id,
enum job_metric {
#include "live/proc/metrics.def"
	JOB_METRICS
};
#undef HOST_METRIC
#undef JOB_METRIC
#undef GPU_METRIC

struct meter_info {
	const char *counter, *series;
	enum metric_kind kind;
	double scale;
	const char *family, *label, *help;
};
extern const struct meter_info host_metric_info[HOST_METRICS];
extern const struct meter_info job_metric_info[JOB_METRICS];
extern const struct meter_info gpu_metric_info[GPU_METRICS];

struct host_meter {
	uint64_t values[HOST_METRICS];
};
/* Reads the host's metrics. Values that cannot be read stay unchanged. */
void host_meter_read(struct host_meter *meter);

struct job_meter {
	struct mem *mem;
	struct metered_process *items;
	size_t count, cap;
	bool begun;
	uint64_t values[JOB_METRICS];
	/* I/O of ended processes, which the kernel adds to the process that waits for them. */
	uint64_t inherited[JOB_METRICS];
	/* number of calls since then, because no process may ever wait for them */
	unsigned inherited_age;
};
void job_meter_init(struct job_meter *meter, struct mem *mem);
void job_meter_release(struct job_meter *meter);
/* Reads the current processes of the job. Activity before the first call does not count. False if memory runs out. */
bool job_meter_read(struct job_meter *meter, const pid_t *pids, size_t count);

/* Metrics as text for Prometheus and compatible readers. */

struct job_text {
	const char *name; /* value of the label `job` */
	const uint64_t *values;
	const struct job_counts *counts; /* counts of the job's recording, or NULL */
};
struct job_counts {
	uint64_t records, dropped, steps, disk_bytes;
	int64_t step_ns; /* duration of the median step; 0: unknown */
};
/* Writes OpenMetrics 1.0, with its last line; host and nvml may be NULL. The caller checks
 * to->failed. */
void metrics_text(struct buf *to, const struct host_meter *host, const struct job_text *jobs,
		  size_t job_count, const struct nvml *nvml);
#define METRICS_CONTENT_TYPE "application/openmetrics-text; version=1.0.0; charset=utf-8"

struct metric_rows {
	struct builder *b;
	struct host_meter host, host_before;
	struct job_meter job;
	uint64_t job_before[JOB_METRICS];
	struct nvml nvml;
	bool has_nvml;
	track_id host_track, job_track;
	int64_t last_ns; /* time of the previous reading; INT64_MIN if there is none */
};

/* Prepares rows; `name` is the process under which counters of the job are shown. */
void metric_rows_init(struct metric_rows *rows, struct builder *b, const char *name, pid_t pid);
void metric_rows_release(struct metric_rows *rows);
/* Reads all metrics of the job's current processes. False if memory runs out; failures of rows are reported by the
 * builder. */
bool metric_rows_read(struct metric_rows *rows, const pid_t *pids, size_t count, int64_t now_ns);

#endif
