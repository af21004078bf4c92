/*
 * system_events.c: opens two events on each processor and reads their rings in the order of time. Called by
 * system_record.c, which knows what the records mean. Needs root, CAP_PERFMON, or kernel.perf_event_paranoid of 0 or less.
 */
#include "live/system/system_events.h"

#include "live/native/native_stacks.h"
#include "live/proc/proc.h"

#include <errno.h>
#include <poll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CLOCK_STACK 8192u
#define SWITCH_STACK 2048u
#define CLOCK_PAGES 512u
#define SWITCH_PAGES 2048u
#define PAGES_LEAST 16u
#define MANY_CPUS 32 /* with more processors the rings are smaller */

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static int open_event(enum system_kind kind, int cpu, uint32_t hz)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.disabled = 1,
		.exclude_hv = 1,
		.sample_id_all = 1,
		.watermark = 1,
	};

	if (kind == SYSTEM_CLOCK) {
		attr.config = PERF_COUNT_SW_CPU_CLOCK;
		attr.sample_period = 1000000000u / hz;
		attr.exclude_idle = 1;
		attr.mmap = attr.mmap2 = attr.comm = attr.comm_exec = attr.task = 1;
		attr.wakeup_watermark = (uint32_t)(CLOCK_PAGES * page_size() / 2);
	} else {
		attr.config = PERF_COUNT_SW_CONTEXT_SWITCHES;
		attr.sample_period = 1;
		attr.context_switch = 1;
		attr.wakeup_watermark = (uint32_t)(SWITCH_PAGES * page_size() / 4);
	}
	native_sample_ask(&attr, kind == SYSTEM_CLOCK ? CLOCK_STACK : SWITCH_STACK);
	return (int)syscall(SYS_perf_event_open, &attr, -1, cpu, -1, PERF_FLAG_FD_CLOEXEC);
}

static int map_ring(struct system_ring *r, size_t pages)
{
	for (; pages >= PAGES_LEAST; pages /= 2) {
		r->size = pages * page_size();
		r->page = mmap(NULL, page_size() + r->size, PROT_READ | PROT_WRITE, MAP_SHARED,
			       r->fd, 0);
		if (r->page != MAP_FAILED)
			return 0;
		r->page = NULL;
		if (errno != EPERM && errno != ENOMEM)
			break;
	}
	return errno;
}

static ow_status explain(int code, struct ow_error *err)
{
	char paranoid[16];

	if (code != EACCES && code != EPERM)
		return error_set(err, OW_E_UNSUPPORTED,
				 "the kernel has no software clock to sample all processors by "
				 "(perf_event_open: %s)",
				 strerror(code));
	if (!proc_read_text("/proc/sys/kernel/perf_event_paranoid", paranoid, sizeof(paranoid)))
		snprintf(paranoid, sizeof(paranoid), "?");
	paranoid[strcspn(paranoid, "\n")] = 0;
	return error_set(err, OW_E_PERMISSION,
			 "the kernel forbids sampling all processors (kernel.perf_event_paranoid "
			 "is %s): run opwatch as root or with CAP_PERFMON, or set it to 0 or "
			 "less; in a container, allow perf_event_open",
			 paranoid);
}

static int open_ring(struct system_events *e, int cpu, enum system_kind kind, uint32_t hz)
{
	struct system_ring *r = &e->rings[(size_t)cpu * SYSTEM_KINDS + kind];
	size_t pages = kind == SYSTEM_CLOCK ? CLOCK_PAGES : SWITCH_PAGES;
	int code;

	r->fd = open_event(kind, cpu, hz);
	if (r->fd < 0)
		return errno;
	code = map_ring(r, e->ring_count > (size_t)MANY_CPUS * SYSTEM_KINDS ? pages / 8 : pages);
	r->next = code ? NULL : mem_alloc(e->mem, SYSTEM_RECORD_MAX);
	return code ? code : r->next ? 0 : ENOMEM;
}

static void close_ring(struct system_events *e, struct system_ring *r)
{
	if (r->page)
		munmap(r->page, page_size() + r->size);
	if (r->fd >= 0)
		close(r->fd);
	mem_free(e->mem, r->next, r->next ? SYSTEM_RECORD_MAX : 0);
	*r = (struct system_ring){ .fd = -1 };
}

/* Continues without samples of waits, because the rest is still useful. */
static void give_up_waits(struct system_events *e, int code)
{
	for (size_t i = SYSTEM_SWITCHES; i < e->ring_count; i += SYSTEM_KINDS)
		close_ring(e, &e->rings[i]);
	e->no_waits = true;
	snprintf(e->why, sizeof(e->why), "perf_event_open: %.100s", strerror(code));
}

ow_status system_events_open(struct system_events *e, struct mem *mem, uint32_t hz, bool waits,
			     struct ow_error *err)
{
	long cpus = sysconf(_SC_NPROCESSORS_CONF);
	int code = 0, failed = 0;

	*e = (struct system_events){ .mem = mem };
	e->ring_count = (size_t)MAX(cpus, 1L) * SYSTEM_KINDS;
	e->rings = mem_zalloc(mem, e->ring_count * sizeof(*e->rings));
	if (!e->rings)
		return error_no_memory(err);
	for (size_t i = 0; i < e->ring_count; i++)
		e->rings[i].fd = -1;
	for (int cpu = 0; cpu < (int)cpus; cpu++) {
		code = open_ring(e, cpu, SYSTEM_CLOCK, hz);
		if (code == ENODEV) { /* the processor is off */
			close_ring(e, &e->rings[(size_t)cpu * SYSTEM_KINDS]);
			continue;
		}
		if (code)
			break;
		e->cpus++;
		if (waits && !e->no_waits && (failed = open_ring(e, cpu, SYSTEM_SWITCHES, hz)) != 0)
			give_up_waits(e, failed);
	}
	if ((code && code != ENODEV) || !e->cpus) {
		system_events_close(e);
		return code == ENOMEM ? error_no_memory(err) : explain(code ? code : ENODEV, err);
	}
	e->no_waits |= !waits;
	for (size_t i = 0; i < e->ring_count; i++)
		if (e->rings[i].fd >= 0)
			ioctl(e->rings[i].fd, PERF_EVENT_IOC_ENABLE, 0);
	return OW_OK;
}

void system_events_stop(struct system_events *e)
{
	for (size_t i = 0; i < e->ring_count; i++)
		if (e->rings[i].fd >= 0)
			ioctl(e->rings[i].fd, PERF_EVENT_IOC_DISABLE, 0);
}

void system_events_close(struct system_events *e)
{
	for (size_t i = 0; i < e->ring_count; i++)
		close_ring(e, &e->rings[i]);
	mem_free(e->mem, e->rings, e->ring_count * sizeof(*e->rings));
	e->rings = NULL;
	e->ring_count = 0;
}

#define POLLED_MAX 1024u

void system_events_wait(const struct system_events *e, int timeout_ms)
{
	struct pollfd fds[POLLED_MAX];
	nfds_t count = 0;

	for (size_t i = 0; i < e->ring_count && count < POLLED_MAX; i++)
		if (e->rings[i].fd >= 0)
			fds[count++] = (struct pollfd){ .fd = e->rings[i].fd, .events = POLLIN };
	poll(fds, count, timeout_ms);
}

static void copy_out(const struct system_ring *r, uint64_t at, void *to, size_t len)
{
	const unsigned char *data = (const unsigned char *)r->page + page_size();
	size_t begin = (size_t)(at & (r->size - 1)), first = MIN(len, r->size - begin);

	if (first)
		memcpy(to, data + begin, first);
	if (len > first)
		memcpy((unsigned char *)to + first, data, len - first);
}

/* Returns the time of a record: a sample has it behind address and thread, other records at
 * their end. */
static int64_t time_of(const struct perf_event_header *h)
{
	const unsigned char *bytes = (const unsigned char *)h;
	size_t at = h->type == PERF_RECORD_SAMPLE ? sizeof(*h) + 16 : (size_t)h->size - 8;
	int64_t ts = 0;

	if (h->size >= sizeof(*h) + 24)
		memcpy(&ts, bytes + at, sizeof(ts));
	return ts;
}

static void load_next(struct system_events *e, struct system_ring *r)
{
	struct perf_event_header header;

	r->has_next = false;
	if (!r->page || !r->next || r->head - r->tail < sizeof(header))
		return;
	copy_out(r, r->tail, &header, sizeof(header));
	if (header.size < sizeof(header) || header.size > r->head - r->tail ||
	    header.size > SYSTEM_RECORD_MAX || r->head - r->tail > r->size) {
		e->damaged += r->head - r->tail;
		r->tail = r->head;
		return;
	}
	copy_out(r, r->tail, r->next, header.size);
	r->tail += header.size;
	r->next_ns = time_of((const struct perf_event_header *)(const void *)r->next);
	r->has_next = true;
}

void system_events_read(struct system_events *e, system_take_fn take, void *arg)
{
	/* reads all positions at nearly the same moment */
	for (size_t i = 0; i < e->ring_count; i++) {
		struct perf_event_mmap_page *page = e->rings[i].page;

		if (!page)
			continue;
		e->rings[i].head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
		e->rings[i].tail = page->data_tail;
	}
	for (size_t i = 0; i < e->ring_count; i++)
		if (e->rings[i].page)
			load_next(e, &e->rings[i]);
	for (;;) {
		size_t first = e->ring_count;

		for (size_t i = 0; i < e->ring_count; i++)
			if (e->rings[i].has_next && (first == e->ring_count ||
						     e->rings[i].next_ns < e->rings[first].next_ns))
				first = i;
		if (first == e->ring_count)
			break;
		take(arg, (enum system_kind)(first % SYSTEM_KINDS),
		     (const struct perf_event_header *)(const void *)e->rings[first].next,
		     e->rings[first].next_ns);
		load_next(e, &e->rings[first]);
	}
	for (size_t i = 0; i < e->ring_count; i++) {
		struct perf_event_mmap_page *page = e->rings[i].page;

		if (page)
			__atomic_store_n(&page->data_tail, e->rings[i].head, __ATOMIC_RELEASE);
	}
}
