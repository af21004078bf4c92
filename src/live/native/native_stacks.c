/* native_events.c: see native_events.h. */
#include "live/native_events.h"

#include "live/processes.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define RING_PAGES 32 /* a power of two */
#define RING_PAGES_LEAST 8
#define STACK_BYTES 8192
#define RECORD_MAX ((size_t)65536)

#if defined(__x86_64__)
/* By the bit of perf's mask: the DWARF number. */
static const int8_t dwarf_number[] = { 0,  3,  2,  1,  4, 5, 6,	 7,  16, -1, -1, -1,
				       -1, -1, -1, -1, 8, 9, 10, 11, 12, 13, 14, 15 };
#define REGISTER_MASK ((uint64_t)0xff01ff)
#define REGISTER_COUNT 17
#define REGISTER_SP 7
#define REGISTER_PC 16
#elif defined(__aarch64__)
static const int8_t dwarf_number[] = { 0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10,
				       11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
				       22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32 };
#define REGISTER_MASK (((uint64_t)1 << 33) - 1)
#define REGISTER_COUNT 33
#define REGISTER_SP 31
#define REGISTER_PC 32
#else
static const int8_t dwarf_number[] = { -1 };
#define REGISTER_MASK ((uint64_t)0)
#define REGISTER_COUNT 0
#define REGISTER_SP 0
#define REGISTER_PC 0
#endif

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static int open_event(pid_t tid, uint64_t period_ns)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = period_ns,
		.wakeup_events = 1,
		.sample_type =
			PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.exclude_callchain_kernel = 1,
		.comm = 1,
		.comm_exec = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};

	if (REGISTER_MASK) {
		attr.sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
		attr.sample_regs_user = REGISTER_MASK;
		attr.sample_stack_user = STACK_BYTES;
	}
	return (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static ow_status explain(pid_t pid, int code, struct error *err)
{
	char paranoid[16];

	if (code == ESRCH)
		return error_set(err, OW_E_NOT_FOUND, "no process has the id %d (any more)",
				 (int)pid);
	if (code != EACCES && code != EPERM)
		return error_set(err, OW_E_UNSUPPORTED,
				 "native stacks of process %d: the kernel has no software clock to "
				 "sample by (perf_event_open: %s)",
				 (int)pid, strerror(code));
	if (!proc_read_text("/proc/sys/kernel/perf_event_paranoid", paranoid, sizeof(paranoid)))
		snprintf(paranoid, sizeof(paranoid), "?");
	paranoid[strcspn(paranoid, "\n")] = 0;
	return error_set(
		err, OW_E_PERMISSION,
		"native stacks of process %d: the kernel does not let us "
		"(kernel.perf_event_paranoid is %s): run opwatch as root, or set it to 2 or "
		"less; in a container, allow perf_event_open",
		(int)pid, paranoid);
}

static void close_thread(struct native_thread *t)
{
	if (t->ring)
		munmap(t->ring, page_size() + t->ring_size);
	if (t->fd >= 0)
		close(t->fd);
}

/* Users may have so much of it only: many threads have small ones. 0, or the errno. */
static int map_ring(struct native_thread *t)
{
	for (size_t pages = RING_PAGES; pages >= RING_PAGES_LEAST; pages /= 2) {
		t->ring_size = pages * page_size();
		t->ring = mmap(NULL, page_size() + t->ring_size, PROT_READ | PROT_WRITE, MAP_SHARED,
			       t->fd, 0);
		if (t->ring != MAP_FAILED)
			return 0;
		if (errno != EPERM)
			break;
	}
	t->ring = NULL;
	return errno == EPERM ? EACCES : errno;
}

/* 0, or the errno. */
static int open_thread(struct native_events *e, pid_t tid)
{
	struct native_thread t = { .tid = tid, .seen = true };
	void *threads = e->threads;
	int code;

	if (!mem_grow(e->mem, &threads, &e->cap, e->count + 1, sizeof(*e->threads)))
		return ENOMEM;
	e->threads = threads;
	t.fd = open_event(tid, e->period_ns);
	if (t.fd < 0)
		return errno;
	code = map_ring(&t);
	if (code) {
		close_thread(&t);
		return code;
	}
	ioctl(t.fd, PERF_EVENT_IOC_ENABLE, 0);
	e->threads[e->count++] = t;
	return 0;
}

static bool has_thread(struct native_events *e, pid_t tid)
{
	for (size_t i = 0; i < e->count; i++)
		if (e->threads[i].tid == tid)
			return e->threads[i].seen = true;
	return false;
}

/* The last samples of one that has ended are read before it is looked for again. */
static void forget_ended(struct native_events *e)
{
	size_t kept = 0;

	for (size_t i = 0; i < e->count; i++) {
		struct native_thread *t = &e->threads[i];

		if (t->seen || !t->ended) {
			t->ended |= !t->seen;
			e->threads[kept++] = *t;
		} else {
			close_thread(t);
		}
	}
	e->count = kept;
}

/* *code is the errno of the first refusal. */
static bool look(struct native_events *e, int *code)
{
	struct pid_list tids = { .mem = e->mem };
	bool good = proc_threads(e->pid, &tids);
	uint64_t refused_now = 0;

	*code = 0;
	for (size_t i = 0; i < e->count; i++)
		e->threads[i].seen = false;
	for (size_t i = 0; good && i < tids.count; i++) {
		int refused = has_thread(e, tids.items[i]) ? 0 : open_thread(e, tids.items[i]);

		*code = *code ? *code : refused;
		refused_now += refused && refused != ESRCH;
		good = refused != ENOMEM;
	}
	pid_list_release(&tids);
	e->refused = MAX(e->refused, refused_now);
	if (good)
		forget_ended(e);
	return good;
}

static void close_threads(struct native_events *e)
{
	for (size_t i = 0; i < e->count; i++)
		close_thread(&e->threads[i]);
	e->count = 0;
}

bool native_events_look(struct native_events *e)
{
	int code;

	/* The thread that executed it has the number of the first one now. */
	if (e->other_program)
		close_threads(e);
	e->other_program = false;
	return look(e, &code);
}

size_t native_events_poll(const struct native_events *e, struct pollfd *fds, size_t cap)
{
	size_t count = MIN(e->count, cap);

	for (size_t i = 0; i < count; i++)
		fds[i] = (struct pollfd){ .fd = e->threads[i].ended ? -1 : e->threads[i].fd,
					  .events = POLLIN };
	return count;
}

void native_events_polled(struct native_events *e, const struct pollfd *fds, size_t count)
{
	for (size_t i = 0; i < count && i < e->count; i++)
		e->threads[i].ended |= (fds[i].revents & (POLLIN | POLLHUP)) == POLLHUP;
}

ow_status native_events_open(struct native_events *e, struct mem *mem, pid_t pid, uint32_t hz,
			     struct error *err)
{
	int code;

	*e = (struct native_events){ .mem = mem,
				     .pid = pid,
				     .period_ns = 1000000000 / MAX(hz, 1u) };
	e->scratch = mem_alloc(mem, RECORD_MAX);
	if (!e->scratch || !look(e, &code)) {
		native_events_close(e);
		return error_no_memory(err);
	}
	if (e->count)
		return OW_OK;
	native_events_close(e);
	return explain(pid, code ? code : ESRCH, err);
}

void native_events_close(struct native_events *e)
{
	close_threads(e);
	mem_free(e->mem, e->threads, e->cap * sizeof(*e->threads));
	mem_free(e->mem, e->scratch, e->scratch ? RECORD_MAX : 0);
	*e = (struct native_events){ .mem = e->mem };
}

/* ---- records ---- */

struct cursor {
	const unsigned char *at;
	size_t left;
	bool bad;
};

static uint64_t next(struct cursor *c)
{
	uint64_t word = 0;

	if (c->left < 8) {
		c->bad = true;
		return 0;
	}
	memcpy(&word, c->at, 8);
	c->at += 8;
	c->left -= 8;
	return word;
}

static const void *skip(struct cursor *c, uint64_t bytes)
{
	const void *at = c->at;

	if (bytes > c->left) {
		c->bad = true;
		return NULL;
	}
	c->at += bytes;
	c->left -= (size_t)bytes;
	return at;
}

static void take_registers(struct cursor *c, struct native_sample *s)
{
	if (!REGISTER_MASK || !next(c)) /* which kind; 0: none */
		return;
	for (size_t i = 0; i < ARRAY_COUNT(dwarf_number); i++)
		if (REGISTER_MASK >> i & 1)
			s->registers[dwarf_number[i]] = next(c);
	s->register_count = REGISTER_COUNT;
	s->pc = s->registers[REGISTER_PC];
	s->sp = s->registers[REGISTER_SP];
}

static bool take_sample(const unsigned char *bytes, size_t len, struct native_sample *s)
{
	struct cursor c = { bytes, len, false };
	uint64_t ids, size;

	*s = (struct native_sample){ .pc = next(&c) };
	ids = next(&c);
	s->pid = (pid_t)(uint32_t)ids;
	s->tid = (pid_t)(ids >> 32);
	s->ts_ns = (int64_t)next(&c);
	s->chain_count = (size_t)next(&c);
	s->chain = s->chain_count < RECORD_MAX ? skip(&c, s->chain_count * 8) : NULL;
	if (!s->chain)
		return false;
	take_registers(&c, s);
	if (REGISTER_MASK && (size = next(&c)) != 0) {
		uint64_t used;

		s->stack = skip(&c, size);
		used = next(&c);
		s->stack_size = (size_t)MIN(used, size);
	}
	return !c.bad;
}

static void copy_out(const struct native_thread *t, uint64_t at, void *to, size_t len)
{
	const unsigned char *data = (const unsigned char *)t->ring + page_size();
	size_t size = t->ring_size, begin = (size_t)(at & (size - 1)),
	       first = MIN(len, size - begin);

	memcpy(to, data + begin, first);
	memcpy((unsigned char *)to + first, data, len - first);
}

static void read_thread(struct native_events *e, struct native_thread *t, native_take_fn take,
			void *arg)
{
	struct perf_event_mmap_page *page = t->ring;
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE), tail = page->data_tail;

	while (head - tail >= sizeof(struct perf_event_header) && head - tail <= t->ring_size &&
	       !e->other_program) {
		struct perf_event_header header;
		struct native_sample sample;
		uint64_t lost[2];

		copy_out(t, tail, &header, sizeof(header));
		if (header.size < sizeof(header) || header.size > head - tail)
			break;
		copy_out(t, tail + sizeof(header), e->scratch, header.size - sizeof(header));
		if (header.type == PERF_RECORD_SAMPLE &&
		    take_sample(e->scratch, header.size - sizeof(header), &sample))
			take(arg, &sample);
		e->other_program = header.type == PERF_RECORD_COMM &&
				   (header.misc & PERF_RECORD_MISC_COMM_EXEC);
		if (header.type == PERF_RECORD_LOST &&
		    header.size >= sizeof(header) + sizeof(lost)) {
			memcpy(lost, e->scratch, sizeof(lost));
			e->lost += lost[1];
		}
		tail += header.size;
	}
	__atomic_store_n(&page->data_tail, head, __ATOMIC_RELEASE);
}

void native_events_read(struct native_events *e, native_take_fn take, void *arg)
{
	for (size_t i = 0; i < e->count; i++)
		read_thread(e, &e->threads[i], take, arg);
}
