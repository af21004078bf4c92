/*
 * diff.c: the body of ow_diff: two groups of profiles compared. Each profile is a run. The work is in src/diff; here every profile is read
 * under its own guard, and nothing is compared with itself.
 */
#include "api/api_int.h"

#include "diff/diff.h"
#include "model/backing.h"

#include <limits.h>
#include <stdio.h>

#define METRIC_BYTES 256
#define COPY_LEAST 100	/* two runs with fewer events than this may be equal by chance */
#define COPY_SAMPLES 20 /* two runs with fewer samples than this may be equal by chance */
#define COPY_BYTES 65536u

void ow_diff_options_init(struct ow_diff_options *options)
{
	*options = (struct ow_diff_options){ .size = sizeof(*options) };
}

/* The file that a run was read from. An opwatch file also names the trace that it was made from, which may be another one by now. */
static struct str path_of(const ow_profile *p)
{
	if (p->m->backing && p->m->backing->file.name)
		return str_from(p->m->backing->file.name);
	return p->m->source.count > 1 ? model_str(p->m, p->m->source.path[1]) : STR("");
}

static ow_status check_profiles(ow_profile *const *all, size_t base, size_t count,
				struct ow_error *err)
{
	for (size_t i = 0; i < count; i++) {
		OW_TRY(api_check_frozen(all[i], err));
		for (size_t k = i + 1; k < count; k++) {
			struct str a = path_of(all[i]), b = path_of(all[k]);

			if (all[i] == all[k] || (a.len && str_eq(a, b)))
				return error_set(err, OW_E_USAGE,
						 "%.*s is given twice%s: a run cannot be compared "
						 "with itself",
						 (int)MIN(a.len, 200u), a.ptr,
						 i < base && k >= base ? ", on both sides" : "");
		}
	}
	return OW_OK;
}

static ow_status read_run(ow_profile *p, const struct diff_read_options *options,
			  struct diff_run *run, struct ow_error *err)
{
	struct reading reading;
	ow_status status;

	OW_TRY(api_read_begin(p, TABLES_ALL, &reading, err));
	status = diff_run_read(p->m, options, run, err);
	status = api_read_end(p, &reading, status, err);
	if (status == OW_OK && !run->steps)
		status = error_set(err, OW_E_EMPTY,
				   "%.*s: nothing in it can be compared; a run needs events with a "
				   "duration, samples or memory",
				   (int)MIN(path_of(p).len, 200u), path_of(p).ptr);
	return status;
}

/* Returns whether two models have the same ops, and events with equal durations and starts that differ by
 * one constant. */
static bool has_same_events(const struct model *a, const struct model *b)
{
	uint32_t count = a->event.count;
	uint64_t moved;

	if (count <= COPY_LEAST || count != b->event.count || a->op.count != b->op.count)
		return false;
	moved = (uint64_t)b->event.ts_ns[1] - (uint64_t)a->event.ts_ns[1];
	for (uint32_t i = 1; i < count; i++)
		if ((uint64_t)b->event.ts_ns[i] - (uint64_t)a->event.ts_ns[i] != moved)
			return false;
	for (uint32_t i = 1; i < a->op.count; i++)
		if (!str_eq(model_str(a, a->op.name[i]), model_str(b, b->op.name[i])))
			return false;
	return memcmp(a->event.op, b->event.op, count * sizeof(*a->event.op)) == 0 &&
	       memcmp(a->event.dur_ns, b->event.dur_ns, count * sizeof(*a->event.dur_ns)) == 0;
}

static struct str sample_function(const struct model *m, uint32_t sample)
{
	return model_str(m, m->frame.function[m->stack.frame[m->sample.stack[sample].v].v]);
}

/* Returns whether two profiles of samples have the same functions with the same weights, in the
 * same order. */
static bool has_same_samples(const struct model *a, const struct model *b)
{
	uint32_t count = a->sample.count;

	if (a->event.count > 1 || b->event.count > 1 || count <= COPY_SAMPLES ||
	    count != b->sample.count || a->stack.count != b->stack.count ||
	    memcmp(a->sample.weight, b->sample.weight, count * sizeof(*a->sample.weight)) != 0)
		return false;
	for (uint32_t i = 1; i < count; i++)
		if (!str_eq(sample_function(a, i), sample_function(b, i)))
			return false;
	return true;
}

/* Whether two files have the same bytes. False when one cannot be read, such as a folder. Of several small runs a side some may be equal by
 * chance, so this is asked of single ones only. */
static bool is_same_file(struct str path, struct str other, struct mem *mem)
{
	struct str paths[2] = { path, other };
	char *text = mem_alloc(mem, 2 * COPY_BYTES);
	FILE *files[2] = { NULL, NULL };
	size_t len[2] = { 0, 0 };
	bool same = text && path.len && other.len;

	for (unsigned i = 0; same && i < 2; i++) {
		char name[PATH_MAX];

		snprintf(name, sizeof(name), "%.*s", STR_ARG(paths[i]));
		files[i] = fopen(name, "rbe");
		same = files[i] != NULL;
	}
	do {
		for (unsigned i = 0; same && i < 2; i++)
			len[i] = fread(text + i * COPY_BYTES, 1, COPY_BYTES, files[i]);
		same = same && len[0] == len[1] && memcmp(text, text + COPY_BYTES, len[0]) == 0 &&
		       !ferror(files[0]) && !ferror(files[1]);
	} while (same && len[0]);
	for (unsigned i = 0; i < 2; i++)
		if (files[i])
			fclose(files[i]);
	mem_free(mem, text, 2 * COPY_BYTES);
	return same;
}

/* Returns whether two files are the same recording under two names. */
static bool is_copy(const struct model *a, const struct model *b)
{
	return has_same_events(a, b) || has_same_samples(a, b);
}

static ow_status check_copies(ow_profile *const *all, size_t count, struct ow_error *err)
{
	for (size_t i = 0; i < count; i++)
		for (size_t k = i + 1; k < count; k++)
			if (is_copy(all[i]->m, all[k]->m) ||
			    (count == 2 &&
			     is_same_file(path_of(all[i]), path_of(all[k]), all[i]->m->mem)))
				return error_set(
					err, OW_E_USAGE,
					"%.*s is a copy of %.*s: a run cannot be compared with "
					"itself",
					(int)MIN(path_of(all[k]).len, 200u), path_of(all[k]).ptr,
					(int)MIN(path_of(all[i]).len, 200u), path_of(all[i]).ptr);
	return OW_OK;
}

struct reading_runs {
	ow_profile *const *all;
	struct diff_run *runs;
	size_t count;
	struct ow_error *err;
};

/* Reads a run again with other options. */
static ow_status read_again(const struct reading_runs *r, size_t i,
			    const struct diff_read_options *options)
{
	diff_run_release(&r->runs[i]);
	r->runs[i] = (struct diff_run){ 0 };
	return read_run(r->all[i], options, &r->runs[i], r->err);
}

/* Returns whether all runs have samples of a metric; runs that were read with another metric are
 * read again. */
static ow_status read_by_metric(const struct reading_runs *r, const char *metric, bool frames,
				bool *good)
{
	const struct diff_read_options by_metric = { metric, frames, false },
				       by_default = { NULL, frames, false };

	*good = true;
	for (size_t i = 0; *good && i < r->count; i++) {
		ow_status status;

		if (str_eq(r->runs[i].metric, str_from(metric)))
			continue;
		status = read_again(r, i, &by_metric);
		*good = status == OW_OK && str_eq(r->runs[i].metric, str_from(metric));
		if (status == OW_E_USAGE || (status == OW_OK && !*good)) {
			error_clear(r->err);
			status = read_again(r, i, &by_default);
		}
		OW_TRY(status);
	}
	return OW_OK;
}

/* Returns whether every run consists of samples of time or events, which can be counted; samples of memory
 * cannot. */
static bool are_samples(const struct reading_runs *r)
{
	for (size_t i = 0; i < r->count; i++)
		if (!r->runs[i].own_metric.len || str_eq(r->runs[i].unit, STR("bytes")))
			return false;
	return true;
}

/* Profiles of samples may have several metrics: the first default that all have. If there is none, the samples are counted, and the runs are
 * not comparable. */
static ow_status agree_on_metric(const struct reading_runs *r, bool frames)
{
	bool good = true;

	for (size_t i = 1; i < r->count; i++)
		good = good && str_eq(r->runs[i].metric, r->runs[0].metric);
	for (size_t i = 0; !good && i < r->count; i++) {
		char metric[METRIC_BYTES];

		snprintf(metric, sizeof(metric), "%.*s",
			 (int)MIN(r->runs[i].metric.len, METRIC_BYTES - 1u), r->runs[i].metric.ptr);
		if (*metric)
			OW_TRY(read_by_metric(r, metric, frames, &good));
	}
	if (!good && are_samples(r))
		OW_TRY(read_by_metric(r, METRIC_SAMPLES, frames, &good));
	return OW_OK;
}

/* A step cannot be compared with a recording: if some run has no steps, all runs are read as
 * whole recordings. */
static ow_status agree_on_steps(const struct reading_runs *r, bool frames)
{
	const struct diff_read_options whole = { NULL, frames, true };
	size_t known = 0;

	for (size_t i = 0; i < r->count; i++)
		known += r->runs[i].known;
	for (size_t i = 0; known < r->count && i < r->count; i++)
		if (r->runs[i].known)
			OW_TRY(read_again(r, i, &whole));
	return OW_OK;
}

static ow_status read_runs(const struct reading_runs *r, const char *metric, bool frames)
{
	const struct diff_read_options options = { metric, frames, false };

	for (size_t i = 0; i < r->count; i++) {
		OW_TRY(read_run(r->all[i], &options, &r->runs[i], r->err));
		if (metric && !r->runs[i].metric.len)
			return error_set(r->err, OW_E_USAGE, "%.*s has no samples of '%.80s'",
					 (int)MIN(path_of(r->all[i]).len, 200u),
					 path_of(r->all[i]).ptr, metric);
	}
	if (!metric)
		OW_TRY(agree_on_metric(r, frames));
	return agree_on_steps(r, frames);
}

static ow_status compare(ow_profile *const *all, size_t base, size_t count,
			 const struct diff_options *options, const struct ow_diff_options *full,
			 struct table *out, struct ow_error *err)
{
	struct mem *mem = &all[0]->mem;
	struct diff_run *runs = mem_zalloc(mem, count * sizeof(*runs));
	const struct reading_runs reading = { all, runs, count, err };
	enum diff_gate gate;
	ow_status status;

	if (!runs)
		return error_no_memory(err);
	status = read_runs(&reading, full->metric, options->frames);
	if (status == OW_OK)
		status = check_copies(all, count, err);
	if (status == OW_OK)
		status = diff_table(runs, base, count - base, options, out, &gate, err);
	if (status == OW_OK && !options->frames)
		status = api_diff_findings(all, base, count, full->findings, out, err);
	for (size_t i = 0; i < count; i++)
		diff_run_release(&runs[i]);
	mem_free(mem, runs, count * sizeof(*runs));
	return status;
}

ow_status ow_diff(ow_profile *const *base, size_t base_count, ow_profile *const *other,
		  size_t other_count, const struct ow_diff_options *options, ow_result **out,
		  struct ow_error *err)
{
	size_t count = base_count + other_count;
	struct ow_diff_options full;
	struct diff_options limits;
	struct table *r;
	ow_profile **all;
	ow_status status;

	error_clear(err);
	*out = NULL;
	if (!base_count || !other_count)
		return error_set(err, OW_E_USAGE,
				 "a comparison needs at least one run on each side");
	ow_diff_options_init(&full);
	SIZED_IN(&full, options);
	limits = (struct diff_options){ full.fail_if.items, full.fail_if.count, full.frames,
					full.frames_least };
	all = mem_alloc(&base[0]->mem, count * sizeof(*all));
	if (!all)
		return error_no_memory(err);
	memcpy(all, base, base_count * sizeof(*all));
	memcpy(all + base_count, other, other_count * sizeof(*all));
	status = check_profiles(all, base_count, count, err);
	r = status == OW_OK ? table_new(&base[0]->mem, "diff", err) : NULL;
	if (status == OW_OK)
		status = r ? compare(all, base_count, count, &limits, &full, r, err)
			   : OW_E_NO_MEMORY;
	mem_free(&base[0]->mem, all, count * sizeof(*all));
	if (status != OW_OK) {
		table_free(r);
		return status;
	}
	return api_wrap_result(base[0], r, out, err);
}

ow_status ow_configuration(ow_profile *profile, ow_result **out, struct ow_error *err)
{
	struct diff_run run = { 0 };
	struct reading reading;
	struct table *r;
	ow_status status;

	error_clear(err);
	*out = NULL;
	OW_TRY(api_check_frozen(profile, err));
	r = table_new(&profile->mem, "configuration", err);
	if (!r)
		return OW_E_NO_MEMORY;
	status = api_read_begin(profile, TABLES_ALL, &reading, err);
	if (status == OW_OK) {
		arena_init(&run.arena, &profile->mem);
		status = diff_settings_read(profile->m, &run, err);
		if (status == OW_OK && diff_settings_table(&run, r) != OW_OK)
			status = error_no_memory(err);
		diff_run_release(&run);
		status = api_read_end(profile, &reading, status, err);
	}
	if (status != OW_OK) {
		table_free(r);
		return status;
	}
	return api_wrap_result(profile, r, out, err);
}
