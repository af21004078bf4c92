/*
 * diff.c: the body of ow_diff: two groups of profiles compared. Each profile is a run. The work is in src/diff; here every profile is read
 * under its own guard, and nothing is compared with itself.
 */
#include "api/api_int.h"

#include "diff/diff.h"
#include "model/backing.h"

#define METRIC_BYTES 256
#define COPY_LEAST 100 /* events: fewer may be equal by chance */

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
				return error_set(
					err, OW_E_USAGE,
					"%.*s is given twice%s: nothing is compared with itself",
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
		status =
			error_set(err, OW_E_EMPTY, "%.*s: nothing was timed that could be compared",
				  (int)MIN(path_of(p).len, 200u), path_of(p).ptr);
	return status;
}

/* Two names of one recording: the same ops, and every event begins and ends at the same nanosecond. */
static bool is_copy(const struct model *a, const struct model *b)
{
	size_t count = a->event.count;

	for (uint32_t i = 1; a->op.count == b->op.count && i < a->op.count; i++)
		if (!str_eq(model_str(a, a->op.name[i]), model_str(b, b->op.name[i])))
			return false;
	return count > COPY_LEAST && count == b->event.count && a->op.count == b->op.count &&
	       memcmp(a->event.op, b->event.op, count * sizeof(*a->event.op)) == 0 &&
	       memcmp(a->event.ts_ns, b->event.ts_ns, count * sizeof(*a->event.ts_ns)) == 0 &&
	       memcmp(a->event.dur_ns, b->event.dur_ns, count * sizeof(*a->event.dur_ns)) == 0;
}

static ow_status check_copies(ow_profile *const *all, size_t count, struct ow_error *err)
{
	for (size_t i = 0; i < count; i++)
		for (size_t k = i + 1; k < count; k++)
			if (is_copy(all[i]->m, all[k]->m))
				return error_set(
					err, OW_E_USAGE,
					"%.*s is a copy of %.*s: nothing is compared with itself",
					(int)MIN(path_of(all[k]).len, 200u), path_of(all[k]).ptr,
					(int)MIN(path_of(all[i]).len, 200u), path_of(all[i]).ptr);
	return OW_OK;
}

static ow_status compare(ow_profile *const *all, size_t base, size_t count,
			 const struct diff_options *options, const char *wanted, struct table *out,
			 struct ow_error *err)
{
	struct mem *mem = &all[0]->mem;
	struct diff_run *runs = mem_zalloc(mem, count * sizeof(*runs));
	enum diff_gate gate;
	char metric[METRIC_BYTES] = "";
	ow_status status = OW_OK;

	if (!runs)
		return error_no_memory(err);
	for (size_t i = 0; status == OW_OK && i < count; i++) {
		const struct diff_read_options read = { i && *metric ? metric : wanted,
							options->frames };

		status = read_run(all[i], &read, &runs[i], err);
		/* All others by the metric of the first. */
		snprintf(metric, sizeof(metric), "%.*s",
			 (int)MIN(runs[0].metric.len, METRIC_BYTES - 1u), runs[0].metric.ptr);
	}
	if (status == OW_OK)
		status = check_copies(all, count, err);
	if (status == OW_OK)
		status = diff_table(runs, base, count - base, options, out, &gate, err);
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
		status = r ? compare(all, base_count, count, &limits, full.metric, r, err)
			   : OW_E_NO_MEMORY;
	mem_free(&base[0]->mem, all, count * sizeof(*all));
	if (status != OW_OK) {
		table_free(r);
		return status;
	}
	return api_wrap_result(base[0], r, out, err);
}
