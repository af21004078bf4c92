/*
 * nsys_host.c: reads the tables of a Nsight Systems export about threads: calls of CUDA, the operating system, MPI,
 * cuDNN and other libraries, when threads ran on a processor, where they were sampled, and the ranges and marks that
 * the program itself wrote with NVTX. It also reads names of threads and processes, but only of those that other rows
 * refer to, because the tables list every process of the machine. Called by import_nsys.c; the results go to
 * nsys_store.c.
 */
#include "import/nsys/nsys_store.h"

#include "base/vec.h"

struct call_table {
	const char *table;
	enum nsys_category category;
	const char *name, *bytes; /* names of columns */
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

enum { CALL_START, CALL_END, CALL_TID, CALL_NAME, CALL_CLASS, CALL_NUMBER, CALL_CHAIN, CALL_BYTES };

/* Values of the column eventClass. */
enum {
	EVENT_CLASS_RUNTIME = 0,
	EVENT_CLASS_DRIVER = 1,
	EVENT_CLASS_OSRT = 27,
	EVENT_CLASS_BACKTRACE = 67
};

static ow_status add_cuda_call(struct nsys *n, const struct sqlite_rows *rows,
			       struct nsys_slice *slice, int64_t tid)
{
	int64_t class = sqlite_int(rows, CALL_CLASS);

	nsys_tally_call(n, slice);
	nsys_correlate(n, slice, nsys_process_of(tid), sqlite_int(rows, CALL_NUMBER));
	/* The profiler writes a second row for a call when it records its call chain: only the chain is new. */
	if (class == EVENT_CLASS_BACKTRACE)
		return nsys_add_backtrace(n, slice);
	if (class == EVENT_CLASS_DRIVER)
		slice->category = NSYS_DRIVER;
	return nsys_add_slice(n, slice);
}

static ow_status add_call(struct nsys *n, const struct sqlite_rows *rows,
			  const struct call_table *table)
{
	struct nsys_slice slice = { .category = (uint8_t)table->category };
	int64_t tid = sqlite_int(rows, CALL_TID), chain = sqlite_int(rows, CALL_CHAIN);

	if (table->category == NSYS_OSRT && !sqlite_is_null(rows, CALL_CLASS) &&
	    sqlite_int(rows, CALL_CLASS) != EVENT_CLASS_OSRT)
		return OW_OK; /* an internal marker of the profiler */
	if (!nsys_interval(n, rows, CALL_START, CALL_END, &slice))
		return OW_OK;
	slice.lane = nsys_thread_lane(
		n, table->category == NSYS_OVERHEAD ? LANE_OVERHEAD : LANE_CALLS, tid);
	slice.name = nsys_name(n, sqlite_int(rows, CALL_NAME));
	slice.chain = chain > 0 && chain <= UINT32_MAX ? (uint32_t)chain : 0;
	if (table->bytes)
		slice.bytes = MAX(sqlite_int(rows, CALL_BYTES), 0);
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

/* For each thread, the time since which it runs on a processor. */
struct on_cpu {
	int64_t *since; /* indexed by lane; TIME_UNKNOWN: the thread does not run */
	size_t cap;
};

static ow_status add_switch(struct nsys *n, struct on_cpu *on, const struct nsys_slice *row,
			    bool in)
{
	size_t old = on->cap;
	struct nsys_slice slice = *row;

	if (!row->lane)
		return builder_status(n->b);
	if (row->lane >= on->cap) {
		if (!vec_reserve(n->mem, on->since, on->cap, row->lane + 1))
			return import_no_memory(n->ctx);
		for (size_t i = old; i < on->cap; i++)
			on->since[i] = TIME_UNKNOWN;
	}
	if (in) {
		on->since[row->lane] = row->ts;
		return OW_OK;
	}
	if (on->since[row->lane] == TIME_UNKNOWN)
		return OW_OK; /* the thread was already running when the recording began */
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

static ow_status add_sample(struct nsys *n, const struct sqlite_rows *rows)
{
	int64_t id = sqlite_int(rows, 2), weight = sqlite_int(rows, 3), cpu = sqlite_int(rows, 4);
	struct nsys_slice at = { 0 };

	if (!nsys_interval(n, rows, 0, -1, &at))
		return OW_OK;
	return nsys_add_sample(
		n, &(struct nsys_sample){
			   .ts = at.ts,
			   .weight = weight > 0 ? weight : 1,
			   .cpu = !sqlite_is_null(rows, 4) && cpu >= 0 && cpu < INT32_MAX
					  ? (int32_t)cpu + 1
					  : 0,
			   .lane = nsys_thread_lane(n, LANE_CALLS, sqlite_int(rows, 1)),
			   .chain = id > 0 && id <= UINT32_MAX ? (uint32_t)id : 0,
		   });
}

/* Values of the column eventType. NVTX_TEXT_* come from text files that the profiler was given. */
enum {
	NVTX_MARK = 34,
	NVTX_PUSH = 35, /* a push without its pop */
	NVTX_POP = 36,
	NVTX_START = 37,
	NVTX_END = 38,
	NVTX_THREAD_NAME = 39,
	NVTX_PUSH_POP = 59,
	NVTX_START_END = 60,
	NVTX_TEXT_FIRST = 64,
	NVTX_TEXT_MARK = 69,
	NVTX_TEXT_PUSH_POP = 70,
	NVTX_TEXT_START_END = 71,
	NVTX_DOMAIN = 75
};

enum { RANGE_START, RANGE_END, RANGE_TYPE, RANGE_TEXT, RANGE_TEXT_ID, RANGE_TID, RANGE_DOMAIN };

static uint32_t range_text(struct nsys *n, const struct sqlite_rows *rows)
{
	if (!sqlite_is_null(rows, RANGE_TEXT))
		return nsys_text(n, sqlite_text(rows, RANGE_TEXT));
	if (!sqlite_is_null(rows, RANGE_TEXT_ID))
		return nsys_name(n, sqlite_int(rows, RANGE_TEXT_ID));
	nsys_problem(n, NSYS_NO_TEXT);
	return nsys_text(n, STR("(no text)"));
}

static ow_status name_domain(struct nsys *n, const struct sqlite_rows *rows, int64_t tid)
{
	uint16_t domain = nsys_domain(n, nsys_process_of(tid), sqlite_int(rows, RANGE_DOMAIN));
	uint32_t text = range_text(n, rows);

	if (domain)
		n->domains[domain].text = text;
	return builder_status(n->b);
}

static ow_status add_range(struct nsys *n, const struct sqlite_rows *rows, int64_t type,
			   int64_t tid)
{
	struct nsys_slice slice = { .category = NSYS_RANGE };
	bool anywhere = type == NVTX_START_END || type == NVTX_TEXT_START_END;

	if (!nsys_interval(n, rows, RANGE_START, RANGE_END, &slice))
		return OW_OK;
	slice.lane = anywhere ? nsys_lane(n, &(struct nsys_lane){ .kind = LANE_RANGES,
								  .process = nsys_process_of(tid) })
			      : nsys_thread_lane(n, LANE_CALLS, tid);
	slice.name = range_text(n, rows);
	slice.domain = nsys_domain(n, nsys_process_of(tid), sqlite_int(rows, RANGE_DOMAIN));
	if (type == NVTX_MARK || type == NVTX_TEXT_MARK) {
		slice.dur = TIME_UNKNOWN;
	} else if (slice.dur == TIME_UNKNOWN) {
		slice.open = true;
		nsys_problem(n, NSYS_OPEN);
	}
	return nsys_add_slice(n, &slice);
}

static ow_status add_nvtx_event(struct nsys *n, const struct sqlite_rows *rows)
{
	int64_t type = sqlite_int(rows, RANGE_TYPE), tid = sqlite_int(rows, RANGE_TID);

	n->ranges++;
	n->ranges_with_end += !sqlite_is_null(rows, RANGE_END);
	if (type >= 0 && type < (int64_t)ARRAY_COUNT(n->range_types))
		n->range_types[type]++;
	switch (type) {
	case NVTX_PUSH_POP:
	case NVTX_START_END:
	case NVTX_TEXT_PUSH_POP:
	case NVTX_TEXT_START_END:
	case NVTX_MARK:
	case NVTX_TEXT_MARK:
		return add_range(n, rows, type, tid);
	case NVTX_PUSH:
	case NVTX_POP:
	case NVTX_START:
	case NVTX_END:
		nsys_problem(n, NSYS_UNMATCHED);
		return OW_OK;
	case NVTX_THREAD_NAME:
		return nsys_name_lane(n, nsys_thread_lane(n, LANE_CALLS, tid), range_text(n, rows),
				      -1);
	case NVTX_DOMAIN:
		return name_domain(n, rows, tid);
	default:
		return OW_OK; /* events that name categories, devices, streams */
	}
}

static ow_status add_thread_name(struct nsys *n, const struct sqlite_rows *rows)
{
	static const uint8_t kinds[] = { LANE_CALLS, LANE_OVERHEAD, LANE_CPU };
	int64_t tid = sqlite_int(rows, 0);

	for (size_t i = 0; i < ARRAY_COUNT(kinds); i++) {
		uint32_t lane = nsys_find_thread(n, kinds[i], tid);

		if (lane)
			OW_TRY(nsys_name_lane(n, lane, nsys_name(n, sqlite_int(rows, 1)),
					      sqlite_int(rows, 2)));
	}
	return OW_OK;
}

static ow_status add_process_name(struct nsys *n, const struct sqlite_rows *rows)
{
	struct nsys_process *p = nsys_find_process(n, sqlite_int(rows, 0));

	if (p)
		p->name = nsys_utf8(n, sqlite_text(rows, 1));
	return builder_status(n->b);
}

static void add_rank(struct nsys *n, int64_t rank)
{
	if (rank < 0 || rank > INT32_MAX || n->rank == rank)
		return;
	n->rank = n->rank == NSYS_NO_RANK ? rank : NSYS_MANY_RANKS;
}

static ow_status add_mpi_rank(struct nsys *n, const struct sqlite_rows *rows)
{
	add_rank(n, sqlite_int(rows, 0));
	return OW_OK;
}

/* Finds MPI ranks in names of threads, "MPI Rank 3", for older exports without a table of ranks. */
void nsys_ranks_from_names(struct nsys *n)
{
	const struct str prefix = STR("MPI Rank ");

	for (size_t i = 1; i < n->lane_count; i++) {
		struct str name = model_str(n->b->m, nsys_string(n, n->lanes[i].name));
		int64_t rank;

		if (n->lanes[i].kind == LANE_CALLS && str_starts(name, prefix) &&
		    str_to_i64(str_skip(name, prefix.len), &rank))
			add_rank(n, rank);
	}
}

ow_status nsys_read_owners(struct nsys *n)
{
	static const char *const threads[] = { "globalTid", "nameId", "priority" };
	static const char *const processes[] = { "globalPid", "name" };
	static const char *const ranks[] = { "rank" };

	OW_TRY(nsys_each_row(n, "ThreadNames", threads, 3, add_thread_name));
	OW_TRY(nsys_each_row(n, "PROCESSES", processes, 2, add_process_name));
	return nsys_each_row(n, "MPI_RANKS", ranks, 1, add_mpi_rank);
}

ow_status nsys_read_host(struct nsys *n)
{
	static const char *const samples[] = { "start", "globalTid", "id", "cpuCycles", "cpu" };

	for (size_t i = 0; i < ARRAY_COUNT(call_tables); i++)
		OW_TRY(read_call_table(n, &call_tables[i]));
	OW_TRY(read_switches(n));
	return nsys_each_row(n, "COMPOSITE_EVENTS", samples, 5, add_sample);
}

ow_status nsys_read_ranges(struct nsys *n)
{
	static const char *const columns[] = { "start",	 "end",	      "eventType", "text",
					       "textId", "globalTid", "domainId" };

	return nsys_each_row(n, "NVTX_EVENTS", columns, ARRAY_COUNT(columns), add_nvtx_event);
}
