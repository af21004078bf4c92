/*
 * job_replay.c: replays a step of the whole job with other amounts of own work (ranks.h). Each
 * worker is a program: it works, posts collectives, and waits for some of them. A collective starts
 * when the last of its members has posted it, and from then on takes as long as recorded. Called by
 * straggler.c. It also measures own work: the step less the time in which nothing but collectives
 * ran. Three rounds of the step follow each other without a pause, so that the work of a worker
 * after its last collective counts like the work before the first. The times of events are used
 * once, to build the programs; a replay is one pass over the programs.
 */
#include "ranks/ranks.h"

#include "base/vec.h"

#include <math.h>
#include <stdlib.h>

/* a collective that starts at most this long after the previous one ended may have waited for it */
#define QUEUE_NS 100000
#define REPLAY_ROUNDS 3
#define MEANS_MOST 32 /* limit of different names of collectives */
#define OPEN_MOST 64  /* limit of collectives that own work waits for at the same time */

enum item_type { ITEM_POST, ITEM_WAIT, ITEM_MARK /* the end of one kind of work */ };

/* One entry of a worker's program, reached after `work_ns` of own work in total. */
struct item {
	/* at_ns: time of the item in the recording, by which items are sorted */
	int64_t work_ns, at_ns;
	/* median of the peers' own work between their previous item and this one */
	int64_t peers_ns;
	uint32_t call;
	uint8_t type, label; /* label: kind of the work before the call */
};

/* A collective of one worker in one step. */
struct call {
	uint32_t worker, collective;
	/* 1 + index of the meeting in this step; 0 = without partners: the call takes as long as
	 * recorded */
	uint32_t meet;
	/* 1 + index of the call that had to end before this call could start; 0 = none */
	uint32_t before;
	/* time at which the worker posted the collective, on the worker's clock */
	int64_t post_ns;
	int64_t lag_ns;		/* from the end of the call `before` to the start of this call */
	int64_t transfer_ns;	/* from the arrival of the last member to the end of this call */
	int64_t like_others_ns; /* transfer_ns if the group were as fast as groups like it */
	/* mean of transfer_ns over the calls with the same name, in a file with many workers */
	int64_t even_ns;
	uint8_t kind;
	double posted, arrived, ended; /* times of this replay; negative: has not happened yet */
};

struct meet {
	uint32_t meeting;
	uint32_t first, count; /* range of calls in step_program.order */
	int64_t last_ns;
	uint32_t here;
	double last;
};

/* The programs of all workers for one step. */
struct step_program {
	int64_t number;
	struct item *items;
	size_t item_count, item_cap;
	size_t *first_item; /* index of each worker's first item; one more entry marks the end */
	int64_t *own_ns;    /* own work for each worker and label */
	/* for each worker: sum of its items' peers_ns and of the peers' work after the last
	 * item; 0 = unknown */
	int64_t *peers_ns;
	int64_t *tail_ns; /* for each worker: the part of peers_ns after the last item */
	struct call *calls;
	size_t call_count, call_cap;
	struct meet *meets;
	size_t meet_count, meet_cap;
	uint32_t *order; /* indexes of calls, sorted by meeting */
};

struct job_replay {
	struct ranks_job *job;
	struct arena arena;
	struct step_program *steps;
	size_t step_count;
	double *now;	   /* current time of each worker in the replay */
	size_t *at;	   /* index of the next item for each worker */
	int64_t *work;	   /* own work that each worker has done so far */
	uint32_t *pending; /* calls that are posted and wait for an earlier call to end */
	uint32_t *meet_of; /* for each meeting of the job: 1 + its number in this step */
	uint64_t labels[LABELS];
	unsigned label_count;
	struct {
		uint64_t name;
		int64_t ns;
	} means[MEANS_MOST];
	unsigned mean_count;
	enum transfer_use transfers; /* how long transfers take in this replay */
};

static struct collective *collective_of(const struct ranks_job *job, const struct call *c)
{
	return &job->workers[c->worker].collectives[c->collective];
}

static bool is_paired(const struct ranks_job *job, const struct collective *c)
{
	return c->meeting && !job->meetings[c->meeting - 1].rejected &&
	       job->meetings[c->meeting - 1].last_ns != TIME_UNKNOWN;
}

static int64_t step_of(const struct ranks_job *job, const struct collective *c)
{
	return is_paired(job, c) ? job->meetings[c->meeting - 1].step : c->step;
}

const struct pause *worker_pause(const struct worker *w, const struct collective *c)
{
	int64_t end_ns = collective_done(c);
	size_t low = 0, high = w->pause_count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (w->pauses[middle].end_ns < end_ns)
			low = middle + 1;
		else
			high = middle;
	}
	return low < w->pause_count && w->pauses[low].begin_ns < end_ns ? &w->pauses[low] : NULL;
}

/* Adds the calls of a worker in a step, each with the time at which the worker's own work allows
 * it. */
static ow_status add_calls(struct job_replay *r, struct step_program *p, uint32_t number,
			   struct ow_error *err)
{
	struct ranks_job *job = r->job;
	const struct worker *w = &job->workers[number];
	size_t first = p->call_count;
	int64_t cursor = INT64_MIN; /* end of the last collective that own work waited for */

	for (uint32_t i = 0; i < w->collective_count; i++) {
		const struct collective *c = &w->collectives[i];
		const struct pause *pause;
		bool paired = is_paired(job, c);
		struct call call = { .worker = number, .collective = i, .kind = c->kind };

		if (step_of(job, c) != p->number)
			continue;
		pause = worker_pause(w, c);
		call.post_ns = MIN(c->ready_ns, c->start_ns);
		if ((paired ? job->meetings[c->meeting - 1].together : w->many) && !c->launched &&
		    pause && pause->begin_ns < c->start_ns)
			call.post_ns = MIN(c->start_ns, MAX(pause->begin_ns, cursor));
		else if (!c->launched)
			call.post_ns = c->start_ns;
		if (p->call_count > first && c->launched) {
			const struct call *before = &p->calls[p->call_count - 1];
			int64_t end = collective_of(job, before)->end_ns;

			/* Times are rounded: the recorded end of a call may lie a little after
			 * the start of the call that waited for it. */
			if (end <= c->start_ns + 2000 && c->start_ns - end < QUEUE_NS &&
			    end > call.post_ns)
				call.before = (uint32_t)p->call_count;
		}
		if (pause)
			cursor = MAX(cursor, c->end_ns);
		if (!vec_push(job->mem, p->calls, p->call_count, p->call_cap, call))
			return error_no_memory(err);
	}
	return OW_OK;
}

static int by_meeting(const void *a, const void *b, void *arg)
{
	const struct step_program *p = arg;
	const uint32_t *x = a, *y = b;
	uint32_t m = p->calls[*x].meet, n = p->calls[*y].meet;

	if (m != n)
		return m < n ? -1 : 1;
	return (*x > *y) - (*x < *y);
}

/* Whether a call arrives at the moment it is posted. Where all members are recorded only from
 * the moment at which the last one is there, the recording does not say when the others came. */
static bool arrives_at_post(const struct ranks_job *job, const struct call *c)
{
	const struct collective *one = collective_of(job, c);

	if (one->launched)
		return false;
	return is_paired(job, one) ? job->meetings[one->meeting - 1].together
				   : job->workers[c->worker].many;
}

/* Groups the calls of each meeting; afterwards every call knows from which moment on it only
 * moves data. */
static ow_status join_meetings(struct job_replay *r, struct step_program *p, struct ow_error *err)
{
	struct ranks_job *job = r->job;

	for (size_t i = 0; i < p->call_count; i++) {
		const struct collective *c = collective_of(job, &p->calls[i]);
		uint32_t *local = c->meeting ? &r->meet_of[c->meeting - 1] : NULL;

		if (!is_paired(job, c))
			continue;
		if (!*local) {
			if (!vec_push(job->mem, p->meets, p->meet_count, p->meet_cap,
				      (struct meet){ .meeting = c->meeting - 1,
						     .last_ns = INT64_MIN }))
				return error_no_memory(err);
			*local = (uint32_t)p->meet_count;
		}
		p->calls[i].meet = *local;
		p->meets[*local - 1].count++;
	}
	for (size_t i = 0; i < p->meet_count; i++)
		r->meet_of[p->meets[i].meeting] = 0;
	p->order = ARENA_ARRAY(&r->arena, uint32_t, p->call_count + 1);
	if (!p->order)
		return error_no_memory(err);
	for (size_t i = 0; i < p->call_count; i++)
		p->order[i] = (uint32_t)i;
	if (p->call_count)
		qsort_r(p->order, p->call_count, sizeof(*p->order), by_meeting, p);
	for (size_t i = 0; i < p->call_count; i++) {
		const struct call *c = &p->calls[p->order[i]];

		if (c->meet && (!i || p->calls[p->order[i - 1]].meet != c->meet))
			p->meets[c->meet - 1].first = (uint32_t)i;
	}
	for (size_t i = 0; i < p->call_count; i++) {
		const struct call *c = &p->calls[i];
		const struct collective *one = collective_of(job, c);
		struct meet *m = c->meet ? &p->meets[c->meet - 1] : NULL;

		if (m)
			m->last_ns = MAX(m->last_ns,
					 worker_time(&job->workers[c->worker], one->start_ns));
	}
	for (size_t i = 0; i < p->call_count; i++) {
		struct call *c = &p->calls[i];
		const struct collective *one = collective_of(job, c);
		int64_t from = c->post_ns, end = worker_time(&job->workers[c->worker], one->end_ns);

		if (c->before)
			from = MAX(from, collective_of(job, &p->calls[c->before - 1])->end_ns);
		c->lag_ns = arrives_at_post(job, c) ? 0 : MAX(one->start_ns - from, 0);
		c->transfer_ns = c->meet ? span_length(p->meets[c->meet - 1].last_ns, end)
					 : span_length(one->start_ns, one->end_ns);
		c->like_others_ns = c->transfer_ns;
		if (c->meet && job->meetings[p->meets[c->meet - 1].meeting].link_scale > 0)
			c->like_others_ns = llround(
				(double)c->transfer_ns *
				(double)job->meetings[p->meets[c->meet - 1].meeting].link_scale);
	}
	return OW_OK;
}

/* Sets even_ns, for comparisons in which transfers are spread evenly over pipeline stages, like
 * work. The means of a step are kept by name in a small table. */
static void even_transfers(struct job_replay *r, struct step_program *p)
{
	for (size_t i = 0; i < p->call_count; i++) {
		uint64_t name = collective_of(r->job, &p->calls[i])->name;
		double sum = 0;
		size_t count = 0;

		p->calls[i].even_ns = p->calls[i].like_others_ns;
		if (!r->job->workers[p->calls[i].worker].many)
			continue;
		for (unsigned k = 0; k < r->mean_count && !count; k++)
			if (r->means[k].name == name) {
				p->calls[i].even_ns = r->means[k].ns;
				count = 1;
			}
		if (count || r->mean_count == MEANS_MOST)
			continue;
		for (size_t k = 0; k < p->call_count; k++)
			if (collective_of(r->job, &p->calls[k])->name == name) {
				sum += (double)p->calls[k].transfer_ns;
				count++;
			}
		p->calls[i].even_ns = llround(sum / (double)count);
		r->means[r->mean_count].name = name;
		r->means[r->mean_count++].ns = p->calls[i].even_ns;
	}
	r->mean_count = 0;
}

static uint8_t label_of(struct job_replay *r, uint64_t name)
{
	for (unsigned i = 1; i < r->label_count; i++)
		if (r->labels[i] == name)
			return (uint8_t)i;
	if (r->label_count >= LABELS)
		return 0;
	r->labels[r->label_count] = name;
	return (uint8_t)r->label_count++;
}

static int by_time(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->at_ns != y->at_ns)
		return x->at_ns < y->at_ns ? -1 : 1;
	if (x->type != y->type) /* an end sorts before a begin at the same time */
		return x->type == ITEM_MARK || (x->type == ITEM_WAIT && y->type == ITEM_POST) ? -1
											      : 1;
	return (x->call > y->call) - (x->call < y->call);
}

/* Sums own work while items are passed in the order of time. Own work pauses from the moment at
 * which it waits for a posted call until that call ends. */
struct own_progress {
	int64_t work, at;
	struct {
		uint32_t call;
		int64_t from; /* own work stops at this time to wait for the call */
	} open[OPEN_MOST];
	size_t open_count;
};

/* The sum of the worker's pauses before time t. */
static int64_t paused_before(const struct worker *w, int64_t t)
{
	size_t low = 0, high = w->pause_count;

	while (low < high) {
		size_t middle = (low + high) / 2;

		if (w->pauses[middle].begin_ns < t)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return 0;
	return w->pauses[low - 1].before_ns +
	       (MIN(t, w->pauses[low - 1].end_ns) - w->pauses[low - 1].begin_ns);
}

static void advance(struct own_progress *p, const struct worker *w, int64_t t)
{
	int64_t until = t;

	for (size_t i = 0; i < p->open_count; i++)
		until = MIN(until, p->open[i].from);
	if (until > p->at)
		p->work += until - p->at -
			   (w->many ? paused_before(w, until) - paused_before(w, p->at) : 0);
	p->at = MAX(p->at, t);
}

/* Adds the own work before an item to the sum of the item's label. */
static void count_work(struct step_program *p, const struct ranks_job *job, size_t first,
		       const struct worker *w, const struct worker_step *step, uint8_t last_label,
		       int64_t *own)
{
	struct own_progress progress = { .at = step->start_ns };
	int64_t before = 0;

	for (size_t i = first; i < p->item_count; i++) {
		struct item *item = &p->items[i];
		const struct call *c = item->type == ITEM_MARK ? NULL : &p->calls[item->call];
		const struct pause *pause = c ? worker_pause(w, collective_of(job, c)) : NULL;
		size_t k = 0;

		advance(&progress, w, MIN(MAX(item->at_ns, step->start_ns), step->end_ns));
		item->work_ns = progress.work;
		own[item->label] += progress.work - before;
		before = progress.work;
		if (item->type == ITEM_POST && pause && progress.open_count < OPEN_MOST) {
			progress.open[progress.open_count].call = item->call;
			progress.open[progress.open_count++].from =
				MAX(pause->begin_ns, c->post_ns);
		} else if (item->type == ITEM_WAIT) {
			while (k < progress.open_count && progress.open[k].call != item->call)
				k++;
			if (k < progress.open_count)
				progress.open[k] = progress.open[--progress.open_count];
		}
	}
	progress.open_count = 0;
	advance(&progress, w, step->end_ns);
	own[last_label] += progress.work - before;
}

/* Adds an item at the end of each kind of work: work before an item has the label of the next
 * mark. */
static ow_status add_marks(struct job_replay *r, struct step_program *p, const struct worker *w,
			   const struct worker_step *step, struct ow_error *err)
{
	for (size_t i = 0; i < w->timed_count; i++)
		if (w->timed[i].end_ns > step->start_ns && w->timed[i].end_ns <= step->end_ns &&
		    !vec_push(r->job->mem, p->items, p->item_count, p->item_cap,
			      (struct item){ .at_ns = w->timed[i].end_ns,
					     .type = ITEM_MARK,
					     .label = label_of(r, w->timed[i].name) }))
			return error_no_memory(err);
	return OW_OK;
}

static void spread_labels(struct step_program *p, size_t first)
{
	uint8_t label = 0;

	for (size_t i = p->item_count; i-- > first;) {
		if (p->items[i].type == ITEM_MARK)
			label = p->items[i].label;
		p->items[i].label = label;
	}
}

static ow_status add_items(struct job_replay *r, struct step_program *p, uint32_t number,
			   size_t first_call, struct ow_error *err)
{
	struct ranks_job *job = r->job;
	const struct worker *w = &job->workers[number];
	const struct worker_step *step = worker_step_of(w, p->number);
	size_t first = p->item_count;

	for (size_t i = first_call; i < p->call_count; i++) {
		const struct collective *c = collective_of(job, &p->calls[i]);

		if (!vec_push(job->mem, p->items, p->item_count, p->item_cap,
			      (struct item){ .at_ns = p->calls[i].post_ns,
					     .call = (uint32_t)i,
					     .type = ITEM_POST }))
			return error_no_memory(err);
		if (worker_pause(w, c) &&
		    !vec_push(job->mem, p->items, p->item_count, p->item_cap,
			      (struct item){
				      .at_ns = c->end_ns, .call = (uint32_t)i, .type = ITEM_WAIT }))
			return error_no_memory(err);
	}
	if (step)
		OW_TRY(add_marks(r, p, w, step, err));
	if (p->item_count > first)
		qsort(p->items + first, p->item_count - first, sizeof(*p->items), by_time);
	spread_labels(p, first);
	if (step)
		count_work(p, job, first, w, step, 0, &p->own_ns[(size_t)number * LABELS]);
	return OW_OK;
}

static ow_status build_step(struct job_replay *r, struct step_program *p, struct ow_error *err)
{
	struct ranks_job *job = r->job;
	size_t *first_call = ARENA_ARRAY(&r->arena, size_t, job->worker_count + 1);

	p->first_item = ARENA_ARRAY(&r->arena, size_t, job->worker_count + 2);
	p->own_ns = ARENA_ARRAY(&r->arena, int64_t, (job->worker_count + 1) * LABELS);
	if (!first_call || !p->first_item || !p->own_ns)
		return error_no_memory(err);
	for (uint32_t i = 0; i < job->worker_count; i++) {
		first_call[i] = p->call_count;
		p->first_item[i] = p->item_count;
		if (job->workers[i].left_out || !worker_step_of(&job->workers[i], p->number))
			continue;
		OW_TRY(add_calls(r, p, i, err));
		OW_TRY(add_items(r, p, i, first_call[i], err));
	}
	p->first_item[job->worker_count] = p->item_count;
	OW_TRY(join_meetings(r, p, err));
	even_transfers(r, p);
	return OW_OK;
}

static int64_t sum_labels(const int64_t *own)
{
	int64_t sum = 0;

	for (unsigned i = 0; i < LABELS; i++)
		sum = span_add(sum, own[i]);
	return sum;
}

const int64_t *job_replay_own(const struct job_replay *r, size_t step, size_t worker)
{
	return &r->steps[step].own_ns[worker * LABELS];
}

ow_status job_replay_open(struct ranks_job *job, struct job_replay **out, struct ow_error *err)
{
	struct job_replay *r = mem_zalloc(job->mem, sizeof(*r));
	size_t most = 0;

	*out = r;
	if (!r)
		return error_no_memory(err);
	r->job = job;
	r->label_count = 1;
	arena_init(&r->arena, job->mem);
	r->steps = ARENA_ARRAY(&r->arena, struct step_program, job->step_count + 1);
	r->meet_of = ARENA_ARRAY(&r->arena, uint32_t, job->meeting_count + 1);
	r->now = ARENA_ARRAY(&r->arena, double, job->worker_count + 1);
	r->at = ARENA_ARRAY(&r->arena, size_t, job->worker_count + 1);
	r->work = ARENA_ARRAY(&r->arena, int64_t, job->worker_count + 1);
	if (!r->steps || !r->meet_of || !r->now || !r->at || !r->work)
		return error_no_memory(err);
	for (size_t s = 0; s < job->step_count; s++) {
		r->steps[s].number = job->step_numbers[s];
		r->step_count = s + 1;
		OW_TRY(build_step(r, &r->steps[s], err));
		most = MAX(most, r->steps[s].call_count);
		for (size_t i = 0; i < job->worker_count; i++) {
			struct worker_step *step =
				worker_step_of(&job->workers[i], r->steps[s].number);

			if (step)
				step->own_ns = sum_labels(r->steps[s].own_ns + i * LABELS);
		}
	}
	r->pending = ARENA_ARRAY(&r->arena, uint32_t, most + 1);
	return r->pending ? OW_OK : error_no_memory(err);
}

void job_replay_close(struct job_replay *r)
{
	if (!r)
		return;
	for (size_t s = 0; s < r->step_count; s++) {
		vec_free(r->job->mem, r->steps[s].items, r->steps[s].item_cap);
		vec_free(r->job->mem, r->steps[s].calls, r->steps[s].call_cap);
		vec_free(r->job->mem, r->steps[s].meets, r->steps[s].meet_cap);
	}
	arena_release(&r->arena);
	mem_free(r->job->mem, r, sizeof(*r));
}

/*
 * A worker with more work than its peers does not do more of it everywhere: the host pauses before
 * the first kernel, or one operation is slow. So a worker that is replayed like its peers gets
 * their work between two collectives each, if enough peers post the same collectives.
 */
struct parts_of_peers {
	const uint32_t *role;
	const bool *apart;
	int64_t *values;
	size_t workers;
};

/* The index of the next item at or after `at` that posts a collective; the end of the worker's
 * items if there is none. */
static size_t next_post(const struct step_program *p, size_t worker, size_t at)
{
	while (at < p->first_item[worker + 1] && p->items[at].type != ITEM_POST)
		at++;
	return at;
}

static int64_t work_until(const struct step_program *p, size_t worker, size_t item)
{
	if (item == p->first_item[worker + 1])
		return sum_labels(p->own_ns + worker * LABELS);
	return p->items[item].work_ns;
}

/* Whether two workers post the same kinds of collectives in the same order. */
static bool same_posts(const struct step_program *p, size_t a, size_t b)
{
	size_t end_a = p->first_item[a + 1], end_b = p->first_item[b + 1];
	size_t x = next_post(p, a, p->first_item[a]), y = next_post(p, b, p->first_item[b]);

	while (x < end_a && y < end_b) {
		if (p->calls[p->items[x].call].kind != p->calls[p->items[y].call].kind)
			return false;
		x = next_post(p, a, x + 1);
		y = next_post(p, b, y + 1);
	}
	return x == end_a && y == end_b;
}

/* Distributes the peers' work between two collectives over the items [first, post] of a worker
 * (or over the time after its last item), in proportion to the worker's own work. */
static void share_part(struct step_program *p, size_t worker, size_t first, size_t post,
		       int64_t peers_ns)
{
	int64_t before = first > p->first_item[worker] ? p->items[first - 1].work_ns : 0;
	int64_t own = work_until(p, worker, post) - before;
	bool tail = post == p->first_item[worker + 1];

	for (size_t i = first; i < post + !tail; i++) {
		int64_t mine = MAX(p->items[i].work_ns - before, 0);

		before = MAX(before, p->items[i].work_ns);
		if (own > 0)
			p->items[i].peers_ns =
				llround((double)peers_ns * (double)mine / (double)own);
		else
			p->items[i].peers_ns = i == post ? peers_ns : 0;
	}
	if (tail) {
		int64_t rest = MAX(work_until(p, worker, post) - before, 0);

		p->tail_ns[worker] =
			own > 0 ? llround((double)peers_ns * (double)rest / (double)own) : peers_ns;
	}
	p->peers_ns[worker] = span_add(p->peers_ns[worker], peers_ns);
}

static void find_parts(struct step_program *p, const struct parts_of_peers *q, size_t worker,
		       uint32_t *peers, size_t *at)
{
	size_t alike = 0, all = 0, from = p->first_item[worker], post;

	for (size_t i = 0; i < q->workers; i++) {
		if (i == worker || q->role[i] != q->role[worker] || q->apart[i])
			continue;
		all++;
		if (same_posts(p, worker, i)) {
			at[alike] = p->first_item[i];
			peers[alike++] = (uint32_t)i;
		}
	}
	if (!alike || 2 * alike < all)
		return;
	do {
		post = next_post(p, worker, from);
		for (size_t k = 0; k < alike; k++) {
			size_t next = next_post(p, peers[k], at[k]);
			int64_t before =
				at[k] > p->first_item[peers[k]] ? p->items[at[k] - 1].work_ns : 0;

			q->values[k] = MAX(work_until(p, peers[k], next) - before, 0);
			at[k] = next + 1;
		}
		share_part(p, worker, from, post, ranks_median(q->values, alike));
		from = post + 1;
	} while (post < p->first_item[worker + 1]);
}

ow_status job_replay_compare(struct job_replay *r, const uint32_t *role, const bool *apart,
			     const bool *wanted, struct ow_error *err)
{
	size_t workers = r->job->worker_count;
	uint32_t *peers = ARENA_ARRAY(&r->arena, uint32_t, workers + 1);
	size_t *at = ARENA_ARRAY(&r->arena, size_t, workers + 1);
	int64_t *values = ARENA_ARRAY(&r->arena, int64_t, workers + 1);
	const struct parts_of_peers q = { role, apart, values, workers };

	if (!at || !peers || !values)
		return error_no_memory(err);
	for (size_t s = 0; s < r->step_count; s++) {
		struct step_program *p = &r->steps[s];

		p->peers_ns = ARENA_ARRAY(&r->arena, int64_t, workers + 1);
		p->tail_ns = ARENA_ARRAY(&r->arena, int64_t, workers + 1);
		if (!p->peers_ns || !p->tail_ns)
			return error_no_memory(err);
		for (size_t i = 0; i < workers; i++)
			if (wanted[i] && !r->job->workers[i].many)
				find_parts(p, &q, i, peers, at);
	}
	return OW_OK;
}

static int64_t transfer_of(const struct job_replay *r, const struct call *c)
{
	switch (r->transfers) {
	case TRANSFER_EVEN:
		return c->even_ns;
	case TRANSFER_LIKE_OTHERS:
		return c->like_others_ns;
	default:
		return c->transfer_ns;
	}
}

static void end_meeting(const struct job_replay *r, struct step_program *p, struct meet *m)
{
	for (uint32_t i = 0; i < m->count; i++) {
		struct call *c = &p->calls[p->order[m->first + i]];

		c->ended = m->last + (double)transfer_of(r, c);
	}
}

/* Marks a call as arrived: nothing on its own worker delays it any more. */
static void arrive(const struct job_replay *r, struct step_program *p, struct call *c, double at)
{
	struct meet *m = c->meet ? &p->meets[c->meet - 1] : NULL;

	c->arrived = at + (double)c->lag_ns;
	if (!m) {
		c->ended = c->arrived + (double)transfer_of(r, c);
		return;
	}
	m->last = m->here ? fmax(m->last, c->arrived) : c->arrived;
	if (++m->here == m->count)
		end_meeting(r, p, m);
}

static void settle_pending(struct job_replay *r, struct step_program *p, size_t *pending,
			   bool *moved)
{
	size_t kept = 0;

	for (size_t i = 0; i < *pending; i++) {
		struct call *c = &p->calls[r->pending[i]];
		const struct call *before = &p->calls[c->before - 1];

		if (before->ended >= 0) {
			arrive(r, p, c, fmax(c->posted, before->ended));
			*moved = true;
		} else {
			r->pending[kept++] = r->pending[i];
		}
	}
	*pending = kept;
}

/* Factors for a worker's own work, and whether the peers' work replaces it. */
struct scaling {
	const double *by; /* one factor for each label; NULL = 1 */
	bool like_peers;
	double peers; /* factor for the peers' work, used with like_peers */
};

static struct scaling scaling_of(const struct job_replay *r, const struct step_program *p,
				 size_t worker, const double *scale)
{
	struct scaling to = { scale ? &scale[worker * LABELS] : NULL, false, 1 };

	if (!to.by || !p->peers_ns || p->peers_ns[worker] <= 0 || r->job->workers[worker].many ||
	    !(fabs(to.by[0] - 1) > 1e-9))
		return to;
	to.like_peers = true;
	to.peers = to.by[0] * (double)sum_labels(p->own_ns + worker * LABELS) /
		   (double)p->peers_ns[worker];
	return to;
}

static double scaled_work(const struct scaling *to, const struct item *item, int64_t done_ns)
{
	if (to->like_peers)
		return to->peers * (double)item->peers_ns;
	return (to->by ? to->by[item->label] : 1) * (double)MAX(item->work_ns - done_ns, 0);
}

/* Advances one worker until it has to wait; false if it cannot advance. */
static bool run_worker(struct job_replay *r, struct step_program *p, size_t worker,
		       const double *scale, size_t *pending)
{
	struct scaling to = scaling_of(r, p, worker, scale);
	bool moved = false;

	for (; r->at[worker] < p->first_item[worker + 1]; r->at[worker]++) {
		const struct item *item = &p->items[r->at[worker]];
		struct call *c = item->type == ITEM_MARK ? NULL : &p->calls[item->call];

		if (item->type == ITEM_WAIT && c->ended < 0)
			return moved;
		r->now[worker] += scaled_work(&to, item, r->work[worker]);
		r->work[worker] = MAX(r->work[worker], item->work_ns);
		moved = true;
		if (item->type == ITEM_WAIT) {
			r->now[worker] = fmax(r->now[worker], c->ended);
		} else if (item->type == ITEM_POST) {
			c->posted = r->now[worker];
			if (c->before && p->calls[c->before - 1].ended < 0)
				r->pending[(*pending)++] = item->call;
			else
				arrive(r, p, c,
				       c->before ? fmax(c->posted, p->calls[c->before - 1].ended)
						 : c->posted);
		}
	}
	return moved;
}

/* Replays the step once; false when workers wait for each other for ever. */
static bool run_once(struct job_replay *r, struct step_program *p, const double *scale)
{
	size_t workers = r->job->worker_count, pending = 0;
	bool moved = true;

	for (size_t i = 0; i < p->call_count; i++)
		p->calls[i].posted = p->calls[i].arrived = p->calls[i].ended = -1;
	for (size_t i = 0; i < p->meet_count; i++)
		p->meets[i].here = 0;
	for (size_t w = 0; w < workers; w++) {
		r->at[w] = p->first_item[w];
		r->work[w] = 0;
	}
	while (moved) {
		moved = false;
		for (size_t w = 0; w < workers; w++)
			if (r->at[w] < p->first_item[w + 1])
				moved |= run_worker(r, p, w, scale, &pending);
		settle_pending(r, p, &pending, &moved);
	}
	for (size_t w = 0; w < workers; w++) {
		struct scaling to = scaling_of(r, p, w, scale);
		int64_t left = MAX(sum_labels(p->own_ns + w * LABELS) - r->work[w], 0);

		if (r->at[w] < p->first_item[w + 1])
			return false;
		r->now[w] += to.like_peers ? to.peers * (double)p->tail_ns[w]
					   : (to.by ? to.by[0] : 1) * (double)left;
	}
	return true;
}

int64_t job_replay_step(struct job_replay *r, size_t step, const double *scale,
			enum transfer_use transfers)
{
	struct step_program *p = &r->steps[step];
	double end[REPLAY_ROUNDS] = { 0 };

	r->transfers = transfers;
	memset(r->now, 0, r->job->worker_count * sizeof(*r->now));
	for (unsigned round = 0; round < REPLAY_ROUNDS; round++) {
		if (!run_once(r, p, scale))
			return -1;
		for (size_t w = 0; w < r->job->worker_count; w++)
			end[round] = fmax(end[round], r->now[w]);
	}
	return llround((end[REPLAY_ROUNDS - 1] - end[0]) / (REPLAY_ROUNDS - 1));
}
