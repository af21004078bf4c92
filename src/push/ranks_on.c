/*
 * ranks_on.c: reads a job from the tables job_rank, job_step, job_collective, job_op and job_line of a server (ranks_on.h). If
 * the job is too large to be read here, the server chooses steps, evenly among those that all ranks have. Clocks are
 * fitted, and stragglers found, from the chosen steps; then the server computes steps, waits and transfers of all steps
 * with these clocks (ranks_totals.c). Plain SQL is used, because old servers know neither window functions nor common
 * table expressions.
 */
#include "push/ranks_on_int.h"

#include "base/vec.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>

#define COLLECTIVES_MOST 1000000
#define OPS_MOST_EACH 64   /* operations read for each rank, if the job is too large */
#define LINES_MOST_EACH 64 /* lines of code read for each rank, if the job is too large */
#define MANY_RANKS 1000

int64_t server_number(struct str *line)
{
	struct str field;
	int64_t value;

	if (!click_field(line, &field) || !str_to_i64(field, &value))
		return INT64_MIN;
	return value;
}

/* The next field as a 32-bit number; -1 where unknown. */
static int32_t take_small(struct str *line)
{
	int64_t value = server_number(line);

	return value < 0 || value > INT32_MAX ? -1 : (int32_t)value;
}

static int64_t take_size(struct str *line)
{
	int64_t value = server_number(line);

	return value < 0 ? -1 : value;
}

static struct str take_text(struct server *s, struct str *line)
{
	struct str field;

	if (!click_field(line, &field) || str_eq(field, STR("\\N")))
		return STR("");
	return arena_str(&s->job->arena, field);
}

ow_status server_query(struct server *s, const char *query)
{
	struct buf text;
	ow_status status;

	buf_init(&text, s->job->mem);
	for (const char *at = query; *at; at++) {
		if (*at == '@') /* the condition on runs */
			buf_add_str(&text, buf_str(&s->where));
		else if (*at == '#') /* the condition on steps */
			buf_add_str(&text, buf_str(&s->steps));
		else if (*at == '~') /* the clocks of the workers */
			buf_add_str(&text, buf_str(&s->clocks));
		else
			buf_add_char(&text, *at);
	}
	status = text.failed
			 ? error_no_memory(s->err)
			 : click_run(s->click, buf_str(&text), CLICK_REPEAT, &s->answer, s->err);
	buf_release(&text);
	return status;
}

static ow_status query(struct server *s, const char *format, ...) OW_PRINTF(2, 3);
static ow_status query(struct server *s, const char *format, ...)
{
	va_list list;
	char line[2048];

	va_start(list, format);
	vsnprintf(line, sizeof(line), format, list);
	va_end(list);
	return server_query(s, line);
}

/* Writes the condition on runs: "run LIKE 'job-%'" for each name. */
static void write_where(struct server *s)
{
	buf_puts(&s->where, "(");
	for (size_t i = 0; i < s->on->runs.count; i++) {
		struct buf pattern;

		buf_init(&pattern, s->job->mem);
		for (const char *at = s->on->runs.items[i]; *at; at++) {
			if (*at == '%' || *at == '_' || *at == '\\')
				buf_add_char(&pattern, '\\');
			buf_add_char(&pattern, *at == '*' ? '%' : *at);
		}
		buf_puts(&s->where, i ? " OR run LIKE " : "run LIKE ");
		click_quote(&s->where, buf_str(&pattern));
		s->where.failed |= pattern.failed;
		buf_release(&pattern);
	}
	buf_puts(&s->where, s->on->runs.count ? ")" : "1)");
}

static ow_status take_rank(struct server *s, struct str *line)
{
	struct worker w = { .pid = INT64_MIN, .slowdown_caused = NAN };
	struct pushed pushed = { .run = take_text(s, line) };
	struct str frequency;

	pushed.number = server_number(line);
	w.rank = take_small(line);
	w.world = take_small(line);
	w.dp = take_small(line);
	w.stage = take_small(line);
	w.tp = take_small(line);
	w.host = take_text(s, line);
	w.path = take_text(s, line);
	w.pid = server_number(line);
	w.first_ns = server_number(line);
	w.last_ns = server_number(line);
	w.events = (uint64_t)server_number(line);
	w.hash = (uint64_t)server_number(line) << 1;
	w.resolution_ns = server_number(line);
	w.has_device = server_number(line) == 1;
	w.many = server_number(line) == 1;
	if (click_field(line, &frequency) && !str_eq(frequency, STR("\\N")))
		/* strtod stops, because a tab or line end follows */
		w.frequency = strtod(frequency.ptr, NULL);
	/* number of the worker before ranks_finish sorts the workers */
	w.file = w.source = (uint32_t)s->job->worker_count;
	if (w.many)
		return error_set(s->err, OW_E_UNSUPPORTED,
				 "run %.*s holds a whole job in one file; compare it with 'opwatch "
				 "ranks FILE'",
				 STR_ARG(pushed.run));
	if (!pushed.run.ptr || !w.path.ptr || !w.host.ptr ||
	    !vec_push(s->job->mem, s->pushed, s->pushed_count, s->pushed_cap, pushed) ||
	    !vec_push(s->job->mem, s->job->workers, s->job->worker_count, s->job->worker_cap, w))
		return error_no_memory(s->err);
	s->job->file_count++;
	return OW_OK;
}

static ow_status read_ranks(struct server *s)
{
	struct str rest, line;

	OW_TRY(query(
		s,
		"SELECT run, number, rank, world_size, dp, stage, tp, host, file, pid, first_ts, "
		"last_ts, events, fingerprint, resolution, has_device, whole_job, frequency "
		"FROM job_rank WHERE @ ORDER BY run, number"));
	for (rest = buf_str(&s->answer); click_line(&rest, &line);)
		OW_TRY(take_rank(s, &line));
	if (!s->job->worker_count)
		return error_set(s->err, OW_E_EMPTY,
				 "the server has no ranks for these runs; push recordings with "
				 "'opwatch push' first");
	return OW_OK;
}

/* The worker of the next row; rows are sorted by run and number. */
static struct worker *next_worker(struct server *s, struct str *line, size_t *at)
{
	struct str run;
	int64_t number;

	if (!click_field(line, &run))
		return NULL;
	number = server_number(line);
	while (*at < s->job->worker_count &&
	       (!str_eq(s->pushed[*at].run, run) || s->pushed[*at].number != number))
		++*at;
	return *at < s->job->worker_count ? &s->job->workers[*at] : NULL;
}

/* Chooses the steps to compare: all, or as many that the collectives of all ranks fit, evenly among the steps that
 * all ranks have. */
static ow_status choose_steps(struct server *s, uint64_t *steps)
{
	uint64_t most = s->on->collectives_most ? s->on->collectives_most : COLLECTIVES_MOST;
	uint64_t rows = 0, kept, index = 0, written = 0;
	struct str rest, line;

	OW_TRY(query(s, "SELECT count() FROM job_collective WHERE @"));
	line = str_trim(buf_str(&s->answer));
	(void)click_field_u64(&line, &rows);
	OW_TRY(query(s,
		     "SELECT step, count() AS n, sum(used_as = 'steady') AS steady FROM job_step "
		     "WHERE @ "
		     "GROUP BY step HAVING n >= %zu ORDER BY step",
		     s->job->worker_count));
	*steps = 0;
	for (rest = buf_str(&s->answer); click_line(&rest, &line);)
		++*steps;
	if (rows <= most || !*steps)
		return OW_OK;
	s->sampled = true;
	kept = MAX(*steps * most / rows, 8);
	buf_puts(&s->steps, " AND step IN (");
	for (rest = buf_str(&s->answer); click_line(&rest, &line); index++) {
		if (index * kept / *steps == (index + 1) * kept / *steps && kept < *steps)
			continue;
		buf_printf(&s->steps, "%s%lld", written++ ? ", " : "",
			   (long long)server_number(&line));
	}
	buf_puts(&s->steps, ")");
	return s->steps.failed ? error_no_memory(s->err) : OW_OK;
}

static ow_status take_step(struct server *s, struct worker *w, struct str *line)
{
	static const char *const uses[STEP_USES] = { "steady", "warm_up", "last", "incomplete" };
	struct worker_step step = { .number = server_number(line) };
	struct str use;

	step.start_ns = server_number(line);
	step.end_ns = step.start_ns + server_number(line);
	if (!click_field(line, &use))
		return OW_OK;
	for (unsigned i = 0; i < STEP_USES; i++)
		if (str_eq(use, str_from(uses[i])))
			step.use = (enum step_use)i;
	step.slices = (uint64_t)server_number(line);
	for (unsigned c = 0; c < CLASS_COUNT; c++)
		step.class_ns[c] = server_number(line);
	return vec_push(s->job->mem, w->steps, w->step_count, w->step_cap, step)
		       ? OW_OK
		       : error_no_memory(s->err);
}

static ow_status read_steps(struct server *s)
{
	struct str rest, line;
	size_t at = 0;

	OW_TRY(query(
		s, "SELECT run, number, step, start, dur, used_as, device_slices, compute_share, "
		   "communication_share, device_to_host_share, host_to_device_share, input_share, "
		   "synchronisation_share, initialisation_share, allocation_share, launch_share, "
		   "host_share, run_queue_share, idle_share FROM job_step WHERE @# "
		   "ORDER BY run, number, start"));
	for (rest = buf_str(&s->answer); click_line(&rest, &line);) {
		struct worker *w = next_worker(s, &line, &at);

		if (w)
			OW_TRY(take_step(s, w, &line));
	}
	return OW_OK;
}

static ow_status take_collective(struct server *s, struct worker *w, struct str *line)
{
	struct collective c = { .step = server_number(line) };
	int64_t pause, pause_end, key;
	struct str kind;

	c.start_ns = server_number(line);
	c.end_ns = c.start_ns + server_number(line);
	if (!click_field(line, &kind))
		return OW_OK;
	for (unsigned i = 0; i < COLLECTIVE_KINDS; i++)
		if (str_eq(kind, str_from(collective_names[i])))
			c.kind = (uint8_t)i;
	key = server_number(line);
	c.group = key == INT64_MIN ? 0 : (uint64_t)key << 1 | 1;
	c.name = (uint64_t)server_number(line) << 1 | 1;
	c.seq = take_size(line);
	c.bytes = take_size(line);
	c.group_size = take_small(line);
	c.peer = take_small(line);
	c.launched = server_number(line) == 1;
	c.ready_ns = server_number(line);
	pause = server_number(line);
	pause_end = server_number(line);
	if (pause != INT64_MIN && pause_end != INT64_MIN &&
	    !vec_push(s->job->mem, w->pauses, w->pause_count, w->pause_cap,
		      (struct pause){ pause, pause_end, 0 }))
		return error_no_memory(s->err);
	return vec_push(s->job->mem, w->collectives, w->collective_count, w->collective_cap, c)
		       ? OW_OK
		       : error_no_memory(s->err);
}

static int by_begin(const void *x, const void *y)
{
	const struct pause *a = x, *b = y;

	return (a->begin_ns > b->begin_ns) - (a->begin_ns < b->begin_ns);
}

/* Joins equal pauses: several collectives may end in one pause. */
static void join_pauses(struct worker *w)
{
	size_t kept = 0;

	if (!w->pause_count)
		return;
	qsort(w->pauses, w->pause_count, sizeof(*w->pauses), by_begin);
	for (size_t i = 0; i < w->pause_count; i++)
		if (!kept || w->pauses[kept - 1].begin_ns != w->pauses[i].begin_ns)
			w->pauses[kept++] = w->pauses[i];
	w->pause_count = kept;
	for (size_t i = 1; i < kept; i++)
		w->pauses[i].before_ns = w->pauses[i - 1].before_ns + w->pauses[i - 1].end_ns -
					 w->pauses[i - 1].begin_ns;
}

static ow_status read_collectives(struct server *s)
{
	struct str rest, line;
	size_t at = 0;

	OW_TRY(query(s, "SELECT run, number, step, ts, dur, kind, group_key, name_key, seq, bytes, "
			"group_size, peer, launched, ready_ts, pause_ts, pause_end_ts FROM "
			"job_collective WHERE @# ORDER BY run, number, ts, dur"));
	for (rest = buf_str(&s->answer); click_line(&rest, &line);) {
		struct worker *w = next_worker(s, &line, &at);

		if (w)
			OW_TRY(take_collective(s, w, &line));
	}
	for (size_t i = 0; i < s->job->worker_count; i++)
		join_pauses(&s->job->workers[i]);
	return OW_OK;
}

static ow_status read_ops(struct server *s)
{
	struct str rest, line;
	size_t at = 0;

	OW_TRY(query(s,
		     "SELECT run, number, op, dur, runs, float_ops, name_key FROM job_op WHERE @ "
		     "ORDER BY run, number, dur DESC LIMIT %d BY run, number",
		     s->job->worker_count > MANY_RANKS ? OPS_MOST_EACH : 100000));
	for (rest = buf_str(&s->answer); click_line(&rest, &line);) {
		struct worker *w = next_worker(s, &line, &at);
		struct worker_op op = { 0 };

		if (!w)
			continue;
		op.text = take_text(s, &line);
		op.ns = server_number(&line);
		op.count = (uint64_t)server_number(&line);
		op.float_ops = (uint64_t)MAX(server_number(&line), 0);
		op.name = (uint64_t)server_number(&line) << 1;
		if (!op.text.ptr || !vec_push(s->job->mem, w->ops, w->op_count, w->op_cap, op))
			return error_no_memory(s->err);
	}
	return OW_OK;
}

/* Lines of code, if they were pushed. */
static ow_status read_lines(struct server *s)
{
	struct str rest, line;
	size_t at = 0;

	OW_TRY(query(s, "SELECT name FROM system.tables WHERE database = currentDatabase() AND "
			"name = 'job_line'"));
	if (!buf_str(&s->answer).len)
		return OW_OK;
	OW_TRY(query(s,
		     "SELECT run, number, line, host, device, name_key FROM job_line WHERE @ "
		     "ORDER BY run, number, host + device DESC LIMIT %d BY run, number",
		     s->job->worker_count > MANY_RANKS ? LINES_MOST_EACH : 100000));
	for (rest = buf_str(&s->answer); click_line(&rest, &line);) {
		struct worker *w = next_worker(s, &line, &at);
		struct worker_line one = { 0 };

		if (!w)
			continue;
		one.text = take_text(s, &line);
		one.host_ns = server_number(&line);
		one.device_ns = server_number(&line);
		one.name = (uint64_t)server_number(&line) << 1;
		if (!one.text.ptr ||
		    !vec_push(s->job->mem, w->lines, w->line_count, w->line_cap, one))
			return error_no_memory(s->err);
	}
	return OW_OK;
}

static ow_status read_all(struct server *s, uint64_t *steps)
{
	write_where(s);
	if (s->where.failed)
		return error_no_memory(s->err);
	OW_TRY(read_ranks(s));
	OW_TRY(choose_steps(s, steps));
	OW_TRY(read_steps(s));
	OW_TRY(read_collectives(s));
	OW_TRY(read_ops(s));
	return read_lines(s);
}

ow_status ranks_read_server(struct ranks_job *job, struct click *click, const struct ranks_on *on,
			    uint64_t *steps, struct ow_error *err)
{
	struct server s = { .job = job, .click = click, .on = on, .err = err };
	ow_status status;

	buf_init(&s.where, job->mem);
	buf_init(&s.steps, job->mem);
	buf_init(&s.answer, job->mem);
	buf_init(&s.clocks, job->mem);
	status = read_all(&s, steps);
	buf_clear(&s.answer);
	if (status == OW_OK)
		status = ranks_finish(job, err);
	if (status == OW_OK && s.sampled)
		status = server_totals(&s);
	buf_release(&s.answer);
	buf_release(&s.clocks);
	buf_release(&s.where);
	buf_release(&s.steps);
	vec_free(job->mem, s.pushed, s.pushed_cap);
	return status;
}
