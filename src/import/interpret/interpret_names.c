/*
 * interpret_names.c: classifies names and categories: kinds of host and device work, layers of a thread, and ops of
 * TensorFlow and JAX by the rules of XProf. Called by the other passes, by the trace importer while it reads, and by
 * the importer of XSpace. It works on texts only, not on events.
 */
#include "import/interpret/interpret_int.h"

static const struct {
	const char *category;
	struct category_meaning meaning;
} categories[] = {
	{ "Op", { CATEGORY_TF_OP, LAYER_THREAD, WANT_LABEL, false } },
	{ "cpu_op", { CATEGORY_OPERATOR, LAYER_THREAD, WANT_SEQUENCE, true } },
	{ "Operator", { CATEGORY_OPERATOR, LAYER_THREAD, WANT_SEQUENCE, true } },
	{ "hpu_op", { CATEGORY_OPERATOR, LAYER_THREAD, WANT_SEQUENCE, true } },
	{ "nvtx", { CATEGORY_ANNOTATION, LAYER_THREAD, WANT_NOTHING, false } },
	{ "user_annotation", { CATEGORY_ANNOTATION, LAYER_THREAD, WANT_NOTHING, true } },
	{ "cuda_runtime", { CATEGORY_RUNTIME, LAYER_THREAD, WANT_CORRELATION, true } },
	{ "cuda_driver", { CATEGORY_RUNTIME, LAYER_THREAD, WANT_CORRELATION, true } },
	{ "Runtime", { CATEGORY_RUNTIME, LAYER_THREAD, WANT_CORRELATION, true } },
	{ "kernel", { CATEGORY_KERNEL, LAYER_DEVICE, WANT_CORRELATION, true } },
	{ "Kernel", { CATEGORY_KERNEL, LAYER_DEVICE, WANT_CORRELATION, false } },
	{ "gpu_memcpy", { CATEGORY_COPY, LAYER_DEVICE, WANT_CORRELATION, true } },
	{ "Memcpy", { CATEGORY_COPY, LAYER_DEVICE, WANT_CORRELATION, false } },
	{ "gpu_memset", { CATEGORY_MEMSET, LAYER_DEVICE, WANT_CORRELATION, true } },
	{ "Memset", { CATEGORY_MEMSET, LAYER_DEVICE, WANT_CORRELATION, false } },
	{ "collective_comm", { CATEGORY_COLLECTIVE, LAYER_DEVICE, WANT_CORRELATION, true } },
	{ "mtia_ccp_events", { CATEGORY_KERNEL, LAYER_DEVICE, WANT_CORRELATION, true } },
	{ "mtia_insight", { CATEGORY_SPAN, LAYER_SPAN, WANT_NOTHING, true } },
	{ "gpu_user_annotation", { CATEGORY_DEVICE_RANGE, LAYER_DERIVED, WANT_NOTHING, true } },
	{ "cuda_profiler_range", { CATEGORY_DEVICE_RANGE, LAYER_DERIVED, WANT_NOTHING, true } },
	{ "cuda_sync", { CATEGORY_SYNC, LAYER_DERIVED, WANT_NOTHING, true } },
	{ "python_function", { CATEGORY_FRAME, LAYER_FRAMES, WANT_NOTHING, true } },
	{ "cpu_instant_event", { CATEGORY_MEMORY, LAYER_THREAD, WANT_NOTHING, true } },
	{ "overhead", { CATEGORY_SPAN, LAYER_SPAN, WANT_NOTHING, false } },
	{ "Trace", { CATEGORY_SPAN, LAYER_SPAN, WANT_NOTHING, false } },
	{ "Session", { CATEGORY_ORT_SESSION, LAYER_THREAD, WANT_NOTHING, false } },
	{ "Api", { CATEGORY_ORT_SESSION, LAYER_THREAD, WANT_NOTHING, false } },
	{ "Node", { CATEGORY_ORT_NODE, LAYER_THREAD, WANT_NOTHING, false } },
	{ "v8", { CATEGORY_V8, LAYER_THREAD, WANT_NOTHING, false } },
	{ "node", { CATEGORY_V8, LAYER_THREAD, WANT_NOTHING, false } },
	{ "disabled-by-default-v8.cpu_profiler",
	  { CATEGORY_V8, LAYER_THREAD, WANT_NOTHING, false } },
	{ "__metadata", { CATEGORY_CHROME, LAYER_THREAD, WANT_NOTHING, false } },
	{ "toplevel", { CATEGORY_CHROME, LAYER_THREAD, WANT_NOTHING, false } },
	{ "cc", { CATEGORY_CHROME, LAYER_THREAD, WANT_NOTHING, false } },
	{ "blink", { CATEGORY_CHROME, LAYER_THREAD, WANT_NOTHING, false } },
	{ "ipc", { CATEGORY_CHROME, LAYER_THREAD, WANT_NOTHING, false } },
};

/* Other accelerators use similar category names: xpu_runtime, privateuse1_driver, mtia_sync. */
static const struct {
	const char *ending;
	struct category_meaning meaning;
} endings[] = {
	{ "_runtime", { CATEGORY_RUNTIME, LAYER_THREAD, WANT_CORRELATION, false } },
	{ "_driver", { CATEGORY_RUNTIME, LAYER_THREAD, WANT_CORRELATION, false } },
	{ "_sync", { CATEGORY_SYNC, LAYER_DERIVED, WANT_NOTHING, false } },
};

struct category_meaning category_meaning(struct str category)
{
	size_t comma = str_find_char(category, ',');

	if (comma != STR_NONE) /* in a list the first category is the most specific */
		category = str_first(category, comma);
	if (!category.len)
		return (struct category_meaning){ 0 };
	for (size_t i = 0; i < ARRAY_COUNT(categories); i++)
		if (str_eq(category, str_from(categories[i].category)))
			return categories[i].meaning;
	for (size_t i = 0; i < ARRAY_COUNT(endings); i++)
		if (str_ends(category, str_from(endings[i].ending)))
			return endings[i].meaning;
	return (struct category_meaning){ .class = CATEGORY_OTHER };
}

/* XProf writes Python frames as "$file.py:12 function", among the thread's other slices. */
enum trace_layer layer_without_category(struct str name)
{
	return name.len > 1 && name.ptr[0] == '$' ? LAYER_FRAMES : LAYER_THREAD;
}

uint32_t interpret_member(struct str key, struct str value)
{
	static const struct {
		const char *key;
		uint32_t bit;
	} members[] = {
		{ "schemaVersion", MEMBER_SCHEMA_VERSION },
		{ "deviceProperties", MEMBER_DEVICE_PROPERTIES },
		{ "computeProperties", MEMBER_DEVICE_PROPERTIES },
		{ "distributedInfo", MEMBER_DEVICE_PROPERTIES },
		{ "baseTimeNanoseconds", MEMBER_BASE_TIME },
		{ "beginningOfTime", MEMBER_BEGINNING_OF_TIME },
		{ "clientInfo", MEMBER_CLIENT_INFO },
	};

	if (str_eq(key, STR("metadata")) && str_starts(value, STR("{")) &&
	    str_starts(json_text(json_find(value, "highres-ticks")), STR("true")))
		return MEMBER_HIGHRES_TICKS;
	for (size_t i = 0; i < ARRAY_COUNT(members); i++)
		if (str_eq(key, str_from(members[i].key)))
			return members[i].bit;
	return 0;
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

static bool starts_lower(struct str s, const char *text)
{
	size_t len = strlen(text);

	if (s.len < len)
		return false;
	for (size_t i = 0; i < len; i++)
		if (lower(s.ptr[i]) != text[i])
			return false;
	return true;
}

bool str_has_ignoring_case(struct str s, const char *text)
{
	for (size_t i = 0; i < s.len; i++)
		if (lower(s.ptr[i]) == text[0] && starts_lower(str_skip(s, i), text))
			return true;
	return false;
}

/* Matches a pattern in which '?' stands for any character or none: all_?reduce. */
static bool has_pattern(struct str s, const char *before, const char *after)
{
	size_t len = strlen(before);

	for (size_t i = 0; i + len < s.len; i++) {
		struct str rest;

		if (lower(s.ptr[i]) != before[0] || !starts_lower(str_skip(s, i), before))
			continue;
		rest = str_skip(s, i + len);
		if (starts_lower(rest, after) || starts_lower(str_skip(rest, 1), after))
			return true;
	}
	return false;
}

static bool is_collective(struct str name)
{
	static const char *const parts[] = { "nccl",	 "rccl",
					     "hccl",	 "msccl",
					     "nvshmem",	 "cross_device_reduce",
					     "sendrecv", "collective-permute" };
	static const char *const pairs[][2] = { { "all", "reduce" },	 { "all", "gather" },
						{ "reduce", "scatter" }, { "all", "to_all" },
						{ "all", "toall" },	 { "all", "to-all" } };

	if (str_eq(name, STR("send")) || str_eq(name, STR("recv")) ||
	    str_starts(name, STR("send-done")) || str_starts(name, STR("recv-done")))
		return true;
	for (size_t i = 0; i < ARRAY_COUNT(parts); i++)
		if (str_has_ignoring_case(name, parts[i]))
			return true;
	for (size_t i = 0; i < ARRAY_COUNT(pairs); i++)
		if (has_pattern(name, pairs[i][0], pairs[i][1]))
			return true;
	return false;
}

static const struct {
	const char *part;
	enum device_name class;
} directions[] = {
	{ "HtoD", DEVICE_FROM_HOST },
	{ "H2D", DEVICE_FROM_HOST },
	{ "HostToDevice", DEVICE_FROM_HOST },
	{ "DtoH", DEVICE_TO_HOST },
	{ "D2H", DEVICE_TO_HOST },
	{ "DeviceToHost", DEVICE_TO_HOST },
	{ "PtoP", DEVICE_TO_DEVICE },
	{ "P2P", DEVICE_TO_DEVICE },
	{ "PeerToPeer", DEVICE_TO_DEVICE },
	{ "HtoA", DEVICE_FROM_HOST }, /* A stands for an array of a device */
	{ "AtoH", DEVICE_TO_HOST },
	{ "DtoD", DEVICE_LOCAL_COPY },
	{ "D2D", DEVICE_LOCAL_COPY },
	{ "DeviceToDevice", DEVICE_LOCAL_COPY },
};

static enum device_name classify_copy(struct str name)
{
	for (size_t i = 0; i < ARRAY_COUNT(directions); i++)
		if (str_has(name, str_from(directions[i].part)))
			return directions[i].class;
	return DEVICE_LOCAL_COPY;
}

/* Classifies work of a device. Kernels contain type names of any kind, so copies are recognised
 * by the beginning of their names. */
static enum device_name classify_device(struct str name)
{
	if (starts_lower(name, "memcpy") || starts_lower(name, "copyhost") ||
	    starts_lower(name, "copydevice"))
		return classify_copy(name);
	if (starts_lower(name, "memset"))
		return DEVICE_LOCAL_COPY;
	if (str_eq(name, STR("event_wait")) || str_eq(name, STR("event_record")))
		return DEVICE_WAIT;
	if (starts_lower(name, "infeed"))
		return DEVICE_FROM_HOST;
	if (starts_lower(name, "outfeed"))
		return DEVICE_TO_HOST;
	return is_collective(name) ? DEVICE_COMMUNICATION : DEVICE_PLAIN;
}

static const struct {
	const char *beginning;
	enum host_name class;
} beginnings[] = {
	{ "ProfilerStep#", HOST_MARKER },
	{ "IteratorGetNext", HOST_INPUT },
	{ "QueueDequeue", HOST_INPUT },
	{ "ReaderRead", HOST_INPUT },
	{ "Iterator::", HOST_PIPELINE },
	{ "gloo:", HOST_COMMUNICATION },
	{ "Horovod", HOST_COMMUNICATION },
	{ "MPI_Init", HOST_INITIALISATION }, /* also matches MPI_Init_thread */
	{ "ncclCommInit", HOST_INITIALISATION },
	{ "MPI_", HOST_COMMUNICATION },
	{ "nccl:", HOST_ENQUEUE },
	{ "c10d::", HOST_ENQUEUE },
	{ "ExecutorState::Process", HOST_EXECUTOR },
	{ "EagerKernelExecute", HOST_WRAPPER },
	{ "EagerExecute", HOST_WRAPPER },
	{ "EagerLocalExecute", HOST_WRAPPER },
	{ "KernelAndDeviceFunc::Run", HOST_WRAPPER },
	{ "FunctionRun", HOST_WRAPPER },
	{ "SessionRun", HOST_WRAPPER },
	{ "TraceContext", HOST_WRAPPER },
	{ "DistributedDataParallel.forward", HOST_WRAPPER },
};

static const struct {
	const char *name;
	enum host_name class;
} whole_names[] = {
	{ "RecvTensor", HOST_COMMUNICATION },
	{ "_Recv", HOST_COMMUNICATION },
	{ "_Send", HOST_COMMUNICATION },
	{ "_HostRecv", HOST_COMMUNICATION },
	{ "_HostSend", HOST_COMMUNICATION },
	{ "record_param_comms", HOST_ENQUEUE },
	{ "Acquire semaphore", HOST_SYNC },
	/* TensorFlow's ops that find, read and decode files */
	{ "MatchingFiles", HOST_INPUT },
	{ "ReadFile", HOST_INPUT },
	{ "DecodeJpeg", HOST_INPUT },
	{ "DecodePng", HOST_INPUT },
	{ "DecodeGif", HOST_INPUT },
	{ "DecodeBmp", HOST_INPUT },
	{ "DecodeImage", HOST_INPUT },
	{ "DecodeAndCropJpeg", HOST_INPUT },
	{ "DecodeWebP", HOST_INPUT },
	{ "DecodeRaw", HOST_INPUT },
	{ "DecodePaddedRaw", HOST_INPUT },
	{ "DecodeCSV", HOST_INPUT },
	{ "DecodeCompressed", HOST_INPUT },
	{ "DecodeJSONExample", HOST_INPUT },
	{ "DecodeWav", HOST_INPUT },
	{ "DecodeProtoV2", HOST_INPUT },
	{ "ExtractJpegShape", HOST_INPUT },
	{ "ParseExample", HOST_INPUT },
	{ "ParseExampleV2", HOST_INPUT },
	{ "ParseSingleExample", HOST_INPUT },
	{ "ParseTensor", HOST_INPUT },
	{ "ParseSequenceExample", HOST_INPUT },
	{ "ParseSequenceExampleV2", HOST_INPUT },
	{ "ParseSingleSequenceExample", HOST_INPUT },
	/* calls of the operating system */
	{ "poll", HOST_SLEEP },
	{ "ppoll", HOST_SLEEP },
	{ "epoll_wait", HOST_SLEEP },
	{ "epoll_pwait", HOST_SLEEP },
	{ "select", HOST_SLEEP },
	{ "pselect", HOST_SLEEP },
	{ "futex", HOST_SLEEP },
	{ "nanosleep", HOST_SLEEP },
	{ "clock_nanosleep", HOST_SLEEP },
	{ "usleep", HOST_SLEEP },
	{ "sleep", HOST_SLEEP },
	{ "sem_wait", HOST_SLEEP },
	{ "sem_timedwait", HOST_SLEEP },
	{ "sem_clockwait", HOST_SLEEP },
	{ "pthread_cond_wait", HOST_SLEEP },
	{ "pthread_cond_timedwait", HOST_SLEEP },
	{ "pthread_cond_clockwait", HOST_SLEEP },
	{ "pthread_mutex_lock", HOST_SLEEP },
	{ "pthread_mutex_timedlock", HOST_SLEEP },
	{ "pthread_join", HOST_SLEEP },
	{ "pthread_timedjoin_np", HOST_SLEEP },
	{ "pthread_barrier_wait", HOST_SLEEP },
	{ "pthread_rwlock_rdlock", HOST_SLEEP },
	{ "pthread_rwlock_wrlock", HOST_SLEEP },
	{ "wait", HOST_SLEEP },
	{ "waitpid", HOST_SLEEP },
	{ "wait3", HOST_SLEEP },
	{ "wait4", HOST_SLEEP },
	{ "waitid", HOST_SLEEP },
	{ "sigwait", HOST_SLEEP },
	{ "sched_yield", HOST_SLEEP },
};

static const char *const libraries[] = { "cuda", "hip", "aclrt", "musa", "mcclr" };

/* Removes the prefix of a library's calls: cudaMalloc, hipMalloc, cuMemAlloc_v2. */
static bool skip_library(struct str *name)
{
	for (size_t i = 0; i < ARRAY_COUNT(libraries); i++) {
		size_t len = strlen(libraries[i]);

		if (str_starts(*name, str_from(libraries[i])) && name->len > len &&
		    name->ptr[len] >= 'A' && name->ptr[len] <= 'Z') {
			*name = str_skip(*name, len);
			return true;
		}
	}
	if (name->len < 3 || !str_starts(*name, STR("cu")) || name->ptr[2] < 'A' ||
	    name->ptr[2] > 'Z')
		return false;
	*name = str_skip(*name, 2);
	return true;
}

static const struct {
	const char *beginning;
	enum host_name class;
} call_beginnings[] = {
	{ "Malloc", HOST_ALLOCATION },
	{ "Free", HOST_ALLOCATION },
	{ "HostAlloc", HOST_ALLOCATION },
	{ "HostMalloc", HOST_ALLOCATION },
	{ "HostFree", HOST_ALLOCATION },
	{ "HostRegister", HOST_ALLOCATION },
	{ "HostUnregister", HOST_ALLOCATION },
	{ "ExtMalloc", HOST_ALLOCATION },
	{ "MemAlloc", HOST_ALLOCATION },
	{ "MemFree", HOST_ALLOCATION },
	{ "MemHostAlloc", HOST_ALLOCATION },
	{ "MemHostRegister", HOST_ALLOCATION },
	{ "MemHostUnregister", HOST_ALLOCATION },
	{ "MemAddress", HOST_ALLOCATION },
	{ "MemCreate", HOST_ALLOCATION },
	{ "MemRelease", HOST_ALLOCATION },
	{ "MemMap", HOST_ALLOCATION },
	{ "MemUnmap", HOST_ALLOCATION },
	{ "MemSetAccess", HOST_ALLOCATION },
	{ "MemPool", HOST_ALLOCATION },
	{ "ArrayCreate", HOST_ALLOCATION },
	{ "ArrayDestroy", HOST_ALLOCATION },
	{ "Init", HOST_INITIALISATION },
	{ "CtxCreate", HOST_INITIALISATION },
	{ "DevicePrimaryCtxRetain", HOST_INITIALISATION },
	{ "ModuleLoad", HOST_INITIALISATION },
	{ "LibraryLoad", HOST_INITIALISATION },
	{ "StreamCreate", HOST_INITIALISATION },
	{ "GraphInstantiate", HOST_INITIALISATION },
};

/* Classifies a call: copies return when they are done, unless their name has Async. */
static enum host_name classify_call(struct str call)
{
	for (size_t i = 0; i < ARRAY_COUNT(call_beginnings); i++)
		if (str_starts(call, str_from(call_beginnings[i].beginning)))
			return call_beginnings[i].class;
	if ((str_starts(call, STR("Memcpy")) || str_starts(call, STR("MemCpy"))) &&
	    !str_has(call, STR("Async")))
		return HOST_SYNC;
	return HOST_PLAIN;
}

/* Detects "Await", in which JAX waits; PyTorch's Awaitable is an object that is waited for
 * later. */
static bool has_await(struct str name)
{
	size_t at = str_find(name, STR("Await"));

	return at != STR_NONE &&
	       (at + 5 == name.len || name.ptr[at + 5] < 'a' || name.ptr[at + 5] > 'z');
}

static enum host_name classify_host(struct str name)
{
	for (size_t i = 0; i < ARRAY_COUNT(beginnings); i++)
		if (str_starts(name, str_from(beginnings[i].beginning)))
			return beginnings[i].class;
	for (size_t i = 0; i < ARRAY_COUNT(whole_names); i++)
		if (str_eq(name, str_from(whole_names[i].name)))
			return whole_names[i].class;
	if (has_pattern(name, "data", "load") || str_has_ignoring_case(name, "next_batch"))
		return HOST_INPUT;
	if (str_has(name, STR("ynchronize")) || str_has(name, STR("BlockUntilReady")) ||
	    has_await(name) || str_ends(name, STR("_fence_before")) ||
	    str_ends(name, STR("_fence_after")))
		return HOST_SYNC;
	if (skip_library(&name))
		return classify_call(name);
	return str_starts(name, STR("## ")) ? HOST_WRAPPER : HOST_PLAIN;
}

const uint8_t device_name_phases[] = {
	[DEVICE_PLAIN] = PHASE_COMPUTE,
	[DEVICE_COMMUNICATION] = PHASE_COMMUNICATION,
	[DEVICE_TO_DEVICE] = PHASE_COMMUNICATION,
	[DEVICE_FROM_HOST] = PHASE_HOST_TO_DEVICE,
	[DEVICE_TO_HOST] = PHASE_DEVICE_TO_HOST,
	[DEVICE_LOCAL_COPY] = PHASE_COMPUTE,
	[DEVICE_WAIT] = PHASE_UNKNOWN,
};

struct name_class classify_name(struct str name)
{
	/* both cases, because TensorFlow 1 writes MEMCPYHtoD */
	return (struct name_class){ (uint8_t)classify_host(name), (uint8_t)classify_device(name) };
}

int64_t trailing_number(struct str text)
{
	size_t at = text.len;
	int64_t number;

	while (at && text.ptr[at - 1] >= '0' && text.ptr[at - 1] <= '9')
		at--;
	return at < text.len && str_to_i64(str_skip(text, at), &number) ? number : -1;
}

static bool is_lower(char c)
{
	return c >= 'a' && c <= 'z';
}

static bool is_upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Matches [A-Za-z0-9.][A-Za-z0-9_./>-]*. */
static bool is_node_name(struct str s, bool hyphen)
{
	for (size_t i = 0; i < s.len; i++) {
		char c = s.ptr[i];

		if (is_lower(c) || is_upper(c) || is_digit(c) || c == '.')
			continue;
		if (!i || (c != '_' && c != '/' && c != '>' && !(c == '-' && hyphen)))
			return false;
	}
	return s.len > 0;
}

/* Matches [A-Z_][A-Za-z0-9_]*. */
static bool is_node_type(struct str s)
{
	for (size_t i = 0; i < s.len; i++) {
		char c = s.ptr[i];

		if (!is_upper(c) && c != '_' && (!i || (!is_lower(c) && !is_digit(c))))
			return false;
	}
	return s.len > 0;
}

/* Matches [a-z_][a-z0-9_]*(\[.*\])?; returns the part before the bracket, or nothing. */
static struct str jax_type(struct str s)
{
	size_t at = 0;

	while (at < s.len &&
	       (is_lower(s.ptr[at]) || s.ptr[at] == '_' || (at && is_digit(s.ptr[at]))))
		at++;
	if (!at || (at < s.len && (s.ptr[at] != '[' || s.ptr[s.len - 1] != ']')))
		return STR("");
	return str_first(s, at);
}

/* Returns the last component of a name without its unique number: a/b/dense_1 becomes dense. */
static struct str type_of_name(struct str name)
{
	size_t slash = str_rfind_char(name, '/'), end;
	struct str last = slash == STR_NONE ? name : str_skip(name, slash + 1);

	end = last.len;
	while (end && is_digit(last.ptr[end - 1]))
		end--;
	if (end < last.len && end > 1 && last.ptr[end - 1] == '_')
		return str_first(last, end - 1);
	return last;
}

static bool starts_ignoring_case(struct str s, const char *lower)
{
	size_t len = strlen(lower);

	if (s.len < len)
		return false;
	for (size_t i = 0; i < len; i++)
		if ((is_upper(s.ptr[i]) ? s.ptr[i] + ('a' - 'A') : s.ptr[i]) != lower[i])
			return false;
	return true;
}

static struct tf_op_name parse_copy(struct str text)
{
	static const struct {
		const char *beginning, *type;
	} copies[] = {
		{ "memcpyhtod", "MemcpyHToD" },
		{ "memcpydtoh", "MemcpyDToH" },
		{ "memcpydtod", "MemcpyDToD" },
		{ "memcpyhtoh", "MemcpyHToH" },
	};

	for (size_t i = 0; i < ARRAY_COUNT(copies); i++)
		if (starts_ignoring_case(text, copies[i].beginning))
			return (struct tf_op_name){ TF_OP_COPY, text, str_from(copies[i].type) };
	return (struct tf_op_name){ 0 };
}

struct tf_op_name tf_op_name_parse(struct str text, bool hyphen)
{
	size_t colon = str_find_char(text, ':');
	struct str left, right, type, jax;

	if (colon == STR_NONE)
		return parse_copy(text);
	left = str_first(text, colon);
	right = str_skip(text, colon + 1);
	if (str_eq(left, STR("Iterator")))
		return (struct tf_op_name){ TF_OP_DATA, text, STR("Dataset") };
	if (is_node_name(left, hyphen) && is_node_type(right))
		return (struct tf_op_name){ TF_OP_TENSORFLOW, left, right };
	type = right.len ? right : type_of_name(left);
	jax = jax_type(type);
	if (jax.len && left.len)
		return (struct tf_op_name){ TF_OP_JAX, left, jax };
	if (!right.len && left.len)
		return (struct tf_op_name){ TF_OP_TENSORFLOW, left, type };
	return (struct tf_op_name){ 0 };
}

struct str tf_op_name_strip(struct str text)
{
	size_t hash;

	if (text.len < 2 || text.ptr[text.len - 1] != '#')
		return text;
	hash = str_find_char(text, '#');
	return hash && hash + 1 < text.len ? str_first(text, hash) : text;
}

int64_t tf_copy_bytes(struct str details)
{
	static const char *const keys[] = { "num_bytes:", "size:" };

	for (size_t i = 0; i < ARRAY_COUNT(keys); i++) {
		size_t at = str_find(details, str_from(keys[i])), len = 0;
		struct str digits =
			at == STR_NONE ? STR("") : str_skip(details, at + strlen(keys[i]));
		int64_t bytes;

		while (len < digits.len && digits.ptr[len] >= '0' && digits.ptr[len] <= '9')
			len++;
		if (str_to_i64(str_first(digits, len), &bytes))
			return bytes;
	}
	return 0;
}
