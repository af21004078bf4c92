/*
 * tasks.c: handles jobs of TensorFlow 1, whose files are steps and not ranks (ranks.h). A traced run of a session is
 * one file with the records of all its tasks. Here the parts of each task are joined, so that a task becomes one worker
 * with many steps; runs are numbered by time, separately for the sessions of different workers; ranks are the workers
 * in the order of their tasks, then the parameter servers. Called before identity.c.
 */
#include "ranks/read.h"

#include "analyze/steps/steady.h"
#include "base/vec.h"

#include <stdlib.h>

/* One step of one file. */
struct run {
	uint32_t file;
	int64_t local;	  /* number of the step within the file */
	uint64_t session; /* hash of the tasks in the file that are not servers */
	int64_t start_ns; /* start on the clock of the lowest task that is not a server */
	int64_t number;
};

struct joining {
	struct ranks_job *job;
	struct ow_error *err;
	struct run *runs;
	size_t run_count;
};

/* Compares tasks: chiefs come before workers, workers before servers. */
static int compare_tasks(const struct worker *a, const struct worker *b)
{
	int order;

	if (a->server != b->server)
		return a->server ? 1 : -1;
	order = str_cmp(task_job(a->task), task_job(b->task));
	if (order)
		return order;
	if (task_number(a->task) != task_number(b->task))
		return task_number(a->task) < task_number(b->task) ? -1 : 1;
	return str_cmp(a->task, b->task);
}

/* Sorts workers: those that are not tasks first, then the parts of each task by time. */
static int by_task(const void *x, const void *y)
{
	const struct worker *a = x, *b = y;
	int order;

	if (!a->task.len || !b->task.len)
		return (a->task.len > 0) - (b->task.len > 0);
	order = compare_tasks(a, b);
	if (order)
		return order;
	if (a->first_ns != b->first_ns)
		return a->first_ns < b->first_ns ? -1 : 1;
	return (a->file > b->file) - (a->file < b->file);
}

static int by_session(const void *x, const void *y)
{
	const struct run *a = x, *b = y;

	if (a->session != b->session)
		return a->session < b->session ? -1 : 1;
	if (a->start_ns != b->start_ns)
		return a->start_ns < b->start_ns ? -1 : 1;
	return (a->file > b->file) - (a->file < b->file);
}

static int by_place(const void *x, const void *y)
{
	const struct run *a = x, *b = y;

	if (a->file != b->file)
		return a->file < b->file ? -1 : 1;
	return (a->local > b->local) - (a->local < b->local);
}

/* Finds parts of one task with the same times: their file is a copy. */
static void find_doubles(struct ranks_job *job)
{
	for (size_t i = 1; i < job->worker_count; i++) {
		struct worker *a = &job->workers[i - 1], *b = &job->workers[i];

		b->is_double = b->task.len && str_eq(a->task, b->task) && a->hash == b->hash &&
			       a->events == b->events && a->first_ns == b->first_ns &&
			       a->file != b->file;
	}
}

/* Lists the steps of all files. Workers are sorted: the first of a file is the one whose clock counts. */
static ow_status list_runs(struct joining *j)
{
	struct ranks_job *job = j->job;
	size_t count = 0, at;
	uint32_t files = 0;
	size_t *first;

	for (size_t i = 0; i < job->worker_count; i++) {
		count += job->workers[i].step_count;
		files = MAX(files, job->workers[i].file + 1);
	}
	j->runs = ARENA_ARRAY(&job->arena, struct run, count + 1);
	first = ARENA_ARRAY(&job->arena, size_t, files + 1);
	if (!j->runs || !first)
		return error_no_memory(j->err);
	for (size_t i = 0; i < job->worker_count; i++) {
		const struct worker *w = &job->workers[i];

		if (!w->task.len || w->is_double || first[w->file])
			continue;
		first[w->file] = j->run_count + 1;
		for (size_t s = 0; s < w->step_count; s++)
			j->runs[j->run_count++] = (struct run){ .file = w->file,
								.local = w->steps[s].number,
								.start_ns = w->steps[s].start_ns };
	}
	for (size_t i = 0; i < job->worker_count; i++) {
		const struct worker *w = &job->workers[i];

		at = first[w->file];
		if (!w->task.len || w->is_double || w->server || !at)
			continue;
		for (at--; at < j->run_count && j->runs[at].file == w->file; at++)
			j->runs[at].session = j->runs[at].session * 31 + str_hash(w->task);
	}
	return OW_OK;
}

static void number_runs(struct joining *j)
{
	if (!j->run_count)
		return;
	qsort(j->runs, j->run_count, sizeof(*j->runs), by_session);
	for (size_t i = 1; i < j->run_count; i++)
		if (j->runs[i].session == j->runs[i - 1].session)
			j->runs[i].number = j->runs[i - 1].number + 1;
	qsort(j->runs, j->run_count, sizeof(*j->runs), by_place);
}

/* The number of a step of a file; NO_STEP when the task whose clock counts does not have it. */
static int64_t number_of(const struct joining *j, uint32_t file, int64_t local)
{
	struct run key = { .file = file, .local = local };
	const struct run *found =
		j->run_count ? bsearch(&key, j->runs, j->run_count, sizeof(*j->runs), by_place)
			     : NULL;

	return found ? found->number : NO_STEP;
}

static void renumber(const struct joining *j, struct worker *w)
{
	for (size_t i = 0; i < w->step_count; i++)
		w->steps[i].number = number_of(j, w->file, w->steps[i].number);
	for (size_t i = 0; i < w->collective_count; i++) {
		struct collective *c = &w->collectives[i];

		c->step = number_of(j, w->file, c->step);
		c->seq = c->step == NO_STEP ? -1 : c->step;
	}
}

struct message {
	uint64_t edge;
	int64_t step, bytes;
};

static int by_edge(const void *x, const void *y)
{
	const struct message *a = x, *b = y;

	if (a->edge != b->edge)
		return a->edge < b->edge ? -1 : 1;
	return (a->step > b->step) - (a->step < b->step);
}

/* Copies the sizes of receives to their sends, which do not record them. */
static ow_status size_sends(struct joining *j)
{
	struct ranks_job *job = j->job;
	struct message *all;
	size_t count = 0;

	for (size_t i = 0; i < job->worker_count; i++)
		count += job->workers[i].task.len ? job->workers[i].collective_count : 0;
	all = ARENA_ARRAY(&job->arena, struct message, count + 1);
	if (!all)
		return error_no_memory(j->err);
	count = 0;
	for (unsigned sends = 0; sends < 2; sends++) {
		for (size_t i = 0; i < job->worker_count; i++) {
			struct worker *w = &job->workers[i];

			for (size_t k = 0; w->task.len && k < w->collective_count; k++) {
				struct collective *c = &w->collectives[k];
				struct message one = { c->group, c->step, c->bytes };
				const struct message *found;

				if ((c->kind == COLLECTIVE_SEND) != !!sends)
					continue;
				if (!sends) {
					all[count++] = one;
					continue;
				}
				found = count ? bsearch(&one, all, count, sizeof(*all), by_edge)
					      : NULL;
				c->bytes = found ? found->bytes : -1;
			}
		}
		if (!sends && count)
			qsort(all, count, sizeof(*all), by_edge);
	}
	return OW_OK;
}

/* A moment at which a part begins, ends, pauses or continues. */
struct turn {
	int64_t ns;
	int8_t active, paused;
};

static int by_turn(const void *x, const void *y)
{
	const struct turn *a = x, *b = y;

	return (a->ns > b->ns) - (a->ns < b->ns);
}

/* Joins the pauses of a server's parts. A server works for several sessions concurrently: it pauses while the parts
 * of all of them pause. */
static ow_status join_pauses(struct joining *j, struct worker *parts, size_t count)
{
	struct mem *mem = j->job->mem;
	struct pause *pauses = NULL;
	size_t turns = 0, pause_count = 0, pause_cap = 0;
	int64_t active = 0, paused = 0;
	struct turn *all;

	for (size_t i = 0; i < count; i++)
		turns += 2 * parts[i].pause_count + 2;
	all = ARENA_ARRAY(&j->job->arena, struct turn, turns + 1);
	if (!all)
		return error_no_memory(j->err);
	turns = 0;
	for (size_t i = 0; i < count; i++) {
		all[turns++] = (struct turn){ parts[i].first_ns, 1, 0 };
		all[turns++] = (struct turn){ parts[i].last_ns, -1, 0 };
		for (size_t k = 0; k < parts[i].pause_count; k++) {
			all[turns++] = (struct turn){ parts[i].pauses[k].begin_ns, 0, 1 };
			all[turns++] = (struct turn){ parts[i].pauses[k].end_ns, 0, -1 };
		}
	}
	qsort(all, turns, sizeof(*all), by_turn);
	for (size_t i = 0; i < turns; i++) {
		active += all[i].active;
		paused += all[i].paused;
		if (i + 1 == turns || all[i + 1].ns == all[i].ns || !active || paused < active)
			continue;
		if (pause_count && pauses[pause_count - 1].end_ns == all[i].ns)
			pauses[pause_count - 1].end_ns = all[i + 1].ns;
		else if (!vec_push(mem, pauses, pause_count, pause_cap,
				   (struct pause){ all[i].ns, all[i + 1].ns, 0 })) {
			vec_free(mem, pauses, pause_cap);
			return error_no_memory(j->err);
		}
	}
	for (size_t i = 1; i < pause_count; i++)
		pauses[i].before_ns =
			pauses[i - 1].before_ns + (pauses[i - 1].end_ns - pauses[i - 1].begin_ns);
	vec_free(mem, parts[0].pauses, parts[0].pause_cap);
	parts[0].pauses = pauses;
	parts[0].pause_count = pause_count;
	parts[0].pause_cap = pause_cap;
	return OW_OK;
}

static bool add_step(struct joining *j, struct worker *to, const struct worker_step *step)
{
	struct worker_step *known = worker_step_of(to, step->number);

	if (!known)
		return vec_push(j->job->mem, to->steps, to->step_count, to->step_cap, *step);
	known->start_ns = MIN(known->start_ns, step->start_ns);
	known->end_ns = MAX(known->end_ns, step->end_ns);
	known->slices += step->slices;
	for (unsigned c = 0; c < CLASS_COUNT; c++)
		known->class_ns[c] = span_add(known->class_ns[c], step->class_ns[c]);
	return true;
}

static bool add_op(struct joining *j, struct worker *to, const struct worker_op *op)
{
	for (size_t i = 0; i < to->op_count; i++)
		if (to->ops[i].name == op->name) {
			to->ops[i].ns = span_add(to->ops[i].ns, op->ns);
			to->ops[i].count += op->count;
			return true;
		}
	return vec_push(j->job->mem, to->ops, to->op_count, to->op_cap, *op);
}

static int by_start(const void *a, const void *b)
{
	const struct collective *x = a, *y = b;

	if (x->start_ns != y->start_ns)
		return x->start_ns < y->start_ns ? -1 : 1;
	return (x->end_ns > y->end_ns) - (x->end_ns < y->end_ns);
}

static int by_time(const void *a, const void *b)
{
	const struct worker_step *x = a, *y = b;

	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static ow_status choose_steps(struct joining *j, struct worker *w)
{
	struct phase_window *all =
		ARENA_ARRAY(&j->job->arena, struct phase_window, w->step_count + 1);
	struct phase_window **list =
		ARENA_ARRAY(&j->job->arena, struct phase_window *, w->step_count + 1);

	if (!all || !list)
		return error_no_memory(j->err);
	for (size_t i = 0; i < w->step_count; i++) {
		all[i] = (struct phase_window){ .start_ns = w->steps[i].start_ns,
						.end_ns = w->steps[i].end_ns,
						.known = true };
		list[i] = &all[i];
	}
	if (w->step_count)
		steady_choose(list, (uint32_t)w->step_count);
	for (size_t i = 0; i < w->step_count; i++)
		w->steps[i].use = all[i].use;
	return OW_OK;
}

/* Joins parts [0, count), which belong to one task; the first becomes the whole. */
static ow_status join_parts(struct joining *j, struct worker *parts, size_t count)
{
	struct worker *w = &parts[0];

	OW_TRY(join_pauses(j, parts, count));
	for (size_t i = 1; i < count; i++) {
		const struct worker *part = &parts[i];
		bool good = true;

		for (size_t k = 0; k < part->collective_count && good; k++)
			good = vec_push(j->job->mem, w->collectives, w->collective_count,
					w->collective_cap, part->collectives[k]);
		for (size_t k = 0; k < part->step_count && good; k++)
			good = add_step(j, w, &part->steps[k]);
		for (size_t k = 0; k < part->op_count && good; k++)
			good = add_op(j, w, &part->ops[k]);
		if (!good)
			return error_no_memory(j->err);
		w->first_ns = MIN(w->first_ns, part->first_ns);
		w->last_ns = MAX(w->last_ns, part->last_ns);
		w->hash += part->hash;
		w->events += part->events;
		w->resolution_ns = MIN(w->resolution_ns, part->resolution_ns);
	}
	if (w->collective_count)
		qsort(w->collectives, w->collective_count, sizeof(*w->collectives), by_start);
	if (w->step_count)
		qsort(w->steps, w->step_count, sizeof(*w->steps), by_time);
	for (size_t i = 1; i < w->step_count; i++) {
		const struct worker_step *before = &w->steps[i - 1];

		w->overlaps |= before->end_ns - w->steps[i].start_ns >
			       (before->end_ns - before->start_ns) / 20;
	}
	return choose_steps(j, w);
}

/* Joins the parts of every task. For a file that is a copy one task is kept, to be listed among the copies. */
static ow_status join_all(struct joining *j)
{
	struct ranks_job *job = j->job;
	size_t kept = 0, end;
	int32_t rank = 0;

	for (size_t i = 0; i < job->worker_count; i = end) {
		const struct worker *first = &job->workers[i];
		size_t count = 0;

		for (end = i; end < job->worker_count &&
			      str_eq(job->workers[end].task, first->task) &&
			      (end == i || first->task.len);)
			end++;
		if (!first->task.len) {
			job->workers[kept++] = *first;
			continue;
		}
		/* copies come after the others, in the same order */
		for (size_t k = i; k < end; k++) {
			struct worker part = job->workers[k];

			if (part.is_double)
				continue;
			memmove(&job->workers[i + count + 1], &job->workers[i + count],
				(k - i - count) * sizeof(part));
			job->workers[i + count++] = part;
		}
		OW_TRY(join_parts(j, &job->workers[i], count));
		job->workers[i].rank = rank;
		job->workers[kept++] = job->workers[i];
		for (size_t k = i + 1; k < end; k++) {
			if (job->workers[k].is_double && !rank) {
				job->workers[k].rank = rank;
				job->workers[kept++] = job->workers[k];
			} else {
				ranks_worker_release(&job->workers[k], job->mem);
			}
		}
		rank++;
	}
	job->worker_count = kept;
	return OW_OK;
}

ow_status ranks_join_tasks(struct ranks_job *job, struct ow_error *err)
{
	struct joining j = { .job = job, .err = err };
	bool any = false;

	for (size_t i = 0; i < job->worker_count; i++)
		any |= job->workers[i].task.len > 0;
	if (!any)
		return OW_OK;
	qsort(job->workers, job->worker_count, sizeof(*job->workers), by_task);
	find_doubles(job);
	OW_TRY(list_runs(&j));
	number_runs(&j);
	for (size_t i = 0; i < job->worker_count; i++)
		if (job->workers[i].task.len)
			renumber(&j, &job->workers[i]);
	OW_TRY(size_sends(&j));
	return join_all(&j);
}
