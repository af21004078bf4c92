/*
 * view.c: the table of views, the defaults of their options (tfprof's, and those of the public interface), and the part of
 * a model that the options select. The views themselves are in view_<name>.c.
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

#define OP_ROWS 30
/* default depth of the code view, because the first ten levels often belong to a framework */
#define CODE_LEVELS 100

/* Returns the first selected column that is a cost. */
static const char *cost_of(const struct view_list *select)
{
	static const char *const costs[] = {
		"micros",	  "accelerator_micros", "cpu_micros", "bytes",	   "peak_bytes",
		"residual_bytes", "output_bytes",	"params",     "float_ops", "occurrence",
	};

	for (size_t i = 0; i < ARRAY_COUNT(costs); i++)
		for (size_t k = 0; k < select->count; k++)
			if (strcmp(costs[i], select->items[k]) == 0)
				return costs[i];
	return "micros";
}

void view_choose_defaults(const struct view *view, struct view_options *options)
{
	if (!options->order_by)
		options->order_by = cost_of(&options->select);
	if (options->max_depth != OW_DEFAULT_DEPTH)
		return;
	options->max_depth = 10;
	if (view == &view_op)
		options->max_depth = options->limit ? INT32_MAX : OP_ROWS - 1;
	else if (view == &view_code)
		options->max_depth = CODE_LEVELS;
}

#define NO_LINES                                                                                   \
	"no source lines in these files; op logs, profiles of ProfileContext and PyTorch traces "  \
	"recorded with with_stack=True have them"
#define NO_STEPS                                                                                   \
	"no steps found: the files have no times, or nothing in them marks a step; --step-marker " \
	"REGEX says which slices do"
#define NO_SAMPLES                                                                                 \
	"no sampled stacks in these files; perf, py-spy, pprof and 'opwatch record --stacks' "     \
	"write them"
#define NO_MEMORY                                                                                  \
	"no allocations were recorded; memory snapshots of PyTorch, traces with "                  \
	"profile_memory=True and run metadata of TensorFlow have them"

static const struct {
	const struct view *view;
	const char *reason;
} empty_reasons[] = {
	{ &view_steps, NO_STEPS },
	{ &view_phases, NO_STEPS },
	{ &view_lines, NO_LINES },
	{ &view_code, NO_LINES },
	{ &view_functions, NO_SAMPLES },
	{ &view_metrics, NO_SAMPLES },
	{ &view_heaps, NO_MEMORY },
	{ &view_memory_peak, NO_MEMORY },
	{ &view_memory_at, NO_MEMORY },
	{ &view_memory_steps, NO_MEMORY },
	{ &view_memory_time, NO_MEMORY },
	{ &view_devices, "the files name no device" },
	{ &view_notes, "nothing was lost, damaged or doubtful in the inputs" },
	{ &view_pipeline, "no stage of an input pipeline (tf.data, DataLoader) was recorded" },
	{ &view_roofline,
	  "no op has both its work (float operations or bytes) and a time on a device" },
};

const char *view_empty_reason(const struct view *view, const struct model *m,
			      const struct view_options *options)
{
	bool part = options->step >= 0 || options->rank >= 0 ||
		    options->time_from_ns != INT64_MIN || options->time_to_ns != INT64_MAX;

	if (view == &view_memory_at && (m->heap.count > 1 || m->alloc.count > 1))
		return "no memory was in use at the chosen time (the end of --time-range "
		       "START:END, or of the recording)";
	if (part && view != &view_notes)
		return "the chosen step, rank or time range has no such "
		       "data";
	if (view == &view_memory_steps && m->heap.count > 1)
		return "memory was recorded, but no steps";
	for (size_t i = 0; i < ARRAY_COUNT(empty_reasons); i++)
		if (empty_reasons[i].view == view)
			return empty_reasons[i].reason;
	if (m->op.count <= 1 && m->sample.count > 1)
		return "the files have sampled stacks and no operations; 'opwatch functions' shows "
		       "them";
	return m->event.count > 1
		       ? "no operation in the files has a duration, or the options hide all of them"
		       : "the files have no times: they describe a program, not a run";
}

/* Returns whether an op has a type that begins with the text. */
static bool has_type(const struct model *m, struct str beginning)
{
	for (uint32_t i = 1; i < m->op.count; i++)
		if (str_starts(model_str(m, m->op.type[i]), beginning))
			return true;
	return false;
}

const char *view_type_hint(const struct model *m, const struct view_options *options)
{
	bool asked = false;

	for (size_t i = 0; i < options->account_type_regexes.count; i++)
		asked |= str_has(str_from(options->account_type_regexes.items[i]), STR("Variable"));
	if (!asked || has_type(m, STR("Variable")) || !has_type(m, STR("VarHandleOp")))
		return NULL;
	return "this graph has no op of a type Variable…: its variables are of the type "
	       "VarHandleOp";
}

#define RANKS_NAMED 20

static ow_status rank_missing(const struct model *m, int32_t rank, struct ow_error *err)
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
		return error_set(err, OW_E_NOT_FOUND,
				 "none of the inputs says its rank, so --rank cannot be used");
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

static ow_status read_time(const struct view_options *o, int64_t start, struct event_filter *filter,
			   struct ow_error *err)
{
	if (o->time_from_ns == INT64_MIN && o->time_to_ns == INT64_MAX)
		return OW_OK;
	if (o->time_from_ns >= o->time_to_ns)
		return error_set(err, OW_E_USAGE, "the range of time ends before it starts");
	if (start == TIME_UNKNOWN)
		return error_set(err, OW_E_UNSUPPORTED,
				 "the inputs have no events, so a range of time cannot be chosen");
	if (o->time_from_ns != INT64_MIN &&
	    __builtin_add_overflow(start, o->time_from_ns, &filter->from_ns))
		filter->from_ns = o->time_from_ns < 0 ? INT64_MIN : INT64_MAX;
	if (o->time_to_ns != INT64_MAX &&
	    __builtin_add_overflow(start, o->time_to_ns, &filter->to_ns))
		filter->to_ns = o->time_to_ns < 0 ? INT64_MIN : INT64_MAX;
	return OW_OK;
}

ow_status view_filter_from(const struct model *m, const struct view_options *o, int64_t start,
			   struct event_filter *filter, struct ow_error *err)
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
	return read_time(o, start, filter, err);
}

ow_status view_filter(const struct model *m, const struct view_options *o,
		      struct event_filter *filter, struct ow_error *err)
{
	/* Only a range of time needs the events, whose rows may not be checked yet. */
	bool ranged = o->time_from_ns != INT64_MIN || o->time_to_ns != INT64_MAX;

	return view_filter_from(m, o, ranged ? model_trace_start(m) : TIME_UNKNOWN, filter, err);
}

ow_status view_sums(struct model *m, const struct view_options *o, struct arena *arena,
		    const struct event_sums **sums, struct ow_error *err)
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

bool gradient_of(struct str name, struct str *forward)
{
	size_t begin = str_find(name, STR("gradients/"));
	size_t end = begin == STR_NONE ? STR_NONE : str_find(name, STR("_grad/"));

	if (end == STR_NONE)
		return false;
	begin += strlen("gradients/");
	if (end == begin)
		return false;
	*forward = str_skip(name, begin);
	if (end > begin)
		*forward = str_first(*forward, end - begin);
	return true;
}

static const struct {
	const char *view, *column, *doc;
} column_docs[] = {
#define VIEW_COLUMN(view, column, doc) { view, column, doc },
#include "analyze/columns.def"
#undef VIEW_COLUMN
};

void view_describe(const struct view *view, struct table *t)
{
	const char *name = view->tree ? "tree" : view->name;

	for (uint32_t c = 0; c < t->column_count; c++)
		for (size_t i = 0; i < ARRAY_COUNT(column_docs); i++)
			if (!strcmp(column_docs[i].view, name) &&
			    !strcmp(column_docs[i].column, t->columns[c].name))
				t->columns[c].doc = column_docs[i].doc;
}
