/*
 * relation_arg.c: the relation `arg`: one row per argument of an event, decoded from the input when it is read.
 * Arguments are counted first, block of events by block, on all cores; then only the blocks that a query reads are
 * decoded again.
 */
#include "relation/args.h"

#include "base/parallel.h"
#include "model/backing.h"
#include "relation/columns.h"
#include "wire/json/json.h"

#define BLOCK 1024 /* events in one block */

struct arg_blocks {
	/* for each block: row of its first argument; one more entry marks the end */
	uint64_t *first;
	uint32_t count;
};

/* The decoded arguments of one block of events. */
struct decoded {
	uint32_t count, cap;
	uint32_t *events;
	struct str *keys, *values;
};

/* Reads the arguments of a block's events. */
static ow_status read_block(const struct model *m, uint32_t block, struct str texts[BLOCK],
			    uint32_t *n, struct arena *arena, struct ow_error *err)
{
	uint32_t rows[BLOCK], first = 1 + block * BLOCK;

	*n = MIN(m->event.count - first, BLOCK);
	for (uint32_t i = 0; i < *n; i++)
		rows[i] = first + i;
	return args_read_all(m, rows, *n, texts, arena, err);
}

struct counting {
	const struct model *m;
	struct arg_blocks *blocks;
	atomic_uint next;
	atomic_int status;
	struct mem *mem;
	struct ow_error errors[PARALLEL_MAX];
};

static uint32_t count_members(struct str text)
{
	struct json_reader reader = json_over(text);
	struct json_value value;
	uint32_t count = 0;
	struct str key;

	if (!text.len || text.ptr[0] != '{')
		return 0;
	while (json_next_member(&reader, &key, &value))
		count++;
	return count;
}

static void count_blocks(void *arg, unsigned thread)
{
	struct counting *c = arg;
	struct str texts[BLOCK];
	struct arena arena;
	uint32_t block, n;

	arena_init(&arena, c->mem);
	while ((block = atomic_fetch_add(&c->next, 1)) < c->blocks->count &&
	       atomic_load(&c->status) == OW_OK) {
		ow_status status = read_block(c->m, block, texts, &n, &arena, &c->errors[thread]);
		uint64_t rows = 0;

		if (status != OW_OK)
			atomic_store(&c->status, (int)status);
		for (uint32_t i = 0; status == OW_OK && i < n; i++)
			rows += count_members(texts[i]);
		c->blocks->first[block + 1] = rows;
		arena_clear(&arena);
	}
	arena_release(&arena);
}

static ow_status count_all(const struct model *m, struct arg_blocks *blocks, struct mem *mem,
			   struct ow_error *err)
{
	struct counting *c = mem_zalloc(mem, sizeof(*c));
	ow_status status;

	if (!c)
		return error_no_memory(err);
	c->m = m;
	c->blocks = blocks;
	c->mem = mem;
	parallel_run(parallel_threads(), count_blocks, c);
	status = (ow_status)atomic_load(&c->status);
	for (unsigned i = 0; status != OW_OK && err && i < PARALLEL_MAX; i++)
		if (c->errors[i].status != OW_OK)
			*err = c->errors[i];
	mem_free(mem, c, sizeof(*c));
	for (uint32_t i = 0; i < blocks->count; i++)
		blocks->first[i + 1] += blocks->first[i];
	return status;
}

static ow_status prepare(struct table *t, struct table_part *part, struct ow_error *err)
{
	struct arg_blocks *blocks = ARENA_NEW(&part->arena, struct arg_blocks);
	const struct model *m = part->m;

	if (!blocks)
		return error_no_memory(err);
	part->state = blocks;
	if (model_has_args(m))
		blocks->count = (uint32_t)(((uint64_t)m->event.count - 1 + BLOCK - 1) / BLOCK);
	blocks->first = ARENA_ARRAY(&part->arena, uint64_t, (size_t)blocks->count + 1);
	if (!blocks->first)
		return error_no_memory(err);
	OW_TRY(count_all(m, blocks, t->mem, err));
	part->rows = blocks->first[blocks->count];
	return OW_OK;
}

static ow_status decode_text(struct json_value value, struct arena *arena, struct str *to,
			     struct ow_error *err)
{
	struct str text = json_text(value);
	struct buf decoded;

	*to = text;
	if (value.kind == JSON_LITERAL && str_eq(text, STR("null")))
		*to = (struct str){ 0 };
	if (value.kind != JSON_STRING)
		return OW_OK;
	if (json_is_plain(text)) {
		if (!text.len)
			*to = STR("");
		return OW_OK;
	}
	buf_init(&decoded, arena->mem);
	json_decode(text, &decoded);
	to->ptr = NULL;
	if (!decoded.failed)
		*to = arena_str(arena, buf_str(&decoded));
	buf_release(&decoded);
	return to->ptr ? OW_OK : error_no_memory(err);
}

static ow_status decode_event(struct decoded *d, uint32_t event, struct str text,
			      struct arena *arena, struct ow_error *err)
{
	struct json_reader reader = json_over(text);
	struct json_value value;
	struct str key;

	if (!text.len || text.ptr[0] != '{')
		return OW_OK;
	while (d->count < d->cap && json_next_member(&reader, &key, &value)) {
		struct json_value name = { key.ptr, (uint32_t)key.len, JSON_STRING };

		d->events[d->count] = event;
		OW_TRY(decode_text(name, arena, &d->keys[d->count], err));
		OW_TRY(decode_text(value, arena, &d->values[d->count], err));
		d->count++;
	}
	return OW_OK;
}

static ow_status decode_block(const struct table_part *p, uint32_t block, struct arena *arena,
			      struct decoded **out, struct ow_error *err)
{
	const struct arg_blocks *blocks = p->state;
	struct decoded *d = ARENA_NEW(arena, struct decoded);
	struct str texts[BLOCK];
	uint32_t n;

	if (!d)
		return error_no_memory(err);
	d->cap = (uint32_t)(blocks->first[block + 1] - blocks->first[block]);
	d->events = ARENA_ARRAY(arena, uint32_t, d->cap + 1);
	d->keys = ARENA_ARRAY(arena, struct str, d->cap + 1);
	d->values = ARENA_ARRAY(arena, struct str, d->cap + 1);
	if (!d->events || !d->keys || !d->values)
		return error_no_memory(err);
	OW_TRY(read_block(p->m, block, texts, &n, arena, err));
	for (uint32_t i = 0; i < n; i++)
		OW_TRY(decode_event(d, 1 + block * BLOCK + i, texts[i], arena, err));
	if (d->count != d->cap) /* the file has changed since its arguments were counted */
		return error_set(err, OW_E_IO, "arguments changed while they were read");
	*out = d;
	return OW_OK;
}

/* The decoded block, from the memo if the previous column has already decoded it. */
static ow_status get_block(const struct table_part *p, uint32_t block, struct table_vec *out,
			   const struct decoded **d, struct ow_error *err)
{
	struct table_memo *memo = out->memo;
	struct decoded *made = NULL;

	if (memo && memo->owner == p && memo->first == block && memo->data) {
		*d = memo->data;
		return OW_OK;
	}
	OW_TRY(decode_block(p, block, out->scratch, &made, err));
	if (memo)
		*memo = (struct table_memo){ .owner = p, .first = block, .data = made };
	*d = made;
	return OW_OK;
}

static uint32_t find_block(const struct arg_blocks *blocks, uint64_t row)
{
	uint32_t low = 0, high = blocks->count;

	while (high - low > 1) {
		uint32_t middle = low + (high - low) / 2;

		if (blocks->first[middle] <= row)
			low = middle;
		else
			high = middle;
	}
	return low;
}

enum { ARG_EVENT, ARG_KEY, ARG_VALUE };

static ow_status fill(const struct table_part *p, const struct table_column *c, uint64_t first,
		      uint32_t n, struct table_vec *out, struct ow_error *err)
{
	const struct arg_blocks *blocks = p->state;
	uint32_t block = find_block(blocks, first), done = 0;

	for (; done < n; block++) {
		uint64_t at = first + done - blocks->first[block];
		uint32_t part = (uint32_t)MIN(n - done,
					      blocks->first[block + 1] - blocks->first[block] - at);
		const struct decoded *d = NULL;

		if (!part)
			continue;
		OW_TRY(get_block(p, block, out, &d, err));
		OW_ASSERT(d);
		if (c->number == ARG_EVENT)
			for (uint32_t i = 0; i < part; i++)
				((int64_t *)out->values)[done + i] = p->id_base + d->events[at + i];
		else
			memcpy((struct str *)out->values + done,
			       (c->number == ARG_KEY ? d->keys : d->values) + at,
			       part * sizeof(struct str));
		done += part;
	}
	return OW_OK;
}

static ow_status describe(struct table *t, struct ow_error *err)
{
	static const struct table_column columns[] = {
		{ .name = "event_id",
		  .doc = "the event",
		  .type = TYPE_INT,
		  .fill = fill,
		  .number = ARG_EVENT },
		{ .name = "key",
		  .doc = "name of the argument",
		  .type = TYPE_TEXT,
		  .fill = fill,
		  .number = ARG_KEY },
		{ .name = "value",
		  .doc = "value of the argument: text decoded, anything else as JSON; NULL for "
			 "null",
		  .type = TYPE_TEXT,
		  .fill = fill,
		  .number = ARG_VALUE },
	};

	columns_need(t, TABLE_BIT(event) | TABLE_BIT(event_args) | TABLE_BIT(track));
	for (size_t i = 0; i < ARRAY_COUNT(columns); i++)
		OW_TRY(columns_add(t, &columns[i], err));
	return OW_OK;
}

const struct table_source relation_arg = {
	.name = "arg",
	.doc = "one argument of an event, or of its end; arg(event_id, 'key') gives one value",
	.describe = describe,
	.prepare = prepare,
};
