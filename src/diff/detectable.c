/*
 * detectable.c: the smallest change that a comparison would see, and how many runs a smaller one needs (statistics.h). Groups of runs are drawn
 * from the measured ones, and each is tested with larger and larger changes: runs of two speeds and rare cold runs count as often as they
 * were measured. Formulas for normal noise miss these. Called by diff.c and limits.c.
 */
#include "diff/statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define POWER 0.8
#define RUNS_DRAWN 64u /* with more runs the means are normally distributed */
#define GROUPS 300u    /* drawn; the change is then known to some percent */
#define WAYS_TRIED 400u
#define HALVINGS 12

/* The level that the exact test really has: its probabilities are steps. */
static double attained_level(size_t n, size_t m)
{
	double all = stat_ways(n, m);

	return all > 1e6 ? STAT_LEVEL : floor(STAT_LEVEL * all / 2) * 2 / all;
}

/* For normal noise. A test with few ways to shuffle sees less than Student's of the same level, and the deviation of a few runs is on
 * average smaller than the true one; both factors were found by simulation. */
static double by_student(double variance, size_t n, size_t m)
{
	double level = attained_level(n, m), degrees = (double)(n + m - 2);
	double few = (1 + 5 / stat_ways(n, m)) / (1 - 1 / (4 * degrees));

	return few * (student_quantile(1 - level / 2, degrees) + student_quantile(POWER, degrees)) *
	       sqrt(variance * (1 / (double)n + 1 / (double)m));
}

/* Groups of runs that are drawn from the measured ones, and the ways to shuffle them. */
struct drawing {
	size_t n, m;
	double pool[RUNS_DRAWN]; /* the measured runs as if nothing had changed, sorted */
	double group[RUNS_DRAWN];
	uint8_t ways[WAYS_TRIED][RUNS_DRAWN]; /* the places of side a */
	size_t way_count;
	bool every_way;
	uint64_t random;
};

static int by_value(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;

	return (a > b) - (a < b);
}

/* Without a change that the test sees, the runs of both sides are of one kind. If it sees one, side b is moved back by the median difference. */
static void fill_pool(struct drawing *d, const double *a, const double *b)
{
	double between[RUNS_DRAWN * RUNS_DRAWN / 4] = { 0 }, shift = 0;
	size_t count = d->n * d->m;

	if (stat_permutation(a, d->n, b, d->m) <= STAT_LEVEL) {
		for (size_t i = 0; i < d->n; i++)
			for (size_t k = 0; k < d->m; k++)
				between[i * d->m + k] = b[k] - a[i];
		qsort(between, count, sizeof(*between), by_value);
		shift = (between[(count - 1) / 2] + between[count / 2]) / 2;
	}
	memcpy(d->pool, a, d->n * sizeof(*a));
	for (size_t k = 0; k < d->m; k++)
		d->pool[d->n + k] = b[k] - shift;
	qsort(d->pool, d->n + d->m, sizeof(*d->pool), by_value);
}

/* Advances to the next choice of n places in ascending order; false after the last one. */
static bool next_way(uint8_t *way, size_t n, size_t all)
{
	for (size_t i = n; i-- > 0;) {
		if (way[i] == all - n + i)
			continue;
		way[i]++;
		for (size_t k = i + 1; k < n; k++)
			way[k] = (uint8_t)(way[k - 1] + 1);
		return true;
	}
	return false;
}

static void fill_ways(struct drawing *d)
{
	size_t all = d->n + d->m;
	uint8_t places[RUNS_DRAWN] = { 0 };

	d->every_way = stat_ways(d->n, d->m) <= WAYS_TRIED;
	for (size_t i = 0; i < all; i++)
		places[i] = (uint8_t)i;
	if (d->every_way) {
		do
			memcpy(d->ways[d->way_count++], places, d->n);
		while (next_way(places, d->n, all));
		return;
	}
	for (; d->way_count < WAYS_TRIED; d->way_count++)
		for (size_t i = 0; i < d->n; i++) {
			size_t other = i + stat_random(&d->random, all - i);
			uint8_t place = places[other];

			places[other] = places[i];
			places[i] = place;
			d->ways[d->way_count][i] = place;
		}
}

static void draw_group(struct drawing *d)
{
	size_t all = d->n + d->m;

	for (size_t i = 0; i < all; i++)
		d->group[i] = d->pool[stat_random(&d->random, all)];
}

/* Returns whether the test calls the drawn group slower if each run of side b takes `change` longer. */
static bool is_seen(const struct drawing *d, double change)
{
	double values[RUNS_DRAWN], scratch[RUNS_DRAWN], total = 0, sum = 0, share, far;
	size_t all = d->n + d->m, count = d->every_way ? 0 : 1;

	for (size_t i = 0; i < all; i++)
		values[i] = d->group[i] + (i < d->n ? 0 : change);
	stat_clip(values, scratch, all);
	for (size_t i = 0; i < all; i++) {
		total += values[i];
		sum += i < d->n ? values[i] : 0;
	}
	share = total * (double)d->n / (double)all;
	far = (share - sum) * (1 - 1e-12) - 1e-15 * fabs(total);
	if (sum >= share)
		return false;
	for (size_t w = 0; w < d->way_count; w++) {
		double other = 0;

		for (size_t i = 0; i < d->n; i++)
			other += values[d->ways[w][i]];
		count += fabs(other - share) >= far;
	}
	return (double)count <= STAT_LEVEL * (double)(d->way_count + !d->every_way);
}

/* The smallest change that is seen in the drawn group. One as large as the range of the runs always is. */
static double smallest_seen(const struct drawing *d)
{
	double range = d->pool[d->n + d->m - 1] - d->pool[0], low = -range, high = 1.001 * range;

	for (int i = 0; i < HALVINGS; i++) {
		double change = (low + high) / 2;

		if (is_seen(d, change))
			high = change;
		else
			low = change;
	}
	return high;
}

/* The mean distance of neighbours, without the largest one, which may lie between two speeds: runs that were not measured lie about that far
 * outside of those that were. */
static double typical_gap(const struct drawing *d)
{
	size_t count = d->n + d->m - 1;
	double largest = 0;

	for (size_t i = 0; i < count; i++)
		largest = fmax(largest, d->pool[i + 1] - d->pool[i]);
	return (d->pool[count] - d->pool[0] - largest) / (double)(count - 1);
}

/* A few runs show less than the whole variety: the fewer they are, the more are the quantile above POWER and the distance added to it. Both were
 * found by simulation. */
static double by_drawing(const double *a, size_t n, const double *b, size_t m)
{
	struct drawing d = { .n = n, .m = m, .random = RANDOM_SEED };
	double seen[GROUPS], all = (double)(n + m);

	fill_pool(&d, a, b);
	fill_ways(&d);
	for (size_t i = 0; i < GROUPS; i++) {
		draw_group(&d);
		seen[i] = smallest_seen(&d);
	}
	qsort(seen, GROUPS, sizeof(*seen), by_value);
	return seen[(size_t)((POWER + 0.7 / all) * GROUPS)] +
	       1000 / (all * all * all) * typical_gap(&d);
}

double stat_detectable(const double *a, size_t n, const double *b, size_t m)
{
	if (n < RUNS_LEAST || m < RUNS_LEAST)
		return (double)NAN;
	if (n + m > RUNS_DRAWN)
		return by_student(stat_variance(a, n, b, m), n, m);
	return by_drawing(a, n, b, m);
}

/* As many as normal noise of the size that the drawn groups show would need. */
size_t stat_runs_needed(const double *a, size_t n, const double *b, size_t m, double change)
{
	double variance, now, scale = 1;

	if (n < 2 || m < 2 || change <= 0)
		return 0;
	variance = stat_variance(a, n, b, m);
	now = stat_detectable(a, n, b, m);
	if (!isnan(now) && variance > 0)
		scale = now / by_student(variance, n, m);
	for (size_t runs = RUNS_LEAST; runs <= 1000; runs += runs < 30 ? 1 : 10)
		if (scale * by_student(variance, runs, runs) <= change)
			return runs;
	return 0;
}
