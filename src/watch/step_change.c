/*
 * step_change.c: decides whether the last steps are longer than those before, by medians and their spread. anomaly.c
 * calls it for each step of a rank. It does arithmetic only.
 */
#include "watch/step_change.h"

#include <math.h>

/* Standard errors by which medians of steps must differ to be significant; steps are not independent of each other
 * and their times not normal, so this is large. */
#define SURE 6.0
/* standard errors; a change of exactly the limit is measured below the limit half of the time */
#define NEAR 3.0
/* if as many long steps in a row are less likely than this, they are not random */
#define CHANCE 1e-6
#define LONGEST 40u /* limit of consecutive long steps that are examined */
/* index in STEP_CHANGE_LAST sorted steps: all but one step are at least this long */
#define SHORT_ONE 1
#define RECENT 5      /* newest blocks that may belong to the change itself */
#define LATELY 25     /* "lately" means within this many blocks: about two hundred steps */
#define QUANTUM 0.005 /* a smaller relative difference is ignored, however certain it is */

void step_change_init(struct step_change *c, double limit)
{
	*c = (struct step_change){ .limit = limit };
}

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static double median_of(int64_t *values, size_t count)
{
	size_t middle = count / 2;

	qsort(values, count, sizeof(*values), by_value);
	return count % 2 ? (double)values[middle]
			 : ((double)values[middle - 1] + (double)values[middle]) / 2;
}

/* Copies the steps [first, first + count). */
static void copy_values(const struct step_change *c, uint64_t first, size_t count, int64_t *to)
{
	for (size_t i = 0; i < count; i++)
		to[i] = c->values[(first + i) % ARRAY_COUNT(c->values)];
}

/* The spread of the logarithms of values around that of their median, scaled as for a normal distribution.
 * Logarithms are used because times have long tails on one side. */
static double spread_of(const int64_t *values, size_t count, double middle)
{
	int64_t distances[STEP_CHANGE_BEFORE] = { 0 };

	for (size_t i = 0; i < count; i++)
		distances[i] = (int64_t)(fabs(log(MAX((double)values[i], 1.0) / middle)) * 1e9);
	return MAX(median_of(distances, count) * 1e-9 * 1.4826, QUANTUM);
}

static int64_t short_one(int64_t values[STEP_CHANGE_LAST])
{
	qsort(values, STEP_CHANGE_LAST, sizeof(*values), by_value);
	return values[SHORT_ONE];
}

/* Collects step times in blocks of STEP_CHANGE_LAST; a full block is remembered. */
static void remember_step(struct step_change *c, int64_t value)
{
	c->block[c->added++ % STEP_CHANGE_LAST] = value;
	if (c->added % STEP_CHANGE_LAST == 0)
		c->past[(c->added / STEP_CHANGE_LAST - 1) % STEP_CHANGE_PAST] = short_one(c->block);
}

/* Whether a block of STEP_CHANGE_LAST steps, with one exception, was about this long before: lately, or more than
 * once. The newest block does not count, because the change may have begun in it. */
static bool is_known(const struct step_change *c, double length)
{
	uint64_t blocks = c->added / STEP_CHANGE_LAST,
		 kept = MIN(blocks, (uint64_t)STEP_CHANGE_PAST);
	unsigned times = 0;
	bool last = false;

	for (uint64_t i = RECENT; i < kept; i++) {
		int64_t past = c->past[(blocks - 1 - i) % STEP_CHANGE_PAST];
		bool as_long = (double)past * (1 + c->limit / 2) > length;

		times += as_long && !last;
		last = as_long;
		if (as_long && (times > 1 || i < LATELY))
			return true;
	}
	return false;
}

/* The probability that at least `many` of `count` steps are long, if each is long with probability `each`. */
static double chance_of(unsigned many, unsigned count, double each)
{
	double sum = 0, term = pow(each, count);

	for (unsigned i = count; i + 1 > many; i--) {
		sum += term;
		if (!i)
			break;
		term *= (double)i / (double)(count - i + 1) * (1 - each) / each;
	}
	return sum;
}

static unsigned count_longer(const struct step_change *c, uint64_t first, uint64_t count,
			     double length)
{
	unsigned many = 0;

	for (uint64_t i = first; i < first + count; i++)
		many += (double)c->values[i % ARRAY_COUNT(c->values)] > length;
	return many;
}

/* Whether the long steps are significant. A job whose steps are long or short by chance has several long ones in a
 * row now and then: the more steps were that long before, the more are needed now. */
static bool is_no_chance(const struct step_change *c, double length)
{
	for (unsigned last = STEP_CHANGE_LAST;
	     last <= LONGEST && last + STEP_CHANGE_LEAST <= c->count; last++) {
		uint64_t first = c->count - last;
		uint64_t before = MIN(first, (uint64_t)ARRAY_COUNT(c->values) - last);
		unsigned longer = count_longer(c, first - before, before, length);
		double each = (longer + 1.0) / ((double)before + 2);

		if (chance_of(count_longer(c, first, last, length), last, each) < CHANCE)
			return true;
	}
	return false;
}

static bool is_longer(const struct step_change *c, struct step_change_found *found)
{
	int64_t last[STEP_CHANGE_LAST], before[STEP_CHANGE_BEFORE];
	size_t count = (size_t)MIN(c->count - STEP_CHANGE_LAST, (uint64_t)STEP_CHANGE_BEFORE);
	size_t quarter = count / 4, last_quarter = STEP_CHANGE_LAST / 4;
	uint64_t first = c->count - STEP_CHANGE_LAST;
	double old, new, error, low, slack;

	copy_values(c, first, STEP_CHANGE_LAST, last);
	copy_values(c, first - count, count, before);
	old = median_of(before, count);
	new = median_of(last, STEP_CHANGE_LAST);
	low = (double)before[quarter]; /* both arrays are sorted by now */
	if (old <= 0 || low <= 0)
		return false;
	found->before_ns = (int64_t)old;
	found->after_ns = (int64_t) new;
	found->by = new / old - 1;
	/* If long and short steps alternate, the median jumps between them, so the shorter ones must have become
	 * longer, too. */
	if (found->by < c->limit / 2 || (double)last[last_quarter] / low - 1 < c->limit / 2)
		return false;
	error = 1.2533 * spread_of(before, count, old) *
		sqrt(1.0 / STEP_CHANGE_LAST + 1.0 / (double)count);
	if (found->by < c->limit - NEAR * error || log(1 + found->by) < SURE * error ||
	    is_known(c, (double)last[SHORT_ONE]))
		return false;
	slack = 1 + c->limit / 2;
	return is_no_chance(c, new / slack) || is_no_chance(c, (double)last[last_quarter] / slack);
}

/* Goes back to the first of the longer steps, before which there are two short ones in a row. There may be more long
 * steps than STEP_CHANGE_LAST: in a job that slowed down early, many are long by the time there are enough to
 * decide. */
static uint32_t steps_ago(const struct step_change *c, const struct step_change_found *found)
{
	int64_t middle = found->before_ns + (found->after_ns - found->before_ns) / 2;
	uint64_t kept = MIN(c->count, (uint64_t)ARRAY_COUNT(c->values));
	uint32_t ago = 0;

	for (uint32_t i = 0; i < kept; i++) {
		if (c->values[(c->count - 1 - i) % ARRAY_COUNT(c->values)] > middle)
			ago = i;
		else if (i > ago + 1)
			break;
	}
	return ago;
}

/* Forgets the old steps, so that later steps are compared with the new, longer ones. */
static void begin_anew(struct step_change *c)
{
	int64_t last[STEP_CHANGE_LAST];

	copy_values(c, c->count - STEP_CHANGE_LAST, STEP_CHANGE_LAST, last);
	memcpy(c->values, last, sizeof(last));
	c->count = STEP_CHANGE_LAST;
}

bool step_change_add(struct step_change *c, int64_t value_ns, struct step_change_found *found)
{
	c->values[c->count++ % ARRAY_COUNT(c->values)] = value_ns;
	remember_step(c, value_ns);
	if (c->count < STEP_CHANGE_LEAST + STEP_CHANGE_LAST || !is_longer(c, found))
		return false;
	found->steps_ago = steps_ago(c, found);
	begin_anew(c);
	return true;
}
