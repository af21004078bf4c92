/*
 * import_nsys_test.c: exports of Nsight Systems, made here with the SQLite library: what becomes of each table, that any
 * table and column may be missing, that private text stays where it is, and that damage, hostile schemas and failing
 * allocations end in a status.
 */
#include "opwatch_config.h"

#include "import/importer.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#if OPWATCH_HAVE_SQLITE

#include "support/sqlite_bytes.h"

#define EPOCH ((int64_t)1700000000000000000)
#define MAIN "281475060596816" /* globalTid: machine 1, process 5, thread 80 */
#define PROCESS "281475060596736"
#define OTHER "281475077374032" /* the same in process 6 */
#define OTHER_PROCESS "281475077373952"

static const char strings[] =
	"CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);"
	"INSERT INTO StringIds VALUES (1,'void "
	"gemm<float>(float*)'),(2,'gemm'),(3,'cudaLaunchKernel_v7000'),"
	"(4,'cudaMemcpyAsync_v3020'),(5,'poll'),(6,'main "
	"thread'),(7,'MPI_Allreduce'),(8,'leaf'),(9,'root'),"
	"(10,'libx.so'),(11,'cudaDeviceSynchronize_v3020'),(12,'cudaLaunchKernel'),(13,'flush'),"
	"(14,'ncclDevKernel_AllReduce_Sum_f32'),(98,'secret printed'),(99,'secret environment');";

static const char session[] =
	"CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER);"
	"INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1700000000000000000);"
	"CREATE TABLE PROCESSES (globalPid INTEGER, pid INTEGER, name TEXT);"
	"INSERT INTO PROCESSES VALUES (" PROCESS ",5,'./train'),(16777216,1,'secret daemon');"
	"CREATE TABLE ThreadNames (nameId INTEGER, priority INTEGER, globalTid INTEGER);"
	"INSERT INTO ThreadNames VALUES (6,20," MAIN ");"
	"CREATE TABLE ProcessStreams (globalPid INTEGER, filenameId INTEGER, contentId INTEGER);"
	"INSERT INTO ProcessStreams VALUES (" PROCESS ",98,98);"
	"CREATE TABLE META_DATA_CAPTURE (name TEXT, value TEXT);"
	"INSERT INTO META_DATA_CAPTURE VALUES ('ENVIRONMENT_VARIABLE','TOKEN=secret');"
	"CREATE TABLE TARGET_INFO_SYSTEM_ENV (name TEXT, value TEXT);"
	"INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES ('CpuCores','8'),('Hostname','secret');"
	"CREATE TABLE EXPORT_META_DATA (name TEXT, value TEXT);"
	"INSERT INTO EXPORT_META_DATA VALUES "
	"('EXPORT_PRODUCT_VERSION','2023.2.3'),('EXPORT_USER','secret');";

#define DEVICE                                                                                     \
	"start INTEGER, end INTEGER, deviceId INTEGER, contextId INTEGER, streamId INTEGER, "      \
	"correlationId INTEGER, globalPid INTEGER"

static const char runtime[] =
	"CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, eventClass INTEGER, "
	"globalTid INTEGER, correlationId INTEGER, nameId INTEGER, returnValue INTEGER, "
	"callchainId INTEGER);"
	"INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (100,200,0," MAIN ",11,3,0,NULL),"
	"(99,201,67," MAIN ",11,12,0,1),(300,400,0," MAIN ",12,4,0,NULL),(500,900,0," MAIN
	",13,11,0,NULL);";

static const char device[] =
	"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (" DEVICE
	", demangledName INTEGER, shortName INTEGER);"
	"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (150,450,0,1,7,11," PROCESS ",1,2),"
	"(460,470,0,1,8,11," PROCESS ",14,14);"
	"CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (" DEVICE
	", bytes INTEGER, copyKind INTEGER, srcKind INTEGER, "
	"dstKind INTEGER);"
	"INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES (500,600,0,1,7,12," PROCESS ",4096,1,0,2),"
	"(610,620,0,0,0,0," PROCESS ",8192,12,7,7);"
	"CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (" DEVICE
	", value INTEGER, bytes INTEGER, memKind INTEGER);"
	"INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (630,640,0,1,7,0," PROCESS ",0,64,2);"
	"CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (" DEVICE ", syncType INTEGER);"
	"INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES (500,900,0,1,4294967295,13," PROCESS
	",4);"
	"CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (" DEVICE ", graphId INTEGER);"
	"INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (700,800,1,1,9,0," PROCESS ",3);";

static const char ranges[] =
	"CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, "
	"textId INTEGER, "
	"globalTid INTEGER, domainId INTEGER);"
	"INSERT INTO NVTX_EVENTS VALUES (50,950,59,'train',NULL," MAIN
	",0),(90,250,59,'step 0',NULL," MAIN ",0),"
	"(290,410,59,'step 1',NULL," MAIN ",0),(490,910,59,'step 2',NULL," MAIN ",0),"
	"(0,NULL,75,'MPI',NULL," MAIN ",1),(920,930,59,NULL,7," MAIN
	",1),(60,NULL,34,'mark',NULL," MAIN ",0),"
	"(70,800,60,'anywhere',NULL," MAIN ",0),(80,NULL,59,'open',NULL," MAIN ",0);";

static const char others[] =
	"CREATE TABLE OSRT_API (start INTEGER, end INTEGER, eventClass INTEGER, globalTid INTEGER, "
	"nameId INTEGER);"
	"INSERT INTO OSRT_API VALUES (600,700,27," MAIN ",5),(1,1,31," MAIN ",5);"
	"CREATE TABLE PROFILER_OVERHEAD (start INTEGER, end INTEGER, globalTid INTEGER, nameId "
	"INTEGER);"
	"INSERT INTO PROFILER_OVERHEAD VALUES (1,40," MAIN ",13);"
	"CREATE TABLE MPI_COLLECTIVES_EVENTS (start INTEGER, end INTEGER, globalTid INTEGER, "
	"textId INTEGER, "
	"size INTEGER);"
	"INSERT INTO MPI_COLLECTIVES_EVENTS VALUES (935,945," MAIN ",7,4096);"
	"CREATE TABLE MPI_RANKS (globalTid INTEGER, rank INTEGER); INSERT INTO MPI_RANKS VALUES "
	"(" MAIN ",3);"
	"CREATE TABLE SCHED_EVENTS (start INTEGER, cpu INTEGER, isSchedIn INTEGER, globalTid "
	"INTEGER);"
	"INSERT INTO SCHED_EVENTS VALUES (1,0,0," MAIN "),(10,0,1," MAIN "),(30,0,0," MAIN ");"
	"CREATE TABLE COMPOSITE_EVENTS (id INTEGER, start INTEGER, cpu INTEGER, globalTid INTEGER, "
	"cpuCycles INTEGER);"
	"INSERT INTO COMPOSITE_EVENTS VALUES (1,120,4," MAIN ",1),(7,960,4," MAIN ",1);"
	"CREATE TABLE SAMPLING_CALLCHAINS (id INTEGER, symbol INTEGER, module INTEGER, stackDepth "
	"INTEGER);"
	"INSERT INTO SAMPLING_CALLCHAINS VALUES (1,9,10,1),(1,8,10,0);"
	"CREATE TABLE CUDA_CALLCHAINS (id INTEGER, symbol INTEGER, module INTEGER, stackDepth "
	"INTEGER);"
	"INSERT INTO CUDA_CALLCHAINS VALUES (1,8,10,0),(1,9,10,1);"
	"CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS (start INTEGER, globalPid INTEGER, deviceId "
	"INTEGER, "
	"address INTEGER, bytes INTEGER, memKind INTEGER, memoryOperationType INTEGER);"
	"INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES (100," PROCESS
	",0,4096,512,2,0),(200," PROCESS ",0,4096,512,2,1);"
	"CREATE TABLE TARGET_INFO_GPU_METRICS (typeId INTEGER, metricId INTEGER, metricName TEXT);"
	"INSERT INTO TARGET_INFO_GPU_METRICS VALUES (256,5,'SM Active');"
	"CREATE TABLE GPU_METRICS (timestamp INTEGER, typeId INTEGER, metricId INTEGER, value "
	"INTEGER);"
	"INSERT INTO GPU_METRICS VALUES (300,256,5,63),(301,256,6,1);";

static const char *const everything[] = { strings, session, runtime, device, ranges, others };

/* ---- loading ---- */

struct loaded {
	struct mem mem;
	struct ow_error err;
	struct model *m;
	ow_status status;
};

static void load_input(struct loaded *l, struct input *in)
{
	struct import_options options = { .step = INT64_MIN };
	struct builder b;

	builder_init(&b, l->m, &l->err);
	l->status = import_input(&b, in, importer_find(STR("nsys")), &options, NULL, &l->err);
	if (l->status == OW_OK)
		l->status = model_freeze(&b);
}

static void load_bytes(struct loaded *l, const void *bytes, size_t len)
{
	struct input in;

	memset(l, 0, sizeof(*l));
	mem_init(&l->mem, 0);
	l->status = OW_E_NO_MEMORY;
	l->m = model_new(&l->mem, &l->err);
	if (!l->m)
		return;
	l->status = input_from_memory(&in, &l->mem, "x.sqlite", bytes, len, &l->err);
	if (l->status == OW_OK)
		load_input(l, &in);
}

static void release(struct loaded *l)
{
	model_free(l->m);
	assert_int_equal(atomic_load(&l->mem.used), 0);
}

static void load_sql(struct loaded *l, const char *const *sql, size_t count)
{
	size_t len;
	unsigned char *bytes = sqlite_bytes(sql, count, &len);

	load_bytes(l, bytes, len);
	sqlite3_free(bytes);
}

/* The only event of that name; 0 = none. */
static uint32_t event_of(const struct model *m, const char *name)
{
	uint32_t found = 0;

	for (uint32_t e = 1; e < m->event.count; e++) {
		str_id own = COLUMN_GET(m->event.name, e);
		str_id id = own.v ? own : m->op.name[m->event.op[e].v];

		if (!str_eq(model_str(m, id), str_from(name)))
			continue;
		assert_int_equal(found, 0);
		found = e;
	}
	return found;
}

static void assert_text(const struct model *m, str_id id, const char *text)
{
	assert_string_equal(model_str(m, id).ptr, text);
}

static bool has_note(const struct model *m, const char *part)
{
	for (uint32_t i = 1; i < m->note.count; i++)
		if (str_has(model_str(m, m->note.text[i]), str_from(part)))
			return true;
	return false;
}

static bool linked(const struct model *m, uint32_t src, uint32_t dst)
{
	for (uint32_t i = 1; i < m->link.count; i++)
		if (m->link.kind[i] == LINK_LAUNCH && m->link.src[i].v == src &&
		    m->link.dst[i].v == dst)
			return true;
	return false;
}

/* ---- tests ---- */

static void tables_become_events(void **state)
{
	struct loaded l;
	const struct model *m;
	uint32_t kernel, copy, call, pages;

	(void)state;
	load_sql(&l, everything, ARRAY_COUNT(everything));
	assert_int_equal(l.status, OW_OK);
	m = l.m;
	kernel = event_of(m, "void gemm<float>(float*)");
	call = event_of(m, "cudaLaunchKernel"); /* once: the copy with the chain is none */
	copy = event_of(m, "Memcpy HtoD (Pageable -> Device)");
	pages = event_of(m, "Memcpy DtoH (Unified Memory)");
	assert_true(kernel && call && copy && pages);
	assert_int_equal(m->event.ts_ns[kernel], EPOCH + 150);
	assert_int_equal(m->event.dur_ns[kernel], 300);
	assert_int_equal(m->event.phase[kernel], PHASE_COMPUTE);
	assert_text(m, m->op.type[m->event.op[kernel].v], "gemm<float>");
	assert_text(m, m->track.name[m->event.track[kernel].v], "GPU 0 stream 7");
	assert_text(m, m->track.process[m->event.track[kernel].v], "./train");
	assert_text(m, m->track.name[m->event.track[call].v], "main thread");
	assert_int_equal(m->track.pid[m->event.track[call].v], 5);
	assert_int_equal(m->track.tid[m->event.track[call].v], 80);
	assert_true(linked(m, call, kernel));
	assert_true(linked(m, event_of(m, "cudaMemcpyAsync"), copy));
	assert_int_equal(m->event.bytes[copy], 4096);
	assert_int_equal(m->event.phase[copy], PHASE_HOST_TO_DEVICE);
	assert_int_equal(m->event.phase[pages], PHASE_DEVICE_TO_HOST);
	assert_int_equal(m->event.bytes[event_of(m, "Memset (Device)")], 64);
	assert_int_equal(m->event.phase[event_of(m, "ncclDevKernel_AllReduce_Sum_f32")],
			 PHASE_COMMUNICATION);
	assert_int_equal(m->event.phase[event_of(m, "CUDA graph 3")], PHASE_COMPUTE);
	assert_int_equal(m->event.phase[event_of(m, "cudaDeviceSynchronize")],
			 PHASE_SYNCHRONISATION);
	assert_int_equal(m->event.phase[event_of(m, "poll")], PHASE_SYNCHRONISATION);
	assert_int_equal(m->track.kind[m->event.track[event_of(m, "Context Sync")].v],
			 TRACK_DERIVED);
	assert_int_equal(m->track.kind[m->event.track[event_of(m, "flush")].v], TRACK_SPAN);
	assert_int_equal(m->event.dur_ns[event_of(m, "on CPU")], 20);
	assert_text(m, m->source.producer[1], "Nsight Systems 2023.2.3");
	assert_int_equal(m->source.rank[1], 3);
	release(&l);
}

static void ranges_become_steps(void **state)
{
	struct loaded l;
	const struct model *m;

	(void)state;
	load_sql(&l, everything, ARRAY_COUNT(everything));
	assert_int_equal(l.status, OW_OK);
	m = l.m;
	assert_int_equal(m->window.count, 4);
	for (uint32_t i = 0; i < 3; i++)
		assert_int_equal(m->step.number[m->window.step[i + 1].v], i);
	assert_int_equal(m->window.start_ns[1], EPOCH + 90);
	/* work of a device belongs to the step that launched it */
	assert_int_equal(m->step.number[m->event.step[event_of(m, "void gemm<float>(float*)")].v],
			 0);
	assert_int_equal(m->event.dur_ns[event_of(m, "mark")], TIME_UNKNOWN);
	assert_int_equal(m->track.kind[m->event.track[event_of(m, "anywhere")].v], TRACK_ASYNC);
	assert_int_equal(m->event.flags[event_of(m, "open")], EVENT_UNFINISHED);
	assert_true(has_note(m, "without an end"));
	for (uint32_t e = 1; e < m->event.count; e++)
		if (str_eq(model_str(m, m->op.name[m->event.op[e].v]), STR("MPI_Allreduce")))
			assert_int_equal(m->event.phase[e], PHASE_COMMUNICATION);
	release(&l);
}

static void stacks_and_samples(void **state)
{
	struct loaded l;
	const struct model *m;
	stack_id stack;

	(void)state;
	load_sql(&l, everything, ARRAY_COUNT(everything));
	assert_int_equal(l.status, OW_OK);
	m = l.m;
	stack = m->event.stack[event_of(m, "cudaLaunchKernel")];
	assert_text(m, m->frame.function[m->stack.frame[stack.v].v], "leaf");
	assert_text(m, m->frame.module[m->stack.frame[stack.v].v], "libx.so");
	assert_text(m, m->frame.function[m->stack.frame[m->stack.parent[stack.v].v].v], "root");
	assert_int_equal(m->event.stack[event_of(m, "void gemm<float>(float*)")].v, stack.v);
	assert_int_equal(m->sample.count, 3);
	assert_int_equal(m->sample.ts_ns[1], EPOCH + 120);
	assert_int_equal(m->sample.stack[1].v, stack.v);
	assert_int_equal(m->sample.cpu[1], 5);
	assert_int_equal(m->step.number[m->sample.step[1].v], 0);
	assert_int_equal(m->sample.stack[2].v, 0); /* its chain is not there */
	assert_int_equal(m->sample.step[2].v, 0);
	assert_int_equal(m->heap.count, 3);
	assert_int_equal(m->heap.size[2], -512);
	assert_int_equal(m->counter.count, 2);
	assert_text(m, m->counter.name[1], "SM Active");
	assert_true(m->counter.value[1] == 63);
	release(&l);
}

/* What PyTorch's profilers write into ranges. */
static void ranges_of_frameworks(void **state)
{
	static const char marks[] =
		"CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text "
		"TEXT, "
		"globalTid INTEGER);"
		"INSERT INTO NVTX_EVENTS VALUES "
		"(50,450,59,'{''traceMarker'': [''train.py:12'', ''model.py:7''], ''funcStack'': "
		"''/<module>/forward''}'," MAIN "),"
		"(60,290,59,'{''mod'': ''torch'', ''op'': ''mm'', ''args'': []}'," MAIN "),"
		"(70,280,59,'aten::mm, seq = 3, sizes = [[2, 3]]'," MAIN "),"
		"(295,299,59,'{''mod'': '," MAIN "),(296,297,59,', seq = 1'," MAIN "),"
		"(460,470,59,'{''traceMarker'': [''x'," MAIN "),(480,490,59,'plain, text'," MAIN
		");";
	static const char *const sql[] = { strings, runtime, device, marks };
	struct loaded l;
	const struct model *m;
	uint32_t op_event, kernel;
	stack_id stack;

	(void)state;
	load_sql(&l, sql, ARRAY_COUNT(sql));
	assert_int_equal(l.status, OW_OK);
	m = l.m;
	op_event = event_of(m, "aten::mm, seq = 3, sizes = [[2, 3]]");
	kernel = event_of(m, "void gemm<float>(float*)");
	assert_true(op_event && kernel);
	assert_text(m, m->op.name[m->event.op[op_event].v], "aten::mm");
	assert_text(m, m->op.type[m->event.op[op_event].v], "aten::mm");
	assert_false(m->op.flags[m->event.op[op_event].v] & OP_WRAPS);
	assert_true(model_find_op(m, STR("torch.mm")).v);
	assert_true(model_find_op(m, STR("<module>/forward")).v);
	assert_true(m->op.flags[model_find_op(m, STR("plain, text")).v] & OP_WRAPS);
	stack = m->event.stack[kernel]; /* that of the call which launched it */
	assert_text(m, m->frame.file[m->stack.frame[stack.v].v], "model.py");
	assert_int_equal(m->frame.line[m->stack.frame[stack.v].v], 7);
	assert_text(m, m->frame.file[m->stack.frame[m->stack.parent[stack.v].v].v], "train.py");
	assert_int_equal(m->event.stack[event_of(m, "cudaDeviceSynchronize")].v, 0);
	release(&l);
}

static void private_text_is_not_read(void **state)
{
	struct loaded l;

	(void)state;
	load_sql(&l, everything, ARRAY_COUNT(everything));
	assert_int_equal(l.status, OW_OK);
	for (uint32_t i = 0; i < l.m->strings.count; i++)
		assert_false(str_has(model_str(l.m, (str_id){ i }), STR("secret")));
	release(&l);
}

/* Both processes use number 11. */
static void numbers_are_per_process(void **state)
{
	static const char second[] =
		"INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (1100,1200,0," OTHER
		",11,4,0,NULL);"
		"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1150,1450,1,1,7,11," OTHER_PROCESS
		",2,2);";
	static const char *const sql[] = { strings, runtime, device, second };
	struct loaded l;
	const struct model *m;

	(void)state;
	load_sql(&l, sql, ARRAY_COUNT(sql));
	assert_int_equal(l.status, OW_OK);
	m = l.m;
	assert_true(linked(m, event_of(m, "cudaLaunchKernel"),
			   event_of(m, "void gemm<float>(float*)")));
	assert_false(linked(m, event_of(m, "cudaLaunchKernel"), event_of(m, "gemm")));
	assert_int_equal(m->link.count, 5); /* two kernels, a copy, and the other's kernel */
	assert_text(m, m->track.name[m->event.track[event_of(m, "gemm")].v], "GPU 1 stream 7");
	release(&l);
}

/* Numbers of processes that differ only in what is not the process. */
static void lanes_stay_apart(void **state)
{
	static const char odd[] =
		"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1150,1450,0,1,7,0," PROCESS
		"+1,2,2);";
	static const char *const sql[] = { strings, device, odd };
	struct loaded l;
	const struct model *m;

	(void)state;
	load_sql(&l, sql, ARRAY_COUNT(sql));
	assert_int_equal(l.status, OW_OK);
	m = l.m;
	assert_int_not_equal(m->event.track[event_of(m, "gemm")].v,
			     m->event.track[event_of(m, "void gemm<float>(float*)")].v);
	assert_text(m, m->op.name[m->event.op[event_of(m, "gemm")].v], "gemm");
	release(&l);
}

/* Each process sees one device only, and calls it 0. */
static void devices_are_per_process(void **state)
{
	static const char gpus[] =
		"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1150,1450,0,1,7,11," OTHER_PROCESS
		",2,2);"
		"CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId INTEGER, cudaId INTEGER, pid INTEGER);"
		"INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (5,0,6),(4,0,5);"
		"CREATE TABLE DIAGNOSTIC_EVENT (severity INTEGER, text TEXT);"
		"INSERT INTO DIAGNOSTIC_EVENT VALUES (1,'x'),(2,'secret path');";
	static const char *const sql[] = { strings, device, gpus };
	struct loaded l;
	const struct model *m;

	(void)state;
	load_sql(&l, sql, ARRAY_COUNT(sql));
	assert_int_equal(l.status, OW_OK);
	m = l.m;
	assert_text(m, m->track.name[m->event.track[event_of(m, "gemm")].v], "GPU 5 stream 7");
	assert_text(m, m->track.name[m->event.track[event_of(m, "void gemm<float>(float*)")].v],
		    "GPU 4 stream 7");
	assert_true(has_note(m, "warnings of Nsight Systems"));
	assert_false(has_note(m, "secret"));
	release(&l);
}

static void anything_may_be_missing(void **state)
{
	static const char *const bare[] = {
		"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, extra TEXT);"
		"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (-5,7,'x'),(10,8,'y'),(NULL,3,'z')"
	};
	static const char *const renamed[] = {
		"CREATE TABLE cupti_activity_kind_kernel (START INTEGER, END INTEGER, "
		"DemangledName INTEGER);"
		"INSERT INTO cupti_activity_kind_kernel VALUES (1,7,77)"
	};
	static const char *const empty[] = { "CREATE TABLE NVTX_EVENTS (start INTEGER)" };
	struct loaded l;

	(void)state;
	load_sql(&l, bare, 1);
	assert_int_equal(l.status, OW_OK);
	assert_int_equal(l.m->event.count, 3);
	assert_int_equal(l.m->event.ts_ns[1], -5);
	assert_int_equal(l.m->event.dur_ns[2], 0);
	assert_true(has_note(l.m, "without a time"));
	assert_true(has_note(l.m, "end before they start"));
	release(&l);
	load_sql(&l, renamed, 1);
	assert_int_equal(l.status, OW_OK);
	assert_true(event_of(l.m, "(no name)"));
	assert_true(has_note(l.m, "not in the database"));
	release(&l);
	load_sql(&l, empty, 1);
	assert_int_equal(l.status, OW_OK);
	assert_int_equal(l.m->event.count, 1);
	release(&l);
}

static void assert_refused(const char *sql, const char *word)
{
	struct loaded l;

	load_sql(&l, &sql, 1);
	assert_int_equal(l.status, OW_E_FORMAT);
	assert_non_null(strstr(l.err.text, word));
	release(&l);
}

static void others_are_refused_by_name(void **state)
{
	static const char report[] =
		"NVIDIA Tegra Profiler Report 2024@1@1@0-0v0.\n\x0bLocal (CLI)";
	struct loaded l;

	(void)state;
	load_bytes(&l, report, sizeof(report) - 1);
	assert_int_equal(l.status, OW_E_FORMAT);
	assert_non_null(strstr(l.err.text, "nsys export --type sqlite"));
	release(&l);
	assert_refused("CREATE TABLE read_only_kernels (a)", "DLProf");
	assert_refused("CREATE TABLE rocpd_kernelapi (a)", "ROCm");
	assert_refused("CREATE TABLE bookmarks (a)", "bookmarks");
}

/* What a database brings along is not run: a view in place of a table, columns that are computed, triggers. */
static void schemas_run_nothing(void **state)
{
	static const char endless[] = "CREATE TABLE x (a); CREATE VIEW CUPTI_ACTIVITY_KIND_KERNEL "
				      "AS WITH RECURSIVE c(start) AS "
				      "(SELECT 1 UNION ALL SELECT start + 1 FROM c) SELECT start, "
				      "start + 1 AS end FROM c;";
	static const char *const computed[] = {
		"CREATE TABLE NVTX_EVENTS (start INTEGER, eventType INTEGER, end INTEGER AS (start "
		"+ 5), "
		"text TEXT AS (hex(zeroblob(100000))));"
		"INSERT INTO NVTX_EVENTS VALUES (1, 59);"
		"CREATE TRIGGER t AFTER INSERT ON NVTX_EVENTS BEGIN SELECT 1; END;"
	};
	struct loaded l;

	(void)state;
	assert_refused(endless, "none of which");
	load_sql(&l, computed, 1);
	assert_int_equal(l.status, OW_OK);
	assert_int_equal(l.m->event.count, 2);
	assert_int_equal(l.m->event.flags[1], EVENT_UNFINISHED);
	for (uint32_t i = 0; i < l.m->strings.count; i++)
		assert_true(model_str(l.m, (str_id){ i }).len < 1000);
	release(&l);
}

/* Pages of a tree that lead back to one that was read already: as many rows as the file can have, and no more. */
static void circles_end(void **state)
{
	static const char *const sql[] = {
		"PRAGMA page_size=512;"
		"CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER);"
		"WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 40000) "
		"INSERT INTO NVTX_EVENTS SELECT x, x + 1, 59 FROM c;"
	};
	unsigned char *bytes;
	struct loaded l;
	size_t len;

	(void)state;
	bytes = sqlite_bytes(sql, 1, &len);
	for (size_t page = 512; page + 512 <= len; page += 512) {
		unsigned char *p = bytes + page;
		unsigned cells = (unsigned)p[3] << 8 | p[4];

		if (p[0] != 5 || !cells) /* the pages above the leaves */
			continue;
		for (unsigned i = 1; i < cells; i++) {
			unsigned first = (unsigned)p[12] << 8 | p[13];
			unsigned at = (unsigned)p[12 + 2 * i] << 8 | p[13 + 2 * i];

			memcpy(p + at, p + first, 4); /* all children are the first */
		}
		memcpy(p + 8, p + ((unsigned)p[12] << 8 | p[13]), 4);
	}
	load_bytes(&l, bytes, len);
	assert_int_equal(l.status, OW_OK);
	assert_true(l.m->event.count < len / 4 + 100);
	release(&l);
	sqlite3_free(bytes);
}

static void cut_files_are_read_in_part(void **state)
{
	static const char *const sql[] = {
		"PRAGMA page_size=512;"
		"CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER);"
		"WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 1500) "
		"INSERT INTO NVTX_EVENTS SELECT x, x + 1, 59 FROM c;"
	};
	unsigned char *bytes;
	struct loaded l;
	size_t len;

	(void)state;
	bytes = sqlite_bytes(sql, 1, &len);
	load_bytes(&l, bytes, len / 2);
	assert_int_equal(l.status, OW_OK);
	assert_true(l.m->event.count > 100 && l.m->event.count < 1500);
	assert_true(has_note(l.m, "shorter than its header says"));
	assert_true(has_note(l.m, "table NVTX_EVENTS is damaged"));
	release(&l);
	load_bytes(&l, bytes, 50);
	assert_int_not_equal(l.status, OW_OK);
	release(&l);
	bytes[18] = bytes[19] = 2; /* written with a log, which is not looked for */
	load_bytes(&l, bytes, len);
	assert_int_equal(l.status, OW_OK);
	assert_int_equal(l.m->event.count, 1501);
	assert_true(has_note(l.m, "-wal"));
	release(&l);
	sqlite3_free(bytes);
}

static bool stop(void *arg, uint64_t done, uint64_t total)
{
	(void)arg;
	(void)done;
	(void)total;
	return false;
}

static void loading_can_be_stopped(void **state)
{
	static const char *const sql[] = {
		"CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER);"
		"WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 100000) "
		"INSERT INTO NVTX_EVENTS SELECT x, x + 1, 59 FROM c;"
	};
	static const struct progress progress = { .report = stop };
	unsigned char *bytes;
	struct loaded l = { 0 };
	struct input in;
	size_t len;

	(void)state;
	bytes = sqlite_bytes(sql, 1, &len);
	mem_init(&l.mem, 0);
	l.m = model_new(&l.mem, &l.err);
	assert_int_equal(input_from_memory(&in, &l.mem, "x", bytes, len, &l.err), OW_OK);
	in.progress = &progress;
	load_input(&l, &in);
	assert_int_equal(l.status, OW_E_INTERRUPTED);
	release(&l);
	sqlite3_free(bytes);
}

static void allocations_may_fail(void **state)
{
	struct loaded l = { .status = OW_E_NO_MEMORY };
	size_t len;
	unsigned char *bytes = sqlite_bytes(everything, ARRAY_COUNT(everything), &len);

	(void)state;
	for (uint64_t n = 1; l.status != OW_OK; n++) {
		assert_true(n < 100000);
		mem_fail_after(n, n % 2);
		load_bytes(&l, bytes, len);
		mem_fail_after(0, false);
		if (l.status != OW_OK)
			assert_int_equal(l.status, OW_E_NO_MEMORY);
		release(&l);
	}
	sqlite3_free(bytes);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tables_become_events),
		cmocka_unit_test(ranges_become_steps),
		cmocka_unit_test(stacks_and_samples),
		cmocka_unit_test(ranges_of_frameworks),
		cmocka_unit_test(private_text_is_not_read),
		cmocka_unit_test(numbers_are_per_process),
		cmocka_unit_test(lanes_stay_apart),
		cmocka_unit_test(devices_are_per_process),
		cmocka_unit_test(anything_may_be_missing),
		cmocka_unit_test(others_are_refused_by_name),
		cmocka_unit_test(schemas_run_nothing),
		cmocka_unit_test(circles_end),
		cmocka_unit_test(cut_files_are_read_in_part),
		cmocka_unit_test(loading_can_be_stopped),
		cmocka_unit_test(allocations_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#else

int main(void)
{
	return 0;
}

#endif
