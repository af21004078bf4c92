/*
 * py_find.c: finds the interpreter in a Python process (the symbol _PyRuntime), its version, and where that
 * version keeps its data (py_offsets.def). Its errors say why the stacks of a process cannot be read. Called by
 * py_process.c once per process.
 */
#include "live/pystack/py_find.h"

#include "base/input.h"
#include "live/proc/proc.h"
#include "wire/elf/elf_symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <unistd.h>

static const struct py_offsets table[] = {
#include "live/pystack/py_offsets.def"
};

const struct py_offsets *py_offsets_of(uint32_t minor)
{
	for (size_t i = 0; i < ARRAY_COUNT(table); i++)
		if (table[i].minor == minor)
			return &table[i];
	return NULL;
}

/* Word positions of the members of _Py_DebugOffsets in CPython 3.13. */
static const struct {
	uint16_t word;
	uint16_t member;
} debug_words[] = {
	{ 5, offsetof(struct py_offsets, rt_interpreters) },
	{ 8, offsetof(struct py_offsets, is_next) },
	{ 9, offsetof(struct py_offsets, is_threads) },
	{ 21, offsetof(struct py_offsets, ts_next) },
	{ 22, offsetof(struct py_offsets, ts_interp) },
	{ 23, offsetof(struct py_offsets, ts_frame) },
	{ 24, offsetof(struct py_offsets, ts_thread) },
	{ 25, offsetof(struct py_offsets, ts_native) },
	{ 29, offsetof(struct py_offsets, fr_prev) },
	{ 30, offsetof(struct py_offsets, fr_code) },
	{ 31, offsetof(struct py_offsets, fr_instr) },
	{ 33, offsetof(struct py_offsets, fr_owner) },
	{ 35, offsetof(struct py_offsets, co_file) },
	{ 37, offsetof(struct py_offsets, co_name) },
	{ 38, offsetof(struct py_offsets, co_lines) },
	{ 39, offsetof(struct py_offsets, co_first) },
	{ 43, offsetof(struct py_offsets, co_code) },
	{ 45, offsetof(struct py_offsets, ob_type) },
	{ 47, offsetof(struct py_offsets, tp_name) },
	{ 65, offsetof(struct py_offsets, by_size) },
	{ 66, offsetof(struct py_offsets, by_data) },
	{ 68, offsetof(struct py_offsets, us_state) },
	{ 69, offsetof(struct py_offsets, us_length) },
	{ 70, offsetof(struct py_offsets, us_ascii) },
};
/* position of sizeof(PyUnicodeObject), which has one pointer more than the compact object */
#define DEBUG_UNICODE_SIZE 67

bool py_offsets_from_debug(struct py_offsets *o, const uint64_t words[PY_DEBUG_WORDS])
{
	if (memcmp(words, PY_DEBUG_COOKIE, 8) != 0 || words[1] >> 16 != 0x30d)
		return false;
	*o = (struct py_offsets){ .minor = 13 };
	for (size_t i = 0; i < ARRAY_COUNT(debug_words); i++) {
		uint64_t value = words[debug_words[i].word];

		if (value > UINT16_MAX - 64)
			return false;
		memcpy((char *)o + debug_words[i].member, &(uint16_t){ (uint16_t)value },
		       sizeof(uint16_t));
	}
	if (words[DEBUG_UNICODE_SIZE] < 8 || words[DEBUG_UNICODE_SIZE] > UINT16_MAX)
		return false;
	o->us_compact = (uint16_t)(words[DEBUG_UNICODE_SIZE] - 8);
	/* the offset is not published, but lies between two that are: instr_ptr, int stacktop, uint16_t
	 * return_offset, char owner */
	if (o->fr_owner != o->fr_instr + 14)
		return false;
	o->fr_mark = (uint16_t)(o->fr_instr + 8);
	return true;
}

struct search {
	struct mem *mem;
	pid_t pid;
	char name[PROC_NAME];
	char exe[512];
	uint32_t minor; /* minor version (3.minor), from the names of mapped files */
	uint32_t old;	/* 27, 36 or 37: a Python version that is not supported */
	bool deleted;	/* the interpreter's file is no longer on disk */
	struct ow_error *err;
};

static uint32_t number_at(struct str text, size_t *i)
{
	uint32_t number = 0;
	size_t begin = *i;

	for (; *i < text.len && *i - begin < 3 && text.ptr[*i] >= '0' && text.ptr[*i] <= '9';
	     (*i)++)
		number = number * 10 + (uint32_t)(text.ptr[*i] - '0');
	return number;
}

uint32_t py_version_in_path(struct str path)
{
	static const char *const marks[] = { "python3.", "cpython-3" };

	for (size_t k = 0; k < ARRAY_COUNT(marks); k++) {
		struct str mark = str_from(marks[k]);
		size_t at = str_find(path, mark);

		if (at != STR_NONE) {
			at += mark.len;
			uint32_t minor = number_at(path, &at);

			if (minor)
				return minor;
		}
	}
	return 0;
}

static void note_version(struct search *s, struct str path)
{
	uint32_t minor = py_version_in_path(path);

	if (minor && !s->minor)
		s->minor = minor;
	if (str_has(path, STR("python2.7")))
		s->old = 27;
	else if (minor == 6 || minor == 7)
		s->old = 30 + minor;
}

static ow_status no_such_process(pid_t pid, struct ow_error *err)
{
	return error_set(err, OW_E_NOT_FOUND, "no process has the id %d (any more)", (int)pid);
}

ow_status py_explain_refusal(pid_t pid, int code, struct ow_error *err)
{
	char scope[16];
	uid_t owner;

	if (code == ESRCH || code == ENOENT || !proc_owner(pid, &owner))
		return no_such_process(pid, err);
	if (code != EPERM && code != EACCES)
		return error_errno(err, code, "reading the memory of process %d", (int)pid);
	if (owner != geteuid() && geteuid() != 0)
		return error_set(
			err, OW_E_PERMISSION,
			"process %d belongs to user %u: only that user and root may read its "
			"stacks",
			(int)pid, (unsigned)owner);
	if (proc_read_text("/proc/sys/kernel/yama/ptrace_scope", scope, sizeof(scope)) &&
	    scope[0] > '0')
		return error_set(err, OW_E_PERMISSION,
				 "the kernel forbids reading the memory of process %d "
				 "(kernel.yama.ptrace_scope is %c): run opwatch as root, or start "
				 "the job under opwatch",
				 (int)pid, scope[0]);
	return error_set(
		err, OW_E_PERMISSION,
		"the system forbids reading the memory of process %d: it has more privileges than "
		"opwatch, or opwatch runs in a sandbox without process_vm_readv (CAP_SYS_PTRACE)",
		(int)pid);
}

static ow_status unknown_version(const struct search *s, uint32_t major, uint32_t minor)
{
	return error_set(s->err, OW_E_UNSUPPORTED,
			 "process %d (%s) runs Python %u.%u; stacks can be read of CPython 3.%d to "
			 "3.%d",
			 (int)s->pid, s->name, major, minor, PY_OLDEST, PY_NEWEST);
}

static int open_file(const struct search *s, const struct proc_map *map)
{
	char path[4096];

	if (str_eq(map->path, str_from(s->exe)))
		snprintf(path, sizeof(path), "/proc/%d/exe", (int)s->pid);
	else if (map->deleted)
		return -1;
	else /* path as the process sees it, which may be in a container */
		snprintf(path, sizeof(path), "/proc/%d/root%.*s", (int)s->pid, STR_ARG(map->path));
	return open_regular_file(path);
}

/* Searches a file for the symbol; OW_E_EMPTY: it has none. */
static ow_status look_in_file(struct search *s, const struct proc_map *map, struct py_place *place)
{
	struct elf_wanted symbols[] = { { .name = STR("_PyRuntime") },
					{ .name = STR("Py_Version") } };
	struct remote remote = { .pid = s->pid };
	int fd = open_file(s, map);
	uint64_t version = 0;
	ow_status status;

	if (fd < 0) {
		s->deleted = true;
		return OW_E_EMPTY;
	}
	status = elf_symbols_lookup(s->mem, fd, s->exe, false, symbols, ARRAY_COUNT(symbols),
				    s->err);
	if (status == OW_E_NO_MEMORY)
		return status;
	if (status != OW_OK || !symbols[0].found)
		return OW_E_EMPTY;
	place->runtime = map->start + symbols[0].value;
	place->version = 0x03000000 | s->minor << 16;
	if (symbols[1].found) {
		if (!remote_read(&remote, map->start + symbols[1].value, &version, sizeof(version)))
			return py_explain_refusal(s->pid, remote.failure, s->err);
		place->version = (uint32_t)version;
	}
	return OW_OK;
}

/* Searches libraries before the program, because the program may only import the symbol from the library. */
static ow_status look_in_maps(struct search *s, struct str maps, struct py_place *place)
{
	for (int libraries = 1; libraries >= 0; libraries--) {
		struct str rest = maps;
		struct proc_map map;

		while (proc_next_file_map(&rest, &map)) {
			size_t slash = str_rfind_char(map.path, '/');
			struct str base = str_skip(map.path, slash + 1);
			ow_status status;

			note_version(s, map.path);
			if (map.offset || !(libraries ? str_starts(base, STR("libpython"))
						      : str_eq(map.path, str_from(s->exe))))
				continue;
			status = look_in_file(s, &map, place);
			if (status != OW_E_EMPTY)
				return status;
		}
	}
	if (s->old)
		return unknown_version(s, s->old / 10, s->old % 10);
	if (s->deleted)
		return error_set(
			s->err, OW_E_NOT_FOUND,
			"the library with the Python of process %d (%s) has been deleted or "
			"replaced on disk since it was started",
			(int)s->pid, s->name);
	return error_set(s->err, OW_E_FORMAT,
			 "process %d (%s) is not a Python process: neither its program nor a "
			 "libpython has the symbol _PyRuntime",
			 (int)s->pid, s->name);
}

static ow_status choose_offsets(const struct search *s, struct remote *remote,
				struct py_place *place)
{
	uint32_t major = place->version >> 24, minor = place->version >> 16 & 255;
	uint64_t words[PY_DEBUG_WORDS];
	const struct py_offsets *known;

	if (!remote_read(remote, place->runtime, words, sizeof(words)))
		return py_explain_refusal(s->pid, remote->failure, s->err);
	if (py_offsets_from_debug(&place->offsets, words)) {
		place->version = (uint32_t)words[1];
		return OW_OK;
	}
	known = major == 3 ? py_offsets_of(minor) : NULL;
	if (!known && !minor)
		return error_set(s->err, OW_E_UNSUPPORTED,
				 "cannot determine the Python version of process %d (%s)",
				 (int)s->pid, s->name);
	if (!known)
		return unknown_version(s, major, minor);
	place->offsets = *known;
	return OW_OK;
}

/* Checks the layout: the first thread must point to its interpreter. */
static ow_status try_out(const struct search *s, struct remote *remote,
			 const struct py_place *place)
{
	const struct py_offsets *o = &place->offsets;
	uint64_t interpreter = 0, thread = 0, back = 0;

	if (!remote_read(remote, place->runtime + o->rt_interpreters, &interpreter, 8))
		return py_explain_refusal(s->pid, remote->failure, s->err);
	if (interpreter && remote_read(remote, interpreter + o->is_threads, &thread, 8) && thread)
		remote_read(remote, thread + o->ts_interp, &back, 8);
	if (interpreter && back == interpreter)
		return OW_OK;
	if (!interpreter || !thread)
		return error_set(s->err, OW_E_EMPTY,
				 "the Python of process %d (%s) is just starting or ending",
				 (int)s->pid, s->name);
	return error_set(
		s->err, OW_E_UNSUPPORTED,
		"the memory of process %d (%s) is not laid out as that of Python 3.%u: it may "
		"be built with other options",
		(int)s->pid, s->name, o->minor);
}

static ow_status read_maps(struct search *s, struct buf *maps)
{
	char path[64];
	ssize_t len;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)s->pid);
	errno = 0;
	if (!proc_read_file(maps, path)) {
		if (maps->failed)
			return error_no_memory(s->err);
		return py_explain_refusal(s->pid, errno, s->err);
	}
	snprintf(path, sizeof(path), "/proc/%d/exe", (int)s->pid);
	len = readlink(path, s->exe, sizeof(s->exe) - 1);
	s->exe[MAX(len, 0)] = 0;
	if (str_ends(str_from(s->exe), STR(" (deleted)")))
		s->exe[strlen(s->exe) - strlen(" (deleted)")] = 0;
	if (!maps->len)
		return error_set(
			s->err, OW_E_FORMAT,
			"process %d (%s) has no memory of its own: it has ended, or belongs to "
			"the kernel",
			(int)s->pid, s->name);
	return OW_OK;
}

static bool is_alive(pid_t pid, struct proc_stat *stat)
{
	return pid > 0 && proc_stat_read(pid, 0, stat) && !stat->exits &&
	       !strchr("ZX", stat->state);
}

static ow_status find_interpreter(struct search *s, struct py_place *place)
{
	struct remote remote = { .pid = s->pid };
	struct buf maps;
	ow_status status;

	buf_init(&maps, s->mem);
	status = read_maps(s, &maps);
	if (status == OW_OK)
		status = look_in_maps(s, buf_str(&maps), place);
	buf_release(&maps);
	OW_TRY(status);
	OW_TRY(choose_offsets(s, &remote, place));
	return try_out(s, &remote, place);
}

ow_status py_find(struct mem *mem, pid_t pid, struct py_place *place, struct ow_error *err)
{
	struct search s = { .mem = mem, .pid = pid, .err = err };
	struct proc_stat stat;
	ow_status status;

	if (!is_alive(pid, &stat))
		return no_such_process(pid, err);
	memcpy(s.name, stat.name, sizeof(s.name));
	status = find_interpreter(&s, place);
	if (status != OW_OK && status != OW_E_NO_MEMORY && !is_alive(pid, &stat))
		return error_set(err, OW_E_NOT_FOUND, "process %d (%s) has ended", (int)pid,
				 s.name);
	return status;
}
