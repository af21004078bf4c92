/*
 * waits.c: makes struct waits (waits.h) from the evidence: assigns ranks to processes, leaves out other jobs and older
 * dumps, finds incomplete operations and the ranks that have not come. Called by answer.c. The time is linear in the
 * operations, apart from sorting.
 */
#include "hang/waits.h"

#include "base/error.h"

#include <stdlib.h>

#define OTHER_RUN_NS (2 * 3600 * 1000000000LL)
#define MESSAGES_MAX 64u /* limit of messages for each process: the oldest incomplete ones */

static int by_value(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

/* The most frequent of the sorted values. */
static int64_t most_common(int64_t *values, size_t count)
{
	int64_t best = 0;
	size_t best_count = 0, run = 0;

	qsort(values, count, sizeof(*values), by_value);
	for (size_t i = 0; i < count; i++) {
		run = i && values[i] == values[i - 1] ? run + 1 : 1;
		if (run > best_count || (run == best_count && values[i] > best)) {
			best = values[i];
			best_count = run;
		}
	}
	return best;
}

/* Leaves out dumps of another job: their number of ranks or their time differs from that of most. */
static ow_status leave_out_others(struct waits *w, struct ow_error *err)
{
	struct hang_job *job = w->job;
	int64_t *values = ARENA_ARRAY(&w->arena, int64_t, job->process_count + 1);
	int64_t world, middle;
	size_t count = 0;

	if (!values)
		return error_no_memory(err);
	for (size_t i = 0; i < job->process_count; i++)
		if (job->processes[i].world > 0)
			values[count++] = job->processes[i].world;
	world = count ? most_common(values, count) : 0;
	count = 0;
	for (size_t i = 0; i < job->process_count; i++)
		if (job->processes[i].last_ns > 0 && (!world || job->processes[i].world == world))
			values[count++] = job->processes[i].last_ns;
	if (count)
		qsort(values, count, sizeof(*values), by_value);
	middle = count ? values[count / 2] : 0;
	for (size_t i = 0; i < job->process_count; i++) {
		struct hang_process *p = &job->processes[i];
		bool size = p->world > 0 && p->world != world,
		     time = p->last_ns > 0 && (p->last_ns < middle - OTHER_RUN_NS ||
					       p->last_ns - OTHER_RUN_NS > middle);

		if (!size && !time)
			continue;
		p->left_out = true;
		if (!job->other_jobs++)
			hang_note(job, "%.*s belongs to another %s and was left out",
				  (int)MIN(p->file.len, 200u), p->file.ptr,
				  size ? "job (other number of processes)" : "run (hours apart)");
	}
	w->world = world < HANG_RANK_MAX ? (int32_t)world : 0;
	w->world_known = w->world > 0;
	return OW_OK;
}

/* Sets the number of ranks if no dump states it. */
static void count_ranks(struct waits *w)
{
	for (size_t i = 0; i < w->job->process_count; i++) {
		struct hang_process *p = &w->job->processes[i];

		if (p->left_out || p->rank < 0)
			continue;
		if (!w->world_known)
			w->world = MAX(w->world, p->rank + 1);
		else if (p->rank >= w->world) {
			hang_note(w->job, "%.*s: the job has %d ranks, so it is not rank %d",
				  (int)MIN(p->file.len, 200u), p->file.ptr, (int)w->world,
				  (int)p->rank);
			p->rank = HANG_NO_RANK;
		}
	}
}

/* Finds the last operation of each process; -1: it has none. */
static ow_status find_last_orders(struct waits *w, struct ow_error *err)
{
	w->last_order = ARENA_ARRAY(&w->arena, int64_t, w->job->process_count + 1);
	if (!w->last_order)
		return error_no_memory(err);
	for (size_t i = 0; i < w->job->process_count; i++)
		w->last_order[i] = -1;
	for (size_t i = 0; i < w->job->op_count; i++) {
		const struct hang_op *op = &w->job->ops[i];

		w->last_order[op->process] = MAX(w->last_order[op->process], MAX(op->order, 0));
		w->timed_out = w->timed_out || op->timed_out;
	}
	for (size_t i = 0; i < w->job->progress_count; i++)
		w->last_order[w->job->progress[i].process] =
			MAX(w->last_order[w->job->progress[i].process], 0);
	return OW_OK;
}

static void use_dump(struct waits *w, uint32_t at)
{
	struct hang_process *p = &w->job->processes[at];
	struct wait_rank *r = &w->ranks[p->rank];
	struct hang_process *before;

	if (r->dump == UINT32_MAX) {
		r->dump = at;
		return;
	}
	before = &w->job->processes[r->dump];
	/* a log and a dump of the same rank complement each other; only dumps replace each other */
	if (!before->has_ops || !p->has_ops) {
		if (p->has_ops)
			r->dump = at;
		return;
	}
	if (!w->job->duplicates++)
		hang_note(w->job, "rank %d has several dumps: the last one was used", (int)p->rank);
	if (p->last_ns > before->last_ns || (before->torn && !p->torn)) {
		before->left_out = true;
		r->dump = at;
	} else {
		p->left_out = true;
	}
}

/* Assigns a dump without a rank to the only rank without a dump. */
static void place_nameless(struct waits *w)
{
	size_t nameless = 0, free_ranks = 0;
	uint32_t dump = UINT32_MAX;
	int32_t rank = HANG_NO_RANK;

	for (size_t i = 0; i < w->job->process_count; i++)
		if (!w->job->processes[i].left_out && w->job->processes[i].rank < 0) {
			nameless++;
			dump = (uint32_t)i;
		}
	for (int32_t r = 0; r < w->world; r++)
		if (w->ranks[r].dump == UINT32_MAX) {
			free_ranks++;
			rank = r;
		}
	if (nameless == 1 && free_ranks == 1 && w->job->processes[dump].has_ops) {
		w->job->processes[dump].rank = rank;
		w->job->processes[dump].rank_from = RANK_MEMBER;
		w->ranks[rank].dump = dump;
		return;
	}
	if (!nameless)
		return;
	for (size_t i = 0; i < w->job->process_count; i++)
		if (w->job->processes[i].rank < 0)
			w->job->processes[i].left_out = true;
	hang_note(w->job, "%zu %s not say which rank %s: left out; put the rank into the file name",
		  nameless, nameless == 1 ? "file does" : "files do",
		  nameless == 1 ? "it belongs to" : "they belong to");
}

/* Checks ranks that were concluded from groups. A dump may list groups that its process is not in; then several
 * dumps seem to have the same rank, and their file names decide. */
static ow_status check_groups(struct waits *w, struct ow_error *err)
{
	uint32_t *claims = ARENA_ARRAY(&w->arena, uint32_t, HANG_RANK_MAX);

	if (!claims)
		return error_no_memory(err);
	for (size_t i = 0; i < w->job->process_count; i++)
		if (!w->job->processes[i].left_out && w->job->processes[i].rank >= 0 &&
		    w->job->processes[i].has_ops)
			claims[w->job->processes[i].rank]++;
	for (size_t i = 0; i < w->job->process_count; i++) {
		struct hang_process *p = &w->job->processes[i];

		if (p->left_out || p->rank_from != RANK_GROUPS || p->rank < 0 ||
		    claims[p->rank] < 2)
			continue;
		p->rank = hang_rank_of_file(p->file);
		p->rank_from = RANK_FILE_NAME;
	}
	return OW_OK;
}

static ow_status give_ranks(struct waits *w, struct ow_error *err)
{
	bool by_name = false;

	OW_TRY(find_last_orders(w, err));
	OW_TRY(leave_out_others(w, err));
	OW_TRY(check_groups(w, err));
	count_ranks(w);
	w->ranks = ARENA_ARRAY(&w->arena, struct wait_rank, (size_t)w->world + 1);
	if (!w->ranks)
		return error_no_memory(err);
	for (int32_t r = 0; r < w->world; r++)
		w->ranks[r] = (struct wait_rank){ .dump = UINT32_MAX, .about = UINT32_MAX };
	for (size_t i = 0; i < w->job->process_count; i++) {
		struct hang_process *p = &w->job->processes[i];

		if (p->left_out || p->rank < 0)
			continue;
		by_name = by_name || p->rank_from == RANK_FILE_NAME;
		if (p->has_ops || w->last_order[i] >= 0)
			use_dump(w, (uint32_t)i);
		if (p->stack.len || p->ended)
			w->ranks[p->rank].about = (uint32_t)i;
	}
	place_nameless(w);
	if (by_name)
		hang_note(w->job, "ranks are taken from file names: some files do not contain "
				  "them");
	for (int32_t r = 0; r < w->world; r++) {
		const struct wait_rank *rank = &w->ranks[r];

		w->dumps += rank->dump != UINT32_MAX;
		w->without_dump +=
			rank->dump == UINT32_MAX &&
			(rank->about == UINT32_MAX || !w->job->processes[rank->about].ended);
		if (rank->dump == UINT32_MAX)
			continue;
		w->torn += w->job->processes[rank->dump].torn;
		w->last_ns = MAX(w->last_ns, w->job->processes[rank->dump].last_ns);
	}
	return OW_OK;
}

static int by_place(const void *a, const void *b, void *arg)
{
	const struct hang_job *job = arg;
	const struct hang_op *x = &job->ops[*(const size_t *)a], *y = &job->ops[*(const size_t *)b];

	if (x->process != y->process)
		return x->process < y->process ? -1 : 1;
	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	if (x->message != y->message)
		return x->message ? 1 : -1;
	if (x->sequence != y->sequence)
		return x->sequence < y->sequence ? -1 : 1;
	return (x->order > y->order) - (x->order < y->order);
}

static bool is_used(const struct waits *w, uint32_t process)
{
	const struct hang_process *p = &w->job->processes[process];

	return !p->left_out && p->rank >= 0 && w->ranks[p->rank].dump == process;
}

static ow_status sort_ops(struct waits *w, struct ow_error *err)
{
	w->by_place = ARENA_ARRAY(&w->arena, size_t, w->job->op_count + 1);
	if (!w->by_place)
		return error_no_memory(err);
	for (size_t i = 0; i < w->job->op_count; i++)
		if (is_used(w, w->job->ops[i].process))
			w->by_place[w->used_count++] = i;
	qsort_r(w->by_place, w->used_count, sizeof(*w->by_place), by_place, w->job);
	return OW_OK;
}

static struct own_group *own_of(struct waits *w, struct wait_rank *r, uint32_t group)
{
	struct own_group made = {
		.group = group, .entered = -1, .completed = -1, .pending = HANG_NO_SEQUENCE
	};

	for (size_t i = 0; i < r->own_count; i++)
		if (w->own[r->first_own + i].group == group)
			return &w->own[r->first_own + i];
	if (!vec_push(w->mem, w->own, w->own_count, w->own_cap, made))
		return NULL;
	r->own_count++;
	return &w->own[w->own_count - 1];
}

/* Lists the operations of a rank in a group. Collectives of a group run one after the other: those before a complete
 * one are complete, whatever their entries say. */
static bool add_own_ops(struct waits *w, struct wait_rank *r, size_t first, size_t end)
{
	const struct hang_process *p = &w->job->processes[r->dump];
	struct own_group *own = NULL;

	for (size_t i = first; i < end; i++) {
		const struct hang_op *op = &w->job->ops[w->by_place[i]];

		r->first_order = i == first ? op->order : MIN(r->first_order, op->order);
		if (op->message || op->sequence == HANG_NO_SEQUENCE)
			continue;
		if (!own || own->group != op->group) {
			own = own_of(w, r, op->group);
			if (!own)
				return false;
			own->known = !p->torn && !p->only_active && p->has_ops;
		}
		own->entered = MAX(own->entered, op->sequence);
		if (op->state == HANG_COMPLETED)
			own->completed = MAX(own->completed, op->sequence);
	}
	return true;
}

static bool add_own_progress(struct waits *w, struct wait_rank *r, uint32_t process)
{
	for (size_t i = 0; i < w->job->progress_count; i++) {
		const struct hang_progress *progress = &w->job->progress[i];
		struct own_group *own;

		if (progress->process != process)
			continue;
		own = own_of(w, r, progress->group);
		if (!own)
			return false;
		if (progress->entered >= 0) {
			own->entered = MAX(own->entered, progress->entered);
			own->known = true;
		}
		own->completed = MAX(own->completed, progress->completed);
	}
	return true;
}

static void find_own_pending(struct waits *w, struct wait_rank *r, size_t first, size_t end)
{
	for (size_t i = first; i < end; i++) {
		const struct hang_op *op = &w->job->ops[w->by_place[i]];
		struct own_group *own;

		if (op->message || op->state == HANG_COMPLETED || op->sequence == HANG_NO_SEQUENCE)
			continue;
		own = own_of(w, r, op->group);
		if (!own || op->sequence <= own->completed ||
		    (own->pending != HANG_NO_SEQUENCE && own->pending <= op->sequence))
			continue;
		own->pending = op->sequence;
		own->pending_op = w->by_place[i];
	}
}

static ow_status make_own(struct waits *w, struct ow_error *err)
{
	size_t at = 0;

	/* sorted by process, so that the operations of a rank are adjacent */
	for (size_t p = 0; p < w->job->process_count; p++) {
		size_t first = at;
		struct wait_rank *r;

		while (at < w->used_count && w->job->ops[w->by_place[at]].process == p)
			at++;
		if (!is_used(w, (uint32_t)p))
			continue;
		r = &w->ranks[w->job->processes[p].rank];
		r->first_own = w->own_count;
		r->first_op = first;
		r->end_op = at;
		if (!add_own_ops(w, r, first, at) || !add_own_progress(w, r, (uint32_t)p))
			return error_no_memory(err);
		find_own_pending(w, r, first, at);
	}
	return OW_OK;
}

const struct own_group *waits_own(const struct waits *w, int32_t rank, uint32_t group)
{
	const struct wait_rank *r = &w->ranks[rank];

	for (size_t i = 0; i < r->own_count; i++)
		if (w->own[r->first_own + i].group == group)
			return &w->own[r->first_own + i];
	return NULL;
}

/* The operation of a rank with this sequence number, the last one if several were launched together; NULL: not kept. */
static const struct hang_op *op_at(const struct waits *w, int32_t rank, uint32_t group,
				   int64_t sequence)
{
	uint32_t process = w->ranks[rank].dump;
	size_t low = 0, high = w->used_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct hang_op *op = &w->job->ops[w->by_place[middle]];
		bool before = op->process != process ? op->process < process
			      : op->group != group   ? op->group < group
			      : op->message	     ? false
						     : op->sequence < sequence;

		if (before)
			low = middle + 1;
		else
			high = middle;
	}
	if (low < w->used_count) {
		const struct hang_op *op = &w->job->ops[w->by_place[low]];

		if (op->process == process && op->group == group && !op->message &&
		    op->sequence == sequence)
			return op;
	}
	return NULL;
}

static bool add_missing(struct waits *w, struct hang_meeting *m, int32_t rank,
			enum missing_kind kind, int64_t order)
{
	m->missing_count++;
	return vec_push(w->mem, w->missing, w->missing_count, w->missing_cap,
			(struct missing){ rank, kind, order });
}

static void add_waiter(struct hang_meeting *m, const struct hang_op *op)
{
	m->waiters++;
	m->timed_out = m->timed_out || op->timed_out;
	m->timeout_ns = MAX(m->timeout_ns, op->timeout_ns);
	if (op->created_ns > 0) {
		m->first_ns = m->first_ns ? MIN(m->first_ns, op->created_ns) : op->created_ns;
		m->last_ns = MAX(m->last_ns, op->created_ns);
	}
}

/* Classifies a rank of which no operation with this number was kept. */
static bool place_absent(struct waits *w, struct hang_meeting *m, int32_t rank)
{
	const struct wait_rank *r = &w->ranks[rank];
	const struct own_group *own = waits_own(w, rank, m->group);
	const struct hang_process *p = r->dump == UINT32_MAX ? NULL : &w->job->processes[r->dump];

	if (!p)
		return add_missing(w, m, rank, NO_DUMP, 0);
	if (own && own->entered >= m->sequence)
		return true; /* the rank took part; its entry has been overwritten in the buffer */
	if (own && own->known)
		return add_missing(w, m, rank, NOT_ENTERED, 0);
	/* no operation of this group: the rank never used it, if the buffer holds everything from the beginning;
	 * records count from 0 or 1 */
	if (!own && p->has_ops && !p->torn && !p->only_active && r->first_order <= 1)
		return add_missing(w, m, rank, NOT_ENTERED, 0);
	return add_missing(w, m, rank, UNKNOWN, 0);
}

static bool compares_sizes(struct str key)
{
	static const char *const uneven[] = { "alltoall",  "gather",	"scatter",
					      "allgather", "coalesced", "allreducebarrier",
					      "barrier" };

	for (size_t i = 0; i < ARRAY_COUNT(uneven); i++)
		if (str_eq(key, str_from(uneven[i])))
			return false;
	return !str_has(key, STR("coalesced"));
}

static bool differs(const struct hang_op *a, const struct hang_op *b, const char **in)
{
	*in = "operation";
	if (!str_eq(a->key, b->key))
		return true;
	*in = "data type";
	if (a->types.len && b->types.len && !str_eq(a->types, b->types))
		return true;
	*in = "size";
	return compares_sizes(a->key) && a->elements >= 0 && b->elements >= 0 &&
	       a->elements != b->elements;
}

/* The ranks of a meeting that called the same operation. */
struct kind {
	const struct hang_op *op;
	size_t count;
};

#define KINDS 16u

static void describe_difference(struct hang_meeting *m, const struct hang_op *odd, int32_t rank,
				const struct hang_op *usual, const char *in)
{
	if (strcmp(in, "operation") == 0)
		snprintf(m->difference, sizeof(m->difference),
			 "rank %d called %.*s, others called %.*s", (int)rank,
			 (int)MIN(odd->name.len, 40u), odd->name.ptr,
			 (int)MIN(usual->name.len, 40u), usual->name.ptr);
	else if (strcmp(in, "size") == 0)
		snprintf(m->difference, sizeof(m->difference),
			 "rank %d has %lld elements, others have %lld", (int)rank,
			 (long long)odd->elements, (long long)usual->elements);
	else
		snprintf(m->difference, sizeof(m->difference), "rank %d has %.*s, others have %.*s",
			 (int)rank, (int)MIN(odd->types.len, 40u), odd->types.ptr,
			 (int)MIN(usual->types.len, 40u), usual->types.ptr);
}

static bool add_odd(struct waits *w, struct hang_meeting *m, const struct hang_op **ops,
		    const int32_t *ranks, size_t count, const struct kind *usual)
{
	const char *in;

	m->first_odd = w->odd_count;
	for (size_t i = 0; i < count; i++) {
		if (!m->tie && !differs(ops[i], usual->op, &in))
			continue;
		if (differs(ops[i], usual->op, &in) && !m->difference[0])
			describe_difference(m, ops[i], ranks[i], usual->op, in);
		if (!vec_push(w->mem, w->odd, w->odd_count, w->odd_cap, ranks[i]))
			return false;
		m->odd_count++;
	}
	return true;
}

/* Finds ranks whose operation differs from that of most ranks. */
static bool find_odd(struct waits *w, struct hang_meeting *m, const struct hang_op **ops,
		     const int32_t *ranks, size_t count)
{
	struct kind kinds[KINDS];
	size_t kind_count = 0, usual = 0, second = 0;
	const char *in;

	for (size_t i = 0; i < count; i++) {
		size_t k = 0;

		while (k < kind_count && differs(ops[i], kinds[k].op, &in))
			k++;
		if (k == KINDS)
			k = KINDS - 1;
		if (k == kind_count)
			kinds[kind_count++] = (struct kind){ ops[i], 0 };
		kinds[k].count++;
	}
	for (size_t k = 1; k < kind_count; k++)
		if (kinds[k].count > kinds[usual].count)
			usual = k;
	for (size_t k = 0; k < kind_count; k++)
		if (k != usual)
			second = MAX(second, kinds[k].count);
	if (kind_count < 2)
		return true;
	m->tie = kinds[usual].count == second;
	m->name = kinds[usual].op->name;
	return add_odd(w, m, ops, ranks, count, &kinds[usual]);
}

/* Lists the members of a group; without a list, all ranks of the job that used it, or all ranks if it is the first
 * group. */
static size_t members_of(struct waits *w, uint32_t group, int32_t *to)
{
	const struct hang_group *g = &w->job->groups[group];
	size_t count = 0;

	if (g->members) {
		for (size_t i = 0; i < g->member_count; i++)
			if (g->members[i] < w->world)
				to[count++] = g->members[i];
		return count;
	}
	for (int32_t r = 0; r < w->world; r++)
		if (waits_own(w, r, group) || str_eq(g->name, STR("0")) ||
		    str_starts(g->about, STR("default")))
			to[count++] = r;
	return count;
}

/* Fills all fields of a meeting. */
static bool fill_meeting(struct waits *w, struct hang_meeting *m, const int32_t *members,
			 size_t count, const struct hang_op **ops, int32_t *ranks)
{
	size_t met = 0, started = 0;

	m->first_missing = w->missing_count;
	for (size_t i = 0; i < count; i++) {
		const struct hang_op *op = w->ranks[members[i]].dump == UINT32_MAX
						   ? NULL
						   : op_at(w, members[i], m->group, m->sequence);

		if (!op) {
			if (!place_absent(w, m, members[i]))
				return false;
			continue;
		}
		started += op->state >= HANG_STARTED;
		ops[met] = op;
		ranks[met++] = members[i];
		if (op->state == HANG_COMPLETED)
			continue;
		add_waiter(m, op);
		if (!m->name.len) {
			m->name = op->name;
			m->stack = op->stack;
		}
	}
	for (size_t i = 0; i < met && started; i++)
		if (ops[i]->state == HANG_SCHEDULED &&
		    w->job->processes[w->ranks[ranks[i]].dump].starts_known &&
		    !add_missing(w, m, ranks[i], NOT_STARTED, ops[i]->order))
			return false;
	return find_odd(w, m, ops, ranks, met);
}

static ssize_t find_meeting(const struct waits *w, uint32_t group, int64_t sequence)
{
	for (size_t i = 0; i < w->collectives; i++)
		if (w->meetings[i].group == group && w->meetings[i].sequence == sequence)
			return (ssize_t)i;
	return -1;
}

static ow_status make_meetings(struct waits *w, struct ow_error *err)
{
	size_t room = (size_t)w->world + 1;
	int32_t *members = ARENA_ARRAY(&w->arena, int32_t, room),
		*ranks = ARENA_ARRAY(&w->arena, int32_t, room);
	const struct hang_op **ops = ARENA_ARRAY(&w->arena, const struct hang_op *, room);

	if (!members || !ranks || !ops)
		return error_no_memory(err);
	for (size_t i = 0; i < w->own_count; i++) {
		const struct own_group *own = &w->own[i];
		struct hang_meeting m = { .group = own->group,
					  .sequence = own->pending,
					  .from = HANG_NO_RANK,
					  .to = HANG_NO_RANK };
		size_t count;

		if (own->pending == HANG_NO_SEQUENCE ||
		    find_meeting(w, own->group, own->pending) >= 0)
			continue;
		count = MIN(members_of(w, own->group, members), room - 1);
		if (!fill_meeting(w, &m, members, count, ops, ranks) ||
		    !vec_push(w->mem, w->meetings, w->meeting_count, w->meeting_cap, m))
			return error_no_memory(err);
		w->collectives = w->meeting_count;
	}
	return OW_OK;
}

static int32_t job_rank(const struct waits *w, uint32_t group, int32_t member)
{
	const struct hang_group *g = &w->job->groups[group];

	if (member < 0)
		return HANG_NO_RANK;
	if (!g->members)
		return member < w->world ? member : HANG_NO_RANK;
	return (size_t)member < g->member_count && g->members[member] < w->world
		       ? g->members[member]
		       : HANG_NO_RANK;
}

static bool is_send(const struct hang_op *op)
{
	return str_starts(op->key, STR("send")) || str_starts(op->key, STR("isend"));
}

/* The first incomplete operation of the other rank that matches this message. */
static const struct hang_op *other_end(const struct waits *w, const struct hang_op *op,
				       int32_t other)
{
	const struct wait_rank *r = &w->ranks[other];

	for (size_t i = r->first_op; i < r->end_op; i++) {
		const struct hang_op *x = &w->job->ops[w->by_place[i]];

		if (x->message && x->group == op->group && x->state != HANG_COMPLETED &&
		    x->from == op->from && x->to == op->to && is_send(x) != is_send(op))
			return x;
	}
	return NULL;
}

static bool add_message(struct waits *w, const struct hang_op *op, int32_t self, size_t at)
{
	struct hang_meeting m = { .group = op->group,
				  .sequence = op->sequence,
				  .message = true,
				  .from = job_rank(w, op->group, op->from),
				  .to = job_rank(w, op->group, op->to),
				  .name = op->name,
				  .stack = op->stack,
				  .first_missing = w->missing_count };
	int32_t other = m.from == self ? m.to : m.from;
	const struct hang_op *end;
	bool good = true;

	if (other < 0 || m.from == m.to)
		return true;
	add_waiter(&m, op);
	end = w->ranks[other].dump == UINT32_MAX ? NULL : other_end(w, op, other);
	if (end && op->elements >= 0 && end->elements >= 0 && op->elements != end->elements) {
		m.first_odd = w->odd_count;
		m.odd_count = 2;
		m.tie = true;
		snprintf(m.difference, sizeof(m.difference),
			 "rank %d has %lld elements, rank %d has %lld", (int)self,
			 (long long)op->elements, (int)other, (long long)end->elements);
		good = vec_push(w->mem, w->odd, w->odd_count, w->odd_cap, self) &&
		       vec_push(w->mem, w->odd, w->odd_count, w->odd_cap, other);
	} else if (!end) {
		const struct hang_process *p = w->ranks[other].dump == UINT32_MAX
						       ? NULL
						       : &w->job->processes[w->ranks[other].dump];

		good = add_missing(w, &m, other,
				   !p			    ? NO_DUMP
				   : p->torn || !p->has_ops ? UNKNOWN
							    : NOT_ENTERED,
				   0);
	}
	return good && vec_push(w->mem, w->meetings, w->meeting_count, w->meeting_cap, m) &&
	       vec_push(w->mem, w->pending, w->pending_count, w->pending_cap,
			(struct pending){ w->meeting_count - 1, op->order, at });
}

static int by_order(const void *a, const void *b)
{
	const struct pending *x = a, *y = b;

	return (x->order > y->order) - (x->order < y->order);
}

/* Lists the messages of a rank that are incomplete; in each group they come after its collectives. */
static bool add_pending(struct waits *w, int32_t rank, size_t first, size_t end)
{
	struct wait_rank *r = &w->ranks[rank];
	unsigned messages = 0;

	r->first_pending = w->pending_count;
	for (size_t i = 0; i < r->own_count; i++) {
		const struct own_group *own = &w->own[r->first_own + i];
		ssize_t meeting = own->pending == HANG_NO_SEQUENCE
					  ? -1
					  : find_meeting(w, own->group, own->pending);

		if (meeting >= 0 &&
		    !vec_push(w->mem, w->pending, w->pending_count, w->pending_cap,
			      (struct pending){ (size_t)meeting, w->job->ops[own->pending_op].order,
						own->pending_op }))
			return false;
	}
	for (size_t i = first; i < end && messages < MESSAGES_MAX; i++) {
		const struct hang_op *op = &w->job->ops[w->by_place[i]];

		if (!op->message || op->state == HANG_COMPLETED || op->from < 0)
			continue;
		messages++;
		if (!add_message(w, op, rank, w->by_place[i]))
			return false;
	}
	r->pending_count = w->pending_count - r->first_pending;
	if (r->pending_count)
		qsort(w->pending + r->first_pending, r->pending_count, sizeof(*w->pending),
		      by_order);
	return true;
}

static ow_status make_pending(struct waits *w, struct ow_error *err)
{
	size_t at = 0;

	for (size_t p = 0; p < w->job->process_count; p++) {
		size_t first = at;

		while (at < w->used_count && w->job->ops[w->by_place[at]].process == p)
			at++;
		if (is_used(w, (uint32_t)p) &&
		    !add_pending(w, w->job->processes[p].rank, first, at))
			return error_no_memory(err);
	}
	return OW_OK;
}

ow_status waits_make(struct waits *w, struct hang_job *job, struct ow_error *err)
{
	*w = (struct waits){ .job = job, .mem = job->mem };
	arena_init(&w->arena, job->mem);
	OW_TRY(give_ranks(w, err));
	OW_TRY(sort_ops(w, err));
	OW_TRY(make_own(w, err));
	OW_TRY(make_meetings(w, err));
	return make_pending(w, err);
}

void waits_release(struct waits *w)
{
	vec_free(w->mem, w->own, w->own_cap);
	vec_free(w->mem, w->meetings, w->meeting_cap);
	vec_free(w->mem, w->missing, w->missing_cap);
	vec_free(w->mem, w->odd, w->odd_cap);
	vec_free(w->mem, w->pending, w->pending_cap);
	arena_release(&w->arena);
}
