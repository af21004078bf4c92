/*
 * hook_cuda.c: what CUDA devices do: kernels, copies and fills with the device's own times, and the calls that start
 * them or wait for them. The driver loads the recorder (CUDA_INJECTION64_PATH) and calls InitializeInjection; from then on
 * CUPTI hands over buffers of activities, in a thread of its own, some 20 times a second. CUPTI is loaded at run time
 * and must be of the version that the recorder was built with, since its records have no sizes of their own.
 *
 * Built where CUPTI's headers are; never run on a GPU. tests/support/cupti_fake.c plays CUPTI. At the end of the program
 * nothing is flushed: what the device did in its last twentieth of a second may be missing.
 */
#include "recorder.h"

#include <cupti.h>

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#if CUPTI_API_VERSION >= 130000
typedef CUpti_ActivityKernel10 kernel_record;
typedef CUpti_ActivityMemcpy6 copy_record;
#define MAJOR(version) ((version) / 10000)
#else
typedef CUpti_ActivityKernel9 kernel_record;
typedef CUpti_ActivityMemcpy5 copy_record;
#define MAJOR(version) (version) /* early versions of CUPTI are numbered 1, 2, 3, … */
#endif
typedef CUpti_ActivityMemset4 fill_record;

#define BUFFER_BYTES ((size_t)1 << 20)
#define FLUSH_MS 50u
#define STREAMS 1024u
#define FIRST_QUEUE 1024u /* first queue number; queues of OpenCL and NCCL have lower numbers */
#define NAMES 4096u
#define CALLS 4096u

/* Functions of CUPTI that are used, looked up by name; the last ones may be missing. */
#define FUNCTIONS(F)                                                                               \
	F(cuptiGetVersion)                                                                         \
	F(cuptiActivityRegisterCallbacks)                                                          \
	F(cuptiActivityEnable)                                                                     \
	F(cuptiActivityDisable)                                                                    \
	F(cuptiActivityGetNextRecord)                                                              \
	F(cuptiActivityGetNumDroppedRecords)                                                       \
	F(cuptiActivityFlushPeriod)                                                                \
	F(cuptiGetTimestamp)                                                                       \
	F(cuptiGetCallbackName)                                                                    \
	F(cuptiSetThreadIdType)
#define DECLARE(name) static __typeof__(&name) call_##name;
FUNCTIONS(DECLARE)
DECLARE(cuptiActivityRegisterTimestampCallback)

static const CUpti_ActivityKind kinds[] = {
	CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY,
	CUPTI_ACTIVITY_KIND_MEMCPY2,	       CUPTI_ACTIVITY_KIND_MEMSET,
	CUPTI_ACTIVITY_KIND_RUNTIME,	       CUPTI_ACTIVITY_KIND_DRIVER
};

static int64_t offset_ns; /* nanoseconds to add to CUPTI's times to get the clock */
static _Atomic uint32_t armed;

static struct known_name {
	uint64_t hash;
	uint32_t generation, number;
} * names;

static char *(*demangle)(const char *name, char *to, size_t *size, int *status);

static uint64_t hash_of(const char *text)
{
	uint64_t hash = 14695981039346656037u;

	for (; *text; text++)
		hash = (hash ^ (unsigned char)*text) * 1099511628211u;
	return hash;
}

/* Returns the readable name of a kernel; each name is demangled once. */
static uint32_t kernel_name(const struct thread *t, const char *name)
{
	uint64_t hash = name ? hash_of(name) : 0;
	size_t at = hash % NAMES;
	char *plain = NULL;
	int status = 1;

	if (!name)
		return text_of("kernel");
	if (names[at].hash == hash && names[at].generation == t->generation)
		return names[at].number;
	if (demangle && name[0] == '_' && name[1] == 'Z')
		plain = demangle(name, NULL, NULL, &status);
	names[at].hash = hash;
	names[at].generation = t->generation;
	names[at].number = text_of(plain && status == 0 ? plain : name);
	free(plain);
	return names[at].number;
}

enum call_use { CALL_NEW, CALL_SKIPPED, CALL_STARTS, CALL_WAITS };

static struct known_call {
	enum call_use use;
	char name[48];
} (*calls)[CALLS]; /* calls of the runtime library and of the driver */

/* Programs ask thousands of times which device they use: that is left out. Of the driver's interface only launches
 * count, since the run-time library's calls go through it, too. */
static enum call_use call_use(const char *name, bool driver)
{
	static const char *const starts[] = { "Launch", "Memcpy",    "Memset",	     "Malloc",
					      "Free",	"HostAlloc", "HostRegister", "ModuleLoad" };

	if (driver)
		return strncmp(name, "cuLaunch", 8) == 0 || strncmp(name, "cuGraphLaunch", 13) == 0
			       ? CALL_STARTS
			       : CALL_SKIPPED;
	if (strstr(name, "Synchronize"))
		return CALL_WAITS;
	for (size_t i = 0; i < sizeof(starts) / sizeof(*starts); i++)
		if (strstr(name, starts[i]))
			return CALL_STARTS;
	return CALL_SKIPPED;
}

/* Stores the name of a call without its version: "cudaLaunchKernel_v7000". */
static void learn_call(uint32_t number, bool driver)
{
	const char *name = NULL, *end;

	calls[driver][number].use = CALL_SKIPPED;
	if (call_cuptiGetCallbackName(driver ? CUPTI_CB_DOMAIN_DRIVER_API
					     : CUPTI_CB_DOMAIN_RUNTIME_API,
				      number, &name) != CUPTI_SUCCESS ||
	    !name)
		return;
	calls[driver][number].use = call_use(name, driver);
	end = driver ? NULL : strstr(name, "_v");
	snprintf(calls[driver][number].name, sizeof(calls[driver][number].name), "%.*s",
		 end ? (int)(end - name) : 47, name);
}

static struct {
	uint32_t device, context, stream;
	uint32_t recorded; /* generation in which the queue was recorded */
} streams[STREAMS];

static uint32_t queue_of(struct thread *t, uint32_t device, uint32_t context, uint32_t stream)
{
	char name[32], title[32];
	uint32_t i = 1;

	for (; i < STREAMS; i++)
		if (!streams[i].context ||
		    (streams[i].device == device && streams[i].context == context &&
		     streams[i].stream == stream))
			break;
	if (i == STREAMS)
		return 0;
	if (streams[i].context && streams[i].recorded == t->generation)
		return FIRST_QUEUE + i;
	streams[i].device = device;
	streams[i].context = context;
	streams[i].stream = stream;
	streams[i].recorded = t->generation;
	snprintf(name, sizeof(name), "stream %u", stream);
	snprintf(title, sizeof(title), "GPU %u", device);
	push(t, &(struct ring_record){ .start_ns = now_ns(),
				       .kind = RING_QUEUE,
				       .stream = FIRST_QUEUE + i,
				       .name = text_of(name),
				       .id = text_of(title) });
	return FIRST_QUEUE + i;
}

/* Returns the id that joins a call and its work; ids of NCCL are odd. */
static uint64_t correlation_id(uint32_t correlation)
{
	return (uint64_t)correlation * 2;
}

static void push_activity(struct thread *t, enum ring_kind kind, enum ring_category category,
			  uint64_t start, uint64_t end, uint32_t stream, uint32_t correlation,
			  uint32_t name, uint64_t bytes)
{
	if (!start || end < start)
		return; /* the kernel has not run */
	push(t, &(struct ring_record){ .start_ns = start + (uint64_t)offset_ns,
				       .dur_ns = end - start,
				       .bytes = bytes,
				       .id = correlation_id(correlation),
				       .name = name,
				       .stream = stream,
				       .kind = (uint16_t)kind,
				       .category = (uint16_t)category });
}

static void put_kernel(struct thread *t, const kernel_record *k)
{
	push_activity(t, RING_DEVICE, RING_KERNEL, k->start, k->end,
		      queue_of(t, k->deviceId, k->contextId, k->streamId), k->correlationId,
		      kernel_name(t, k->name), 0);
}

static void put_copy(struct thread *t, const copy_record *c)
{
	enum ring_category category = RING_COPY_DEVICE;
	const char *name = "Memcpy DtoD";

	if (c->copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_HTOD ||
	    c->copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_HTOA) {
		category = RING_COPY_TO_DEVICE;
		name = "Memcpy HtoD";
	} else if (c->copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_DTOH ||
		   c->copyKind == CUPTI_ACTIVITY_MEMCPY_KIND_ATOH) {
		category = RING_COPY_TO_HOST;
		name = "Memcpy DtoH";
	}
	push_activity(t, RING_DEVICE, category, c->start, c->end,
		      queue_of(t, c->deviceId, c->contextId, c->streamId), c->correlationId,
		      text_of(name), c->bytes);
}

static void put_fill(struct thread *t, const fill_record *f)
{
	push_activity(t, RING_DEVICE, RING_COPY_DEVICE, f->start, f->end,
		      queue_of(t, f->deviceId, f->contextId, f->streamId), f->correlationId,
		      text_of("Memset"), f->bytes);
}

/* Adds a call to the ring of the thread that made it, which is not the calling thread. */
static void put_call(struct thread *t, const CUpti_ActivityAPI *a, bool driver)
{
	if (a->cbid >= CALLS)
		return;
	if (calls[driver][a->cbid].use == CALL_NEW)
		learn_call(a->cbid, driver);
	if (calls[driver][a->cbid].use == CALL_SKIPPED)
		return;
	push_activity(t, RING_SLICE_OF,
		      calls[driver][a->cbid].use == CALL_WAITS ? RING_CUDA_WAIT : RING_CUDA_CALL,
		      a->start, a->end, a->threadId, a->correlationId,
		      text_of(calls[driver][a->cbid].name), 0);
}

static void put_activity(struct thread *t, const CUpti_Activity *a)
{
	const void *record = a;

	switch (a->kind) {
	case CUPTI_ACTIVITY_KIND_KERNEL:
	case CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL:
		put_kernel(t, record);
		break;
	case CUPTI_ACTIVITY_KIND_MEMCPY:
		put_copy(t, record);
		break;
	case CUPTI_ACTIVITY_KIND_MEMCPY2: {
		const CUpti_ActivityMemcpyPtoP4 *p = record;

		push_activity(t, RING_DEVICE, RING_COPY_DEVICE, p->start, p->end,
			      queue_of(t, p->deviceId, p->contextId, p->streamId), p->correlationId,
			      text_of("Memcpy PtoP"), p->bytes);
		break;
	}
	case CUPTI_ACTIVITY_KIND_MEMSET:
		put_fill(t, record);
		break;
	case CUPTI_ACTIVITY_KIND_RUNTIME:
		put_call(t, record, false);
		break;
	case CUPTI_ACTIVITY_KIND_DRIVER:
		put_call(t, record, true);
		break;
	default:
		break;
	}
}

static void CUPTIAPI on_request(uint8_t **buffer, size_t *size, size_t *most)
{
	*buffer = aligned_alloc(64, BUFFER_BYTES);
	*size = *buffer ? BUFFER_BYTES : 0;
	*most = 0;
}

static void CUPTIAPI on_complete(CUcontext context, uint32_t stream, uint8_t *buffer, size_t size,
				 size_t valid)
{
	CUpti_Activity *a = NULL;
	size_t dropped = 0;
	struct thread *t = NULL;

	(void)size;
	if (enter()) {
		t = thread_current();
		while (t && valid &&
		       call_cuptiActivityGetNextRecord(buffer, valid, &a) == CUPTI_SUCCESS)
			put_activity(t, a);
		if (t &&
		    call_cuptiActivityGetNumDroppedRecords(context, stream, &dropped) ==
			    CUPTI_SUCCESS &&
		    dropped)
			atomic_fetch_add(&t->ring->dropped, dropped);
		leave();
	}
	free(buffer);
}

static uint64_t CUPTIAPI on_time(void)
{
	return now_ns();
}

static void refuse_cuda(const char *why)
{
	char text[160];

	snprintf(text, sizeof(text), "CUDA: %s; device activity is not recorded", why);
	hook_report(RING_HOOK_CUDA, RING_HOOK_UNKNOWN, text);
}

static bool find_functions(void *library)
{
#define FIND(name)                                                                                 \
	*(void **)&call_##name = dlsym(library, #name);                                            \
	if (!call_##name)                                                                          \
		return false;
	FUNCTIONS(FIND)
	*(void **)&call_cuptiActivityRegisterTimestampCallback =
		dlsym(library, "cuptiActivityRegisterTimestampCallback");
	*(void **)&demangle = dlsym(RTLD_DEFAULT, "__cxa_demangle");
	return true;
}

/* Makes CUPTI use our clock, or computes the offset of its own clock. */
static void agree_on_time(void)
{
	uint64_t theirs = 0;

	if (call_cuptiActivityRegisterTimestampCallback &&
	    call_cuptiActivityRegisterTimestampCallback(on_time) == CUPTI_SUCCESS)
		return;
	if (call_cuptiGetTimestamp(&theirs) == CUPTI_SUCCESS)
		offset_ns = (int64_t)(now_ns() - theirs);
}

static bool begin_cupti(void)
{
	uint32_t working = 0;

	agree_on_time();
	if (call_cuptiActivityRegisterCallbacks(on_request, on_complete) != CUPTI_SUCCESS)
		return false;
	call_cuptiSetThreadIdType(CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM);
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		working += call_cuptiActivityEnable(kinds[i]) == CUPTI_SUCCESS;
	call_cuptiActivityFlushPeriod(FLUSH_MS);
	return working > 0;
}

static void *load_cupti(void)
{
	char name[32];
	void *library;

	snprintf(name, sizeof(name), "libcupti.so.%d", CUDA_VERSION / 1000);
	library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
	return library ? library : dlopen("libcupti.so", RTLD_NOW | RTLD_LOCAL);
}

static void arm_cuda(void)
{
	uint32_t version = 0;
	void *library = load_cupti();
	char text[64];

	if (!table_ensure(&names, NAMES * sizeof(*names)) ||
	    !table_ensure(&calls, 2 * sizeof(*calls))) {
		refuse_cuda("it is out of memory");
		return;
	}
	if (!library || !find_functions(library)) {
		refuse_cuda("libcupti.so was not found (set LD_LIBRARY_PATH)");
		return;
	}
	call_cuptiGetVersion(&version);
	if (MAJOR(version) != MAJOR(CUPTI_API_VERSION)) {
		snprintf(text, sizeof(text), "CUPTI has version %u, the recorder was built for %u",
			 version, CUPTI_API_VERSION);
		refuse_cuda(text);
		return;
	}
	if (!begin_cupti()) {
		refuse_cuda("CUPTI refused, or another profiler uses it");
		return;
	}
	snprintf(text, sizeof(text), "CUPTI %u", version);
	hook_report(RING_HOOK_CUDA, RING_HOOK_ARMED, text);
	atomic_store(&armed, 1);
}

void cuda_remove(void)
{
	if (!atomic_exchange(&armed, 0))
		return;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
		call_cuptiActivityDisable(kinds[i]);
	call_cuptiActivityFlushPeriod(0);
	hook_report(RING_HOOK_CUDA, RING_HOOK_REMOVED, NULL);
}

EXPORT int InitializeInjection(void);

EXPORT int InitializeInjection(void)
{
	uint32_t busy = recorder_busy;

	recorder_busy = 1;
	if (recorder_process && !atomic_load(&armed))
		arm_cuda();
	recorder_busy = busy;
	return 1;
}
