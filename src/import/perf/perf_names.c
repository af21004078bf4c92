/*
 * perf_names.c: finds names of functions for perf_samples.c and firefox_stacks.c. First part: lists in text form, one "address type
 * name" or "address size name" per line, of the kernel and of /tmp/perf-PID.map. Second part: symbol tables of programs and
 * libraries, and tables in the recording itself. Files that cannot be opened or read have no names; only lack of memory fails.
 */
#include "import/perf/perf_names.h"
#include "import/common/function_name.h"

#include "base/vec.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define LISTING_MAX ((size_t)256 << 20)
#define PIECE ((size_t)1 << 20)
#define PAGE 4096
#define ORDERED_MIN ((size_t)64 << 10) /* shorter lists are sorted as a whole */

#define ANY_OWNER ((uid_t)-1)

/* Reads a whole file. False when the file is missing, or belongs to another user than this one, root, or `owner`.
 * Files of /proc have size 0. */
static bool read_owned(const char *path, uid_t owner, struct buf *to)
{
	bool any = owner == ANY_OWNER;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | (any ? 0 : O_NOFOLLOW));
	struct stat s;
	size_t size;
	bool ok = fd >= 0 && fstat(fd, &s) == 0 && S_ISREG(s.st_mode) &&
		  (any || s.st_uid == 0 || s.st_uid == geteuid() || s.st_uid == owner);

	size = ok && s.st_size > 0 ? (size_t)MIN(s.st_size, (off_t)LISTING_MAX) + 1 : PIECE;
	while (ok && to->len < LISTING_MAX) {
		ssize_t got;

		if (!buf_reserve(to, size))
			break;
		got = read(fd, to->ptr + to->len, size);
		if (got < 0 && errno == EINTR)
			continue;
		ok = got >= 0;
		if (got <= 0)
			break;
		to->len += (size_t)got;
		if (s.st_size > 0)
			size = MAX(size - (size_t)got, (size_t)1);
	}
	if (fd >= 0)
		close(fd);
	return ok;
}

static bool read_whole(const char *path, bool ours, struct buf *to)
{
	return read_owned(path, ours ? geteuid() : ANY_OWNER, to);
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The value of eight hexadecimal digits, computed at once. */
static uint64_t eight_digits(const char *p)
{
	uint64_t c;

	memcpy(&c, p, sizeof(c));
	c = be64toh((c & 0x0f0f0f0f0f0f0f0f) + 9 * (c >> 6 & 0x0101010101010101));
	c = (c | c >> 4) & 0x00ff00ff00ff00ff;
	c = (c | c >> 8) & 0x0000ffff0000ffff;
	return (c | c >> 16) & 0xffffffff;
}

/* Reads a hexadecimal number, also with 0x, as in Java's maps. */
static bool take_hex(struct str *line, uint64_t *value)
{
	size_t len = 0;

	if (str_starts(*line, STR("0x")))
		*line = str_skip(*line, 2);
	for (*value = 0; len < line->len && digit(line->ptr[len]) >= 0; len++)
		*value = *value << 4 | (uint64_t)digit(line->ptr[len]);
	if (!len || len > 16 || len >= line->len || line->ptr[len] != ' ')
		return false;
	*line = str_skip(*line, len + 1);
	return true;
}

/* Adds a symbol; the caller sorts them afterwards. False if memory runs out. */
static bool add_symbol(struct perf_names *n, struct perf_listing *l, uint64_t start, uint64_t end,
		       str_id name)
{
	return vec_push(n->mem, l->items, l->count, l->cap,
			(struct perf_symbol){ .start = start, .end = end, .name = name });
}

static int by_start(const void *a, const void *b)
{
	const struct perf_symbol *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->end > y->end) - (x->end < y->end);
}

/* The last symbol that starts at or before an address, or NULL. */
static struct perf_symbol *last_at(const struct perf_listing *l, uint64_t address)
{
	size_t low = 0, high = l->items ? l->count : 0;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (l->items[middle].start <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? &l->items[low - 1] : NULL;
}

static void sort_listing(struct perf_listing *l)
{
	if (l->count)
		qsort(l->items, l->count, sizeof(*l->items), by_start);
}

/* A line of the list: "address type name\tmodule". */
struct listed {
	uint64_t address;
	struct str name;
};

static bool is_wanted(char type)
{
	return type && strchr("tTwWdDbB", type);
}

static bool parse_line(struct str line, struct listed *out)
{
	size_t end;

	if (!take_hex(&line, &out->address) || line.len < 3 || line.ptr[1] != ' ' ||
	    !is_wanted(line.ptr[0]))
		return false;
	line = str_skip(line, 2);
	end = str_find_char(line, '\t');
	out->name = str_first(line, MIN(end, line.len));
	return true;
}

static struct str line_at(const struct perf_kernel *k, size_t at)
{
	struct str rest = str_skip(buf_str(&k->text), at);
	size_t end = str_find_char(rest, '\n');

	return str_first(rest, MIN(end, rest.len));
}

/* The beginning of the line that contains a byte. */
static size_t line_start(const struct perf_kernel *k, size_t at)
{
	const char *before = at ? memrchr(k->text.ptr, '\n', at) : NULL;

	return before ? (size_t)(before + 1 - k->text.ptr) : 0;
}

/* Keeps one item per address: the last, as in perf. */
static void keep_last(struct perf_kernel *k)
{
	size_t kept = 0;

	for (size_t i = 0; i < k->count; i++) {
		if (kept && k->items[kept - 1].ts == k->items[i].ts)
			kept--;
		k->items[kept++] = k->items[i];
	}
	k->count = kept;
}

static uint64_t address_at(const struct perf_kernel *k, size_t start)
{
	struct str line = str_skip(buf_str(&k->text), start);
	uint64_t address;

	if (line.len > 16 && line.ptr[16] == ' ') /* the format in which the kernel writes lines */
		return eight_digits(line.ptr) << 32 | eight_digits(line.ptr + 8);
	return take_hex(&line, &address) ? address : 0;
}

/* The offset at which the functions of modules begin: they come last, and each line has the name of its module. */
static size_t find_modules(const struct perf_kernel *k)
{
	size_t low = 0, high = k->text.len;

	while (low < high) {
		size_t start = line_start(k, low + (high - low) / 2);
		struct str line = line_at(k, start);

		if (str_find_char(line, '\t') == STR_NONE)
			low = MIN(start + line.len + 1, k->text.len);
		else
			high = start;
	}
	return low;
}

/* The last line before a place that has a function or variable; STR_NONE when there is none. */
static size_t last_wanted(const struct perf_kernel *k, size_t end, struct listed *found)
{
	while (end) {
		size_t start = line_start(k, end - 1);

		if (parse_line(line_at(k, start), found))
			return start;
		end = start;
	}
	return STR_NONE;
}

/* Whether the list is sorted by address, as the kernel writes its own functions; only samples of the list are
 * checked. */
static bool is_in_order(struct perf_kernel *k, size_t end)
{
	for (size_t i = 0; i < PERF_ORDER_SAMPLES; i++) {
		k->samples[i] = address_at(k, line_start(k, end / PERF_ORDER_SAMPLES * i));
		if (i && k->samples[i] < k->samples[i - 1])
			return false;
	}
	return k->samples[PERF_ORDER_SAMPLES - 1];
}

/* The end of the sorted part of the list: before the last function of the kernel itself. */
static size_t find_ordered(struct perf_kernel *k)
{
	struct listed last;
	size_t end = k->text.len < ORDERED_MIN ? 0 : find_modules(k);

	end = end < ORDERED_MIN ? STR_NONE : last_wanted(k, end, &last);
	return end == STR_NONE || !is_in_order(k, end) ? 0 : end;
}

static size_t find_part(const struct perf_kernel *k, uint64_t address)
{
	size_t low = 0, high = PERF_ORDER_SAMPLES;

	while (low < high) { /* binary search for the first sample after it */
		size_t middle = low + (high - low) / 2;

		if (k->samples[middle] <= address)
			low = middle + 1;
		else
			high = middle;
	}
	return low ? low - 1 : 0;
}

static size_t part_start(const struct perf_kernel *k, size_t part)
{
	return part < PERF_ORDER_SAMPLES ? line_start(k, k->ordered / PERF_ORDER_SAMPLES * part)
					 : k->ordered;
}

/* Finds the last line at or before an address in the text. */
static bool search_lines(const struct perf_kernel *k, size_t part, uint64_t address,
			 struct listed *found)
{
	size_t low = part_start(k, part), high = part_start(k, part + 1);

	while (low < high) { /* finds the first line after the address */
		size_t start = line_start(k, low + (high - low) / 2);

		if (address_at(k, start) <= address)
			low = MIN(start + line_at(k, start).len + 1, k->ordered);
		else
			high = start;
	}
	return last_wanted(k, low, found) != STR_NONE;
}

/* Reads the lines of a part. Until a symbol has a name, its field `end` is the offset of its line. */
static bool read_part(struct perf_names *n, size_t part)
{
	const struct perf_kernel *k = &n->kernel;
	struct perf_listing *l = &n->kernel.parts[part];
	size_t end = part_start(k, part + 1), at = part_start(k, part);
	struct listed one;

	while (at < end) {
		struct str line = line_at(k, at);
		bool wanted;

		if (line.len > 19 && line.ptr[16] == ' ' && line.ptr[18] == ' ') {
			wanted = is_wanted(line.ptr[17]);
			one.address = address_at(k, at);
		} else {
			wanted = parse_line(line, &one);
		}
		if (wanted && !add_symbol(n, l, one.address, at, (str_id){ 0 }))
			return false;
		at += line.len + 1;
	}
	return true;
}

/* The function at an address in the sorted part. Many addresses belong to the same function or to neighbours, so the
 * lines around an address are read once. */
static str_id find_ordered_name(struct perf_names *n, uint64_t address)
{
	struct perf_kernel *k = &n->kernel;
	size_t part = find_part(k, address);
	struct perf_listing *l = &k->parts[part];
	struct perf_symbol *symbol;
	struct listed found;

	if (!l->items && !read_part(n, part)) {
		builder_no_memory(n->b);
		return (str_id){ 0 };
	}
	symbol = last_at(l, address);
	if (!symbol) /* the address is before the first symbol of this part */
		return search_lines(k, part, address, &found) && found.address
			       ? builder_str(n->b, found.name)
			       : (str_id){ 0 };
	if (!symbol->name.v && symbol->start && parse_line(line_at(k, (size_t)symbol->end), &found))
		symbol->name = builder_str(n->b, found.name);
	return symbol->name;
}

static ow_status add_lines(struct perf_names *n, size_t from)
{
	struct perf_kernel *k = &n->kernel;
	struct str text = str_skip(buf_str(&k->text), from), line;
	struct listed one;

	while (str_split(&text, '\n', &line)) {
		if (!parse_line(line, &one))
			continue;
		/* addresses of 0: the list is hidden from this user */
		if (!one.address && k->count > 8 && k->items[0].ts == 0)
			break;
		if (!vec_push(n->mem, k->items, k->count, k->cap,
			      (struct trace_ref){ .ts = (int64_t)one.address,
						  .row = (uint32_t)(line.ptr - k->text.ptr) }))
			return OW_E_NO_MEMORY;
	}
	return OW_OK;
}

/* Computes how far the kernel was moved in memory since the list was written. */
static void find_shift(struct perf_kernel *k)
{
	size_t at = k->text_at ? str_find(buf_str(&k->text), STR(" _text\n")) : STR_NONE;

	if (at != STR_NONE)
		k->shift = k->text_at - address_at(k, line_start(k, at));
}

ow_status perf_listing_read_kernel(struct perf_names *n)
{
	struct perf_kernel *k = &n->kernel;
	struct trace_ref *scratch;

	k->ordered = find_ordered(k);
	OW_TRY(add_lines(n, k->ordered));
	find_shift(k);
	if (!trace_is_sorted(k->items, k->count)) {
		scratch = mem_alloc(n->mem, k->count * sizeof(*scratch));
		if (!scratch)
			return OW_E_NO_MEMORY;
		trace_sort(k->items, k->count, scratch);
		mem_free(n->mem, scratch, k->count * sizeof(*scratch));
	}
	keep_last(k);
	return OW_OK;
}

static bool find_sorted_name(const struct perf_kernel *k, int64_t at, struct listed *found)
{
	size_t low = 0, high = k->count;

	while (low < high) { /* the last that starts at or before the address */
		size_t middle = low + (high - low) / 2;

		if (k->items[middle].ts <= at)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || (low == k->count && at - k->items[low - 1].ts >= PAGE))
		return false;
	return parse_line(line_at(k, k->items[low - 1].row), found);
}

/* The function at an address; nil when there is none. */
static str_id kernel_name(struct perf_names *n, uint64_t address)
{
	const struct perf_kernel *k = &n->kernel;
	uint64_t at = address - k->shift;
	struct listed found = { 0 };

	if (k->ordered && at >= address_at(k, 0) && at < address_at(k, k->ordered))
		return find_ordered_name(n, at);
	return find_sorted_name(k, (int64_t)at, &found) && found.address
		       ? builder_str(n->b, found.name)
		       : (str_id){ 0 };
}

/* Whether the recording is from this boot, for recordings without a build id: the same release on the same host,
 * which has been up since before the recording ended. */
static bool is_this_boot(const struct perf_names *n)
{
	struct timespec up;
	struct utsname u;

	return n->release[0] && n->host[0] && uname(&u) == 0 &&
	       strcmp(u.release, n->release) == 0 && strcmp(u.nodename, n->host) == 0 &&
	       clock_gettime(CLOCK_BOOTTIME, &up) == 0 &&
	       n->recorded.tv_sec > time(NULL) - up.tv_sec;
}

/* Whether the recording was made under the running kernel. */
static bool is_this_kernel(const struct perf_names *n, struct buf *notes)
{
	unsigned char id[ELF_ID_MAX];
	size_t len;

	if (!n->kernel.id_len)
		return is_this_boot(n);
	buf_clear(notes);
	if (!read_whole("/sys/kernel/notes", false, notes))
		return false;
	len = elf_build_id((const unsigned char *)notes->ptr, notes->len,
			   __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__, id);
	return len && len <= n->kernel.id_len && memcmp(id, n->kernel.id, len) == 0;
}

/* Reads perf's copy of the list, which is faster to read than the kernel's own and survives a reboot. */
static bool read_copy(struct perf_names *n, struct buf *to)
{
	const char *home = getenv("HOME"), *path;

	if (!home || !n->kernel.id_len)
		return false;
	buf_clear(&n->text);
	buf_printf(&n->text, "%s/.debug/[kernel.kallsyms]/", home);
	for (size_t i = 0; i < n->kernel.id_len; i++)
		buf_printf(&n->text, "%02x", n->kernel.id[i]);
	buf_puts(&n->text, "/kallsyms");
	path = buf_cstr(&n->text);
	return path && read_whole(path, true, to);
}

/* Loads the kernel's list; fails only if memory runs out. */
static ow_status load_kernel_list(struct perf_names *n)
{
	struct buf *text = &n->kernel.text;

	if (!read_copy(n, text) && is_this_kernel(n, text)) {
		buf_clear(text);
		(void)read_whole("/proc/kallsyms", false, text);
	}
	return text->failed || text->len > UINT32_MAX ? OW_E_NO_MEMORY
						      : perf_listing_read_kernel(n);
}

ow_status perf_listing_read_jit(struct perf_names *n, struct perf_listing *l, struct str text)
{
	struct str line;

	while (str_split(&text, '\n', &line)) {
		uint64_t start, size;

		if (!take_hex(&line, &start) || !take_hex(&line, &size) || !line.len ||
		    size > UINT64_MAX - start)
			continue;
		if (!add_symbol(n, l, start, start + size, builder_str(n->b, line)))
			return OW_E_NO_MEMORY;
	}
	sort_listing(l);
	return n->b->status;
}

/* Reads the map of a process in a container, where its pid is the last one of NSpid. */
static bool read_map_in_container(int64_t pid, uid_t owner, struct buf *to)
{
	char path[96], line[256];
	long inside = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%" PRId64 "/status", pid);
	f = fopen(path, "re");
	while (f && fgets(line, sizeof(line), f))
		if (strncmp(line, "NSpid:", 6) == 0) {
			char *last = strrchr(line, '\t');

			inside = last ? strtol(last, NULL, 10) : 0;
		}
	if (f)
		fclose(f);
	if (inside <= 0)
		return false;
	snprintf(path, sizeof(path), "/proc/%" PRId64 "/root/tmp/perf-%ld.map", pid, inside);
	buf_clear(to);
	return read_owned(path, owner, to);
}

static ow_status load_jit_map(struct perf_names *n, struct perf_listing *l)
{
	ow_status status = OW_OK;
	uid_t owner = geteuid();
	struct buf text;
	struct stat process;
	char path[64];

	/* A process that still runs may have written its own map, in its own container. */
	snprintf(path, sizeof(path), "/proc/%" PRId64, l->pid);
	if (stat(path, &process) == 0)
		owner = process.st_uid;
	snprintf(path, sizeof(path), "/tmp/perf-%" PRId64 ".map", l->pid);
	buf_init(&text, n->mem);
	if (read_owned(path, owner, &text) || read_map_in_container(l->pid, owner, &text))
		status = perf_listing_read_jit(n, l, buf_str(&text));
	buf_release(&text);
	return status;
}

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

static struct perf_module *find_module(const struct perf_names *n, str_id name)
{
	uint32_t found = map_find(&n->by_name, map_hash_u64(name.v, 61)).value;

	/* hashes of different small numbers differ, so a match is exact */
	return found ? &n->modules[found - 1] : NULL;
}

static struct perf_module *need_module(struct perf_names *n, str_id name)
{
	struct perf_module *found = find_module(n, name);

	if (found)
		return found;
	if (!vec_push(n->mem, n->modules, n->module_count, n->module_cap,
		      (struct perf_module){ .name = name }))
		return NULL;
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

/* Compares build ids; shorter ids are padded with zeros in recordings. */
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

/* Whether a path is a regular file: opening a fifo or device could block. */
static bool is_file(const char *path)
{
	struct stat s;

	return stat(path, &s) == 0 && S_ISREG(s.st_mode);
}

/* Whether a file is the one that was mapped, and has not changed since. */
static bool same_place(const struct perf_names *n, const struct perf_module *m, const char *path)
{
	struct stat s;

	return m->inode && stat(path, &s) == 0 && s.st_ino == m->inode && s.st_dev == m->device &&
	       s.st_ctim.tv_sec < n->recorded.tv_sec;
}

/* Keeps the opened file if it is the recorded one. */
static ow_status keep_checked(const struct perf_names *n, struct elf_symbols *e, const char *path,
			      const struct perf_module *m, ow_status status, bool *other)
{
	struct ow_error err = { 0 };

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
	struct ow_error err = { 0 };

	*e = (struct elf_symbols){ .mem = n->mem };
	if (!path || !is_file(path))
		return OW_OK;
	return keep_checked(n, e, path, m, elf_symbols_open(e, n->mem, path, &err), other);
}

/* Opens the vDSO, the library that the kernel maps into every process: it is not a file, but this process has the
 * same one. */
static ow_status open_vdso(struct perf_names *n, struct perf_module *m, bool *other)
{
	unsigned long at = getauxval(AT_SYSINFO_EHDR);
	int fd = at ? open("/proc/self/mem", O_RDONLY | O_CLOEXEC) : -1;
	struct ow_error err = { 0 };
	ssize_t size;
	void *image;

	m->file = (struct elf_symbols){ .mem = n->mem };
	if (fd < 0)
		return OW_OK;
	image = mem_alloc(n->mem, VDSO_MAX);
	size = image ? pread(fd, image, VDSO_MAX, (off_t)at) : 0; /* reads up to its end */
	close(fd);
	if (size > 0)
		return keep_checked(n, &m->file, "", m,
				    elf_symbols_adopt(&m->file, n->mem, VDSO, image, (size_t)size,
						      VDSO_MAX, &err),
				    other);
	mem_free(n->mem, image, VDSO_MAX);
	return image ? OW_OK : OW_E_NO_MEMORY;
}

/* The path "DIR/.build-id/ab/cdef…TAIL". */
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
	/* the id is needed to find the debug file */
	if (m->file.open && !m->id_len && m->file.id_len) {
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

static str_id readable_name(struct perf_names *n, const char *tail)
{
	buf_clear(&n->plain);
	if (!function_name_plain(buf_str(&n->text), &n->plain))
		buf_add_str(&n->plain, buf_str(&n->text));
	buf_puts(&n->plain, tail);
	if (n->plain.failed)
		builder_no_memory(n->b);
	return builder_str(n->b, buf_str(&n->plain));
}

/* Returns nil, and reports if memory ran out. */
static str_id no_name(struct perf_names *n)
{
	if (n->text.failed)
		builder_no_memory(n->b);
	return (str_id){ 0 };
}

/* The name of an entry of a procedure linkage table. */
static str_id linked_name(struct perf_names *n, const struct perf_module *m, uint64_t at)
{
	buf_clear(&n->text);
	return elf_symbols_plt(&m->file, at, &n->text) ? readable_name(n, "@plt") : no_name(n);
}

/* The module with this name, if its file was found; or NULL. */
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

/* The function at an address of the file. */
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
		m->names[symbol - table->items] = readable_name(n, "");
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

static str_id find_listed(const struct perf_listing *l, uint64_t address)
{
	const struct perf_symbol *symbol = last_at(l, address);

	return symbol && address < symbol->end ? symbol->name : (str_id){ 0 };
}

str_id perf_names_kernel(struct perf_names *n, uint64_t address)
{
	if (!n->kernel.tried) {
		n->kernel.tried = true;
		if (load_kernel_list(n) != OW_OK)
			builder_no_memory(n->b);
	}
	return kernel_name(n, address);
}

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
	return m && !n->text.failed && add_symbol(n, &m->symbols, start, end, readable_name(n, ""));
}

void perf_names_given_done(struct perf_names *n)
{
	for (size_t i = 0; i < n->module_count; i++)
		sort_listing(&n->modules[i].symbols);
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
	for (size_t i = 0; i < n->jit_count; i++)
		if (n->jits[i].pid == pid)
			return find_listed(&n->jits[i], address);
	if (!vec_push(n->mem, n->jits, n->jit_count, n->jit_cap,
		      (struct perf_listing){ .pid = pid })) {
		builder_no_memory(n->b);
		return (str_id){ 0 };
	}
	if (load_jit_map(n, &n->jits[n->jit_count - 1]) != OW_OK)
		builder_no_memory(n->b);
	return find_listed(&n->jits[n->jit_count - 1], address);
}
