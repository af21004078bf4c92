/*
 * recording.c: uses opwatch recordings as evidence for hang.h: for each rank the stack that its main thread had at the
 * end, the numbers of collectives that it entered and completed, and the time since it last completed one. Called by
 * the library with a frozen model. The group of a collective is not recorded, so its number counts those of all groups.
 */
#include "hang/hang.h"

#include "base/error.h"

/* a process without samples for this long, while others have samples, has ended */
#define SILENT_NS (15 * 1000000000LL)

enum { NO_COLLECTIVE, ENTERS, COMPLETES };

/* The evidence about one rank. */
struct rank_view {
	/* pid of the process that calls collectives; MODEL_NO_ID: unknown */
	int64_t pid;
	track_id main;		   /* the main thread of the process, if it has samples */
	int64_t first_ns, last_ns; /* range of the process's events and samples */
	int64_t sampled_ns;	   /* time of the last sample */
	stack_id stack;
	int64_t entered, completed; /* numbers of collectives */
	int64_t first_call_ns, last_call_ns, longest_gap_ns;
};

static struct str frame_text(struct hang_job *job, const struct model *m, stack_id stack)
{
	struct buf text;
	struct str result;
	uint32_t frames = 0;

	buf_init(&text, job->mem);
	for (uint32_t at = stack.v; at && frames < HANG_STACK_FRAMES; at = m->stack.parent[at].v) {
		uint32_t frame = m->stack.frame[at].v;
		struct str name = model_str(m, m->frame.function[frame]),
			   file = model_str(m, m->frame.file[frame]);

		if (!name.len || (COLUMN_GET(m->frame.flags, frame) & FRAME_PROCESS))
			continue;
		buf_printf(&text, "%s%.*s (%.*s", frames++ ? "\n" : "", (int)MIN(name.len, 200u),
			   name.ptr, (int)MIN(file.len, 300u), file.ptr);
		if (m->frame.line[frame] > 0)
			buf_printf(&text, ":%d", (int)m->frame.line[frame]);
		buf_puts(&text, ")");
	}
	if (text.failed)
		job->no_memory = true;
	result = hang_text(job, buf_str(&text));
	buf_release(&text);
	return result;
}

/* How a call counts: PyTorch's c10d::allreduce_ ends when the collective is enqueued, gloo:all_reduce when it is
 * done. */
static uint8_t kind_of(struct str name)
{
	if (str_starts(name, STR("c10d::")))
		return ENTERS;
	return str_starts(name, STR("gloo:")) ? COMPLETES : NO_COLLECTIVE;
}

static void take_call(struct rank_view *v, uint8_t kind, int64_t ts)
{
	if (kind == COMPLETES) {
		v->completed++;
		return;
	}
	if (v->entered++)
		v->longest_gap_ns = MAX(v->longest_gap_ns, ts - v->last_call_ns);
	else
		v->first_call_ns = ts;
	v->last_call_ns = MAX(v->last_call_ns, ts);
}

/* Counts the collectives of each rank; events of a track are sorted by time. */
static ow_status take_events(struct hang_job *job, const struct model *m, struct rank_view *views,
			     struct ow_error *err)
{
	uint8_t *kinds = mem_zalloc(job->mem, m->op.count + 1);

	if (!kinds)
		return error_no_memory(err);
	for (uint32_t i = 1; i < m->op.count; i++)
		kinds[i] = kind_of(model_str(m, m->op.name[i]));
	for (uint32_t i = 1; i < m->event.count; i++) {
		uint32_t track = m->event.track[i].v, source = m->track.source[track].v;
		struct rank_view *v = &views[source];
		uint8_t kind = kinds[m->event.op[i].v];
		int64_t ts = m->event.ts_ns[i];

		if (ts == TIME_UNKNOWN)
			continue;
		v->first_ns = v->first_ns ? MIN(v->first_ns, ts) : ts;
		v->last_ns = MAX(v->last_ns, ts);
		if (kind == NO_COLLECTIVE)
			continue;
		v->pid = m->track.pid[track];
		take_call(v, kind, ts);
	}
	mem_free(job->mem, kinds, m->op.count + 1);
	return OW_OK;
}

/* Finds the samples of each main thread, whose tid equals its pid. Workers of a data loader have the same rank: the
 * process that calls collectives counts, else the one that came first. */
static void take_samples(const struct model *m, struct rank_view *views)
{
	for (uint32_t i = 1; i < m->sample.count; i++) {
		uint32_t track = m->sample.track[i].v;
		struct rank_view *v = &views[m->track.source[track].v];
		int64_t ts = m->sample.ts_ns[i], pid = m->track.pid[track];

		if (ts == TIME_UNKNOWN || !m->sample.stack[i].v || m->track.tid[track] != pid)
			continue;
		v->last_ns = MAX(v->last_ns, ts);
		if (v->pid != MODEL_NO_ID ? v->pid != pid
					  : v->main.v && m->track.pid[v->main.v] < pid)
			continue;
		if (v->main.v == track && ts < v->sampled_ns)
			continue;
		v->main.v = track;
		v->stack = m->sample.stack[i];
		v->sampled_ns = ts;
	}
}

/* The number of processes of the job, as a source states it. */
static int64_t world_of(const struct model *m, uint32_t source)
{
	for (uint32_t i = 1; i < m->fact.count; i++)
		if (m->fact.source[i].v == source && !m->fact.parent[i].v &&
		    m->fact.kind[i] == FACT_INT &&
		    str_eq(model_str(m, m->fact.key[i]), STR("world_size")))
			return m->fact.number[i];
	return 0;
}

static void add_rank(struct hang_job *job, const struct model *m, uint32_t source,
		     const struct rank_view *v, int64_t last_ns, const char *file)
{
	uint32_t at = hang_add_process(job, str_from(file));
	int64_t world = world_of(m, source);
	struct hang_process *p;

	if (at == UINT32_MAX)
		return;
	p = &job->processes[at];
	p->rank = m->source.rank[source];
	p->rank_from = RANK_GIVEN;
	p->world = world > 0 ? world : 0;
	p->stack = frame_text(job, m, v->stack);
	p->entered = v->entered;
	p->completed = v->completed;
	p->longest_gap_ns = v->longest_gap_ns;
	/* the recording includes the start of the program: the time before the first call is many times longer than
	 * between two calls */
	p->counts_all = v->entered > 1 && v->first_call_ns - v->first_ns > 5 * v->longest_gap_ns &&
			v->first_call_ns - v->first_ns > 1000000000;
	p->stack_until_ns = v->sampled_ns;
	p->stack_since_ns = v->last_call_ns ? MIN(v->last_call_ns, v->sampled_ns) : v->sampled_ns;
	if (last_ns - v->last_ns > SILENT_NS) {
		p->ended = p->ended_likely = true;
		p->ended_why = hang_text(job, STR("its recording stopped while others went "
						  "on"));
	}
}

ow_status hang_add_model(struct hang_job *job, struct model *m, const char *file,
			 struct ow_error *err)
{
	uint32_t count = m->source.count;
	struct rank_view *views = mem_zalloc(job->mem, (count + 1) * sizeof(*views));
	int64_t last_ns = 0;
	ow_status status;

	if (!views)
		return error_no_memory(err);
	for (uint32_t s = 0; s <= count; s++)
		views[s].pid = MODEL_NO_ID;
	status = take_events(job, m, views, err);
	if (status == OW_OK) {
		take_samples(m, views);
		for (uint32_t s = 1; s < count; s++)
			last_ns = MAX(last_ns, views[s].last_ns);
		for (uint32_t s = 1; s < count; s++)
			if (m->source.rank[s] >= 0 && (views[s].main.v || views[s].entered))
				add_rank(job, m, s, &views[s], last_ns, file);
		job->files_read++;
	}
	mem_free(job->mem, views, (count + 1) * sizeof(*views));
	if (status == OW_OK && job->no_memory)
		return error_no_memory(err);
	return status;
}
