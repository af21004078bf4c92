/*
 * nsys_device.c: what devices did: kernels, whole CUDA graphs, copies, memsets, and what streams waited for. Copies
 * and waits are called as PyTorch's profiler calls them, so that the same work has the same name whoever recorded it.
 */
#include "import/nsys_int.h"

enum {
	COLUMN_START,
	COLUMN_END,
	COLUMN_DEVICE,
	COLUMN_CONTEXT,
	COLUMN_STREAM,
	COLUMN_NUMBER,
	COLUMN_PROCESS,
	COLUMN_FIRST, /* from here on each table has its own */
	COLUMN_SECOND,
	COLUMN_THIRD,
	COLUMN_FOURTH
};

#define COMMON_COLUMNS                                                                             \
	"start", "end", "deviceId", "contextId", "streamId", "correlationId", "globalPid"

#define ALL_STREAMS ((int64_t)UINT32_MAX)

/* ---- which device ---- */

#define GPUS_MAX 65536 /* processes times devices: more makes no sense */

static ow_status add_gpu(struct nsys *n, const struct nsys_gpu *gpu)
{
	if (n->gpu_count >= GPUS_MAX)
		return OW_OK;
	OW_TRY(NSYS_GROW(n, gpus, gpu_cap, n->gpu_count + 1));
	n->gpus[n->gpu_count++] = *gpu;
	return OW_OK;
}

static int by_owner(const void *a, const void *b)
{
	const struct nsys_gpu *x = a, *y = b;

	if (x->pid != y->pid)
		return x->pid < y->pid ? -1 : 1;
	return (x->number > y->number) - (x->number < y->number);
}

/* CUDA's numbers are those of the process; newer exports say what they mean there. */
ow_status nsys_read_gpus(struct nsys *n)
{
	static const char *const by_process[] = { "gpuId", "cudaId", "pid" };
	static const char *const by_device[] = { "id", "cuDevice" };
	struct sqlite_rows rows;
	ow_status status =
		sqlite_rows_open(&rows, &n->db, "TARGET_INFO_CUDA_DEVICE", by_process, 3);

	while (status == OW_OK && sqlite_rows_next(&rows, &status))
		status = add_gpu(n, &(struct nsys_gpu){ .gpu = sqlite_int(&rows, 0),
							.number = sqlite_int(&rows, 1),
							.pid = sqlite_int(&rows, 2) });
	sqlite_rows_close(&rows);
	if (status == OW_OK)
		status = sqlite_rows_open(&rows, &n->db, "TARGET_INFO_GPU", by_device, 2);
	while (status == OW_OK && sqlite_rows_next(&rows, &status)) {
		struct nsys_gpu gpu = { .gpu = sqlite_int(&rows, 0), .pid = -1 };

		if (sqlite_get_int(&rows, 1, &gpu.number))
			status = add_gpu(n, &gpu);
	}
	sqlite_rows_close(&rows);
	if (n->gpu_count)
		qsort(n->gpus, n->gpu_count, sizeof(*n->gpus), by_owner);
	return status;
}

static bool find_gpu(const struct nsys *n, int64_t pid, int64_t number, int64_t *gpu)
{
	struct nsys_gpu key = { .pid = pid, .number = number }, *found;

	if (!n->gpu_count)
		return false;
	found = bsearch(&key, n->gpus, n->gpu_count, sizeof(key), by_owner);
	if (found)
		*gpu = found->gpu;
	return found != NULL;
}

int64_t nsys_gpu(const struct nsys *n, int64_t process, int64_t number)
{
	int64_t gpu = number;

	if (!find_gpu(n, nsys_pid(process), number, &gpu))
		find_gpu(n, -1, number, &gpu);
	return gpu;
}

/* ---- rows ---- */

/* What all tables have; false for a row without a start. */
static bool take_common(struct nsys *n, const struct sqlite_rows *rows, enum nsys_lane_kind kind,
			struct nsys_slice *slice)
{
	struct nsys_lane key = { .kind = (uint8_t)kind,
				 .process = sqlite_int(rows, COLUMN_PROCESS) };
	int64_t number = sqlite_int(rows, COLUMN_DEVICE);

	if (number != n->last_number || key.process != n->last_number_of) {
		n->last_gpu = nsys_gpu(n, key.process, number);
		n->last_number = number;
		n->last_number_of = key.process;
	}
	key.device = n->last_gpu;

	if (!nsys_interval(n, rows, COLUMN_START, COLUMN_END, slice))
		return false;
	if (kind != LANE_UNIFIED) {
		key.context = sqlite_int(rows, COLUMN_CONTEXT);
		key.number = sqlite_int(rows, COLUMN_STREAM);
	}
	slice->lane = nsys_lane(n, &key);
	nsys_take_correlation(n, slice, key.process, sqlite_int(rows, COLUMN_NUMBER));
	return true;
}

/* ---- kernels ---- */

static ow_status add_kernel(struct nsys *n, const struct sqlite_rows *rows)
{
	struct nsys_slice slice = { .category = NSYS_KERNEL };
	uint32_t base = 0;
	int64_t id;

	if (!take_common(n, rows, LANE_STREAM, &slice))
		return OW_OK;
	if (sqlite_get_int(rows, COLUMN_SECOND, &id))
		base = nsys_name(n, id);
	slice.name = sqlite_get_int(rows, COLUMN_FIRST, &id) ? nsys_name(n, id) : base;
	if (!slice.name)
		slice.name = nsys_text(n, STR("kernel"));
	nsys_tally_add(&n->kernels, &slice, n->epoch_ns);
	if (base) {
		n->names[base].kernel_ns = wrap_add(n->names[base].kernel_ns, slice.dur);
		n->names[base].kernel_count++;
	}
	return nsys_add_slice(n, &slice);
}

static ow_status read_kernels(struct nsys *n)
{
	static const char *const columns[] = { COMMON_COLUMNS, "demangledName", "shortName" };
	struct sqlite_rows rows;
	ow_status status = sqlite_rows_open(&rows, &n->db, "CUPTI_ACTIVITY_KIND_KERNEL", columns,
					    ARRAY_COUNT(columns));

	while (status == OW_OK && sqlite_rows_next(&rows, &status))
		status = add_kernel(n, &rows);
	sqlite_rows_close(&rows);
	return status;
}

/* By default a graph is recorded as a whole, and its kernels are not. */
static ow_status read_graphs(struct nsys *n)
{
	static const char *const columns[] = { COMMON_COLUMNS, "graphId" };
	struct sqlite_rows rows;
	ow_status status = sqlite_rows_open(&rows, &n->db, "CUPTI_ACTIVITY_KIND_GRAPH_TRACE",
					    columns, ARRAY_COUNT(columns));

	while (status == OW_OK && sqlite_rows_next(&rows, &status)) {
		struct nsys_slice slice = { .category = NSYS_GRAPH };
		char name[48];

		if (!take_common(n, &rows, LANE_STREAM, &slice))
			continue;
		snprintf(name, sizeof(name), "CUDA graph %" PRId64,
			 sqlite_int(&rows, COLUMN_FIRST));
		slice.name = nsys_text(n, str_from(name));
		status = nsys_add_slice(n, &slice);
	}
	sqlite_rows_close(&rows);
	return status;
}

/* ---- copies and memsets ---- */

/* By copyKind; from 11 on pages of unified memory. */
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

static ow_status read_copies(struct nsys *n)
{
	static const char *const columns[] = { COMMON_COLUMNS, "bytes", "copyKind", "srcKind",
					       "dstKind" };
	struct sqlite_rows rows;
	ow_status status = sqlite_rows_open(&rows, &n->db, "CUPTI_ACTIVITY_KIND_MEMCPY", columns,
					    ARRAY_COUNT(columns));

	while (status == OW_OK && sqlite_rows_next(&rows, &status)) {
		struct nsys_slice slice = { .category = NSYS_COPY };
		int64_t kind = sqlite_int(&rows, COLUMN_SECOND);
		char name[80];

		if (!take_common(n, &rows, kind >= FIRST_UNIFIED ? LANE_UNIFIED : LANE_STREAM,
				 &slice))
			continue;
		name_copy(&rows, kind, name, sizeof(name));
		slice.name = nsys_text(n, str_from(name));
		slice.bytes = MAX(sqlite_int(&rows, COLUMN_FIRST), 0);
		status = nsys_add_slice(n, &slice);
	}
	sqlite_rows_close(&rows);
	return status;
}

static ow_status read_memsets(struct nsys *n)
{
	static const char *const columns[] = { COMMON_COLUMNS, "bytes", "memKind" };
	struct sqlite_rows rows;
	ow_status status = sqlite_rows_open(&rows, &n->db, "CUPTI_ACTIVITY_KIND_MEMSET", columns,
					    ARRAY_COUNT(columns));

	while (status == OW_OK && sqlite_rows_next(&rows, &status)) {
		struct nsys_slice slice = { .category = NSYS_SET };
		char name[48];

		if (!take_common(n, &rows, LANE_STREAM, &slice))
			continue;
		snprintf(name, sizeof(name), "Memset (%s)", memory_kind(&rows, COLUMN_SECOND));
		slice.name = nsys_text(n, str_from(name));
		slice.bytes = MAX(sqlite_int(&rows, COLUMN_FIRST), 0);
		status = nsys_add_slice(n, &slice);
	}
	sqlite_rows_close(&rows);
	return status;
}

/* ---- waits ---- */

static const char *wait_name(int64_t type)
{
	static const char *const names[] = { "Sync", "Event Sync", "Stream Wait Event",
					     "Stream Sync", "Context Sync" };

	return names[type > 0 && type < (int64_t)ARRAY_COUNT(names) ? type : 0];
}

/* They restate calls of the host; a wait for all streams is nobody's. */
static ow_status read_waits(struct nsys *n)
{
	static const char *const columns[] = { COMMON_COLUMNS, "syncType" };
	struct sqlite_rows rows;
	ow_status status = sqlite_rows_open(&rows, &n->db, "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION",
					    columns, ARRAY_COUNT(columns));

	while (status == OW_OK && sqlite_rows_next(&rows, &status)) {
		struct nsys_slice slice = { .category = NSYS_SYNC };

		if (!take_common(n, &rows, LANE_WAITS, &slice))
			continue;
		slice.correlation = 0;
		slice.name = nsys_text(n, str_from(wait_name(sqlite_int(&rows, COLUMN_FIRST))));
		status = nsys_add_slice(n, &slice);
	}
	sqlite_rows_close(&rows);
	return status;
}

ow_status nsys_read_device(struct nsys *n)
{
	OW_TRY(read_kernels(n));
	OW_TRY(read_graphs(n));
	OW_TRY(read_copies(n));
	OW_TRY(read_memsets(n));
	return read_waits(n);
}
