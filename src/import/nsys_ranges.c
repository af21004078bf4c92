/*
 * nsys_ranges.c: what the program itself says, through NVTX: ranges, marks, names of threads and domains; and who it
 * is, as the tables of processes, threads and MPI ranks tell. Of these tables only what some other row refers to is
 * read: they list everything that ran on the machine.
 */
#include "import/nsys_int.h"

/* Types of events; those of files with text that the profiler took in are alike. */
enum {
	TYPE_MARK = 34,
	TYPE_PUSH = 35, /* without the pop */
	TYPE_POP = 36,
	TYPE_START = 37,
	TYPE_END = 38,
	TYPE_THREAD_NAME = 39,
	TYPE_PUSH_POP = 59,
	TYPE_START_END = 60,
	TYPE_TEXT_FIRST = 64,
	TYPE_TEXT_MARK = 69,
	TYPE_TEXT_PUSH_POP = 70,
	TYPE_TEXT_START_END = 71,
	TYPE_DOMAIN = 75
};

enum {
	COLUMN_START,
	COLUMN_END,
	COLUMN_TYPE,
	COLUMN_TEXT,
	COLUMN_TEXT_ID,
	COLUMN_TID,
	COLUMN_DOMAIN
};

static uint32_t text_of(struct nsys *n, const struct sqlite_rows *rows)
{
	if (!sqlite_is_null(rows, COLUMN_TEXT))
		return nsys_text(n, sqlite_text(rows, COLUMN_TEXT));
	if (!sqlite_is_null(rows, COLUMN_TEXT_ID))
		return nsys_name(n, sqlite_int(rows, COLUMN_TEXT_ID));
	n->counts.no_text++;
	return nsys_text(n, STR("(no text)"));
}

/* What the program calls a thread goes before what the system does. */
static ow_status name_lane(struct nsys *n, uint32_t lane, uint32_t name, int64_t rank)
{
	if (!lane || !name)
		return builder_status(n->b);
	if (rank < n->lanes[lane].rank) {
		n->lanes[lane].rank = rank;
		n->lanes[lane].name = name;
	}
	return OW_OK;
}

static ow_status name_domain(struct nsys *n, const struct sqlite_rows *rows, int64_t tid)
{
	uint16_t domain = nsys_domain(n, nsys_process_of(tid), sqlite_int(rows, COLUMN_DOMAIN));
	uint32_t text = text_of(n, rows);

	if (domain)
		n->domains[domain].text = text;
	return builder_status(n->b);
}

static ow_status add_range(struct nsys *n, const struct sqlite_rows *rows, int64_t type,
			   int64_t tid)
{
	struct nsys_slice slice = { .category = NSYS_RANGE };
	bool anywhere = type == TYPE_START_END || type == TYPE_TEXT_START_END;

	if (!nsys_interval(n, rows, COLUMN_START, COLUMN_END, &slice))
		return OW_OK;
	slice.lane = anywhere ? nsys_lane(n, &(struct nsys_lane){ .kind = LANE_RANGES,
								  .process = nsys_process_of(tid) })
			      : nsys_thread_lane(n, LANE_CALLS, tid);
	slice.name = text_of(n, rows);
	slice.domain = nsys_domain(n, nsys_process_of(tid), sqlite_int(rows, COLUMN_DOMAIN));
	if (type == TYPE_MARK || type == TYPE_TEXT_MARK) {
		slice.dur = TIME_UNKNOWN;
	} else if (slice.dur == TIME_UNKNOWN) {
		slice.open = true;
		n->counts.open++;
	}
	return nsys_add_slice(n, &slice);
}

static ow_status add_event(struct nsys *n, const struct sqlite_rows *rows)
{
	int64_t type = sqlite_int(rows, COLUMN_TYPE), tid = sqlite_int(rows, COLUMN_TID);

	n->ranges++;
	n->ranges_with_end += !sqlite_is_null(rows, COLUMN_END);
	if (type >= 0 && type < (int64_t)ARRAY_COUNT(n->range_types))
		n->range_types[type]++;
	switch (type) {
	case TYPE_PUSH_POP:
	case TYPE_START_END:
	case TYPE_TEXT_PUSH_POP:
	case TYPE_TEXT_START_END:
	case TYPE_MARK:
	case TYPE_TEXT_MARK:
		return add_range(n, rows, type, tid);
	case TYPE_PUSH:
	case TYPE_POP:
	case TYPE_START:
	case TYPE_END:
		n->counts.unmatched++;
		return OW_OK;
	case TYPE_THREAD_NAME:
		return name_lane(n, nsys_thread_lane(n, LANE_CALLS, tid), text_of(n, rows), -1);
	case TYPE_DOMAIN:
		return name_domain(n, rows, tid);
	default:
		return OW_OK; /* names of categories, devices, streams */
	}
}

static ow_status read_events(struct nsys *n)
{
	static const char *const columns[] = { "start",	 "end",	      "eventType", "text",
					       "textId", "globalTid", "domainId" };
	struct sqlite_rows rows;
	ow_status status =
		sqlite_rows_open(&rows, &n->db, "NVTX_EVENTS", columns, ARRAY_COUNT(columns));

	while (status == OW_OK && sqlite_rows_next(&rows, &status))
		status = add_event(n, &rows);
	sqlite_rows_close(&rows);
	return status;
}

/* ---- who ---- */

static ow_status read_thread_names(struct nsys *n)
{
	static const char *const columns[] = { "globalTid", "nameId", "priority" };
	static const uint8_t kinds[] = { LANE_CALLS, LANE_OVERHEAD, LANE_CPU };
	struct sqlite_rows rows;
	ow_status status = sqlite_rows_open(&rows, &n->db, "ThreadNames", columns, 3);

	while (status == OW_OK && sqlite_rows_next(&rows, &status)) {
		int64_t tid = sqlite_int(&rows, 0);

		for (size_t i = 0; i < ARRAY_COUNT(kinds) && status == OW_OK; i++) {
			uint32_t lane = nsys_find_thread(n, kinds[i], tid);

			if (lane)
				status = name_lane(n, lane, nsys_name(n, sqlite_int(&rows, 1)),
						   sqlite_int(&rows, 2));
		}
	}
	sqlite_rows_close(&rows);
	return status;
}

static ow_status read_processes(struct nsys *n)
{
	static const char *const columns[] = { "globalPid", "name" };
	struct sqlite_rows rows;
	ow_status status = sqlite_rows_open(&rows, &n->db, "PROCESSES", columns, 2);

	while (status == OW_OK && sqlite_rows_next(&rows, &status)) {
		struct nsys_process *p = nsys_find_process(n, sqlite_int(&rows, 0));

		if (!p)
			continue;
		p->name = nsys_utf8(n, sqlite_text(&rows, 1));
		status = builder_status(n->b);
	}
	sqlite_rows_close(&rows);
	return status;
}

static void take_rank(struct nsys *n, int64_t rank)
{
	if (rank < 0 || rank > INT32_MAX || n->rank == rank)
		return;
	n->rank = n->rank == NSYS_NO_RANK ? rank : NSYS_MANY_RANKS;
}

static ow_status read_ranks(struct nsys *n)
{
	static const char *const columns[] = { "rank" };
	struct sqlite_rows rows;
	ow_status status = sqlite_rows_open(&rows, &n->db, "MPI_RANKS", columns, 1);

	while (status == OW_OK && sqlite_rows_next(&rows, &status))
		take_rank(n, sqlite_int(&rows, 0));
	sqlite_rows_close(&rows);
	return status;
}

/* Older exports have no table of ranks, but threads that are called so. */
void nsys_ranks_from_names(struct nsys *n)
{
	const struct str prefix = STR("MPI Rank ");

	for (size_t i = 1; i < n->lane_count; i++) {
		struct str name = model_str(n->b->m, nsys_string(n, n->lanes[i].name));
		int64_t rank;

		if (n->lanes[i].kind == LANE_CALLS && str_starts(name, prefix) &&
		    str_to_i64(str_skip(name, prefix.len), &rank))
			take_rank(n, rank);
	}
}

ow_status nsys_read_ranges(struct nsys *n)
{
	return read_events(n);
}

ow_status nsys_read_owners(struct nsys *n)
{
	OW_TRY(read_thread_names(n));
	OW_TRY(read_processes(n));
	return read_ranks(n);
}
