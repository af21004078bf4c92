/* native_unwind.c: see native_unwind.h. */
#include "live/native_unwind.h"

#include "live/processes.h"
#include "live/remote.h"

#include "opwatch_config.h"

#if OPWATCH_HAVE_LIBDW

#include "base/clock.h"

#include <elfutils/libdwfl.h>

#define REPORT_NS 1000000000 /* how often new libraries are looked for */

struct native_unwind {
	struct mem *mem;
	pid_t pid;
	Dwfl *dwfl;
	bool attached;
	int64_t reported_ns;
	struct remote remote;
	struct buf map; /* /tmp/perf-PID.map */
	/* while one sample is walked */
	const struct native_sample *sample;
	uint64_t *pcs;
	size_t count;
};

/* Symbols and tables of the files themselves are enough; none are searched for elsewhere. */
static int find_no_debuginfo(Dwfl_Module *module, void **data, const char *name, Dwarf_Addr base,
			     const char *file, const char *link, GElf_Word crc, char **found)
{
	(void)module, (void)data, (void)name, (void)base, (void)file, (void)link, (void)crc;
	*found = NULL;
	return -1;
}

static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_linux_proc_find_elf,
	.find_debuginfo = find_no_debuginfo,
};

/* ---- what libdw asks for ---- */

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

/* The stack as it was; the rest does not change. */
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
		return false; /* stack beyond what was kept: it has changed since */
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
	/* The last one is the pc, which not all machines count among them. */
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

/* ---- ours ---- */

static void report(struct native_unwind *u)
{
	u->reported_ns = steady_ns();
	dwfl_report_begin(u->dwfl);
	dwfl_linux_proc_report(u->dwfl, u->pid);
	dwfl_report_end(u->dwfl, NULL, NULL);
	if (!u->attached)
		u->attached = dwfl_attach_state(u->dwfl, NULL, u->pid, &thread_callbacks, u);
}

ow_status native_unwind_new(struct native_unwind **out, struct mem *mem, pid_t pid,
			    struct error *err)
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
	report(u);
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

/* The kernel's chain; marks are addresses at the very end. */
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
	if (u->attached && sample->register_count)
		dwfl_getthread_frames(u->dwfl, sample->tid, take_frame, u);
	count = by_frame_pointers(sample, chain);
	if (u->count >= count)
		return u->count;
	memcpy(pcs, chain, count * sizeof(*pcs));
	return count;
}

/* "7f00 20 name": where it begins, how long it is. */
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
	if (!proc_read_file(&u->map, path))
		buf_clear(&u->map);
}

struct native_name native_unwind_name(struct native_unwind *u, uint64_t pc)
{
	Dwfl_Module *module = dwfl_addrmodule(u->dwfl, pc);
	struct native_name name = { 0 };
	const char *path = NULL, *symbol;
	GElf_Off offset;
	GElf_Sym sym;

	if (!module && steady_ns() - u->reported_ns > REPORT_NS) {
		report(u);
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
			    struct error *err)
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
