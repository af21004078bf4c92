/*
 * rollup.c: writes rows and metrics of running jobs as JSON. fleet.c calls it with the results of the watch. It sends
 * nothing. Unknown values are null, and are left out of the metrics.
 */
#include "fleet/rollup.h"

#include "base/json_escape.h"

#include <math.h>
#include <time.h>

const char *const rollup_names[ROLLUP_TABLES] = { "opwatch_live_job", "opwatch_live_rank",
						  "opwatch_live_op", "opwatch_live_anomaly" };

#define COMMON                                                                                     \
	"(day Date, time DateTime, time_ns Int64, host String, job String, user String, "          \
	"batch String, "
#define ENGINE(order)                                                                              \
	") ENGINE = MergeTree PARTITION BY day ORDER BY (job, host, " order                        \
	"time_ns) SETTINGS index_granularity = 8192"

const char *const rollup_create[ROLLUP_TABLES] = {
	"CREATE TABLE IF NOT EXISTS opwatch_live_job " COMMON
	"state String, processes UInt32, steps UInt64, steps_per_s Nullable(Float64), "
	"step_ns Nullable(Int64), last_ns Nullable(Int64), trend Nullable(Float64), "
	"since_ns Nullable(Int64), cpu Nullable(Float64), run_wait Nullable(Float64), "
	"memory_bytes Nullable(Int64), read_bytes_per_s Nullable(Float64), "
	"written_bytes_per_s Nullable(Float64), device Nullable(Float64), "
	"slowest_rank Nullable(Int32), records UInt64, dropped UInt64, "
	"phase Array(String), phase_ns Array(Int64)" ENGINE(""),
	"CREATE TABLE IF NOT EXISTS opwatch_live_rank " COMMON
	"rank Nullable(Int32), steps UInt64, step_ns Nullable(Int64), last_ns Nullable(Int64), "
	"own_ns Nullable(Int64), phase Array(String), phase_ns Array(Int64)" ENGINE(""),
	"CREATE TABLE IF NOT EXISTS opwatch_live_op " COMMON
	"op String, per String, self_ns Int64, runs Float64, share Float64" ENGINE("op, "),
	"CREATE TABLE IF NOT EXISTS opwatch_live_anomaly " COMMON
	"kind String, why String, file String" ENGINE(""),
};

static const char *phase_name(size_t index)
{
	return phase_class_names[phase_class_order[index]];
}

static void key_text(struct buf *to, const char *key, const char *value)
{
	buf_printf(to, ", \"%s\": ", key);
	json_quote(to, str_from(value));
}

void rollup_name(struct buf *to, const struct rollup *r, const char *name)
{
	struct buf hidden;

	if (!r->names || !name[0]) {
		json_quote(to, str_from(name));
		return;
	}
	buf_init(&hidden, to->mem);
	pseudonym_path(r->names, str_from(name), &hidden);
	if (r->names->failed || hidden.failed)
		to->failed = true;
	else
		json_quote(to, buf_str(&hidden));
	buf_release(&hidden);
}

static void key_name(struct buf *to, const struct rollup *r, const char *key, const char *name)
{
	buf_printf(to, ", \"%s\": ", key);
	rollup_name(to, r, name);
}

static void key_int(struct buf *to, const char *key, int64_t value)
{
	if (value < 0)
		buf_printf(to, ", \"%s\": null", key);
	else
		buf_printf(to, ", \"%s\": %" PRId64, key, value);
}

static void key_real(struct buf *to, const char *key, double value, bool known)
{
	if (known && isfinite(value))
		buf_printf(to, ", \"%s\": %.9g", key, value);
	else
		buf_printf(to, ", \"%s\": null", key);
}

static void begin_row(struct buf *to, const struct rollup *r, const char *job)
{
	time_t seconds = (time_t)(r->time_ns / 1000000000);
	char day[16] = "1970-01-01";
	struct tm utc;

	/* In UTC, as seconds since 1970, so that a server's time zone does not change them. */
	if (gmtime_r(&seconds, &utc))
		strftime(day, sizeof(day), "%Y-%m-%d", &utc);
	buf_printf(to, "{\"day\": \"%s\", \"time\": %" PRId64 ", \"time_ns\": %" PRId64, day,
		   (int64_t)seconds, r->time_ns);
	key_text(to, "host", r->host);
	key_name(to, r, "job", job);
	key_name(to, r, "user", r->user);
	key_text(to, "batch", r->batch);
}

static void key_phases(struct buf *to, const int64_t *ns)
{
	buf_puts(to, ", \"phase\": [");
	for (size_t i = 0; i < OW_PHASES; i++)
		buf_printf(to, "%s\"%s\"", i ? ", " : "", phase_name(i));
	buf_puts(to, "], \"phase_ns\": [");
	for (size_t i = 0; i < OW_PHASES; i++)
		buf_printf(to, "%s%" PRId64, i ? ", " : "", ns[i]);
	buf_add_char(to, ']');
}

#define THROUGHPUT_NS 10e9
#define THROUGHPUT_STEPS 3

double rollup_throughput(const struct ow_job *job)
{
	double sum = 0;
	size_t count = 0;

	while (count < job->recent_count && (sum < THROUGHPUT_NS || count < THROUGHPUT_STEPS))
		sum += (double)job->recent[job->recent_count - ++count];
	return count && sum > 0 ? (double)count * 1e9 / sum : -1;
}

void rollup_job(struct buf *to, const struct rollup *r, const struct ow_job *job)
{
	static const char *const states[] = {
		[OW_JOB_RUNS] = "runs", [OW_JOB_ENDED] = "ended", [OW_JOB_LOST] = "lost"
	};
	double throughput = rollup_throughput(job),
	       device = job->device >= 0 ? job->device : job->gpu;

	begin_row(to, r, job->name);
	key_text(to, "state", states[job->state]);
	key_int(to, "processes", job->processes);
	key_int(to, "steps", (int64_t)job->steps);
	key_real(to, "steps_per_s", throughput, throughput >= 0);
	key_int(to, "step_ns", job->step_ns);
	key_int(to, "last_ns", job->last_ns);
	key_real(to, "trend", job->trend, true);
	key_int(to, "since_ns", job->since_ns);
	key_real(to, "cpu", job->cpu, job->cpu >= 0);
	key_real(to, "run_wait", r->run_wait, r->run_wait >= 0);
	key_int(to, "memory_bytes", r->memory);
	key_real(to, "read_bytes_per_s", r->read_rate, r->read_rate >= 0);
	key_real(to, "written_bytes_per_s", r->write_rate, r->write_rate >= 0);
	key_real(to, "device", device, device >= 0);
	key_int(to, "slowest_rank", job->slowest_rank);
	key_int(to, "records", (int64_t)job->records);
	key_int(to, "dropped", (int64_t)job->dropped);
	key_phases(to, job->phase_ns);
	buf_puts(to, "}\n");
}

void rollup_ranks(struct buf *to, const struct rollup *r, const struct ow_job *job)
{
	for (size_t i = 0; i < job->rank_count; i++) {
		const struct ow_job_rank *rank = &job->ranks[i];

		begin_row(to, r, job->name);
		key_int(to, "rank", rank->rank);
		key_int(to, "steps", (int64_t)rank->steps);
		key_int(to, "step_ns", rank->step_ns);
		key_int(to, "last_ns", rank->last_ns);
		key_int(to, "own_ns", rank->own_ns);
		key_phases(to, rank->phase_ns);
		buf_puts(to, "}\n");
	}
}

void rollup_ops(struct buf *to, const struct rollup *r, const struct ow_job *job)
{
	for (size_t i = 0; i < job->op_count; i++) {
		const struct ow_job_op *op = &job->ops[i];

		begin_row(to, r, job->name);
		if (pseudonym_is_library_name(str_from(op->name)))
			key_text(to, "op", op->name);
		else
			key_name(to, r, "op", op->name);
		key_text(to, "per", job->has_steps ? "step" : "second");
		buf_printf(to, ", \"self_ns\": %" PRId64, op->self_ns);
		buf_printf(to, ", \"runs\": %.9g, \"share\": %.9g}\n", op->runs, op->share);
	}
}

void rollup_anomaly(struct buf *to, const struct rollup *r, const struct anomaly_event *event)
{
	begin_row(to, r, event->job ? event->job : "");
	key_text(to, "kind", event->kind);
	key_text(to, "why", r->names ? "" : event->why);
	key_text(to, "file", event->file && !r->names ? event->file : "");
	buf_puts(to, "}\n");
}

static void attribute(struct buf *to, const char *key, const char *value, bool first)
{
	buf_printf(to, "%s{\"key\":\"%s\",\"value\":{\"stringValue\":", first ? "" : ",", key);
	json_quote(to, str_from(value));
	buf_puts(to, "}}");
}

void otlp_begin(struct buf *to, const struct rollup *r)
{
	buf_puts(to, "{\"resourceMetrics\":[{\"resource\":{\"attributes\":[");
	attribute(to, "service.name", "opwatch", true);
	attribute(to, "host.name", r->host, false);
	buf_puts(to, "]},\"scopeMetrics\":[{\"scope\":{\"name\":\"opwatch\"},\"metrics\":[");
}

struct point {
	const struct rollup *r;
	const struct ow_job *job;
	const char *key, *value; /* an additional attribute, or NULL */
};

/* Begins a metric. 64-bit integers are texts in this JSON. */
static void begin_metric(struct buf *to, const char *name, const char *unit, bool sum, bool first)
{
	buf_printf(to, "%s{\"name\":\"%s\",\"unit\":\"%s\",\"%s\":{", first ? "" : ",", name, unit,
		   sum ? "sum" : "gauge");
	if (sum)
		buf_puts(to, "\"aggregationTemporality\":2,\"isMonotonic\":true,");
	buf_puts(to, "\"dataPoints\":[");
}

static void begin_point(struct buf *to, const struct point *p, bool first)
{
	buf_printf(to, "%s{\"timeUnixNano\":\"%" PRId64 "\",\"attributes\":[", first ? "" : ",",
		   p->r->time_ns);
	buf_puts(to, "{\"key\":\"opwatch.job\",\"value\":{\"stringValue\":");
	rollup_name(to, p->r, p->job->name);
	buf_puts(to, "}}");
	if (p->key)
		attribute(to, p->key, p->value, false);
	buf_puts(to, "],");
}

static void put_real(struct buf *to, const struct point *p, const char *name, const char *unit,
		     double value, bool known, bool *first)
{
	if (!known || !isfinite(value))
		return;
	begin_metric(to, name, unit, false, *first);
	begin_point(to, p, true);
	buf_printf(to, "\"asDouble\":%.9g}]}}", value);
	*first = false;
}

static void put_count(struct buf *to, const struct point *p, const char *name, uint64_t value,
		      bool *first)
{
	begin_metric(to, name, "1", true, *first);
	begin_point(to, p, true);
	buf_printf(to, "\"asInt\":\"%" PRIu64 "\"}]}}", value);
	*first = false;
}

static void put_phases(struct buf *to, const struct point *p, bool *first)
{
	bool any = false;

	if (!p->job->has_steps)
		return;
	begin_metric(to, "opwatch.step.phase", "s", false, *first);
	for (size_t i = 0; i < OW_PHASES; i++) {
		struct point one = *p;

		one.key = "opwatch.phase";
		one.value = phase_name(i);
		begin_point(to, &one, !any);
		buf_printf(to, "\"asDouble\":%.9g}", (double)p->job->phase_ns[i] / 1e9);
		any = true;
	}
	buf_puts(to, "]}}");
	*first = false;
}

void otlp_job(struct buf *to, const struct rollup *r, const struct ow_job *job, bool first)
{
	const struct point p = { .r = r, .job = job };
	double throughput = rollup_throughput(job);

	put_count(to, &p, "opwatch.steps", job->steps, &first);
	put_count(to, &p, "opwatch.records.dropped", job->dropped, &first);
	put_real(to, &p, "opwatch.step.duration", "s", (double)job->step_ns / 1e9,
		 job->step_ns >= 0, &first);
	put_real(to, &p, "opwatch.step.rate", "1/s", throughput, throughput >= 0, &first);
	put_real(to, &p, "opwatch.cpu", "{cpu}", job->cpu, job->cpu >= 0, &first);
	put_real(to, &p, "opwatch.run_wait", "{thread}", r->run_wait, r->run_wait >= 0, &first);
	put_real(to, &p, "opwatch.memory", "By", (double)r->memory, r->memory >= 0, &first);
	put_real(to, &p, "opwatch.io.read", "By/s", r->read_rate, r->read_rate >= 0, &first);
	put_real(to, &p, "opwatch.io.written", "By/s", r->write_rate, r->write_rate >= 0, &first);
	put_phases(to, &p, &first);
}

void otlp_end(struct buf *to)
{
	buf_puts(to, "]}]}]}");
}
