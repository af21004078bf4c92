/*
 * native_stacks.c: samples native stacks with perf_event_open (one ring per thread) and unwinds them with
 * elfutils' libdw, which also names addresses. Called by native_rows.c. The process is neither stopped nor written
 * to; without libdw every call fails with OW_E_UNSUPPORTED.
 */
#include "live/native/native_stacks.h"

#include "base/input.h"
#include "base/vec.h"

#include "live/proc/proc.h"
#include "opwatch_config.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define RING_PAGES 32 /* number of ring pages, a power of two */
#define RING_PAGES_LEAST 8
#define STACK_BYTES 8192
#define RECORD_MAX ((size_t)65536)

#if defined(__x86_64__)
/* DWARF number of each bit in perf's register mask. */
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

void native_sample_ask(struct perf_event_attr *attr, uint32_t stack_bytes)
{
	attr->sample_type =
		PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_TIME | PERF_SAMPLE_CALLCHAIN;
	if (REGISTER_MASK) {
		attr->sample_type |= PERF_SAMPLE_REGS_USER | PERF_SAMPLE_STACK_USER;
		attr->sample_regs_user = REGISTER_MASK;
		attr->sample_stack_user = stack_bytes;
	}
	attr->use_clockid = 1;
	attr->clockid = CLOCK_MONOTONIC;
}

static int open_event(pid_t tid, uint64_t period_ns)
{
	struct perf_event_attr attr = {
		.type = PERF_TYPE_SOFTWARE,
		.size = sizeof(attr),
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = period_ns,
		.wakeup_events = 1,
		.disabled = 1,
		.exclude_kernel = 1,
		.exclude_hv = 1,
		.exclude_callchain_kernel = 1,
		.comm = 1,
		.comm_exec = 1,
	};

	native_sample_ask(&attr, STACK_BYTES);
	return (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static ow_status explain_open_failure(pid_t pid, int code, struct ow_error *err)
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
	return error_set(err, OW_E_PERMISSION,
			 "native stacks of process %d: the kernel forbids sampling "
			 "(kernel.perf_event_paranoid is %s): run opwatch as root, or set it to 2 "
			 "or less; in a container, allow perf_event_open",
			 (int)pid, paranoid);
}

static void close_thread(struct native_thread *t)
{
	if (t->ring)
		munmap(t->ring, page_size() + t->ring_size);
	if (t->fd >= 0)
		close(t->fd);
}

/* Maps a ring. The kernel limits this memory per user, so jobs with many threads get small rings. Returns
 * 0 or an errno. */
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

/* Opens the events of a thread; returns 0 or the errno. */
static int open_thread(struct native_events *e, pid_t tid)
{
	struct native_thread t = { .tid = tid, .seen = true };
	int code;

	if (!vec_reserve(e->mem, e->threads, e->cap, e->count + 1))
		return ENOMEM;
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

/* Closes threads that have ended, after their last samples were read. */
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

/* Opens new threads; *code becomes the errno of the first refusal. */
static bool open_new_threads(struct native_events *e, int *code)
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

bool native_events_refresh(struct native_events *e)
{
	int code;

	/* after exec, the executing thread has the number of the first one */
	if (e->other_program)
		close_threads(e);
	e->other_program = false;
	return open_new_threads(e, &code);
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
			     struct ow_error *err)
{
	int code;

	*e = (struct native_events){ .mem = mem,
				     .pid = pid,
				     .period_ns = 1000000000 / MAX(hz, 1u) };
	e->scratch = mem_alloc(mem, RECORD_MAX);
	if (!e->scratch || !open_new_threads(e, &code)) {
		native_events_close(e);
		return error_no_memory(err);
	}
	if (e->count)
		return OW_OK;
	native_events_close(e);
	return explain_open_failure(pid, code ? code : ESRCH, err);
}

void native_events_close(struct native_events *e)
{
	close_threads(e);
	mem_free(e->mem, e->threads, e->cap * sizeof(*e->threads));
	mem_free(e->mem, e->scratch, e->scratch ? RECORD_MAX : 0);
	*e = (struct native_events){ .mem = e->mem };
}

struct cursor {
	const unsigned char *at;
	size_t left;
	bool bad;
};

static uint64_t take_word(struct cursor *c)
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

static const void *take_bytes(struct cursor *c, uint64_t bytes)
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
	if (!REGISTER_MASK || !take_word(c)) /* register ABI; 0: no registers */
		return;
	for (size_t i = 0; i < ARRAY_COUNT(dwarf_number); i++)
		if (REGISTER_MASK >> i & 1)
			s->registers[dwarf_number[i]] = take_word(c);
	s->register_count = REGISTER_COUNT;
	s->pc = s->registers[REGISTER_PC];
	s->sp = s->registers[REGISTER_SP];
}

bool native_sample_take(const unsigned char *bytes, size_t len, struct native_sample *s)
{
	struct cursor c = { bytes, len, false };
	uint64_t ids, size;

	*s = (struct native_sample){ .pc = take_word(&c) };
	ids = take_word(&c);
	s->pid = (pid_t)(uint32_t)ids;
	s->tid = (pid_t)(ids >> 32);
	s->ts_ns = (int64_t)take_word(&c);
	s->chain_count = (size_t)take_word(&c);
	s->chain = s->chain_count < RECORD_MAX ? take_bytes(&c, s->chain_count * 8) : NULL;
	if (!s->chain)
		return false;
	take_registers(&c, s);
	if (REGISTER_MASK && (size = take_word(&c)) != 0) {
		uint64_t used;

		s->stack = take_bytes(&c, size);
		used = take_word(&c);
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
		    native_sample_take(e->scratch, header.size - sizeof(header), &sample))
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

#if OPWATCH_HAVE_LIBDW

#include "base/clock.h"

#include <elfutils/libdwfl.h>

#define REPORT_NS 1000000000 /* time between two searches for new libraries */

struct native_unwind {
	struct mem *mem;
	pid_t pid;
	Dwfl *dwfl;
	bool attached;
	int64_t reported_ns;
	struct remote remote;
	struct buf map; /* text of /tmp/perf-PID.map */
	/* State while one sample is unwound. */
	const struct native_sample *sample;
	uint64_t *pcs;
	size_t count;
};

/* Disables the search for separate debug files: symbols and tables of the files themselves are
 * enough. */
static int find_no_debuginfo(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
			     const char *file, const char *link, GElf_Word crc, char **found)
{
	(void)module, (void)data, (void)name, (void)base, (void)file, (void)link, (void)crc;
	*found = NULL;
	return -1;
}

/* Process whose modules libdw is opening, because libdw's callback has no argument for it. */
static _Thread_local pid_t module_pid;

/* Opens the file as the process sees it, also in a container; a file whose read could block is
 * left out. */
static int find_elf(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
		    char **file_name, Elf **elf)
{
	char path[4096 + 32];
	int fd;

	if (name[0] != '/')
		return dwfl_linux_proc_find_elf(module, data, name, base, file_name, elf);
	snprintf(path, sizeof(path), "/proc/%d/root%s", (int)module_pid, name);
	fd = open_regular_file(path);
	if (fd < 0)
		return -1;
	*file_name = strdup(name);
	*elf = NULL;
	return fd;
}

static const Dwfl_Callbacks callbacks = {
	.find_elf = find_elf,
	.find_debuginfo = find_no_debuginfo,
};

static pid_t next_thread(Dwfl *dwfl, void *arg, void **thread_arg)
{
	struct native_unwind *u = arg;

	(void)dwfl;
	if (*thread_arg)
		return 0;
	*thread_arg = u;
	return u->sample->tid;
}

static bool get_thread(Dwfl *dwfl, pid_t tid, void *arg, void **thread_arg)
{
	(void)dwfl, (void)tid;
	*thread_arg = arg;
	return true;
}

/* Reads memory: the stack from the sample; other memory from the process, as it does not change. */
static bool read_memory(Dwfl *dwfl, Dwarf_Addr at, Dwarf_Word *word, void *arg)
{
	struct native_unwind *u = arg;
	const struct native_sample *s = u->sample;

	(void)dwfl;
	if (at >= s->sp && at - s->sp < s->stack_size && s->stack_size - (at - s->sp) >= 8) {
		memcpy(word, s->stack + (at - s->sp), 8);
		return true;
	}
	if (at >= s->sp && at - s->sp < ((uint64_t)8 << 20))
		return false; /* stack beyond the sampled part has changed since */
	return remote_read(&u->remote, at, word, 8);
}

static bool set_registers(Dwfl_Thread *thread, void *arg)
{
	struct native_unwind *u = arg;
	const struct native_sample *s = u->sample;
	Dwarf_Word words[NATIVE_REGISTERS];
	unsigned count = s->register_count;

	if (!count)
		return false;
	dwfl_thread_state_register_pc(thread, s->pc);
	for (unsigned i = 0; i < count; i++)
		words[i] = s->registers[i];
	/* the last register is the pc, which not all machines count among them */
	return dwfl_thread_state_registers(thread, 0, count, words) ||
	       dwfl_thread_state_registers(thread, 0, count - 1, words);
}

static const Dwfl_Thread_Callbacks thread_callbacks = {
	.next_thread = next_thread,
	.get_thread = get_thread,
	.memory_read = read_memory,
	.set_initial_registers = set_registers,
};

static int take_frame(Dwfl_Frame *frame, void *arg)
{
	struct native_unwind *u = arg;
	bool is_activation;
	Dwarf_Addr pc;

	if (!dwfl_frame_pc(frame, &pc, &is_activation) || u->count == NATIVE_DEPTH)
		return DWARF_CB_ABORT;
	u->pcs[u->count++] = is_activation ? pc : pc - 1;
	return DWARF_CB_OK;
}

static void report_modules(struct native_unwind *u)
{
	u->reported_ns = steady_ns();
	module_pid = u->pid;
	dwfl_report_begin(u->dwfl);
	dwfl_linux_proc_report(u->dwfl, u->pid);
	dwfl_report_end(u->dwfl, NULL, NULL);
	if (!u->attached)
		u->attached = dwfl_attach_state(u->dwfl, NULL, u->pid, &thread_callbacks, u);
}

ow_status native_unwind_new(struct native_unwind **out, struct mem *mem, pid_t pid,
			    struct ow_error *err)
{
	struct native_unwind *u = mem_zalloc(mem, sizeof(*u));

	*out = NULL;
	if (!u)
		return error_no_memory(err);
	u->mem = mem;
	u->pid = pid;
	u->remote.pid = pid;
	buf_init(&u->map, mem);
	u->dwfl = dwfl_begin(&callbacks);
	if (!u->dwfl) {
		native_unwind_free(u);
		return error_no_memory(err);
	}
	report_modules(u);
	*out = u;
	return OW_OK;
}

void native_unwind_free(struct native_unwind *u)
{
	if (!u)
		return;
	if (u->dwfl)
		dwfl_end(u->dwfl);
	buf_release(&u->map);
	mem_free(u->mem, u, sizeof(*u));
}

/* Copies the kernel's frame-pointer chain; context markers are addresses at the very end of the
 * address space. */
static size_t by_frame_pointers(const struct native_sample *s, uint64_t pcs[NATIVE_DEPTH])
{
	size_t count = 0;

	for (size_t i = 0; i < s->chain_count && count < NATIVE_DEPTH; i++)
		if (s->chain[i] < (uint64_t)-4096) {
			pcs[count] = s->chain[i] - (count > 0);
			count++;
		}
	if (!count)
		pcs[count++] = s->pc;
	return count;
}

size_t native_unwind_walk(struct native_unwind *u, const struct native_sample *sample,
			  uint64_t pcs[NATIVE_DEPTH])
{
	uint64_t chain[NATIVE_DEPTH];
	size_t count;

	u->sample = sample;
	u->pcs = pcs;
	u->count = 0;
	module_pid = u->pid;
	if (u->attached && sample->register_count)
		dwfl_getthread_frames(u->dwfl, sample->tid, take_frame, u);
	count = by_frame_pointers(sample, chain);
	if (u->count >= count)
		return u->count;
	memcpy(pcs, chain, count * sizeof(*pcs));
	return count;
}

/* Finds a name in lines "7f00 20 name", which have a start and a length. */
static struct str name_in_map(struct native_unwind *u, uint64_t pc)
{
	struct str rest = buf_str(&u->map), line;

	while (str_split(&rest, '\n', &line)) {
		char text[64], *end;
		uint64_t start, size;
		size_t used;

		snprintf(text, sizeof(text), "%.*s", (int)MIN(line.len, sizeof(text) - 1),
			 line.ptr);
		start = strtoull(text, &end, 16);
		size = strtoull(end, &end, 16);
		used = (size_t)(end - text);
		if (pc >= start && pc - start < size && used < line.len)
			return str_skip(line, used + 1);
	}
	return (struct str){ 0 };
}

static void read_map(struct native_unwind *u)
{
	char path[64];

	snprintf(path, sizeof(path), "/proc/%d/root/tmp/perf-%d.map", (int)u->pid, (int)u->pid);
	buf_clear(&u->map);
	if (!proc_read_job_file(&u->map, path))
		buf_clear(&u->map);
}

struct native_name native_unwind_name(struct native_unwind *u, uint64_t pc)
{
	Dwfl_Module *module = dwfl_addrmodule(u->dwfl, pc);
	struct native_name name = { 0 };
	const char *path = NULL, *symbol;
	GElf_Off offset;
	GElf_Sym sym;

	module_pid = u->pid;

	if (!module && steady_ns() - u->reported_ns > REPORT_NS) {
		report_modules(u);
		read_map(u);
		module = dwfl_addrmodule(u->dwfl, pc);
	}
	if (!module) {
		name.function = name_in_map(u, pc);
		name.is_jit = name.function.len;
		return name;
	}
	dwfl_module_info(module, NULL, NULL, NULL, NULL, NULL, &path, NULL);
	if (path)
		name.module = str_from(path);
	symbol = dwfl_module_addrinfo(module, pc, &offset, &sym, NULL, NULL, NULL);
	if (symbol)
		name.function = str_from(symbol);
	return name;
}

#else

ow_status native_unwind_new(struct native_unwind **out, struct mem *mem, pid_t pid,
			    struct ow_error *err)
{
	(void)mem;
	*out = NULL;
	return error_set(err, OW_E_UNSUPPORTED,
			 "native stacks of process %d: this opwatch was built without libdw "
			 "(libdw-dev)",
			 (int)pid);
}

void native_unwind_free(struct native_unwind *u)
{
	(void)u;
}

size_t native_unwind_walk(struct native_unwind *u, const struct native_sample *sample,
			  uint64_t pcs[NATIVE_DEPTH])
{
	(void)u, (void)sample, (void)pcs;
	return 0;
}

struct native_name native_unwind_name(struct native_unwind *u, uint64_t pc)
{
	(void)u, (void)pc;
	return (struct native_name){ 0 };
}

#endif
