/*
 * replay.c: the bodies of ow_path and ow_what_if: the critical path of a step, and what a step would take with changes. The work is in
 * src/replay; here are options, results and refusals.
 */
#include "api/api_int.h"

#include "replay/session.h"

static bool is_grouping(const char *by)
{
	static const char *const words[] = { "op", "line", "kind", "rank" };

	for (size_t i = 0; i < ARRAY_COUNT(words); i++)
		if (strcmp(by, words[i]) == 0)
			return true;
	return false;
}

/* What path and what-if use of the options of views; the others are refused. */
static const struct view replay_uses = {
	.name = "path",
	.uses = VIEW_USES_STEP | VIEW_USES_TIME | VIEW_USES_RANK | VIEW_USES_FULL_NAMES,
};

/* Chooses the step among those of the replay, so that the steps before it exist. */
static ow_status make_filter(ow_profile *p, const struct ow_view_options *options,
			     struct event_filter *filter, int64_t *step, struct ow_error *err)
{
	struct ow_view_options full;

	ow_view_options_init(&full);
	SIZED_IN(&full, options);
	OW_TRY(view_options_check(&replay_uses, p->m, &full, err));
	*step = full.step < 0 ? TIME_UNKNOWN : full.step;
	full.step = -1;
	return view_filter(p->m, &full, filter, err);
}

static ow_status finish(ow_profile *p, struct table *r, ow_status status, ow_result **out,
			struct ow_error *err)
{
	if (status == OW_OK && r->status != OW_OK)
		status = error_no_memory(err);
	if (status != OW_OK) {
		table_free(r);
		return status;
	}
	return api_wrap_result(p, r, out, err);
}

ow_status ow_path(ow_profile *p, const struct ow_view_options *options, const char *by,
		  ow_result **out, struct ow_error *err)
{
	struct event_filter filter;
	struct reading reading;
	struct table *r;
	ow_status status;
	int64_t step;

	error_clear(err);
	*out = NULL;
	OW_TRY(api_check_frozen(p, err));
	if (by && strcmp(by, "phase") == 0) /* "phase" is accepted as another word for "kind" */
		by = "kind";
	if (by && !is_grouping(by))
		return error_set(err, OW_E_USAGE,
				 "a path can be summed by op, line, kind or rank, not by '%s'", by);
	OW_TRY(make_filter(p, options, &filter, &step, err));
	r = table_new(&p->mem, "path", err);
	if (!r)
		return OW_E_NO_MEMORY;
	status = api_read_begin(p, TABLES_ALL, &reading, err);
	if (status == OW_OK) {
		status = path_table(p->m, &filter, step, by, r, err);
		status = api_read_end(p, &reading, status, err);
	}
	return finish(p, r, status, out, err);
}

ow_status ow_what_if(ow_profile *p, const struct ow_list *changes,
		     const struct ow_view_options *options, ow_result **out, struct ow_error *err)
{
	struct event_filter filter;
	struct reading reading;
	struct table *r;
	ow_status status;
	int64_t step;

	error_clear(err);
	*out = NULL;
	OW_TRY(api_check_frozen(p, err));
	if (!changes || !changes->count)
		return error_set(err, OW_E_USAGE, "no change given; an example is input=0");
	OW_TRY(make_filter(p, options, &filter, &step, err));
	if (step != TIME_UNKNOWN)
		return error_set(err, OW_E_USAGE,
				 "a prediction is for the median step: it does not use step; "
				 "time_range chooses a part of the recording");
	r = table_new(&p->mem, "what-if", err);
	if (!r)
		return OW_E_NO_MEMORY;
	status = api_read_begin(p, TABLES_ALL, &reading, err);
	if (status == OW_OK) {
		status = what_if_table(p->m, &filter, changes->items, changes->count, r, err);
		status = api_read_end(p, &reading, status, err);
	}
	return finish(p, r, status, out, err);
}

const char *ow_result_extra(const ow_result *result, const char *name)
{
	return table_extra(result->r, name);
}

const char *ow_result_extra_name(const ow_result *result, size_t index)
{
	return index < result->r->extra_count ? result->r->extras[index].name : NULL;
}
