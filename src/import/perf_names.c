/* perf_names.c: see perf_names.h. What cannot be opened or read has no names; only lack of memory is a failure. */
#include "import/perf_names.h"

#include "base/demangle.h"
#include "import/perf_listing.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#define VDSO "[vdso]"
#define VDSO_MAX ((size_t)64 << 10)

void perf_names_init(struct perf_names *n, struct builder *b)
{
	*n = (struct perf_names){ .b = b, .mem = b->m->mem };
	map_init(&n->by_name, n->mem);
	buf_init(&n->text, n->mem);
	buf_init(&n->plain, n->mem);
	buf_init(&n->kernel.text, n->mem);
}

static void release_listing(struct perf_names *n, struct perf_listing *l)
{
	mem_free(n->mem, l->items, l->cap * sizeof(*l->items));
}

void perf_names_release(struct perf_names *n)
{
	for (size_t i = 0; i < n->module_count; i++) {
		struct perf_module *m = &n->modules[i];

		if (m->tried) {
			elf_symbols_release(&m->file);
			elf_symbols_release(&m->debug);
		}
		mem_free(n->mem, m->names, m->name_count * sizeof(*m->names));
		release_listing(n, &m->symbols);
	}
	mem_free(n->mem, n->modules, n->module_cap * sizeof(*n->modules));
	for (size_t i = 0; i < PERF_ORDER_SAMPLES; i++)
		release_listing(n, &n->kernel.parts[i]);
	mem_free(n->mem, n->kernel.items, n->kernel.cap * sizeof(*n->kernel.items));
	buf_release(&n->kernel.text);
	for (size_t i = 0; i < n->jit_count; i++)
		release_listing(n, &n->jits[i]);
	mem_free(n->mem, n->jits, n->jit_cap * sizeof(*n->jits));
	map_release(&n->by_name);
	buf_release(&n->text);
	buf_release(&n->plain);
}

/* ---- build ids ---- */

static struct perf_module *find_module(const struct perf_names *n, str_id name)
{
	uint32_t found = map_find(&n->by_name, map_hash_u64(name.v, 61)).value;

	/* hashes of different small numbers differ */
	return found ? &n->modules[found - 1] : NULL;
}

static struct perf_module *need_module(struct perf_names *n, str_id name)
{
	struct perf_module *found = find_module(n, name);
	void *modules = n->modules;

	if (found)
		return found;
	if (!mem_grow(n->mem, &modules, &n->module_cap, n->module_count + 1, sizeof(*n->modules)))
		return NULL;
	n->modules = modules;
	n->modules[n->module_count++] = (struct perf_module){ .name = name };
	if (!map_add(&n->by_name, map_hash_u64(name.v, 61), (uint32_t)n->module_count))
		return NULL;
	return &n->modules[n->module_count - 1];
}

bool perf_names_id(struct perf_names *n, str_id name, const unsigned char *id, size_t len)
{
	static const unsigned char none[ELF_ID_MAX];
	struct perf_module *m;

	if (!len || len > ELF_ID_MAX || memcmp(id, none, len) == 0)
		return true;
	m = need_module(n, name);
	if (m && !m->id_len) {
		memcpy(m->id, id, len);
		m->id_len = len;
	}
	return m;
}

bool perf_names_place(struct perf_names *n, const struct perf_map *map)
{
	struct perf_module *m = map->inode ? need_module(n, map->name) : NULL;

	if (m && !m->inode) {
		m->device = map->device;
		m->inode = map->inode;
	}
	return m || !map->inode;
}

void perf_names_kernel_id(struct perf_names *n, const unsigned char *id, size_t len)
{
	static const unsigned char none[ELF_ID_MAX];

	if (!len || len > ELF_ID_MAX || n->kernel.id_len || memcmp(id, none, len) == 0)
		return;
	memcpy(n->kernel.id, id, len);
	n->kernel.id_len = len;
}

/* Shorter ids are filled up with zeros in recordings. */
static bool same_id(const unsigned char *want, size_t want_len, const unsigned char *have,
		    size_t have_len)
{
	if (!have_len || have_len > want_len || memcmp(want, have, have_len) != 0)
		return false;
	for (size_t i = have_len; i < want_len; i++)
		if (want[i])
			return false;
	return true;
}

/* ---- programs and libraries ---- */

/* Regular files only: what else lies there could make us wait. */
static bool is_file(const char *path)
{
	struct stat s;

	return stat(path, &s) == 0 && S_ISREG(s.st_mode);
}

/* Whether a file is the one that was mapped, and nobody wrote to it since. */
static bool same_place(const struct perf_names *n, const struct perf_module *m, const char *path)
{
	struct stat s;

	return m->inode && stat(path, &s) == 0 && s.st_ino == m->inode && s.st_dev == m->device &&
	       s.st_ctim.tv_sec < n->recorded.tv_sec;
}

/* Keeps what was opened, with that status, if it is the one that was recorded. */
static ow_status keep_checked(const struct perf_names *n, struct elf_symbols *e, const char *path,
			      const struct perf_module *m, ow_status status, bool *other)
{
	struct error err = { 0 };

	if (status == OW_OK &&
	    !(m->id_len ? same_id(m->id, m->id_len, e->id, e->id_len) : same_place(n, m, path))) {
		*other = true;
		elf_symbols_release(e);
		return OW_OK;
	}
	if (status == OW_OK)
		status = elf_symbols_load(e, &err);
	if (status != OW_OK)
		elf_symbols_release(e);
	return status == OW_E_NO_MEMORY ? status : OW_OK;
}

static ow_status open_checked(struct perf_names *n, struct elf_symbols *e, const char *path,
			      const struct perf_module *m, bool *other)
{
	struct error err = { 0 };

	*e = (struct elf_symbols){ .mem = n->mem };
	if (!path || !is_file(path))
		return OW_OK;
	return keep_checked(n, e, path, m, elf_symbols_open(e, n->mem, path, &err), other);
}

/* The library that the kernel puts into every process is no file; ours has the same. */
static ow_status open_vdso(struct perf_names *n, struct perf_module *m, bool *other)
{
	unsigned long at = getauxval(AT_SYSINFO_EHDR);
	int fd = at ? open("/proc/self/mem", O_RDONLY | O_CLOEXEC) : -1;
	struct error err = { 0 };
	ssize_t size;
	void *image;

	m->file = (struct elf_symbols){ .mem = n->mem };
	if (fd < 0)
		return OW_OK;
	image = mem_alloc(n->mem, VDSO_MAX);
	size = image ? pread(fd, image, VDSO_MAX, (off_t)at) : 0; /* up to where it ends */
	close(fd);
	if (size > 0)
		return keep_checked(n, &m->file, "", m,
				    elf_symbols_adopt(&m->file, n->mem, VDSO, image, (size_t)size,
						      VDSO_MAX, &err),
				    other);
	mem_free(n->mem, image, VDSO_MAX);
	return image ? OW_OK : OW_E_NO_MEMORY;
}

/* "DIR/.build-id/ab/cdef…TAIL" */
static const char *id_path(struct perf_names *n, const char *home, const char *dir,
			   const struct perf_module *m, const char *tail)
{
	buf_clear(&n->text);
	if (!home)
		return NULL;
	buf_printf(&n->text, "%s%s/.build-id/%02x/", home, dir, m->id[0]);
	for (size_t i = 1; i < m->id_len; i++)
		buf_printf(&n->text, "%02x", m->id[i]);
	buf_puts(&n->text, tail);
	return buf_cstr(&n->text);
}

static ow_status load_module(struct perf_names *n, struct perf_module *m)
{
	const char *home = getenv("HOME");
	bool other = false;

	m->tried = true;
	m->debug = (struct elf_symbols){ .mem = n->mem };
	buf_clear(&n->text);
	buf_add_str(&n->text, model_str(n->b->m, m->name));
	if (str_eq(buf_str(&n->text), STR(VDSO)))
		OW_TRY(open_vdso(n, m, &other));
	else
		OW_TRY(open_checked(n, &m->file, buf_cstr(&n->text), m, &other));
	if (m->file.open && !m->id_len && m->file.id_len) { /* for its debugging file */
		memcpy(m->id, m->file.id, m->file.id_len);
		m->id_len = m->file.id_len;
	}
	if (!m->file.open && m->id_len)
		OW_TRY(open_checked(n, &m->file, id_path(n, home, "/.debug", m, "/elf"), m,
				    &other));
	n->other_id += other && !m->file.open;
	if (m->file.open && !m->file.full && m->id_len)
		OW_TRY(open_checked(n, &m->debug, id_path(n, "", "/usr/lib/debug", m, ".debug"), m,
				    &other));
	m->name_count = MAX(m->file.count, m->debug.count);
	if (m->name_count) {
		m->names = mem_zalloc(n->mem, m->name_count * sizeof(*m->names));
		n->named++;
		if (!m->names) {
			m->name_count = 0;
			return OW_E_NO_MEMORY;
		}
	}
	return OW_OK;
}

/* Without parameters, as perf shows them. */
static void cut_parameters(struct buf *text)
{
	int depth = 0;

	for (size_t i = 0; i < text->len; i++) {
		struct str rest = str_skip(buf_str(text), i);

		depth += text->ptr[i] == '<' ? 1 : text->ptr[i] == '>' ? -1 : 0;
		if (text->ptr[i] != '(' || depth > 0 ||
		    str_starts(rest, STR("(anonymous namespace)")))
			continue;
		if (str_starts(rest, STR("()")) &&
		    str_ends(str_first(buf_str(text), i), STR("operator")))
			continue;
		text->len = i;
	}
}

static str_id readable(struct perf_names *n, const char *tail)
{
	buf_clear(&n->plain);
	if (str_starts(buf_str(&n->text), STR("_Z")) &&
	    demangle_name(buf_str(&n->text), &n->plain)) {
		cut_parameters(&n->plain);
	} else {
		buf_clear(&n->plain);
		buf_add_str(&n->plain, buf_str(&n->text));
	}
	buf_puts(&n->plain, tail);
	if (n->plain.failed)
		builder_no_memory(n->b);
	return builder_str(n->b, buf_str(&n->plain));
}

/* What has no name, unless memory was lacking. */
static str_id no_name(struct perf_names *n)
{
	if (n->text.failed)
		builder_no_memory(n->b);
	return (str_id){ 0 };
}

/* An entry of a procedure linkage table. */
static str_id linked_name(struct perf_names *n, const struct perf_module *m, uint64_t at)
{
	buf_clear(&n->text);
	return elf_symbols_plt(&m->file, at, &n->text) ? readable(n, "@plt") : no_name(n);
}

/* A module whose file was found; NULL when there is none. */
static struct perf_module *named_module(struct perf_names *n, str_id name)
{
	struct perf_module *m = find_module(n, name);

	if (!m)
		return NULL;
	if (!m->tried && load_module(n, m) != OW_OK) {
		builder_no_memory(n->b);
		return NULL;
	}
	return m->names ? m : NULL;
}

/* The function at an address as the file counts them. */
static str_id function_at(struct perf_names *n, struct perf_module *m, uint64_t at)
{
	const struct elf_symbols *table = m->debug.count ? &m->debug : &m->file;
	const struct elf_symbol *symbol;

	symbol = elf_symbols_find(table, at);
	if (!symbol)
		return linked_name(n, m, at);
	if (!m->names[symbol - table->items].v) {
		buf_clear(&n->text);
		if (!elf_symbols_name(table, symbol, &n->text))
			return no_name(n);
		m->names[symbol - table->items] = readable(n, "");
	}
	return m->names[symbol - table->items];
}

str_id perf_names_user(struct perf_names *n, const struct perf_map *map, uint64_t address)
{
	struct perf_module *m = named_module(n, map->name);
	uint64_t at;

	if (!m || !elf_symbols_address(&m->file, address - map->start + map->pgoff, &at))
		return (str_id){ 0 };
	return function_at(n, m, at);
}

str_id perf_names_relative(struct perf_names *n, str_id module, uint64_t address)
{
	struct perf_module *m = named_module(n, module);

	if (!m || !m->file.part_count)
		return (str_id){ 0 };
	return function_at(n, m, m->file.parts[0].address + address);
}

/* ---- lists ---- */

static str_id find_listed(const struct perf_listing *l, uint64_t address)
{
	size_t low = 0, high = l->count;

	while (low < high) { /* the last that starts at or before the address */
		size_t middle = low + (high - low) / 2;

		if (l->items[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || address >= l->items[low - 1].end)
		return (str_id){ 0 };
	return l->items[low - 1].name;
}

str_id perf_names_kernel(struct perf_names *n, uint64_t address)
{
	if (!n->kernel.tried) {
		n->kernel.tried = true;
		if (perf_listing_kernel(n) != OW_OK)
			builder_no_memory(n->b);
	}
	return perf_listing_kernel_name(n, address);
}

/* ---- what the recording has itself ---- */

bool perf_names_given(struct perf_names *n, str_id module, struct perf_given given)
{
	struct perf_module *m = need_module(n, module);

	if (m)
		m->given = given;
	return m;
}

bool perf_names_given_symbol(struct perf_names *n, str_id module, uint64_t start, uint64_t end,
			     struct str name)
{
	struct perf_module *m = find_module(n, module);

	buf_clear(&n->text);
	buf_add_str(&n->text, name);
	return m && !n->text.failed &&
	       perf_listing_add(n, &m->symbols, start, end, readable(n, ""));
}

void perf_names_given_done(struct perf_names *n)
{
	for (size_t i = 0; i < n->module_count; i++)
		perf_listing_sort(&n->modules[i].symbols);
}

str_id perf_names_in_file(struct perf_names *n, const struct perf_map *map, uint64_t address)
{
	const struct perf_module *m = find_module(n, map->name);

	if (!m || !m->symbols.count)
		return (str_id){ 0 };
	if (m->given.by != PERF_GIVEN_ADDRESS)
		address += m->given.shift - map->start;
	if (m->given.by == PERF_GIVEN_OFFSET)
		address += map->pgoff;
	return find_listed(&m->symbols, address);
}

str_id perf_names_jit(struct perf_names *n, int64_t pid, uint64_t address)
{
	void *jits = n->jits;

	for (size_t i = 0; i < n->jit_count; i++)
		if (n->jits[i].pid == pid)
			return find_listed(&n->jits[i], address);
	if (!mem_grow(n->mem, &jits, &n->jit_cap, n->jit_count + 1, sizeof(*n->jits))) {
		builder_no_memory(n->b);
		return (str_id){ 0 };
	}
	n->jits = jits;
	n->jits[n->jit_count++] = (struct perf_listing){ .pid = pid };
	if (perf_listing_jit(n, &n->jits[n->jit_count - 1]) != OW_OK)
		builder_no_memory(n->b);
	return find_listed(&n->jits[n->jit_count - 1], address);
}
