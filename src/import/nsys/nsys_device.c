/*
 * nsys_device.c: reads the tables of a Nsight Systems export about the work of GPUs: kernels, whole CUDA graphs,
 * copies, memsets and waits of streams, also their counters and the use of their memory. Copies and waits get the names
 * that PyTorch's profiler gives them, so that the same work has the same name in both. Called by import_nsys.c; the
 * results go to nsys_store.c.
 */
#include "import/nsys/nsys_store.h"

enum {
	COLUMN_START,
	COLUMN_END,
	COLUMN_DEVICE,
	COLUMN_CONTEXT,
	COLUMN_STREAM,
	COLUMN_NUMBER,
	COLUMN_PROCESS,
	COLUMN_FIRST, /* the columns of one table begin here */
	COLUMN_SECOND,
	COLUMN_THIRD,
	COLUMN_FOURTH
};

#define COMMON_COLUMNS                                                                             \
	"start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid"

#define ALL_STREAMS ((int64_t)UINT32_MAX)

#define GPUS_MAX 65536 /* limit of processes times devices: more indicates damage */

static ow_status add_gpu(struct nsys *n, const struct nsys_gpu *gpu)
{
	if (n->gpu_count >= GPUS_MAX)
		return OW_OK;
	OW_TRY(NSYS_GROW(n, gpus, gpu_cap, n->gpu_count + 1));
	n->gpus[n->gpu_count++] = *gpu;
	return OW_OK;
}

static ow_status add_gpu_of_process(struct nsys *n, const struct sqlite_rows *rows)
{
	return add_gpu(n, &(struct nsys_gpu){ .gpu = sqlite_int(rows, 0),
					      .number = sqlite_int(rows, 1),
					      .pid = sqlite_int(rows, 2) });
}

static ow_status add_gpu_of_any(struct nsys *n, const struct sqlite_rows *rows)
{
	struct nsys_gpu gpu = { .gpu = sqlite_int(rows, 0), .pid = -1 };

	return sqlite_get_int(rows, 1, &gpu.number) ? add_gpu(n, &gpu) : OW_OK;
}

static int by_owner(const void *a, const void *b)
{
	const struct nsys_gpu *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

/* Reads which GPU each CUDA device number means: each process numbers devices in its own way, and newer exports have
 * a table of it. */
static ow_status read_gpus(struct nsys *n)
{
	static const char *const by_process[] = { "gpuId", "cudaId", "pid" };
	static const char *const by_device[] = { "id", "cuDevice" };

	OW_TRY(nsys_each_row(n, "TARGET_INFO_CUDA_DEVICE", by_process, 3, add_gpu_of_process));
	OW_TRY(nsys_each_row(n, "TARGET_INFO_GPU", by_device, 2, add_gpu_of_any));
	if (n->gpu_count)
		qsort(n->gpus, n->gpu_count, sizeof(*n->gpus), by_owner);
	return OW_OK;
}

/* The GPU that a process means by a device number. Neighbouring rows mostly mean the same one. */
static int64_t gpu_of(struct nsys *n, int64_t process, int64_t number)
{
	struct nsys_gpu key = { .pid = nsys_pid(process), .number = number }, *found = NULL;

	if (number == n->last_number && process == n->last_number_of)
		return n->last_gpu;
	if (n->gpu_count)
		found = bsearch(&key, n->gpus, n->gpu_count, sizeof(key), by_owner);
	key.pid = -1;
	if (n->gpu_count && !found)
		found = bsearch(&key, n->gpus, n->gpu_count, sizeof(key), by_owner);
	n->last_gpu = found ? found->gpu : number;
	n->last_number = number;
	n->last_number_of = process;
	return n->last_gpu;
}

/* Reads the columns that all tables have. Returns false for a row without a start. */
static bool read_common(struct nsys *n, const struct sqlite_rows *rows, enum nsys_lane_kind kind,
			struct nsys_slice *slice)
{
	struct nsys_lane key = { .kind = (uint8_t)kind,
				 .process = sqlite_int(rows, COLUMN_PROCESS) };

	key.device = gpu_of(n, key.process, sqlite_int(rows, COLUMN_DEVICE));
	if (!nsys_interval(n, rows, COLUMN_START, COLUMN_END, slice))
		return false;
	if (kind != LANE_UNIFIED) {
		key.context = sqlite_int(rows, COLUMN_CONTEXT);
		key.number = sqlite_int(rows, COLUMN_STREAM);
	}
	slice->lane = nsys_lane(n, &key);
	nsys_correlate(n, slice, key.process, sqlite_int(rows, COLUMN_NUMBER));
	return true;
}

static ow_status add_kernel(struct nsys *n, const struct sqlite_rows *rows)
{
	struct nsys_slice slice = { .category = NSYS_KERNEL };
	uint32_t base = 0;
	int64_t id;

	if (!read_common(n, rows, LANE_STREAM, &slice))
		return OW_OK;
	if (sqlite_get_int(rows, COLUMN_SECOND, &id))
		base = nsys_name(n, id);
	slice.name = sqlite_get_int(rows, COLUMN_FIRST, &id) ? nsys_name(n, id) : base;
	if (!slice.name)
		slice.name = nsys_text(n, STR("kernel"));
	nsys_tally_kernel(n, &slice, base);
	return nsys_add_slice(n, &slice);
}

/* Adds a CUDA graph, which Nsight Systems by default records as a whole, without its kernels. */
static ow_status add_graph(struct nsys *n, const struct sqlite_rows *rows)
{
	struct nsys_slice slice = { .category = NSYS_GRAPH };
	char name[48];

	if (!read_common(n, rows, LANE_STREAM, &slice))
		return OW_OK;
	snprintf(name, sizeof(name), "CUDA graph %" PRId64, sqlite_int(rows, COLUMN_FIRST));
	slice.name = nsys_text(n, str_from(name));
	return nsys_add_slice(n, &slice);
}

/* Names for the values of copyKind; those from 11 on are pages of unified memory. */
static const char *const copy_kinds[] = { "",	  "HtoD", "DtoH", "HtoA", "AtoH", "AtoA", "AtoD",
					  "DtoA", "DtoD", "HtoH", "PtoP", "HtoD", "DtoH", "DtoD" };
#define FIRST_UNIFIED 11

static const char *const memory_kinds[] = {
	"Pageable", "Pinned",	     "Device",	       "Array",
	"Managed",  "Device Static", "Managed Static", "Unknown"
};

static const char *memory_kind(const struct sqlite_rows *rows, int column)
{
	uint64_t kind = (uint64_t)sqlite_int(rows, column);

	if (sqlite_is_null(rows, column) || kind >= ARRAY_COUNT(memory_kinds))
		return "Unknown";
	return memory_kinds[kind];
}

static void name_copy(const struct sqlite_rows *rows, int64_t kind, char *name, size_t size)
{
	const char *way =
		kind >= 0 && kind < (int64_t)ARRAY_COUNT(copy_kinds) ? copy_kinds[kind] : "";

	if (kind >= FIRST_UNIFIED)
		snprintf(name, size, "Memcpy %s (Unified Memory)", way);
	else
		snprintf(name, size, "Memcpy%s%s (%s -> %s)", *way ? " " : "", way,
			 memory_kind(rows, COLUMN_THIRD), memory_kind(rows, COLUMN_FOURTH));
}

static ow_status add_copy(struct nsys *n, const struct sqlite_rows *rows)
{
	struct nsys_slice slice = { .category = NSYS_COPY };
	int64_t kind = sqlite_int(rows, COLUMN_SECOND);
	char name[80];

	if (!read_common(n, rows, kind >= FIRST_UNIFIED ? LANE_UNIFIED : LANE_STREAM, &slice))
		return OW_OK;
	name_copy(rows, kind, name, sizeof(name));
	slice.name = nsys_text(n, str_from(name));
	slice.bytes = MAX(sqlite_int(rows, COLUMN_FIRST), 0);
	return nsys_add_slice(n, &slice);
}

static ow_status add_memset(struct nsys *n, const struct sqlite_rows *rows)
{
	struct nsys_slice slice = { .category = NSYS_SET };
	char name[48];

	if (!read_common(n, rows, LANE_STREAM, &slice))
		return OW_OK;
	snprintf(name, sizeof(name), "Memset (%s)", memory_kind(rows, COLUMN_SECOND));
	slice.name = nsys_text(n, str_from(name));
	slice.bytes = MAX(sqlite_int(rows, COLUMN_FIRST), 0);
	return nsys_add_slice(n, &slice);
}

static const char *wait_name(int64_t type)
{
	static const char *const names[] = { "Sync", "Event Sync", "Stream Wait Event",
					     "Stream Sync", "Context Sync" };

	return names[type > 0 && type < (int64_t)ARRAY_COUNT(names) ? type : 0];
}

/* Adds a wait of a stream. It repeats a call of the host, so it gets no correlation number. */
static ow_status add_wait(struct nsys *n, const struct sqlite_rows *rows)
{
	struct nsys_slice slice = { .category = NSYS_SYNC };

	if (!read_common(n, rows, LANE_WAITS, &slice))
		return OW_OK;
	slice.correlation = 0;
	slice.name = nsys_text(n, str_from(wait_name(sqlite_int(rows, COLUMN_FIRST))));
	return nsys_add_slice(n, &slice);
}

ow_status nsys_read_device(struct nsys *n)
{
	static const char *const kernels[] = { COMMON_COLUMNS, "demangledName", "shortName" };
	static const char *const graphs[] = { COMMON_COLUMNS, "graphId" };
	static const char *const copies[] = { COMMON_COLUMNS, "bytes", "copyKind", "srcKind",
					      "dstKind" };
	static const char *const memsets[] = { COMMON_COLUMNS, "bytes", "memKind" };
	static const char *const waits[] = { COMMON_COLUMNS, "syncType" };

#define EACH_ROW(table, columns, add)                                                              \
	OW_TRY(nsys_each_row(n, "CUPTI_ACTIVITY_KIND_" table, columns, ARRAY_COUNT(columns), add))
	OW_TRY(read_gpus(n));
	EACH_ROW("KERNEL", kernels, add_kernel);
	EACH_ROW("GRAPH_TRACE", graphs, add_graph);
	EACH_ROW("MEMCPY", copies, add_copy);
	EACH_ROW("MEMSET", memsets, add_memset);
	EACH_ROW("SYNCHRONIZATION", waits, add_wait);
#undef EACH_ROW
	return OW_OK;
}

struct gpu_metric {
	int64_t type, number;
	uint32_t name;
};

struct gpu_metrics {
	struct gpu_metric *list; /* index 0 is unused */
	size_t count, cap;
	struct map map;
};

static uint32_t find_metric(const struct gpu_metrics *m, int64_t type, int64_t number)
{
	uint64_t hash = map_hash_u64((uint64_t)type, (uint64_t)number);

	for (struct map_iter it = map_find(&m->map, hash); it.value; it = map_next(&m->map, it))
		if (m->list[it.value].type == type && m->list[it.value].number == number)
			return it.value;
	return 0;
}

static ow_status add_metric(struct nsys *n, struct gpu_metrics *m, const struct gpu_metric *metric)
{
	if (find_metric(m, metric->type, metric->number))
		return OW_OK;
	if (!vec_reserve(n->mem, m->list, m->cap, m->count + 1))
		return import_no_memory(n->ctx);
	m->list[m->count] = *metric;
	if (!map_add(&m->map, map_hash_u64((uint64_t)metric->type, (uint64_t)metric->number),
		     (uint32_t)m->count))
		return import_no_memory(n->ctx);
	m->count++;
	return OW_OK;
}

static ow_status read_metric_names(struct nsys *n, struct gpu_metrics *m)
{
	static const char *const columns[] = { "typeId", "metricId", "metricName" };
	struct sqlite_rows rows;
	ow_status status = sqlite_rows_open(&rows, &n->db, "TARGET_INFO_GPU_METRICS", columns, 3);

	while (status == OW_OK && sqlite_rows_next(&rows, &status))
		status =
			add_metric(n, m,
				   &(struct gpu_metric){ sqlite_int(&rows, 0), sqlite_int(&rows, 1),
							 nsys_text(n, sqlite_text(&rows, 2)) });
	sqlite_rows_close(&rows);
	return status;
}

/* Reads the metrics; the low byte of the type is the number of the GPU. */
static ow_status read_metrics(struct nsys *n, struct gpu_metrics *m)
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
			nsys_problem(n, NSYS_NO_TEXT);
			continue;
		}
		if (!nsys_interval(n, &rows, 0, -1, &at))
			continue;
		status =
			nsys_add_reading(n, &(struct nsys_reading){ .ts = at.ts,
								    .value = sqlite_real(&rows, 3),
								    .lane = nsys_lane(n, &lane),
								    .name = m->list[metric].name });
	}
	sqlite_rows_close(&rows);
	return status;
}

static ow_status read_device_counters(struct nsys *n)
{
	struct gpu_metrics m = { .count = 1 };
	ow_status status;

	map_init(&m.map, n->mem);
	status = read_metric_names(n, &m);
	if (status == OW_OK)
		status = read_metrics(n, &m);
	map_release(&m.map);
	mem_free(n->mem, m.list, m.cap * sizeof(*m.list));
	return status;
}

#define MEMORY_FREE 1 /* a value of memoryOperationType */

static const char *allocator_name(int64_t kind)
{
	static const char *const kinds[] = { "pageable",       "pinned",  "device",
					     "array",	       "managed", "device static",
					     "managed static", "unknown" };

	return kinds[kind >= 0 && kind < (int64_t)ARRAY_COUNT(kinds) ? kind : 7];
}

static ow_status add_allocation(struct nsys *n, const struct sqlite_rows *rows)
{
	struct nsys_slice at = { 0 };
	int64_t bytes = MAX(sqlite_int(rows, 3), 0);
	bool freed = sqlite_int(rows, 5) == MEMORY_FREE;
	char device[32];

	if (!nsys_interval(n, rows, 0, -1, &at))
		return OW_OK;
	snprintf(device, sizeof(device), "GPU %" PRId64,
		 gpu_of(n, sqlite_int(rows, 1), sqlite_int(rows, 2)));
	builder_add_heap(
		n->b, &(struct heap_row){
			      .ts_ns = at.ts,
			      .size = freed ? -bytes : bytes,
			      .device = builder_device(n->b, str_from(device)),
			      .allocator = builder_cstr(n->b, allocator_name(sqlite_int(rows, 4))),
			      .source = n->b->source,
			      .kind = freed ? HEAP_FREE : HEAP_ALLOC,
			      .address = (uint64_t)sqlite_int(rows, 6) });
	return builder_status(n->b);
}

/* Counts the messages that the profiler wrote; their texts are not read, because they may contain paths. */
static ow_status count_diagnostic(struct nsys *n, const struct sqlite_rows *rows)
{
	enum { SEVERITY_WARNING = 2, SEVERITY_ERROR = 3 };

	if (sqlite_int(rows, 0) == SEVERITY_WARNING)
		nsys_problem(n, NSYS_WARNING);
	else if (sqlite_int(rows, 0) == SEVERITY_ERROR)
		nsys_problem(n, NSYS_ERROR);
	return OW_OK;
}

ow_status nsys_read_values(struct nsys *n)
{
	static const char *const diagnostics[] = { "severity" };
	static const char *const memory[] = { "start",	 "globalPid",		"deviceId", "bytes",
					      "memKind", "memoryOperationType", "address" };

	OW_TRY(nsys_each_row(n, "DIAGNOSTIC_EVENT", diagnostics, 1, count_diagnostic));
	OW_TRY(read_device_counters(n));
	return nsys_each_row(n, "CUDA_GPU_MEMORY_USAGE_EVENTS", memory, ARRAY_COUNT(memory),
			     add_allocation);
}
