/*
 * nsys_values.c: numbers over time: what the device's own counters said, and how much of its memory was in use.
 */
#include "import/nsys_int.h"

static ow_status add_value(struct nsys *n, const struct nsys_value *value)
{
	if (!value->lane || !value->name || !value->series)
		return builder_status(n->b);
	OW_TRY(NSYS_GROW(n, values, value_cap, n->value_count + 1));
	n->lanes[value->lane].used = true;
	n->values[n->value_count++] = *value;
	return OW_OK;
}

/* ---- counters of the device ---- */

struct metric {
	int64_t type, number;
	uint32_t name;
};

struct metrics {
	struct metric *list; /* [0] is unused */
	size_t count, cap;
	struct map map;
};

static uint32_t find_metric(const struct metrics *m, int64_t type, int64_t number)
{
	uint64_t hash = map_hash_u64((uint64_t)type, (uint64_t)number);

	for (struct map_iter it = map_find(&m->map, hash); it.value; it = map_next(&m->map, it))
		if (m->list[it.value].type == type && m->list[it.value].number == number)
			return it.value;
	return 0;
}

static ow_status add_metric(struct nsys *n, struct metrics *m, const struct metric *metric)
{
	void *list = m->list;

	if (find_metric(m, metric->type, metric->number))
		return OW_OK;
	if (!mem_grow(n->mem, &list, &m->cap, m->count + 1, sizeof(*m->list)))
		return nsys_no_memory(n);
	m->list = list;
	m->list[m->count] = *metric;
	if (!map_add(&m->map, map_hash_u64((uint64_t)metric->type, (uint64_t)metric->number),
		     (uint32_t)m->count))
		return nsys_no_memory(n);
	m->count++;
	return OW_OK;
}

static ow_status read_metric_names(struct nsys *n, struct metrics *m)
{
	static const char *const columns[] = { "typeId", "metricId", "metricName" };
	struct sqlite_rows rows;
	ow_status status = sqlite_rows_open(&rows, &n->db, "TARGET_INFO_GPU_METRICS", columns, 3);

	while (status == OW_OK && sqlite_rows_next(&rows, &status))
		status = add_metric(n, m,
				    &(struct metric){ sqlite_int(&rows, 0), sqlite_int(&rows, 1),
						      nsys_text(n, sqlite_text(&rows, 2)) });
	sqlite_rows_close(&rows);
	return status;
}

/* The number of the device is part of that of the type. */
static ow_status read_metrics(struct nsys *n, struct metrics *m)
{
	static const char *const columns[] = { "timestamp", "typeId", "metricId", "value" };
	struct sqlite_rows rows;
	ow_status status = sqlite_rows_open(&rows, &n->db, "GPU_METRICS", columns, 4);

	while (status == OW_OK && sqlite_rows_next(&rows, &status)) {
		struct nsys_slice at = { 0 };
		int64_t type = sqlite_int(&rows, 1);
		uint32_t metric = find_metric(m, type, sqlite_int(&rows, 2));
		struct nsys_lane lane = { .kind = LANE_VALUES, .device = type & 0xff };

		if (!metric) {
			n->counts.no_text++;
			continue;
		}
		if (!nsys_interval(n, &rows, 0, -1, &at))
			continue;
		status = add_value(n, &(struct nsys_value){ .ts = at.ts,
							    .value = sqlite_real(&rows, 3),
							    .lane = nsys_lane(n, &lane),
							    .name = m->list[metric].name,
							    .series = m->list[metric].name });
	}
	sqlite_rows_close(&rows);
	return status;
}

static ow_status read_device_counters(struct nsys *n)
{
	struct metrics m = { .count = 1 };
	ow_status status;

	map_init(&m.map, n->mem);
	status = read_metric_names(n, &m);
	if (status == OW_OK)
		status = read_metrics(n, &m);
	map_release(&m.map);
	mem_free(n->mem, m.list, m.cap * sizeof(*m.list));
	return status;
}

/* ---- memory ---- */

enum { MEMORY_ALLOCATE, MEMORY_FREE };
enum { SEVERITY_WARNING = 2, SEVERITY_ERROR = 3 };

static const char *memory_kind(int64_t kind)
{
	static const char *const kinds[] = { "pageable",       "pinned",  "device",
					     "array",	       "managed", "device static",
					     "managed static", "unknown" };

	return kinds[kind >= 0 && kind < (int64_t)ARRAY_COUNT(kinds) ? kind : 7];
}

static void add_change(struct nsys *n, const struct sqlite_rows *rows)
{
	struct nsys_slice at = { 0 };
	int64_t bytes = MAX(sqlite_int(rows, 3), 0);
	bool freed = sqlite_int(rows, 5) == MEMORY_FREE;
	char device[32];

	if (!nsys_interval(n, rows, 0, -1, &at))
		return;
	snprintf(device, sizeof(device), "GPU %" PRId64,
		 nsys_gpu(n, sqlite_int(rows, 1), sqlite_int(rows, 2)));
	builder_add_heap(n->b, &(struct heap_row){ .ts_ns = at.ts,
						   .size = freed ? -bytes : bytes,
						   .device = builder_device(n->b, str_from(device)),
						   .allocator = builder_cstr(
							   n->b, memory_kind(sqlite_int(rows, 4))),
						   .source = n->b->source,
						   .kind = freed ? HEAP_FREE : HEAP_ALLOC,
						   .address = (uint64_t)sqlite_int(rows, 6) });
}

static ow_status read_memory(struct nsys *n)
{
	static const char *const columns[] = { "start",	 "globalPid", "deviceId",
					       "bytes",	 "memKind",   "memoryOperationType",
					       "address" };
	struct sqlite_rows rows;
	ow_status status = sqlite_rows_open(&rows, &n->db, "CUDA_GPU_MEMORY_USAGE_EVENTS", columns,
					    ARRAY_COUNT(columns));

	while (status == OW_OK && sqlite_rows_next(&rows, &status)) {
		add_change(n, &rows);
		status = builder_status(n->b);
	}
	sqlite_rows_close(&rows);
	return status;
}

/* What the profiler has to say about its own recording: how much, not what, which may have paths in it. */
static ow_status count_diagnostics(struct nsys *n)
{
	static const char *const columns[] = { "severity" };
	struct sqlite_rows rows;
	ow_status status = sqlite_rows_open(&rows, &n->db, "DIAGNOSTIC_EVENT", columns, 1);

	while (status == OW_OK && sqlite_rows_next(&rows, &status)) {
		int64_t severity = sqlite_int(&rows, 0);

		n->counts.warnings += severity == SEVERITY_WARNING;
		n->counts.errors += severity == SEVERITY_ERROR;
	}
	sqlite_rows_close(&rows);
	return status;
}

ow_status nsys_read_values(struct nsys *n)
{
	OW_TRY(count_diagnostics(n));
	OW_TRY(read_device_counters(n));
	return read_memory(n);
}
