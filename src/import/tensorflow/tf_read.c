/*
 * tf_read.c: functions that all readers of TensorFlow's messages share (tf_read.h): the rule for damaged input,
 * interning of texts, room for further rows, and counts for facts. It does not know any message.
 */
#include "import/tensorflow/tf_read.h"
#include "base/vec.h"
#include "base/prefault.h"
#include "import/common/model_text.h"
#include "import/unrecognised.h"

void tf_read_begin(struct tf_read *r, struct import_ctx *ctx, const char *what, uint64_t begin,
		   uint64_t end)
{
	*r = (struct tf_read){ .ctx = ctx, .b = ctx->b, .what = what, .nested = begin != 0 };
	window_init(&r->window, ctx->in, &r->problem);
	pb_stream_init(&r->stream, &r->window, begin, end);
}

/* The problem's text without the file name, which the source row has already. */
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

/* Advice for a message about damage of the whole file, for example if it was copied as text. */
static const char *advice(struct tf_read *r)
{
	struct str head = window_peek(&r->window, 0, (size_t)MIN(r->ctx->in->size, 1u << 16));

	if (!r->nested && head.ptr && unrecognised_converted(head))
		return "; the file seems to have been changed by a copy in text mode: copy the "
		       "original again in binary mode";
	return "";
}

static void note_damage(struct tf_read *r)
{
	uint64_t left = r->ctx->in->size - MIN(r->problem.offset, r->ctx->in->size);
	bool truncated = r->stream.cut || left <= 2 * PB_VARINT_BYTES;

	builder_note(r->b, truncated ? NOTE_TRUNCATED : NOTE_DAMAGED, r->problem.offset,
		     "%s; the readable part of the %s is used%s", problem_text(r), r->what,
		     advice(r));
	if (r->damaged)
		builder_note_many(r->b, NOTE_DAMAGED, r->problem.offset, r->damaged,
				  "damaged records of the %s were skipped", r->what);
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
		return error_set(r->ctx->err, OW_E_FORMAT,
				 "%s: nothing usable in this %s; 'opwatch formats' lists the "
				 "formats that opwatch reads",
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

/* Whether a text is ASCII, as nearly every name is; tests eight bytes at a time, the last eight overlapping. */
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
	return utf8_repair(r->b, text);
}

/* The cache slot of a text, by its length and last bytes, which distinguish op types and devices well enough. */
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

/* Reserves room for names; if memory runs out, loading is only slower. */
static void reserve_names(struct model *m, uint32_t ops)
{
	struct strings *s = &m->strings;

	if (!map_reserve(&s->map, (size_t)s->count + ops) ||
	    !id_map_reserve(&m->op_by_name, (size_t)s->count + ops) ||
	    !vec_reserve(m->mem, s->text, s->cap, (size_t)s->count + ops))
		return;
}

void tf_reserve(struct tf_read *r, enum table_id table, uint32_t before, uint64_t read,
		uint64_t size)
{
	struct model *m = r->b->m;
	const char *head = (const char *)m + model_tables[table].offset;
	uint32_t have = *(const uint32_t *)(const void *)head - before, rows;

	/* with a memory limit, reserved but unused memory may be needed elsewhere */
	if (r->b->status != OW_OK || !read || m->mem->limit)
		return;
	rows = rows_for(have, read, size);
	if (table == TABLE_op)
		reserve_names(m, rows);
	if (rows > have)
		builder_reserve(r->b, table, rows - have);
}

#define ASKED_ROWS ((uint32_t)32 << 10)

void tf_prefault_rows(const struct model *m, enum table_id table, uint32_t *asked)
{
	const struct table_info *info = &model_tables[table];
	const char *head = (const char *)m + info->offset;
	uint32_t count = ((const uint32_t *)(const void *)head)[0];
	uint32_t cap = ((const uint32_t *)(const void *)head)[1];
	uint32_t last = count + MIN(ASKED_ROWS, cap - count);

	if (count < ASKED_ROWS) { /* the file may be small */
		*asked = ASKED_ROWS;
		return;
	}
	*asked = MAX(last, count + 1); /* a full table grows with the next row */
	for (uint32_t c = 0; c < info->column_count; c++) {
		size_t size = info->columns[c].size;

		prefault(*(void *const *)(const void *)(head + info->columns[c].offset),
			 count * size, last * size);
	}
}

void tf_time_unit(struct builder *b)
{
	if (!b->m->time_unit_ns || b->m->time_unit_ns > 1000)
		b->m->time_unit_ns = 1000;
}

void tf_tally_init(struct tf_tally *t, struct builder *b)
{
	*t = (struct tf_tally){ .b = b };
	map_init(&t->map, b->m->mem);
}

void tf_tally_release(struct tf_tally *t)
{
	map_release(&t->map);
	mem_free(t->b->m->mem, t->items, t->cap * sizeof(*t->items));
	t->items = NULL;
	t->count = t->cap = t->last = 0;
}

void tf_tally_slow(struct tf_tally *t, str_id text, int64_t value)
{
	uint64_t hash = map_hash_u64(text.v, 6);

	if (!t->count)
		t->count = 1;
	for (struct map_iter it = map_find(&t->map, hash); it.value; it = map_next(&t->map, it))
		if (t->items[it.value].text.v == text.v) {
			t->last = it.value;
			t->items[t->last].value = wrap_add(t->items[t->last].value, value);
			return;
		}
	if (!vec_reserve(t->b->m->mem, t->items, t->cap, t->count + 1)) {
		builder_no_memory(t->b);
		return;
	}
	if (!map_add(&t->map, hash, (uint32_t)t->count)) {
		builder_no_memory(t->b);
		return;
	}
	t->last = t->count++;
	t->items[t->last] = (struct tf_tally_item){ text, value };
}

static int by_value(const void *a, const void *b, void *arg)
{
	const struct tf_tally_item *x = a, *y = b;
	const struct model *m = arg;

	if (x->value != y->value)
		return x->value < y->value ? 1 : -1;
	return str_cmp(model_str(m, x->text), model_str(m, y->text));
}

void tf_tally_sort(struct tf_tally *t)
{
	if (t->count > 2)
		qsort_r(t->items + 1, t->count - 1, sizeof(*t->items), by_value, t->b->m);
}

static void pair(struct builder *b, fact_id list, const struct tf_tally_item *item)
{
	fact_id two = fact_list(b, list, NULL);

	fact_text(b, two, NULL, model_str(b->m, item->text));
	fact_int(b, two, NULL, item->value);
}

void tf_tally_list(struct tf_tally *t, fact_id parent, const char *key, size_t limit)
{
	fact_id list = fact_list(t->b, parent, key);

	tf_tally_sort(t);
	for (size_t i = 1; i < t->count && i <= limit; i++)
		pair(t->b, list, &t->items[i]);
}

void tf_tally_object(struct tf_tally *t, fact_id parent, const char *key, size_t limit)
{
	fact_id object = fact_object(t->b, parent, key);

	tf_tally_sort(t);
	for (size_t i = 1; i < t->count && i <= limit; i++)
		fact_int(t->b, object, model_str(t->b->m, t->items[i].text).ptr, t->items[i].value);
}

void tf_top_add(struct tf_top *top, const struct model *m, str_id text, int64_t value)
{
	struct tf_tally_item item = { text, value };
	size_t at = top->count;

	if (at == top->want && value < top->items[at - 1].value)
		return;
	while (at > 0 && by_value(&item, &top->items[at - 1], (void *)m) < 0)
		at--;
	if (at == top->want)
		return;
	if (top->count < top->want)
		top->count++;
	memmove(top->items + at + 1, top->items + at, (top->count - at - 1) * sizeof(*top->items));
	top->items[at] = item;
}

void tf_top_list(const struct tf_top *top, struct builder *b, fact_id parent, const char *key)
{
	fact_id list = fact_list(b, parent, key);

	for (size_t i = 0; i < top->count; i++)
		pair(b, list, &top->items[i]);
}
