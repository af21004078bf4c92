/* metrics_text.c: metrics as OpenMetrics text. A family is told once, with all of its series behind it. */
#include "live/metrics.h"

static void put_label(struct buf *to, const char *name, const char *value, bool *any)
{
	buf_printf(to, "%s%s=\"", *any ? "," : "{", name);
	for (; *value; value++) {
		if (*value == '\\' || *value == '"')
			buf_add_char(to, '\\');
		if (*value == '\n')
			buf_puts(to, "\\n");
		else
			buf_add_char(to, *value);
	}
	buf_add_char(to, '"');
	*any = true;
}

static void put_family(struct buf *to, const struct metric_info *info)
{
	buf_printf(to, "# TYPE %s %s\n", info->family,
		   info->kind == METRIC_SUM ? "counter" : "gauge");
	buf_printf(to, "# HELP %s %s.\n", info->family, info->help);
}

/* `name` is the label that tells whose it is, or NULL. */
static void put_value(struct buf *to, const struct metric_info *info, const char *name,
		      const char *whose, uint64_t value)
{
	bool any = false;

	buf_printf(to, "%s%s", info->family, info->kind == METRIC_SUM ? "_total" : "");
	if (name)
		put_label(to, name, whose, &any);
	if (*info->label) {
		buf_printf(to, "%s%s", any ? "," : "{", info->label);
		any = true;
	}
	if (info->scale >= 1)
		buf_printf(to, "%s %" PRIu64 "\n", any ? "}" : "", value);
	else
		buf_printf(to, "%s %.9g\n", any ? "}" : "", (double)value * info->scale);
}

/* Rows [*i, end) of a table are one family. */
static size_t family_end(const struct metric_info *infos, size_t count, size_t i)
{
	size_t end = i + 1;

	while (end < count && strcmp(infos[end].family, infos[i].family) == 0)
		end++;
	return end;
}

static void put_host(struct buf *to, const struct host_meter *host)
{
	for (size_t i = 0, end; i < HOST_METRICS; i = end) {
		end = family_end(host_metric_info, HOST_METRICS, i);
		put_family(to, &host_metric_info[i]);
		for (size_t k = i; k < end; k++)
			put_value(to, &host_metric_info[k], NULL, "", host->values[k]);
	}
}

static void put_jobs(struct buf *to, const struct job_text *jobs, size_t count)
{
	for (size_t i = 0, end; count && i < JOB_METRICS; i = end) {
		end = family_end(job_metric_info, JOB_METRICS, i);
		put_family(to, &job_metric_info[i]);
		for (size_t job = 0; job < count; job++)
			for (size_t k = i; k < end; k++)
				put_value(to, &job_metric_info[k], "job", jobs[job].name,
					  jobs[job].values[k]);
	}
}

static void put_devices(struct buf *to, const struct nvml *nvml)
{
	char number[16];

	for (size_t i = 0, end; nvml->count && i < GPU_METRICS; i = end) {
		end = family_end(gpu_metric_info, GPU_METRICS, i);
		put_family(to, &gpu_metric_info[i]);
		for (uint32_t d = 0; d < nvml->count; d++)
			for (size_t k = i; k < end; k++) {
				snprintf(number, sizeof(number), "%u", d);
				if (nvml->devices[d].known[k])
					put_value(to, &gpu_metric_info[k], "gpu", number,
						  nvml->devices[d].values[k]);
			}
	}
}

/* What only a recording tells. */
static const struct metric_info count_info[] = {
	{ .kind = METRIC_SUM,
	  .scale = 1,
	  .family = "opwatch_job_records",
	  .label = "",
	  .help = "Records of a job, operators, reads and the like" },
	{ .kind = METRIC_SUM,
	  .scale = 1,
	  .family = "opwatch_job_dropped_records",
	  .label = "",
	  .help = "Records that came faster than they could be taken" },
	{ .kind = METRIC_SUM,
	  .scale = 1,
	  .family = "opwatch_job_steps",
	  .label = "",
	  .help = "Steps of the process that is furthest" },
	{ .kind = METRIC_LEVEL,
	  .scale = 1,
	  .family = "opwatch_job_ring_bytes",
	  .label = "",
	  .help = "Size of its ring on disk" },
	{ .kind = METRIC_LEVEL,
	  .scale = 1e-9,
	  .family = "opwatch_job_step_seconds",
	  .label = "",
	  .help = "Median of its last steps" },
};

static void put_counts(struct buf *to, const struct job_text *jobs, size_t count)
{
	for (size_t i = 0; count && i < ARRAY_COUNT(count_info); i++) {
		bool any = false;

		for (size_t job = 0; job < count; job++) {
			const struct job_counts *c = jobs[job].counts;
			uint64_t values[ARRAY_COUNT(count_info)];

			if (!c || (i == 4 && c->step_ns <= 0))
				continue;
			values[0] = c->records;
			values[1] = c->dropped;
			values[2] = c->steps;
			values[3] = c->disk_bytes;
			values[4] = (uint64_t)c->step_ns;
			if (!any)
				put_family(to, &count_info[i]);
			any = true;
			put_value(to, &count_info[i], "job", jobs[job].name, values[i]);
		}
	}
}

void metrics_text(struct buf *to, const struct host_meter *host, const struct job_text *jobs,
		  size_t job_count, const struct nvml *nvml)
{
	if (host)
		put_host(to, host);
	put_jobs(to, jobs, job_count);
	put_counts(to, jobs, job_count);
	if (nvml)
		put_devices(to, nvml);
	buf_puts(to, "# EOF\n");
}
