/*
 * answer_words.c: texts for ranks, collectives and code locations in the answer (answer.h). Texts from files are made
 * printable. It draws no conclusions.
 */
#include "hang/answer.h"

#include "base/human.h"

#define NAMED 8u /* limit of ranks named in a sentence */

bool answer_blame(struct answer *a, int32_t rank)
{
	for (size_t i = 0; i < a->rank_count; i++)
		if (a->ranks[i] == rank)
			return true;
	return vec_push(a->mem, a->ranks, a->rank_count, a->rank_cap, rank);
}

struct str words_group(const struct hang_group *g)
{
	if (g->about.len && !str_eq(g->about, STR("undefined")))
		return g->about;
	return g->name;
}

void words_ranks(struct buf *to, const int32_t *ranks, size_t count)
{
	if (count > NAMED)
		buf_printf(to, "%zu ranks (", count);
	else
		buf_puts(to, count == 1 ? "rank " : "ranks ");
	for (size_t i = 0; i < MIN(count, (size_t)NAMED); i++)
		buf_printf(to, "%s%d", !i ? "" : i + 1 == count ? " and " : ", ", (int)ranks[i]);
	if (count > NAMED)
		buf_puts(to, ", …)");
}

void words_meeting(struct answer *a, struct buf *to, const struct hang_meeting *m)
{
	struct str group = words_group(&a->job->groups[m->group]);

	buf_printf(to, "%.*s", (int)MIN(m->name.len, 60u), m->name.ptr);
	if (m->message)
		buf_printf(to, " of rank %d to rank %d", (int)m->from, (int)m->to);
	else if (m->sequence != HANG_NO_SEQUENCE)
		buf_printf(to, " %lld", (long long)m->sequence);
	buf_puts(to, " of group ");
	human_printable(to, str_first(group, 80));
}

/* Whether a file belongs to Python itself or to a package: a program may wait there, but the user's code is
 * elsewhere. */
static bool is_library(struct str file)
{
	return str_has(file, STR("site-packages")) || str_has(file, STR("dist-packages")) ||
	       str_has(file, STR("/lib/python")) || str_has(file, STR("<frozen")) ||
	       str_has(file, STR("torch/")) || str_has(file, STR("<string>")) ||
	       str_ends(file, STR(".so")) || str_has(file, STR(".so.")) ||
	       str_starts(file, STR("threading.py")) || str_starts(file, STR("multiprocessing/")) ||
	       str_starts(file, STR("importlib/"));
}

bool words_frame(struct str line, struct str *name, struct str *file, struct str *number)
{
	size_t open = str_rfind_char(line, '('), colon;
	struct str place;

	if (open == STR_NONE || !line.len || line.ptr[line.len - 1] != ')')
		return false;
	*name = str_trim(str_first(line, open));
	place = str_first(str_skip(line, open + 1), line.len - open - 2);
	colon = str_rfind_char(place, ':');
	*file = colon == STR_NONE ? place : str_first(place, colon);
	*number = colon == STR_NONE ? STR("") : str_skip(place, colon + 1);
	return true;
}

bool words_place(struct buf *to, struct str stack)
{
	struct str rest = stack, line, name, file, number, best = { 0 };
	size_t slash;

	if (!stack.len)
		return false;
	while (str_split(&rest, '\n', &line)) {
		if (!words_frame(line, &name, &file, &number))
			continue;
		best = best.ptr ? best : line;
		if (!is_library(file)) {
			best = line;
			break;
		}
	}
	if (!best.ptr || !words_frame(best, &name, &file, &number))
		return false;
	slash = str_rfind_char(file, '/');
	file = slash == STR_NONE ? file : str_skip(file, slash + 1);
	human_printable(to, str_first(file, 100));
	if (number.len)
		buf_printf(to, ":%.*s", (int)MIN(number.len, 12u), number.ptr);
	buf_puts(to, " ");
	human_printable(to, str_first(name, 100));
	return true;
}

struct str answer_stack(const struct answer *a, int32_t rank)
{
	uint32_t about = a->w->ranks[rank].about;

	return about == UINT32_MAX ? STR("") : a->job->processes[about].stack;
}

const struct hang_op *answer_last_op(const struct answer *a, int32_t rank)
{
	const struct wait_rank *r = &a->w->ranks[rank];
	const struct hang_op *last = NULL;

	for (size_t i = r->first_op; r->dump != UINT32_MAX && i < r->end_op; i++) {
		const struct hang_op *op = &a->job->ops[a->w->by_place[i]];

		if (!last || op->order >= last->order)
			last = op;
	}
	return last;
}

void words_whereabouts(struct answer *a, int32_t rank)
{
	const struct hang_op *last = answer_last_op(a, rank);
	size_t before = a->sentence.len;

	if (answer_stack(a, rank).len) {
		buf_puts(&a->sentence, "; it is in ");
		if (words_place(&a->sentence, answer_stack(a, rank)))
			return;
		a->sentence.len = before;
	}
	if (last && last->stack.len) {
		buf_printf(&a->sentence, "; the last that it called is %.*s at ",
			   (int)MIN(last->name.len, 60u), last->name.ptr);
		if (!words_place(&a->sentence, last->stack))
			a->sentence.len = before;
	}
}

void words_duration(struct buf *to, int64_t ns)
{
	char text[HUMAN_SIZE];

	human_int(text, ns, HUMAN_UNIT_NS_APART, false);
	buf_puts(to, text);
}
