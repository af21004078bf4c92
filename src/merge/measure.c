/*
 * measure.c: the pass that only looks: first and last times of each file and its steps. Run before writing
 * when the alignment or a filter needs to know, or when the output cannot be started again.
 */
#include "merge/merge_int.h"

static void begin(struct worker *w)
{
	w->min_ns = w->min_positive_ns = w->max_ns = NO_TIME;
	w->has_pairs = false;
	w->step_count = 0;
}

static int64_t earlier(int64_t a, int64_t b)
{
	return a == NO_TIME || (b != NO_TIME && b < a) ? b : a;
}

/* ProfilerStep#12 on a host thread; what the device shows restates it. */
static bool step_number(const struct json_event *ev, int64_t *number)
{
	static const struct str prefix = STR("ProfilerStep#");
	struct str name = json_text(ev->value[FIELD_NAME]);

	if (!json_event_has(ev, FIELD_NAME) || !str_starts(name, prefix))
		return false;
	if (json_event_has(ev, FIELD_CAT) &&
	    str_starts(json_text(ev->value[FIELD_CAT]), STR("gpu_")))
		return false;
	return str_to_i64(str_skip(name, prefix.len), number);
}

static void add_step(struct worker *w, int64_t number, int64_t from, int64_t to)
{
	void *steps = w->steps;

	if (!mem_grow(w->m->mem, &steps, &w->step_cap, w->step_count + 1, sizeof(*w->steps))) {
		worker_fail(w, error_no_memory(&w->err));
		return;
	}
	w->steps = steps;
	w->steps[w->step_count++] = (struct merge_step){ number, { from, to } };
}

static bool read_time(const struct json_event *ev, enum json_field field, int64_t *ns)
{
	const struct json_value *value = &ev->value[field];
	enum json_exactness exact;

	if (!json_event_has(ev, field) ||
	    (value->kind != JSON_NUMBER && value->kind != JSON_STRING))
		return false;
	exact = json_decimal_padded(json_text(*value), 3, ns);
	return exact == JSON_EXACT || exact == JSON_ROUNDED;
}

bool event_span(const struct json_event *ev, struct span *span)
{
	int64_t dur;

	if (!read_time(ev, FIELD_TS, &span->from))
		return false;
	span->to = span->from;
	if (event_ph(ev) == 'X' && read_time(ev, FIELD_DUR, &dur) && dur > 0 &&
	    __builtin_add_overflow(span->from, dur, &span->to))
		span->to = INT64_MAX;
	return true;
}

static void event(struct worker *w, const struct json_event *ev)
{
	char ph = event_ph(ev);
	struct span span;
	int64_t number;

	if (!ph || ph == 'M' || !event_span(ev, &span))
		return;
	w->has_pairs |= ph == 'B' || ph == 'b' || ph == 'S';
	w->min_ns = earlier(w->min_ns, span.from);
	if (span.from)
		w->min_positive_ns = earlier(w->min_positive_ns, span.from);
	w->max_ns = MAX(w->max_ns, span.to);
	if (ph == 'X' && w->m->options->first_step != INT64_MIN && step_number(ev, &number))
		add_step(w, number, span.from, span.to);
}

static ow_status commit(struct worker *w)
{
	struct merge_file *file = w->file;
	void *steps = file->steps;

	file->min_ns = earlier(file->min_ns, w->min_ns);
	file->min_positive_ns = earlier(file->min_positive_ns, w->min_positive_ns);
	file->max_ns = MAX(file->max_ns, w->max_ns);
	file->has_pairs |= w->has_pairs;
	if (!w->step_count)
		return OW_OK;
	if (!mem_grow(w->m->mem, &steps, &file->step_cap, file->step_count + w->step_count,
		      sizeof(*file->steps)))
		return error_no_memory(&w->err);
	file->steps = steps;
	memcpy(file->steps + file->step_count, w->steps, w->step_count * sizeof(*w->steps));
	file->step_count += w->step_count;
	return OW_OK;
}

void measure_pass(struct pass *pass)
{
	*pass = (struct pass){ .m = pass->m,
			       .event = event,
			       .begin = begin,
			       .commit = commit,
			       .threads = pass->m->threads };
}

/* ---- what is wanted of each file ---- */

static bool wanted(const struct merge *m, int64_t step)
{
	return step >= m->options->first_step && step <= m->options->last_step;
}

static int by_start(const void *a, const void *b)
{
	const struct span *x = a, *y = b;

	return (x->from > y->from) - (x->from < y->from);
}

/* In order, without overlaps. */
static void join_spans(struct merge_file *file)
{
	size_t kept = 0;

	qsort(file->spans, file->span_count, sizeof(*file->spans), by_start);
	for (size_t i = 0; i < file->span_count; i++) {
		struct span span = file->spans[i];

		if (kept && span.from <= file->spans[kept - 1].to)
			file->spans[kept - 1].to = MAX(file->spans[kept - 1].to, span.to);
		else
			file->spans[kept++] = span;
	}
	file->span_count = kept;
}

/* Steps by their markers; without any, the file is one step, which its name tells. */
static ow_status choose_steps(struct merge_file *file)
{
	struct merge *m = file->m;

	file->spans = NULL;
	file->span_count = 0;
	if (!file->step_count) {
		file->dropped = file->step == NO_NUMBER || !wanted(m, file->step);
		if (file->step == NO_NUMBER)
			merge_note(
				m,
				"%s: no steps are marked in it, and its name has no number; only "
				"its metadata is merged",
				file->path);
		return OW_OK;
	}
	file->spans = ARENA_ARRAY(&m->arena, struct span, file->step_count);
	if (!file->spans)
		return error_no_memory(m->err);
	for (size_t i = 0; i < file->step_count; i++)
		if (wanted(m, file->steps[i].number))
			file->spans[file->span_count++] = file->steps[i].span;
	file->dropped = !file->span_count;
	join_spans(file);
	return OW_OK;
}

/* The wanted time in the file's own clock. */
static int64_t own_time(const struct merge *m, const struct merge_file *file, int64_t ns)
{
	__int128 own = (__int128)ns + m->zero_ns - file->shift_ns;

	return own > INT64_MAX ? INT64_MAX : own < INT64_MIN ? INT64_MIN : (int64_t)own;
}

ow_status spans_choose(struct merge *m)
{
	const struct merge_options *o = m->options;

	for (size_t i = 0; i < m->file_count; i++) {
		struct merge_file *file = m->files[i];

		file->range = (struct span){ INT64_MIN, INT64_MAX };
		if (o->from_ns != INT64_MIN)
			file->range.from = own_time(m, file, o->from_ns);
		if (o->to_ns != INT64_MAX)
			file->range.to = own_time(m, file, o->to_ns);
		if (o->first_step != INT64_MIN || o->last_step != INT64_MAX)
			OW_TRY(choose_steps(file));
	}
	return OW_OK;
}
