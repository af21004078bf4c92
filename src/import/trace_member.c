/*
 * trace_member.c: the members of the top-level object beside the events. Those that change how events are
 * read are applied; small plain ones become facts, except in objects that may hold a whole environment;
 * stackFrames is read when all events are, samples are read at once.
 */
#include "import/trace_int.h"

#define SMALL_VALUE ((uint64_t)256 << 10)

/* The text of a member's value, in memory of the model's scratch; NULL text when it is too large. */
static ow_status read_value(struct trace *t, const struct json_item *item, struct buf *text)
{
	buf_clear(text);
	if (item->size > SMALL_VALUE)
		return OW_OK;
	if (!buf_reserve(text, (size_t)item->size + 16))
		return error_no_memory(t->ctx->err);
	memset(text->ptr + item->size, 0, 16);
	OW_TRY(input_read_at(t->ctx->in, item->offset, text->ptr, (size_t)item->size, t->ctx->err));
	text->len = (size_t)item->size;
	return OW_OK;
}

/* A string without its quotes, anything else as it is. */
static struct str plain_text(const struct json_item *item, const struct buf *text)
{
	struct str s = buf_str(text);

	if (item->value == JSON_STRING && s.len >= 2)
		return str_make(s.ptr + 1, s.len - 2);
	return s;
}

static fact_id members_of(struct trace *t)
{
	if (!t->members.v)
		t->members = fact_object(t->b, (fact_id){ 0 }, "top_level");
	return t->members;
}

static void add_fact(struct trace *t, const char *key, enum json_kind kind, struct str value)
{
	int64_t number;
	double real;

	if (kind == JSON_NUMBER && json_decimal(value, 0, &number) == JSON_EXACT)
		fact_int(t->b, members_of(t), key, number);
	else if (kind == JSON_NUMBER && json_double(value, &real))
		fact_real(t->b, members_of(t), key, real);
	else if (kind == JSON_STRING && utf8_valid(value))
		fact_text(t->b, members_of(t), key, value);
	else if (kind == JSON_LITERAL &&
		 (str_eq(value, STR("true")) || str_eq(value, STR("false"))))
		fact_bool(t->b, members_of(t), key, value.ptr[0] == 't');
}

static void read_distributed(struct trace *t, struct str value)
{
	struct json_value rank = json_find(value, "rank"), world = json_find(value, "world_size");
	struct json_value backend = json_find(value, "backend");
	int64_t number;

	if (json_decimal(json_text(rank), 0, &number) == JSON_EXACT && number >= 0 &&
	    number <= INT32_MAX)
		t->b->m->source.rank[t->b->source.v] = (int32_t)number;
	add_fact(t, "rank", rank.kind, json_text(rank));
	add_fact(t, "world_size", world.kind, json_text(world));
	add_fact(t, "backend", backend.kind, json_text(backend));
}

static void use_member(struct trace *t, struct str key, const struct json_item *item,
		       struct str value)
{
	int64_t number;

	if (str_eq(key, STR("baseTimeNanoseconds"))) {
		if (json_decimal(value, 0, &number) == JSON_EXACT)
			t->base_ns = number;
	} else if (str_eq(key, STR("beginningOfTime"))) {
		if (json_decimal(value, 3, &number) == JSON_EXACT)
			t->base_ns = number;
	} else if (str_eq(key, STR("distributedInfo"))) {
		read_distributed(t, value);
	} else if (str_eq(key, STR("stackFrames")) && item->value == JSON_OBJECT) {
		t->frames_offset = item->offset;
		t->frames_size = item->size;
	}
}

ow_status trace_member(struct trace *t, const struct json_item *item)
{
	struct buf text;
	char key[64];
	ow_status status;

	buf_init(&text, t->mem);
	status = read_value(t, item, &text);
	if (status == OW_OK) {
		struct str name = json_text(item->key), value = plain_text(item, &text);

		use_member(t, name, item, value);
		t->member_bits |= meaning_member(name, value);
		if (text.len && name.len < sizeof(key) && utf8_valid(name) && name.len) {
			memcpy(key, name.ptr, name.len);
			key[name.len] = '\0';
			add_fact(t, key, item->value, value);
		}
		status = builder_status(t->b);
	}
	buf_release(&text);
	return status;
}
