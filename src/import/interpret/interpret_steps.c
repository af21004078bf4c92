/*
 * mean_steps.c: which step an event belongs to. Markers on the host cut time into steps; an event of the
 * host belongs to the marker it starts in, work of a device to the step that launched it. Without any
 * marker the file is one step. Also here: what the name of a file says about step and rank.
 */
#include "import/mean_int.h"

#include "base/populate.h"
#include "base/regex.h"

/* ---- markers ---- */

ow_status mean_add_marker(struct meaning *x, const struct mean_marker *marker)
{
	void *list = x->markers.list;

	if (!mem_grow(x->mem, &list, &x->markers.cap, x->markers.count + 1,
		      sizeof(*x->markers.list)))
		return mean_no_memory(x);
	x->markers.list = list;
	x->markers.list[x->markers.count++] = *marker;
	return OW_OK;
}

/* A test of names that is asked once for each. */
struct name_test {
	struct meaning *x;
	mean_name_fn test;
	void *arg;
	uint8_t *answers; /* 0 = not asked, 1 = no, 2 = yes */
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

static ow_status add_slice(struct meaning *x, uint32_t event)
{
	int64_t number = trailing_number(model_str(x->m, mean_name(x, event)));

	if (x->m->event.op[event].v)
		x->m->op.flags[x->m->event.op[event].v] |= OP_WRAPS;
	return mean_add_marker(x, &(struct mean_marker){ .start = x->m->event.ts_ns[event],
							 .end = mean_end(x, event),
							 .number = number >= 0 ? number : INT64_MIN,
							 .name = mean_name(x, event) });
}

ow_status mean_mark_slices(struct meaning *x, mean_name_fn test, void *arg)
{
	struct name_test names = { x, test, arg,
				   ARENA_ARRAY(&x->scratch, uint8_t, x->string_count) };

	if (!names.answers)
		return mean_no_memory(x);
	for (uint32_t t = x->first_track; t < x->last_track; t++) {
		const struct mean_track *track = mean_track(x, t);

		if (!mean_on_host(x, t))
			continue;
		for (uint32_t e = track->first; e < track->last; e++)
			if (test_name(&names, mean_name(x, e)) && mean_is_slice(x, e))
				OW_TRY(add_slice(x, e));
	}
	return OW_OK;
}

static int by_start(const void *a, const void *b)
{
	const struct mean_marker *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->end > y->end) - (x->end < y->end);
}

static void sort_markers(struct meaning *x)
{
	if (x->markers.count)
		qsort(x->markers.list, x->markers.count, sizeof(*x->markers.list), by_start);
}

/* First start and last end of what host and device did. */
static void find_span(const struct meaning *x, int64_t *first, int64_t *last)
{
	*first = INT64_MAX;
	*last = INT64_MIN;
	for (uint32_t t = x->first_track; t < x->last_track; t++) {
		const struct mean_track *track = mean_track(x, t);

		if (!mean_on_host(x, t) && !mean_on_device(x, t))
			continue;
		for (uint32_t e = track->first; e < track->last; e++) {
			if (!mean_is_slice(x, e))
				continue;
			*first = MIN(*first, x->m->event.ts_ns[e]);
			*last = MAX(*last, mean_end(x, e));
		}
	}
}

ow_status mean_mark_ends(struct meaning *x, mean_name_fn test, void *arg)
{
	struct mean_markers *m = &x->markers;
	size_t kept = 0;
	int64_t start, last;

	OW_TRY(mean_mark_slices(x, test, arg));
	sort_markers(x);
	/* several optimizers of one step overlap or follow at once: those inside another are dropped */
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

static bool match_marker(void *arg, struct str name)
{
	return regex_match(arg, name);
}

static void complain(void *arg, struct str pattern, const char *why)
{
	struct meaning *x = arg;

	builder_note(x->b, NOTE_INFO, OW_NO_OFFSET, "step marker %.*s: %s; no slice matches it",
		     STR_ARG(pattern), why);
}

static ow_status mark_by_regex(struct meaning *x, const char *pattern)
{
	struct regex_list list;
	ow_status status = regex_list_init(&list, x->mem, &pattern, 1, complain, x, x->err);

	if (status == OW_OK)
		status = mean_mark_slices(x, match_marker, &list);
	if (status == OW_OK)
		status = regex_list_status(&list, x->err);
	regex_list_release(&list);
	if (status == OW_OK && !x->markers.count)
		builder_note(x->b, NOTE_MISSING, OW_NO_OFFSET,
			     "no slice is called like the step marker %s", pattern);
	return status == OW_OK ? OW_OK : builder_fail(x->b, status);
}

/* ---- numbers ---- */

static int64_t next_number(const struct model *m)
{
	int64_t next = 0;

	for (uint32_t i = 1; i < m->step.count; i++)
		if (m->step.number[i] >= next && m->step.number[i] < INT64_MAX)
			next = m->step.number[i] + 1;
	return next;
}

/* Numbers that the names give count if they go up; else steps are counted. Ranks of one job, which
 * compare by number, all count from 0. */
static void number_markers(struct meaning *x)
{
	struct mean_markers *m = &x->markers;
	bool given = true;
	int64_t next;

	for (size_t i = 0; i < m->count; i++)
		given &= m->list[i].number != INT64_MIN &&
			 (!i || m->list[i].number > m->list[i - 1].number);
	if (given)
		return;
	next = x->m->source.rank[x->source.v] >= 0 ? 0 : next_number(x->m);
	if (x->in->options->step != INT64_MIN)
		next = x->in->options->step;
	for (size_t i = 0; i < m->count; i++)
		m->list[i].number = next + (int64_t)i;
}

/* ---- events ---- */

/* The steps of the markers, by start. */
struct steps {
	const struct mean_marker *markers;
	const step_id *ids;
	size_t count;
};

static void assign_track(struct meaning *x, const struct mean_track *track, const struct steps *s)
{
	const int64_t *ts = x->m->event.ts_ns;
	step_id *step = x->m->event.step;
	size_t at = 0; /* markers before this one have begun */

	for (uint32_t e = track->first; e < track->last;) {
		int64_t next, end;
		step_id id = { 0 };

		while (at < s->count && s->markers[at].start <= ts[e])
			at++;
		/* until the next begins; events are in order of time */
		next = at < s->count ? s->markers[at].start : INT64_MAX;
		end = at ? s->markers[at - 1].end : INT64_MIN;
		id = at ? s->ids[at - 1] : id;
		do
			step[e].v = ts[e] < end ? id.v : 0;
		while (++e < track->last && ts[e] < next);
	}
}

static void assign_launched(struct meaning *x)
{
	const struct link_table *l = &x->m->link;

	for (uint32_t i = x->first_link; i < l->count; i++) {
		step_id step = x->m->event.step[l->src[i].v];

		if (l->kind[i] == LINK_LAUNCH && step.v)
			x->m->event.step[l->dst[i].v] = step;
	}
}

static ow_status use_markers(struct meaning *x)
{
	struct mean_markers *m = &x->markers;
	step_id *ids = ARENA_ARRAY(&x->scratch, step_id, m->count);
	struct steps steps = { m->list, ids, m->count };

	if (!ids)
		return mean_no_memory(x);
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
	populate(x->m->event.step, x->first_event * sizeof(step_id),
		 x->last_event * sizeof(step_id));
	for (uint32_t t = x->first_track; t < x->last_track; t++)
		assign_track(x, mean_track(x, t), &steps);
	OW_TRY(mean_assign_consumed(x));
	assign_launched(x);
	if (m->count == 1)
		x->m->source.step[x->source.v] = ids[0];
	return OW_OK;
}

static ow_status use_one_step(struct meaning *x)
{
	int64_t number = x->in->options->step;
	bool any = x->producer == &producer_tfprof;

	if (number == INT64_MIN &&
	    !mean_file_number(model_str(x->m, x->m->source.path[x->source.v]), any, &number))
		number = next_number(x->m);
	x->only_step = builder_step(x->b, number);
	OW_TRY(builder_status(x->b));
	x->m->source.step[x->source.v] = x->only_step;
	for (uint32_t e = x->first_event; e < x->last_event; e++)
		x->m->event.step[e] = x->only_step;
	return OW_OK;
}

ow_status mean_steps(struct meaning *x)
{
	const char *pattern = x->in->options->step_marker;

	if (pattern) {
		x->markers.count = 0;
		OW_TRY(mark_by_regex(x, pattern));
	} else if (x->producer->steps) {
		OW_TRY(x->producer->steps(x));
	}
	sort_markers(x);
	return x->markers.count ? use_markers(x) : use_one_step(x);
}

/* ---- names of files ---- */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Without directories and all that follows the first dot after a digit or letter: x.pt.trace.json.gz. */
static struct str stem_of(struct str path)
{
	size_t slash = str_rfind_char(path, '/'), dot;

	if (slash != STR_NONE)
		path = str_skip(path, slash + 1);
	dot = str_find_char(str_skip(path, 1), '.');
	return dot == STR_NONE ? path : str_first(path, dot + 1);
}

bool mean_file_number(struct str path, bool any, int64_t *number)
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

int32_t mean_file_rank(struct str path)
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
