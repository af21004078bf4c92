/*
 * ranks_table.c: converts the results for a job (ranks.h) to a table: one row for each rank, and as extra values the
 * missing ranks, the clocks, the blame, bandwidths and the map of ranks and steps. Nothing but means is computed here.
 */
#include "ranks/ranks.h"

#include "base/buf.h"
#include "base/json_escape.h"

#include <math.h>

/* The map is printed for people: for a larger job it shows some of the ranks, and groups of steps. */
#define MAP_STEPS 64
#define MAP_RANKS 64

enum {
	COLUMN_RANK,
	COLUMN_DP,
	COLUMN_STAGE,
	COLUMN_STEP,
	COLUMN_OWN,
	COLUMN_WAIT,
	COLUMN_TRANSFER,
	COLUMN_STRAGGLER,
	COLUMN_SLOWDOWN,
	COLUMN_CAUSE,
	COLUMN_LINE,
	COLUMN_HOST,
	COLUMN_OFFSET,
	COLUMN_DRIFT,
	COLUMN_LIKELY,
	COLUMN_PROVEN,
	COLUMN_ROLE,
	COLUMN_EVIDENCE,
	COLUMN_USED,
	COLUMN_REJECTED,
	COLUMN_FILE
};

void ranks_columns(struct table *t)
{
	static const char *const sentences[] = {
		"rank within the job",
		"index of the rank among the data-parallel replicas, when known",
		"pipeline stage of the rank, when known",
		"duration of the rank's median steady step",
		"time of the rank's own work in a step, outside of collectives",
		"time in collectives until the last rank arrived",
		"time in collectives after the last rank arrived",
		"kind of straggler: none, persistent, transient or periodic",
		"duration of the step, divided by its duration if this rank were like its peers",
		("why the rank is slow: input, host, compute, more_work, clock_frequency, "
		 "communication or unknown"),
		"line of the program in which a straggler spends more time than its peers",
		"host that the rank ran on, when known",
		"nanoseconds to add to the rank's times to get times of the lowest rank's clock",
		"how the clock offset grows with time, in parts per million",
		"the clock offset is right within plus or minus this (95 % confidence)",
		"the clock offset is certainly right within plus or minus this",
		"role of the rank, when known",
		"measurements that show the cause, as JSON",
		"number of collectives that the clock was fitted to",
		"number of collectives that the clock fit left out",
		"file that the rank was read from",
	};

	/* A narrow terminal leaves out the last columns, so the columns that show problems come before those of the
	 * clocks. */
	table_add_column(t, "rank", "rank", TYPE_INT, UNIT_NONE);
	table_add_column(t, "dp", "dp", TYPE_INT, UNIT_NONE);
	table_add_column(t, "stage", "stage", TYPE_INT, UNIT_NONE);
	table_add_column(t, "step_ns", "step", TYPE_INT, UNIT_NS);
	table_add_column(t, "own_work_ns", "own work", TYPE_INT, UNIT_NS);
	table_add_column(t, "wait_ns", "wait", TYPE_INT, UNIT_NS);
	table_add_column(t, "transfer_ns", "transfer", TYPE_INT, UNIT_NS);
	table_add_column(t, "straggler", "straggler", TYPE_TEXT, UNIT_NONE);
	table_add_column(t, "slowdown_caused", "slowdown caused", TYPE_REAL, UNIT_NONE);
	table_add_column(t, "cause", "cause", TYPE_TEXT, UNIT_NONE);
	table_add_column(t, "line", "line", TYPE_TEXT, UNIT_NONE);
	table_add_column(t, "host", "host", TYPE_TEXT, UNIT_NONE);
	table_add_column(t, "clock_offset_ns", "clock offset", TYPE_INT, UNIT_NS);
	table_add_column(t, "clock_drift_ppm", "drift ppm", TYPE_REAL, UNIT_NONE);
	table_add_column(t, "clock_likely_ns", "likely ±", TYPE_INT, UNIT_NS);
	table_add_column(t, "clock_proven_ns", "proven ±", TYPE_INT, UNIT_NS);
	table_add_column(t, "role", "role", TYPE_TEXT, UNIT_NONE);
	table_add_column(t, "evidence", "evidence", TYPE_TEXT, UNIT_NONE);
	table_add_column(t, "pairs_used", "pairs used", TYPE_INT, UNIT_COUNT);
	table_add_column(t, "pairs_rejected", "pairs rejected", TYPE_INT, UNIT_COUNT);
	table_add_column(t, "file", "file", TYPE_TEXT, UNIT_NONE);
	table_document(t, sentences, ARRAY_COUNT(sentences));
	t->columns[COLUMN_EVIDENCE].json = true;
	for (unsigned i = COLUMN_ROLE; i <= COLUMN_FILE; i++)
		t->columns[i].for_programs = true;
}

static void set_number(struct table *t, uint32_t row, uint32_t column, int64_t value, bool known)
{
	if (known)
		table_set_int(t, row, column, value);
	else
		table_set_unknown(t, row, column);
}

/* The rank of a worker; if the content does not give one, the index of the worker in its file. */
static int64_t number_of(const struct ranks_job *job, const struct worker *w)
{
	return w->rank >= 0 ? w->rank : (int64_t)(w - job->workers);
}

static bool has_number(const struct worker *w)
{
	return w->rank >= 0 || w->stage >= 0;
}

/* Writes the evidence against a straggler: a sentence, then the steps with the largest excess. */
static void write_evidence(const struct ranks_job *job, const struct worker *w, struct buf *to)
{
	int64_t before = INT64_MAX;

	buf_clear(to);
	if (w->straggler == STRAGGLER_NONE) {
		buf_puts(to, "[]");
		return;
	}
	buf_puts(to, "[{\"what\": ");
	json_quote(to, str_from(w->evidence));
	if (w->slow_line.len) {
		buf_puts(to, ", \"line\": ");
		json_quote(to, w->slow_line);
	}
	buf_puts(to, "}");
	for (unsigned n = 0; n < 3 && w->cause != CAUSE_COMMUNICATION; n++) {
		const struct worker_step *worst = NULL;

		for (size_t s = 0; s < job->step_count; s++) {
			const struct worker_step *step = worker_step_of(w, job->step_numbers[s]);

			if (step && step->others_ns != TIME_UNKNOWN &&
			    step->own_ns - step->others_ns < before &&
			    (!worst ||
			     step->own_ns - step->others_ns > worst->own_ns - worst->others_ns))
				worst = step;
		}
		if (!worst)
			break;
		before = worst->own_ns - worst->others_ns;
		buf_puts(to, ", {\"rank\": ");
		if (has_number(w))
			buf_printf(to, "%lld", (long long)number_of(job, w));
		else
			buf_puts(to, "null");
		buf_printf(to, ", \"step\": %lld, \"own_ns\": %lld, \"peers_ns\": %lld}",
			   (long long)worst->number, (long long)worst->own_ns,
			   (long long)worst->others_ns);
	}
	buf_puts(to, "]");
}

static void fill_row(struct table *t, const struct ranks_job *job, const struct worker *w,
		     struct buf *buf)
{
	uint32_t row = table_add_row(t, 0);
	struct rank_means mean;
	bool steps = ranks_means(job, w, &mean);
	bool waits = steps && ranks_waits_known(job, w);
	char role[64] = "";

	set_number(t, row, COLUMN_RANK, number_of(job, w), has_number(w));
	set_number(t, row, COLUMN_DP, w->dp, w->dp >= 0);
	set_number(t, row, COLUMN_STAGE, w->stage, w->stage >= 0);
	if (w->stage >= 0)
		snprintf(role, sizeof(role), "stage %d", w->stage);
	else if (w->task.len)
		snprintf(role, sizeof(role), "%.*s", (int)MIN(w->task.len, sizeof(role) - 1),
			 w->task.ptr);
	table_set_known_text(t, row, COLUMN_ROLE, str_from(role));
	table_set_known_text(t, row, COLUMN_HOST, w->host);
	set_number(t, row, COLUMN_STEP, mean.step_ns, steps);
	set_number(t, row, COLUMN_OWN, mean.own_ns, steps && mean.own_ns > 0);
	set_number(t, row, COLUMN_WAIT, mean.wait_ns, waits);
	set_number(t, row, COLUMN_TRANSFER, mean.transfer_ns, waits);
	set_number(t, row, COLUMN_OFFSET, w->offset_ns, w->has_clock);
	set_number(t, row, COLUMN_LIKELY, w->likely_ns, w->has_clock);
	set_number(t, row, COLUMN_PROVEN, w->proven_ns, w->has_clock);
	if (w->has_clock)
		table_set_real(t, row, COLUMN_DRIFT, w->drift_ppm);
	else
		table_set_unknown(t, row, COLUMN_DRIFT);
	table_set_text(t, row, COLUMN_STRAGGLER, str_from(straggler_names[w->straggler]));
	if (isnan(w->slowdown_caused))
		table_set_unknown(t, row, COLUMN_SLOWDOWN);
	else
		table_set_real(t, row, COLUMN_SLOWDOWN, w->slowdown_caused);
	table_set_known_text(t, row, COLUMN_CAUSE,
			     w->straggler != STRAGGLER_NONE ? str_from(cause_names[w->cause])
							    : STR(""));
	table_set_known_text(t, row, COLUMN_LINE,
			     w->straggler != STRAGGLER_NONE ? w->slow_line : STR(""));
	write_evidence(job, w, buf);
	table_set_text(t, row, COLUMN_EVIDENCE, buf_str(buf));
	set_number(t, row, COLUMN_USED, (int64_t)w->pairs_used, w->has_clock && w->piece_count);
	set_number(t, row, COLUMN_REJECTED, (int64_t)w->pairs_rejected,
		   w->has_clock && w->piece_count);
	table_set_text(t, row, COLUMN_FILE, w->path);
}

static void add_real(struct table *t, const char *name, double value, int digits)
{
	if (isnan(value))
		table_add_extra(t, name, "null");
	else
		table_add_extra(t, name, "%.*f", digits, value);
}

static void add_missing(struct table *t, const struct ranks_job *job, struct buf *buf)
{
	size_t at = 0;
	bool any = false;

	buf_clear(buf);
	buf_puts(buf, "[");
	for (int64_t rank = 0; rank < job->world; rank++) {
		bool found = false;

		/* Workers are sorted by rank; those that were left out are among them. */
		while (at < job->worker_count && job->workers[at].rank >= 0 &&
		       job->workers[at].rank < rank)
			at++;
		for (size_t i = at; i < job->worker_count && job->workers[i].rank == rank && !found;
		     i++)
			found = !job->workers[i].left_out;
		if (!found) {
			buf_printf(buf, "%s%lld", any ? ", " : "", (long long)rank);
			any = true;
		}
	}
	buf_puts(buf, "]");
	table_add_extra(t, "missing_ranks", "%.*s", STR_ARG(buf_str(buf)));
}

static void add_workers(struct table *t, const struct ranks_job *job, const char *name,
			const uint32_t *list, size_t count, struct buf *buf)
{
	buf_clear(buf);
	buf_puts(buf, "[");
	for (size_t i = 0; i < count; i++) {
		const struct worker *w = &job->workers[list[i]];

		buf_printf(buf, "%s{\"rank\": ", i ? ", " : "");
		if (w->rank >= 0)
			buf_printf(buf, "%d", w->rank);
		else
			buf_puts(buf, "null");
		buf_puts(buf, ", \"file\": ");
		json_quote(buf, w->path);
		buf_puts(buf, "}");
	}
	buf_puts(buf, "]");
	table_add_extra(t, name, "%.*s", STR_ARG(buf_str(buf)));
}

static void add_blamed(struct table *t, const struct ranks_job *job, struct buf *buf)
{
	buf_clear(buf);
	buf_puts(buf, "[");
	for (size_t i = 0; i < job->blamed_count; i++)
		buf_printf(buf, "%s%lld", i ? ", " : "", (long long)job->blamed[i]);
	buf_puts(buf, "]");
	table_add_extra_text(t, "blame", blame_names[job->blame]);
	table_add_extra(t, "blamed", "%.*s", STR_ARG(buf_str(buf)));
	table_add_extra_text(t, "blame_why", *job->blame_why ? job->blame_why : NULL);
}

static void add_speeds(struct table *t, const struct ranks_job *job, struct buf *buf)
{
	buf_clear(buf);
	buf_puts(buf, "[");
	for (size_t i = 0; i < job->speed_count; i++) {
		const struct size_speed *s = &job->speeds[i];

		buf_printf(buf, "%s{\"collective\": \"%s\", \"bytes\": %lld, \"count\": %llu, ",
			   i ? ", " : "", collective_names[s->kind], (long long)s->bytes,
			   (unsigned long long)s->count);
		buf_printf(buf, "\"transfer_ns\": %.0f, \"bus_bytes_per_s\": ", s->median_ns);
		if (isnan(s->bus_rate))
			buf_puts(buf, "null}");
		else
			buf_printf(buf, "%.0f}", s->bus_rate * 1e9);
	}
	buf_puts(buf, "]");
	table_add_extra(t, "bandwidth", "%.*s", STR_ARG(buf_str(buf)));
	add_real(t, "latency_ns", job->alpha_ns, 0);
	add_real(t, "bytes_per_s", job->beta_ns_per_byte > 0 ? 1e9 / job->beta_ns_per_byte : NAN,
		 0);
}

/* Adds the groups that move data more slowly than groups like them. */
static void add_links(struct table *t, const struct ranks_job *job, struct buf *buf)
{
	buf_clear(buf);
	buf_puts(buf, "[");
	for (size_t i = 0; i < job->slow_link_count; i++) {
		const struct slow_link *link = &job->slow_links[i];
		const struct meeting *m = &job->meetings[link->meeting];

		buf_printf(buf, "%s{\"ranks\": [", i ? ", " : "");
		for (uint32_t k = 0; k < m->count; k++)
			buf_printf(buf, "%s%lld", k ? ", " : "",
				   (long long)number_of(
					   job, &job->workers[job->members[m->first + k].worker]));
		buf_printf(buf,
			   "], \"collective\": \"%s\", \"bytes\": ", collective_names[link->kind]);
		if (link->bytes >= 0)
			buf_printf(buf, "%lld", (long long)link->bytes);
		else
			buf_puts(buf, "null");
		buf_printf(buf, ", \"transfer_ns\": %.0f, \"others_ns\": %.0f}", link->median_ns,
			   link->others_ns);
	}
	buf_puts(buf, "]");
	table_add_extra(t, "slow_links", "%.*s", STR_ARG(buf_str(buf)));
}

static bool is_mapped(const struct worker *w)
{
	return !w->left_out && w->step_count;
}

/* Whether the map has a row for a worker: stragglers have one as far as they fit, and others at equal distances.
 * `nth` is the index of this worker among the `others`. */
static bool has_map_row(const struct worker *w, size_t nth, size_t others, size_t stragglers)
{
	size_t room = MAP_RANKS - MIN(stragglers, MAP_RANKS);

	if (others <= room || w->straggler != STRAGGLER_NONE)
		return true;
	return nth * room / others != (nth + 1) * room / others;
}

/* The largest ratio of a worker's own work to the median of its peers in a group of steps; NaN if there are no
 * peers. */
static double map_ratio(const struct ranks_job *job, const struct worker *w, size_t first,
			size_t end)
{
	double most = (double)NAN;

	for (size_t s = first; s < end; s++) {
		const struct worker_step *step = worker_step_of(w, job->step_numbers[s]);

		if (step && step->others_ns > 0 && step->others_ns != TIME_UNKNOWN)
			most = fmax(most, (double)step->own_ns / (double)step->others_ns);
	}
	return most;
}

static void add_map_row(const struct ranks_job *job, const struct worker *w, size_t each,
			struct buf *buf)
{
	buf_printf(buf, "[%lld", (long long)number_of(job, w));
	for (size_t s = 0; s < job->step_count; s += each) {
		double ratio = map_ratio(job, w, s, MIN(s + each, job->step_count));

		if (isnan(ratio))
			buf_puts(buf, ", null");
		else
			buf_printf(buf, ", %.3f", ratio);
	}
	buf_puts(buf, "]");
}

/* Adds the map: own work of each rank in each step, divided by the median of its peers. With more than MAP_STEPS
 * steps each number is the largest of `each` steps, and "steps" lists the first step of each group. */
static void add_map(struct table *t, const struct ranks_job *job, struct buf *buf)
{
	size_t each = MAX((job->step_count + MAP_STEPS - 1) / MAP_STEPS, (size_t)1);
	size_t rows = 0, others = 0, stragglers = 0, nth = 0;

	for (size_t i = 0; i < job->worker_count; i++)
		if (is_mapped(&job->workers[i]))
			++*(job->workers[i].straggler != STRAGGLER_NONE ? &stragglers : &others);
	buf_clear(buf);
	buf_puts(buf, "{\"steps\": [");
	for (size_t s = 0; s < job->step_count; s += each)
		buf_printf(buf, "%s%lld", s ? ", " : "", (long long)job->step_numbers[s]);
	buf_puts(buf, "], \"rows\": [");
	for (size_t i = 0; i < job->worker_count && rows < MAP_RANKS; i++) {
		const struct worker *w = &job->workers[i];

		if (!is_mapped(w))
			continue;
		nth += w->straggler == STRAGGLER_NONE;
		if (!has_map_row(w, nth - 1, others, stragglers))
			continue;
		buf_puts(buf, rows++ ? ", " : "");
		add_map_row(job, w, each, buf);
	}
	buf_puts(buf, "]}");
	table_add_extra(t, "map", "%.*s", STR_ARG(buf_str(buf)));
	table_add_extra(t, "map_steps_each", "%zu", each);
}

static void add_values(struct table *t, const struct ranks_job *job, struct buf *buf)
{
	table_add_extra(t, "schema_version", "1");
	if (job->world > 0)
		table_add_extra(t, "world_size", "%lld", (long long)job->world);
	else
		table_add_extra(t, "world_size", "null");
	add_missing(t, job, buf);
	add_workers(t, job, "duplicates", job->copies, job->copy_count, buf);
	table_add_extra(t, "mixed_jobs", job->mixed_jobs ? "true" : "false");
	table_add_extra_text(t, "mixed_why", job->mixed_jobs ? job->mixed_why : NULL);
	add_workers(t, job, "left_out", job->others, job->other_count, buf);
	if (job->step_ns == TIME_UNKNOWN)
		table_add_extra(t, "step_ns", "null");
	else
		table_add_extra(t, "step_ns", "%lld", (long long)job->step_ns);
	add_real(t, "slowdown", job->slowdown, 4);
	add_real(t, "replay_error", job->replay_error, 4);
	table_add_extra_text(t, "clock", clock_names[job->clock]);
	table_add_extra_text(t, "clock_why", *job->clock_why ? job->clock_why : NULL);
	table_add_extra_text(t, "wait_why", *job->waits_why ? job->waits_why : NULL);
	add_blamed(t, job, buf);
	table_add_extra(t, "collectives_paired", "%zu", job->meeting_count);
	table_add_extra(t, "collectives_unpaired", "%llu", (unsigned long long)job->unpaired);
	add_speeds(t, job, buf);
	add_links(t, job, buf);
	if (job->micro_batches > 0) {
		table_add_extra(t, "stages", "%d", job->stages);
		table_add_extra(t, "micro_batches", "%lld", (long long)job->micro_batches);
	} else {
		table_add_extra(t, "stages", "null");
		table_add_extra(t, "micro_batches", "null");
	}
	add_real(t, "bubble", job->bubble, 4);
	add_real(t, "bubble_ideal", job->bubble_ideal, 4);
	add_map(t, job, buf);
}

ow_status ranks_table(struct ranks_job *job, struct table *out, struct ow_error *err)
{
	struct buf buf;

	buf_init(&buf, job->mem);
	ranks_columns(out);
	for (size_t i = 0; i < job->worker_count; i++)
		if (!job->workers[i].left_out)
			fill_row(out, job, &job->workers[i], &buf);
	add_values(out, job, &buf);
	buf_release(&buf);
	return out->status == OW_OK ? OW_OK : error_no_memory(err);
}
