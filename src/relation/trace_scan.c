/* trace_scan.c: see trace_scan.h. */
#include "relation/trace_scan.h"

#include "wire/json.h"
#include "wire/json_scan.h"

#include <math.h>

void trace_rows_init(struct trace_rows *r, struct mem *mem)
{
	*r = (struct trace_rows){ .mem = mem };
	map_init(&r->map, mem);
	arena_init(&r->arena, mem);
}

void trace_rows_release(struct trace_rows *r)
{
	for (size_t i = 0; i < r->block_count; i++)
		mem_free(r->mem, r->blocks[i], sizeof(struct trace_block));
	mem_free(r->mem, r->blocks, r->block_cap * sizeof(*r->blocks));
	mem_free(r->mem, r->texts, r->text_cap * sizeof(*r->texts));
	map_release(&r->map);
	arena_release(&r->arena);
}

/* ---- texts ---- */

static bool add_text(struct trace_rows *r, struct str text, uint64_t hash, uint32_t *code)
{
	void *texts = r->texts;
	struct str copy = arena_str(&r->arena, text);

	if (!r->text_count)
		r->text_count = 1; /* NULL */
	if (!copy.ptr || !mem_grow(r->mem, &texts, &r->text_cap, r->text_count + 1, sizeof(copy)))
		return false;
	r->texts = texts;
	r->texts[0] = (struct str){ 0 };
	r->texts[r->text_count] = copy;
	*code = (uint32_t)r->text_count;
	if (!map_add(&r->map, hash, *code))
		return false;
	r->text_count++;
	return true;
}

static bool intern(struct trace_rows *r, struct str text, uint32_t *code)
{
	uint64_t hash = str_hash(text);

	for (struct map_iter it = map_find(&r->map, hash); it.value; it = map_next(&r->map, it))
		if (str_eq(r->texts[it.value], text)) {
			*code = it.value;
			return true;
		}
	return add_text(r, text, hash, code);
}

/* Strings decoded, numbers and literals as they are, null is none. */
static bool intern_value(struct trace_rows *r, struct json_value value, uint32_t *code)
{
	struct str text = json_text(value);
	struct buf decoded;
	bool ok;

	*code = 0;
	if (value.kind == JSON_NONE || (value.kind == JSON_LITERAL && str_eq(text, STR("null"))))
		return true;
	if (value.kind != JSON_STRING || json_is_plain(text))
		return intern(r, text, code);
	buf_init(&decoded, r->mem);
	json_decode(text, &decoded);
	ok = !decoded.failed && intern(r, buf_str(&decoded), code);
	buf_release(&decoded);
	return ok;
}

/* Few and short: most are the one before. */
static bool intern_cat(struct trace_rows *r, struct json_value value, uint32_t *code)
{
	if (r->last_cat && value.kind == JSON_STRING &&
	    str_eq(json_text(value), r->texts[r->last_cat])) {
		*code = r->last_cat;
		return true;
	}
	if (!intern_value(r, value, code))
		return false;
	r->last_cat = *code;
	return true;
}

static bool intern_ph(struct trace_rows *r, struct json_value value, uint32_t *code)
{
	uint32_t *known = NULL;

	if (value.kind == JSON_STRING && value.len == 1) {
		known = &r->letters[(unsigned char)value.at[0]];
		*code = *known;
	}
	if (known && *known)
		return true;
	if (!intern_value(r, value, code))
		return false;
	if (known)
		*known = *code;
	return true;
}

/* ---- rows ---- */

/* Where the next row goes: a block, and the place in it. */
static struct trace_block *next_row(struct trace_rows *r, size_t *at)
{
	void *blocks = r->blocks;

	*at = (size_t)(r->count % TRACE_BLOCK);
	if (*at)
		return r->blocks[r->block_count - 1];
	if (!mem_grow(r->mem, &blocks, &r->block_cap, r->block_count + 1, sizeof(*r->blocks)))
		return NULL;
	r->blocks = blocks;
	r->blocks[r->block_count] = mem_alloc(r->mem, sizeof(struct trace_block));
	return r->blocks[r->block_count] ? r->blocks[r->block_count++] : NULL;
}

static struct json_value field(const struct json_event *ev, enum json_field f)
{
	return json_event_has(ev, f) ? ev->value[f] : (struct json_value){ 0 };
}

static int64_t number_of(struct json_value value)
{
	int64_t number;

	if ((value.kind == JSON_NUMBER || value.kind == JSON_STRING) &&
	    json_decimal(json_text(value), 0, &number) == JSON_EXACT)
		return number;
	return TRACE_NO_NUMBER;
}

/* Times since 1970 in nanoseconds are more than a double holds; in microseconds they are not. */
static double micros(int64_t ns)
{
	int64_t whole = ns / 1000, rest = ns % 1000;

	return ns == TIME_UNKNOWN ? (double)NAN : (double)whole + (double)rest / 1000.0;
}

/* Of up to three decimals nanoseconds are exact, and so the nearest microseconds. */
static double time_of(struct json_value value)
{
	double number;
	int64_t ns;

	if (value.kind == JSON_NUMBER &&
	    json_decimal_padded(json_text(value), 3, &ns) == JSON_EXACT)
		return micros(ns);
	if ((value.kind == JSON_NUMBER || value.kind == JSON_STRING) &&
	    json_double(json_text(value), &number))
		return number;
	return (double)NAN;
}

static bool intern_op(struct trace_rows *r, struct json_value op, struct json_value name,
		      uint32_t name_code, uint32_t *code)
{
	/* In TensorFlow's timelines the event is called by its op. */
	if (op.kind == JSON_STRING && name.kind == JSON_STRING &&
	    str_eq(json_text(op), json_text(name))) {
		*code = name_code;
		return true;
	}
	return intern_value(r, op, code);
}

static bool take_event(struct trace_rows *r, const struct json_scan *scan,
		       const struct json_event *ev, uint32_t source, uint32_t index)
{
	static const struct json_pick picks[] = { JSON_PICK("name"), JSON_PICK("op") };
	struct json_value found[ARRAY_COUNT(picks)] = { { 0 } };
	struct json_value args = field(ev, FIELD_ARGS), name = field(ev, FIELD_NAME);
	struct trace_block *b;
	size_t i;

	b = next_row(r, &i);
	if (!b)
		return false;
	b->source[i] = source;
	b->index[i] = index;
	b->ts[i] = time_of(field(ev, FIELD_TS));
	b->dur[i] = time_of(field(ev, FIELD_DUR));
	b->pid[i] = number_of(field(ev, FIELD_PID));
	b->tid[i] = number_of(field(ev, FIELD_TID));
	b->args_offset[i] = 0;
	b->args_size[i] = 0;
	if (args.kind == JSON_OBJECT) {
		b->args_offset[i] = ev->offset + (uint64_t)(args.at - ev->text);
		b->args_size[i] = args.len;
		json_scan_pick(scan, &args, picks, ARRAY_COUNT(picks), found);
	}
	r->count++;
	return intern_ph(r, field(ev, FIELD_PH), &b->ph[i]) &&
	       intern_cat(r, field(ev, FIELD_CAT), &b->cat[i]) &&
	       intern_value(r, name, &b->name[i]) && intern_value(r, found[0], &b->arg_name[i]) &&
	       intern_op(r, found[1], name, b->name[i], &b->arg_op[i]);
}

/* One list of events. The index counts what is no event, too, as its place in the list. */
static ow_status scan_list(struct trace_rows *r, struct json_scan *scan, uint32_t source,
			   uint32_t *index, struct error *err)
{
	struct json_event ev;

	for (;;) {
		switch (json_scan_event(scan, UINT64_MAX, &ev)) {
		case SCAN_EVENT:
			if (r->count >= UINT32_MAX - 1)
				return error_set(err, OW_E_LIMIT, "more than 2^32 trace events");
			if (!take_event(r, scan, &ev, source, (*index)++))
				return error_no_memory(err);
			break;
		case SCAN_OTHER:
			(*index)++;
			break;
		case SCAN_DAMAGE:
			break;
		case SCAN_FAILED:
			return scan->status;
		default:
			return OW_OK;
		}
	}
}

ow_status trace_rows_scan(struct trace_rows *r, const struct input *in, uint32_t source,
			  struct error *err)
{
	struct json_doc doc = { 0 };
	ow_status status = OW_OK;
	struct json_item item;
	struct json_scan scan;
	struct input quiet = *in;
	uint32_t index = 0;

	quiet.progress = NULL; /* it has been read once: that was the progress */
	json_scan_init(&scan, &quiet, err);
	while (status == OW_OK) {
		enum json_item_kind kind = json_scan_document(&scan, &doc, &item);

		if (kind == ITEM_FAILED)
			status = scan.status;
		if (kind == ITEM_FAILED || kind == ITEM_EOF || kind == ITEM_TRUNCATED)
			break;
		if (kind == ITEM_EVENTS) {
			json_scan_seek(&scan, item.offset);
			status = scan_list(r, &scan, source, &index, err);
		}
	}
	json_scan_release(&scan);
	return status;
}

/* ---- sources that are no traces ---- */

static bool intern_id(struct trace_rows *r, const struct model *m, str_id id, uint32_t *code)
{
	*code = 0;
	return !id.v || intern(r, model_str(m, id), code);
}

static bool add_event(struct trace_rows *r, const struct model *m, uint32_t event, uint32_t source,
		      uint32_t index)
{
	uint32_t track = m->event.track[event].v;
	op_id op = m->event.op[event];
	str_id own = COLUMN_GET(m->event.name, event);
	bool slice = m->event.dur_ns[event] != TIME_UNKNOWN;
	struct trace_block *b;
	size_t i;

	b = next_row(r, &i);
	if (!b)
		return false;
	b->source[i] = source;
	b->index[i] = index;
	b->ts[i] = micros(m->event.ts_ns[event]);
	b->dur[i] = micros(m->event.dur_ns[event]);
	b->pid[i] = m->track.pid[track];
	b->tid[i] = m->track.tid[track];
	b->args_offset[i] = 0;
	b->args_size[i] = 0;
	r->count++;
	return intern(r, slice ? STR("X") : STR("i"), &b->ph[i]) &&
	       intern_id(r, m, COLUMN_GET(m->event.category, event), &b->cat[i]) &&
	       intern_id(r, m, own.v ? own : m->op.type[op.v], &b->name[i]) &&
	       intern_id(r, m, m->op.name[op.v], &b->arg_name[i]) &&
	       intern_id(r, m, m->op.type[op.v], &b->arg_op[i]);
}

ow_status trace_rows_add_events(struct trace_rows *r, const struct model *m, uint32_t source,
				struct error *err)
{
	uint32_t index = 0;

	for (uint32_t i = 1; i < m->event.count; i++)
		if (m->track.source[m->event.track[i].v].v == source &&
		    !add_event(r, m, i, source, index++))
			return error_no_memory(err);
	return OW_OK;
}
