/*
 * opw_save.c: see opw_save.h. The columns come first in the file and the bytes that they point to last,
 * so that of a file that was cut short the tables survive; but the bytes are written first, because
 * their places go into the columns. The size of the columns is known before, so that works out.
 */
#include "sink/opw_save.h"

#include "sink/opw_places.h"

struct save {
	struct model *m;
	const struct opw_save_options *options;
	const struct opw_out *to;
	struct opw_out out; /* counts, and reports progress */
	struct opw_writer w;
	struct opw_places *places;
	uint64_t done, total, reported;
};

#define COLUMNS_MAX 64
#define REPORT_BYTES ((uint64_t)4 << 20)

static ow_status counted_write(void *arg, uint64_t offset, const void *bytes, size_t len,
			       struct error *err)
{
	struct save *s = arg;
	const struct progress *progress = s->options->progress;

	s->done += len;
	if (progress && progress->report && s->done - s->reported >= REPORT_BYTES) {
		s->reported = s->done;
		if (!progress->report(progress->arg, s->done, MAX(s->total, s->done)))
			return error_set(err, OW_E_INTERRUPTED, "interrupted");
	}
	return s->to->write_at(s->to->arg, offset, bytes, len, err);
}

/* ---- values of the whole ---- */

struct meta {
	int64_t time_unit_ns;
	uint8_t has_code, missing_streams, damaged, frozen;
};

static uint32_t meta_parts(const struct meta *meta, struct opw_part *parts)
{
	uint32_t n = 0;

	parts[n++] =
		(struct opw_part){ "time_unit_ns", "int64_t", 8, 8, &meta->time_unit_ns, 0, 0 };
	parts[n++] = (struct opw_part){ "has_code", "uint8_t", 1, 1, &meta->has_code, 0, 0 };
	parts[n++] = (struct opw_part){ "missing_streams",	"uint8_t", 1, 1,
					&meta->missing_streams, 0,	   0 };
	parts[n++] = (struct opw_part){ "damaged", "uint8_t", 1, 1, &meta->damaged, 0, 0 };
	parts[n++] = (struct opw_part){ "frozen", "uint8_t", 1, 1, &meta->frozen, 0, 0 };
	return n;
}

static struct meta meta_of(const struct model *m)
{
	return (struct meta){ .time_unit_ns = m->time_unit_ns,
			      .has_code = m->has_code,
			      .missing_streams = m->missing_streams,
			      .damaged = m->damaged,
			      .frozen = m->frozen };
}

/* ---- strings ---- */

struct string_reader {
	const struct model *m;
	uint32_t next;
	size_t within; /* bytes of that string (and its NUL) that were given */
};

static void read_lengths(void *arg, void *to, size_t len)
{
	struct string_reader *r = arg;
	uint32_t *lengths = to;

	for (size_t i = 0; i < len / sizeof(*lengths); i++)
		lengths[i] = (uint32_t)r->m->strings.text[r->next++].len;
}

static void read_texts(void *arg, void *to, size_t len)
{
	struct string_reader *r = arg;
	char *at = to;

	while (len) {
		struct str text = r->m->strings.text[r->next];
		size_t part = MIN(text.len - MIN(r->within, text.len), len);

		if (part)
			memcpy(at, text.ptr + r->within, part);
		at += part;
		len -= part;
		r->within += part;
		if (!len)
			return;
		*at++ = '\0';
		len--;
		r->within = 0;
		r->next++;
	}
}

static uint32_t string_parts(const struct model *m, struct string_reader *readers,
			     struct opw_part *parts)
{
	uint64_t size = 0;

	for (uint32_t i = 0; i < m->strings.count; i++)
		size += m->strings.text[i].len + 1;
	readers[0] = (struct string_reader){ .m = m };
	readers[1] = readers[0];
	parts[0] = (struct opw_part){ "length",	  "uint32_t",
				      4,	  (uint64_t)m->strings.count * 4,
				      NULL,	  read_lengths,
				      &readers[0] };
	parts[1] = (struct opw_part){ "text", "bytes", 1, size, NULL, read_texts, &readers[1] };
	return 2;
}

static ow_status check_strings(const struct model *m, struct error *err)
{
	for (uint32_t i = 0; i < m->strings.count; i++)
		if (m->strings.text[i].len > UINT32_MAX)
			return error_set(err, OW_E_LIMIT,
					 "a text of more than 4 GB cannot be saved");
	return OW_OK;
}

/* ---- tables ---- */

static uint32_t table_rows(const struct model *m, enum table_id table)
{
	return *(const uint32_t *)(const void *)((const char *)m + model_tables[table].offset);
}

/* Undecoded code traces are in the stacks by now. */
static bool is_kept(enum table_id table, const struct column_info *column)
{
	return table != TABLE_op ||
	       (strcmp(column->name, "code_offset") != 0 && strcmp(column->name, "code_size") != 0);
}

/* Nothing but a nil row is what a reader has anyway. */
static bool is_empty(const struct model *m, enum table_id table)
{
	const struct table_info *info = &model_tables[table];
	static const char zeros[16];

	for (uint32_t c = 0; c < info->column_count; c++) {
		const char *head = (const char *)m + info->offset;
		const void *values = *(void *const *)(const void *)(head + info->columns[c].offset);

		if (values && memcmp(values, zeros, info->columns[c].size) != 0)
			return false;
	}
	return table_rows(m, table) <= 1;
}

/* The columns of a table; none for a table that is left out. */
static uint32_t table_parts(const struct save *s, enum table_id table, struct opw_part *parts)
{
	const struct table_info *info = &model_tables[table];
	const char *head = (const char *)s->m + info->offset;
	uint32_t rows = table_rows(s->m, table), n = 0;

	if (is_empty(s->m, table))
		return 0;
	for (uint32_t c = 0; c < info->column_count; c++) {
		const struct column_info *column = &info->columns[c];
		const void *values = *(void *const *)(const void *)(head + column->offset);
		const void *moved = s->places ? opw_places_column(s->places, table, column) : NULL;

		if ((!values && !opw_places_has(s->m, table, column)) || !is_kept(table, column))
			continue;
		OW_ASSERT(n < COLUMNS_MAX);
		parts[n++] = (struct opw_part){ .name = column->name,
						.type = column->type,
						.value_size = column->size,
						.size = (uint64_t)rows * column->size,
						.bytes = moved ? moved : values };
	}
	return n;
}

/* Bytes of the header and of all segments of columns. */
static uint64_t columns_size(struct save *s, const struct meta *meta)
{
	struct opw_part parts[COLUMNS_MAX];
	struct string_reader readers[2];
	uint64_t size = sizeof(struct opw_header);

	size += opw_segment_size(parts, meta_parts(meta, parts));
	size += opw_segment_size(parts, string_parts(s->m, readers, parts));
	for (int t = 0; t < TABLE_COUNT; t++) {
		uint32_t count = table_parts(s, (enum table_id)t, parts);

		size += count ? opw_segment_size(parts, count) : 0;
	}
	return size;
}

static ow_status put_columns(struct save *s, const struct meta *meta, struct error *err)
{
	struct opw_part parts[COLUMNS_MAX];
	struct string_reader readers[2];
	uint32_t count = meta_parts(meta, parts);

	OW_TRY(opw_put_header(&s->w, s->options->writer, err));
	OW_TRY(opw_put_segment(&s->w, OPW_META, "", 0, 1, parts, count, err));
	count = string_parts(s->m, readers, parts);
	OW_TRY(opw_put_segment(&s->w, OPW_STRINGS, "", 0, s->m->strings.count, parts, count, err));
	for (int t = 0; t < TABLE_COUNT; t++) {
		count = table_parts(s, (enum table_id)t, parts);
		if (!count)
			continue;
		OW_TRY(opw_put_segment(&s->w, OPW_ROWS, model_tables[t].name, 0,
				       table_rows(s->m, (enum table_id)t), parts, count, err));
	}
	return OW_OK;
}

static ow_status check_sources(const struct model *m, struct error *err)
{
	for (size_t i = 0; i < m->input_cap; i++)
		if (m->inputs[i])
			OW_TRY(input_check_unchanged(m->inputs[i], err));
	return OW_OK;
}

static ow_status save_all(struct save *s, struct error *err)
{
	struct meta meta = meta_of(s->m);
	uint64_t columns = columns_size(s, &meta), end, size;

	s->total = columns + opw_places_size(s->m);
	s->w.at = columns;
	OW_TRY(opw_places_new(s->m, s->options, &s->w, &s->places, err));
	end = s->w.at;
	s->w.at = sizeof(struct opw_header);
	OW_TRY(put_columns(s, &meta, err));
	OW_ASSERT(s->w.at == columns);
	s->w.at = end;
	OW_TRY(opw_put_footer(&s->w, &size, err));
	return check_sources(s->m, err);
}

ow_status opw_save(struct model *m, const struct opw_save_options *options,
		   const struct opw_out *out, struct error *err)
{
	struct save s = { .m = m, .options = options, .to = out, .out = { counted_write, &s } };
	ow_status status;

	OW_TRY(model_require_rows(m, UINT64_MAX, err));
	OW_TRY(model_require_stacks(m, err));
	if (m->frozen)
		OW_TRY(model_require_nesting(m, err));
	OW_TRY(check_strings(m, err));
	opw_writer_init(&s.w, m->mem, &s.out);
	status = save_all(&s, err);
	opw_places_free(s.places, m);
	opw_writer_release(&s.w);
	return status;
}
