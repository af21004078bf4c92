/*
 * answer.c: draws conclusions about a job that hangs (hang_table of hang.h): from the waits of waits.h, or, when there
 * are only stacks, from the calls that the ranks are in. Called by the library and by the daemon's watch. Every
 * sentence is based on what the files show; gaps in the files make the answer uncertain.
 */
#include "hang/answer.h"

#include "base/error.h"
#include "base/human.h"

static int by_rank(const void *x, const void *y)
{
	return *(const int32_t *)x - *(const int32_t *)y;
}

static void add_doubt(struct answer *a, size_t count, const char *one, const char *many)
{
	if (!count)
		return;
	a->certain = false;
	buf_printf(&a->why, "; %zu %s", count, count == 1 ? one : many);
}

static void add_doubts(struct answer *a)
{
	const struct waits *w = a->w;

	if (w->dumps)
		add_doubt(a, w->without_dump, "rank left no dump: the cause may be there",
			  "ranks left no dump: the cause may be there");
	add_doubt(a, w->torn, "dump is damaged: entries may be missing from it",
		  "dumps are damaged: entries may be missing from them");
	add_doubt(a, a->job->other_jobs, "file belongs to another job or run and was left out",
		  "files belong to another job or run and were left out");
	add_doubt(a, a->job->files_unreadable, "file could not be read", "files could not be read");
	if (a->job->guessed) {
		a->certain = false;
		buf_puts(&a->why, "; the log shows which calls began, not which ended");
	}
}

static bool conclude_crash(struct answer *a)
{
	const struct waits *w = a->w;
	size_t ended = 0;
	struct str why = STR("");

	for (int32_t r = 0; r < w->world; r++)
		if (w->ranks[r].about != UINT32_MAX && a->job->processes[w->ranks[r].about].ended) {
			ended++;
			a->states[r] = "ended";
			why = why.len ? why : a->job->processes[w->ranks[r].about].ended_why;
			answer_blame(a, r);
		}
	/* if all ranks have ended, one after the other, it is unknown which one ended first */
	if (!ended || (ended == (size_t)w->world && w->world > 1)) {
		a->rank_count = 0;
		return false;
	}
	a->conclusion = CONCLUDE_CRASH;
	a->certain = true;
	for (size_t i = 0; i < a->rank_count; i++)
		if (a->job->processes[w->ranks[a->ranks[i]].about].ended_likely)
			a->certain = false;
	words_ranks(&a->sentence, a->ranks, a->rank_count);
	buf_printf(&a->sentence, " ended: ");
	human_printable(&a->sentence, str_first(why, 160));
	for (size_t i = 0; i < w->meeting_count && a->meeting < 0; i++)
		a->meeting = (ssize_t)i;
	buf_puts(&a->why, a->certain ? "its process ended" : "its process has probably ended");
	return true;
}

static bool conclude_mismatch(struct answer *a)
{
	const struct waits *w = a->w;
	ssize_t first = -1;

	for (size_t i = 0; i < w->meeting_count; i++) {
		const struct hang_meeting *m = &w->meetings[i];

		if (m->odd_count &&
		    (first < 0 || (m->first_ns && m->first_ns < w->meetings[first].first_ns)))
			first = (ssize_t)i;
	}
	if (first < 0)
		return false;
	a->meeting = first;
	a->conclusion = CONCLUDE_MISMATCH;
	for (size_t i = 0; i < w->meetings[first].odd_count; i++) {
		int32_t rank = w->odd[w->meetings[first].first_odd + i];

		a->states[rank] = "different";
		answer_blame(a, rank);
	}
	a->certain = !w->meetings[first].tie;
	buf_puts(&a->sentence, "ranks do not agree on ");
	words_meeting(a, &a->sentence, &w->meetings[first]);
	buf_printf(&a->sentence, ": %s", w->meetings[first].difference);
	buf_puts(&a->why, "the ranks called different operations under the same number");
	if (w->meetings[first].tie)
		buf_puts(&a->why, "; there is no majority, so it is not known who is right");
	return true;
}

/* Finds the next meeting that a rank waits in and that something blocks. `before`: only meetings that the rank
 * entered before this order. */
static ssize_t next_blocked(const struct answer *a, int32_t rank, int64_t before, size_t *at)
{
	const struct wait_rank *r = &a->w->ranks[rank];

	for (; *at < r->pending_count; ++*at) {
		const struct pending *p = &a->w->pending[r->first_pending + *at];

		if (p->order < before && meeting_is_blocked(&a->w->meetings[p->meeting])) {
			++*at;
			return (ssize_t)p->meeting;
		}
	}
	return -1;
}

static int64_t order_limit(const struct missing *x)
{
	return x->kind == NOT_STARTED ? x->order : INT64_MAX;
}

/* Whether the missing rank itself waits for other ranks. */
static bool is_blocked(const struct answer *a, const struct missing *x)
{
	size_t at = 0;

	return next_blocked(a, x->rank, order_limit(x), &at) >= 0;
}

struct visit {
	size_t meeting, missing,
		/* index among the meeting's missing ranks, and index among that rank's meetings */
		at;
};

/* Names the ranks of a cycle: those on the path from its entry at depth `back` to its end. */
static bool name_cycle(struct answer *a, const struct visit *path, size_t depth, size_t back)
{
	size_t from = depth;

	while (from && path[from - 1].meeting != back)
		from--;
	for (size_t i = from ? from - 1 : 0; i < depth; i++) {
		const struct hang_meeting *m = &a->w->meetings[path[i].meeting];
		int32_t rank = a->w->missing[m->first_missing + path[i].missing].rank;

		if (!answer_blame(a, rank))
			return false;
	}
	a->meeting = (ssize_t)back;
	return true;
}

/* Searches a cycle of waits, depth first over meetings: from a meeting to those that its missing ranks wait in. */
static bool find_cycle(struct answer *a, bool *found)
{
	const struct waits *w = a->w;
	uint8_t *colour = ARENA_ARRAY(&a->w->arena, uint8_t, w->meeting_count + 1);
	struct visit *path = ARENA_ARRAY(&a->w->arena, struct visit, w->meeting_count + 1);

	if (!colour || !path)
		return false;
	for (size_t start = 0; start < w->meeting_count && !*found; start++) {
		size_t depth = 0;

		if (colour[start])
			continue;
		colour[start] = 1;
		path[depth++] = (struct visit){ start, 0, 0 };
		while (depth && !*found) {
			struct visit *v = &path[depth - 1];
			const struct hang_meeting *m = &w->meetings[v->meeting];
			const struct missing *x;
			ssize_t next;

			if (v->missing == m->missing_count) {
				colour[v->meeting] = 2;
				depth--;
				continue;
			}
			x = &w->missing[m->first_missing + v->missing];
			next = x->kind == NOT_ENTERED || x->kind == NOT_STARTED
				       ? next_blocked(a, x->rank, order_limit(x), &v->at)
				       : -1;
			if (next < 0) {
				v->missing++;
				v->at = 0;
			} else if (colour[next] == 1) {
				*found = true;
				if (!name_cycle(a, path, depth, (size_t)next))
					return false;
			} else if (!colour[next]) {
				colour[next] = 1;
				path[depth++] = (struct visit){ (size_t)next, 0, 0 };
			}
		}
	}
	return true;
}

static bool conclude_deadlock(struct answer *a, bool *done)
{
	const struct hang_meeting *m;

	if (!find_cycle(a, done))
		return false;
	if (!*done)
		return true;
	m = &a->w->meetings[a->meeting];
	a->conclusion = CONCLUDE_DEADLOCK;
	a->certain = true;
	words_ranks(&a->sentence, a->ranks, a->rank_count);
	buf_puts(&a->sentence, " wait for each other: ");
	words_meeting(a, &a->sentence, m);
	buf_puts(&a->sentence, " waits for ranks that wait in another one");
	buf_puts(&a->why, "the waits go round in a circle");
	return true;
}

static bool came_before(const struct hang_meeting *x, const struct hang_meeting *y)
{
	if (x->first_ns && y->first_ns && x->first_ns != y->first_ns)
		return x->first_ns < y->first_ns;
	return x->waiters > y->waiters;
}

/* Finds ranks that did not come to the meeting that waits longest, and that do not wait themselves. */
static bool find_culprits(struct answer *a, bool *late)
{
	const struct waits *w = a->w;

	for (size_t i = 0; i < w->meeting_count; i++) {
		const struct hang_meeting *m = &w->meetings[i];

		for (size_t k = 0; k < m->missing_count; k++) {
			const struct missing *x = &w->missing[m->first_missing + k];

			if (x->kind > NOT_STARTED || is_blocked(a, x))
				continue;
			if (a->meeting < 0 || came_before(m, &w->meetings[a->meeting]))
				a->meeting = (ssize_t)i;
			a->states[x->rank] = x->kind == NOT_STARTED ? "not_started" : "not_entered";
			*late = x->kind == NOT_STARTED;
			if (!answer_blame(a, x->rank))
				return false;
		}
	}
	return true;
}

/* If some ranks have not entered and others have not started, those that have not entered are the cause. */
static void prefer_not_entered(struct answer *a, bool *late)
{
	size_t kept = 0;

	for (size_t i = 0; i < a->rank_count; i++)
		kept += strcmp(a->states[a->ranks[i]], "not_entered") == 0;
	if (!kept)
		return;
	*late = false;
	kept = 0;
	for (size_t i = 0; i < a->rank_count; i++)
		if (strcmp(a->states[a->ranks[i]], "not_entered") == 0)
			a->ranks[kept++] = a->ranks[i];
	a->rank_count = kept;
}

#define ALIVE_OPS 3u
#define ALIVE_NS ((int64_t)1000000000)

/* Whether a rank did more than one thing after a moment: a single call may have been running already. */
static bool goes_on_after(const struct answer *a, uint32_t process, int64_t ns)
{
	int64_t last_ns = a->job->processes[process].last_ns;
	size_t later = 0;

	for (size_t i = 0; i < a->job->op_count; i++)
		later += a->job->ops[i].process == process && a->job->ops[i].created_ns > ns;
	return later >= ALIVE_OPS ||
	       (last_ns > ns && (uint64_t)last_ns - (uint64_t)ns >= (uint64_t)ALIVE_NS);
}

/* Whether the missing rank did other things after the others had come: it is late, but it still works. */
static bool is_alive(const struct answer *a, const struct hang_meeting *m)
{
	int64_t elapsed = a->w->last_ns - m->last_ns, alive = 0;

	if (!m->last_ns || m->timed_out || a->w->timed_out ||
	    (m->timeout_ns && elapsed >= m->timeout_ns))
		return false;
	for (size_t i = 0; i < a->rank_count; i++) {
		uint32_t dump = a->w->ranks[a->ranks[i]].dump;

		alive += goes_on_after(a, dump, m->last_ns);
	}
	return (size_t)alive == a->rank_count;
}

static void say_how_long(struct answer *a, const struct hang_meeting *m)
{
	int64_t elapsed = m->last_ns ? a->w->last_ns - m->last_ns : 0;

	if (m->timed_out || a->w->timed_out)
		buf_puts(&a->why, "; the program gave up waiting");
	else if (elapsed > 0 && m->timeout_ns && elapsed >= m->timeout_ns) {
		buf_puts(&a->why, "; they have waited ");
		words_duration(&a->why, elapsed);
		buf_puts(&a->why, ", longer than the timeout");
	}
}

static bool conclude_hang(struct answer *a, bool *done)
{
	const struct hang_meeting *m;
	bool late = false;

	if (!find_culprits(a, &late))
		return false;
	if (!a->rank_count)
		return true;
	prefer_not_entered(a, &late);
	qsort(a->ranks, a->rank_count, sizeof(*a->ranks), by_rank);
	m = &a->w->meetings[a->meeting];
	*done = true;
	words_ranks(&a->sentence, a->ranks, a->rank_count);
	buf_puts(&a->sentence, late ? " scheduled, but did not start, " : " did not enter ");
	words_meeting(a, &a->sentence, m);
	buf_printf(&a->why, "%zu %s in it, and %s for no other", m->waiters,
		   m->waiters == 1 ? "rank is" : "ranks are",
		   a->rank_count == 1 ? "this rank waits" : "these ranks wait");
	if (is_alive(a, m)) {
		a->conclusion = CONCLUDE_NONE;
		a->certain = false;
		buf_puts(&a->sentence, " yet: late, not hung");
		buf_puts(&a->why, "; after that it called something else");
		a->rank_count = 0;
		return true;
	}
	a->conclusion = CONCLUDE_HANG;
	a->certain = true;
	say_how_long(a, m);
	words_whereabouts(a, a->ranks[0]);
	return true;
}

/* Ranks to blame that left no dump, but stacks: they run. If stacks show some of them outside of any collective, the others wait for
 * those. Returns whether that is the answer. */
static bool is_hang_by_stacks(struct answer *a)
{
	size_t outside = 0;

	for (size_t i = 0; i < a->rank_count; i++) {
		struct str stack = answer_stack(a, a->ranks[i]);

		if (!stack.len)
			return false;
		outside += !answer_stack_waits(stack);
	}
	if (!outside)
		return false;
	outside = 0;
	for (size_t i = 0; i < a->rank_count; i++)
		if (!answer_stack_waits(answer_stack(a, a->ranks[i])))
			a->ranks[outside++] = a->ranks[i];
	a->rank_count = outside;
	a->conclusion = CONCLUDE_HANG;
	for (size_t i = 0; i < a->rank_count; i++)
		a->states[a->ranks[i]] = "not_entered";
	words_ranks(&a->sentence, a->ranks, a->rank_count);
	buf_puts(&a->sentence, " did not enter ");
	words_meeting(a, &a->sentence, &a->w->meetings[a->meeting]);
	buf_puts(&a->why,
		 "every rank with a dump has entered it or waits for one that has, and by its "
		 "stack the process runs outside of any collective; a stack shows one moment");
	words_whereabouts(a, a->ranks[0]);
	return true;
}

static bool conclude_lost(struct answer *a, bool *done)
{
	const struct waits *w = a->w;
	size_t absent = 0, torn = 0;

	for (size_t i = 0; i < w->meeting_count; i++) {
		const struct hang_meeting *m = &w->meetings[i];

		for (size_t k = 0; k < m->missing_count; k++) {
			const struct missing *x = &w->missing[m->first_missing + k];

			if (x->kind != NO_DUMP && x->kind != UNKNOWN)
				continue;
			if (a->meeting < 0 || came_before(m, &w->meetings[a->meeting]))
				a->meeting = (ssize_t)i;
			absent += x->kind == NO_DUMP;
			torn += x->kind == UNKNOWN;
			if (!answer_blame(a, x->rank))
				return false;
		}
	}
	if (!a->rank_count)
		return true;
	*done = true;
	a->certain = false;
	qsort(a->ranks, a->rank_count, sizeof(*a->ranks), by_rank);
	if (absent && !torn && is_hang_by_stacks(a))
		return true;
	if (absent && !torn && a->rank_count * 2 <= (size_t)w->world) {
		a->conclusion = CONCLUDE_CRASH;
		words_ranks(&a->sentence, a->ranks, a->rank_count);
		buf_puts(&a->sentence, " left no dump, and all others wait in ");
		words_meeting(a, &a->sentence, &w->meetings[a->meeting]);
		buf_puts(&a->sentence, ": crashed, or killed, or the dump is lost");
		buf_puts(&a->why,
			 "every rank with a dump has entered it or waits for one that has");
		return true;
	}
	a->conclusion = CONCLUDE_CANNOT_TELL;
	words_meeting(a, &a->sentence, &w->meetings[a->meeting]);
	buf_puts(&a->sentence, " waits for ");
	words_ranks(&a->sentence, a->ranks, a->rank_count);
	buf_puts(&a->sentence, ", whose dumps do not show whether they came");
	buf_puts(&a->why, "dumps are lost, damaged, or do not reach back so far");
	a->rank_count = 0;
	return true;
}

static void conclude_running(struct answer *a)
{
	const struct waits *w = a->w;
	bool long_ago = w->timed_out;

	for (size_t i = 0; i < w->meeting_count; i++) {
		const struct hang_meeting *m = &w->meetings[i];

		if (a->meeting < 0 || came_before(m, &w->meetings[a->meeting]))
			a->meeting = (ssize_t)i;
		if (m->last_ns && m->timeout_ns && w->last_ns - m->last_ns >= m->timeout_ns)
			long_ago = true;
	}
	if (a->meeting >= 0 && long_ago) {
		a->conclusion = CONCLUDE_HANG;
		buf_puts(&a->sentence, "all ranks that are known have entered ");
		words_meeting(a, &a->sentence, &w->meetings[a->meeting]);
		buf_puts(&a->sentence,
			 ", which does not end: the dumps do not show a rank to blame");
		buf_puts(&a->why, "nothing is missing; a network, a device or a driver may hang");
		say_how_long(a, &w->meetings[a->meeting]);
		return;
	}
	a->conclusion = w->dumps ? CONCLUDE_NONE : CONCLUDE_CANNOT_TELL;
	if (a->meeting >= 0) {
		buf_puts(&a->sentence, "all ranks have entered ");
		words_meeting(a, &a->sentence, &w->meetings[a->meeting]);
		buf_puts(&a->sentence, ", which runs: the dumps show no hang");
		buf_puts(&a->why, "nothing is missing, and no timeout has passed");
	} else if (w->dumps && (w->without_dump || w->torn)) {
		a->conclusion = CONCLUDE_CANNOT_TELL;
		buf_puts(&a->sentence,
			 "every known collective is complete, but dumps are missing or "
			 "damaged");
		buf_puts(&a->why, "a rank without a dump may wait");
	} else if (w->dumps) {
		a->certain = true;
		buf_puts(&a->sentence,
			 "every collective that was entered is complete: the dumps show no hang");
		buf_puts(&a->why, "no collective or message is incomplete");
	}
	a->meeting = -1;
}

static bool conclude(struct answer *a)
{
	bool done = conclude_crash(a) || conclude_mismatch(a);

	if (!done && !conclude_deadlock(a, &done))
		return false;
	if (!done && !conclude_hang(a, &done))
		return false;
	if (!done && !conclude_lost(a, &done))
		return false;
	if (!done && a->w->dumps) {
		conclude_running(a);
		done = true;
	}
	if (!done && !answer_by_stacks(a))
		return false;
	if (!a->sentence.len) {
		a->conclusion = CONCLUDE_CANNOT_TELL;
		a->certain = false;
		buf_puts(&a->sentence, "the files say nothing about collectives or stacks");
		buf_puts(&a->why, "nothing that could be compared was found");
	}
	add_doubts(a);
	if (a->rank_count)
		qsort(a->ranks, a->rank_count, sizeof(*a->ranks), by_rank);
	return true;
}

/* Whether the answer has a row for the rank: all known ranks, and unknown ones between them. */
static bool has_row(const struct answer *a, int32_t rank)
{
	const struct wait_rank *r = &a->w->ranks[rank];

	return a->w->world_known || r->dump != UINT32_MAX || r->about != UINT32_MAX ||
	       (size_t)a->w->world <= 2 * (a->w->dumps + 1);
}

static ow_status fill_table(struct answer *a, struct table *out, struct ow_error *err)
{
	OW_TRY(waits_make(a->w, a->job, err));
	a->states = ARENA_ARRAY(&a->w->arena, const char *, (size_t)a->w->world + 1);
	if (!a->states || !conclude(a))
		return error_no_memory(err);
	answer_columns(out);
	for (int32_t r = 0; r < a->w->world; r++)
		if (has_row(a, r))
			answer_row(a, out, r);
	OW_TRY(answer_extras(a, out, err));
	if (a->job->no_memory)
		return error_no_memory(err);
	return out->status == OW_OK ? OW_OK : error_no_memory(err);
}

ow_status hang_table(struct hang_job *job, struct table *out, struct ow_error *err)
{
	struct waits w;
	struct answer a = { .w = &w,
			    .job = job,
			    .mem = job->mem,
			    .meeting = -1,
			    .sequence = HANG_NO_SEQUENCE,
			    .collective = STR("") };
	ow_status status;

	buf_init(&a.sentence, job->mem);
	buf_init(&a.why, job->mem);
	status = fill_table(&a, out, err);
	waits_release(&w);
	vec_free(job->mem, a.ranks, a.rank_cap);
	buf_release(&a.sentence);
	buf_release(&a.why);
	return status;
}
