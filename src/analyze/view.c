/*
 * view.c: the table of views, their options: tfprof's defaults, and what part of a model is asked for. What the views do is in view_<name>.c.
 */
#include "analyze/view.h"

const struct view *const views[] = {
#define VIEW(name) &view_##name,
#include "analyze/views.def"
#undef VIEW
};
const size_t view_count = ARRAY_COUNT(views);

const struct view *view_find(const char *name)
{
	for (size_t i = 0; i < view_count; i++)
		if (!strcmp(views[i]->name, name))
			return views[i];
	return NULL;
}

void view_options_init(struct view_options *options)
{
	static const char *const everything[] = { ".*" }, *const micros[] = { "micros" };
	static const struct view_list all = { everything, 1 };

	*options = (struct view_options){
		.size = sizeof(*options),
		.max_depth = 10,
		.step = -1,
		.order_by = "name",
		.account_type_regexes = all,
		.start_name_regexes = all,
		.show_name_regexes = all,
		.select = { micros, 1 },
		.time_from_ns = INT64_MIN,
		.time_to_ns = INT64_MAX,
		.rank = -1,
	};
}

#define RANKS_NAMED 20

static ow_status rank_missing(const struct model *m, int32_t rank, struct error *err)
{
	char known[RANKS_NAMED * 12 + 8] = "";
	size_t len = 0, named = 0;

	for (uint32_t i = 1; i < m->source.count && named < RANKS_NAMED; i++) {
		if (m->source.rank[i] < 0)
			continue;
		len += (size_t)snprintf(known + len, sizeof(known) - len, "%s%" PRId32,
					named ? ", " : "", m->source.rank[i]);
		named++;
	}
	if (!named)
		return error_set(err, OW_E_NOT_FOUND, "no input says which rank it is of");
	return error_set(err, OW_E_NOT_FOUND, "there is no rank %" PRId32 "; ranks are %s%s", rank,
			 known, named == RANKS_NAMED ? ", …" : "");
}

static bool has_rank(const struct model *m, int32_t rank)
{
	for (uint32_t i = 1; i < m->source.count; i++)
		if (m->source.rank[i] == rank)
			return true;
	return false;
}

static ow_status read_time(const struct model *m, const struct view_options *o,
			   struct event_filter *filter, struct error *err)
{
	int64_t start;

	if (o->time_from_ns == INT64_MIN && o->time_to_ns == INT64_MAX)
		return OW_OK;
	if (o->time_from_ns >= o->time_to_ns)
		return error_set(err, OW_E_USAGE, "the range of time ends before it begins");
	start = model_trace_start(m);
	if (start == TIME_UNKNOWN)
		return error_set(err, OW_E_UNSUPPORTED,
				 "a range of time cannot be chosen: these inputs have no events");
	if (o->time_from_ns != INT64_MIN &&
	    __builtin_add_overflow(start, o->time_from_ns, &filter->from_ns))
		filter->from_ns = o->time_from_ns < 0 ? INT64_MIN : INT64_MAX;
	if (o->time_to_ns != INT64_MAX &&
	    __builtin_add_overflow(start, o->time_to_ns, &filter->to_ns))
		filter->to_ns = o->time_to_ns < 0 ? INT64_MIN : INT64_MAX;
	return OW_OK;
}

ow_status view_filter(const struct model *m, const struct view_options *o,
		      struct event_filter *filter, struct error *err)
{
	*filter = EVENT_FILTER_ALL;
	if (o->step >= 0) {
		filter->step = model_find_step(m, o->step).v;
		if (!filter->step)
			return error_set(err, OW_E_NOT_FOUND, "there is no step %" PRId64, o->step);
	}
	if (o->rank >= 0 && !has_rank(m, o->rank))
		return rank_missing(m, o->rank, err);
	filter->rank = MAX(o->rank, -1);
	return read_time(m, o, filter, err);
}

ow_status view_sums(struct model *m, const struct view_options *o, struct arena *arena,
		    const struct event_sums **sums, struct error *err)
{
	struct event_filter filter;
	struct event_sums *made;

	*sums = NULL;
	OW_TRY(view_filter(m, o, &filter, err));
	if (filter.rank < 0 && !filter_has_time(&filter))
		return OW_OK;
	made = ARENA_NEW(arena, struct event_sums);
	if (!made)
		return error_no_memory(err);
	*sums = made;
	return event_sums_make(m, &filter, arena, made, err);
}
