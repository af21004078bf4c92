/*
 * elf_symbols_test.c: tables of symbols made by hand, in both widths and byte orders, and this program's own; cut files and failing
 * allocations.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "wire/elf/elf_symbols.h"

#include <stdlib.h>
#include <unistd.h>

#define CODE 0x1000 /* where the code lies in the file; it is mapped at ten times that */

struct elf {
	unsigned char bytes[0x1200];
	size_t len;
	bool big, wide;
};

static void put(struct elf *f, uint64_t value, size_t size)
{
	for (size_t i = 0; i < size; i++)
		f->bytes[f->len + (f->big ? size - 1 - i : i)] = (unsigned char)(value >> 8 * i);
	f->len += size;
}

static void word(struct elf *f, uint64_t value)
{
	put(f, value, f->wide ? 8 : 4);
}

static void section(struct elf *f, uint32_t name, uint32_t type, uint64_t flags, uint64_t address,
		    uint64_t offset, uint64_t size, uint32_t link, uint64_t entry)
{
	put(f, name, 4);
	put(f, type, 4);
	word(f, flags);
	word(f, address);
	word(f, offset);
	word(f, size);
	put(f, link, 4);
	put(f, 0, 4);
	word(f, 8);
	word(f, entry);
}

static void symbol(struct elf *f, uint32_t name, uint64_t value, uint64_t size, unsigned info)
{
	put(f, name, 4);
	if (f->wide) {
		put(f, info, 1);
		put(f, 0, 1);
		put(f, 1, 2);
	}
	word(f, value);
	word(f, size);
	if (!f->wide) {
		put(f, info, 1);
		put(f, 0, 1);
		put(f, 1, 2);
	}
}

/* Calls to main, and to a function that is chosen at run time: main, again. */
static void relocations(struct elf *f)
{
	f->len = 0x700;
	word(f, 0);
	word(f, f->wide ? (uint64_t)2 << 32 | 7 : 2 << 8 | 7);
	if (f->wide)
		word(f, 0);
	word(f, 0);
	word(f, 8);
	if (f->wide)
		word(f, CODE * 10 + 0x10);
}

/* Sections: none, code, symbols, their names, a note, a procedure linkage table, its relocations, names of sections; behind the
 * head, which is 64 bytes at most. */
static void make(struct elf *f, bool big, bool wide)
{
	static const char names[] = "\0main\0__main\0label\0weak\0data";
	static const char of_sections[] = "\0.plt\0.rela.plt\0.rel.plt";
	size_t each = wide ? 64 : 40, symbols = 0x200, strings = 0x400, note = 0x480, table = 0x500;

	memset(f, 0, sizeof(*f));
	f->big = big;
	f->wide = wide;
	memcpy(f->bytes, "\177ELF", 4);
	f->bytes[4] = wide ? 2 : 1;
	f->bytes[5] = big ? 2 : 1;
	f->len = 24;
	word(f, 0);
	word(f, 64); /* parts */
	word(f, table);
	put(f, 0, 4);
	put(f, wide ? 64 : 52, 2);
	put(f, wide ? 56 : 32, 2);
	put(f, 1, 2);
	put(f, each, 2);
	put(f, 8, 2);
	put(f, 7, 2);
	f->len = 64;
	put(f, 1, 4);
	if (wide)
		put(f, 5, 4);
	word(f, CODE);
	word(f, CODE * 10);
	word(f, CODE * 10);
	word(f, 0x200);
	f->len = symbols;
	symbol(f, 0, 0, 0, 0);
	symbol(f, 6, CODE * 10 + 0x10, 0x20, 1 << 4 | 2);  /* __main */
	symbol(f, 1, CODE * 10 + 0x10, 0x20, 1 << 4 | 2);  /* main: fewer underscores */
	symbol(f, 19, CODE * 10 + 0x10, 0x20, 2 << 4 | 2); /* weak */
	symbol(f, 13, CODE * 10 + 0x40, 0, 0);		   /* label, up to the end of the code */
	f->len = strings;
	memcpy(f->bytes + f->len, names, sizeof(names));
	f->len = note;
	put(f, 4, 4);
	put(f, 3, 4);
	put(f, 3, 4);
	memcpy(f->bytes + f->len, "GNU\0\1\2\3", 8);
	f->len = table;
	section(f, 0, 0, 0, 0, 0, 0, 0, 0);
	section(f, 0, 1, 6, CODE * 10, CODE, 0x100, 0, 0);
	section(f, 0, 2, 0, 0, symbols, 5 * (wide ? 24 : 16), 3, wide ? 24 : 16);
	section(f, 0, 3, 0, 0, strings, sizeof(names), 0, 0);
	section(f, 0, 7, 0, 0, note, 20, 0, 0);
	section(f, 1, 1, 6, CODE * 10 + 0x100, CODE + 0x100, 0x40, 0, 0x10);
	section(f, wide ? 6 : 16, wide ? 4 : 9, 2, 0, 0x700, wide ? 48 : 16, 2, wide ? 24 : 8);
	section(f, 0, 3, 0, 0, 0x780, sizeof(of_sections), 0, 0);
	relocations(f);
	memcpy(f->bytes + 0x780, of_sections, sizeof(of_sections));
	f->len = sizeof(f->bytes);
}

static const char *write_file(const struct elf *f, size_t len, char path[32])
{
	int fd;

	snprintf(path, 32, "/tmp/elf_test_XXXXXX");
	fd = mkstemp(path);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, f->bytes, len), len);
	close(fd);
	return path;
}

static ow_status load(struct elf_symbols *e, struct mem *mem, const char *path)
{
	struct ow_error err = { 0 };
	ow_status status = elf_symbols_open(e, mem, path, &err);

	return status == OW_OK ? elf_symbols_load(e, &err) : status;
}

static void expect_name(const struct elf_symbols *e, uint64_t offset, const char *want)
{
	const struct elf_symbol *found;
	struct buf name;
	uint64_t address = 0;

	buf_init(&name, e->mem);
	assert_true(elf_symbols_address(e, offset, &address));
	found = elf_symbols_find(e, address);
	if (!want) {
		assert_null(found);
		return;
	}
	assert_non_null(found);
	assert_true(elf_symbols_name(e, found, &name));
	assert_string_equal(buf_cstr(&name), want);
	buf_release(&name);
}

static void expect_link(const struct elf_symbols *e, uint64_t offset, const char *want)
{
	struct buf name;
	uint64_t address = 0;

	buf_init(&name, e->mem);
	assert_true(elf_symbols_address(e, offset, &address));
	assert_null(elf_symbols_find(e, address));
	assert_int_equal(elf_symbols_plt(e, address, &name), want != NULL);
	if (want)
		assert_string_equal(buf_cstr(&name), want);
	buf_release(&name);
}

static void all_kinds(void **state)
{
	struct elf_symbols e;
	struct mem mem;
	struct elf f;
	char path[32];

	(void)state;
	for (int kind = 0; kind < 4; kind++) {
		uint64_t address;

		mem_init(&mem, 0);
		make(&f, kind & 1, kind & 2);
		assert_int_equal(load(&e, &mem, write_file(&f, f.len, path)), OW_OK);
		assert_int_equal(e.id_len, 3);
		assert_memory_equal(e.id, "\1\2\3", 3);
		assert_true(e.full);
		expect_name(&e, CODE + 0x0f, NULL);
		expect_name(&e, CODE + 0x10, "main");
		expect_name(&e, CODE + 0x2f, "main");
		expect_name(&e, CODE + 0x30, NULL);
		expect_name(&e, CODE + 0x41, "label");
		expect_name(&e, CODE + 0x100, NULL); /* behind its section */
		expect_link(&e, CODE + 0x10f, NULL); /* what comes before the first entry */
		expect_link(&e, CODE + 0x110, "main");
		expect_link(&e, CODE + 0x12f, e.wide ? "main" : NULL);
		expect_link(&e, CODE + 0x130, NULL); /* without a relocation */
		expect_link(&e, CODE + 0x140, NULL);
		assert_false(elf_symbols_address(&e, CODE - 1, &address));
		elf_symbols_release(&e);
		unlink(path);
		assert_int_equal(atomic_load(&mem.used), 0);
	}
}

/* Whatever is missing, and whenever memory is, it ends in a status. */
static void damage(void **state)
{
	struct elf_symbols e;
	struct mem mem;
	struct elf f;
	char path[32];

	(void)state;
	make(&f, false, true);
	for (size_t len = 0; len < 0x7c0; len += 61) {
		mem_init(&mem, 0);
		(void)load(&e, &mem, write_file(&f, len, path));
		elf_symbols_release(&e);
		unlink(path);
	}
	for (size_t at = 0; at < 0x7c0; at += 3) { /* wild numbers */
		struct elf wild = f;

		memset(wild.bytes + at, 0xff, 8);
		mem_init(&mem, 0);
		(void)load(&e, &mem, write_file(&wild, wild.len, path));
		elf_symbols_release(&e);
		unlink(path);
	}
	write_file(&f, f.len, path);
	for (uint64_t n = 1;; n++) {
		ow_status status;

		mem_init(&mem, 0);
		mem_fail_after(n, true);
		status = load(&e, &mem, path);
		mem_fail_after(0, false);
		elf_symbols_release(&e);
		if (status == OW_OK)
			break;
		assert_int_equal(status, OW_E_NO_MEMORY);
	}
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_kinds),
		cmocka_unit_test(damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
