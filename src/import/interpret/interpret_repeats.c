/*
 * interpret_repeats.c: finds steps of recordings without markers, from programs that the host starts repeatedly in the
 * same order: a loop. Producers call it when nothing else marks steps, with a test for slices that start a program
 * (JAX: "PjitFunction(train)"). The order has to repeat at least LEAST times and cover nearly all of the recording, and
 * each time mostly the same kernels have to be launched: one function called with arguments of other shapes is another
 * program. A step begins where the host pauses longest between two programs. Without such an order there are no steps.
 * A note says that steps were found this way.
 */
#include "import/interpret/interpret_int.h"
#include "base/vec.h"

#define LEAST 3 /* least number of whole repetitions */
/* least percentage of the programs in repetitions; earlier programs are warm-up */
#define COVERED 75
#define ALIKE 80 /* percentage of the kernels of a step that the next step must have, too */
/* a step begins where the pause is this many times as long as before the first program */
#define LIKE 1.25

/* A run of an XLA program that the host thread launched. */
struct started {
	int64_t begin, end;
	str_id name;
};

struct programs {
	struct started *list;
	size_t count, cap;
	double time;
};

/* Collects programs; slices inside of another program are part of it. */
static ow_status collect_programs(struct interpret *x, uint32_t t, interpret_name_fn is_program,
				  void *arg, struct programs *out)
{
	const struct interpret_track *track = interpret_track(x, t);
	int64_t until = INT64_MIN;

	for (uint32_t e = track->first; e < track->last; e++) {
		struct started one = { x->m->event.ts_ns[e], interpret_end(x, e),
				       interpret_name(x, e) };

		if (one.begin < until || !interpret_is_slice(x, e) ||
		    !is_program(arg, interpret_text(x, one.name)))
			continue;
		if (!vec_push(x->mem, out->list, out->count, out->cap, one))
			return interpret_no_memory(x);
		until = one.end;
		out->time += (double)one.end - (double)one.begin;
	}
	return OW_OK;
}

static bool same_program(const struct programs *p, size_t from_end_a, size_t from_end_b)
{
	return p->list[p->count - 1 - from_end_a].name.v ==
	       p->list[p->count - 1 - from_end_b].name.v;
}

/* Finds the longest end of the list that repeats often enough: *first is its beginning. Returns the period, 0 for
 * none. The borders of the reversed list are those of the ends of the list (Knuth, Morris, Pratt). */
static size_t find_period(const struct programs *p, size_t *border, size_t *first)
{
	size_t period = 0;

	for (size_t i = 1, k = 0; i < p->count; i++) {
		while (k && !same_program(p, i, k))
			k = border[k - 1];
		k += same_program(p, i, k);
		border[i] = k;
		/* the last i + 1 programs repeat with this period */
		if ((i + 1 - k) * LEAST <= i + 1) {
			period = i + 1 - k;
			*first = p->count - 1 - i;
		}
	}
	return period && (p->count - *first) * 100 >= p->count * COVERED ? period : 0;
}

/* Returns the sum of the host's pauses before the programs at this place of the period. */
static double pause_at(const struct programs *p, size_t first, size_t period, size_t place)
{
	double sum = 0;

	for (size_t i = first + place + (place ? 0 : period); i < p->count; i += period)
		sum += (double)p->list[i].begin - (double)p->list[i - 1].end;
	return sum;
}

/* Finds where in the period a step begins. */
static size_t find_begin(const struct programs *p, size_t first, size_t period)
{
	double longest = pause_at(p, first, period, 0) * LIKE;
	size_t place = 0;

	if ((p->count - first) % period == 0) /* the recording consists of whole steps */
		return 0;
	for (size_t i = 1; i < period && first + i + period * LEAST <= p->count; i++) {
		double pause = pause_at(p, first, period, i);

		if (pause > longest) {
			longest = pause;
			place = i;
		}
	}
	return place;
}

/* A kernel that was launched in a step. */
struct launched {
	uint32_t step, name;
};

static int by_step_and_name(const void *a, const void *b)
{
	const struct launched *x = a, *y = b;

	if (x->step != y->step)
		return x->step < y->step ? -1 : 1;
	return (x->name > y->name) - (x->name < y->name);
}

/* Returns the last program that began by then; SIZE_MAX before the first. */
static size_t program_at(const struct programs *p, int64_t ts)
{
	size_t low = 0, high = p->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (p->list[middle].begin <= ts)
			low = middle + 1;
		else
			high = middle;
	}
	return low - 1;
}

/* Collects kernels of whole steps, sorted by step and name. */
static bool collect_launched(struct interpret *x, const struct programs *p, size_t first,
			     size_t period, struct launched **list, size_t *count)
{
	const struct link_table *l = &x->m->link;
	size_t steps = (p->count - first) / period;

	*count = 0;
	*list = ARENA_ARRAY(&x->scratch, struct launched, l->count - x->first_link + 1);
	for (uint32_t i = x->first_link; *list && i < l->count; i++) {
		uint32_t call = l->src[i].v, work = l->dst[i].v;
		size_t at;

		if (l->kind[i] != LINK_LAUNCH || work < x->first_event ||
		    !interpret_on_device(x, x->m->event.track[work].v))
			continue;
		at = program_at(p, x->m->event.ts_ns[call]);
		if (at == SIZE_MAX || at < first || (at - first) / period >= steps)
			continue;
		(*list)[(*count)++] = (struct launched){ (uint32_t)((at - first) / period),
							 interpret_name(x, work).v };
	}
	if (*list && *count)
		qsort(*list, *count, sizeof(**list), by_step_and_name);
	return *list != NULL;
}

/* Returns how many of the kernels [a, b) are among [b, c), too; both are sorted by name. */
static size_t count_common(const struct launched *list, size_t a, size_t b, size_t c)
{
	size_t common = 0;

	for (size_t i = a, k = b; i < b && k < c;) {
		if (list[i].name == list[k].name) {
			common++;
			i++;
			k++;
		} else if (list[i].name < list[k].name) {
			i++;
		} else {
			k++;
		}
	}
	return common;
}

static size_t end_of_step(const struct launched *list, size_t from, size_t count)
{
	size_t end = from;

	while (end < count && list[end].step == list[from].step)
		end++;
	return end;
}

/* Returns whether most steps launch nearly the same kernels as the step before; also true without recorded
 * launches. */
static bool are_alike(const struct launched *list, size_t count)
{
	size_t pairs = 0, alike = 0;

	for (size_t a = 0, b = end_of_step(list, 0, count), c; b < count; a = b, b = c) {
		c = end_of_step(list, b, count);
		pairs++;
		alike += count_common(list, a, b, c) * 100 >= MAX(b - a, c - b) * ALIKE;
	}
	return alike * 4 >= pairs * 3;
}

static ow_status mark_periods(struct interpret *x, const struct programs *p, size_t first,
			      size_t period)
{
	uint32_t steps = 0;

	for (size_t i = first; i + period <= p->count; i += period, steps++) {
		bool last = i + period == p->count;

		OW_TRY(interpret_add_marker(
			x, &(struct interpret_marker){ .start = p->list[i].begin,
						       .end = last ? p->list[i + period - 1].end
								   : p->list[i + period].begin,
						       .number = INT64_MIN,
						       .name = period == 1 ? p->list[i].name
									   : (str_id){ 0 } }));
	}
	builder_note(x->b, NOTE_INFO, OW_NO_OFFSET,
		     "the recording marks no steps: a step is one of %u repetitions of %s", steps,
		     period == 1 ? "the program" : "the same programs");
	return builder_status(x->b);
}

static ow_status mark_repeats_of(struct interpret *x, const struct programs *p)
{
	size_t *border = ARENA_ARRAY(&x->scratch, size_t, p->count), first = 0, period, count;
	struct launched *list;

	if (!border)
		return interpret_no_memory(x);
	period = find_period(p, border, &first);
	if (!period)
		return OW_OK;
	first += find_begin(p, first, period);
	if (!collect_launched(x, p, first, period, &list, &count))
		return interpret_no_memory(x);
	return are_alike(list, count) ? mark_periods(x, p, first, period) : OW_OK;
}

ow_status interpret_mark_repeats(struct interpret *x, interpret_name_fn is_program, void *arg)
{
	struct programs most = { 0 };
	ow_status status = OW_OK;

	for (uint32_t t = x->first_track; t < x->last_track && status == OW_OK; t++) {
		struct programs p = { 0 }, less;

		if (!interpret_on_host(x, t))
			continue;
		status = collect_programs(x, t, is_program, arg, &p);
		less = p.time > most.time ? most : p;
		most = p.time > most.time ? p : most;
		mem_free(x->mem, less.list, less.cap * sizeof(*less.list));
	}
	if (status == OW_OK && most.count >= LEAST)
		status = mark_repeats_of(x, &most);
	mem_free(x->mem, most.list, most.cap * sizeof(*most.list));
	return status;
}
