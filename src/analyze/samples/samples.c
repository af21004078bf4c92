/*
 * samples.c: which samples the views of sampled stacks count, and what these views share: columns, names of frames, and the footer that
 * says which inputs are left out. samples.h describes the interface.
 */
#include "analyze/samples/samples.h"

enum column_unit sample_unit(struct str unit)
{
	if (str_eq(unit, STR("ns")))
		return UNIT_NS;
	return str_eq(unit, STR("bytes")) ? UNIT_BYTES : UNIT_COUNT;
}

void samples_add_cost_columns(struct table *out, enum column_unit unit)
{
	table_add_column(out, "self", "self", TYPE_INT, unit);
	table_add_column(out, "self_percent", "share", TYPE_REAL, UNIT_PERCENT);
	table_add_column(out, "total", "total", TYPE_INT, unit);
	table_add_column(out, "total_percent", "share", TYPE_REAL, UNIT_PERCENT);
}

void samples_set_cost(struct table *out, uint32_t row, uint32_t first, int64_t self, int64_t total,
		      int64_t all)
{
	table_set_int(out, row, first, self);
	table_set_real(out, row, first + 1, samples_percent(self, all));
	table_set_int(out, row, first + 2, total);
	table_set_real(out, row, first + 3, samples_percent(total, all));
}

static uint32_t find_metric(const struct model *m, const char *name)
{
	uint32_t found = 0;

	for (uint32_t i = 1; i < m->metric.count; i++) {
		if (name && str_eq(model_str(m, m->metric.name[i]), str_from(name)))
			return i;
		if (!name && (!found || (m->metric.is_default[i] && !m->metric.is_default[found])))
			found = i;
	}
	return found;
}

static ow_status metric_missing(const struct model *m, const char *name, struct ow_error *err)
{
	char known[512] = "";
	size_t len = 0;

	for (uint32_t i = 1; i < m->metric.count && len < sizeof(known) - 80; i++) {
		struct str other = model_str(m, m->metric.name[i]);

		if (find_metric(m, other.ptr) == i)
			len += (size_t)snprintf(known + len, sizeof(known) - len, "%s%.*s",
						len ? ", " : "", (int)MIN(other.len, 60),
						other.ptr);
	}
	return error_set(err, OW_E_NOT_FOUND, "there is no metric '%s'; metrics are: %s", name,
			 len ? known : "none, because the inputs have no samples");
}

/*
 * Elapsed time is counted for each thread, so that a few helpers that wait nearly all the time would come before the thread that
 * works. Where the time on a processor is known, too, only that is counted of such threads. The elapsed time of a process's first
 * thread is counted if the process leads: it computes and communicates, or, where no operators are recorded, it has a tenth of
 * the time on processors that the busiest first thread has. Workers of a loader never lead. Where all first threads sleep, all
 * elapsed time counts.
 */
#define LEADS 10
#define SLEEPS 100

static bool is_first_thread(const struct model *m, uint32_t track)
{
	return m->track.pid[track] && m->track.pid[track] == m->track.tid[track] &&
	       m->track.kind[track] != TRACK_LOADER;
}

static uint32_t find_metric_of(const struct model *m, const char *name)
{
	uint32_t found = find_metric(m, name);

	return found && str_eq(model_str(m, m->metric.unit[found]), STR("ns")) ? found : 0;
}

/* Per track, how much speaks for it as the thread that leads: its operators, else its time on processors. */
static ow_status weigh_tracks(struct model *m, const int64_t *on_cpu, int64_t *weights,
			      struct ow_error *err)
{
	bool computes = false;

	OW_TRY(model_require_rows(m, TABLE_BIT(event), err));
	for (uint32_t i = 1; m->event.phase && i < m->event.count; i++) {
		uint32_t track = m->event.track[i].v;
		uint8_t phase = m->event.phase[i];

		if ((phase != PHASE_COMPUTE && phase != PHASE_COMMUNICATION) ||
		    !is_first_thread(m, track))
			continue;
		weights[track]++;
		computes = true;
	}
	for (uint32_t i = 1; !computes && i < m->track.count; i++)
		weights[i] = is_first_thread(m, i) ? on_cpu[i] : 0;
	return OW_OK;
}

static void mark_waiting(struct sample_choice *c, const int64_t *wall, const int64_t *on_cpu,
			 const int64_t *weights)
{
	int64_t most = 0;

	for (uint32_t i = 1; i < c->m->track.count; i++)
		if (wall[i] > 0 && on_cpu[i] >= wall[i] / SLEEPS)
			most = MAX(most, weights[i]);
	for (uint32_t i = 1; most && i < c->m->track.count; i++) {
		bool leads = weights[i] && weights[i] >= most / LEADS;

		c->waits[i] = !leads && wall[i] > 0 && on_cpu[i] < wall[i] / 2;
		c->waiting_count += c->waits[i];
	}
}

static ow_status find_waiting(struct sample_choice *c, struct model *m, struct arena *scratch,
			      struct ow_error *err)
{
	uint32_t cpu = find_metric_of(m, "cpu");
	int64_t *wall, *on_cpu, *weights;

	if (!cpu || !str_eq(model_str(m, c->name), STR("wall")) || !m->sample.track)
		return OW_OK;
	wall = ARENA_ARRAY(scratch, int64_t, m->track.count);
	on_cpu = ARENA_ARRAY(scratch, int64_t, m->track.count);
	weights = ARENA_ARRAY(scratch, int64_t, m->track.count);
	c->waits = ARENA_ARRAY(scratch, uint8_t, m->track.count);
	c->cpu = ARENA_ARRAY(scratch, uint8_t, m->metric.count);
	if (!wall || !on_cpu || !weights || !c->waits || !c->cpu)
		return error_no_memory(err);
	for (uint32_t i = 1; i < m->metric.count; i++)
		c->cpu[i] = m->metric.name[i].v == m->metric.name[cpu].v &&
			    m->metric.unit[i].v == m->metric.unit[cpu].v;
	for (uint32_t i = 1; i < m->sample.count; i++) {
		uint32_t metric = m->sample.metric[i].v, track = m->sample.track[i].v;
		int64_t *times = c->cpu[metric] ? on_cpu : c->wanted[metric] ? wall : NULL;

		if (times)
			times[track] = sum_add(times[track], m->sample.weight[i]);
	}
	OW_TRY(weigh_tracks(m, on_cpu, weights, err));
	mark_waiting(c, wall, on_cpu, weights);
	return OW_OK;
}

ow_status samples_choose(struct model *m, const struct view_options *options, struct arena *scratch,
			 struct sample_choice *out, struct ow_error *err)
{
	uint32_t metric = find_metric(m, options->metric);

	*out = (struct sample_choice){ .m = m };
	if (!metric && options->metric)
		return metric_missing(m, options->metric, err);
	OW_TRY(view_filter(m, options, &out->filter, err));
	out->unfiltered = filter_is_all(&out->filter);
	out->name = m->metric.name[metric];
	out->unit = m->metric.unit[metric];
	out->shown_as = sample_unit(model_str(m, out->unit));
	out->wanted = ARENA_ARRAY(scratch, uint8_t, m->metric.count);
	if (!out->wanted)
		return error_no_memory(err);
	for (uint32_t i = 1; i < m->metric.count; i++)
		out->wanted[i] =
			m->metric.name[i].v == out->name.v && m->metric.unit[i].v == out->unit.v;
	return options->metric ? OW_OK : find_waiting(out, m, scratch, err);
}

#define NAMED_INPUTS 3

/* State of each source: 0 without samples, LEFT_OUT with samples of other metrics only, SHOWN
 * otherwise. */
enum { LEFT_OUT = 1, SHOWN };

static uint8_t *find_left_out(const struct sample_choice *c, struct arena *scratch)
{
	const struct model *m = c->m;
	uint8_t *used = ARENA_ARRAY(scratch, uint8_t, m->metric.count);
	uint8_t *sources = ARENA_ARRAY(scratch, uint8_t, m->source.count);

	for (uint32_t i = 1; used && sources && i < m->sample.count; i++)
		used[m->sample.metric[i].v] = 1;
	for (uint32_t i = 1; used && sources && i < m->metric.count; i++) {
		uint8_t *source = &sources[m->metric.source[i].v];

		if (used[i] && *source != SHOWN)
			*source = c->wanted[i] ? SHOWN : LEFT_OUT;
	}
	return used ? sources : NULL;
}

/* Returns the default metric of a source. */
static struct str metric_of(const struct model *m, uint32_t source)
{
	uint32_t found = 0;

	for (uint32_t i = 1; i < m->metric.count; i++)
		if (m->metric.source[i].v == source && (!found || m->metric.is_default[i]))
			found = i;
	return model_str(m, m->metric.name[found]);
}

ow_status samples_left_out(const struct sample_choice *c, const struct view_options *options,
			   struct arena *scratch, char **text, struct ow_error *err)
{
	const struct model *m = c->m;
	const uint8_t *sources;
	struct str first = STR("");
	uint32_t count = 0;
	struct buf said;

	*text = NULL;
	if (c->waiting_count) {
		*text = arena_printf(scratch,
				     "%u thread%s mostly waited: only %s time on a processor is "
				     "counted; --metric wall counts all.",
				     c->waiting_count, c->waiting_count == 1 ? "" : "s",
				     c->waiting_count == 1 ? "its" : "their");
		return *text ? OW_OK : error_no_memory(err);
	}
	if (options->metric || m->source.count <= 2)
		return OW_OK;
	sources = find_left_out(c, scratch);
	if (!sources)
		return error_no_memory(err);
	buf_init(&said, scratch->mem);
	for (uint32_t i = 1; i < m->source.count; i++) {
		struct str metric, path = model_str(m, m->source.path[i]);

		if (sources[i] != LEFT_OUT || count++ >= NAMED_INPUTS)
			continue;
		metric = metric_of(m, i);
		first = count == 1 ? metric : first;
		buf_printf(&said, "%s%.*s of %.*s",
			   count > 1 ? ", " : "Not shown: ", (int)metric.len, metric.ptr,
			   (int)path.len, path.ptr);
	}
	if (count > NAMED_INPUTS)
		buf_printf(&said, " and %u more", count - NAMED_INPUTS);
	if (count)
		buf_printf(&said,
			   "; different metrics are not added up. "
			   "--metric %.*s shows these.",
			   (int)first.len, first.ptr);
	if (count && !said.failed)
		*text = (char *)(uintptr_t)arena_str(scratch, buf_str(&said)).ptr;
	buf_release(&said);
	return count && !*text ? error_no_memory(err) : OW_OK;
}

ow_status samples_add_footer(const struct sample_choice *c, const struct view_options *options,
			     struct table *out, struct ow_error *err)
{
	return samples_left_out(c, options, &out->arena, &out->footer, err);
}

int64_t *samples_by_stack(const struct sample_choice *c, struct arena *scratch)
{
	const struct sample_table *s = &c->m->sample;
	int64_t *self = ARENA_ARRAY(scratch, int64_t, c->m->stack.count);

	for (uint32_t i = 1; self && i < s->count; i++)
		if (sample_counts(c, i))
			self[s->stack[i].v] = sum_add(self[s->stack[i].v], s->weight[i]);
	return self;
}

struct str sample_frame_name(const struct model *m, frame_id frame, struct arena *arena)
{
	const struct frame_table *f = &m->frame;
	struct str name = model_str(m, f->function[frame.v]), file;
	char text[512];
	size_t slash;

	if (name.len)
		return name;
	file = model_str(m, f->file[frame.v]);
	if (file.len) {
		snprintf(text, sizeof(text), "%.*s:%d", (int)MIN(file.len, 480), file.ptr,
			 (int)f->line[frame.v]);
		return arena_str(arena, str_from(text));
	}
	file = model_str(m, COLUMN_GET(f->module, frame.v));
	slash = str_rfind_char(file, '/');
	file = slash == STR_NONE ? file : str_skip(file, slash + 1);
	if (!file.len)
		return STR("[unknown]");
	if (file.ptr[0] == '[')
		return file;
	snprintf(text, sizeof(text), "[%.*s]", (int)MIN(file.len, 480), file.ptr);
	return arena_str(arena, str_from(text));
}

/* State of a walk over the used stacks: the tree, and how often each group is open around the current
 * stack. */
struct stack_walk {
	uint32_t *first, *next; /* first child, and next child of the same caller; 0: none */
	int64_t *sum;		/* weight of the stack and of all stacks below it */
	uint32_t *open;
};

static void join_children(const struct stack_table *s, const bool *used, struct stack_walk *w)
{
	for (uint32_t i = s->count; i-- > 1;) {
		uint32_t caller = s->parent[i].v;

		if (!used[i])
			continue;
		w->next[i] = w->first[caller];
		w->first[caller] = i;
	}
}

/* Adds up totals. The total of a group is the cost of its outermost calls. */
static void walk_stacks(const struct stack_table *s, const uint32_t *groups, struct stack_walk *w,
			int64_t *totals)
{
	uint32_t at = 0;

	for (;;) {
		uint32_t child = w->first[at], caller = s->parent[at].v, group;

		if (child) {
			w->first[at] = w->next[child];
			at = child;
			w->open[groups[s->frame[at].v]]++;
			continue;
		}
		if (!at)
			return;
		group = groups[s->frame[at].v];
		if (--w->open[group] == 0)
			totals[group] = sum_add(totals[group], w->sum[at]);
		w->sum[caller] = sum_add(w->sum[caller], w->sum[at]);
		at = caller;
	}
}

int64_t *samples_totals(const struct model *m, const int64_t *self, const bool *used,
			const uint32_t *groups, size_t count, struct arena *scratch)
{
	uint32_t stacks = m->stack.count;
	struct stack_walk w = { ARENA_ARRAY(scratch, uint32_t, stacks),
				ARENA_ARRAY(scratch, uint32_t, stacks),
				ARENA_ARRAY(scratch, int64_t, stacks),
				ARENA_ARRAY(scratch, uint32_t, count) };
	int64_t *totals = ARENA_ARRAY(scratch, int64_t, count);

	if (!w.first || !w.next || !w.sum || !w.open || !totals)
		return NULL;
	memcpy(w.sum, self, stacks * sizeof(*self));
	join_children(&m->stack, used, &w);
	walk_stacks(&m->stack, groups, &w, totals);
	return totals;
}
