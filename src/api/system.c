/*
 * system.c: the body of ow_record_system: samples the host (live/system), reads the samples as any recording of perf, and adds
 * the numbers of the processes as counters.
 */
#include "api/api_int.h"
#include "opwatch/record.h"

#include "live/system/system_record.h"

#include "opwatch_config.h"

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#define MAX_HZ 10000u
#define FILE_LIMIT ((uint64_t)1 << 30)

void ow_system_options_init(struct ow_system_options *options)
{
	*options = (struct ow_system_options){ .size = sizeof(*options), .hz = 99 };
}

static void add_counter(struct builder *b, track_id track, const char *name, const char *series,
			int64_t ts_ns, double value)
{
	if (value >= 0)
		builder_add_counter(b, &(struct counter_row){ .track = track,
							      .name = builder_cstr(b, name),
							      .series = builder_cstr(b, series),
							      .ts_ns = ts_ns,
							      .value = value });
}

static track_id process_track(struct builder *b, const struct system_use *use)
{
	return builder_track(b, &(struct track_row){ .name = builder_cstr(b, "counters"),
						     .process = builder_cstr(b, use->name),
						     .pid = use->pid,
						     .tid = MODEL_NO_ID,
						     .source = b->source });
}

static void add_uses(struct builder *b, const struct system_recording *r)
{
	for (size_t i = 0; i < r->use_count; i++) {
		const struct system_use *use = &r->uses[i];
		track_id track = process_track(b, use);

		add_counter(b, track, "cpu", "busy", use->ts_ns, use->cpu);
		add_counter(b, track, "run queue", "waiting", use->ts_ns, use->wait);
		add_counter(b, track, "memory", "resident", use->ts_ns, (double)use->memory);
		add_counter(b, track, "read", "calls", use->ts_ns, use->read_rate);
		add_counter(b, track, "written", "calls", use->ts_ns, use->write_rate);
	}
}

/* Adds counters of the host. A sum is shown as its increase per second. */
static void add_host(struct builder *b, const struct system_recording *r)
{
	track_id track = builder_track(b, &(struct track_row){ .name = builder_cstr(b, "host"),
							       .process = builder_cstr(b, "host"),
							       .tid = MODEL_NO_ID,
							       .source = b->source });

	for (size_t i = 1; i < r->host_count; i++)
		for (size_t k = 0; k < HOST_METRICS; k++) {
			const struct meter_info *info = &host_metric_info[k];
			uint64_t now = r->hosts[i].values[k], before = r->hosts[i - 1].values[k];
			double value = (double)now * info->scale;

			if (info->kind == METRIC_SUM)
				value = (double)(now - MIN(before, now)) * info->scale * 1e9 /
					(double)(r->host_ns[i] - r->host_ns[i - 1]);
			add_counter(b, track, info->counter, info->series, r->host_ns[i], value);
		}
}

static void add_notes(struct builder *b, const struct system_recording *r)
{
	if (r->lost)
		builder_note_many(b, NOTE_INFO, OW_NO_OFFSET, r->lost,
				  "records lost: the kernel had no room for them");
	if (r->throttled)
		builder_note_many(b, NOTE_INFO, OW_NO_OFFSET, r->throttled,
				  "times that the kernel throttled sampling "
				  "(kernel.perf_event_max_sample_rate)");
	if (r->no_waits && r->why[0])
		builder_note(b, NOTE_INFO, OW_NO_OFFSET,
			     "the kernel does not sample threads that leave their processors: "
			     "waits and locks are not known");
	if (r->no_unwind)
		builder_note(b, NOTE_INFO, OW_NO_OFFSET,
			     "built without libdw: stacks by frame pointers only");
	else if (r->by_pointers)
		builder_note_many(b, NOTE_INFO, OW_NO_OFFSET, r->by_pointers,
				  "stacks by frame pointers only: short waits, processes that had "
				  "ended, or too many samples to unwind");
	if (r->failure == EFBIG)
		builder_note(b, NOTE_INFO, OW_NO_OFFSET,
			     "the recording ended early: its samples took 1 GB");
}

/* Makes a profile of the samples with the importer; function names come from this machine. */
static ow_status make_profile(ow_profile *p, int fd, const struct system_recording *r,
			      struct ow_error *err)
{
	struct builder *b = &p->b;
	char path[64];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	OW_TRY(ow_profile_add_file(p, path, NULL, NULL, err));
	b->m->source.path[b->source.v] = builder_cstr(b, "this host");
	b->m->source.format[b->source.v] = builder_cstr(b, "system");
	b->m->source.producer[b->source.v] = builder_cstr(b, "opwatch " OPWATCH_VERSION);
	add_uses(b, r);
	add_host(b, r);
	add_notes(b, r);
	return ow_profile_freeze(p, err);
}

static void sum_up(struct ow_system_summary *to, const struct system_recording *r)
{
	const struct ow_system_summary full = { .size = sizeof(full),
						.cpus = r->cpus,
						.processes = r->processes,
						.samples = r->samples,
						.waits = r->waits,
						.lost = r->lost,
						.elapsed_ns = r->elapsed_ns,
						.cpu_ns = r->cpu_ns };

	SIZED_OUT(to, &full);
}

static ow_status record_to(ow_profile *p, int fd, const struct ow_system_options *o,
			   struct ow_system_summary *summary, struct ow_error *err)
{
	const struct system_options options = { .hz = o->hz,
						.for_ns = o->for_ns,
						.no_waits = o->no_waits,
						.limit = FILE_LIMIT,
						.keep_going = o->keep_going,
						.arg = o->keep_going_arg };
	struct system_recording r;
	ow_status status = system_record(&r, &p->mem, fd, &options, err);

	sum_up(summary, &r);
	if (status == OW_OK && r.failure && r.failure != EFBIG)
		status = error_set(err, OW_E_IO, "the samples cannot be kept: %s",
				   strerror(r.failure));
	if (status == OW_OK && !r.samples && !r.waits)
		status = error_set(err, OW_E_EMPTY, "nothing ran in that time");
	if (status == OW_OK)
		status = make_profile(p, fd, &r, err);
	system_recording_release(&r);
	return status;
}

ow_status ow_record_system(const struct ow_system_options *options, ow_profile **profile,
			   struct ow_system_summary *summary, struct ow_error *err)
{
	struct ow_system_options full;
	struct ow_open_options open;
	ow_profile *p;
	ow_status status;
	int fd;

	error_clear(err);
	*profile = NULL;
	ow_system_options_init(&full);
	SIZED_IN(&full, options);
	if (!full.hz || full.hz > MAX_HZ)
		return error_set(err, OW_E_USAGE, "samples can be taken 1 to %u times a second",
				 MAX_HZ);
	fd = memfd_create("opwatch samples", MFD_CLOEXEC);
	if (fd < 0)
		return error_set(err, OW_E_IO, "memfd_create: %s", strerror(errno));
	ow_open_options_init(&open);
	open.memory_limit = full.memory_limit;
	status = ow_profile_new(&open, &p, err);
	if (status == OW_OK)
		status = record_to(p, fd, &full, summary, err);
	close(fd);
	if (status != OW_OK) {
		ow_profile_free(p);
		return status;
	}
	*profile = p;
	return OW_OK;
}
