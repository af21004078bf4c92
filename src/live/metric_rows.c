/* metric_rows.c: see metric_rows.h. */
#include "live/metric_rows.h"

void metric_rows_init(struct metric_rows *rows, struct builder *b, const char *name, pid_t pid)
{
	*rows = (struct metric_rows){ .b = b, .last_ns = INT64_MIN };
	job_meter_init(&rows->job, b->m->mem);
	rows->has_nvml = nvml_open(&rows->nvml, NULL);
	rows->host_track = builder_track(b, &(struct track_row){ .name = builder_cstr(b, "host"),
								 .process = builder_cstr(b, "host"),
								 .tid = MODEL_NO_ID,
								 .source = b->source });
	rows->job_track = builder_track(b, &(struct track_row){ .name = builder_cstr(b, "counters"),
								.process = builder_cstr(b, name),
								.pid = pid,
								.tid = MODEL_NO_ID,
								.source = b->source });
}

void metric_rows_release(struct metric_rows *rows)
{
	job_meter_release(&rows->job);
	if (rows->has_nvml)
		nvml_close(&rows->nvml);
	rows->has_nvml = false;
}

static void put(struct metric_rows *rows, track_id track, const struct metric_info *info,
		uint64_t before, uint64_t value, int64_t now_ns, str_id instance)
{
	double shown = (double)value * info->scale;

	if (info->kind == METRIC_SUM)
		shown = (double)(value - MIN(before, value)) * info->scale * 1e9 /
			(double)(now_ns - rows->last_ns);
	builder_add_counter(rows->b, &(struct counter_row){
					     .track = track,
					     .name = builder_cstr(rows->b, info->counter),
					     .series = builder_cstr(rows->b, info->series),
					     .ts_ns = now_ns,
					     .value = shown,
					     .instance = instance,
				     });
}

static void put_devices(struct metric_rows *rows, int64_t now_ns)
{
	for (uint32_t d = 0; d < rows->nvml.count; d++) {
		struct nvml_device *device = &rows->nvml.devices[d];
		char number[16];

		snprintf(number, sizeof(number), "%u", d);
		for (size_t i = 0; i < GPU_METRICS; i++)
			if (device->known[i])
				put(rows, rows->host_track, &gpu_metric_info[i], 0,
				    device->values[i], now_ns, builder_cstr(rows->b, number));
	}
}

bool metric_rows_read(struct metric_rows *rows, const pid_t *pids, size_t count, int64_t now_ns)
{
	const str_id none = { 0 };

	host_meter_read(&rows->host);
	if (!job_meter_read(&rows->job, pids, count))
		return false;
	if (rows->has_nvml)
		nvml_read(&rows->nvml);
	if (rows->last_ns != INT64_MIN && now_ns > rows->last_ns) {
		for (size_t i = 0; i < HOST_METRICS; i++)
			put(rows, rows->host_track, &host_metric_info[i],
			    rows->host_before.values[i], rows->host.values[i], now_ns, none);
		for (size_t i = 0; i < JOB_METRICS; i++)
			put(rows, rows->job_track, &job_metric_info[i], rows->job_before[i],
			    rows->job.values[i], now_ns, none);
		put_devices(rows, now_ns);
	}
	rows->host_before = rows->host;
	memcpy(rows->job_before, rows->job.values, sizeof(rows->job_before));
	rows->last_ns = now_ns;
	return true;
}
