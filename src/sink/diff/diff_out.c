/*
 * diff_out.c: reads a table of `opwatch diff` for the sinks that write for CI systems (diff_out.h).
 */
#include "sink/diff/diff_out.h"

#include "table/cells.h"
#include "wire/json/json.h"

#include <stdlib.h>

#define LINES_MAX 10	 /* limit of annotations; GitHub shows this many per step */
#define LINE_LEAST 0.005 /* a line whose change is a smaller share of the step gets no annotation */

static ow_status decode(struct diff_out *d, struct str raw, struct str *to, struct ow_error *err)
{
	struct buf text;

	buf_init(&text, d->arena.mem);
	json_decode(raw, &text);
	*to = (struct str){ 0 };
	if (!text.failed)
		*to = arena_str(&d->arena, buf_str(&text));
	buf_release(&text);
	return to->ptr ? OW_OK : error_no_memory(err);
}

/* Copies the text of a JSON string; empty when the value is null or missing. */
static ow_status value_text(struct diff_out *d, struct str json, struct str *to,
			    struct ow_error *err)
{
	*to = STR("");
	if (json.len < 2 || json.ptr[0] != '"')
		return OW_OK;
	return decode(d, str_make(json.ptr + 1, json.len - 2), to, err);
}

static ow_status extra_text(struct diff_out *d, const struct table *t, const char *name,
			    struct str *to, struct ow_error *err)
{
	const char *json = table_extra(t, name);

	return value_text(d, json ? str_from(json) : STR(""), to, err);
}

static int64_t extra_int(const struct table *t, const char *name)
{
	const char *json = table_extra(t, name);

	return json ? strtoll(json, NULL, 10) : 0;
}

static ow_status member_text(struct diff_out *d, struct str object, const char *key, struct str *to,
			     struct ow_error *err)
{
	struct json_value value = json_find(object, key);

	*to = STR("");
	return value.kind == JSON_STRING ? decode(d, json_text(value), to, err) : OW_OK;
}

static ow_status read_limits(struct diff_out *d, const struct table *t, struct ow_error *err)
{
	const char *json = table_extra(t, "limits");
	struct json_reader reader = json_over(str_from(json ? json : "[]"));
	struct json_value value;

	while (json_next_element(&reader, &value)) {
		struct diff_out_limit limit, *grown;

		OW_TRY(member_text(d, json_text(value), "limit", &limit.text, err));
		OW_TRY(member_text(d, json_text(value), "gate", &limit.gate, err));
		OW_TRY(member_text(d, json_text(value), "message", &limit.message, err));
		grown = arena_grow(&d->arena, d->limits, d->limit_count, &d->limit_cap,
				   sizeof(*grown));
		if (!grown)
			return error_no_memory(err);
		d->limits = grown;
		d->limits[d->limit_count++] = limit;
	}
	return OW_OK;
}

static const struct table_column *column_of(const struct table *t, const char *name)
{
	for (uint32_t c = 0; c < t->column_count; c++)
		if (strcmp(t->columns[c].name, name) == 0)
			return &t->columns[c];
	return NULL;
}

static ow_status add_line(struct diff_out *d, struct diff_out_line line, struct ow_error *err)
{
	char delta[HUMAN_SIZE];
	struct diff_out_line *grown;
	struct buf text;

	human_int(delta, line.delta_ns,
		  d->unit == UNIT_NS ? HUMAN_UNIT_NS_APART : human_unit_of(d->unit), false);
	buf_init(&text, d->arena.mem);
	put_utf8(&text, line.op);
	buf_printf(&text, " (%.*s): %s more%s", STR_ARG(line.phase), delta,
		   d->steps ? " per step" : "");
	if (!text.failed)
		line.message = arena_str(&d->arena, buf_str(&text));
	buf_release(&text);
	grown = arena_grow(&d->arena, d->lines, d->line_count, &d->line_cap, sizeof(*grown));
	if (!grown || !line.message.ptr)
		return error_no_memory(err);
	d->lines = grown;
	d->lines[d->line_count++] = line;
	return OW_OK;
}

/* Reads the lines that became slower. Rows are sorted by their difference, the largest first. */
static ow_status read_lines(struct diff_out *d, const struct table *t, struct ow_error *err)
{
	const struct table_column *file = column_of(t, "file"), *line = column_of(t, "line"),
				  *number = column_of(t, "line_number"), *op = column_of(t, "op"),
				  *phase = column_of(t, "phase"), *delta = column_of(t, "delta_ns");
	double least = LINE_LEAST * (double)d->base_step_ns;

	if (!file || !line || !number || !op || !phase || !delta)
		return OW_OK;
	d->unit = delta->unit;
	for (uint32_t i = 0; i < t->row_count && d->line_count < LINES_MAX; i++) {
		bool known = !number->known || number->known[i];

		if (file->texts[i].len && delta->ints[i] > 0 && (double)delta->ints[i] >= least)
			OW_TRY(add_line(
				d,
				(struct diff_out_line){ .file = file->texts[i],
							.line = line->texts[i],
							.op = op->texts[i],
							.phase = phase->texts[i],
							.line_number = known ? number->ints[i] : 0,
							.delta_ns = delta->ints[i] },
				err));
	}
	return OW_OK;
}

ow_status diff_out_read(struct diff_out *d, const struct table *t, const char *sink,
			struct ow_error *err)
{
	*d = (struct diff_out){ 0 };
	arena_init(&d->arena, t->mem);
	if (strcmp(t->name, "diff") != 0)
		return error_set(err, OW_E_USAGE, "the output '%s' is for 'opwatch diff'", sink);
	d->base_step_ns = extra_int(t, "base_step_ns");
	d->new_step_ns = extra_int(t, "new_step_ns");
	d->steps =
		table_extra(t, "steps_known") && strcmp(table_extra(t, "steps_known"), "true") == 0;
	OW_TRY(extra_text(d, t, "metric", &d->metric, err));
	OW_TRY(extra_text(d, t, "sentence", &d->sentence, err));
	OW_TRY(extra_text(d, t, "conclusion", &d->conclusion, err));
	OW_TRY(extra_text(d, t, "gate", &d->gate, err));
	OW_TRY(read_limits(d, t, err));
	return read_lines(d, t, err);
}

void diff_out_release(struct diff_out *d)
{
	arena_release(&d->arena);
}

bool diff_out_is_beyond(const struct diff_out *d)
{
	return str_eq(d->gate, STR("beyond"));
}
