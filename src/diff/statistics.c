/*
 * statistics.c: tests and intervals for two small groups of runs (statistics.h). Called by diff.c. It works on numbers
 * and does not know what they stand for.
 */
#include "diff/statistics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WAYS_MOST 100000u
/* with this many random permutations, a probability of 5 % is known to ± 0.3 % */
#define WAYS_DRAWN 20000u
#define LIST_MOST 1024u
/* Values that lie more than this many robust deviations from the median count as that far. */
#define CLIP 3
/* The standard deviation of a normal distribution, divided by its median absolute deviation. */
#define NORMAL_DEVIATION 1.4826
/* The probability outside of the interval of the means: smaller than STAT_LEVEL, because runs are few and their noise is
 * skewed or has two modes. */
#define MEANS_LEVEL 0.04
#define SURE_LEVEL 0.02

size_t stat_random(uint64_t *state, size_t below)
{
	*state ^= *state << 13;
	*state ^= *state >> 7;
	*state ^= *state << 17;
	return (size_t)((*state >> 32) * below >> 32);
}

double stat_mean(const double *x, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += x[i];
	return n ? sum / (double)n : 0;
}

static double squares(const double *x, size_t n)
{
	double mean = stat_mean(x, n), sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += (x[i] - mean) * (x[i] - mean);
	return sum;
}

/* The continued fraction of the incomplete beta function, by Lentz's method. */
static double beta_fraction(double a, double b, double x)
{
	double c = 1, d = 1 - (a + b) * x / (a + 1), result;

	d = 1 / (fabs(d) < 1e-300 ? 1e-300 : d);
	result = d;
	for (int i = 1; i < 300; i++) {
		double even = i * (b - i) * x / ((a + 2 * i - 1) * (a + 2 * i));
		double odd = -(a + i) * (a + b + i) * x / ((a + 2 * i) * (a + 2 * i + 1));

		d = 1 / (1 + even * d);
		c = 1 + even / c;
		result *= d * c;
		d = 1 / (1 + odd * d);
		c = 1 + odd / c;
		result *= d * c;
		if (fabs(d * c - 1) < 1e-13)
			break;
	}
	return result;
}

static double beta_regular(double a, double b, double x)
{
	double front;

	if (x <= 0 || x >= 1)
		return x <= 0 ? 0 : 1;
	front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log1p(-x));
	if (x < (a + 1) / (a + b + 2))
		return front * beta_fraction(a, b, x) / a;
	return 1 - front * beta_fraction(b, a, 1 - x) / b;
}

static double student_below(double t, double degrees)
{
	double tail = beta_regular(degrees / 2, 0.5, degrees / (degrees + t * t)) / 2;

	return t > 0 ? 1 - tail : tail;
}

double student_quantile(double p, double degrees)
{
	double low = -1e6, high = 1e6;

	for (int i = 0; i < 120; i++) {
		double middle = (low + high) / 2;

		if (student_below(middle, degrees) < p)
			low = middle;
		else
			high = middle;
	}
	return (low + high) / 2;
}

static int by_value(const void *x, const void *y)
{
	double a = *(const double *)x, b = *(const double *)y;

	return (a > b) - (a < b);
}

static double middle(const double *sorted, size_t n)
{
	return (sorted[(n - 1) / 2] + sorted[n / 2]) / 2;
}

void stat_clip(double *x, double *sorted, size_t n)
{
	double median, far;

	memcpy(sorted, x, n * sizeof(*x));
	qsort(sorted, n, sizeof(*x), by_value);
	median = middle(sorted, n);
	for (size_t i = 0; i < n; i++)
		sorted[i] = fabs(sorted[i] - median);
	qsort(sorted, n, sizeof(*x), by_value);
	far = CLIP * NORMAL_DEVIATION * middle(sorted, n);
	if (far <= 0) /* more than half of the values are equal */
		return;
	for (size_t i = 0; i < n; i++)
		x[i] = fmin(fmax(x[i], median - far), median + far);
}

double stat_variance(const double *a, size_t n, const double *b, size_t m)
{
	return n + m < 3 ? 0 : (squares(a, n) + squares(b, m)) / (double)(n + m - 2);
}

/* The interval of the difference of means: the wider one of Welch's interval and Student's with one variance. Welch's
 * alone is too narrow when the smaller side has by chance no run of a slow mode: with 4 against 10 runs and a slow mode
 * in a quarter of them it contains the true value in 93 % of the cases.
 */
static struct shift means_at(double level, const double *a, size_t n, const double *b, size_t m)
{
	struct shift s = { stat_mean(b, m) - stat_mean(a, n), (double)NAN, (double)NAN };
	double va, vb, error, degrees, same;

	if (n < 2 || m < 2)
		return s;
	va = squares(a, n) / (double)(n - 1) / (double)n;
	vb = squares(b, m) / (double)(m - 1) / (double)m;
	s.low = s.high = s.estimate;
	if (va + vb <= 0)
		return s;
	degrees = (va + vb) * (va + vb) / (va * va / (double)(n - 1) + vb * vb / (double)(m - 1));
	error = student_quantile(1 - level / 2, degrees) * sqrt(va + vb);
	same = student_quantile(1 - level / 2, (double)(n + m - 2)) *
	       sqrt(stat_variance(a, n, b, m) * (1 / (double)n + 1 / (double)m));
	s.low -= fmax(error, same);
	s.high += fmax(error, same);
	return s;
}

struct shift stat_means(const double *a, size_t n, const double *b, size_t m)
{
	return means_at(MEANS_LEVEL, a, n, b, m);
}

struct shift stat_means_surely(const double *a, size_t n, const double *b, size_t m)
{
	return means_at(SURE_LEVEL, a, n, b, m);
}

double stat_ways(size_t n, size_t m)
{
	double count = 1;

	for (size_t i = 1; i <= n; i++)
		count = count * (double)(m + i) / (double)i;
	return count;
}

struct shuffle {
	double *values; /* of both sides, those of side a first */
	size_t n, all;
	/* permutations whose sum of side a is at least this far from the expected sum are counted */
	double limit, share;
	uint64_t far, ways;
};

static void count_one(struct shuffle *s, double sum)
{
	s->ways++;
	if (fabs(sum - s->share) >= s->limit)
		s->far++;
}

/* Tries each way to choose `left` more values, from index `from` on. */
static void choose_all(struct shuffle *s, size_t from, size_t left, double sum)
{
	if (!left) {
		count_one(s, sum);
		return;
	}
	for (size_t i = from; i + left <= s->all; i++)
		choose_all(s, i + 1, left - 1, sum + s->values[i]);
}

/* Draws the runs of one side at random: the first places of a shuffled list. A fixed seed gives the same answer for
 * the same numbers. */
static void choose_some(struct shuffle *s)
{
	uint64_t state = RANDOM_SEED;

	for (uint32_t way = 0; way < WAYS_DRAWN; way++) {
		double sum = 0;

		for (size_t i = 0; i < s->n; i++) {
			size_t other = i + stat_random(&state, s->all - i);
			double value = s->values[other];

			s->values[other] = s->values[i];
			s->values[i] = value;
			sum += value;
		}
		count_one(s, sum);
	}
	/* the measured grouping is one of the permutations */
	s->far++;
	s->ways++;
}

static double by_student(const double *a, size_t n, const double *b, size_t m)
{
	double error = sqrt(stat_variance(a, n, b, m) * (1 / (double)n + 1 / (double)m));
	double far = fabs(stat_mean(b, m) - stat_mean(a, n));

	if (error <= 0)
		return far > 0 ? 0 : 1;
	return 2 * student_below(-far / error, (double)(n + m - 2));
}

double stat_permutation(const double *a, size_t n, const double *b, size_t m)
{
	double values[LIST_MOST], scratch[LIST_MOST];
	struct shuffle s = { .values = values, .n = n, .all = n + m };
	double total, sum;

	if (!n || !m)
		return 1;
	if (s.all > LIST_MOST) /* with this many runs the means are normally distributed */
		return by_student(a, n, b, m);
	memcpy(values, a, n * sizeof(*a));
	memcpy(values + n, b, m * sizeof(*b));
	stat_clip(values, scratch, s.all);
	sum = stat_mean(values, n) * (double)n;
	total = sum + stat_mean(values + n, m) * (double)m;
	s.share = total * (double)n / (double)s.all;
	s.limit = fabs(sum - s.share) * (1 - 1e-12) - 1e-15 * fabs(total);
	if (stat_ways(n, m) <= WAYS_MOST)
		choose_all(&s, 0, n, 0);
	else
		choose_some(&s);
	return (double)s.far / (double)s.ways;
}

/* The number of the smallest differences that lie outside of the interval: the largest k with P(U < k) <= 2.5 %. */
static size_t outside(struct mem *mem, size_t n, size_t m)
{
	size_t most = n * m, k = 0;
	double below = 0, all = stat_ways(n, m);
	double *counts;

	if (most > 4000) {
		double spread = sqrt((double)(n * m) * (double)(n + m + 1) / 12);

		return (size_t)fmax(0, (double)most / 2 - 1.959964 * spread);
	}
	counts = mem_zalloc(mem, (most + 1) * sizeof(*counts));
	if (!counts)
		return 0;
	/* The number of ways to get each U: a product of (1 - q^(m+i)) / (1 - q^i). */
	counts[0] = 1;
	for (size_t i = 1; i <= n; i++) {
		for (size_t u = most; u + 1 > m + i; u--)
			counts[u] -= counts[u - m - i];
		for (size_t u = i; u <= most; u++)
			counts[u] += counts[u - i];
	}
	while (k <= most / 2 && below + counts[k] <= STAT_LEVEL / 2 * all)
		below += counts[k++];
	mem_free(mem, counts, (most + 1) * sizeof(*counts));
	return k;
}

bool stat_hodges_lehmann(struct mem *mem, const double *a, size_t n, const double *b, size_t m,
			 struct shift *out)
{
	size_t count = n * m, cut;
	double *all = count ? mem_alloc(mem, count * sizeof(*all)) : NULL;

	*out = (struct shift){ (double)NAN, (double)NAN, (double)NAN };
	if (!count)
		return true;
	if (!all)
		return false;
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < m; k++)
			all[i * m + k] = b[k] - a[i];
	qsort(all, count, sizeof(*all), by_value);
	out->estimate = (all[(count - 1) / 2] + all[count / 2]) / 2;
	if (n >= 2 && m >= 2) {
		cut = outside(mem, n, m);
		cut = cut ? cut - 1 : 0;
		out->low = all[cut];
		out->high = all[count - 1 - cut];
	}
	mem_free(mem, all, count * sizeof(*all));
	return true;
}

struct ranked {
	double p;
	size_t place;
};

static int by_probability(const void *x, const void *y)
{
	const struct ranked *a = x, *b = y;

	return (a->p > b->p) - (a->p < b->p);
}

bool stat_adjust(struct mem *mem, double *p, size_t n)
{
	struct ranked *order = n ? mem_alloc(mem, n * sizeof(*order)) : NULL;
	double least = 1;

	if (!n)
		return true;
	if (!order)
		return false;
	for (size_t i = 0; i < n; i++)
		order[i] = (struct ranked){ p[i], i };
	qsort(order, n, sizeof(*order), by_probability);
	for (size_t i = n; i-- > 0;) {
		least = fmin(least, order[i].p * (double)n / (double)(i + 1));
		p[order[i].place] = least;
	}
	mem_free(mem, order, n * sizeof(*order));
	return true;
}
