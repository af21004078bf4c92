/* perf_listing.c: see perf_listing.h. */
#include "import/perf_listing.h"

#include <endian.h>
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
#define ORDERED_MIN ((size_t)64 << 10) /* bytes; less than that is sorted at once */

/* All of a file; false when there is none, or it is not to be trusted. Files of /proc do not know their size. */
static bool read_whole(const char *path, bool ours, struct buf *to)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | (ours ? O_NOFOLLOW : 0));
	struct stat s;
	size_t size;
	bool ok = fd >= 0 && fstat(fd, &s) == 0 && S_ISREG(s.st_mode) &&
		  (!ours || s.st_uid == 0 || s.st_uid == geteuid());

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

static int digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Eight digits at once, the first of them the highest. */
static uint64_t eight_digits(const char *p)
{
	uint64_t c;

	memcpy(&c, p, sizeof(c));
	c = be64toh((c & 0x0f0f0f0f0f0f0f0f) + 9 * (c >> 6 & 0x0101010101010101));
	c = (c | c >> 4) & 0x00ff00ff00ff00ff;
	c = (c | c >> 8) & 0x0000ffff0000ffff;
	return (c | c >> 16) & 0xffffffff;
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

/* The last that starts at or before an address, or NULL. */
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

/* Where the line begins that a byte is in. */
static size_t line_start(const struct perf_kernel *k, size_t at)
{
	const char *before = at ? memrchr(k->text.ptr, '\n', at) : NULL;

	return before ? (size_t)(before + 1 - k->text.ptr) : 0;
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

/* ---- most of the list is in order already, and stays text ---- */

static uint64_t address_at(const struct perf_kernel *k, size_t start)
{
	struct str line = str_skip(buf_str(&k->text), start);
	uint64_t address;

	if (line.len > 16 && line.ptr[16] == ' ') /* as the kernel writes them */
		return eight_digits(line.ptr) << 32 | eight_digits(line.ptr + 8);
	return take_hex(&line, &address) ? address : 0;
}

/* Where the functions of modules begin, which come last and have their module's name. */
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

/* The last line before a place that names something we want; STR_NONE when there is none. */
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

/* The kernel writes its own functions in order. Whether this list is such a one is seen from samples of it. */
static bool is_in_order(struct perf_kernel *k, size_t end)
{
	for (size_t i = 0; i < PERF_ORDER_SAMPLES; i++) {
		k->samples[i] = address_at(k, line_start(k, end / PERF_ORDER_SAMPLES * i));
		if (i && k->samples[i] < k->samples[i - 1])
			return false;
	}
	return k->samples[PERF_ORDER_SAMPLES - 1];
}

/* Where the part of the list ends that can be searched as it is: in front of the kernel's last function. */
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

	while (low < high) { /* the first sample behind it */
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

/* The last line at or before an address, by reading lines. */
static bool search_lines(const struct perf_kernel *k, size_t part, uint64_t address,
			 struct listed *found)
{
	size_t low = part_start(k, part), high = part_start(k, part + 1);

	while (low < high) { /* the first line behind the address */
		size_t start = line_start(k, low + (high - low) / 2);

		if (address_at(k, start) <= address)
			low = MIN(start + line_at(k, start).len + 1, k->ordered);
		else
			high = start;
	}
	return last_wanted(k, low, found) != STR_NONE;
}

/* What is listed in a part. A symbol's end is where its line is, until it has a name. */
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
		if (wanted && !perf_listing_add(n, l, one.address, at, (str_id){ 0 }))
			return false;
		at += line.len + 1;
	}
	return true;
}

/* Of the functions that are asked for, many lie near each other, and each is asked for with many addresses: lines around them are
 * read once. */
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
	if (!symbol) /* in front of it */
		return search_lines(k, part, address, &found) && found.address
			       ? builder_str(n->b, found.name)
			       : (str_id){ 0 };
	if (!symbol->name.v && symbol->start && parse_line(line_at(k, (size_t)symbol->end), &found))
		symbol->name = builder_str(n->b, found.name);
	return symbol->name;
}

/* ---- the rest of it, and other lists, are sorted ---- */

static ow_status add_lines(struct perf_names *n, size_t from)
{
	struct perf_kernel *k = &n->kernel;
	struct str text = str_skip(buf_str(&k->text), from), line;
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
	}
	return OW_OK;
}

/* By how much the kernel was moved. */
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

str_id perf_listing_kernel_name(struct perf_names *n, uint64_t address)
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
