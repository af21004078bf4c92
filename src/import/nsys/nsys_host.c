/*
 * nsys_calls.c: what threads did, as tables of calls give it: CUDA's run-time and driver library, the operating
 * system's, MPI, cuDNN and the like; also when they ran on a processor, and where they were when they were sampled.
 */
#include "import/nsys_int.h"

/* ---- one row ---- */

static int64_t add_clamped(struct nsys *n, int64_t a, int64_t b)
{
	int64_t sum;

	if (OW_LIKELY(!__builtin_add_overflow(a, b, &sum) && sum != TIME_UNKNOWN))
		return sum;
	n->counts.clamped++;
	return a < 0 ? INT64_MIN + 1 : INT64_MAX;
}

bool nsys_interval(struct nsys *n, const struct sqlite_rows *rows, int start, int end,
		   struct nsys_slice *slice)
{
	int64_t from, to;

	if (OW_UNLIKELY(!sqlite_get_int(rows, start, &from))) {
		n->counts.no_time++;
		return false;
	}
	slice->ts = add_clamped(n, from, n->epoch_ns);
	if (end < 0 || !sqlite_get_int(rows, end, &to)) {
		slice->dur = TIME_UNKNOWN;
		return true;
	}
	if (__builtin_sub_overflow(to, from, &slice->dur)) {
		n->counts.clamped++;
		slice->dur = to > from ? INT64_MAX : 0;
	}
	if (slice->dur < 0) {
		n->counts.negative++;
		slice->dur = 0;
	}
	if (__builtin_add_overflow(slice->ts, slice->dur, &to)) {
		n->counts.clamped++;
		slice->dur = INT64_MAX - MAX(slice->ts, 0);
		to = INT64_MAX;
	}
	n->last_ns = MAX(n->last_ns, to);
	return true;
}

/* What few rows have. */
static uint32_t add_extra(struct nsys *n, const struct nsys_slice *slice)
{
	if (n->extra_count >= UINT32_MAX ||
	    NSYS_GROW(n, extras, extra_cap, n->extra_count + 1) != OW_OK)
		return 0;
	n->extras[n->extra_count] =
		(struct nsys_extra){ .bytes = slice->bytes, .chain = slice->chain };
	return (uint32_t)n->extra_count++;
}

static ow_status grow_lane(struct nsys *n, struct nsys_lane *lane)
{
	void *list = lane->list;

	if (n->slice_count >= UINT32_MAX - 1)
		return builder_fail(n->b, error_set(n->ctx->err, OW_E_LIMIT,
						    "%s: more than 2^32 events", n->ctx->in->name));
	if (!mem_grow(n->mem, &list, &lane->cap, (size_t)lane->count + 1, sizeof(*lane->list)))
		return nsys_no_memory(n);
	lane->list = list;
	return OW_OK;
}

ow_status nsys_add_slice(struct nsys *n, const struct nsys_slice *slice)
{
	struct nsys_lane *lane = &n->lanes[slice->lane];
	struct nsys_kept *kept;

	if (OW_UNLIKELY(!slice->lane || !slice->name))
		return builder_status(n->b); /* which could not be made */
	if (OW_UNLIKELY(lane->count == lane->cap))
		OW_TRY(grow_lane(n, lane));
	kept = &lane->list[lane->count];
	*kept = (struct nsys_kept){ .ts = slice->ts,
				    .dur = slice->dur,
				    .name = slice->name,
				    .correlation = slice->correlation,
				    .domain = slice->domain,
				    .category = slice->category,
				    .open = slice->open };
	if (slice->bytes || slice->chain)
		kept->extra = add_extra(n, slice);
	if (lane->count &&
	    (kept[-1].ts > kept->ts || (kept[-1].ts == kept->ts && kept[-1].dur < kept->dur)))
		lane->unsorted = true;
	lane->count++;
	n->slice_count++;
	return OW_OK;
}

/* Numbers are told apart by process, and kept as 32 bits. */
void nsys_take_correlation(struct nsys *n, struct nsys_slice *slice, int64_t process, int64_t id)
{
	struct nsys_process *p;

	if (!id)
		return;
	p = nsys_process(n, process);
	if (!p || id < 0 || id > UINT32_MAX) {
		n->counts.numbers++;
		return;
	}
	slice->correlation = (uint32_t)id;
	p->lowest = MIN(p->lowest, slice->correlation);
	p->highest = MAX(p->highest, slice->correlation);
	p->correlated = true;
}

void nsys_tally_add(struct nsys_tally *t, const struct nsys_slice *slice, int64_t epoch_ns)
{
	int64_t dur = slice->dur == TIME_UNKNOWN ? 0 : slice->dur;
	int64_t start = wrap_add(slice->ts, -epoch_ns);

	if (!t->rows++) {
		t->first_ns = start;
		t->last_ns = wrap_add(start, dur);
	}
	t->first_ns = MIN(t->first_ns, start);
	t->last_ns = MAX(t->last_ns, wrap_add(start, dur));
	t->total_ns = wrap_add(t->total_ns, dur);
}

/* ---- tables of calls ---- */

struct call_table {
	const char *table;
	enum nsys_category category;
	const char *name, *bytes; /* columns */
};

static const struct call_table call_tables[] = {
	{ "CUPTI_ACTIVITY_KIND_RUNTIME", NSYS_RUNTIME, "nameId", NULL },
	{ "OSRT_API", NSYS_OSRT, "nameId", NULL },
	{ "PROFILER_OVERHEAD", NSYS_OVERHEAD, "nameId", NULL },
	{ "MPI_P2P_EVENTS", NSYS_MPI, "textId", "size" },
	{ "MPI_COLLECTIVES_EVENTS", NSYS_MPI, "textId", "size" },
	{ "MPI_START_WAIT_EVENTS", NSYS_MPI, "textId", NULL },
	{ "MPI_OTHER_EVENTS", NSYS_MPI, "textId", NULL },
	{ "UCP_SUBMIT_EVENTS", NSYS_MPI, "textId", NULL },
	{ "UCP_EVENTS", NSYS_MPI, "textId", NULL },
	{ "NVSHMEM_EVENTS", NSYS_MPI, "textId", NULL },
	{ "CUDNN_EVENTS", NSYS_LIBRARY, "nameId", NULL },
	{ "CUBLAS_EVENTS", NSYS_LIBRARY, "nameId", NULL },
	{ "NVVIDEO_ENCODER_API", NSYS_LIBRARY, "nameId", NULL },
	{ "NVVIDEO_DECODER_API", NSYS_LIBRARY, "nameId", NULL },
	{ "CUPTI_ACTIVITY_KIND_OPENACC_DATA", NSYS_LIBRARY, "nameId", "bytes" },
	{ "CUPTI_ACTIVITY_KIND_OPENACC_LAUNCH", NSYS_LIBRARY, "nameId", NULL },
	{ "CUPTI_ACTIVITY_KIND_OPENACC_OTHER", NSYS_LIBRARY, "nameId", NULL },
	{ "OPENMP_EVENT_KIND_PARALLEL", NSYS_LIBRARY, "nameId", NULL },
	{ "OPENMP_EVENT_KIND_SYNC_REGION", NSYS_LIBRARY, "nameId", NULL },
	{ "OPENMP_EVENT_KIND_SYNC_REGION_WAIT", NSYS_LIBRARY, "nameId", NULL },
	{ "OPENMP_EVENT_KIND_TASK", NSYS_LIBRARY, "nameId", NULL },
	{ "OPENMP_EVENT_KIND_MASTER", NSYS_LIBRARY, "nameId", NULL },
	{ "OPENMP_EVENT_KIND_REDUCTION", NSYS_LIBRARY, "nameId", NULL },
	{ "OPENMP_EVENT_KIND_MUTEX_WAIT", NSYS_LIBRARY, "nameId", NULL },
	{ "OPENMP_EVENT_KIND_CRITICAL_SECTION", NSYS_LIBRARY, "nameId", NULL },
	{ "OPENMP_EVENT_KIND_WORKSHARE", NSYS_LIBRARY, "nameId", NULL },
	{ "OPENMP_EVENT_KIND_DISPATCH", NSYS_LIBRARY, "nameId", NULL },
	{ "VULKAN_API", NSYS_LIBRARY, "nameId", NULL },
	{ "OPENGL_API", NSYS_LIBRARY, "nameId", NULL },
	{ "DX12_API", NSYS_LIBRARY, "nameId", NULL },
};

enum {
	COLUMN_START,
	COLUMN_END,
	COLUMN_TID,
	COLUMN_NAME,
	COLUMN_CLASS,
	COLUMN_NUMBER,
	COLUMN_CHAIN,
	COLUMN_BYTES
};

/* Classes of events, in a column of the same name. */
enum { CLASS_RUNTIME = 0, CLASS_DRIVER = 1, CLASS_OSRT = 27, CLASS_BACKTRACE = 67 };

/* A call is recorded a second time when its call chain was taken: only the chain of that is new. */
static ow_status add_backtrace(struct nsys *n, const struct nsys_slice *slice)
{
	if (!slice->chain || !slice->lane)
		return builder_status(n->b);
	OW_TRY(NSYS_GROW(n, backtraces, backtrace_cap, n->backtrace_count + 1));
	n->backtraces[n->backtrace_count++] =
		(struct nsys_backtrace){ slice->lane, slice->correlation, slice->chain };
	return OW_OK;
}

static uint32_t chain_of(const struct sqlite_rows *rows)
{
	int64_t chain = sqlite_int(rows, COLUMN_CHAIN);

	return chain > 0 && chain <= UINT32_MAX ? (uint32_t)chain : 0;
}

static ow_status add_cuda_call(struct nsys *n, const struct sqlite_rows *rows,
			       struct nsys_slice *slice, int64_t tid)
{
	int64_t class = sqlite_int(rows, COLUMN_CLASS);
	struct nsys_name *name = &n->names[slice->name];

	nsys_tally_add(&n->calls, slice, n->epoch_ns);
	name->call_ns = wrap_add(name->call_ns, slice->dur == TIME_UNKNOWN ? 0 : slice->dur);
	name->call_count++;
	nsys_take_correlation(n, slice, nsys_process_of(tid), sqlite_int(rows, COLUMN_NUMBER));
	if (class == CLASS_BACKTRACE)
		return add_backtrace(n, slice);
	if (class == CLASS_DRIVER)
		slice->category = NSYS_DRIVER;
	return nsys_add_slice(n, slice);
}

static ow_status add_call(struct nsys *n, const struct sqlite_rows *rows,
			  const struct call_table *table)
{
	struct nsys_slice slice = { .category = (uint8_t)table->category };
	int64_t tid = sqlite_int(rows, COLUMN_TID);

	if (table->category == NSYS_OSRT && !sqlite_is_null(rows, COLUMN_CLASS) &&
	    sqlite_int(rows, COLUMN_CLASS) != CLASS_OSRT) {
		n->counts.markers++; /* of the profiler */
		return OW_OK;
	}
	if (!nsys_interval(n, rows, COLUMN_START, COLUMN_END, &slice))
		return OW_OK;
	slice.lane = nsys_thread_lane(
		n, table->category == NSYS_OVERHEAD ? LANE_OVERHEAD : LANE_CALLS, tid);
	slice.name = nsys_name(n, sqlite_int(rows, COLUMN_NAME));
	slice.chain = chain_of(rows);
	if (table->bytes)
		slice.bytes = MAX(sqlite_int(rows, COLUMN_BYTES), 0);
	if (table->category == NSYS_RUNTIME && slice.name)
		return add_cuda_call(n, rows, &slice, tid);
	return nsys_add_slice(n, &slice);
}

static ow_status read_call_table(struct nsys *n, const struct call_table *table)
{
	const char *const columns[] = { "start",       "end",
					"globalTid",   table->name,
					"eventClass",  "correlationId",
					"callchainId", table->bytes ? table->bytes : "no bytes" };
	struct sqlite_rows rows;
	ow_status status =
		sqlite_rows_open(&rows, &n->db, table->table, columns, ARRAY_COUNT(columns));

	while (status == OW_OK && sqlite_rows_next(&rows, &status))
		status = add_call(n, &rows, table);
	sqlite_rows_close(&rows);
	return status;
}

/* ---- processors ---- */

/* Per thread: since when it has been on a processor. */
struct on_cpu {
	int64_t *since; /* by lane; TIME_UNKNOWN: it is not */
	size_t cap;
};

static ow_status add_switch(struct nsys *n, struct on_cpu *on, const struct nsys_slice *row,
			    bool in)
{
	size_t old = on->cap;
	void *since = on->since;
	struct nsys_slice slice = *row;

	if (!row->lane)
		return builder_status(n->b);
	if (row->lane >= on->cap) {
		if (!mem_grow(n->mem, &since, &on->cap, row->lane + 1, sizeof(*on->since)))
			return nsys_no_memory(n);
		on->since = since;
		for (size_t i = old; i < on->cap; i++)
			on->since[i] = TIME_UNKNOWN;
	}
	if (in) {
		on->since[row->lane] = row->ts;
		return OW_OK;
	}
	if (on->since[row->lane] == TIME_UNKNOWN)
		return OW_OK; /* it ran when the recording began */
	slice.ts = on->since[row->lane];
	on->since[row->lane] = TIME_UNKNOWN;
	if (__builtin_sub_overflow(row->ts, slice.ts, &slice.dur) || slice.dur < 0)
		slice.dur = 0;
	return nsys_add_slice(n, &slice);
}

static ow_status read_switches(struct nsys *n)
{
	static const char *const columns[] = { "start", "globalTid", "isSchedIn" };
	uint32_t name = nsys_text(n, STR("on CPU"));
	struct on_cpu on = { 0 };
	struct sqlite_rows rows;
	ow_status status = sqlite_rows_open(&rows, &n->db, "SCHED_EVENTS", columns, 3);

	while (status == OW_OK && sqlite_rows_next(&rows, &status)) {
		struct nsys_slice slice = { .category = NSYS_CPU, .name = name };

		if (!nsys_interval(n, &rows, 0, -1, &slice))
			continue;
		slice.lane = nsys_thread_lane(n, LANE_CPU, sqlite_int(&rows, 1));
		status = add_switch(n, &on, &slice, sqlite_int(&rows, 2) != 0);
	}
	sqlite_rows_close(&rows);
	mem_free(n->mem, on.since, on.cap * sizeof(*on.since));
	return status;
}

/* ---- samples ---- */

static int32_t cpu_of(const struct sqlite_rows *rows, int column)
{
	int64_t cpu = sqlite_int(rows, column);

	return !sqlite_is_null(rows, column) && cpu >= 0 && cpu < INT32_MAX ? (int32_t)cpu + 1 : 0;
}

static ow_status read_samples(struct nsys *n)
{
	static const char *const columns[] = { "start", "globalTid", "id", "cpuCycles", "cpu" };
	struct sqlite_rows rows;
	ow_status status = sqlite_rows_open(&rows, &n->db, "COMPOSITE_EVENTS", columns, 5);

	while (status == OW_OK && sqlite_rows_next(&rows, &status)) {
		struct nsys_slice at = { 0 };
		int64_t id = sqlite_int(&rows, 2), weight = sqlite_int(&rows, 3);

		if (!nsys_interval(n, &rows, 0, -1, &at))
			continue;
		at.lane = nsys_thread_lane(n, LANE_CALLS, sqlite_int(&rows, 1));
		if (!at.lane)
			status = builder_status(n->b);
		if (status != OW_OK ||
		    NSYS_GROW(n, samples, sample_cap, n->sample_count + 1) != OW_OK)
			break;
		n->lanes[at.lane].used = true;
		n->samples[n->sample_count++] = (struct nsys_sample){
			.ts = at.ts,
			.weight = weight > 0 ? weight : 1,
			.cpu = cpu_of(&rows, 4),
			.lane = at.lane,
			.chain = id > 0 && id <= UINT32_MAX ? (uint32_t)id : 0,
		};
	}
	sqlite_rows_close(&rows);
	return status == OW_OK ? builder_status(n->b) : status;
}

ow_status nsys_read_calls(struct nsys *n)
{
	for (size_t i = 0; i < ARRAY_COUNT(call_tables); i++)
		OW_TRY(read_call_table(n, &call_tables[i]));
	OW_TRY(read_switches(n));
	return read_samples(n);
}
