/*
 * anomaly_why.c: makes the sentences of anomaly.h. For longer steps it compares phases, operations and ranks before and
 * after; for a stall it names the rank whose last step ended first and the line of its main thread, if that can be
 * read. It decides nothing: anomaly.c does.
 */
#include "watch/anomaly.h"

#include "base/clock.h"
#include "base/error.h"

#include <time.h>
#include <unistd.h>

#define COMPARED 64u /* limit of steps that are compared on each side */
#define NOTICED                                                                                    \
	0.25 /* a phase, operation or rank with at least this share of the growth is named */
#define LOOK_BYTES ((uint64_t)8 << 20)

static void add_ms(struct buf *to, double ns)
{
	if (ns >= 1e9)
		buf_printf(to, "%.2f s", ns / 1e9);
	else
		buf_printf(to, ns < 99.95e6 ? "%.1f ms" : "%.0f ms", ns / 1e6);
}

static void add_clock(struct buf *to, int64_t wall_ns)
{
	time_t seconds = (time_t)(wall_ns / 1000000000);
	char clock[16];
	struct tm tm;

	if (localtime_r(&seconds, &tm) && strftime(clock, sizeof(clock), "%H:%M:%S", &tm))
		buf_puts(to, clock);
}

struct side {
	double share[CLASS_COUNT]; /* mean over the steps */
	uint32_t steps;
	int64_t from_ns, to_ns; /* wall-clock times */
};

static void add_step(struct side *side, const struct watch_step *s)
{
	for (unsigned c = 0; c < CLASS_COUNT; c++)
		side->share[c] += (double)s->share[c];
	side->from_ns = side->steps ? MIN(side->from_ns, s->start_ns) : s->start_ns;
	side->to_ns = side->steps ? MAX(side->to_ns, s->end_ns) : s->end_ns;
	side->steps++;
}

static void split_steps(const struct watch_rank *r, int64_t since_ns, struct side *before,
			struct side *after)
{
	uint64_t kept = MIN(r->count, (uint64_t)WATCH_STEPS);

	*before = *after = (struct side){ 0 };
	for (uint64_t i = r->count; i-- > r->count - kept;) {
		const struct watch_step *s = watch_step_at(r, i);

		if (s->start_ns >= since_ns)
			add_step(after, s);
		else if (before->steps < COMPARED)
			add_step(before, s);
	}
	for (unsigned c = 0; c < CLASS_COUNT; c++) {
		before->share[c] /= MAX(before->steps, 1u);
		after->share[c] /= MAX(after->steps, 1u);
	}
}

#define OPS 48u

struct op_list {
	struct window_op items[OPS];
	size_t count;
	double steps; /* number of steps in this range of time */
};

/* Counts the steps of a side that were read completely; *begin_ns is the begin of the first. */
static uint32_t whole_steps(const struct anomaly_why *why, const struct side *side,
			    int64_t begin_ns, int64_t *from_ns)
{
	const struct watch_rank *r = why->rank;
	uint64_t kept = MIN(r->count, (uint64_t)WATCH_STEPS);
	uint32_t count = 0;

	*from_ns = side->to_ns;
	for (uint64_t i = r->count - kept; i < r->count; i++) {
		const struct watch_step *s = watch_step_at(r, i);

		if (s->start_ns < MAX(side->from_ns, begin_ns) || s->end_ns > side->to_ns)
			continue;
		*from_ns = MIN(*from_ns, s->start_ns);
		count++;
	}
	return count;
}

/* The number of steps that the available records cover; with very many records only the last part is read. */
static bool steps_covered(const struct anomaly_why *why, const struct side *side, int64_t begin_ns,
			  struct op_list *ops, int64_t *from_ns)
{
	double mean = (double)(side->to_ns - side->from_ns) / MAX(side->steps, 1u);

	ops->steps = whole_steps(why, side, begin_ns, from_ns);
	if (ops->steps > 0)
		return true;
	*from_ns = MAX(side->from_ns, begin_ns); /* a part of a step */
	ops->steps = mean > 0 ? (double)(side->to_ns - *from_ns) / mean : 0;
	return ops->steps > 0;
}

/* The time of each operation in a range; empty when the records cannot be read any more. */
static ow_status ops_of(const struct anomaly_why *why, const struct side *side, struct op_list *ops,
			struct ow_error *err)
{
	struct follow *f = &why->file->follow;
	int64_t wall = follow_wall(f, 0);
	struct follow_range range = { .from_ns = side->from_ns - wall,
				      .to_ns = side->to_ns - wall,
				      .bytes_max = LOOK_BYTES,
				      .no_samples = true };
	struct ow_error problem = { 0 };
	struct window_summary look;
	ow_status status;
	int64_t from;

	*ops = (struct op_list){ 0 };
	OW_TRY(follow_cut_buf(f, &range, &why->watch->cut, err));
	if (!range.records ||
	    !steps_covered(why, side,
			   range.begin_ns == INT64_MIN ? INT64_MIN : range.begin_ns + wall, ops,
			   &from))
		return OW_OK;
	status = window_summary_make(&look, why->watch->mem, &why->watch->cut,
				     why->watch->step_marker, &problem);
	if (status == OW_OK)
		status = window_summary_ops(&look, from, side->to_ns, why->rank->rank, ops->items,
					    OPS, &ops->count, &problem);
	window_summary_release(&look);
	return status == OW_E_NO_MEMORY ? error_no_memory(err) : OW_OK;
}

/* The time of an operation per step. */
static double time_of(const struct op_list *ops, const char *name)
{
	for (size_t i = 0; i < ops->count; i++)
		if (strcmp(ops->items[i].name, name) == 0)
			return (double)ops->items[i].self_ns / ops->steps;
	return 0;
}

/* The operation with the largest share of the growth. */
static const struct window_op *grown_op(const struct op_list *before, const struct op_list *after,
					double least)
{
	const struct window_op *most = NULL;
	double most_ns = least;

	for (size_t i = 0; i < after->count; i++) {
		double more = time_of(after, after->items[i].name) -
			      time_of(before, after->items[i].name);

		if (more > most_ns) {
			most = &after->items[i];
			most_ns = more;
		}
	}
	return most;
}

static double own_of(const struct side *side)
{
	double own = 0;

	for (unsigned c = 0; c < CLASS_COUNT; c++)
		own += c == CLASS_COMMUNICATION ? 0 : side->share[c];
	return own;
}

/* The rank whose own work, without waiting for others, grew: its steps show why. */
static const struct watch_rank *grown_rank(const struct anomaly_why *why)
{
	const struct watch_rank *most = why->rank;
	double most_ns = 0;

	for (size_t i = 0; i < why->file->rank_count; i++) {
		struct side before, after;
		double more;

		split_steps(why->file->ranks[i], why->since_ns, &before, &after);
		more = own_of(&after) - own_of(&before);
		if (before.steps && after.steps && more > most_ns) {
			most = why->file->ranks[i];
			most_ns = more;
		}
	}
	return most;
}

/* Adds the load of this machine over the last minute: the number of threads that run or wait for a processor. */
static void add_load(struct buf *to)
{
	double load;
	long processors = sysconf(_SC_NPROCESSORS_ONLN);

	if (getloadavg(&load, 1) == 1 && processors > 0)
		buf_printf(to, " (load %.0f on %ld processors)", load, processors);
}

static void add_phases(struct buf *to, const struct side *before, const struct side *after,
		       double growth, unsigned *main_class)
{
	double most = 0;
	bool any = false;

	*main_class = CLASS_COUNT;
	for (unsigned c = 0; c < CLASS_COUNT; c++) {
		double more = after->share[c] - before->share[c];

		if (more > most) {
			*main_class = c;
			most = more;
		}
	}
	for (unsigned k = 0; k < CLASS_COUNT; k++) {
		unsigned c = phase_class_order[k];
		double more = after->share[c] - before->share[c];

		if (more < NOTICED * growth && c != *main_class)
			continue;
		buf_printf(to, "%s%s went from ", any ? ", " : "",
			   c == CLASS_IDLE	  ? "unrecorded time"
			   : c == CLASS_RUN_QUEUE ? "waits for processors"
						  : phase_class_names[c]);
		add_ms(to, before->share[c]);
		buf_puts(to, " to ");
		add_ms(to, after->share[c]);
		any = true;
	}
	if (*main_class == CLASS_RUN_QUEUE)
		add_load(to);
}

/* Adds "on rank 3 ", or "in process 4711 " if there are no ranks. */
static void add_where(struct buf *to, const struct watch_rank *r)
{
	if (r->rank >= 0)
		buf_printf(to, "on rank %d ", (int)r->rank);
	else if (r->pid)
		buf_printf(to, "in process %u ", r->pid);
}

ow_status anomaly_explain_change(const struct anomaly_why *given, struct buf *to,
				 struct ow_error *err)
{
	struct anomaly_why why = *given;
	struct op_list ops_before, ops_after;
	struct side before, after;
	const struct window_op *op;
	unsigned main_class;
	double growth;

	why.rank = grown_rank(given);
	split_steps(why.rank, why.since_ns, &before, &after);
	growth = (double)(why.change.after_ns - why.change.before_ns);
	buf_printf(to, "steps take %.0f %% longer since ", why.change.by * 100);
	add_clock(to, why.since_ns);
	buf_puts(to, " (");
	add_ms(to, (double)why.change.after_ns);
	buf_puts(to, ", before ");
	add_ms(to, (double)why.change.before_ns);
	buf_puts(to, "): ");
	if (!before.steps || !after.steps) {
		buf_puts(to, "the cause is unknown");
		return OW_OK;
	}
	if (why.file->rank_count > 1)
		add_where(to, why.rank);
	add_phases(to, &before, &after, growth, &main_class);
	OW_TRY(ops_of(&why, &before, &ops_before, err));
	OW_TRY(ops_of(&why, &after, &ops_after, err));
	op = grown_op(&ops_before, &ops_after, NOTICED * growth);
	if (op && main_class != CLASS_IDLE && main_class != CLASS_RUN_QUEUE) {
		buf_printf(to, ", most of it in %s (", op->name);
		add_ms(to, time_of(&ops_before, op->name));
		buf_puts(to, " to ");
		add_ms(to, time_of(&ops_after, op->name));
		buf_puts(to, " per step)");
	}
	return to->failed ? error_no_memory(err) : OW_OK;
}

struct place {
	pid_t pid;
	char text[256];
};

/* Sets the innermost frame, without the folder of its file. */
static void set_place(struct place *place, struct str frame)
{
	size_t at = str_find(frame, STR(" (")), slash = str_rfind_char(frame, '/');
	struct str name = at == STR_NONE ? frame : str_make(frame.ptr, at);
	struct str file = str_skip(frame, at == STR_NONE			? frame.len
					  : slash != STR_NONE && slash > at + 1 ? slash + 1
										: at + 2);

	snprintf(place->text, sizeof(place->text), "%.*s (%.*s", (int)MIN(name.len, (size_t)80),
		 name.ptr, (int)MIN(file.len, (size_t)90), file.ptr);
}

/* Finds the stack of the process that makes the rank's steps; if there are several, of the first. */
static void find_place(const struct anomaly_why *why, struct place *place)
{
	int64_t left_ns = ANOMALY_STACK_NS;
	struct buf frame;

	buf_init(&frame, why->watch->mem);
	for (size_t i = 0; i < why->file->follow.process_count && !place->text[0]; i++) {
		const struct follow_process *p = &why->file->follow.processes[i];

		if (p->ended || (p->row.flags & LIVE_FORKED))
			continue;
		place->pid = (pid_t)p->row.pid;
		if (anomaly_stack(place->pid, 1, &left_ns, &frame))
			set_place(place, buf_str(&frame));
	}
	buf_release(&frame);
}

/* The rank that has made the fewest steps, if it is the only one. */
static const struct watch_rank *rank_behind(const struct anomaly_why *why)
{
	const struct watch_rank *last = NULL;
	bool alone = false;

	for (size_t i = 0; i < why->file->rank_count; i++) {
		const struct watch_rank *r = why->file->ranks[i];

		/* processes without ranks are separate trainings that do not wait for each other */
		if (r->rank < 0)
			return NULL;
		if (!last || r->last_end_ns < last->last_end_ns) {
			alone = last != NULL;
			last = r;
		}
	}
	return alone || (why->file->rank_count > 1 && last == why->file->ranks[0]) ? last : NULL;
}

ow_status anomaly_explain_stall(const struct anomaly_why *why, struct buf *to, struct ow_error *err)
{
	const struct watch_rank *late = rank_behind(why);
	int64_t median = watch_step_median(why->rank, 0, why->rank->count);
	int64_t quiet = clock_ns(CLOCK_MONOTONIC) - why->file->follow.newest_ns;
	struct place place = { 0 };

	buf_puts(to, "no step for ");
	add_ms(to, (double)why->stalled_ns);
	buf_puts(to, "; steps took ");
	add_ms(to, (double)median);
	if (late)
		buf_printf(to, "; the last step of rank %d ended first", (int)late->rank);
	find_place(why, &place);
	if (place.text[0])
		buf_printf(to, ": process %d is in %s", (int)place.pid, place.text);
	else if (why->file->follow.newest_ns != INT64_MIN && quiet > why->stalled_ns / 2)
		buf_puts(to, ": nothing was recorded since");
	else
		buf_puts(to, ": it is busy, but finishes no step");
	return to->failed ? error_no_memory(err) : OW_OK;
}
