/*
 * trace_scan.c: reads elements of the traceEvents lists of a file into columns: all of them, or those at given places.
 * trace_list.c calls it for rows that the model does not hold in full. Values are kept as written; pairing, nesting and
 * repairing are the importer's work. Damaged elements are skipped without a note, because the importer has reported
 * them.
 */
#include "relation/trace/trace_scan.h"

#include "base/vec.h"

#include "wire/json/json.h"
#include "wire/json/json_scan.h"

#include <math.h>

bool trace_rows_init(struct trace_rows *r, struct mem *mem, const struct model *m)
{
	*r = (struct trace_rows){ .mem = mem };
	return trace_texts_init(&r->texts, mem, m, NULL);
}

void trace_rows_release(struct trace_rows *r)
{
	for (size_t i = 0; i < r->block_count; i++)
		mem_free(r->mem, r->blocks[i], sizeof(struct trace_block));
	mem_free(r->mem, r->blocks, r->block_cap * sizeof(*r->blocks));
	trace_texts_release(&r->texts);
}

static bool intern(struct trace_rows *r, struct str text, uint32_t *code)
{
	return trace_texts_intern(&r->texts, text, code);
}

bool trace_rows_letter(struct trace_rows *r, uint8_t letter, uint32_t *code)
{
	char text = (char)letter;

	if (!r->letters[letter] && !intern(r, str_make(&text, 1), &r->letters[letter]))
		return false;
	*code = r->letters[letter];
	return true;
}

/* Interns a value: strings decoded, numbers and literals as written; null is none. */
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

/* Interns a category. Categories are few and short, and mostly equal to the previous one. */
static bool intern_cat(struct trace_rows *r, struct json_value value, uint32_t *code)
{
	if (r->last_cat && value.kind == JSON_STRING &&
	    str_eq(json_text(value), r->texts.list[r->last_cat])) {
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

/* The block and the index in it for the next row. */
static struct trace_block *next_row(struct trace_rows *r, size_t *at)
{
	*at = (size_t)(r->count % TRACE_BLOCK);
	if (*at)
		return r->blocks[r->block_count - 1];
	if (!vec_reserve(r->mem, r->blocks, r->block_cap, r->block_count + 1))
		return NULL;
	r->blocks[r->block_count] = mem_alloc(r->mem, sizeof(struct trace_block));
	return r->blocks[r->block_count] ? r->blocks[r->block_count++] : NULL;
}

static struct json_value field(const struct json_event *ev, enum json_field f)
{
	return json_event_has(ev, f) ? ev->value[f] : (struct json_value){ 0 };
}

/* Whether a text is a whole number as people write it: "007" and "1e2" are names. The importer treats thread names
 * in the same way. */
static bool is_whole_number(struct str text)
{
	struct str digits = str_starts(text, STR("-")) ? str_skip(text, 1) : text;

	for (size_t i = 0; i < digits.len; i++)
		if (digits.ptr[i] < '0' || digits.ptr[i] > '9')
			return false;
	return digits.len && (digits.ptr[0] != '0' || text.len == 1);
}

static int64_t number_of(struct json_value value)
{
	int64_t number;

	if ((value.kind == JSON_NUMBER ||
	     (value.kind == JSON_STRING && is_whole_number(json_text(value)))) &&
	    json_decimal(json_text(value), 0, &number) == JSON_EXACT)
		return number;
	return TRACE_NO_NUMBER;
}

/* Converts a time. With up to three decimals the nanoseconds are exact, and so are the nearest microseconds. */
static double time_of(struct json_value value)
{
	double number;
	int64_t ns;

	if (value.kind == JSON_NUMBER &&
	    json_decimal_padded(json_text(value), 3, &ns) == JSON_EXACT)
		return trace_micros(ns);
	if ((value.kind == JSON_NUMBER || value.kind == JSON_STRING) &&
	    json_double(json_text(value), &number))
		return number;
	return (double)NAN;
}

static bool intern_op(struct trace_rows *r, struct json_value op, struct json_value name,
		      uint32_t name_code, uint32_t *code)
{
	/* In TensorFlow's timelines the op is the name of the event. */
	if (op.kind == JSON_STRING && name.kind == JSON_STRING &&
	    str_eq(json_text(op), json_text(name))) {
		*code = name_code;
		return true;
	}
	return intern_value(r, op, code);
}

static bool take_event(struct trace_rows *r, const struct json_scan *scan,
		       const struct json_event *ev, uint32_t index)
{
	static const struct json_pick picks[] = { JSON_PICK("name"), JSON_PICK("op") };
	struct json_value found[ARRAY_COUNT(picks)] = { { 0 } };
	struct json_value args = field(ev, FIELD_ARGS), name = field(ev, FIELD_NAME);
	struct trace_block *b;
	size_t i;

	b = next_row(r, &i);
	if (!b)
		return false;
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

/* Reads one list of events. The index also counts elements that are not events: it is the place in the list. */
static ow_status scan_list(struct trace_rows *r, struct json_scan *scan, uint32_t *index,
			   struct ow_error *err)
{
	struct json_event ev;

	for (;;) {
		switch (json_scan_event(scan, UINT64_MAX, &ev)) {
		case SCAN_EVENT:
			if (r->count >= UINT32_MAX - 1)
				return error_set(err, OW_E_LIMIT, "more than 2^32 trace events");
			if (!take_event(r, scan, &ev, (*index)++))
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

ow_status trace_rows_scan(struct trace_rows *r, const struct input *in, struct ow_error *err)
{
	struct json_doc doc = { 0 };
	ow_status status = OW_OK;
	struct json_item item;
	struct json_scan scan;
	struct input quiet = *in;
	uint32_t index = 0;

	/* no progress is reported, because the importer has already reported reading this file */
	quiet.progress = NULL;
	json_scan_init(&scan, &quiet, err);
	while (status == OW_OK) {
		enum json_item_kind kind = json_scan_document(&scan, &doc, &item);

		if (kind == ITEM_FAILED)
			status = scan.status;
		if (kind == ITEM_FAILED || kind == ITEM_EOF || kind == ITEM_TRUNCATED)
			break;
		if (kind == ITEM_EVENTS) {
			json_scan_seek(&scan, item.offset);
			status = scan_list(r, &scan, &index, err);
		}
	}
	json_scan_release(&scan);
	return status;
}

#define AT_ONCE ((size_t)512 << 10) /* bytes of elements that are read at once */

/* Texts of elements, one after the other, scanned as a list of their own. */
struct batch {
	const uint64_t *elements; /* offsets of the elements, from the listing */
	size_t count;
	struct buf text;
};

static size_t next_to_read(const uint64_t *elements, size_t at, size_t count)
{
	while (at < count && elements[at] & LISTING_ALL)
		at++;
	return at;
}

static ow_status gather(const struct input *in, struct batch *b, struct ow_error *err)
{
	size_t i = next_to_read(b->elements, 0, b->count);

	buf_clear(&b->text);
	for (; i < b->count && b->text.len < AT_ONCE;
	     i = next_to_read(b->elements, i + 1, b->count)) {
		uint32_t size = listing_size(b->elements[i]);
		char *to;

		if (!buf_reserve(&b->text, (size_t)size + 1))
			return error_no_memory(err);
		to = (char *)b->text.ptr + b->text.len;
		OW_TRY(input_read_at(in, listing_place(b->elements[i]), to, size, err));
		to[size] = ',';
		b->text.len += (size_t)size + 1;
	}
	b->count = i;
	return OW_OK;
}

static ow_status changed(const struct input *in, uint64_t place, struct ow_error *err)
{
	return error_set(err, OW_E_IO,
			 "%s: the event at offset %" PRIu64
			 " has changed since the file was read; open the file again",
			 in->name, place);
}

static ow_status take_batch(struct trace_rows *r, const struct input *in, const struct batch *b,
			    struct ow_error *err)
{
	ow_status status = OW_OK;
	struct json_scan scan;
	struct input text;

	OW_TRY(input_from_memory(&text, r->mem, in->name, b->text.ptr, b->text.len, err));
	json_scan_init(&scan, &text, err);
	for (size_t i = next_to_read(b->elements, 0, b->count); i < b->count && status == OW_OK;
	     i = next_to_read(b->elements, i + 1, b->count)) {
		struct json_event ev;

		if (json_scan_event(&scan, UINT64_MAX, &ev) != SCAN_EVENT ||
		    ev.len != listing_size(b->elements[i]))
			status = scan.status != OW_OK
					 ? scan.status
					 : changed(in, listing_place(b->elements[i]), err);
		ev.offset = listing_place(b->elements[i]);
		if (status == OW_OK && !take_event(r, &scan, &ev, 0))
			status = error_no_memory(err);
	}
	json_scan_release(&scan);
	input_close(&text);
	return status;
}

ow_status trace_rows_read(struct trace_rows *r, const struct input *in, const uint64_t *elements,
			  size_t count, struct ow_error *err)
{
	ow_status status = OW_OK;
	struct batch b;

	buf_init(&b.text, r->mem);
	for (size_t at = 0; at < count && status == OW_OK; at += b.count) {
		b.elements = elements + at;
		b.count = count - at;
		status = gather(in, &b, err);
		if (status == OW_OK && b.text.len)
			status = take_batch(r, in, &b, err);
	}
	buf_release(&b.text);
	return status;
}
