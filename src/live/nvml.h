/*
 * nvml.h: use and memory of NVIDIA devices, by the library of their driver, which is opened when it is there. Written
 * after the documentation of NVML; it has not been run on a machine that has such a device.
 */
#ifndef LIVE_NVML_H
#define LIVE_NVML_H

#include "base/base.h"

#define HOST_METRIC(id, ...)
#define JOB_METRIC(id, ...)
#define GPU_METRIC(id, ...) GPU_##id,
enum gpu_metric {
#include "live/metrics.def"
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

/* False when there is no library or no device; `name` is NULL for the usual one. */
bool nvml_open(struct nvml *nvml, const char *name);
void nvml_read(struct nvml *nvml);
void nvml_close(struct nvml *nvml);

#endif
