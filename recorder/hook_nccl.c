/*
 * hook_nccl.c: collectives and transfers of NCCL, through its profiler plugin (nccl_abi.h). What NCCL calls a
 * collective's end is only the end of its being queued: that is recorded as what the thread did. What the device did
 * is known from the channels, which kernels (from version 3 on) or proxy threads report: it lasts from the first
 * channel's begin to the last one's end, and is recorded on a queue of the communicator.
 *
 * Events are slots that are given out in turns and never freed, since NCCL does not say when a collective is complete:
 * a channel that comes very late finds the slot of another operation, never freed memory.
 */
#include "nccl_abi.h"
#include "recorder.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define COMMUNICATORS 128u
#define OPERATIONS 2048u
#define CHANNELS 8192u
#define FIRST_QUEUE 512u /* first queue number; queues of OpenCL have lower numbers */

struct communicator {
	_Atomic uint32_t taken, recorded;
	uint32_t version;
	char name[80], device[16];
	/* nanoseconds to add to the device's timer to get the clock; 0 = unknown */
	_Atomic int64_t offset_ns;
};

struct operation {
	_Atomic uint32_t open, done; /* number of channels that are open and done */
	_Atomic uint32_t stopped;
	uint32_t expected; /* number of channels, as far as known */
	struct communicator *communicator;
	char function[24];
	uint64_t start_ns, bytes, id;
	_Atomic uint64_t first_ns, last_ns; /* begin and end on the device */
};

struct channel {
	_Atomic uint32_t taken;
	struct operation *operation;
	uint64_t start_ns, timer_start_ns, timer_end_ns;
};

/* Fields that an event has in all versions of the interface. */
struct nccl_event {
	uint64_t type;
	void *parent;
	const char *function, *data_type;
	size_t count;
	uint32_t channels;
	int pid;
	uint64_t timer_ns;
};

static struct communicator communicators[COMMUNICATORS];
static struct operation *operations;
static struct channel *channels;
static _Atomic uint32_t next_operation, next_channel;
static _Atomic uint64_t last_id;

static uint32_t queue_of(const struct communicator *c)
{
	return FIRST_QUEUE + (uint32_t)(c - communicators);
}

static void describe_queue(struct thread *t, struct communicator *c)
{
	if (atomic_exchange(&c->recorded, t->generation) == t->generation)
		return;
	push(t, &(struct ring_record){ .start_ns = now_ns(),
				       .kind = RING_QUEUE,
				       .stream = queue_of(c),
				       .name = text_of(c->name),
				       .id = text_of(c->device) });
}

static void push_nccl_record(struct operation *o, enum ring_kind kind, enum ring_category category,
			     const char *prefix, uint64_t start, uint64_t end)
{
	struct thread *t;
	char name[32];

	if (!enter())
		return;
	t = thread_current();
	if (t) {
		snprintf(name, sizeof(name), "%s%s", prefix, o->function);
		describe_queue(t, o->communicator);
		push(t, &(struct ring_record){ .start_ns = start,
					       .dur_ns = end > start ? end - start : 0,
					       .bytes = o->bytes,
					       .id = o->id,
					       .stream = queue_of(o->communicator),
					       .kind = (uint16_t)kind,
					       .category = (uint16_t)category,
					       .name = text_of(name) });
	}
	leave();
}

/* Ends an operation when all of its open channels have ended. */
static void settle_operation(struct operation *o)
{
	uint64_t first, last;

	if (!atomic_exchange(&o->done, 0))
		return;
	first = atomic_exchange(&o->first_ns, UINT64_MAX);
	last = atomic_exchange(&o->last_ns, 0);
	if (first <= last)
		push_nccl_record(o, RING_DEVICE, RING_COLLECTIVE, "nccl", first, last);
}

static bool is_complete(struct operation *o)
{
	return atomic_load(&o->stopped) && !atomic_load(&o->open) &&
	       atomic_load(&o->done) >= o->expected;
}

static uint64_t data_size(const char *type)
{
	static const struct {
		const char *ending;
		uint8_t bytes;
	} sizes[] = { { "nt8", 1 },  { "nt32", 4 },  { "nt64", 8 },   { "t16", 2 },
		      { "t32", 4 },  { "t64", 8 },   { "e4m3", 1 },   { "e5m2", 1 },
		      { "Half", 2 }, { "Float", 4 }, { "Double", 8 }, { "Char", 1 } };
	size_t len = type ? strlen(type) : 0;

	for (size_t i = 0; i < sizeof(sizes) / sizeof(*sizes); i++) {
		size_t end = strlen(sizes[i].ending);

		if (len >= end && memcmp(type + len - end, sizes[i].ending, end) == 0)
			return sizes[i].bytes;
	}
	return 0;
}

static struct operation *operation_start(struct communicator *c, const struct nccl_event *event)
{
	for (uint32_t i = 0; i < OPERATIONS; i++) {
		struct operation *o =
			&operations[atomic_fetch_add(&next_operation, 1) % OPERATIONS];

		if (atomic_load(&o->open))
			continue;
		if (o->communicator)
			settle_operation(o); /* some channels of the operation never came */
		o->communicator = c;
		snprintf(o->function, sizeof(o->function), "%s",
			 event->function ? event->function : "operation");
		o->bytes = event->count * data_size(event->data_type);
		o->expected = event->channels ? event->channels : 1;
		/* odd, because ids of CUDA are even */
		o->id = atomic_fetch_add(&last_id, 1) * 2 + 1;
		atomic_store(&o->stopped, 0);
		atomic_store(&o->first_ns, UINT64_MAX);
		atomic_store(&o->last_ns, 0);
		o->start_ns = now_ns();
		return o;
	}
	return NULL;
}

static void operation_stop(struct operation *o)
{
	push_nccl_record(o, RING_SLICE, RING_CUDA_CALL, "nccl:", o->start_ns, now_ns());
	atomic_store(&o->stopped, 1);
	if (is_complete(o))
		settle_operation(o);
}

static bool is_operation(const void *p)
{
	uintptr_t at = (uintptr_t)p, begin = (uintptr_t)operations;

	return at >= begin && at < begin + OPERATIONS * sizeof(*operations) &&
	       (at - begin) % sizeof(struct operation) == 0;
}

static struct channel *channel_start(const struct nccl_event *event)
{
	/* the event belongs to another process, so its pointers are not valid here */
	if (!is_operation(event->parent) || (event->pid && event->pid != getpid()))
		return NULL;
	for (uint32_t i = 0; i < 64; i++) {
		struct channel *c = &channels[atomic_fetch_add(&next_channel, 1) % CHANNELS];
		uint32_t none = 0;

		if (!atomic_compare_exchange_strong(&c->taken, &none, 1))
			continue;
		c->operation = event->parent;
		c->start_ns = now_ns();
		c->timer_start_ns = event->timer_ns;
		c->timer_end_ns = 0;
		atomic_fetch_add(&c->operation->open, 1);
		return c;
	}
	return NULL;
}

/* Learns the offset of the device's timer. The host sees a device time with some delay; the
 * shortest delay is closest to the truth. */
static int64_t learn_offset(struct communicator *c, uint64_t host_ns, uint64_t timer_ns)
{
	int64_t seen = atomic_load(&c->offset_ns), now = (int64_t)(host_ns - timer_ns);

	if (seen && seen <= now)
		return seen;
	atomic_store(&c->offset_ns, now);
	return now;
}

static void lower_to(_Atomic uint64_t *value, uint64_t to)
{
	uint64_t old = atomic_load(value);

	while (to < old && !atomic_compare_exchange_weak(value, &old, to))
		;
}

static void raise_to(_Atomic uint64_t *value, uint64_t to)
{
	uint64_t old = atomic_load(value);

	while (to > old && !atomic_compare_exchange_weak(value, &old, to))
		;
}

static void channel_stop(struct channel *c)
{
	struct operation *o = c->operation;
	uint64_t start = c->start_ns, end = now_ns();

	if (c->timer_start_ns && c->timer_end_ns > c->timer_start_ns) {
		learn_offset(o->communicator, start, c->timer_start_ns);
		start = c->timer_start_ns +
			(uint64_t)learn_offset(o->communicator, end, c->timer_end_ns);
		end = start + (c->timer_end_ns - c->timer_start_ns);
	}
	lower_to(&o->first_ns, start);
	raise_to(&o->last_ns, end);
	atomic_fetch_add(&o->done, 1);
	atomic_store(&c->taken, 0);
	atomic_fetch_sub(&o->open, 1);
	if (is_complete(o))
		settle_operation(o);
}

/* Writes the name of the device that the thread uses now, as in hook_cuda.c: its kernels carry
 * out the operation. */
static void name_device(char *name, size_t size)
{
	void *library = dlopen("libcuda.so.1", RTLD_NOLOAD | RTLD_NOW);
	int (*current)(int *) = NULL;
	int device = 0;

	if (library)
		*(void **)&current = dlsym(library, "cuCtxGetDevice");
	if (current && current(&device) == 0)
		snprintf(name, size, "GPU %d", device);
	else
		snprintf(name, size, "NCCL");
	if (library)
		dlclose(library);
}

static int begin_communicator(void **context, int *mask, uint32_t version, const char *name,
			      uint64_t hash, int ranks, int rank)
{
	char title[48];

	*context = NULL;
	*mask = 0;
	if (!recorder_process || !table_ensure(&operations, OPERATIONS * sizeof(*operations)) ||
	    !table_ensure(&channels, CHANNELS * sizeof(*channels)))
		return 0;
	for (uint32_t i = 0; i < COMMUNICATORS; i++) {
		struct communicator *c = &communicators[i];
		uint32_t none = 0;

		if (!atomic_compare_exchange_strong(&c->taken, &none, 1))
			continue;
		c->version = version;
		atomic_store(&c->recorded, 0);
		atomic_store(&c->offset_ns, 0);
		if (ranks > 0)
			snprintf(c->name, sizeof(c->name), "%.24s %.16llx, rank %d of %d",
				 name && *name ? name : "communicator", (unsigned long long)hash,
				 rank, ranks);
		else
			snprintf(c->name, sizeof(c->name), "communicator %u", i + 1);
		name_device(c->device, sizeof(c->device));
		*context = c;
		*mask = NCCL_COLLECTIVE | NCCL_POINT_TO_POINT |
			(version >= 3 ? NCCL_KERNEL_CHANNEL : NCCL_PROXY_OPERATION);
		break;
	}
	snprintf(title, sizeof(title), "NCCL profiler interface %u", version);
	hook_report(RING_HOOK_NCCL, RING_HOOK_ARMED, title);
	return 0;
}

static int end_communicator(void *context)
{
	struct communicator *c = context;

	if (c)
		atomic_store(&c->taken, 0);
	return 0;
}

static int start_event(void *context, void **handle, const struct nccl_event *event)
{
	*handle = NULL;
	if (!context)
		return 0;
	if (event->type == NCCL_COLLECTIVE || event->type == NCCL_POINT_TO_POINT)
		*handle = operation_start(context, event);
	else if (event->type == NCCL_PROXY_OPERATION || event->type == NCCL_KERNEL_CHANNEL)
		*handle = channel_start(event);
	return 0;
}

static int stop_event(void *handle)
{
	if (!handle)
		return 0;
	if (is_operation(handle))
		operation_stop(handle);
	else
		channel_stop(handle);
	return 0;
}

static int keep_state(void *handle, int state, const union nccl_state *with)
{
	(void)handle;
	(void)state;
	(void)with;
	return 0;
}

static int keep_time(void *handle, int state, const union nccl_state *with)
{
	if (handle && with && state == NCCL_STATE_KERNEL_STOP && !is_operation(handle))
		((struct channel *)handle)->timer_end_ns = with->kernel.timer_ns;
	return 0;
}

static const char *const functions_v1[] = { "Broadcast", "Reduce",   "AllGather", "ReduceScatter",
					    "AllReduce", "SendRecv", "Send",	  "Recv" };
static const char *const types_v1[] = { "Int8",	  "Uint8",   "Int32",	"Uint32",  "Int64",
					"Uint64", "Float16", "Float32", "Float64", "Bfloat16" };

#define NAME_OF(list, number) ((number) < sizeof(list) / sizeof(*(list)) ? (list)[number] : NULL)

static int start_v1(void *context, void **handle, const struct nccl_event_v1 *e)
{
	struct nccl_event event = { .type = e->type, .parent = e->parent };

	if (e->type == NCCL_COLLECTIVE) {
		event.function = NAME_OF(functions_v1, e->collective.function);
		event.data_type = NAME_OF(types_v1, e->collective.data_type);
		event.count = e->collective.count;
	} else if (e->type == NCCL_POINT_TO_POINT) {
		event.function = NAME_OF(functions_v1, e->point.function);
		event.data_type = NAME_OF(types_v1, e->point.data_type);
		event.count = e->point.count;
	} else if (e->type == NCCL_PROXY_OPERATION) {
		event.pid = e->proxy.pid;
	}
	return start_event(context, handle, &event);
}

/* Later ones differ in where things are. Versions 1 and 2 have no kernel channels, and how many proxy operations
 * there will be is unknown. */
#define START(version, kernel_channels, channels_of_point, timer)                                  \
	static int start_v##version(void *context, void **handle,                                  \
				    const struct nccl_event_v##version *e)                         \
	{                                                                                          \
		struct nccl_event event = { .type = e->type, .parent = e->parent };                \
                                                                                                   \
		if (e->type == NCCL_COLLECTIVE) {                                                  \
			event.function = e->collective.function;                                   \
			event.data_type = e->collective.data_type;                                 \
			event.count = e->collective.count;                                         \
			event.channels = (kernel_channels) ? e->collective.channels : 0;           \
		} else if (e->type == NCCL_POINT_TO_POINT) {                                       \
			event.function = e->point.function;                                        \
			event.data_type = e->point.data_type;                                      \
			event.count = e->point.count;                                              \
			event.channels = channels_of_point;                                        \
		} else if (e->type == NCCL_PROXY_OPERATION) {                                      \
			event.pid = e->proxy.pid;                                                  \
		} else if (e->type == NCCL_KERNEL_CHANNEL) {                                       \
			event.timer_ns = timer;                                                    \
		}                                                                                  \
		return start_event(context, handle, &event);                                       \
	}

START(2, false, 0, 0)
START(3, true, 0, 0)
START(4, true, e->point.channels, e->kernel.timer_ns)
START(5, true, e->point.channels, e->kernel.timer_ns)

static int begin_v1(void **context, int *mask)
{
	return begin_communicator(context, mask, 1, NULL, 0, 0, 0);
}

static int begin_v2(void **context, int *mask)
{
	return begin_communicator(context, mask, 2, NULL, 0, 0, 0);
}

static int begin_v3(void **context, int *mask)
{
	return begin_communicator(context, mask, 3, NULL, 0, 0, 0);
}

static int begin_v4(void **context, int *mask, const char *name, uint64_t hash, int nodes,
		    int ranks, int rank, void *log)
{
	(void)nodes;
	(void)log;
	return begin_communicator(context, mask, 4, name, hash, ranks, rank);
}

static int begin_v5(void **context, uint64_t id, int *mask, const char *name, int nodes, int ranks,
		    int rank, void *log)
{
	(void)nodes;
	(void)log;
	return begin_communicator(context, mask, 5, name, id, ranks, rank);
}

#define PLUGIN(version, on_state)                                                                  \
	extern const struct nccl_plugin_v##version ncclProfiler_v##version;                        \
	EXPORT const struct nccl_plugin_v##version ncclProfiler_v##version = {                     \
		"opwatch",  begin_v##version, start_v##version,                                    \
		stop_event, on_state,	      end_communicator                                     \
	}

PLUGIN(1, keep_state);
PLUGIN(2, keep_state);
PLUGIN(3, keep_state);
PLUGIN(4, keep_time);
PLUGIN(5, keep_time);
