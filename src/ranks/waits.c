/*
 * waits.c: splits each collective into waiting for the last worker and moving data (ranks.h), for each worker and step,
 * and measures how fast data moves. The two parts sum to the collective exactly. Clocks must be fitted before; if their
 * error is larger than the waits, no waits are reported.
 */
#include "ranks/ranks.h"

#include "base/vec.h"

#include <math.h>
#include <stdlib.h>

#define TOGETHER_NS 20000
#define TOGETHER_PART 0.005
/* waits are unknown if a larger share of the time in collectives cannot be split */
#define UNKNOWN_MOST 0.05

struct arrival {
	int64_t first_ns, last_ns; /* first and last start of the members, on the reference clock */
	int64_t first_end_ns, least_ns;
	/* start of the member that the others wait for; TIME_UNKNOWN = all members wait for all */
	int64_t root_ns;
};

static struct collective *collective_of(struct ranks_job *job, const struct member *m)
{
	return &job->workers[m->worker].collectives[m->collective];
}

/* Reads the starts and ends of a meeting's members; false if some member's clock is unknown. */
static bool read_arrivals(struct ranks_job *job, const struct meeting *m, struct arrival *a)
{
	*a = (struct arrival){ INT64_MAX, INT64_MIN, INT64_MAX, INT64_MAX, TIME_UNKNOWN };
	for (uint32_t i = 0; i < m->count; i++) {
		const struct member *member = &job->members[m->first + i];
		const struct worker *w = &job->workers[member->worker];
		const struct collective *c = collective_of(job, member);
		int64_t start, end;

		if (!w->has_clock)
			return false;
		start = worker_time(w, c->start_ns);
		end = worker_time(w, c->end_ns);
		a->first_ns = MIN(a->first_ns, start);
		a->last_ns = MAX(a->last_ns, start);
		a->first_end_ns = MIN(a->first_end_ns, end);
		a->least_ns = MIN(a->least_ns, c->end_ns - c->start_ns);
		if (m->kind == COLLECTIVE_BROADCAST && c->peer >= 0 && c->peer == w->rank)
			a->root_ns = start;
	}
	return true;
}

/* Whether the members' times contradict each other by more than the error of the clocks. */
static bool is_contradiction(struct ranks_job *job, const struct meeting *m,
			     const struct arrival *a)
{
	int64_t error = 1000;

	for (uint32_t i = 0; i < m->count; i++) {
		const struct worker *w = &job->workers[job->members[m->first + i].worker];

		error = MAX(error,
			    span_add(span_add(w->likely_ns, w->likely_ns), w->resolution_ns));
	}
	if (!collective_is_mutual(m->kind))
		return false;
	return a->last_ns > span_add(a->first_end_ns, error);
}

/* The time that a collective of a group takes after the last of its members has come. */
struct usual {
	uint64_t key;
	int64_t ns;
};

static int by_usual(const void *a, const void *b)
{
	const struct usual *x = a, *y = b;

	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return (x->ns > y->ns) - (x->ns < y->ns);
}

static uint64_t usual_key(struct ranks_job *job, const struct meeting *m)
{
	const struct collective *c = collective_of(job, &job->members[m->first]);

	return ranks_pair_look(c) * 31 + m->group;
}

/* The median of the entries with this key in a sorted list; -1 if there are none. */
static int64_t usual_median(const struct usual *all, size_t count, uint64_t key)
{
	size_t low = 0, high = count, end;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (all[middle].key < key)
			low = middle + 1;
		else
			high = middle;
	}
	for (end = low; end < count && all[end].key == key;)
		end++;
	return end > low ? all[low + (end - low) / 2].ns : -1;
}

/*
 * Handles a collective that is missing in the recording of some member, which may have come last. Its transfer is
 * assumed to be at most as long as in collectives of the same group and size with all members known.
 */
static ow_status time_incomplete(struct ranks_job *job, struct ow_error *err)
{
	struct usual *all = ARENA_ARRAY(&job->arena, struct usual, job->meeting_count + 1);
	size_t count = 0;
	struct arrival a;

	if (!all)
		return error_no_memory(err);
	for (size_t i = 0; i < job->meeting_count; i++) {
		const struct meeting *m = &job->meetings[i];

		if (m->complete && !m->rejected && m->last_ns != TIME_UNKNOWN &&
		    collective_is_mutual(m->kind) && read_arrivals(job, m, &a))
			all[count++] =
				(struct usual){ usual_key(job, m), a.first_end_ns - a.last_ns };
	}
	if (count)
		qsort(all, count, sizeof(*all), by_usual);
	for (size_t i = 0; i < job->meeting_count && count; i++) {
		struct meeting *m = &job->meetings[i];
		int64_t usual;

		if (m->complete || m->rejected || m->last_ns == TIME_UNKNOWN ||
		    !collective_is_mutual(m->kind) || !read_arrivals(job, m, &a))
			continue;
		usual = usual_median(all, count, usual_key(job, m));
		if (usual >= 0)
			m->last_ns = MAX(m->last_ns, a.first_end_ns - usual);
	}
	return OW_OK;
}

static ow_status time_meetings(struct ranks_job *job, uint64_t *checked, uint64_t *rejected,
			       struct ow_error *err)
{
	for (size_t i = 0; i < job->meeting_count; i++) {
		struct meeting *m = &job->meetings[i];
		struct arrival a;

		if (!read_arrivals(job, m, &a))
			continue;
		++*checked;
		m->rejected = is_contradiction(job, m, &a);
		*rejected += m->rejected;
		m->last_ns = m->kind == COLLECTIVE_BROADCAST ? a.root_ns : a.last_ns;
		m->together = (double)span_length(a.first_ns, a.last_ns) <=
			      TOGETHER_NS + TOGETHER_PART * (double)a.least_ns;
	}
	return time_incomplete(job, err);
}

int64_t ranks_wait(const struct worker *w, const struct collective *c, const struct meeting *m)
{
	int64_t wait;

	if (m->last_ns == TIME_UNKNOWN)
		return 0;
	wait = span_length(worker_time(w, c->start_ns), m->last_ns);
	return MIN(wait, c->end_ns - c->start_ns);
}

/* Whether a collective can be split into wait and transfer: not without a partner whose clock is known. */
static bool is_split(const struct ranks_job *job, const struct collective *c)
{
	return c->meeting && !job->meetings[c->meeting - 1].rejected &&
	       job->meetings[c->meeting - 1].last_ns != TIME_UNKNOWN;
}

static void set_unknown_waits(struct worker *w, double known, double unknown)
{
	w->waits_unknown = unknown > UNKNOWN_MOST * (known + unknown);
}

/* Adds the parts of a span to those of a step. */
static void count_spans(const struct span_list *list, int64_t *sum)
{
	for (size_t i = 0; i < list->count; i++)
		*sum = span_add(*sum, list->items[i].end - list->items[i].begin);
}

/* A task receives many tensors at once. A moment in which any of them moves is transfer, every other moment of its receives is waiting. */
static ow_status split_task_step(struct ranks_job *job, struct worker *w, struct worker_step *step,
				 double *known, double *unknown, struct ow_error *err)
{
	struct span_list all = { 0 }, moving = { 0 };
	int64_t both = 0;
	bool good = true;

	for (size_t i = 0; i < w->collective_count && good; i++) {
		const struct collective *c = &w->collectives[i];
		int64_t wait;

		if (c->step != step->number)
			continue;
		if (step->compared)
			*(is_split(job, c) ? known : unknown) += (double)(c->end_ns - c->start_ns);
		wait = is_split(job, c) ? ranks_wait(w, c, &job->meetings[c->meeting - 1]) : 0;
		good = spans_add(&all, job->mem, c->start_ns, c->end_ns) &&
		       spans_add(&moving, job->mem, c->start_ns + wait, c->end_ns);
	}
	good = good && spans_finish(&all, job->mem) && spans_finish(&moving, job->mem);
	if (good) {
		count_spans(&all, &both);
		count_spans(&moving, &step->transfer_ns);
		step->wait_ns = both - step->transfer_ns;
	}
	spans_release(&all, job->mem);
	spans_release(&moving, job->mem);
	return good ? OW_OK : error_no_memory(err);
}

static ow_status split_task(struct ranks_job *job, struct worker *w, struct ow_error *err)
{
	double known = 0, unknown = 0;

	for (size_t s = 0; s < w->step_count; s++)
		OW_TRY(split_task_step(job, w, &w->steps[s], &known, &unknown, err));
	set_unknown_waits(w, known, unknown);
	return OW_OK;
}

static void split_worker(struct ranks_job *job, struct worker *w)
{
	double known = 0, unknown = 0;

	for (size_t i = 0; i < w->collective_count; i++) {
		const struct collective *c = &w->collectives[i];
		struct worker_step *step = c->step == NO_STEP ? NULL : worker_step_of(w, c->step);
		int64_t wait = 0;

		if (!step)
			continue;
		if (is_split(job, c))
			wait = ranks_wait(w, c, &job->meetings[c->meeting - 1]);
		if (step->compared)
			*(is_split(job, c) ? &known : &unknown) +=
				(double)(c->end_ns - c->start_ns);
		step->wait_ns = span_add(step->wait_ns, wait);
		step->transfer_ns = span_add(step->transfer_ns, c->end_ns - c->start_ns - wait);
	}
	set_unknown_waits(w, known, unknown);
}

/* Compares the median error of the clocks with the mean of the longest waits in collectives. */
static ow_status compare_error(struct ranks_job *job, struct ow_error *err)
{
	int64_t *errors = ARENA_ARRAY(&job->arena, int64_t, job->worker_count + 1), median;
	double sum = 0;
	size_t count = 0, meetings = 0;

	if (!errors)
		return error_no_memory(err);
	for (size_t i = 0; i < job->worker_count; i++)
		if (job->workers[i].has_clock && job->workers[i].piece_count)
			errors[count++] = job->workers[i].likely_ns;
	median = count ? ranks_median(errors, count) : 0;
	for (size_t i = 0; i < job->meeting_count; i++) {
		const struct meeting *m = &job->meetings[i];
		int64_t longest = 0;

		if (m->rejected || m->last_ns == TIME_UNKNOWN)
			continue;
		for (uint32_t k = 0; k < m->count; k++) {
			const struct member *member = &job->members[m->first + k];

			longest = MAX(longest, ranks_wait(&job->workers[member->worker],
							  collective_of(job, member), m));
		}
		sum += (double)longest;
		meetings++;
	}
	job->waits_known = meetings > 0;
	if (!meetings) {
		snprintf(job->waits_why, sizeof(job->waits_why), "no collective is shared");
	} else if (sum / (double)meetings < (double)median) {
		job->waits_known = false;
		snprintf(job->waits_why, sizeof(job->waits_why),
			 "the clocks are known to ±%.1f us, the longest wait of a collective is "
			 "%.1f us in "
			 "the mean",
			 (double)median / 1e3, sum / (double)meetings / 1e3);
	}
	return OW_OK;
}

/* Bytes on the bus per byte of the message, as nccl-tests counts them. */
static double bus_factor(enum collective_kind kind, uint32_t members)
{
	double n = members;

	if (kind == COLLECTIVE_ALL_REDUCE)
		return 2 * (n - 1) / n;
	return kind == COLLECTIVE_ALL_GATHER || kind == COLLECTIVE_REDUCE_SCATTER ||
			       kind == COLLECTIVE_ALL_TO_ALL
		       ? (n - 1) / n
		       : 1;
}

struct timing {
	uint8_t kind;
	uint32_t members;
	int64_t bytes, ns;
};

static int by_size(const void *x, const void *y)
{
	const struct timing *a = x, *b = y;

	if (a->kind != b->kind)
		return a->kind < b->kind ? -1 : 1;
	if (a->bytes != b->bytes)
		return a->bytes < b->bytes ? -1 : 1;
	return (a->ns > b->ns) - (a->ns < b->ns);
}

/* Adds the speed of each kind and size of collective. Entries are sorted by time within a size, so the median is in
 * the middle. */
static ow_status add_speeds(struct ranks_job *job, const struct timing *t, size_t count,
			    struct ow_error *err)
{
	for (size_t first = 0, end; first < count; first = end) {
		const struct timing *median;
		struct size_speed s;

		for (end = first + 1;
		     end < count && t[end].kind == t[first].kind && t[end].bytes == t[first].bytes;
		     end++)
			;
		median = &t[first + (end - first) / 2];
		s = (struct size_speed){ .kind = median->kind,
					 .bytes = median->bytes,
					 .count = end - first,
					 .median_ns = (double)median->ns,
					 .bus_rate = median->ns > 0
							     ? (double)median->bytes *
								       bus_factor(median->kind,
										  median->members) /
								       (double)median->ns
							     : NAN };
		if (!vec_push(job->mem, job->speeds, job->speed_count, job->speed_cap, s))
			return error_no_memory(err);
	}
	return OW_OK;
}

/* Fits latency and time per byte for the kind of collective with the most sizes, by weighted least squares over the
 * medians of the sizes. */
static void fit_speed(struct ranks_job *job)
{
	size_t most = 0;

	for (size_t first = 0, end; first < job->speed_count; first = end) {
		double n = 0, x = 0, y = 0, xx = 0, xy = 0, det;

		for (end = first;
		     end < job->speed_count && job->speeds[end].kind == job->speeds[first].kind;
		     end++) {
			double bytes = (double)job->speeds[end].bytes,
			       ns = job->speeds[end].median_ns, w = 1 / fmax(ns * ns, 1);

			n += w;
			x += w * bytes;
			y += w * ns;
			xx += w * bytes * bytes;
			xy += w * bytes * ns;
		}
		det = n * xx - x * x;
		if (end - first < 2 || end - first <= most || !(det > 1e-9 * n * xx))
			continue;
		most = end - first;
		job->beta_ns_per_byte = (n * xy - x * y) / det;
		job->alpha_ns = (y - job->beta_ns_per_byte * x) / n;
	}
	if (job->beta_ns_per_byte < 0 || job->alpha_ns < 0)
		/* a negative value is not a latency or a bandwidth */
		job->alpha_ns = job->beta_ns_per_byte = NAN;
}

static ow_status measure_speed(struct ranks_job *job, struct ow_error *err)
{
	struct timing *t = ARENA_ARRAY(&job->arena, struct timing, job->meeting_count + 1);
	size_t count = 0;

	if (!t)
		return error_no_memory(err);
	for (size_t i = 0; i < job->meeting_count; i++) {
		const struct meeting *m = &job->meetings[i];
		const struct collective *c = collective_of(job, &job->members[m->first]);
		int64_t least = INT64_MAX;

		if (m->rejected || !m->complete || !collective_is_mutual(m->kind) || c->bytes <= 0)
			continue;
		for (uint32_t k = 0; k < m->count; k++) {
			const struct collective *one =
				collective_of(job, &job->members[m->first + k]);

			least = MIN(least, one->end_ns - one->start_ns);
		}
		t[count++] = (struct timing){ m->kind, m->count, c->bytes, least };
	}
	if (count)
		qsort(t, count, sizeof(*t), by_size);
	OW_TRY(add_speeds(job, t, count, err));
	fit_speed(job);
	return OW_OK;
}

ow_status ranks_waits(struct ranks_job *job, struct ow_error *err)
{
	uint64_t checked = 0, rejected = 0;

	OW_TRY(time_meetings(job, &checked, &rejected, err));
	if (job->clock == CLOCK_IMPOSSIBLE) {
		snprintf(job->waits_why, sizeof(job->waits_why), "the clocks cannot be compared");
		return OW_OK;
	}
	if (checked && 5 * rejected > checked) {
		snprintf(job->waits_why, sizeof(job->waits_why),
			 "%llu of %llu collectives contradict each other: they are not the same "
			 "ones",
			 (unsigned long long)rejected, (unsigned long long)checked);
		job->clock = CLOCK_IMPOSSIBLE;
		for (size_t i = 0; i < job->worker_count; i++)
			job->workers[i].has_clock = false;
		snprintf(job->clock_why, sizeof(job->clock_why), "%s", job->waits_why);
		return OW_OK;
	}
	for (size_t i = 0; i < job->worker_count; i++) {
		struct worker *w = &job->workers[i];

		if (w->left_out || !w->has_clock)
			continue;
		if (w->task.len)
			OW_TRY(split_task(job, w, err));
		else
			split_worker(job, w);
	}
	OW_TRY(compare_error(job, err));
	return measure_speed(job, err);
}
