/*
 * step_watch.c: calls of a Python function, by a hardware watchpoint on its first instruction. stack_feed.c calls it with each sampled stack
 * and writes what it saw between two turns of the collector. It opens no files of a job and writes nothing into its memory.
 */
#include "live/record/step_watch.h"

#include "base/clock.h"
#include "base/vec.h"

#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define RING_PAGES 8	       /* number of ring pages, a power of two */
#define RING_FIRST 0x40000000u /* first number of rings that do not belong to the recorder */
#define SECOND_NS 1000000000LL
/* CPython 3.11 reads a function's first instruction again when it optimises the function, once: calls
 * closer than this are one call. */
#define APART_NS 500000
/* CPython 3.8 to 3.10 keep the instructions in a bytes object that the code object points to. */
#define OLD_CODE 48
#define OLD_JUMPS 3 /* opcodes from JUMP_ABSOLUTE on have absolute targets */
#define OLD_JUMP 113
#define OLD_CODE_MAX 65536

void step_watches_init(struct step_watches *w, struct mem *mem)
{
	*w = (struct step_watches){ .mem = mem };
}

static size_t page_size(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static void close_watch(struct step_watch *s)
{
	if (s->ring)
		munmap(s->ring, (RING_PAGES + 1) * page_size());
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
	s->ring = NULL;
}

void step_watches_release(struct step_watches *w)
{
	for (size_t i = 0; i < w->count; i++)
		close_watch(&w->items[i]);
	vec_free(w->mem, w->marked, w->marked_cap);
	step_watches_init(w, w->mem);
}

static struct step_marked *marked_of(struct step_watches *w, pid_t pid)
{
	for (size_t i = 0; i < w->marked_count; i++)
		if (w->marked[i].pid == pid)
			return &w->marked[i];
	return NULL;
}

bool step_watch_mark(struct step_watches *w, pid_t pid, const char *name)
{
	struct step_marked *m = marked_of(w, pid);

	if (!m) {
		if (!vec_reserve(w->mem, w->marked, w->marked_cap, w->marked_count + 1))
			return false;
		m = &w->marked[w->marked_count++];
		*m = (struct step_marked){ .pid = pid };
	}
	snprintf(m->name, sizeof(m->name), "%s", name);
	return true;
}

/* Returns whether code has the name "Net.train_step", or its last part if the interpreter keeps
 * only that. */
static bool is_named(const struct py_code *code, struct str marker, uint32_t minor)
{
	size_t dot = str_rfind_char(code->name, '.'), mark = str_rfind_char(marker, '.');
	struct str last = dot == STR_NONE ? code->name : str_skip(code->name, dot + 1);

	if (str_eq(code->name, marker) || str_eq(last, marker))
		return true;
	return minor < 11 && mark != STR_NONE && str_eq(code->name, str_skip(marker, mark + 1));
}

/* Returns whether a loop jumps to the function's first instruction, so that each iteration would count. */
static bool jumps_to_begin(struct py_process *p, uint64_t data, uint64_t size)
{
	unsigned char part[256];

	for (uint64_t at = 0; at < size; at += sizeof(part)) {
		size_t len = (size_t)MIN(size - at, (uint64_t)sizeof(part));

		if (!remote_read(&p->remote, data + at, part, len))
			return true;
		for (size_t i = 0; i + 1 < len; i += 2)
			if (part[i] >= OLD_JUMP && part[i] < OLD_JUMP + OLD_JUMPS &&
			    part[i + 1] == 0)
				return true;
	}
	return false;
}

/* Returns the address of the first instruction; 0 if it cannot be watched. */
static uint64_t first_instruction(struct py_process *p, const struct py_code *code)
{
	const struct py_offsets *o = &p->place.offsets;
	uint64_t bytes, size;

	if (o->minor == 11)
		return code->at + o->co_code;
	if (!remote_read(&p->remote, code->at + OLD_CODE, &bytes, sizeof(bytes)) ||
	    !remote_read(&p->remote, bytes + o->by_size, &size, sizeof(size)) || size < 2 ||
	    size > OLD_CODE_MAX || jumps_to_begin(p, bytes + o->by_data, size))
		return 0;
	return bytes + o->by_data;
}

/* Opens a watchpoint; returns 0, or the errno. */
static int open_watch(struct step_watch *s, uint64_t address)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_BREAKPOINT,
		.size = sizeof(attr),
		.bp_type = HW_BREAKPOINT_RW,
		.bp_addr = address,
		.bp_len = HW_BREAKPOINT_LEN_2,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_TIME,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
	};

	s->fd = (int)syscall(SYS_perf_event_open, &attr, s->tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	if (s->fd < 0)
		return errno;
	s->ring = mmap(NULL, (RING_PAGES + 1) * page_size(), PROT_READ | PROT_WRITE, MAP_SHARED,
		       s->fd, 0);
	if (s->ring != MAP_FAILED)
		return 0;
	s->ring = NULL;
	close_watch(s);
	return EPERM;
}

static void explain(struct step_marked *m, uint32_t process, struct recording *to, const char *why)
{
	char text[RING_MARKER_MAX + 256];
	int len = snprintf(text, sizeof(text), "step marker %s: its calls are not seen: %s",
			   m->name, why);

	if (!m->explained)
		recording_add_text(to, process, LIVE_NOTE, 0,
				   str_make(text, MIN((size_t)len, sizeof(text) - 1)));
	m->explained = true;
}

/* Removes ended threads. */
static void forget_ended(struct step_watches *w)
{
	size_t kept = 0;

	for (size_t i = 0; i < w->count; i++)
		if (syscall(SYS_tgkill, w->items[i].pid, w->items[i].tid, 0) != 0 && errno == ESRCH)
			close_watch(&w->items[i]);
		else
			w->items[kept++] = w->items[i];
	w->count = kept;
}

static void watch_code(struct step_watches *w, struct py_process *p, const struct py_thread *thread,
		       const struct py_code *code, struct step_marked *m, uint32_t process,
		       struct recording *to)
{
	uint64_t address = first_instruction(p, code);
	struct step_watch *s;
	int failed;

	if (!address) {
		explain(m, process, to, "a loop begins with its first instruction");
		return;
	}
	if (w->count == STEP_WATCHES)
		forget_ended(w);
	if (w->count == STEP_WATCHES) {
		explain(m, process, to, "too many threads call it");
		return;
	}
	s = &w->items[w->count];
	*s = (struct step_watch){ .pid = p->pid,
				  .tid = thread->tid,
				  .process = process,
				  .code = code->at,
				  .number = w->opened++,
				  .file = UINT32_MAX };
	failed = open_watch(s, address);
	if (failed == ESRCH)
		return;
	if (failed)
		explain(m, process, to,
			failed == EACCES || failed == EPERM
				? "before Python 3.12 that needs perf_event_open, which the "
				  "kernel or the container forbids"
				: "before Python 3.12 that needs a watchpoint of the processor, "
				  "and none is free");
	w->count++; /* refused threads are kept, too, so that they are not tried again */
}

static struct step_watch *watch_of(struct step_watches *w, pid_t tid, uint64_t code)
{
	for (size_t i = 0; i < w->count; i++)
		if (w->items[i].tid == tid && w->items[i].code == code)
			return &w->items[i];
	return NULL;
}

void step_watch_see(struct step_watches *w, struct py_process *p, const struct py_thread *thread,
		    uint32_t process, struct recording *to)
{
	struct step_marked *m = w->marked_count ? marked_of(w, p->pid) : NULL;

	if (!m || p->place.offsets.minor > 11 || thread->same)
		return;
	for (size_t i = 0; i < thread->frame_count; i++) {
		const struct py_code *code = thread->frames[i].code;

		if (is_named(code, str_from(m->name), p->place.offsets.minor) &&
		    !watch_of(w, thread->tid, code->at))
			watch_code(w, p, thread, code, m, process, to);
	}
}

static void write_record(struct step_watch *s, struct recording *to, struct ring_record record)
{
	struct live_run run = { .process = s->process,
				.ring = RING_FIRST + s->number,
				.first = s->written,
				.count = 1,
				.dropped = s->lost };
	struct ring_record *room = recording_add_run(to, &run);

	if (!room)
		return;
	record.sequence = (uint32_t)s->written++;
	*room = record;
}

static void take_call(struct step_watch *s, struct recording *to, int64_t ts_ns)
{
	bool again = s->calls && ts_ns - s->last_ns < APART_NS;

	s->calls++;
	s->last_ns = ts_ns;
	if (!again)
		write_record(s, to,
			     (struct ring_record){ .kind = RING_SLICE,
						   .category = RING_STEP,
						   .start_ns = (uint64_t)ts_ns });
}

static void copy_from(const struct step_watch *s, uint64_t at, void *to, size_t len)
{
	const size_t size = RING_PAGES * page_size();
	const char *data = (const char *)s->ring + page_size();

	for (size_t i = 0; i < len; i++)
		((char *)to)[i] = data[(at + i) % size];
}

static void read_calls(struct step_watch *s, struct recording *to)
{
	struct perf_event_mmap_page *page = s->ring;
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE), at = page->data_tail;

	while (at < head) {
		struct perf_event_header header;
		uint64_t words[2];

		copy_from(s, at, &header, sizeof(header));
		if (header.size < sizeof(header) || header.size > head - at)
			break;
		if (header.type == PERF_RECORD_SAMPLE && header.size >= sizeof(header) + 8) {
			copy_from(s, at + sizeof(header), words, 8);
			take_call(s, to, (int64_t)words[0]);
		} else if (header.type == PERF_RECORD_LOST && header.size >= sizeof(header) + 16) {
			copy_from(s, at + sizeof(header), words, 16);
			s->lost += words[1];
		}
		at += header.size;
	}
	__atomic_store_n(&page->data_tail, head, __ATOMIC_RELEASE);
}

/* Returns whether the function is called too often, because each call costs the program some
 * microseconds. */
static bool is_too_often(struct step_watch *s, int64_t now_ns)
{
	bool much;

	if (!s->since_ns || now_ns - s->since_ns >= SECOND_NS) {
		much = s->since_ns &&
		       (double)(s->calls + s->lost - s->since_calls) * 1e9 >
			       (double)STEP_WATCH_RATE * (double)(now_ns - s->since_ns);
		s->since_ns = now_ns;
		s->since_calls = s->calls + s->lost;
		return much;
	}
	return s->calls + s->lost - s->since_calls > 2 * STEP_WATCH_RATE;
}

void step_watches_write(struct step_watches *w, struct recording *to, uint32_t file, int64_t now_ns)
{
	for (size_t i = 0; i < w->count; i++) {
		struct step_watch *s = &w->items[i];
		struct step_marked *m = marked_of(w, s->pid);

		if (s->fd < 0)
			continue;
		if (s->file != file)
			write_record(s, to,
				     (struct ring_record){ .kind = RING_THREAD,
							   .id = (uint64_t)s->tid,
							   .bytes = s->tid == s->pid });
		s->file = file;
		read_calls(s, to);
		if (!is_too_often(s, now_ns))
			continue;
		close_watch(s);
		if (m)
			explain(m, s->process, to,
				"from now on, since it is called more than 400 times a second, and "
				"watching that would slow the program down");
	}
}
