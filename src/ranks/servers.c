/*
 * servers.c: finds the parameter server of a TensorFlow job whose messages take longer than those of the other servers
 * (ranks.h): its variables are larger, or its network is slower. Servers that compute for longer are found like any
 * other straggler. Called after waits.c; straggler.c replays the job with the messages of this server as long as those
 * of the others.
 */
#include "ranks/ranks.h"

#include "base/vec.h"

#include <math.h>
#include <stdlib.h>

/* a server is slow from this ratio on, when it is compared with two servers or more */
#define LEAST_RATIO 1.25
/* a server is slow from this ratio on, when it is compared with one server */
#define LEAST_OF_TWO 1.5
#define PERSISTENT_PART 0.7
#define STEPS_LEAST 3

struct serving {
	struct ranks_job *job;
	struct ow_error *err;
	uint32_t *servers; /* indexes of the workers that are servers */
	size_t count;
	/* for each server and step: time with messages under way, and bytes */
	double *busy, *bytes;
	double *scratch;
};

static ow_status find_servers(struct serving *s)
{
	struct ranks_job *job = s->job;
	size_t cells;

	s->servers = ARENA_ARRAY(&job->arena, uint32_t, job->worker_count + 1);
	if (!s->servers)
		return error_no_memory(s->err);
	for (uint32_t i = 0; i < job->worker_count; i++)
		if (job->workers[i].server && !job->workers[i].left_out &&
		    job->workers[i].has_clock)
			s->servers[s->count++] = i;
	cells = (s->count + 1) * (job->step_count + 1);
	s->busy = ARENA_ARRAY(&job->arena, double, cells);
	s->bytes = ARENA_ARRAY(&job->arena, double, cells);
	s->scratch = ARENA_ARRAY(&job->arena, double, s->count + job->step_count + 1);
	return s->busy && s->bytes && s->scratch ? OW_OK : error_no_memory(s->err);
}

static bool is_usable(const struct meeting *m)
{
	return collective_is_direct(m->kind) && m->count == 2 && !m->rejected &&
	       m->last_ns != TIME_UNKNOWN;
}

static bool has_member(const struct ranks_job *job, const struct meeting *m, uint32_t worker)
{
	return job->members[m->first].worker == worker ||
	       job->members[m->first + 1].worker == worker;
}

/* Adds the time from when both sides of a message are ready until it has arrived. */
static bool add_message(struct serving *s, const struct meeting *m, struct span_list *spans,
			double *bytes)
{
	const struct ranks_job *job = s->job;

	for (uint32_t i = 0; i < m->count; i++) {
		const struct member *member = &job->members[m->first + i];
		const struct worker *w = &job->workers[member->worker];
		const struct collective *c = &w->collectives[member->collective];

		if (c->kind != COLLECTIVE_RECV)
			continue;
		*bytes += c->bytes > 0 ? (double)c->bytes : 0;
		if (!spans_add(spans, job->mem, m->last_ns,
			       MAX(m->last_ns, worker_time(w, c->end_ns))))
			return false;
	}
	return true;
}

/* Measures how long messages of a server are under way in a step; overlapping ones count once. */
static ow_status measure(struct serving *s, size_t server, size_t step)
{
	const struct ranks_job *job = s->job;
	size_t cell = server * job->step_count + step;
	struct span_list spans = { 0 };
	bool good = true;

	for (size_t i = 0; i < job->meeting_count && good; i++) {
		const struct meeting *m = &job->meetings[i];

		if (m->step == job->step_numbers[step] && is_usable(m) &&
		    has_member(job, m, s->servers[server]))
			good = add_message(s, m, &spans, &s->bytes[cell]);
	}
	good = good && spans_finish(&spans, job->mem);
	for (size_t i = 0; i < spans.count && good; i++)
		s->busy[cell] += (double)(spans.items[i].end - spans.items[i].begin);
	spans_release(&spans, job->mem);
	return good ? OW_OK : error_no_memory(s->err);
}

/* The median over the other servers, in one step. */
static double others_in(struct serving *s, const double *values, size_t server, size_t step)
{
	size_t count = 0;

	for (size_t i = 0; i < s->count; i++)
		if (i != server)
			s->scratch[count++] = values[i * s->job->step_count + step];
	return ranks_median_real(s->scratch, count);
}

/* Compares a server with the others; true when it is busier than these in most steps. */
static bool compare(struct serving *s, size_t server, struct hot_server *out)
{
	size_t steps = s->job->step_count, hot = 0;
	double limit = s->count > 2 ? LEAST_RATIO : LEAST_OF_TWO;

	*out = (struct hot_server){ .worker = s->servers[server], .alike = s->count - 1 };
	for (size_t k = 0; k < steps; k++) {
		double mine = s->busy[server * steps + k],
		       others = others_in(s, s->busy, server, k);

		hot += mine > limit * others;
		out->busy_ns += mine / (double)steps;
		out->others_ns += others / (double)steps;
		out->bytes += s->bytes[server * steps + k] / (double)steps;
		out->others_bytes += others_in(s, s->bytes, server, k) / (double)steps;
	}
	out->found = (double)hot >= PERSISTENT_PART * (double)steps && out->others_ns > 0 &&
		     out->busy_ns > limit * out->others_ns;
	return out->found;
}

ow_status ranks_servers(struct ranks_job *job, struct ow_error *err)
{
	struct serving s = { .job = job, .err = err };

	OW_TRY(find_servers(&s));
	if (s.count < 2 || job->step_count < STEPS_LEAST)
		return OW_OK;
	for (size_t i = 0; i < s.count; i++)
		for (size_t k = 0; k < job->step_count; k++)
			OW_TRY(measure(&s, i, k));
	for (size_t i = 0; i < s.count; i++) {
		struct hot_server one;

		if (compare(&s, i, &one) && one.busy_ns > job->hot.busy_ns)
			job->hot = one;
	}
	for (size_t i = 0; i < job->meeting_count && job->hot.found; i++)
		if (is_usable(&job->meetings[i]) &&
		    has_member(job, &job->meetings[i], job->hot.worker))
			job->meetings[i].link_scale =
				(float)(job->hot.others_ns / job->hot.busy_ns);
	return OW_OK;
}
