/*
 * opw_told.c: see opw_told.h. Rows are asked for in blocks. What an importer says of all events of a kind (of an
 * XSpace: the text and the cost of an instruction, some KB for each of millions of runs) is written once and pointed
 * to by every event; only what is an event's own is written for each.
 */
#include "sink/opw_told.h"

#include "base/map.h"

#define AT_ONCE 4096

/* A text that was written. */
struct written {
	struct str text;
	uint64_t offset;
};

struct telling {
	struct opw_told *told;
	struct arena scratch; /* of a block */
	struct arena kept;    /* texts of what was written, to be compared with */
	struct map map;	      /* text → row of written + 1 */
	struct written *written;
	size_t count, cap;
};

bool opw_told_any(const struct model *m)
{
	for (uint32_t source = 1; source < m->source.count; source++)
		if (model_args_reader(m, source))
			return true;
	return false;
}

static ow_status put_text(struct opw_told *told, struct str text, uint64_t *offset)
{
	if (text.len > UINT32_MAX)
		return error_set(told->err, OW_E_LIMIT,
				 "arguments of more than 4 GB cannot be saved");
	OW_TRY(opw_begin_item(told->w, offset, told->err));
	return opw_put_bytes(told->w, text.ptr, text.len, told->err);
}

static ow_status put_own(struct telling *t, uint32_t row, struct str text)
{
	struct opw_told *told = t->told;

	if (!text.len)
		return OW_OK;
	OW_TRY(put_text(told, text, &told->own.offset[row]));
	told->own.size[row] = (uint32_t)text.len;
	return OW_OK;
}

static const struct written *find(const struct telling *t, struct str text, uint64_t hash)
{
	for (struct map_iter it = map_find(&t->map, hash); it.value; it = map_next(&t->map, it))
		if (str_eq(t->written[it.value - 1].text, text))
			return &t->written[it.value - 1];
	return NULL;
}

static ow_status remember(struct telling *t, struct str text, uint64_t hash, uint64_t offset)
{
	void *written = t->written;
	struct str copy = arena_str(&t->kept, text);

	if (!copy.ptr ||
	    !mem_grow(t->told->m->mem, &written, &t->cap, t->count + 1, sizeof(*t->written)))
		return error_no_memory(t->told->err);
	t->written = written;
	t->written[t->count++] = (struct written){ copy, offset };
	return map_add(&t->map, hash, (uint32_t)t->count) ? OW_OK : error_no_memory(t->told->err);
}

static ow_status put_shared(struct telling *t, uint32_t row, struct str text)
{
	struct opw_told *told = t->told;
	const struct written *before;
	uint64_t hash;

	if (!text.len)
		return OW_OK;
	hash = str_hash(text);
	before = find(t, text, hash);
	if (before) {
		told->shared.offset[row] = before->offset;
	} else {
		OW_TRY(put_text(told, text, &told->shared.offset[row]));
		OW_TRY(remember(t, text, hash, told->shared.offset[row]));
	}
	told->shared.size[row] = (uint32_t)text.len;
	return OW_OK;
}

/* Rows of one source. */
static ow_status put_rows(struct telling *t, uint32_t source, const uint32_t *rows, uint32_t n)
{
	const struct args_reader *reader = model_args_reader(t->told->m, source);
	struct str *texts = ARENA_ARRAY(&t->scratch, struct str, n);
	struct str *shared = texts ? ARENA_ARRAY(&t->scratch, struct str, n) : NULL;

	if (!shared)
		return error_no_memory(t->told->err);
	OW_TRY(reader->read(reader->state, t->told->m, rows, n, texts, shared, &t->scratch,
			    t->told->err));
	for (uint32_t i = 0; i < n; i++) {
		OW_TRY(put_own(t, rows[i], texts[i]));
		OW_TRY(put_shared(t, rows[i], shared[i]));
	}
	arena_clear(&t->scratch);
	return OW_OK;
}

static uint32_t source_of(const struct model *m, uint32_t event)
{
	return m->track.source[m->event.track[event].v].v;
}

static ow_status put_all(struct telling *t)
{
	const struct model *m = t->told->m;
	uint32_t rows[AT_ONCE], n = 0, source = 0;

	for (uint32_t i = 1; i < m->event.count; i++) {
		uint32_t of = source_of(m, i);

		if (n && (n == AT_ONCE || of != source)) {
			OW_TRY(put_rows(t, source, rows, n));
			n = 0;
		}
		source = of;
		if (model_args_reader(m, of))
			rows[n++] = i;
	}
	return n ? put_rows(t, source, rows, n) : OW_OK;
}

ow_status opw_told_write(struct opw_told *told)
{
	struct mem *mem = told->m->mem;
	struct telling t = { .told = told };
	ow_status status;

	arena_init(&t.scratch, mem);
	arena_init(&t.kept, mem);
	map_init(&t.map, mem);
	status = put_all(&t);
	mem_free(mem, t.written, t.cap * sizeof(*t.written));
	map_release(&t.map);
	arena_release(&t.kept);
	arena_release(&t.scratch);
	return status;
}
