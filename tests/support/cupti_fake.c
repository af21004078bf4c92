/*
 * cupti_fake.c: a fake of CUPTI and the CUDA driver for recorder/hook_cuda.c, on a machine without either.
 * tests/cli/record_devices_test.py builds it twice, where CUPTI's headers are installed: with -shared as libcupti.so,
 * and with -DDRIVER as a program that loads the recorder as the driver does (CUDA_INJECTION64_PATH) and lets the
 * library deliver the activities of COUNT steps: a copy to the device, a kernel, a fill, a copy back, the calls that
 * started them, and a wait. Not part of the product.
 */
#include <cupti.h>

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifdef DRIVER
int main(int argc, char **argv)
{
	const char *path = getenv("CUDA_INJECTION64_PATH");
	void *recorder = path ? dlopen(path, RTLD_NOW) : NULL,
	     *cupti = dlopen("libcupti.so", RTLD_NOW);
	int (*initialize)(void) = NULL;
	int (*work)(int) = NULL;

	if (recorder)
		*(void **)&initialize = dlsym(recorder, "InitializeInjection");
	if (cupti)
		*(void **)&work = dlsym(cupti, "fake_work");
	if (!initialize || !work) {
		fprintf(stderr, "%s\n", dlerror());
		return 1;
	}
	return initialize() == 1 ? work(argc > 1 ? atoi(argv[1]) : 1) : 2;
}
#else

#if CUPTI_API_VERSION >= 130000
typedef CUpti_ActivityKernel10 kernel_record;
typedef CUpti_ActivityMemcpy6 copy_record;
#else
typedef CUpti_ActivityKernel9 kernel_record;
typedef CUpti_ActivityMemcpy5 copy_record;
#endif

static CUpti_BuffersCallbackRequestFunc request;
static CUpti_BuffersCallbackCompleteFunc complete;
static CUpti_TimestampCallbackFunc timestamp;
static unsigned enabled;
static size_t sizes[4096];
static int size_count;

CUptiResult cuptiGetVersion(uint32_t *version)
{
	const char *other = getenv("FAKE_CUPTI_VERSION");

	*version = other ? (uint32_t)atoi(other) : CUPTI_API_VERSION;
	return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterCallbacks(CUpti_BuffersCallbackRequestFunc r,
					   CUpti_BuffersCallbackCompleteFunc c)
{
	request = r;
	complete = c;
	return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityRegisterTimestampCallback(CUpti_TimestampCallbackFunc f)
{
	timestamp = f;
	return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityEnable(CUpti_ActivityKind kind)
{
	enabled |= 1u << kind;
	return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityDisable(CUpti_ActivityKind kind)
{
	enabled &= ~(1u << kind);
	return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityFlushPeriod(uint32_t ms)
{
	(void)ms;
	return CUPTI_SUCCESS;
}

CUptiResult cuptiSetThreadIdType(CUpti_ActivityThreadIdType type)
{
	return type == CUPTI_ACTIVITY_THREAD_ID_TYPE_SYSTEM ? CUPTI_SUCCESS : CUPTI_ERROR_UNKNOWN;
}

CUptiResult cuptiGetTimestamp(uint64_t *time)
{
	*time = timestamp ? timestamp() : 0;
	return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNumDroppedRecords(CUcontext context, uint32_t stream, size_t *dropped)
{
	(void)context;
	(void)stream;
	*dropped = 3;
	return CUPTI_SUCCESS;
}

CUptiResult cuptiGetCallbackName(CUpti_CallbackDomain domain, uint32_t id, const char **name)
{
	static const char *const names[] = { "INVALID", "cudaLaunchKernel_v7000",
					     "cudaMemcpyAsync_v3020", "cudaStreamSynchronize_v3020",
					     "cudaGetDevice_v3020" };

	*name = domain == CUPTI_CB_DOMAIN_RUNTIME_API && id < 5 ? names[id] : "cuCtxGetCurrent";
	return CUPTI_SUCCESS;
}

CUptiResult cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, CUpti_Activity **record)
{
	static int at;
	static uint8_t *place;

	if (!*record) {
		at = 0;
		place = buffer;
	}
	if (at >= size_count || place >= buffer + valid)
		return CUPTI_ERROR_MAX_LIMIT_REACHED;
	*record = (CUpti_Activity *)(void *)place;
	place += sizes[at++];
	return CUPTI_SUCCESS;
}

static size_t put(uint8_t *buffer, size_t at, const void *record, size_t size)
{
	memcpy(buffer + at, record, size);
	sizes[size_count++] = size;
	return at + size;
}

#define MS 1000000u

static size_t put_call(uint8_t *buffer, size_t at, uint32_t id, uint32_t thread, uint64_t start,
		       uint64_t end, uint32_t correlation)
{
	CUpti_ActivityAPI a;

	memset(&a, 0, sizeof(a));
	a.kind = CUPTI_ACTIVITY_KIND_RUNTIME;
	a.cbid = id;
	a.start = start;
	a.end = end;
	a.threadId = thread;
	a.correlationId = correlation;
	return put(buffer, at, &a, sizeof(a));
}

static size_t put_copy(uint8_t *buffer, size_t at, uint8_t kind, uint64_t start, uint64_t end,
		       uint32_t correlation)
{
	copy_record c;

	memset(&c, 0, sizeof(c));
	c.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
	c.copyKind = kind;
	c.bytes = 1 << 20;
	c.start = start;
	c.end = end;
	c.contextId = 1;
	c.streamId = 7;
	c.correlationId = correlation;
	return put(buffer, at, &c, sizeof(c));
}

/* Writes one step of 10 ms: 1 ms copy, 5 ms compute, 2 ms copy back. */
static size_t put_step(uint8_t *buffer, size_t at, uint32_t thread, uint64_t start, uint32_t n)
{
	kernel_record k;
	CUpti_ActivityMemset4 m;

	at = put_call(buffer, at, 4, thread, start, start + 1000, n + 9);
	at = put_call(buffer, at, 2, thread, start, start + 5000, n);
	at = put_call(buffer, at, 1, thread, start + 6000, start + 9000, n + 1);
	at = put_call(buffer, at, 3, thread, start + 9000, start + 9 * MS, n + 3);
	at = put_copy(buffer, at, CUPTI_ACTIVITY_MEMCPY_KIND_HTOD, start + 10000, start + MS, n);
	memset(&k, 0, sizeof(k));
	k.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
	k.start = start + MS;
	k.end = start + 6 * MS;
	k.contextId = 1;
	k.streamId = 7;
	k.correlationId = n + 1;
	k.name = "_Z6matmulPKfS0_Pf";
	at = put(buffer, at, &k, sizeof(k));
	memset(&m, 0, sizeof(m));
	m.kind = CUPTI_ACTIVITY_KIND_MEMSET;
	m.bytes = 64;
	m.start = start + 6 * MS;
	m.end = start + 6 * MS + 1000;
	m.contextId = 1;
	m.streamId = 7;
	m.correlationId = n + 2;
	at = put(buffer, at, &m, sizeof(m));
	return put_copy(buffer, at, CUPTI_ACTIVITY_MEMCPY_KIND_DTOH, start + 7 * MS, start + 9 * MS,
			n + 3);
}

struct batch {
	uint8_t *buffer;
	size_t size, used;
};

/* The thread in which CUPTI delivers buffers. */
static void *hand_over(void *arg)
{
	struct batch *b = arg;

	complete(NULL, 0, b->buffer, b->size, b->used);
	return NULL;
}

int fake_work(int count)
{
	struct batch b = { 0 };
	size_t most = 0;
	pthread_t thread;

	if (!request)
		return 0; /* no subscriber is registered */
	if (!timestamp || !(enabled & 1u << CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL))
		return 3;
	for (int i = 0; i < count; i++) {
		uint64_t start = timestamp();

		nanosleep(&(struct timespec){ 0, 10 * MS }, NULL);
		size_count = 0;
		request(&b.buffer, &b.size, &most);
		b.used = put_step(b.buffer, 0, (uint32_t)syscall(SYS_gettid), start,
				  (uint32_t)i * 10 + 1);
		if (pthread_create(&thread, NULL, hand_over, &b) != 0)
			return 4;
		pthread_join(thread, NULL);
	}
	return 0;
}
#endif
