/*
 * py_process_test.c: stacks of a Python process that waits, by the system's Python: memory that fails at every
 * allocation, offsets, symbols, and what /proc says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "wire/elf/elf_symbols.h"
#include "live/pystack/sampler.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#define PYTHON "/usr/bin/python3"

/* Ends by itself when this test does. */
static const char program[] =
	"import sys\n"
	"def inner(): sys.stdout.write('x'); sys.stdout.flush(); sys.stdin.read()\n"
	"def outer(): inner()\n"
	"outer()\n";

struct victim {
	pid_t pid;
	int in, out;
};

static bool start_victim(struct victim *v)
{
	int to[2], from[2];
	char ready;

	if (access(PYTHON, X_OK) != 0)
		return false;
	assert_int_equal(pipe2(to, O_CLOEXEC), 0);
	assert_int_equal(pipe2(from, O_CLOEXEC), 0);
	v->pid = fork();
	assert_true(v->pid >= 0);
	if (!v->pid) {
		dup2(to[0], 0);
		dup2(from[1], 1);
		unsetenv("LD_PRELOAD");
		execl(PYTHON, PYTHON, "-c", program, (char *)NULL);
		_exit(127);
	}
	close(to[0]);
	close(from[1]);
	v->in = to[1];
	v->out = from[0];
	assert_int_equal(read(v->out, &ready, 1), 1);
	return true;
}

static void end_victim(struct victim *v)
{
	int status;

	close(v->in); /* it has nothing to read any more, and ends well: we did not disturb it */
	assert_int_equal(waitpid(v->pid, &status, 0), v->pid);
	close(v->out);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

struct seen {
	size_t stacks;
	bool inner, outer, module;
};

static void look(void *arg, struct py_process *p, struct py_thread *thread)
{
	struct seen *seen = arg;

	seen->stacks++;
	assert_int_equal(thread->tid, p->pid);
	for (size_t i = 0; i < thread->frame_count; i++) {
		struct py_frame frame = thread->frames[i];

		assert_true(str_eq(frame.code->file, STR("<string>")));
		seen->inner |= str_eq(frame.code->name, STR("inner")) && frame.line == 2 && i == 0;
		seen->outer |= str_eq(frame.code->name, STR("outer")) && frame.line == 3 && i == 1;
		seen->module |= str_eq(frame.code->name, STR("<module>")) && frame.line == 4;
	}
}

/* It may need a moment from writing to reading. */
static void see_all(struct py_process *p)
{
	struct seen seen = { 0 };
	struct ow_error err = { 0 };

	for (int64_t now = 1; !seen.inner && now < 1000; now++) {
		seen = (struct seen){ 0 };
		assert_int_equal(py_process_sample(p, now, look, &seen, &err), OW_OK);
		usleep(1000);
	}
	assert_true(seen.inner && seen.outer && seen.module);
}

static void stacks(void **state)
{
	struct py_process p;
	struct victim v;
	struct ow_error err = { 0 };
	struct mem mem;

	(void)state;
	if (!start_victim(&v))
		skip();
	mem_init(&mem, 0);
	assert_int_equal(py_process_open(&p, &mem, v.pid, &err), OW_OK);
	see_all(&p);
	assert_int_equal(p.thread_count, 1);
	end_victim(&v);
	assert_int_equal(py_process_sample(&p, 2000, look, &(struct seen){ 0 }, &err),
			 OW_E_NOT_FOUND);
	py_process_close(&p);
	assert_int_equal(atomic_load(&mem.used), 0);
}

static ow_status sample_into_model(struct mem *mem, pid_t pid, struct ow_error *err)
{
	struct model *m = model_new(mem, err);
	struct sample_rows rows;
	struct sampler sampler;
	struct builder b;
	ow_status status;

	if (!m)
		return OW_E_NO_MEMORY;
	builder_init(&b, m, err);
	b.source = builder_new_source(&b, &(struct source_row){ .run = 1 });
	sampler_init(&sampler, mem, true);
	sample_rows_init(&rows, &b, &sampler, 10000000);
	status = sampler_add(&sampler, pid, err);
	for (rows.now_ns = 1000; status == OW_OK && rows.now_ns < 4000; rows.now_ns += 1000)
		status = sampler_tick(&sampler, rows.now_ns, sample_rows_take, &rows, err);
	if (status == OW_OK)
		status = builder_status(&b);
	if (status == OW_OK) {
		assert_true(m->sample.count > 1);
		assert_int_equal(m->sample.metric[1].v, rows.wall.v);
		assert_int_equal(m->sample.weight[1], 10000000);
		assert_int_equal(m->metric.is_default[rows.wall.v], 1);
	}
	sample_rows_release(&rows);
	sampler_release(&sampler);
	model_free(m);
	return status;
}

static void memory_fails(void **state)
{
	ow_status status = OW_E_NO_MEMORY;
	struct ow_error err = { 0 };
	struct victim v;
	struct mem mem;
	uint64_t n;

	(void)state;
	if (!start_victim(&v))
		skip();
	for (n = 1; status != OW_OK && n < 10000; n++) {
		mem_init(&mem, 0);
		mem_fail_after(n, true);
		status = sample_into_model(&mem, v.pid, &err);
		mem_fail_after(0, false);
		assert_true(status == OW_OK || status == OW_E_NO_MEMORY);
		assert_int_equal(atomic_load(&mem.used), 0);
	}
	assert_int_equal(status, OW_OK);
	assert_true(n > 10);
	end_victim(&v);
}

/* ---- who is no such process ---- */

static void others(void **state)
{
	struct py_place place;
	struct ow_error err = { 0 };
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	assert_int_equal(py_find(&mem, -1, &place, &err), OW_E_NOT_FOUND);
	assert_int_equal(py_find(&mem, INT32_MAX, &place, &err), OW_E_NOT_FOUND);
	assert_int_equal(py_find(&mem, getpid(), &place, &err), OW_E_FORMAT);
	assert_non_null(strstr(err.text, "is not a Python process"));
	assert_int_equal(atomic_load(&mem.used), 0);
}

static void versions(void **state)
{
	uint64_t words[PY_DEBUG_WORDS] = { 0 };
	struct py_offsets o;

	(void)state;
	assert_int_equal(py_version_in_path(STR("/usr/lib/libpython3.11.so.1.0")), 11);
	assert_int_equal(py_version_in_path(STR("/a/_x.cpython-39-x86_64-linux-gnu.so")), 9);
	assert_int_equal(py_version_in_path(STR("/opt/python/bin/app")), 0);
	for (uint32_t minor = 8; minor < 13; minor++)
		assert_int_equal(py_offsets_of(minor)->minor, minor);
	assert_null(py_offsets_of(7));
	assert_null(py_offsets_of(13));
	for (size_t i = 0; i < PY_DEBUG_WORDS; i++)
		words[i] = i * 8;
	words[33] =
		words[31] + 14; /* the owner, behind the instruction, the mark and the way back */
	assert_false(py_offsets_from_debug(&o, words));
	memcpy(words, PY_DEBUG_COOKIE, 8);
	words[1] = 0x030d01f0;
	assert_true(py_offsets_from_debug(&o, words));
	assert_int_equal(o.ts_frame, 23 * 8);
	assert_int_equal(o.us_compact, 67 * 8 - 8);
	assert_int_equal(o.fr_mark, 31 * 8 + 8);
	words[33] += 8; /* laid out otherwise */
	assert_false(py_offsets_from_debug(&o, words));
	words[33] -= 8;
	words[23] = 1 << 20; /* larger than any such struct */
	assert_false(py_offsets_from_debug(&o, words));
	words[23] = 0;
	words[1] = 0x030e00f0; /* 3.14 has other words */
	assert_false(py_offsets_from_debug(&o, words));
}

/* ---- what it is made of ---- */

/* Far too many to be in registers, and visible in the symbol table. */
uint64_t py_process_test_words[4] = { 1, 2, 3, 4 };
extern uint64_t py_process_test_words[4];

static void symbols(void **state)
{
	struct elf_wanted wanted[] = { { .name = STR("py_process_test_words") },
				       { .name = STR("no_such_symbol") } };
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct remote remote = { .pid = getpid() };
	struct ow_error err = { 0 };
	uint64_t words[4];
	struct mem mem;

	(void)state;
	assert_true(fd >= 0);
	mem_init(&mem, 0);
	assert_int_equal(elf_symbols_lookup(&mem, fd, "exe", false, wanted, 2, &err), OW_OK);
	assert_true(wanted[0].found);
	assert_false(wanted[1].found);
	assert_int_equal(atomic_load(&mem.used), 0);
	assert_true(remote_read(&remote, (uintptr_t)py_process_test_words, words, sizeof(words)));
	assert_int_equal(words[3], 4);
	assert_false(remote_read(&remote, 8, words, sizeof(words)));
	assert_false(remote_is_gone(&remote));
}

/* A small ELF file of which each byte is damaged, and which is cut everywhere. */
static void damaged_symbols(void **state)
{
	unsigned char head[4096], copy[sizeof(head)];
	int exe = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	int fd = open(".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	struct mem mem;

	(void)state;
	if (fd < 0)
		skip();
	mem_init(&mem, 0);
	assert_int_equal(read(exe, head, sizeof(head)), sizeof(head));
	for (size_t i = 0; i < 512; i++) {
		struct elf_wanted wanted = { .name = STR("_PyRuntime") };
		size_t len = i & 1 ? sizeof(copy) : i * 8;
		struct ow_error err = { 0 };

		memcpy(copy, head, sizeof(copy));
		copy[i / 2] ^= 0xff;
		assert_int_equal(ftruncate(fd, 0), 0);
		assert_int_equal(pwrite(fd, copy, len, 0), (ssize_t)len);
		assert_int_not_equal(
			elf_symbols_lookup(&mem, dup(fd), "x", false, &wanted, 1, &err),
			OW_E_NO_MEMORY);
		assert_false(wanted.found);
	}
	assert_int_equal(atomic_load(&mem.used), 0);
	close(exe);
	close(fd);
}

static void maps(void **state)
{
	struct str rest =
		STR("55d0c0000000-55d0c0001000 r--p 00002000 fe:00 12 /usr/bin/a b (deleted)\n"
		    "7f0000000000-7f0000001000 rw-p 00000000 00:00 0\n"
		    "nonsense /x\n7f0000002000-7f0000003000 r-xp 0 fe:00 7    /lib/c.so\n");
	struct proc_map map;

	(void)state;
	assert_true(proc_next_file_map(&rest, &map));
	assert_true(map.start == 0x55d0c0000000 && map.end == 0x55d0c0001000);
	assert_true(map.offset == 0x2000 && map.deleted);
	assert_true(str_eq(map.path, STR("/usr/bin/a b")));
	assert_true(proc_next_file_map(&rest, &map));
	assert_true(str_eq(map.path, STR("/lib/c.so")) && !map.deleted);
	assert_false(proc_next_file_map(&rest, &map));
}

static void processes(void **state)
{
	struct pid_list list = { 0 };
	struct proc_stat stat;
	struct mem mem;
	uid_t owner;
	pid_t child;

	(void)state;
	mem_init(&mem, 0);
	list.mem = &mem;
	assert_true(proc_stat_read(getpid(), 0, &stat));
	assert_int_equal(stat.parent, getppid());
	assert_true(stat.threads >= 1 && stat.start_ticks);
	assert_true(proc_owner(getpid(), &owner) && owner == geteuid());
	child = fork();
	assert_true(child >= 0);
	if (!child) {
		pause();
		_exit(0);
	}
	assert_true(proc_descendants(getpid(), &list));
	assert_true(pid_list_has(&list, child));
	assert_false(pid_list_has(&list, getpid()));
	kill(child, SIGKILL);
	assert_int_equal(waitpid(child, NULL, 0), child);
	assert_false(proc_stat_read(child, 0, &stat));
	pid_list_release(&list);
	assert_int_equal(atomic_load(&mem.used), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stacks),  cmocka_unit_test(memory_fails),
		cmocka_unit_test(others),  cmocka_unit_test(versions),
		cmocka_unit_test(symbols), cmocka_unit_test(damaged_symbols),
		cmocka_unit_test(maps),	   cmocka_unit_test(processes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
