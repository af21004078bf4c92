/* daemon_metrics.c: how much of the machine the jobs of the daemon use, as a page of metrics. Sums begin when a job is
 * first measured: often enough, so that little is lost when a process ends between. */
#include "live/daemon_int.h"

static void measure_job(struct daemon *d, struct daemon_job *job)
{
	struct pid_list pids = { .mem = d->mem };
	bool good = true;

	for (size_t i = 0; job->open && good && i < job->collector.count; i++) {
		struct collected_info info;

		if (collector_info(&job->collector, i, &info) &&
		    !pid_list_has(&pids, (pid_t)info.pid))
			good = pid_list_add(&pids, (pid_t)info.pid);
	}
	if (good)
		(void)!job_meter_read(&job->meter, pids.items, pids.count);
	pid_list_release(&pids);
}

void daemon_measure(struct daemon *d)
{
	host_meter_read(&d->host);
	if (d->has_nvml)
		nvml_read(&d->nvml);
	for (size_t i = 0; i < d->job_count; i++)
		if (d->jobs[i]->open)
			measure_job(d, d->jobs[i]);
}

bool daemon_metrics_page(void *arg, struct buf *page)
{
	struct daemon *d = arg;
	size_t bytes = (d->job_count + 1) * (sizeof(struct job_text) + sizeof(struct job_counts));
	struct job_text *texts = mem_zalloc(d->mem, bytes);
	struct job_counts *counts = texts ? (struct job_counts *)(texts + d->job_count + 1) : NULL;
	size_t count = 0;

	if (!texts)
		return false;
	daemon_measure(d);
	for (size_t i = 0; i < d->job_count; i++) {
		struct daemon_job *job = d->jobs[i];

		if (!job->open)
			continue;
		job_describe(job);
		counts[count] = (struct job_counts){ .records = job->info.records,
						     .dropped = job->info.dropped,
						     .steps = job->info.steps,
						     .disk_bytes = job->info.disk_bytes,
						     .step_ns = job->info.step_ns };
		texts[count] = (struct job_text){ .name = job->info.name,
						  .values = job->meter.values,
						  .counts = &counts[count] };
		count++;
	}
	metrics_text(page, &d->host, texts, count, d->has_nvml ? &d->nvml : NULL);
	mem_free(d->mem, texts, bytes);
	return !page->failed;
}
