/*
 * mean_args.c: arguments of events, read from the input in the order of the file whatever order the events
 * are asked for in, so that each byte is read once.
 */
#include "import/mean_int.h"

#define ARGS_MAX ((uint32_t)16 << 20) /* larger ones are not looked at */

ow_status mean_rows_add(struct meaning *x, struct mean_rows *rows, uint32_t event)
{
	void *list = rows->list;

	if (!mem_grow(x->mem, &list, &rows->cap, rows->count + 1, sizeof(*rows->list)))
		return mean_no_memory(x);
	rows->list = list;
	rows->list[rows->count++] = event;
	return OW_OK;
}

void mean_rows_release(struct meaning *x, struct mean_rows *rows)
{
	mem_free(x->mem, rows->list, rows->cap * sizeof(*rows->list));
	*rows = (struct mean_rows){ 0 };
}

static int by_offset(const void *a, const void *b, void *arg)
{
	const uint64_t *offset = arg;
	uint64_t x = offset[*(const uint32_t *)a], y = offset[*(const uint32_t *)b];

	return (x > y) - (x < y);
}

static bool is_sorted(const struct mean_rows *rows, const uint64_t *offset)
{
	for (size_t i = 1; i < rows->count; i++)
		if (offset[rows->list[i]] < offset[rows->list[i - 1]])
			return false;
	return true;
}

static const struct input *input_of(const struct meaning *x)
{
	return x->in->input;
}

/* Few events far apart are read one by one, many through a window. */
static bool is_sparse(const struct mean_rows *rows, const struct event_table *e)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < rows->count; i++)
		bytes += e->args_size[rows->list[i]];
	return e->args_offset[rows->list[rows->count - 1]] - e->args_offset[rows->list[0]] >
	       16 * bytes + ((uint64_t)1 << 20);
}

static ow_status read_one_by_one(struct meaning *x, const struct mean_rows *rows, mean_args_fn take,
				 void *arg)
{
	ow_status status = OW_OK;
	struct buf text;

	buf_init(&text, x->mem);
	for (size_t i = 0; i < rows->count && status == OW_OK; i++) {
		status = mean_args_of(x, rows->list[i], &text);
		if (status == OW_OK && text.len)
			take(x, rows->list[i], buf_str(&text), arg);
	}
	buf_release(&text);
	return status;
}

static ow_status read_in_a_row(struct meaning *x, const struct mean_rows *rows, mean_args_fn take,
			       void *arg)
{
	const struct event_table *e = &x->m->event;
	struct input in = *input_of(x);
	struct window window;
	ow_status status = OW_OK;

	in.progress = NULL; /* it has been read once: that was the progress */
	window_init(&window, &in, x->err);
	for (size_t i = 0; i < rows->count && status == OW_OK; i++) {
		uint32_t row = rows->list[i], size = e->args_size[row];
		const unsigned char *text;

		if (!size || size > ARGS_MAX)
			continue;
		text = window_at(&window, e->args_offset[row], size);
		if (!text)
			status = window.status;
		else
			take(x, row, str_make(text, size), arg);
	}
	window_release(&window);
	return status;
}

ow_status mean_read_args(struct meaning *x, struct mean_rows *rows, mean_args_fn take, void *arg)
{
	const struct event_table *e = &x->m->event;
	ow_status status;

	if (!rows->count || !e->args_size)
		return OW_OK;
	if (!is_sorted(rows, e->args_offset))
		qsort_r(rows->list, rows->count, sizeof(*rows->list), by_offset, e->args_offset);
	status = is_sparse(rows, e) ? read_one_by_one(x, rows, take, arg)
				    : read_in_a_row(x, rows, take, arg);
	return status == OW_OK ? builder_status(x->b) : builder_fail(x->b, status);
}

ow_status mean_args_of(struct meaning *x, uint32_t event, struct buf *text)
{
	uint32_t size = COLUMN_GET(x->m->event.args_size, event);
	ow_status status;

	buf_clear(text);
	if (!size || size > ARGS_MAX)
		return OW_OK;
	if (!buf_reserve(text, size))
		return mean_no_memory(x);
	status =
		input_read_at(input_of(x), x->m->event.args_offset[event], text->ptr, size, x->err);
	if (status != OW_OK)
		return builder_fail(x->b, status);
	text->len = size;
	return OW_OK;
}

bool mean_number(struct json_value value, int64_t *number)
{
	return (value.kind == JSON_NUMBER || value.kind == JSON_STRING) &&
	       json_decimal(json_text(value), 0, number) == JSON_EXACT;
}

str_id mean_string(struct meaning *x, struct json_value value)
{
	struct buf decoded;
	str_id id;

	if (value.kind != JSON_STRING)
		return (str_id){ 0 };
	if (json_is_plain(json_text(value)))
		return builder_str(x->b, json_text(value));
	buf_init(&decoded, x->mem);
	json_decode(json_text(value), &decoded);
	if (decoded.failed)
		mean_no_memory(x);
	id = builder_str(x->b, buf_str(&decoded));
	buf_release(&decoded);
	return id;
}
