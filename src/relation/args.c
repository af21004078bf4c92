/*
 * args.c: reads the arguments of events from their input files when a query needs them. The relations arg and
 * trace_events and the SQL function for arguments call it. Reads are sorted by position in the file, and neighbours are
 * read together. Arguments that are not text in the input come from the importer's own reader. Texts are not cached,
 * and those above 16 MiB are skipped.
 */
#include "relation/args.h"

#include "wire/json/json.h"

#define ARGS_MAX ((uint32_t)16 << 20) /* longer arguments are skipped */
#define GAP_MAX ((uint64_t)4 << 10)   /* largest gap between arguments that are read together */
#define READ_MAX ((uint64_t)4 << 20)

struct place {
	uint64_t offset;
	uint32_t source, size, at;
};

static int by_place(const void *a, const void *b)
{
	const struct place *x = a, *y = b;

	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	return (x->offset > y->offset) - (x->offset < y->offset);
}

static uint32_t find_places(const struct model *m, const uint32_t *rows, uint32_t n, bool shared,
			    struct place *places)
{
	const uint64_t *offsets = shared ? m->event.shared_offset : m->event.args_offset;
	const uint32_t *sizes = shared ? m->event.shared_size : m->event.args_size;
	uint32_t count = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t size = COLUMN_GET(sizes, rows[i]);
		uint32_t source = m->track.source[m->event.track[rows[i]].v].v;

		if (!rows[i] || !size || size > ARGS_MAX || source >= m->input_cap ||
		    !m->inputs[source])
			continue;
		places[count++] = (struct place){ COLUMN_GET(offsets, rows[i]), source, size, i };
	}
	return count;
}

/* Reads the texts at places [0, n), which are near each other in the file. */
static ow_status read_group(const struct input *in, const struct place *places, uint32_t n,
			    struct str *texts, struct arena *arena, struct ow_error *err)
{
	uint64_t begin = places[0].offset, end = begin;
	const char *bytes;

	for (uint32_t i = 0; i < n; i++)
		end = places[i].offset > in->size ? UINT64_MAX
						  : MAX(end, places[i].offset + places[i].size);
	if (end > in->size)
		return error_set(err, OW_E_CORRUPT, "%s: arguments beyond the end of the file",
				 in->name);
	if (in->data) {
		bytes = (const char *)in->data + begin;
	} else {
		char *to = arena_push_aligned(arena, (size_t)(end - begin), 1);

		if (!to)
			return error_no_memory(err);
		OW_TRY(input_read_at(in, begin, to, (size_t)(end - begin), err));
		bytes = to;
	}
	for (uint32_t i = 0; i < n; i++)
		texts[places[i].at] = str_make(bytes + (places[i].offset - begin), places[i].size);
	return OW_OK;
}

/* Reads the arguments of one source's events with the reader of its importer. */
static ow_status ask_reader(const struct model *m, uint32_t source, const uint32_t *rows,
			    uint32_t n, struct str *texts, struct arena *arena,
			    struct ow_error *err)
{
	uint32_t *mine = ARENA_ARRAY(arena, uint32_t, n + 1), *at, count = 0;
	struct str *values = ARENA_ARRAY(arena, struct str, n + 1);
	const struct args_reader *reader = model_args_reader(m, source);

	at = mine && values ? ARENA_ARRAY(arena, uint32_t, n + 1) : NULL;
	if (!at)
		return error_no_memory(err);
	for (uint32_t i = 0; i < n; i++)
		if (rows[i] && m->track.source[m->event.track[rows[i]].v].v == source) {
			mine[count] = rows[i];
			at[count++] = i;
		}
	if (!count)
		return OW_OK;
	OW_TRY(reader->read(reader->state, m, mine, count, values, NULL, arena, err));
	for (uint32_t i = 0; i < count; i++)
		texts[at[i]] = values[i];
	return OW_OK;
}

static ow_status read_places(const struct model *m, struct place *places, uint32_t count,
			     struct str *texts, struct arena *arena, struct ow_error *err)
{
	uint32_t last;

	qsort(places, count, sizeof(*places), by_place);
	for (uint32_t i = 0; i < count; i = last) {
		for (last = i + 1;
		     last < count && places[last].source == places[i].source &&
		     places[last].offset <=
			     places[last - 1].offset + places[last - 1].size + GAP_MAX &&
		     places[last].offset + places[last].size - places[i].offset <= READ_MAX;
		     last++)
			;
		OW_TRY(read_group(m->inputs[places[i].source], places + i, last - i, texts, arena,
				  err));
	}
	return OW_OK;
}

static bool is_object(struct str text)
{
	return text.len >= 2 && text.ptr[0] == '{' && text.ptr[text.len - 1] == '}';
}

/* Joins two JSON objects: {"a": 1} and {"b": 2} become {"a": 1, "b": 2}. */
static ow_status join(struct str *text, struct str more, struct arena *arena, struct ow_error *err)
{
	size_t len = text->len + more.len;
	char *joined;

	if (!is_object(more))
		return OW_OK;
	if (!is_object(*text) || text->len == 2) {
		*text = more;
		return OW_OK;
	}
	joined = arena_push_aligned(arena, len, 1);
	if (!joined)
		return error_no_memory(err);
	memcpy(joined, text->ptr, text->len - 1);
	joined[text->len - 1] = ',';
	joined[text->len] = ' ';
	memcpy(joined + text->len + 1, more.ptr + 1, more.len - 1);
	*text = str_make(joined, len);
	return OW_OK;
}

/* Appends arguments that many events share, after the events' own arguments. */
static ow_status add_shared(const struct model *m, const uint32_t *rows, uint32_t n,
			    struct place *places, struct str *texts, struct arena *arena,
			    struct ow_error *err)
{
	struct str *shared = ARENA_ARRAY(arena, struct str, n + 1);

	if (!shared)
		return error_no_memory(err);
	OW_TRY(read_places(m, places, find_places(m, rows, n, true, places), shared, arena, err));
	for (uint32_t i = 0; i < n; i++)
		OW_TRY(join(&texts[i], shared[i], arena, err));
	return OW_OK;
}

ow_status args_read(const struct model *m, const uint32_t *rows, uint32_t n, struct str *texts,
		    struct arena *arena, struct ow_error *err)
{
	struct place *places = ARENA_ARRAY(arena, struct place, n + 1);
	uint32_t count;

	if (!places)
		return error_no_memory(err);
	memset(texts, 0, n * sizeof(*texts));
	count = find_places(m, rows, n, false, places);
	OW_TRY(read_places(m, places, count, texts, arena, err));
	if (m->event.shared_size)
		OW_TRY(add_shared(m, rows, n, places, texts, arena, err));
	for (uint32_t source = 1; source < m->args_reader_cap; source++)
		if (model_args_reader(m, source))
			OW_TRY(ask_reader(m, source, rows, n, texts, arena, err));
	return OW_OK;
}

/* The first row of event_args that belongs to this event or a later one. */
static uint32_t first_end(const struct model *m, uint32_t event)
{
	uint32_t low = 1, high = m->event_args.count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (m->event_args.event[middle].v < event)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

/* Finds the `which`-th end of each event. */
static uint32_t find_ends(const struct model *m, const uint32_t *rows, uint32_t n, uint32_t which,
			  struct place *places)
{
	const struct event_args_table *ends = &m->event_args;
	uint32_t count = 0;

	for (uint32_t i = 0; i < n; i++) {
		uint32_t at = rows[i] ? first_end(m, rows[i]) : ends->count, source;

		if (at >= ends->count || which >= ends->count - at ||
		    ends->event[at + which].v != rows[i])
			continue;
		source = m->track.source[m->event.track[rows[i]].v].v;
		if (!ends->args_size[at + which] || ends->args_size[at + which] > ARGS_MAX ||
		    source >= m->input_cap || !m->inputs[source])
			continue;
		places[count++] = (struct place){ ends->args_offset[at + which], source,
						  ends->args_size[at + which], i };
	}
	return count;
}

ow_status args_read_all(const struct model *m, const uint32_t *rows, uint32_t n, struct str *texts,
			struct arena *arena, struct ow_error *err)
{
	struct place *places;
	struct str *ends;
	uint32_t count;

	OW_TRY(args_read(m, rows, n, texts, arena, err));
	if (m->event_args.count <= 1)
		return OW_OK;
	places = ARENA_ARRAY(arena, struct place, n + 1);
	ends = places ? ARENA_ARRAY(arena, struct str, n + 1) : NULL;
	if (!ends)
		return error_no_memory(err);
	for (uint32_t which = 0; (count = find_ends(m, rows, n, which, places)); which++) {
		memset(ends, 0, n * sizeof(*ends));
		OW_TRY(read_places(m, places, count, ends, arena, err));
		for (uint32_t i = 0; i < n; i++)
			OW_TRY(join(&texts[i], ends[i], arena, err));
	}
	return OW_OK;
}

static bool same_key(struct str raw, struct str key)
{
	char decoded[512];
	size_t len;

	if (json_is_plain(raw))
		return str_eq(raw, key);
	len = json_decode_short(raw, decoded, sizeof(decoded));
	return len <= sizeof(decoded) && str_eq(str_make(decoded, len), key);
}

static ow_status value_text(struct json_value found, struct arena *arena, struct str *value,
			    struct ow_error *err)
{
	struct buf text;

	*value = json_text(found);
	if (found.kind != JSON_STRING || json_is_plain(*value))
		return OW_OK;
	buf_init(&text, arena->mem);
	json_decode(*value, &text);
	value->ptr = NULL;
	if (!text.failed)
		*value = arena_str(arena, buf_str(&text));
	buf_release(&text);
	return value->ptr ? OW_OK : error_no_memory(err);
}

ow_status args_value(struct str object, struct str key, struct arena *arena, struct str *value,
		     struct ow_error *err)
{
	struct json_reader reader = json_over(object);
	struct json_value found = { 0 }, next;
	struct str name;

	*value = (struct str){ 0 };
	if (!object.len || object.ptr[0] != '{')
		return OW_OK;
	while (json_next_member(&reader, &name, &next))
		if (same_key(name, key))
			found = next; /* if a key is repeated the last value counts */
	if (found.kind == JSON_NONE ||
	    (found.kind == JSON_LITERAL && str_eq(json_text(found), STR("null"))))
		return OW_OK;
	return value_text(found, arena, value, err);
}
