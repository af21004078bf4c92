/*
 * clock_fit.c: offset and drift between two clocks (clock_fit.h). First a robust line is fitted
 * through the differences of the ends of collectives, and split where a clock was set. Pairs that
 * contradict this line are rejected. Each remaining pair bounds the line from above and below; the
 * region of all lines within these bounds is computed over convex hulls, so that the certain bounds
 * cost little more than sorting.
 */
#include "ranks/clock_fit.h"

#include "base/str.h"

#include <math.h>
#include <stdlib.h>

#define ROUNDS 60
#define SPLITS 48
/* with fewer points than this, each side of a cut needs only CLOCK_PAIRS_LEAST points, else 5 */
#define FEW_POINTS 20
#define FAR_PART 0.85 /* share of the pairs that lie near the line when the clock was not set */
/* a cut must reduce the distances to this share; with two settings of a clock the first cut does
 * not reduce them far */
#define CUT_GAIN 0.6
/* share of the widest range of offsets from which on a line without a drift is preferred */
#define FLAT_PART 0.5
/* estimated error as a share of the certain bounds: ends may differ systematically, which the spread does not show */
#define SKEW_PART 0.25

struct point {
	double x, y;
};

/* A straight line: y = offset + drift * x; x is counted from fitting.origin. */
struct line {
	double offset, drift;
};

struct fitting {
	struct clock_pair *pairs;
	size_t count;
	double resolution;
	int64_t origin; /* subtracted from all x values */
	int64_t base;	/* subtracted from all y values, for precision */
	struct arena arena;
	/* differences of the ends of collectives in which all members wait for all (PAIR_MUTUAL) */
	struct point *ends;
	double *scratch;
	struct point *upper, *lower;
};

static int by_end(const void *a, const void *b)
{
	const struct clock_pair *x = a, *y = b;

	return (x->b_end > y->b_end) - (x->b_end < y->b_end);
}

static int by_other_end(const void *a, const void *b)
{
	const struct clock_pair *x = a, *y = b;

	return (x->a_end > y->a_end) - (x->a_end < y->a_end);
}

static int by_number(const void *a, const void *b)
{
	const double *x = a, *y = b;

	return (*x > *y) - (*x < *y);
}

static int by_x(const void *a, const void *b)
{
	const struct point *p = a, *q = b;

	if (p->x != q->x)
		return p->x < q->x ? -1 : 1;
	return (p->y > q->y) - (p->y < q->y);
}

static double quantile(double *values, size_t count, double part)
{
	if (!count)
		return 0;
	qsort(values, count, sizeof(*values), by_number);
	return values[MIN(count - 1, (size_t)(part * (double)count))];
}

static double y_at(const struct line *l, double x)
{
	return l->offset + l->drift * x;
}

static double slope_of(const struct fitting *f, const struct point *p, size_t n)
{
	size_t half = n / 2, slopes = 0;

	if (n < 6)
		return 0;
	for (size_t i = 0; i + half < n; i++) {
		double dx = p[i + half].x - p[i].x;

		if (dx > 0)
			f->scratch[slopes++] = (p[i + half].y - p[i].y) / dx;
	}
	return slopes ? quantile(f->scratch, slopes, 0.5) : 0;
}

static double offset_of(const struct fitting *f, const struct point *p, size_t n, double drift)
{
	for (size_t i = 0; i < n; i++)
		f->scratch[i] = p[i].y - drift * p[i].x;
	return quantile(f->scratch, n, 0.5);
}

/* A quantile of the distances of the points from the line. */
static double spread(const struct fitting *f, const struct point *p, size_t n, const struct line *l,
		     double part)
{
	for (size_t i = 0; i < n; i++)
		f->scratch[i] = fabs(p[i].y - y_at(l, p[i].x));
	return quantile(f->scratch, n, part);
}

/* Improves a line by a few rounds of weighted least squares; the weight of a point falls with
 * its distance. */
static struct line refine(const struct fitting *f, const struct point *p, size_t n, struct line l)
{
	for (unsigned round = 0; round < 8 && n >= 6; round++) {
		double scale = 1.5 * spread(f, p, n, &l, 0.5) + 1, w = 0, wx = 0, wy = 0, wxx = 0,
		       wxy = 0, det;

		for (size_t i = 0; i < n; i++) {
			double away = fabs(p[i].y - y_at(&l, p[i].x)),
			       weight = away <= scale ? 1 : scale / away * (away < 6 * scale);

			w += weight;
			wx += weight * p[i].x;
			wy += weight * p[i].y;
			wxx += weight * p[i].x * p[i].x;
			wxy += weight * p[i].x * p[i].y;
		}
		det = w * wxx - wx * wx;
		if (w <= 0 || det <= 1e-9 * w * wxx)
			break;
		l.drift = (w * wxy - wx * wy) / det;
		l.offset = (wy - l.drift * wx) / w;
	}
	return l;
}

static struct line robust_line(const struct fitting *f, const struct point *p, size_t n)
{
	struct line l = { 0, slope_of(f, p, n) };

	l.drift = fmin(fmax(l.drift, -CLOCK_DRIFT_MOST), CLOCK_DRIFT_MOST);
	l.offset = offset_of(f, p, n, l.drift);
	l = refine(f, p, n, l);
	if (fabs(l.drift) > CLOCK_DRIFT_MOST) {
		l.drift = copysign(CLOCK_DRIFT_MOST, l.drift);
		l.offset = offset_of(f, p, n, l.drift);
	}
	return l;
}

/* The most likely line. It has a drift only if the drift explains a good part of the
 * differences: in a short recording noise looks like drift. */
static struct line likely_line(const struct fitting *f, const struct point *p, size_t n)
{
	struct line l = robust_line(f, p, n), flat = { offset_of(f, p, n, 0), 0 };

	return spread(f, p, n, &l, 0.5) < 0.8 * spread(f, p, n, &flat, 0.5) ? l : flat;
}

static double summed_away(const struct fitting *f, const struct point *p, size_t n)
{
	struct line l = robust_line(f, p, n);
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += fabs(p[i].y - y_at(&l, p[i].x));
	return sum;
}

/* The median change from one difference of ends to the next: noise, because setting a clock
 * changes one difference only. */
static double step_noise(const struct fitting *f, const struct point *p, size_t n)
{
	for (size_t i = 0; i + 1 < n; i++)
		f->scratch[i] = fabs(p[i + 1].y - p[i].y);
	return n > 1 ? quantile(f->scratch, n - 1, 0.5) : 0;
}

/* The index at which points are split because the clock was set there; 0 when one line is good
 * enough. */
static size_t find_cut(const struct fitting *f, const struct point *p, size_t n)
{
	double whole, best, noise = step_noise(f, p, n);
	struct line l;
	size_t cut = 0, low, high, least = n < FEW_POINTS ? CLOCK_PAIRS_LEAST : 5;

	if (n < 2 * CLOCK_PAIRS_LEAST + 2)
		return 0;
	l = robust_line(f, p, n);
	if (spread(f, p, n, &l, FAR_PART) < 4 * noise + 5 * f->resolution + 2000)
		return 0;
	whole = best = summed_away(f, p, n);
	low = least;
	high = n - least;
	for (unsigned round = 0; round < 3; round++) {
		size_t stride = MAX((high - low) / SPLITS, 1u);

		for (size_t k = low; k <= high; k += stride) {
			double sum = summed_away(f, p, k) + summed_away(f, p + k, n - k);

			if (sum < best) {
				best = sum;
				cut = k;
			}
		}
		if (!cut || stride == 1)
			break;
		low = cut > stride + least ? cut - stride : least;
		high = MIN(cut + stride, n - least);
	}
	return best < CUT_GAIN * whole ? cut : 0;
}

static double cross(struct point o, struct point a, struct point b)
{
	return (a.x - o.x) * (b.y - o.y) - (a.y - o.y) * (b.x - o.x);
}

/* Replaces points, which are sorted by x, by their convex hull from below (sign 1) or above
 * (-1); returns how many are left. */
static size_t hull(struct point *p, size_t n, double sign)
{
	size_t kept = 0;

	if (n)
		qsort(p, n, sizeof(*p), by_x);
	for (size_t i = 0; i < n; i++) {
		while (kept >= 2 && sign * cross(p[kept - 2], p[kept - 1], p[i]) <= 0)
			kept--;
		p[kept++] = p[i];
	}
	return kept;
}

struct region {
	const struct point *upper, *lower;
	size_t upper_count, lower_count;
};

/* The highest (and below: the lowest) offset that a line with this drift may have. */
static double highest(const struct region *r, double drift)
{
	double least = HUGE_VAL;

	for (size_t i = 0; i < r->upper_count; i++)
		least = fmin(least, r->upper[i].y - drift * r->upper[i].x);
	return least;
}

static double lowest(const struct region *r, double drift)
{
	double most = -HUGE_VAL;

	for (size_t i = 0; i < r->lower_count; i++)
		most = fmax(most, r->lower[i].y - drift * r->lower[i].x);
	return most;
}

static double offset_range(const struct region *r, double drift)
{
	return highest(r, drift) - lowest(r, drift);
}

/* Returns the drift that leaves the widest range of offsets; the width is concave in the drift. */
static double drift_with_widest_range(const struct region *r)
{
	double a = -CLOCK_DRIFT_MOST, b = CLOCK_DRIFT_MOST;

	for (unsigned i = 0; i < ROUNDS; i++) {
		double left = a + (b - a) / 3, right = b - (b - a) / 3;

		if (offset_range(r, left) < offset_range(r, right))
			a = left;
		else
			b = right;
	}
	return (a + b) / 2;
}

/* Searches the last drift with possible offsets, between a possible drift (`good`) and an
 * impossible one (`other`). */
static double edge(const struct region *r, double good, double other)
{
	if (offset_range(r, other) >= 0)
		return other;
	for (unsigned i = 0; i < ROUNDS; i++) {
		double middle = (good + other) / 2;

		if (offset_range(r, middle) >= 0)
			good = middle;
		else
			other = middle;
	}
	return other; /* just outside of the possible drifts, so that none is left out */
}

static double extreme(const struct region *r, double a, double b, bool high)
{
	for (unsigned i = 0; i < ROUNDS; i++) {
		double left = a + (b - a) / 3, right = b - (b - a) / 3;
		double l = high ? highest(r, left) : -lowest(r, left),
		       h = high ? highest(r, right) : -lowest(r, right);

		if (l < h)
			a = left;
		else
			b = right;
	}
	return high ? highest(r, (a + b) / 2) : lowest(r, (a + b) / 2);
}

static struct point upper_of(const struct fitting *f, const struct clock_pair *p)
{
	return (struct point){ (double)(p->b_start - f->origin),
			       (double)(p->a_end - p->b_start - f->base) + f->resolution };
}

static struct point lower_of(const struct fitting *f, const struct clock_pair *p)
{
	return (struct point){ (double)(p->b_end - f->origin),
			       (double)(p->a_start - p->b_end - f->base) - f->resolution };
}

/* How far a pair contradicts a line; negative when it does not. */
static double contradiction(const struct fitting *f, const struct clock_pair *p,
			    const struct line *l)
{
	double worst = -HUGE_VAL;

	if (p->direction != PAIR_A_TO_B) {
		struct point u = upper_of(f, p);

		worst = fmax(worst, y_at(l, u.x) - u.y);
	}
	if (p->direction != PAIR_B_TO_A) {
		struct point b = lower_of(f, p);

		worst = fmax(worst, b.y - y_at(l, b.x));
	}
	return worst;
}

static struct region make_region(struct fitting *f, size_t first, size_t end)
{
	struct region r = { f->upper, f->lower, 0, 0 };

	for (size_t i = first; i < end; i++) {
		const struct clock_pair *p = &f->pairs[i];

		if (p->rejected)
			continue;
		if (p->direction != PAIR_A_TO_B)
			f->upper[r.upper_count++] = upper_of(f, p);
		if (p->direction != PAIR_B_TO_A)
			f->lower[r.lower_count++] = lower_of(f, p);
	}
	r.upper_count = hull(f->upper, r.upper_count, 1);
	r.lower_count = hull(f->lower, r.lower_count, -1);
	return r;
}

/* Rejects the pair that contradicts the line most; false when no pair contradicts it. */
static bool reject_worst(struct fitting *f, size_t first, size_t end, const struct line *l,
			 size_t *rejected)
{
	struct clock_pair *worst = NULL;
	double most = -HUGE_VAL;

	for (size_t i = first; i < end; i++) {
		double away = f->pairs[i].rejected ? -HUGE_VAL : contradiction(f, &f->pairs[i], l);

		if (away > most) {
			most = away;
			worst = &f->pairs[i];
		}
	}
	if (!worst)
		return false;
	worst->rejected = true;
	++*rejected;
	return true;
}

static void bound(const struct region *r, double best, struct clock_span *s, struct line *l)
{
	double a = edge(r, best, -CLOCK_DRIFT_MOST), b = edge(r, best, CLOCK_DRIFT_MOST);

	s->high = extreme(r, a, b, true);
	s->low = extreme(r, a, b, false);
	l->drift = fmin(fmax(l->drift, a), b);
	l->offset = fmin(fmax(l->offset, lowest(r, l->drift)), highest(r, l->drift));
}

/* The median distance from a line of the ends of messages in one direction; *count is the number
 * of these messages. */
static double end_distance(const struct fitting *f, size_t first, size_t end, uint8_t direction,
			   const struct line *l, size_t *count)
{
	*count = 0;
	for (size_t i = first; i < end; i++) {
		const struct clock_pair *p = &f->pairs[i];

		if (!p->rejected && p->direction == direction)
			f->scratch[(*count)++] = (double)(p->a_end - p->b_end - f->base) -
						 y_at(l, (double)(p->b_end - f->origin));
	}
	return quantile(f->scratch, *count, 0.5);
}

/*
 * Fits a line through the ends of messages, if both sides of a message end together, as with NCCL:
 * then the ends of both directions lie on one line. If senders do not wait for the receiver, their
 * ends come earlier and the two directions differ: the result is false, and the line is the middle
 * of the possible region.
 */
static bool message_line(const struct fitting *f, size_t first, size_t end, const struct region *r,
			 double best, struct line *l)
{
	size_t n = 0, there, back;
	double apart;

	for (size_t i = first; i < end; i++) {
		const struct clock_pair *p = &f->pairs[i];

		if (!p->rejected)
			f->ends[n++] = (struct point){ (double)(p->b_end - f->origin),
						       (double)(p->a_end - p->b_end - f->base) };
	}
	*l = likely_line(f, f->ends, n);
	apart = end_distance(f, first, end, PAIR_A_TO_B, l, &there) -
		end_distance(f, first, end, PAIR_B_TO_A, l, &back);
	return there >= CLOCK_PAIRS_LEAST && back >= CLOCK_PAIRS_LEAST &&
	       fabs(apart) <= SKEW_PART * offset_range(r, best) / 2;
}

/* Fits the pairs [first, end). Returns false, with the reason, when no line is possible. */
static bool fit_piece(struct fitting *f, size_t first, size_t end, struct clock_span *s,
		      size_t *rejected, const char **why)
{
	size_t ends = 0, most = (size_t)(CLOCK_REJECTED_MOST * (double)(end - first));
	bool up = false, down = false, robust;
	struct region r;
	struct line l = { 0, 0 };
	double best, noise = 0, slack;

	for (size_t i = first; i < end; i++) {
		const struct clock_pair *p = &f->pairs[i];

		up |= p->direction != PAIR_A_TO_B;
		down |= p->direction != PAIR_B_TO_A;
		if (p->direction == PAIR_MUTUAL)
			f->ends[ends++] = (struct point){ (double)(p->b_end - f->origin),
							  (double)(p->a_end - p->b_end - f->base) };
	}
	if (!up || !down) {
		*why = "messages go in one direction only";
		return false;
	}
	robust = ends >= CLOCK_PAIRS_LEAST;
	if (robust) {
		l = likely_line(f, f->ends, ends);
		noise = spread(f, f->ends, ends, &l, 0.9);
		slack = 2 * spread(f, f->ends, ends, &l, 0.5) + f->resolution;
		for (size_t i = first; i < end; i++)
			if (contradiction(f, &f->pairs[i], &l) > slack) {
				f->pairs[i].rejected = true;
				++*rejected;
			}
	}
	for (;;) {
		if (*rejected > most) {
			*why = "more than 20 % of the shared collectives contradict each other";
			return false;
		}
		r = make_region(f, first, end);
		if (!r.upper_count || !r.lower_count) {
			*why = "messages go in one direction only";
			return false;
		}
		best = drift_with_widest_range(&r);
		if (offset_range(&r, best) >= 0)
			break;
		if (!robust)
			l = (struct line){ (highest(&r, best) + lowest(&r, best)) / 2, best };
		if (!reject_worst(f, first, end, &l, rejected))
			return false;
	}
	if (!robust && !message_line(f, first, end, &r, best, &l)) {
		if (offset_range(&r, 0) >= FLAT_PART * offset_range(&r, best))
			best = 0; /* only the wider range speaks for a drift */
		l = (struct line){ (highest(&r, best) + lowest(&r, best)) / 2, best };
	}
	bound(&r, best, s, &l);
	s->drift = l.drift;
	s->offset = l.offset;
	s->likely = fmax(s->high - s->offset, s->offset - s->low);
	if (robust)
		s->likely =
			fmin(s->likely, noise + f->resolution + SKEW_PART * (s->high - s->low) / 2);
	return true;
}

/* The median change of the differences of ends from pair to pair. */
static double variation(const struct fitting *f)
{
	double sum = 0;

	for (size_t i = 1; i < f->count; i++) {
		const struct clock_pair *p = &f->pairs[i - 1], *q = &f->pairs[i];

		sum += fabs((double)(q->a_end - p->a_end) - (double)(q->b_end - p->b_end));
	}
	return sum;
}

/* Sorts the pairs by time. A clock that was set back has some times twice; then the other clock
 * decides. */
static void order_pairs(struct fitting *f)
{
	double sum;

	qsort(f->pairs, f->count, sizeof(*f->pairs), by_end);
	sum = variation(f);
	qsort(f->pairs, f->count, sizeof(*f->pairs), by_other_end);
	if (variation(f) >= sum)
		qsort(f->pairs, f->count, sizeof(*f->pairs), by_end);
}

static ow_status prepare(struct fitting *f, struct ow_error *err)
{
	f->ends = ARENA_ARRAY(&f->arena, struct point, f->count + 1);
	f->upper = ARENA_ARRAY(&f->arena, struct point, f->count + 1);
	f->lower = ARENA_ARRAY(&f->arena, struct point, f->count + 1);
	f->scratch = ARENA_ARRAY(&f->arena, double, f->count + 1);
	if (!f->ends || !f->upper || !f->lower || !f->scratch)
		return error_no_memory(err);
	order_pairs(f);
	f->base = f->pairs[f->count / 2].a_end - f->pairs[f->count / 2].b_end;
	return OW_OK;
}

/* Whether pairs [first, end) bound the clock from both sides. Messages in one direction and then in the other differ as if the clock had been set. */
static bool goes_both_ways(const struct fitting *f, size_t first, size_t end)
{
	bool up = false, down = false;

	for (size_t i = first; i < end; i++) {
		up |= f->pairs[i].direction != PAIR_A_TO_B;
		down |= f->pairs[i].direction != PAIR_B_TO_A;
	}
	return up && down;
}

/* Finds the places in [first, end) at which the clock was set; `cuts` has room for
 * CLOCK_PIECES_MOST + 1. */
static unsigned find_cuts(struct fitting *f, size_t *cuts)
{
	unsigned pieces = 1;

	cuts[0] = 0;
	cuts[1] = f->count;
	for (unsigned i = 0; i < pieces && pieces < CLOCK_PIECES_MOST;) {
		size_t n = 0, cut;
		struct point *p = f->ends;

		for (size_t k = cuts[i]; k < cuts[i + 1]; k++) {
			const struct clock_pair *pair = &f->pairs[k];

			/* Messages are included: their ends differ more, so that only larger
			 * settings of the clock are found. */
			p[n++] = (struct point){ (double)(pair->b_end - f->origin),
						 (double)(pair->a_end - pair->b_end - f->base) };
		}
		cut = find_cut(f, p, n);
		if (!cut || !goes_both_ways(f, cuts[i], cuts[i] + cut) ||
		    !goes_both_ways(f, cuts[i] + cut, cuts[i + 1])) {
			i++;
			continue;
		}
		memmove(&cuts[i + 2], &cuts[i + 1], (pieces - i) * sizeof(*cuts));
		cuts[i + 1] = cuts[i] + cut;
		pieces++;
	}
	return pieces;
}

/* The moment at which the clock was set lies between two pairs. A clock that was set back has the
 * times around that moment twice. If the origin is among these times, either line may hold at the
 * origin.
 */
static void widen_gaps(const struct fitting *f, struct clock_fit *fit)
{
	for (unsigned i = 0; i + 1 < fit->span_count; i++) {
		struct clock_span *s = &fit->spans[i], *next = s + 1;
		bool between = f->origin > MIN(s->until, next->from) &&
			       f->origin < MAX(s->until, next->from);

		if (!between)
			continue;
		s->low = next->low = fmin(s->low, next->low);
		s->high = next->high = fmax(s->high, next->high);
		s->likely = fmax(s->high - s->offset, s->offset - s->low);
		next->likely = fmax(next->high - next->offset, next->offset - next->low);
	}
}

static void fit_pieces(struct fitting *f, struct clock_fit *fit)
{
	size_t cuts[CLOCK_PIECES_MOST + 2], rejected = 0;
	unsigned pieces = find_cuts(f, cuts);

	for (unsigned i = 0; i < pieces; i++) {
		struct clock_span *s = &fit->spans[i];
		size_t mine = 0;

		for (size_t k = cuts[i]; k < cuts[i + 1]; k++)
			f->pairs[k].piece = (uint8_t)i;
		s->from = i ? f->pairs[cuts[i]].b_start : INT64_MIN;
		if (i > 1)
			s->from = MAX(s->from, fit->spans[i - 1].from);
		s->origin = f->origin;
		s->until = f->pairs[cuts[i + 1] - 1].b_end;
		if (cuts[i + 1] - cuts[i] < CLOCK_PAIRS_LEAST) {
			fit->why = "fewer than 3 shared collectives";
			return;
		}
		if (!fit_piece(f, cuts[i], cuts[i + 1], s, &mine, &fit->why)) {
			fit->rejected = rejected + mine;
			fit->contradicts = (double)mine >
					   CLOCK_REJECTED_MOST * (double)(cuts[i + 1] - cuts[i]);
			return;
		}
		s->offset += (double)f->base;
		s->low += (double)f->base;
		s->high += (double)f->base;
		rejected += mine;
	}
	fit->rejected = rejected;
	fit->used = f->count - rejected;
	fit->span_count = pieces;
	widen_gaps(f, fit);
}

ow_status clock_fit(struct clock_pair *pairs, size_t count, int64_t resolution_ns, int64_t middle,
		    struct mem *mem, struct clock_fit *fit, struct ow_error *err)
{
	struct fitting f = { .pairs = pairs,
			     .count = count,
			     .resolution = (double)resolution_ns,
			     .origin = middle };
	ow_status status;

	*fit = (struct clock_fit){ 0 };
	if (count < CLOCK_PAIRS_LEAST) {
		fit->why = count ? "fewer than 3 shared collectives" : "no shared collective";
		return OW_OK;
	}
	arena_init(&f.arena, mem);
	status = prepare(&f, err);
	if (status == OW_OK)
		fit_pieces(&f, fit);
	arena_release(&f.arena);
	return status;
}
