/*
 * perf_names_test.c: names of perf.data's addresses from lists: the kernel's, moved by its start, and the map of a process; and which
 * lists are not believed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "import/perf/perf_names.h"
#include "support/small_model.h"

#include <link.h>
#include <unistd.h>

static const char *name_of(const struct small_model *s, str_id name)
{
	return model_str(s->m, name).ptr;
}

static void kernel(void **state)
{
	struct small_model s;
	struct perf_names n;

	(void)state;
	small_open(&s);
	perf_names_init(&n, &s.b);
	n.kernel.tried = true;
	n.kernel.text_at = 0xffffffff82000000;
	buf_puts(&n.kernel.text, "0000000000000000 A percpu\n"
				 "ffffffff81000000 T _text\n"
				 "ffffffff81000100 T first\n"
				 "ffffffff81000100 t __alias\n"
				 "ffffffffc0000000 t in_module\t[mod]\n"
				 "ffffffff81000200 r data\n"
				 "nonsense\n"
				 "ffffffff81000300 W weak");
	assert_int_equal(perf_listing_read_kernel(&n), OW_OK);
	assert_string_equal(name_of(&s, perf_names_kernel(&n, 0xffffffff82000001)), "_text");
	assert_string_equal(name_of(&s, perf_names_kernel(&n, 0xffffffff82000250)), "__alias");
	assert_string_equal(name_of(&s, perf_names_kernel(&n, 0xffffffff82000300)), "weak");
	assert_string_equal(name_of(&s, perf_names_kernel(&n, 0xffffffffc1000001)), "in_module");
	assert_int_equal(perf_names_kernel(&n, 0xffffffffc1001000).v, 0);
	assert_int_equal(perf_names_kernel(&n, 0x1000).v, 0);
	perf_names_release(&n);
	small_close(&s);
}

/* A long list is searched as it is, but for its end. */
static void long_list(void **state)
{
	struct small_model s;
	struct perf_names n;
	char want[32];

	(void)state;
	small_open(&s);
	perf_names_init(&n, &s.b);
	n.kernel.tried = true;
	n.kernel.text_at = 0xffffffff81000000;
	buf_puts(&n.kernel.text, "ffffffff81000000 T _text\n");
	for (int i = 1; i < 20000; i++) /* every third is data that nobody runs */
		buf_printf(&n.kernel.text, "%016" PRIx64 " %c name%d\n",
			   (uint64_t)0xffffffff81000000 + (uint64_t)i * 0x100,
			   i % 3 == 2 ? 'r' : 't', i);
	buf_puts(&n.kernel.text, "ffffffff814e2000 T first\nffffffff814e2000 T second\n"
				 "ffffffff814e2100 R end\n"
				 "ffffffffc0002000 t later\t[b]\nffffffffc0001000 t sooner\t[a]\n");
	assert_int_equal(perf_listing_read_kernel(&n), OW_OK);
	assert_true(n.kernel.ordered > 100000);
	assert_int_equal(n.kernel.count, 3);
	for (int i = 1; i < 20000; i++) {
		snprintf(want, sizeof(want), "name%d", i % 3 == 2 ? i - 1 : i);
		assert_string_equal(name_of(&s, perf_names_kernel(&n, (uint64_t)0xffffffff81000000 +
									      (uint64_t)i * 0x100 +
									      (i & 0xff))),
				    want);
	}
	assert_string_equal(name_of(&s, perf_names_kernel(&n, 0xffffffff81000000)), "_text");
	assert_string_equal(name_of(&s, perf_names_kernel(&n, 0xffffffff814e2005)), "second");
	assert_string_equal(name_of(&s, perf_names_kernel(&n, 0xffffffffc0001fff)), "sooner");
	assert_string_equal(name_of(&s, perf_names_kernel(&n, 0xffffffffc0002fff)), "later");
	assert_int_equal(perf_names_kernel(&n, 0xffffffffc0003000).v, 0);
	assert_int_equal(perf_names_kernel(&n, 0xffffffff80ffffff).v, 0);
	perf_names_release(&n);
	small_close(&s);
}

/* One that is not in order is sorted as a whole. */
static void long_disorder(void **state)
{
	struct small_model s;
	struct perf_names n;

	(void)state;
	small_open(&s);
	perf_names_init(&n, &s.b);
	n.kernel.tried = true;
	for (uint64_t i = 20000; i > 0; i--)
		buf_printf(&n.kernel.text, "%016" PRIx64 " t name%d\n", 0x1000 + i * 0x100, (int)i);
	assert_int_equal(perf_listing_read_kernel(&n), OW_OK);
	assert_int_equal(n.kernel.ordered, 0);
	assert_string_equal(name_of(&s, perf_names_kernel(&n, 0x1000 + 777 * 0x100 + 1)),
			    "name777");
	perf_names_release(&n);
	small_close(&s);
}

static void hidden(void **state)
{
	struct small_model s;
	struct perf_names n;

	(void)state;
	small_open(&s);
	perf_names_init(&n, &s.b);
	n.kernel.tried = true;
	for (int i = 0; i < 20; i++)
		buf_printf(&n.kernel.text, "0000000000000000 T name%d\n", i);
	assert_int_equal(perf_listing_read_kernel(&n), OW_OK);
	assert_int_equal(perf_names_kernel(&n, 0xffffffff81000000).v, 0);
	assert_int_equal(perf_names_kernel(&n, 0).v, 0);
	perf_names_release(&n);
	small_close(&s);
}

static void compiled(void **state)
{
	struct perf_listing l = { 0 };
	struct small_model s;
	struct perf_names n;

	(void)state;
	small_open(&s);
	perf_names_init(&n, &s.b);
	assert_int_equal(perf_listing_read_jit(&n, &l,
					       STR("0x2000 0x10 second one\n1000 20 py::f:/a b.py\n"
						   "zz 1 no\n3000 ffffffffffffffff too long\n1\n")),
			 OW_OK);
	assert_int_equal(l.count, 2);
	assert_string_equal(name_of(&s, l.items[0].name), "py::f:/a b.py");
	assert_int_equal(l.items[1].end, 0x2010);
	mem_free(n.mem, l.items, l.cap * sizeof(*l.items));
	/* a map that is a link is not followed, whoever made it */
	assert_int_equal(perf_names_jit(&n, -12345, 0x1000).v, 0);
	perf_names_release(&n);
	small_close(&s);
}

/* A module is believed by its id only, or by being the very file. */
static void strangers(void **state)
{
	static const unsigned char id[20] = { 1, 2, 3 };
	struct perf_map map = { .start = 0, .end = UINT64_MAX };
	struct small_model s;
	struct perf_names n;
	char path[512];
	ssize_t len = readlink("/proc/self/exe", path, sizeof(path) - 1);

	(void)state;
	assert_true(len > 0);
	path[len] = '\0';
	small_open(&s);
	perf_names_init(&n, &s.b);
	map.name = builder_cstr(&s.b, path);
	assert_int_equal(perf_names_user(&n, &map, 0x1000).v, 0); /* nothing is known of it */
	assert_true(perf_names_id(&n, map.name, id, sizeof(id)));
	assert_int_equal(perf_names_user(&n, &map, 0x1000).v, 0);
	assert_int_equal(n.other_id, 1);
	perf_names_release(&n);
	small_close(&s);
}

static int vdso_id(struct dl_phdr_info *info, size_t size, void *arg)
{
	struct perf_module *m = arg;

	(void)size;
	if (!strstr(info->dlpi_name, "vdso"))
		return 0;
	for (int i = 0; i < info->dlpi_phnum && !m->id_len; i++)
		if (info->dlpi_phdr[i].p_type == PT_NOTE)
			m->id_len = elf_build_id((const unsigned char *)info->dlpi_addr +
							 info->dlpi_phdr[i].p_vaddr,
						 info->dlpi_phdr[i].p_memsz,
						 __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__, m->id);
	return 1;
}

/* The library of the kernel is in this process, too; that of another kernel is not. */
static void vdso(void **state)
{
	struct perf_module known = { 0 };

	(void)state;
	dl_iterate_phdr(vdso_id, &known);
	if (!known.id_len)
		skip(); /* as under valgrind, which hides it */
	for (int other = 0; other < 2; other++) {
		struct perf_map map = { .start = 0x10000, .end = 0x20000 };
		struct small_model s;
		struct perf_names n;
		bool found = false;

		small_open(&s);
		perf_names_init(&n, &s.b);
		map.name = builder_cstr(&s.b, "[vdso]");
		known.id[0] ^= (unsigned char)other;
		assert_true(perf_names_id(&n, map.name, known.id, known.id_len));
		for (uint64_t at = map.start; at < map.end && !found; at += 16)
			found = strstr(name_of(&s, perf_names_user(&n, &map, at)), "vdso_");
		assert_int_equal(found, !other);
		assert_int_equal(n.other_id, other);
		perf_names_release(&n);
		small_close(&s);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vdso),	     cmocka_unit_test(kernel),
		cmocka_unit_test(long_list), cmocka_unit_test(long_disorder),
		cmocka_unit_test(hidden),    cmocka_unit_test(compiled),
		cmocka_unit_test(strangers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
