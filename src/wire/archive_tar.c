/*
 * archive_tar.c: the members of a tar file: ustar, GNU and pax forms, and the old one without a magic,
 * which is known by the checksum of its first header.
 */
#include "wire/archive_int.h"

#define BLOCK 512
#define NAME_MAX_BYTES ((uint64_t)64 << 10)

/* An octal number, or a binary one when the first bit is set. UINT64_MAX when it is neither. */
static uint64_t number(const unsigned char *p, size_t len)
{
	uint64_t value = 0;
	size_t i = 0;

	if (p[0] & 0x80) {
		for (i = len > 8 ? len - 8 : 1; i < len; i++)
			value = value << 8 | p[i];
		return value;
	}
	while (i < len && p[i] == ' ')
		i++;
	for (; i < len && p[i] && p[i] != ' '; i++) {
		if (p[i] < '0' || p[i] > '7' || value >> 60)
			return UINT64_MAX;
		value = value << 3 | (uint64_t)(p[i] - '0');
	}
	return value;
}

static bool checksum_fits(const unsigned char *p)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < BLOCK; i++)
		sum += i >= 148 && i < 156 ? ' ' : p[i];
	return p[0] && number(p + 148, 8) == sum;
}

static bool match_tar(const unsigned char *head, size_t len)
{
	return len == BLOCK && checksum_fits(head);
}

static size_t field_len(const unsigned char *p, size_t max)
{
	const unsigned char *end = memchr(p, 0, max);

	return end ? (size_t)(end - p) : max;
}

/* A name that the next member has, from a header of its own. */
struct long_name {
	char *text;
	size_t len, cap;
};

static bool keep_name(struct archive *a, struct long_name *name, struct str text)
{
	void *grown = name->text;

	if (!mem_grow(a->arena.mem, &grown, &name->cap, text.len + 1, 1))
		return false;
	name->text = grown;
	memcpy(name->text, text.ptr, text.len);
	name->len = text.len;
	return true;
}

/* "27 path=some/name\n…": only the path matters here. */
static struct str pax_path(struct str records)
{
	while (records.len) {
		size_t blank = str_find_char(records, ' ');
		int64_t len;
		struct str record;

		if (blank == STR_NONE || !str_to_i64(str_first(records, blank), &len) || len <= 0 ||
		    (uint64_t)len > records.len || (size_t)len <= blank + 1)
			break;
		record = str_make(records.ptr + blank + 1, (size_t)len - blank - 1);
		if (str_starts(record, STR("path=")) && record.len > 6)
			return str_make(record.ptr + 5, record.len - 6); /* without the newline */
		records = str_skip(records, (size_t)len);
	}
	return (struct str){ 0 };
}

static ow_status read_name(struct archive *a, struct window *w, uint64_t at, uint64_t size,
			   bool pax, struct long_name *name, struct error *err)
{
	const unsigned char *p;
	struct str text;

	if (size > NAME_MAX_BYTES)
		return OW_OK;
	p = window_at(w, at, (size_t)size);
	if (!p)
		return w->status;
	text = str_make(p, (size_t)size);
	text = pax ? pax_path(text) : str_make(p, field_len(p, (size_t)size));
	if (text.len && !keep_name(a, name, text))
		return error_no_memory(err);
	return OW_OK;
}

static ow_status add_file(struct archive *a, const unsigned char *header, uint64_t at,
			  uint64_t size, uint64_t left, struct long_name *name, struct error *err)
{
	struct archive_member m = {
		.offset = at, .packed = size, .size = size, .cut = size > left
	};
	char joined[256];
	size_t prefix = memcmp(header + 257, "ustar", 5) == 0 && header[262] == 0
				? field_len(header + 345, 155)
				: 0;
	int len;

	if (!size)
		return OW_OK;
	if (name->len)
		return archive_add(a, &m, str_make(name->text, name->len), err);
	len = snprintf(joined, sizeof(joined), "%.*s%s%.*s", (int)prefix,
		       (const char *)header + 345, prefix ? "/" : "", (int)field_len(header, 100),
		       (const char *)header);
	return archive_add(a, &m, str_make(joined, MIN((size_t)len, sizeof(joined) - 1)), err);
}

static ow_status list_members(struct archive *a, struct window *w, struct long_name *name,
			      struct error *err)
{
	uint64_t at = 0, total = w->in->size;

	while (total - at >= BLOCK) {
		unsigned char header[BLOCK];
		const unsigned char *p = window_at(w, at, BLOCK);
		uint64_t size, padded;

		if (!p)
			return w->status;
		memcpy(header, p, BLOCK);
		if (!header[0])
			return OW_OK; /* the end, or nothing more that can be read */
		size = number(header + 124, 12);
		if (!checksum_fits(header) || size == UINT64_MAX) {
			archive_damage(a, at, "a header is damaged");
			return OW_OK;
		}
		at += BLOCK;
		if (size > total - at)
			archive_damage(a, total, "it is cut short");
		switch (header[156]) {
		case 'L': /* GNU: the name of the next member */
		case 'x': /* pax: attributes of the next member */
			if (size <= total - at)
				OW_TRY(read_name(a, w, at, size, header[156] == 'x', name, err));
			break;
		case '0':
		case '\0':
		case '7':
			OW_TRY(add_file(a, header, at, size, total - at, name, err));
			name->len = 0;
			break;
		case 'g':
		case 'K':
			break;
		default:
			name->len = 0;
		}
		padded = (size + BLOCK - 1) / BLOCK * BLOCK;
		if (padded < size || padded > total - at)
			return OW_OK;
		at += padded;
	}
	archive_damage(a, total, "it is cut short"); /* no empty block at the end */
	return OW_OK;
}

static ow_status list_tar(struct archive *a, const struct input *in, struct error *err)
{
	struct long_name name = { 0 };
	struct window w;
	ow_status status;

	window_init(&w, in, err);
	status = list_members(a, &w, &name, err);
	window_release(&w);
	mem_free(a->arena.mem, name.text, name.cap);
	return status;
}

static ow_status locate_tar(const struct archive_member *m, const struct input *in,
			    uint64_t *offset, struct error *err)
{
	(void)in;
	(void)err;
	*offset = m->offset;
	return OW_OK;
}

const struct archive_type archive_tar = { "tar", match_tar, list_tar, locate_tar };
