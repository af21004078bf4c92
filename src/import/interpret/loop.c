/*
 * loop.c: finds the loop in a list of calls, see loop.h. Every call that occurs often enough is tried as the begin of a repetition: it cuts the
 * list into parts, and most parts have to have the same calls in the same order. What comes before the first and after the last
 * of these is warm-up and clean-up. Loops are nested (layers in a step, steps in an epoch): where nearly all parts are equal, the
 * innermost loop is the step; otherwise the one with the most equal parts, since the last layer of a model differs from the others.
 * Linear in the calls for each of at most TRIED keys.
 */
#include "import/interpret/loop.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define TRIED 64u
#define EQUAL 0.85	 /* least part of repetitions that must be equal */
#define NEARLY_ALL 0.985 /* a model has fewer than 64 layers, and an epoch more than 64 steps */
/* least part of the time in repetitions of equal length; calls that only start work take none */
#define EQUAL_TIME 0.8
/* longest pause after the last call of the last repetition, as a part of it */
#define SHORT_PAUSE 0.05
#define SAME_SHARE 0.02
#define FNV_START 14695981039346656037u
#define FNV_PRIME 1099511628211u

/* The calls from one call of the key to the next. */
struct part {
	uint64_t hash;
	size_t at; /* index of its first call */
};

struct candidate {
	uint32_t key;
	size_t parts, first, last; /* number of parts, and the range [first, last] that counts */
	uint64_t mode;		   /* content (hash) that most parts have */
	uint32_t length;
	double share, pause_ns;
	int64_t median_ns;
};

struct finder {
	const struct loop_calls *calls;
	const struct loop_rules *rules;
	struct part *parts; /* parts of the last candidate key */
	double *spans;
};

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return (x > y) - (x < y);
}

static double median_of(double *values, size_t count)
{
	qsort(values, count, sizeof(*values), by_value);
	return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* Cuts the list at each call of the key and returns the number of whole parts; one more part
 * follows the last call. */
static size_t cut(struct finder *f, uint32_t key)
{
	const struct loop_calls *c = f->calls;
	uint64_t hash = 0;
	size_t count = 0;

	for (size_t i = 0; i < c->count; i++) {
		if (c->list[i].key == key) {
			if (count)
				f->parts[count - 1].hash = hash;
			f->parts[count++].at = i;
			hash = FNV_START;
		}
		hash = (hash ^ c->list[i].key) * FNV_PRIME;
	}
	if (count)
		f->parts[count - 1].hash = hash;
	return count ? count - 1 : 0;
}

/* Returns the content of more than half of the parts, if there is one (Boyer and Moore). */
static uint64_t majority(const struct part *parts, size_t count)
{
	uint64_t found = 0;
	size_t lead = 0;

	for (size_t i = 0; i < count; i++) {
		if (!lead)
			found = parts[i].hash;
		lead = parts[i].hash == found ? lead + 1 : lead - 1;
	}
	return found;
}

static double length_ns(const struct finder *f, size_t part)
{
	const struct loop_call *list = f->calls->list;

	return (double)list[f->parts[part + 1].at].begin - (double)list[f->parts[part].at].begin;
}

/* Measures the share of usual content between the first and the last usual part. */
static bool measure_equal(struct finder *f, struct candidate *c)
{
	size_t equal = 0;
	double time = 0, equal_time = 0;

	for (c->first = 0; c->first < c->parts && f->parts[c->first].hash != c->mode; c->first++)
		;
	for (c->last = c->parts - 1; c->last > c->first && f->parts[c->last].hash != c->mode;
	     c->last--)
		;
	for (size_t i = c->first; i <= c->last && i < c->parts; i++) {
		bool same = f->parts[i].hash == c->mode;

		if (same)
			c->length = (uint32_t)(f->parts[i + 1].at - f->parts[i].at);
		equal += same;
		time += length_ns(f, i);
		equal_time += same ? length_ns(f, i) : 0;
	}
	if (c->first >= c->parts || !(time > 0))
		return false;
	c->share = (double)equal / (double)(c->last - c->first + 1);
	return c->share >= EQUAL && equal_time >= EQUAL_TIME * time;
}

/* Checks that repetitions are long enough and of similar length. */
static bool measure_times(struct finder *f, struct candidate *c)
{
	size_t count = c->last - c->first + 1;
	double median, spread = c->length == 1 ? f->rules->spread_alone : f->rules->spread;

	for (size_t i = 0; i < count; i++)
		f->spans[i] = length_ns(f, c->first + i);
	median = median_of(f->spans, count);
	if (!(median >= (double)f->rules->shortest_ns) || median > (double)(INT64_MAX / 2))
		return false;
	for (size_t i = 0; i < count; i++)
		f->spans[i] = fabs(f->spans[i] - median);
	c->median_ns = (int64_t)median;
	qsort(f->spans, count, sizeof(*f->spans), by_value);
	return f->spans[count * 3 / 4] <= spread * median;
}

static double pauses(const struct finder *f, const struct candidate *c)
{
	const struct loop_call *list = f->calls->list;
	double sum = 0;

	for (size_t i = c->first; i <= c->last; i++) {
		size_t at = f->parts[i].at;

		sum += at ? (double)list[at].begin - (double)list[at - 1].end : 0;
	}
	return sum;
}

/* Tests whether the key begins the repetitions of a loop. */
static bool try_key(struct finder *f, uint32_t key, struct candidate *c)
{
	const struct loop_call *list = f->calls->list;
	double all = (double)list[f->calls->count - 1].end - (double)list[0].begin, taken;

	*c = (struct candidate){ .key = key, .parts = cut(f, key) };
	if (c->parts < f->rules->least)
		return false;
	c->mode = majority(f->parts, c->parts);
	if (!measure_equal(f, c))
		return false;
	if (c->last - c->first + 1 < (c->length == 1 ? f->rules->least_alone : f->rules->least))
		return false;
	taken = (double)list[f->parts[c->last + 1].at].begin -
		(double)list[f->parts[c->first].at].begin;
	if (taken < f->rules->covered * all || !measure_times(f, c))
		return false;
	c->pause_ns = pauses(f, c);
	return true;
}

/* Whether a is a better answer than b. Each call that occurs once in a loop finds the same loop: the one after the
 * longest pause begins the repetition. */
static bool is_better(const struct candidate *a, const struct candidate *b)
{
	size_t a_steps = a->last - a->first + 1, b_steps = b->last - b->first + 1;
	bool a_sure = a->share >= NEARLY_ALL, b_sure = b->share >= NEARLY_ALL;

	if (!b->median_ns || a_sure != b_sure)
		return !b->median_ns || a_sure;
	if (a_steps > b_steps + b_steps / 16 + 1 || b_steps > a_steps + a_steps / 16 + 1)
		return a_sure ? a_steps > b_steps : a->share > b->share;
	if (fabs(a->share - b->share) > SAME_SHARE)
		return a->share > b->share;
	return a->pause_ns > b->pause_ns;
}

struct counted {
	uint32_t key;
	size_t count;
};

static int by_count(const void *a, const void *b)
{
	const struct counted *x = a, *y = b;

	if (x->count != y->count)
		return x->count < y->count ? -1 : 1;
	return (x->key > y->key) - (x->key < y->key);
}

/* Returns keys that occur often enough, the rarest first: those that occur once in a step. */
static struct counted *often_called(struct arena *arena, const struct loop_calls *calls,
				    uint32_t least, size_t *count)
{
	struct counted *list = ARENA_ARRAY(arena, struct counted, (size_t)calls->keys + 1);

	*count = 0;
	if (!list)
		return NULL;
	for (uint32_t i = 0; i < calls->keys; i++)
		list[i] = (struct counted){ .key = i };
	for (size_t i = 0; i < calls->count; i++)
		list[calls->list[i].key].count++;
	for (uint32_t i = 0; i < calls->keys; i++)
		if (list[i].count > least)
			list[(*count)++] = list[i];
	if (*count)
		qsort(list, *count, sizeof(*list), by_count);
	*count = *count < TRIED ? *count : TRIED;
	return list;
}

/* Returns the end of the last repetition, which counts if its calls are complete and hardly anything
 * follows. */
static int64_t end_of_last(const struct finder *f, const struct candidate *c)
{
	const struct loop_call *list = f->calls->list;
	size_t at = f->parts[c->parts].at, end = at + c->length;
	uint64_t hash = FNV_START;
	double pause = c->pause_ns / (double)(c->last - c->first + 1);

	if (c->last + 1 != c->parts || end > f->calls->count ||
	    pause > SHORT_PAUSE * (double)c->median_ns)
		return INT64_MIN;
	for (size_t i = at; i < end; i++)
		hash = (hash ^ list[i].key) * FNV_PRIME;
	return hash == c->mode ? list[end - 1].end : INT64_MIN;
}

static bool fill(struct arena *arena, struct finder *f, const struct candidate *c, struct loop *out)
{
	const struct loop_call *list = f->calls->list;
	uint32_t steps = (uint32_t)(c->last - c->first + 1);
	int64_t end;

	(void)cut(f, c->key);
	end = end_of_last(f, c);
	out->starts = ARENA_ARRAY(arena, int64_t, (size_t)steps + 2);
	out->usual = ARENA_ARRAY(arena, bool, (size_t)steps + 2);
	if (!out->starts || !out->usual)
		return false;
	for (uint32_t i = 0; i <= steps; i++) {
		out->starts[i] = list[f->parts[c->first + i].at].begin;
		out->usual[i] = i < steps && f->parts[c->first + i].hash == c->mode;
	}
	if (end != INT64_MIN) {
		out->usual[steps] = true;
		out->starts[++steps] = end;
	}
	out->key = c->key;
	out->length = c->length;
	out->median_ns = c->median_ns;
	out->steps = steps;
	return true;
}

bool loop_find(struct arena *arena, const struct loop_calls *calls, const struct loop_rules *rules,
	       struct loop *out)
{
	struct finder f = { .calls = calls, .rules = rules };
	struct candidate best = { 0 }, c;
	struct counted *often;
	size_t count;

	*out = (struct loop){ 0 };
	if (calls->count < rules->least)
		return true;
	f.parts = ARENA_ARRAY(arena, struct part, calls->count + 1);
	f.spans = ARENA_ARRAY(arena, double, calls->count + 1);
	often = often_called(arena, calls, rules->least, &count);
	if (!f.parts || !f.spans || !often)
		return false;
	for (size_t i = 0; i < count; i++)
		if (try_key(&f, often[i].key, &c) && is_better(&c, &best))
			best = c;
	return !best.median_ns || fill(arena, &f, &best, out);
}
