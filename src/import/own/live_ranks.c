/*
 * live_ranks.c: decides which processes of a recording are ranks of one training, and which are separate trainings.
 * import_live.c calls it before it makes one source per job and rank. Variables such as RANK decide if they are set;
 * mp.spawn and sweeps do not set them, so that several processes with steps would count as one. It changes only `run`
 * and `rank` of the processes.
 */
#include "import/own/own_int.h"

#include "base/vec.h"

/* A process that makes steps. */
struct trainer {
	struct live_job *job;
	str_id run; /* run of the process before any change */
	int32_t rank;
	uint32_t group; /* number of the group of ranks, from 1; 0: none */
	bool done;
};

struct trainers {
	struct live_data *d;
	struct trainer *items;
	size_t count, cap;
	/* number of groups of ranks; learned: number of processes whose rank was concluded */
	uint32_t groups, learned;
};

static bool is_trainer(const struct live_data *d, const struct live_job *job)
{
	if (!job->known || job->seen & LIVE_NAME_OPTIMIZER)
		return job->known;
	if (!(job->seen & LIVE_NAME_LOADER))
		return false;
	for (size_t i = 0; i < d->job_count;
	     i++) /* waits for batches count as steps if the process marks none */
		if (d->jobs[i].known && d->jobs[i].seen & LIVE_NAME_OPTIMIZER)
			return false;
	return true;
}

static ow_status add_trainers(struct trainers *t)
{
	struct live_data *d = t->d;

	for (size_t i = 0; i < d->job_count; i++) {
		struct live_job *job = &d->jobs[i];

		if ((job->repeats || is_trainer(d, job)) &&
		    !vec_push(d->mem, t->items, t->count, t->cap,
			      (struct trainer){ .job = job, .run = job->run, .rank = job->rank }))
			return import_no_memory(d->ctx);
	}
	return OW_OK;
}

/* Finds the processes that train: those that mark steps, or else those with repeated calls. */
static ow_status find_trainers(struct trainers *t)
{
	OW_TRY(add_trainers(t));
	if (t->count || t->d->job_count < 2)
		return OW_OK;
	OW_TRY(live_find_programs(t->d));
	return add_trainers(t);
}

static bool are_ranks(const struct trainer *a, const struct trainer *b)
{
	return b->rank < 0 && b->run.v == a->run.v && b->job->row.parent == a->job->row.parent &&
	       b->job->seen & LIVE_NAME_COLLECTIVE && b->job->first_ns <= a->job->last_ns &&
	       a->job->first_ns <= b->job->last_ns;
}

/* Groups siblings without a rank that communicate at the same time: they are ranks, in the order in which they were
 * started. */
static void group_siblings(struct trainers *t, size_t at)
{
	struct trainer *first = &t->items[at];
	int32_t rank = 0;

	if (first->group || first->rank >= 0 || !(first->job->seen & LIVE_NAME_COLLECTIVE))
		return;
	for (size_t i = at + 1; i < t->count; i++)
		if (!t->items[i].group && are_ranks(first, &t->items[i])) {
			if (!first->group)
				first->group = ++t->groups;
			t->items[i].group = first->group;
		}
	if (!first->group)
		return;
	for (size_t i = at; i < t->count; i++)
		if (t->items[i].group == first->group) {
			t->items[i].job->rank = rank++;
			t->learned++;
		}
	for (size_t i = at; i < t->count; i++)
		if (t->items[i].group == first->group)
			t->items[i].job->world_size = rank;
}

/* A new name for a training whose name is already used. */
static str_id new_run(struct trainers *t, str_id old, uint32_t pid)
{
	struct str name = model_str(t->d->b->m, old);
	char text[320];

	snprintf(text, sizeof(text), "%.*s%sprocess %u", (int)MIN(name.len, (size_t)256), name.ptr,
		 name.len ? ", " : "", pid);
	return builder_str(t->d->b, str_first(str_from(text), utf8_valid_prefix(str_from(text))));
}

/* The name for the n-th training with the same name: its ranks are the n-th processes with these ranks. */
static str_id nth_run(struct trainers *t, str_id old, uint32_t nth)
{
	struct str name = model_str(t->d->b->m, old);
	char text[320];

	snprintf(text, sizeof(text), "%.*s%straining %u", (int)MIN(name.len, (size_t)256), name.ptr,
		 name.len ? ", " : "", nth);
	return builder_str(t->d->b, str_first(str_from(text), utf8_valid_prefix(str_from(text))));
}

/* Sets the run of a trainer and, if it is a rank, of the others in its group. */
static void give_run(struct trainers *t, const struct trainer *of, str_id run)
{
	for (size_t i = 0; i < t->count; i++)
		if (&t->items[i] == of || (of->group && t->items[i].group == of->group)) {
			t->items[i].job->run = run;
			t->items[i].done = true;
		}
}

/* Gives other processes with this trainer's run and rank new names, unless they are ranks of the same group. */
static void name_others(struct trainers *t, size_t at)
{
	const struct trainer *first = &t->items[at];
	uint32_t nth = 1;

	if (first->done)
		return;
	give_run(t, first, first->run);
	for (size_t i = at + 1; i < t->count; i++) {
		const struct trainer *x = &t->items[i];

		if (!x->done && x->run.v == first->run.v && x->rank == first->rank)
			give_run(t, x,
				 x->rank >= 0 ? nth_run(t, x->run, ++nth)
					      : new_run(t, x->run, x->job->row.pid));
	}
}

static struct live_job *parent_of(struct live_data *d, const struct live_job *job)
{
	/* Searches backwards for the latest process: one that executes another program starts over with the same
	 * pid. */
	for (size_t i = (size_t)(job - d->jobs); i-- > 0;)
		if (d->jobs[i].known && d->jobs[i].row.pid == job->row.parent)
			return &d->jobs[i];
	return NULL;
}

/* Processes that a trainer has started get its run. Parents come before their children. */
static void follow_parents(struct trainers *t)
{
	struct live_data *d = t->d;

	for (size_t i = 0; i < d->job_count; i++) {
		const struct live_job *parent;

		if (!d->jobs[i].known || is_trainer(d, &d->jobs[i]))
			continue;
		parent = parent_of(d, &d->jobs[i]);
		for (size_t k = 0; parent && k < t->count; k++)
			if (parent->run.v == t->items[k].job->run.v &&
			    parent->rank == t->items[k].job->rank &&
			    (parent == t->items[k].job || parent->follows) &&
			    d->jobs[i].run.v == t->items[k].run.v &&
			    (d->jobs[i].rank < 0 || d->jobs[i].rank == parent->rank)) {
				d->jobs[i].run = parent->run;
				d->jobs[i].rank = parent->rank;
				d->jobs[i].follows = true;
				break;
			}
	}
}

ow_status live_separate_trainings(struct live_data *d)
{
	struct trainers t = { .d = d };
	ow_status status = find_trainers(&t);

	if (status == OW_OK && t.count > 1) {
		for (size_t i = 0; i < t.count; i++)
			group_siblings(&t, i);
		for (size_t i = 0; i < t.count; i++)
			name_others(&t, i);
		follow_parents(&t);
		if (t.learned)
			builder_note(
				d->b, NOTE_INFO, OW_NO_OFFSET,
				"%u processes that train together have no variable for their "
				"rank: they are numbered in the order in which they were started",
				t.learned);
		status = builder_status(d->b);
	}
	mem_free(d->mem, t.items, t.cap * sizeof(*t.items));
	return status;
}
