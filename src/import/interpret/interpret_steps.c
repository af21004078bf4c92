/*
 * interpret_steps.c: finds the step of each event. Markers on the host divide time into steps; a host event belongs to
 * the marker in which it starts, work of a device to the step that launched it. Without a marker the file is one step.
 * In an XSpace, work that one host thread passes to another belongs to the step of the first thread, however late it
 * runs. It also reads the step and the rank from the name of a file. Called by interpret.c.
 */
#include "import/interpret/interpret_int.h"
#include "base/prefault.h"
#include "base/regex/regex.h"
#include "base/vec.h"

#define EFFORT 64 /* limit of visits per event on average; nested consumers need far fewer */

struct handed {
	int64_t at, from; /* start times of the consumer and the producer */
	uint32_t src, dst;
};

/* Orders by time, because a producer may itself be inside of a consumer. */
static int by_time(const void *a, const void *b)
{
	const struct handed *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	if (x->dst != y->dst)
		return x->dst < y->dst ? -1 : 1;
	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return (x->src > y->src) - (x->src < y->src);
}

/* Returns whether an event is a marker, which belongs to the step that it marks. */
static bool is_marker(const struct interpret *x, uint32_t event)
{
	const struct interpret_markers *m = &x->markers;
	int64_t start = x->m->event.ts_ns[event];
	size_t low = 0, high = m->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (m->list[middle].start < start)
			low = middle + 1;
		else
			high = middle;
	}
	for (; low < m->count && m->list[low].start == start; low++)
		if (m->list[low].end == interpret_end(x, event))
			return true;
	return false;
}

static bool is_handed(const struct interpret *x, uint32_t link)
{
	const struct model *m = x->m;
	uint32_t src = m->link.src[link].v, dst = m->link.dst[link].v;

	if (m->link.kind[link] != LINK_FLOW || src < x->first_event || dst < x->first_event)
		return false;
	return m->event.track[src].v != m->event.track[dst].v &&
	       interpret_on_host(x, m->event.track[src].v) &&
	       interpret_on_host(x, m->event.track[dst].v);
}

static size_t collect(const struct interpret *x, struct handed *list)
{
	const struct model *m = x->m;
	size_t count = 0;

	for (uint32_t i = x->first_link; i < m->link.count; i++) {
		uint32_t src = m->link.src[i].v, dst = m->link.dst[i].v;

		if (!is_handed(x, i))
			continue;
		if (list)
			list[count] = (struct handed){ m->event.ts_ns[dst], m->event.ts_ns[src],
						       src, dst };
		count++;
	}
	return count;
}

/* Gives the consumer and its nested events the step; events that it produces come later in the
 * list. */
static void take_over(struct interpret *x, uint32_t dst, step_id step, uint64_t *effort)
{
	const struct interpret_track *track = interpret_track(x, x->m->event.track[dst].v);
	int64_t end = interpret_end(x, dst);

	for (uint32_t e = dst; e < track->last && *effort; e++, --*effort) {
		if (e != dst && x->m->event.ts_ns[e] >= end)
			break;
		if (!is_marker(x, e))
			x->m->event.step[e] = step;
	}
}

/* Assigns steps in an XSpace: work of a host thread for another belongs to the other's step. */
static ow_status steps_by_producer_assign(struct interpret *x)
{
	uint64_t effort = (uint64_t)EFFORT * (x->last_event - x->first_event);
	size_t count = x->in->xspace ? collect(x, NULL) : 0;
	struct handed *list;
	uint32_t done = 0;

	if (!count)
		return OW_OK;
	list = mem_alloc(x->mem, count * sizeof(*list));
	if (!list)
		return interpret_no_memory(x);
	(void)collect(x, list);
	qsort(list, count, sizeof(*list), by_time);
	for (size_t i = 0; i < count && effort; i++) {
		step_id step = x->m->event.step[list[i].src];

		/* of several producers the first one in a step counts */
		if (!step.v || list[i].dst == done)
			continue;
		done = list[i].dst;
		if (step.v != x->m->event.step[done].v)
			take_over(x, done, step, &effort);
	}
	mem_free(x->mem, list, count * sizeof(*list));
	return OW_OK;
}

ow_status interpret_add_marker(struct interpret *x, const struct interpret_marker *marker)
{
	if (!vec_push(x->mem, x->markers.list, x->markers.count, x->markers.cap, *marker))
		return interpret_no_memory(x);
	return OW_OK;
}

/* A test of names that runs once per name. */
struct name_test {
	struct interpret *x;
	interpret_name_fn test;
	void *arg;
	uint8_t *answers; /* 0 = not tested, 1 = no, 2 = yes */
};

static bool test_name(struct name_test *t, str_id name)
{
	struct str text = model_str(t->x->m, name);

	if (name.v >= t->x->string_count)
		return t->test(t->arg, text);
	if (!t->answers[name.v])
		t->answers[name.v] = t->test(t->arg, text) ? 2 : 1;
	return t->answers[name.v] == 2;
}

static ow_status add_slice(struct interpret *x, uint32_t event)
{
	int64_t number = trailing_number(model_str(x->m, interpret_name(x, event)));

	if (x->m->event.op[event].v)
		x->m->op.flags[x->m->event.op[event].v] |= OP_WRAPS;
	return interpret_add_marker(
		x, &(struct interpret_marker){ .start = x->m->event.ts_ns[event],
					       .end = interpret_end(x, event),
					       .number = number >= 0 ? number : INT64_MIN,
					       .name = interpret_name(x, event) });
}

ow_status interpret_mark_slices(struct interpret *x, interpret_name_fn test, void *arg)
{
	struct name_test names = { x, test, arg,
				   ARENA_ARRAY(&x->scratch, uint8_t, x->string_count) };

	if (!names.answers)
		return interpret_no_memory(x);
	for (uint32_t t = x->first_track; t < x->last_track; t++) {
		const struct interpret_track *track = interpret_track(x, t);

		if (!interpret_on_host(x, t))
			continue;
		for (uint32_t e = track->first; e < track->last; e++)
			if (test_name(&names, interpret_name(x, e)) && interpret_is_slice(x, e))
				OW_TRY(add_slice(x, e));
	}
	return OW_OK;
}

static int by_start(const void *a, const void *b)
{
	const struct interpret_marker *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->end > y->end) - (x->end < y->end);
}

static void sort_markers(struct interpret *x)
{
	if (x->markers.count)
		qsort(x->markers.list, x->markers.count, sizeof(*x->markers.list), by_start);
}

/* Finds the first start and the last end of the activity of host and device. */
static void find_span(const struct interpret *x, int64_t *first, int64_t *last)
{
	*first = INT64_MAX;
	*last = INT64_MIN;
	for (uint32_t t = x->first_track; t < x->last_track; t++) {
		const struct interpret_track *track = interpret_track(x, t);

		if (!interpret_on_host(x, t) && !interpret_on_device(x, t))
			continue;
		for (uint32_t e = track->first; e < track->last; e++) {
			if (!interpret_is_slice(x, e))
				continue;
			*first = MIN(*first, x->m->event.ts_ns[e]);
			*last = MAX(*last, interpret_end(x, e));
		}
	}
}

static bool is_optimizer_step(void *arg, struct str name)
{
	(void)arg;
	return str_starts(name, STR("Optimizer.step#"));
}

ow_status interpret_mark_optimizer_steps(struct interpret *x)
{
	struct interpret_markers *m = &x->markers;
	size_t kept = 0;
	int64_t start, last;

	OW_TRY(interpret_mark_slices(x, is_optimizer_step, NULL));
	sort_markers(x);
	/* several optimizers of one step overlap or follow at once: those inside another are
	 * dropped */
	for (size_t i = 0; i < m->count; i++)
		if (!kept || m->list[i].start >= m->list[kept - 1].end)
			m->list[kept++] = m->list[i];
	m->count = kept >= 2 ? kept : 0;
	find_span(x, &start, &last);
	for (size_t i = 0; i < m->count; i++) {
		m->list[i].number = INT64_MIN;
		m->list[i].start = start;
		start = m->list[i].end;
	}
	return OW_OK;
}

#define PROBES 16

/* Steps that the slices of a file give in their arguments. */
struct said {
	int64_t *own; /* index = event - first_event; INT64_MIN = none; NULL while probing */
	size_t with, without;
};

static void take_step(struct interpret *x, uint32_t event, struct str args, void *arg)
{
	struct said *said = arg;
	int64_t number;

	if (!interpret_number(json_find(args, "step"), &number) || number < 0) {
		said->without++;
		return;
	}
	said->with++;
	if (said->own)
		said->own[event - x->first_event] = number;
}

static ow_status read_said(struct interpret *x, size_t most, struct said *said)
{
	struct interpret_rows rows = { 0 };
	ow_status status = OW_OK;

	for (uint32_t e = x->first_event; e < x->last_event && rows.count < most; e++)
		if (interpret_is_slice(x, e) && COLUMN_GET(x->m->event.args_size, e) &&
		    !vec_push(x->mem, rows.list, rows.count, rows.cap, e))
			status = interpret_no_memory(x);
	if (status == OW_OK)
		status = interpret_read_args(x, &rows, take_step, said);
	interpret_rows_release(x, &rows);
	return status;
}

static int by_number(const void *a, const void *b)
{
	const struct interpret_marker *x = a, *y = b;

	return (x->number > y->number) - (x->number < y->number);
}

/* Makes one marker per number: from the begin of its first slice to the end of its last. */
static ow_status mark_said(struct interpret *x, const struct said *said)
{
	struct interpret_markers *m = &x->markers;
	size_t kept = 0;

	for (uint32_t e = x->first_event; e < x->last_event; e++) {
		int64_t number = said->own[e - x->first_event];
		struct interpret_marker one = {
			x->m->event.ts_ns[e], interpret_end(x, e), number, { 0 }
		};
		struct interpret_marker *last = m->count ? &m->list[m->count - 1] : NULL;

		if (number == INT64_MIN)
			continue;
		/* neighbouring events mostly belong to one step */
		if (last && last->number == number) {
			last->start = MIN(last->start, one.start);
			last->end = MAX(last->end, one.end);
		} else {
			OW_TRY(interpret_add_marker(x, &one));
		}
	}
	qsort(m->list, m->count, sizeof(*m->list), by_number);
	for (size_t i = 0; i < m->count; i++) {
		if (kept && m->list[kept - 1].number == m->list[i].number) {
			m->list[kept - 1].start = MIN(m->list[kept - 1].start, m->list[i].start);
			m->list[kept - 1].end = MAX(m->list[kept - 1].end, m->list[i].end);
		} else {
			m->list[kept++] = m->list[i];
		}
	}
	m->count = kept;
	return OW_OK;
}

ow_status interpret_mark_by_args(struct interpret *x)
{
	struct said said = { 0 };
	size_t events = x->last_event - x->first_event;

	OW_TRY(read_said(x, PROBES, &said));
	if (!said.with || said.without)
		return OW_OK;
	said.own = ARENA_ARRAY(&x->scratch, int64_t, events);
	if (!said.own)
		return interpret_no_memory(x);
	for (size_t i = 0; i < events; i++)
		said.own[i] = INT64_MIN;
	OW_TRY(read_said(x, SIZE_MAX, &said));
	OW_TRY(mark_said(x, &said));
	x->own_steps = said.own;
	return OW_OK;
}

static bool match_marker(void *arg, struct str name)
{
	return regex_match(arg, name);
}

static void complain(void *arg, struct str pattern, const char *why)
{
	struct interpret *x = arg;

	builder_note(x->b, NOTE_INFO, OW_NO_OFFSET,
		     "step marker %.*s is not a valid regular expression: %s", STR_ARG(pattern),
		     why);
}

static ow_status mark_by_regex(struct interpret *x, const char *pattern)
{
	struct regex_list list;
	ow_status status = regex_list_init(&list, x->mem, &pattern, 1, complain, x, x->err);

	if (status == OW_OK)
		status = interpret_mark_slices(x, match_marker, &list);
	if (status == OW_OK)
		status = regex_list_status(&list, x->err);
	regex_list_release(&list);
	if (status == OW_OK && !x->markers.count)
		builder_note(x->b, NOTE_MISSING, OW_NO_OFFSET,
			     "no slice matches the step marker %s", pattern);
	return status == OW_OK ? OW_OK : builder_fail(x->b, status);
}

static int64_t next_number(const struct model *m)
{
	int64_t next = 0;

	for (uint32_t i = 1; i < m->step.count; i++)
		if (m->step.number[i] >= next && m->step.number[i] < INT64_MAX)
			next = m->step.number[i] + 1;
	return next;
}

/* Whether the names give each marker a distinct number. Numbers that do not ascend are accepted, too: the clock was
 * set back while the steps ran. */
static bool are_numbered(struct interpret_markers *m)
{
	bool rises = true, distinct = true;

	for (size_t i = 0; i < m->count; i++) {
		if (m->list[i].number == INT64_MIN)
			return false;
		rises &= !i || m->list[i].number > m->list[i - 1].number;
	}
	if (rises)
		return true;
	qsort(m->list, m->count, sizeof(*m->list), by_number);
	for (size_t i = 1; i < m->count; i++)
		distinct &= m->list[i].number != m->list[i - 1].number;
	qsort(m->list, m->count, sizeof(*m->list), by_start);
	return distinct;
}

/* Numbers the markers: by their names if no two numbers are the same, else in order. Ranks of one job, which are
 * compared by number, all count from 0; so do files whose names only sound like ranks (import/jobs.c decides later). */
static void number_markers(struct interpret *x)
{
	struct interpret_markers *m = &x->markers;
	int64_t next;

	if (are_numbered(m))
		return;
	next = x->m->source.rank[x->source.v] >= 0 ||
			       interpret_file_rank(
				       model_str(x->m, x->m->source.path[x->source.v])) >= 0
		       ? 0
		       : next_number(x->m);
	if (x->in->options->step != INT64_MIN)
		next = x->in->options->step;
	for (size_t i = 0; i < m->count; i++)
		m->list[i].number = next + (int64_t)i;
}

/* The steps of the markers, sorted by start. */
struct steps {
	const struct interpret_marker *markers;
	const step_id *ids;
	size_t count;
};

static void assign_track(struct interpret *x, const struct interpret_track *track,
			 const struct steps *s)
{
	const int64_t *ts = x->m->event.ts_ns;
	step_id *step = x->m->event.step;
	size_t at = 0; /* number of markers that have begun */

	for (uint32_t e = track->first; e < track->last;) {
		int64_t next, end;
		step_id id = { 0 };

		while (at < s->count && s->markers[at].start <= ts[e])
			at++;
		/* until the next step begins; events are in order of time */
		next = at < s->count ? s->markers[at].start : INT64_MAX;
		end = at ? s->markers[at - 1].end : INT64_MIN;
		id = at ? s->ids[at - 1] : id;
		do
			step[e].v = ts[e] < end ? id.v : 0;
		while (++e < track->last && ts[e] < next);
	}
}

static void assign_launched(struct interpret *x)
{
	const struct link_table *l = &x->m->link;

	for (uint32_t i = x->first_link; i < l->count; i++) {
		step_id step = x->m->event.step[l->src[i].v];

		if (l->kind[i] == LINK_LAUNCH && step.v)
			x->m->event.step[l->dst[i].v] = step;
	}
}

/* Returns the begin of the first device work whose launch is in the file; INT64_MAX if launches are
 * missing or incomplete. */
static int64_t launched_from(const struct interpret *x)
{
	const struct link_table *l = &x->m->link;
	uint64_t launched = 0, slices = 0;
	int64_t from = INT64_MAX;

	for (uint32_t i = x->first_link; i < l->count; i++) {
		uint32_t work = l->dst[i].v;

		if (l->kind[i] != LINK_LAUNCH || work < x->first_event ||
		    !interpret_on_device(x, x->m->event.track[work].v))
			continue;
		from = MIN(from, x->m->event.ts_ns[work]);
		launched++;
	}
	for (uint32_t t = x->first_track; t < x->last_track; t++) {
		const struct interpret_track *track = interpret_track(x, t);

		for (uint32_t e = track->first; interpret_on_device(x, t) && e < track->last; e++)
			slices += x->m->event.ts_ns[e] >= from && interpret_is_slice(x, e);
	}
	return launched * 10 >= slices * 9 ? from : INT64_MAX;
}

/* Work that a device still does when the recording begins was launched before it, in steps that are not in the file. It belongs to
 * no step, even where it overlaps a step's marker. */
static void leave_out_backlog(struct interpret *x)
{
	int64_t from = launched_from(x);

	for (uint32_t t = x->first_track; from != INT64_MAX && t < x->last_track; t++) {
		const struct interpret_track *track = interpret_track(x, t);

		if (!interpret_on_device(x, t))
			continue;
		for (uint32_t e = track->first; e < track->last && x->m->event.ts_ns[e] < from; e++)
			x->m->event.step[e] = (step_id){ 0 };
	}
}

static ow_status use_markers(struct interpret *x)
{
	struct interpret_markers *m = &x->markers;
	step_id *ids = ARENA_ARRAY(&x->scratch, step_id, m->count);
	struct steps steps = { m->list, ids, m->count };

	if (!ids)
		return interpret_no_memory(x);
	number_markers(x);
	for (size_t i = 0; i < m->count && builder_status(x->b) == OW_OK; i++) {
		ids[i] = builder_step(x->b, m->list[i].number);
		if (!x->m->step.name[ids[i].v].v)
			x->m->step.name[ids[i].v] = m->list[i].name;
		builder_add_window(x->b, &(struct window_row){ .step = ids[i],
							       .source = x->source,
							       .start_ns = m->list[i].start,
							       .end_ns = m->list[i].end });
	}
	OW_TRY(builder_status(x->b));
	prefault(x->m->event.step, x->first_event * sizeof(step_id),
		 x->last_event * sizeof(step_id));
	for (uint32_t t = x->first_track; t < x->last_track; t++)
		assign_track(x, interpret_track(x, t), &steps);
	for (uint32_t e = x->first_event; x->own_steps && e < x->last_event; e++)
		if (x->own_steps[e - x->first_event] != INT64_MIN)
			x->m->event.step[e] = builder_step(x->b, x->own_steps[e - x->first_event]);
	OW_TRY(steps_by_producer_assign(x));
	assign_launched(x);
	leave_out_backlog(x);
	if (m->count == 1)
		x->m->source.step[x->source.v] = ids[0];
	return OW_OK;
}

static ow_status use_one_step(struct interpret *x)
{
	struct str path = model_str(x->m, x->m->source.path[x->source.v]);
	bool any = x->producer == &producer_tfprof, is_step = x->producer->file_is_step;
	int64_t number = x->in->options->step;

	if (number != INT64_MIN || interpret_file_number(path, any, &number))
		is_step = true;
	else if (is_step)
		number = next_number(x->m);
	x->only_step = is_step ? builder_step(x->b, number) : builder_whole_step(x->b);
	OW_TRY(builder_status(x->b));
	x->m->source.step[x->source.v] = x->only_step;
	for (uint32_t e = x->first_event; e < x->last_event; e++)
		x->m->event.step[e] = x->only_step;
	return OW_OK;
}

ow_status interpret_steps(struct interpret *x)
{
	const char *pattern = x->in->options->step_marker;

	if (pattern) {
		x->markers.count = 0;
		x->own_steps = NULL;
		OW_TRY(mark_by_regex(x, pattern));
	} else if (x->producer->steps) {
		OW_TRY(x->producer->steps(x));
	}
	sort_markers(x);
	return x->markers.count ? use_markers(x) : use_one_step(x);
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Returns a file name without directories and without everything after the first dot that follows a digit
 * or letter: x.pt.trace.json.gz. */
static struct str stem_of(struct str path)
{
	size_t slash = str_rfind_char(path, '/'), dot;

	if (slash != STR_NONE)
		path = str_skip(path, slash + 1);
	dot = str_find_char(str_skip(path, 1), '.');
	return dot == STR_NONE ? path : str_first(path, dot + 1);
}

bool interpret_file_number(struct str path, bool any, int64_t *number)
{
	struct str stem = stem_of(path), word;
	size_t at = stem.len;

	while (at && is_digit(stem.ptr[at - 1]))
		at--;
	if (at == stem.len || at < 2 || (stem.ptr[at - 1] != '-' && stem.ptr[at - 1] != '_') ||
	    !str_to_i64(str_skip(stem, at), number))
		return false;
	word = str_first(stem, at - 1);
	return any || str_ends(word, STR("timeline")) || str_ends(word, STR("step"));
}

int32_t interpret_file_rank(struct str path)
{
	struct str stem = stem_of(path);
	int32_t rank = -1;

	for (size_t i = 0; i + 4 < stem.len; i++) {
		struct str rest = str_skip(stem, i + 4);
		size_t digits = 0;
		int64_t number;

		if (memcmp(stem.ptr + i, "rank", 4) != 0)
			continue;
		if (rest.ptr[0] == '-' || rest.ptr[0] == '_' || rest.ptr[0] == '=')
			rest = str_skip(rest, 1);
		while (digits < rest.len && is_digit(rest.ptr[digits]))
			digits++;
		if (digits && digits < 9 && str_to_i64(str_first(rest, digits), &number))
			rank = (int32_t)number;
	}
	return rank;
}
