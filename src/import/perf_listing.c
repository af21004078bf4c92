/* perf_listing.c: see perf_listing.h. */
#include "import/perf_listing.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#define LISTING_MAX ((size_t)256 << 20)
#define PIECE ((size_t)1 << 20)
#define PAGE 4096

/* All of a file; false when there is none, or it is not to be trusted. Files of /proc do not know their size. */
static bool read_whole(const char *path, bool ours, struct buf *to)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | (ours ? O_NOFOLLOW : 0));
	struct stat s;
	bool ok = fd >= 0 && fstat(fd, &s) == 0 && S_ISREG(s.st_mode) &&
		  (!ours || s.st_uid == 0 || s.st_uid == geteuid());

	while (ok && to->len < LISTING_MAX) {
		ssize_t got;

		if (!buf_reserve(to, PIECE))
			break;
		got = read(fd, to->ptr + to->len, PIECE);
		if (got < 0 && errno == EINTR)
			continue;
		ok = got >= 0;
		if (got <= 0)
			break;
		to->len += (size_t)got;
	}
	if (fd >= 0)
		close(fd);
	return ok;
}

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool take_hex(struct str *line, uint64_t *value)
{
	size_t len = 0;

	for (*value = 0; len < line->len && digit(line->ptr[len]) >= 0; len++)
		*value = *value << 4 | (uint64_t)digit(line->ptr[len]);
	if (!len || len > 16 || len >= line->len || line->ptr[len] != ' ')
		return false;
	*line = str_skip(*line, len + 1);
	return true;
}

bool perf_listing_add(struct perf_names *n, struct perf_listing *l, uint64_t start, uint64_t end,
		      str_id name)
{
	void *items = l->items;

	if (!mem_grow(n->mem, &items, &l->cap, l->count + 1, sizeof(*l->items)))
		return false;
	l->items = items;
	l->items[l->count++] = (struct perf_symbol){ .start = start, .end = end, .name = name };
	return true;
}

static int by_start(const void *a, const void *b)
{
	const struct perf_symbol *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->end > y->end) - (x->end < y->end);
}

void perf_listing_sort(struct perf_listing *l)
{
	if (l->count)
		qsort(l->items, l->count, sizeof(*l->items), by_start);
}

/* ---- the kernel ---- */

/* A line of the list: "address type name\tmodule". */
struct listed {
	uint64_t address;
	struct str name;
};

static bool parse_line(struct str line, struct listed *out)
{
	size_t end;
	char type;

	if (!take_hex(&line, &out->address) || line.len < 3 || line.ptr[1] != ' ')
		return false;
	type = line.ptr[0];
	if (!type || !strchr("tTwWdDbB", type))
		return false;
	line = str_skip(line, 2);
	end = str_find_char(line, '\t');
	out->name = str_first(line, MIN(end, line.len));
	return true;
}

/* The line of an item, again. */
static void line_of(const struct perf_kernel *k, const struct trace_ref *item, struct listed *out)
{
	struct str rest = str_skip(buf_str(&k->text), item->row);
	size_t end = str_find_char(rest, '\n');

	*out = (struct listed){ 0 };
	(void)parse_line(str_first(rest, MIN(end, rest.len)), out);
}

/* One item per address: the last, as in perf. */
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

ow_status perf_listing_read_kernel(struct perf_names *n)
{
	struct perf_kernel *k = &n->kernel;
	struct str text = buf_str(&k->text), line;
	struct trace_ref *scratch;
	struct listed one;

	while (str_split(&text, '\n', &line)) {
		void *items = k->items;

		if (!parse_line(line, &one))
			continue;
		if (!one.address && k->count > 8 && k->items[0].ts == 0) /* hidden from this user */
			break;
		if (!mem_grow(n->mem, &items, &k->cap, k->count + 1, sizeof(*k->items)))
			return OW_E_NO_MEMORY;
		k->items = items;
		k->items[k->count++] =
			(struct trace_ref){ .ts = (int64_t)one.address,
					    .row = (uint32_t)(line.ptr - k->text.ptr) };
		if (k->text_at && str_eq(one.name, STR("_text")))
			k->shift = k->text_at - one.address;
	}
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

str_id perf_listing_kernel_name(struct perf_names *n, uint64_t address)
{
	const struct perf_kernel *k = &n->kernel;
	int64_t at = (int64_t)(address - k->shift);
	size_t low = 0, high = k->count;
	struct listed found;

	while (low < high) { /* the last that starts at or before the address */
		size_t middle = low + (high - low) / 2;

		if (k->items[middle].ts <= at)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low || (low == k->count && at - k->items[low - 1].ts >= PAGE))
		return (str_id){ 0 };
	line_of(k, &k->items[low - 1], &found);
	return found.address ? builder_str(n->b, found.name) : (str_id){ 0 };
}

/* Without an id: the same release on the same host, which has been up since before the recording ended. */
static bool is_this_boot(const struct perf_names *n)
{
	struct timespec up;
	struct utsname u;

	return n->release[0] && n->host[0] && uname(&u) == 0 &&
	       strcmp(u.release, n->release) == 0 && strcmp(u.nodename, n->host) == 0 &&
	       clock_gettime(CLOCK_BOOTTIME, &up) == 0 &&
	       n->recorded.tv_sec > time(NULL) - up.tv_sec;
}

/* Whether this kernel is the one that was recorded. */
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

/* perf keeps a copy of the list beside its recordings: cheaper than the kernel's own, and there after a new start. */
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

ow_status perf_listing_kernel(struct perf_names *n)
{
	struct buf *text = &n->kernel.text;

	if (!read_copy(n, text) && is_this_kernel(n, text)) {
		buf_clear(text);
		(void)read_whole("/proc/kallsyms", false, text);
	}
	return text->failed || text->len > UINT32_MAX ? OW_E_NO_MEMORY
						      : perf_listing_read_kernel(n);
}

/* ---- compiled while running ---- */

ow_status perf_listing_read_jit(struct perf_names *n, struct perf_listing *l, struct str text)
{
	struct str line;

	while (str_split(&text, '\n', &line)) {
		uint64_t start, size;

		if (!take_hex(&line, &start) || !take_hex(&line, &size) || !line.len ||
		    size > UINT64_MAX - start)
			continue;
		if (!perf_listing_add(n, l, start, start + size, builder_str(n->b, line)))
			return OW_E_NO_MEMORY;
	}
	perf_listing_sort(l);
	return n->b->status;
}

ow_status perf_listing_jit(struct perf_names *n, struct perf_listing *l)
{
	ow_status status = OW_OK;
	struct buf text;
	char path[64];

	snprintf(path, sizeof(path), "/tmp/perf-%" PRId64 ".map", l->pid);
	buf_init(&text, n->mem);
	if (read_whole(path, true, &text))
		status = perf_listing_read_jit(n, l, buf_str(&text));
	buf_release(&text);
	return status;
}
