/*
 * answer_stacks.c: conclusions when only stacks are known: ranks that are in a collective wait for those that are not.
 * answer.c calls it for dumps of py-spy and for recordings. A stack shows one moment; a recording also shows for how
 * long.
 */
#include "hang/answer.h"

struct stack_view {
	struct str call; /* name of the collective that the process is in; empty: none */
	bool waits;	 /* the process waits for a device, or in backward */
};

static struct stack_view view_stack(struct str stack)
{
	struct stack_view v = { STR(""), false };
	struct str rest = stack, line, name, file, number;

	while (stack.len && str_split(&rest, '\n', &line)) {
		size_t dot;

		if (!words_frame(line, &name, &file, &number))
			continue;
		dot = str_rfind_char(name, '.');
		name = dot == STR_NONE ? name : str_skip(name, dot + 1);
		if (hang_is_collective_call(name, file))
			/* the outermost collective call: the one that the program made */
			v.call = name;
		v.waits = v.waits || hang_is_waiting_call(name, file);
	}
	return v;
}

static const struct hang_process *about_of(const struct answer *a, int32_t rank)
{
	uint32_t about = a->w->ranks[rank].about;

	return about == UINT32_MAX ? NULL : &a->job->processes[about];
}

/* Summary of the stacks of all ranks. */
struct stacks_view {
	size_t known, in_call,
		/* number of ranks with a stack, in a collective, waiting in another way */
		waiting;
	/* all ranks that are in a collective are in the same one, at the same place */
	bool same;
	struct str call, frames; /* name and frames of the collective that most ranks are in */
	int64_t standing_ns, longest_gap_ns;
};

/* The stack from the collective call on: two ranks with the same text are in the same call of the program. */
static struct str stack_below_call(struct str stack)
{
	struct str rest = stack, line, name, file, number, below = STR("");

	while (stack.len && str_split(&rest, '\n', &line))
		if (words_frame(line, &name, &file, &number) && hang_is_collective_call(name, file))
			below = rest.ptr ? rest : STR("");
	return below;
}

bool answer_stack_waits(struct str stack)
{
	struct stack_view v = view_stack(stack);

	return v.call.len || v.waits;
}

/* Finds the call that most processes are in (Boyer-Moore majority vote). */
static struct stacks_view view_stacks(const struct answer *a)
{
	struct stacks_view all = { .same = true, .call = STR(""), .standing_ns = INT64_MAX };
	size_t votes = 0;

	for (int32_t r = 0; r < a->w->world; r++) {
		const struct hang_process *p = about_of(a, r);
		struct stack_view v = view_stack(answer_stack(a, r));

		if (!answer_stack(a, r).len)
			continue;
		all.known++;
		all.longest_gap_ns = MAX(all.longest_gap_ns, p->longest_gap_ns);
		all.waiting += v.waits && !v.call.len;
		if (v.call.len || v.waits)
			all.standing_ns =
				MIN(all.standing_ns, p->stack_until_ns - p->stack_since_ns);
		if (!v.call.len)
			continue;
		all.in_call++;
		if (!votes) {
			all.call = v.call;
			all.frames = stack_below_call(answer_stack(a, r));
		}
		votes += !votes || str_eq(v.call, all.call) ? 1 : (size_t)-1;
	}
	for (int32_t r = 0; r < a->w->world; r++) {
		struct stack_view v = view_stack(answer_stack(a, r));

		if (v.call.len && (!str_eq(v.call, all.call) ||
				   !str_eq(stack_below_call(answer_stack(a, r)), all.frames)))
			all.same = false;
	}
	if (!all.in_call && all.waiting * 2 > all.known)
		all.call = STR("backward");
	return all;
}

/* Finds the number of the collective, if all waiting ranks have entered equally many, and the ranks to blame one
 * less. */
static void number_stacks(struct answer *a)
{
	int64_t entered = 0;

	for (int32_t r = 0; r < a->w->world; r++) {
		const struct hang_process *p = about_of(a, r);

		if (!p || !p->stack.len)
			continue;
		if (!p->counts_all)
			return;
		if (answer_stack_waits(p->stack)) {
			if (entered && p->entered != entered)
				return;
			entered = p->entered;
		}
	}
	for (size_t i = 0; i < a->rank_count; i++)
		if (about_of(a, a->ranks[i])->entered != entered - 1)
			return;
	if (entered)
		a->sequence = entered;
}

/* The answer is certain if the number of the collective and all ranks are known, and the ranks wait this many times
 * longer than ever before. */
#define SURE_TIMES 20
#define SURE_NS (5 * 1000000000LL)
#define LATE_TIMES 2

/* Whether the ranks wait no longer than between other collectives of the recording. */
static bool is_late(const struct stacks_view *all)
{
	return all->longest_gap_ns > 0 && all->standing_ns / LATE_TIMES < all->longest_gap_ns;
}

static void name_stack_hang(struct answer *a, const struct stacks_view *all)
{
	bool late = is_late(all);

	number_stacks(a);
	a->conclusion = late ? CONCLUDE_NONE : CONCLUDE_HANG;
	a->certain = !late && a->sequence != HANG_NO_SEQUENCE && a->w->world_known &&
		     all->known == (size_t)a->w->world && all->longest_gap_ns > 0 &&
		     all->standing_ns >= SURE_NS &&
		     all->standing_ns / SURE_TIMES >= all->longest_gap_ns;
	words_ranks(&a->sentence, a->ranks, a->rank_count);
	buf_printf(&a->sentence, " did not enter %.*s", (int)MIN(a->collective.len, 60u),
		   a->collective.ptr);
	if (a->sequence != HANG_NO_SEQUENCE)
		buf_printf(&a->sentence, " %lld", (long long)a->sequence);
	if (late)
		buf_puts(&a->sentence, " yet: late, not hung");
	else
		words_whereabouts(a, a->ranks[0]);
	buf_printf(&a->why, "%zu of %zu ranks are in it according to their stacks",
		   all->in_call ? all->in_call : all->waiting, all->known);
	if (all->standing_ns > 0 && all->standing_ns < INT64_MAX) {
		buf_puts(&a->why, ", for ");
		words_duration(&a->why, all->standing_ns);
		if (all->longest_gap_ns) {
			buf_puts(&a->why, "; before that the longest time between two was ");
			words_duration(&a->why, all->longest_gap_ns);
		}
	} else
		buf_puts(&a->why,
			 "; a stack shows one moment, so it may be slow rather than stuck");
	if (late)
		a->rank_count = 0;
}

static bool name_stack_mismatch(struct answer *a, const struct stacks_view *all)
{
	a->conclusion = CONCLUDE_MISMATCH;
	for (int32_t r = 0; r < a->w->world; r++) {
		struct stack_view v = view_stack(answer_stack(a, r));

		if (!v.call.len || (str_eq(v.call, all->call) &&
				    str_eq(stack_below_call(answer_stack(a, r)), all->frames)))
			continue;
		a->states[r] = "different";
		if (!answer_blame(a, r))
			return false;
	}
	buf_printf(&a->sentence, "ranks are in different collectives: most in %.*s, ",
		   (int)MIN(all->call.len, 60u), all->call.ptr);
	words_ranks(&a->sentence, a->ranks, a->rank_count);
	buf_puts(&a->sentence, " in another, at ");
	words_place(&a->sentence, answer_stack(a, a->ranks[0]));
	buf_puts(&a->why, "their stacks are in different calls");
	return true;
}

bool answer_by_stacks(struct answer *a)
{
	struct stacks_view all = view_stacks(a);

	if (!all.known)
		return true;
	a->collective = all.call;
	for (int32_t r = 0; r < a->w->world; r++) {
		if (!answer_stack(a, r).len)
			continue;
		a->states[r] = answer_stack_waits(answer_stack(a, r)) ? "waiting" : "elsewhere";
		if (!answer_stack_waits(answer_stack(a, r)) && all.call.len && !answer_blame(a, r))
			return false;
	}
	if (a->rank_count && a->rank_count < all.known) {
		for (size_t i = 0; i < a->rank_count; i++)
			a->states[a->ranks[i]] = "not_entered";
		name_stack_hang(a, &all);
		return true;
	}
	a->rank_count = 0;
	if (all.in_call && is_late(&all)) {
		a->conclusion = CONCLUDE_NONE;
		a->collective = STR("");
		buf_puts(&a->sentence, "the ranks are in collectives, for no longer than before: "
				       "the recording shows no hang");
		buf_puts(&a->why, "the longest time between two collectives was ");
		words_duration(&a->why, all.longest_gap_ns);
		return true;
	}
	if (all.in_call == all.known && !all.same)
		return name_stack_mismatch(a, &all);
	a->conclusion = all.in_call ? CONCLUDE_CANNOT_TELL : CONCLUDE_NONE;
	buf_puts(&a->sentence, a->conclusion == CONCLUDE_NONE
				       ? "no rank waits in a collective: the stacks show no hang"
				       : "all ranks that are known are in the same collective");
	buf_puts(&a->why,
		 a->conclusion == CONCLUDE_NONE
			 ? "no stack is in a collective"
			 : "a rank that is not known may be missing, or the network hangs");
	a->collective = STR("");
	return true;
}
