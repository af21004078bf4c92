/*
 * ranks_totals.c: steps, waits and transfers of all ranks over all their steps, computed by the server (ranks_on.h).
 * The clocks were fitted here, from the collectives of some steps; the server converts every collective to these
 * clocks, finds when the last rank of each arrived, and sums. Only sums and medians for each rank come back. Steps are
 * queried in parts, so that the server's memory does not grow with their number. Collectives that a sequence number
 * does not identify are not split here; if these are many, the means of the chosen steps are kept.
 */
#include "push/ranks_on_int.h"

#include "base/vec.h"

#include <math.h>
#include <stdlib.h>

#define ROWS_AT_ONCE 4000000 /* collectives that the server groups in one query */
/* waits are unknown if a larger share of the time in collectives cannot be split, as in src/ranks/waits.c */
#define UNKNOWN_MOST 0.05

/* Sums that the server computed for a worker. */
struct total {
	int64_t wait_ns, split_ns, unknown_ns;
	int64_t median_ns;
};

struct totals {
	struct server *s;
	struct total *list; /* one entry for each worker of the job */
	int64_t *steps;	    /* numbers of the steps that are steady on all ranks, ascending */
	size_t step_count, step_cap;
	uint64_t rows; /* collectives in all steps of the runs */
};

static bool is_compared(const struct worker *w)
{
	return !w->left_out && w->step_count;
}

/* Appends a list as SQL: one text that the server casts, because a statement may have only a few thousand elements. */
static void add_list(struct buf *to, struct buf *text, const char *type)
{
	buf_puts(to, "CAST(");
	click_quote(to, buf_str(text));
	buf_printf(to, " AS Array(%s))", type);
	buf_clear(text);
}

enum list { LIST_NAME, LIST_NUMBER, LIST_SHIFT, LIST_DRIFT, LIST_ORIGIN };

static void add_element(struct totals *t, size_t worker, enum list list, struct buf *name,
			struct buf *to)
{
	const struct worker *w = &t->s->job->workers[worker];
	const struct pushed *pushed = &t->s->pushed[w->source];
	const struct clock_piece none = { 0 }, *piece = w->piece_count ? w->pieces : &none;

	switch (list) {
	case LIST_NAME:
		buf_clear(name);
		buf_printf(name, "%lld/", (long long)pushed->number);
		buf_add_str(name, pushed->run);
		click_quote(to, buf_str(name));
		break;
	case LIST_NUMBER:
		buf_printf(to, "%zu", worker);
		break;
	case LIST_SHIFT:
		buf_printf(to, "%.17g", piece->offset_ns);
		break;
	case LIST_DRIFT:
		buf_printf(to, "%.17g", piece->drift);
		break;
	case LIST_ORIGIN:
		buf_printf(to, "%lld", (long long)piece->origin_ns);
		break;
	}
}

/* Writes one list element for each worker that is compared, or, with `all`, for every worker, by number. */
static void add_elements(struct totals *t, enum list list, bool all, struct buf *name,
			 struct buf *text)
{
	bool any = false;

	buf_puts(text, "[");
	for (size_t i = 0; i < t->s->job->worker_count; i++) {
		if (!all && !is_compared(&t->s->job->workers[i]))
			continue;
		if (any)
			buf_puts(text, ",");
		add_element(t, i, list, name, text);
		any = true;
	}
	buf_puts(text, "]");
}

/* Writes the SQL column "worker": the number of a row's worker; for rows that are not compared, the number of
 * workers. */
static void write_worker(struct totals *t, struct buf *name, struct buf *text)
{
	struct buf *to = &t->s->clocks;

	buf_clear(to);
	buf_puts(to, "transform(concat(toString(number), '/', run), ");
	add_elements(t, LIST_NAME, false, name, text);
	add_list(to, text, "String");
	buf_puts(to, ", ");
	add_elements(t, LIST_NUMBER, false, name, text);
	add_list(to, text, "UInt32");
	buf_printf(to, ", toUInt32(%zu)) AS worker", t->s->job->worker_count);
}

/* Writes the SQL column "t": the begin of a collective on the clock of the lowest rank. */
static void write_time(struct totals *t, struct buf *name, struct buf *text)
{
	struct buf *to = &t->s->clocks;

	buf_puts(to, ", assumeNotNull(ts) + toInt64(round(arrayElement(");
	add_elements(t, LIST_SHIFT, true, name, text);
	add_list(to, text, "Float64");
	buf_puts(to, ", worker + 1) + arrayElement(");
	add_elements(t, LIST_DRIFT, true, name, text);
	add_list(to, text, "Float64");
	buf_puts(to, ", worker + 1) * (toFloat64(assumeNotNull(ts)) - toFloat64(arrayElement(");
	add_elements(t, LIST_ORIGIN, true, name, text);
	add_list(to, text, "Int64");
	buf_puts(to, ", worker + 1))))) AS t");
}

static ow_status write_clocks(struct totals *t, bool times)
{
	struct buf name, text;
	bool failed;

	buf_init(&name, t->s->job->mem);
	buf_init(&text, t->s->job->mem);
	write_worker(t, &name, &text);
	if (times)
		write_time(t, &name, &text);
	failed = name.failed || text.failed || t->s->clocks.failed;
	buf_release(&name);
	buf_release(&text);
	return failed ? error_no_memory(t->s->err) : OW_OK;
}

static ow_status find_steps(struct totals *t)
{
	struct server *s = t->s;
	struct str rest, line;
	size_t workers = 0;
	char query[512];

	for (size_t i = 0; i < s->job->worker_count; i++)
		workers += is_compared(&s->job->workers[i]);
	OW_TRY(write_clocks(t, false));
	snprintf(query, sizeof(query),
		 "SELECT step FROM (SELECT step, used_as, ~ FROM job_step WHERE @) WHERE worker < "
		 "%zu "
		 "AND used_as = 'steady' GROUP BY step HAVING count() = %zu ORDER BY step",
		 s->job->worker_count, workers);
	OW_TRY(server_query(s, query));
	for (rest = buf_str(&s->answer); click_line(&rest, &line);)
		if (!vec_push(s->job->mem, t->steps, t->step_count, t->step_cap,
			      server_number(&line)))
			return error_no_memory(s->err);
	return OW_OK;
}

/* Writes the condition on the steps [first, end) of the list, as ranges. */
static ow_status choose_steps(struct totals *t, size_t first, size_t end)
{
	struct buf *to = &t->s->steps;

	buf_clear(to);
	buf_puts(to, " AND (");
	for (size_t i = first, next; i < end; i = next) {
		for (next = i + 1; next < end && t->steps[next] == t->steps[next - 1] + 1;)
			next++;
		buf_printf(to, "%sstep BETWEEN %lld AND %lld", i > first ? " OR " : "",
			   (long long)t->steps[i], (long long)t->steps[next - 1]);
	}
	buf_puts(to, ")");
	return to->failed ? error_no_memory(t->s->err) : OW_OK;
}

/* The total of the worker whose number a line begins with; NULL when the number is out of range. */
static struct total *total_of(const struct totals *t, struct str *line)
{
	int64_t worker = server_number(line);

	return worker >= 0 && (size_t)worker < t->s->job->worker_count ? &t->list[worker] : NULL;
}

/* Reads the medians for each worker. The median of an even number of values is the mean of the middle two, as in
 * ranks_median. */
static ow_status read_medians(struct totals *t)
{
	struct server *s = t->s;
	struct str rest, line;
	char query[640];

	snprintf(query, sizeof(query),
		 "SELECT worker, arrayElement(a, intDiv(length(a) + 1, 2)) AS low, "
		 "arrayElement(a, intDiv(length(a), 2) + 1) AS high FROM (SELECT worker, "
		 "arraySort(groupArray(d)) AS a FROM (SELECT ~, assumeNotNull(dur) AS d FROM "
		 "job_step WHERE @#) WHERE worker < %zu GROUP BY worker)",
		 s->job->worker_count);
	OW_TRY(server_query(s, query));
	for (rest = buf_str(&s->answer); click_line(&rest, &line);) {
		struct total *total = total_of(t, &line);
		int64_t low = server_number(&line), high = server_number(&line);

		if (total)
			total->median_ns = low + (high - low) / 2;
	}
	return OW_OK;
}

/* Reads the length of each step of the job, which is that of its slowest worker. */
static ow_status read_longest(struct totals *t)
{
	struct server *s = t->s;
	struct str rest, line;
	size_t count = 0;
	char query[320];
	int64_t *longest;

	snprintf(query, sizeof(query),
		 "SELECT max(d) FROM (SELECT step, ~, assumeNotNull(dur) AS d FROM job_step WHERE "
		 "@#) "
		 "WHERE worker < %zu GROUP BY step",
		 s->job->worker_count);
	OW_TRY(server_query(s, query));
	longest = ARENA_ARRAY(&s->job->arena, int64_t, t->step_count + 1);
	if (!longest)
		return error_no_memory(s->err);
	for (rest = buf_str(&s->answer); click_line(&rest, &line) && count < t->step_count;)
		longest[count++] = server_number(&line);
	if (count)
		s->job->step_ns = ranks_median(longest, count);
	return OW_OK;
}

/* How far the times of one collective may contradict each other. */
static int64_t allowed_error(const struct ranks_job *job)
{
	int64_t error = 1000;

	for (size_t i = 0; i < job->worker_count; i++)
		if (is_compared(&job->workers[i]))
			error = MAX(error, span_add(2 * job->workers[i].likely_ns,
						    job->workers[i].resolution_ns));
	return error;
}

/* Adds the waits of the steps in s->steps. A collective is split if each worker has it once and all call the same
 * kind; for a broadcast the root must be known. */
static ow_status add_waits(struct totals *t)
{
	struct server *s = t->s;
	struct str rest, line;
	char query[1600];

	snprintf(
		query, sizeof(query),
		"SELECT worker, sumIf(w, ok), sumIf(d, ok), sumIf(d, NOT ok) FROM (SELECT m.1 AS "
		"worker, m.3 AS d, least(greatest(last - m.2, 0), m.3) AS w, ok FROM (SELECT "
		"if(any(kind) = 'broadcast', maxIf(t, peer = rank), max(t)) AS last, "
		"groupArray(tuple(worker, t, d)) AS ms, (uniqExact(worker) = count()) AND (count() "
		"> 1) AND (uniqExact(pair_look) = 1) AND (any(kind) != 'broadcast' OR countIf(peer "
		"= rank) = 1) AND (any(kind) NOT IN ('all-reduce', 'all-gather', "
		"'reduce-scatter', 'all-to-all', 'barrier') OR max(t) <= min(t + d) + %lld) AS ok "
		"FROM (SELECT pair_key, pair_look, assumeNotNull(kind) AS kind, ifNull(peer, -1) "
		"AS peer, ifNull(rank, -2) AS rank, assumeNotNull(dur) AS d, ~ FROM "
		"job_collective WHERE @#) WHERE worker < %zu GROUP BY pair_key) ARRAY JOIN ms AS "
		"m) GROUP BY worker",
		(long long)allowed_error(s->job), s->job->worker_count);
	OW_TRY(server_query(s, query));
	for (rest = buf_str(&s->answer); click_line(&rest, &line);) {
		struct total *total = total_of(t, &line);
		int64_t wait = server_number(&line), split = server_number(&line),
			unknown = server_number(&line);

		if (!total)
			continue;
		total->wait_ns = span_add(total->wait_ns, MAX(wait, 0));
		total->split_ns = span_add(total->split_ns, MAX(split, 0));
		total->unknown_ns = span_add(total->unknown_ns, MAX(unknown, 0));
	}
	return OW_OK;
}

/* Reads the waits of all steps, some steps at a time. */
static ow_status read_waits(struct totals *t)
{
	struct server *s = t->s;
	uint64_t each = t->rows / MAX(t->step_count, (size_t)1) + 1;
	size_t at_once = (size_t)MAX(ROWS_AT_ONCE / each, 1u);

	OW_TRY(write_clocks(t, true));
	for (size_t first = 0; first < t->step_count; first += at_once) {
		OW_TRY(choose_steps(t, first, MIN(first + at_once, t->step_count)));
		OW_TRY(add_waits(t));
	}
	return s->steps.failed ? error_no_memory(s->err) : OW_OK;
}

static void set_totals(struct totals *t)
{
	int64_t steps = (int64_t)t->step_count;

	for (size_t i = 0; i < t->s->job->worker_count; i++) {
		struct worker *w = &t->s->job->workers[i];
		const struct total *total = &t->list[i];
		double all = (double)total->split_ns + (double)total->unknown_ns;
		struct rank_means here;

		if (!is_compared(w) || !total->median_ns || !ranks_means(t->s->job, w, &here))
			continue;
		w->totals = here;
		w->totals.step_ns = total->median_ns;
		if ((double)total->unknown_ns <= UNKNOWN_MOST * all) {
			w->totals.wait_ns = total->wait_ns / steps;
			w->totals.transfer_ns =
				(total->split_ns - total->wait_ns + total->unknown_ns) / steps;
		}
		w->has_totals = true;
	}
	t->s->job->steps_added_up = t->step_count;
}

static ow_status compute(struct totals *t)
{
	struct server *s = t->s;
	struct str line;

	t->list = ARENA_ARRAY(&s->job->arena, struct total, s->job->worker_count + 1);
	if (!t->list)
		return error_no_memory(s->err);
	OW_TRY(server_query(s, "SELECT count() FROM job_collective WHERE @"));
	line = str_trim(buf_str(&s->answer));
	(void)click_field_u64(&line, &t->rows);
	OW_TRY(find_steps(t));
	if (!t->step_count)
		return OW_OK;
	OW_TRY(choose_steps(t, 0, t->step_count));
	OW_TRY(read_medians(t));
	OW_TRY(read_longest(t));
	OW_TRY(read_waits(t));
	set_totals(t);
	return OW_OK;
}

ow_status server_totals(struct server *s)
{
	struct totals t = { .s = s };
	ow_status status;

	/* A clock that was set during the recording has several pieces, but the server's query handles one only. */
	for (size_t i = 0; i < s->job->worker_count; i++)
		if (s->job->workers[i].piece_count > 1)
			return OW_OK;
	if (s->job->clock == CLOCK_IMPOSSIBLE || !s->job->step_count)
		return OW_OK;
	status = compute(&t);
	vec_free(s->job->mem, t.steps, t.step_cap);
	return status;
}
