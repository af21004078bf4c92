/* tf_read.c: see tf_read.h. */
#include "import/tf_read.h"

#include "base/populate.h"
#include "import/repaired_text.h"
#include "import/stranger.h"

void tf_read_begin(struct tf_read *r, struct import_ctx *ctx, const char *what, uint64_t begin,
		   uint64_t end)
{
	*r = (struct tf_read){ .ctx = ctx, .b = ctx->b, .what = what, .nested = begin != 0 };
	window_init(&r->window, ctx->in, &r->problem);
	pb_stream_init(&r->stream, &r->window, begin, end);
}

/* The problem's text without the file name that the source row has anyway. */
static const char *problem_text(const struct tf_read *r)
{
	const char *name = r->ctx->in->name, *text = r->problem.text;
	size_t len = strlen(name);

	if (strncmp(text, name, len) == 0 && text[len] == ':' && text[len + 1] == ' ')
		return text + len + 2;
	return text;
}

static ow_status fail_with_problem(struct tf_read *r, ow_status status)
{
	if (r->ctx->err)
		*r->ctx->err = r->problem;
	return status;
}

/* What to add to a message about damage of the whole file: when it was copied as text there is more. */
static const char *advice(struct tf_read *r)
{
	struct str head = window_peek(&r->window, 0, (size_t)MIN(r->ctx->in->size, 1u << 16));

	if (!r->nested && head.ptr && stranger_converted(head))
		return "; the file looks as if it had been converted as text: copy the original "
		       "again, as binary";
	return "";
}

static void note_damage(struct tf_read *r)
{
	uint64_t left = r->ctx->in->size - MIN(r->problem.offset, r->ctx->in->size);
	bool truncated = r->cut || left <= 2 * PB_VARINT_BYTES;

	builder_note(r->b, truncated ? NOTE_TRUNCATED : NOTE_DAMAGED, r->problem.offset,
		     "%s; what could be read of the %s is used%s", problem_text(r), r->what,
		     advice(r));
	if (r->damaged)
		builder_note_many(r->b, NOTE_DAMAGED, r->problem.offset, r->damaged,
				  "records of the %s with damage inside were left out", r->what);
}

static ow_status end_damaged(struct tf_read *r, bool usable)
{
	bool strict = r->ctx->options->strict_proto;

	if (r->stream.status != OW_E_CORRUPT && r->stream.status != OW_E_LIMIT)
		return fail_with_problem(r, r->stream.status);
	if (strict)
		return fail_with_problem(r, OW_E_CORRUPT);
	if (!usable) {
		const char *more = advice(r);

		(void)fail_with_problem(r, r->stream.status);
		return error_wrap(r->ctx->err, r->stream.status,
				  "nothing usable was found before the damage%s",
				  *more ? more : "; copy the file again");
	}
	note_damage(r);
	return OW_OK;
}

static ow_status end_read(struct tf_read *r, bool usable)
{
	bool strict = r->ctx->options->strict_proto;

	if (r->b->status != OW_OK)
		return r->b->status;
	if (strict && r->bad_text)
		return error_at(r->ctx->err, OW_E_CORRUPT, r->bad_text_offset,
				"%s: a text in the %s is not UTF-8", r->ctx->in->name, r->what);
	if (r->bad_text)
		builder_note_many(r->b, NOTE_REPAIRED, r->bad_text_offset, r->bad_text,
				  "texts of the %s that are not UTF-8 were repaired", r->what);
	if (r->stream.status != OW_OK)
		return end_damaged(r, usable);
	if (!usable && !strict)
		return error_set(
			r->ctx->err, OW_E_FORMAT,
			"%s: nothing usable in this %s; 'opwatch formats' lists what can be "
			"opened",
			r->ctx->in->name, r->what);
	return builder_status(r->b);
}

ow_status tf_read_end(struct tf_read *r, bool usable)
{
	ow_status status = end_read(r, usable);

	window_release(&r->window);
	return status;
}

void tf_damaged(struct tf_read *r, const struct pb_stream_field *f, const struct pb *record,
		const uint8_t *bytes)
{
	r->damaged++;
	pb_stream_damage(&r->stream, f, record, bytes);
}

void tf_damaged_at(struct tf_read *r, uint64_t offset, const struct pb *record,
		   const uint8_t *bytes)
{
	const struct pb_stream_field f = { .offset = offset };

	tf_damaged(r, &f, record, bytes);
}

struct tf_bulk tf_bulk(const struct tf_read *r)
{
	const struct pb_stream *s = &r->stream;
	const struct window *w = &r->window;
	uint64_t skip = s->at - w->base, left = s->ends[s->depth] - s->at;
	struct tf_bulk bulk = { .base = s->at };

	if (s->at < w->base || skip > w->len || s->at > s->ends[s->depth])
		skip = left = 0;
	else
		left = MIN(left, w->len - skip);
	bulk.start = w->buf ? w->buf + skip : (const uint8_t *)"";
	bulk.pb = pb_over(bulk.start, (size_t)left);
	return bulk;
}

bool tf_bulk_end(struct tf_read *r, const struct tf_bulk *bulk)
{
	r->stream.at += (uint64_t)(bulk->pb.at - bulk->start);
	return r->b->status == OW_OK;
}

/* Eight bytes at a time, the last eight overlapping: nearly every name is ASCII. */
static bool is_ascii(struct str s)
{
	uint64_t bits = 0, part;

	if (s.len < 8) {
		for (size_t i = 0; i < s.len; i++)
			bits |= (unsigned char)s.ptr[i];
		return !(bits & 0x80);
	}
	for (size_t i = 0; i + 8 < s.len; i += 8) {
		memcpy(&part, s.ptr + i, 8);
		bits |= part;
	}
	memcpy(&part, s.ptr + s.len - 8, 8);
	return !((bits | part) & 0x8080808080808080ull);
}

str_id tf_text(struct tf_read *r, struct str text)
{
	return text.len ? tf_text_hashed(r, text, str_hash(text)) : (str_id){ 0 };
}

str_id tf_text_hashed(struct tf_read *r, struct str text, uint64_t hash)
{
	if (OW_LIKELY(is_ascii(text)) || utf8_valid(text))
		return builder_str_hashed(r->b, text, hash);
	if (!r->bad_text++)
		r->bad_text_offset = r->record;
	return repaired_text(r->b, text);
}

/* Length and the last bytes tell op types and devices apart well enough. */
static struct tf_word *word_slot(struct tf_read *r, struct str text)
{
	size_t last = (unsigned char)text.ptr[text.len - 1];
	size_t first = (unsigned char)text.ptr[text.len / 2];

	return &r->words[(text.len * 7 + last * 5 + first) & (TF_CACHE - 1)];
}

str_id tf_word(struct tf_read *r, struct str text)
{
	struct tf_word *word;

	if (!text.len)
		return (str_id){ 0 };
	word = word_slot(r, text);
	if (OW_LIKELY(tf_same(word->text, text)))
		return word->id;
	word->id = tf_text(r, text);
	word->text = model_str(r->b->m, word->id);
	return word->id;
}

strset_id tf_set_add(struct tf_read *r, strset_id set, str_id member)
{
	size_t at = (set.v * 5 + member.v) & (TF_CACHE - 1);

	if (r->sets[at].with.v && r->sets[at].set.v == set.v && r->sets[at].member.v == member.v)
		return r->sets[at].with;
	r->sets[at].set = set;
	r->sets[at].member = member;
	r->sets[at].with = builder_strset_add(r->b, set, member);
	return r->sets[at].with;
}

static uint32_t rows_for(uint32_t rows, uint64_t read, uint64_t size)
{
	double ratio = MIN((double)size / (double)read, (double)TF_AHEAD);
	double estimate = (double)rows * ratio * 1.01;

	return estimate < 1e9 ? (uint32_t)estimate : 0;
}

/* It is no failure when this cannot be had. */
static void reserve_names(struct model *m, uint32_t ops)
{
	struct strings *s = &m->strings;
	void *text = s->text;

	if (!map_reserve(&s->map, (size_t)s->count + ops) ||
	    !id_map_reserve(&m->op_by_name, (size_t)s->count + ops) ||
	    !mem_grow(m->mem, &text, &s->cap, (size_t)s->count + ops, sizeof(*s->text)))
		return;
	s->text = text;
}

void tf_reserve(struct tf_read *r, enum table_id table, uint32_t before, uint64_t read,
		uint64_t size)
{
	struct model *m = r->b->m;
	const char *head = (const char *)m + model_tables[table].offset;
	uint32_t have = *(const uint32_t *)(const void *)head - before, rows;

	if (r->b->status != OW_OK || !read ||
	    m->mem->limit) /* what is not used may be missed elsewhere */
		return;
	rows = rows_for(have, read, size);
	if (table == TABLE_op)
		reserve_names(m, rows);
	if (rows > have)
		builder_reserve(r->b, table, rows - have);
}

#define ASKED_ROWS ((uint32_t)32 << 10)

void tf_ask_ahead(const struct model *m, enum table_id table, uint32_t *asked)
{
	const struct table_info *info = &model_tables[table];
	const char *head = (const char *)m + info->offset;
	uint32_t count = ((const uint32_t *)(const void *)head)[0];
	uint32_t cap = ((const uint32_t *)(const void *)head)[1];
	uint32_t last = count + MIN(ASKED_ROWS, cap - count);

	if (count < ASKED_ROWS) { /* a small file, maybe */
		*asked = ASKED_ROWS;
		return;
	}
	*asked = MAX(last, count + 1); /* a full table grows with the next row */
	for (uint32_t c = 0; c < info->column_count; c++) {
		size_t size = info->columns[c].size;

		populate(*(void *const *)(const void *)(head + info->columns[c].offset),
			 count * size, last * size);
	}
}

void tf_time_unit(struct builder *b)
{
	if (!b->m->time_unit_ns || b->m->time_unit_ns > 1000)
		b->m->time_unit_ns = 1000;
}
