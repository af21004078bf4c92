/*
 * result.c: running views and advice, and reading and writing their results; bodies of the ow_result,
 * ow_view and ow_advise functions.
 */
#include "api/api_int.h"

#include "sink/human.h"

/* The public enums are the internal ones. */
_Static_assert((int)OW_TYPE_NUMBER == (int)RESULT_NUMBER, "types");
_Static_assert((int)OW_UNIT_MICROS == (int)RESULT_MICROS &&
		       (int)OW_UNIT_PERCENT == (int)RESULT_PERCENT,
	       "units");

ow_status api_wrap_result(ow_profile *p, struct result *r, ow_result **out, struct error *err)
{
	ow_result *result = mem_zalloc(&p->mem, sizeof(*result));

	if (!result) {
		result_free(r);
		return error_no_memory(err);
	}
	result->r = r;
	result->profile = p;
	atomic_fetch_add(&p->results, 1);
	*out = result;
	return OW_OK;
}

void ow_result_free(ow_result *result)
{
	if (!result)
		return;
	result_free(result->r);
	if (!result->profile) { /* of a server: its memory is its own */
		free(result);
		return;
	}
	atomic_fetch_sub(&result->profile->results, 1);
	mem_free(&result->profile->mem, result, sizeof(*result));
}

void ow_view_options_init(struct ow_view_options *options)
{
	view_options_init(options);
	options->size = sizeof(*options);
}

static ow_status check_frozen(const ow_profile *p, struct error *err)
{
	if (p->frozen)
		return OW_OK;
	return error_set(err, OW_E_USAGE, "the profile is still being loaded: freeze it first");
}

/* Tables that grow with the number of events: those are most of a file, and may not have been made yet. */
#define EVENT_TABLES                                                                               \
	(TABLE_BIT(event) | TABLE_BIT(event_key) | TABLE_BIT(event_args) | TABLE_BIT(flow) |       \
	 TABLE_BIT(counter) | TABLE_BIT(link) | TABLE_BIT(tensor))

/* What a view reads: the four of tfprof add up what ops did, and look at events only for a part of the
 * time or of the ranks, or for the edges of a trace without a graph. */
static uint64_t tables_of(const struct model *m, const struct view *view,
			  const struct ow_view_options *options)
{
	bool linked = view == &view_graph && m->op_input.count <= 1;
	bool part = options->time_from_ns != INT64_MIN || options->time_to_ns != INT64_MAX ||
		    options->rank >= 0;

	return view->tree && !part && !linked ? TABLES_ALL & ~EVENT_TABLES : TABLES_ALL;
}

ow_status ow_view(ow_profile *p, const char *name, const struct ow_view_options *options,
		  ow_result **out, struct error *err)
{
	struct ow_view_options full;
	const struct view *view = view_find(name);
	struct reading reading;
	struct result *r;
	ow_status status;

	error_clear(err);
	*out = NULL;
	OW_TRY(check_frozen(p, err));
	if (!view)
		return error_set(err, OW_E_USAGE, "no view is called '%s'", name);
	ow_view_options_init(&full);
	if (options)
		memcpy(&full, options, MIN(options->size, sizeof(full)));
	OW_TRY(api_read_begin(p, tables_of(p->m, view, &full), &reading, err));
	r = result_new(&p->mem, view->name, err);
	status = r ? view->run(p->m, &full, r, err) : OW_E_NO_MEMORY;
	if (status == OW_OK)
		status = r->status != OW_OK ? error_no_memory(err) : OW_OK;
	status = api_read_end(p, &reading, status, err);
	if (status != OW_OK) {
		result_free(r);
		return status;
	}
	return api_wrap_result(p, r, out, err);
}

#define TENSOR_SHOWN 200 /* bytes of a tensor's text in a cell */

/* tfprof's text of a tensor as one line of a table: "[[1.00 2.00],[3.00 4.00]]". */
static void tensor_cell(struct str text, struct buf *to)
{
	size_t from = to->len, len;
	uint32_t code;

	for (; text.len && to->len - from < TENSOR_SHOWN; text = str_skip(text, len)) {
		char last = to->len > from ? to->ptr[to->len - 1] : '\0';

		len = utf8_decode(text, &code);
		if (code == ']' && (last == ' ' || last == ','))
			to->len--;
		if (len == 1 && code == 0xfffd) /* strings may be any bytes */
			buf_add_char(to, '?');
		else if (code != '\n')
			buf_add(to, text.ptr, len);
	}
	if (text.len)
		buf_puts(to, "…");
	else if (to->len > from && to->ptr[to->len - 1] == ',')
		to->len--;
}

/* Of what a checkpoint has, or why it cannot be read; ops that are no variables have no value. */
static void tensor_value(void *arg, struct str name, struct buf *to)
{
	ow_profile *p = arg;
	struct checkpoint_tensor tensor;
	struct error err = { 0 };
	struct buf text;

	if (checkpoint_read(&p->checkpoint, name, &tensor, &err) != OW_OK) {
		to->failed |= err.status == OW_E_NO_MEMORY;
		if (err.status != OW_E_NOT_FOUND)
			buf_printf(to, "(%s)", err.text);
		return;
	}
	buf_init(&text, &p->mem);
	if (checkpoint_tensor_text(&tensor, &text) != TENSOR_TEXT_UNSUPPORTED)
		tensor_cell(buf_str(&text), to);
	to->failed |= text.failed;
	buf_release(&text);
	checkpoint_tensor_release(&tensor);
}

static void offer_tensors(ow_result *result)
{
	if (!result->r->tree || !result->profile || !result->profile->has_checkpoint)
		return;
	result->r->tree->tensor = tensor_value;
	result->r->tree->tensor_arg = result->profile;
}

/* A tree becomes columns only when somebody reads cells or writes a table. */
static ow_status flatten(ow_result *result, struct error *err)
{
	struct reading reading;
	ow_status status;

	if (!result->r->tree || result->flat)
		return OW_OK;
	OW_TRY(api_read_begin(result->profile, TABLES_ALL & ~EVENT_TABLES, &reading, err));
	offer_tensors(result);
	status = tree_flatten(result->r, err);
	OW_TRY(api_read_end(result->profile, &reading, status, err));
	result->flat = true;
	return OW_OK;
}

ow_status ow_result_fill(ow_result *result, struct error *err)
{
	error_clear(err);
	return flatten(result, err);
}

static const struct result *columns_of(const ow_result *result)
{
	(void)flatten((ow_result *)(uintptr_t)result, NULL);
	return result->r;
}

uint32_t ow_result_rows(const ow_result *result)
{
	return columns_of(result)->row_count;
}

uint32_t ow_result_columns(const ow_result *result)
{
	return columns_of(result)->column_count;
}

bool ow_result_column(const ow_result *result, uint32_t column, struct ow_column *info)
{
	const struct result *r = columns_of(result);

	if (column >= r->column_count)
		return false;
	*info = (struct ow_column){ .name = r->columns[column].name,
				    .title = r->columns[column].title,
				    .type = (ow_type)r->columns[column].type,
				    .unit = (ow_unit)r->columns[column].unit };
	return true;
}

uint32_t ow_result_find(const ow_result *result, const char *name)
{
	const struct result *r = columns_of(result);

	for (uint32_t i = 0; i < r->column_count; i++)
		if (strcmp(r->columns[i].name, name) == 0)
			return i;
	return UINT32_MAX;
}

uint32_t ow_result_depth(const ow_result *result, uint32_t row)
{
	const struct result *r = columns_of(result);

	return r->depth && row < r->row_count ? r->depth[row] : 0;
}

static const struct result_column *cell_column(const ow_result *result, uint32_t row,
					       uint32_t column)
{
	const struct result *r = columns_of(result);

	return row < r->row_count && column < r->column_count ? &r->columns[column] : NULL;
}

bool ow_result_known(const ow_result *result, uint32_t row, uint32_t column)
{
	const struct result_column *c = cell_column(result, row, column);

	return c && (!c->known || c->known[row]);
}

int64_t ow_result_int(const ow_result *result, uint32_t row, uint32_t column)
{
	const struct result_column *c = cell_column(result, row, column);

	int64_t number = 0;

	if (c && c->type == RESULT_NUMBER && str_to_i64(c->texts[row], &number))
		return number;
	if (!c || c->type == RESULT_TEXT)
		return 0;
	return c->type == RESULT_NUMBER ? (int64_t)strtod(c->texts[row].ptr, NULL)
	       : c->type == RESULT_REAL ? (int64_t)c->reals[row]
					: c->ints[row];
}

double ow_result_real(const ow_result *result, uint32_t row, uint32_t column)
{
	const struct result_column *c = cell_column(result, row, column);

	if (!c || c->type == RESULT_TEXT)
		return 0;
	if (c->type == RESULT_NUMBER)
		return strtod(c->texts[row].ptr, NULL);
	return c->type == RESULT_REAL ? c->reals[row] : (double)c->ints[row];
}

const char *ow_result_text(const ow_result *result, uint32_t row, uint32_t column, size_t *len)
{
	const struct result_column *c = cell_column(result, row, column);
	bool is_text = c && (c->type == RESULT_TEXT || c->type == RESULT_NUMBER);
	struct str text = is_text ? c->texts[row] : STR("");

	if (len)
		*len = text.len;
	return text.ptr ? text.ptr : "";
}

static struct str shown(const struct result_column *c, uint32_t row, char *buffer)
{
	if (!c)
		return STR("");
	if (c->known && !c->known[row])
		return STR("-");
	switch (c->type) {
	case RESULT_TEXT:
	case RESULT_NUMBER:
		return c->texts[row];
	case RESULT_BOOL:
		return c->ints[row] ? STR("yes") : STR("no");
	case RESULT_REAL:
		return str_make(buffer, human_real(buffer, c->reals[row], c->unit, false));
	default:
		return str_make(buffer, human_int(buffer, c->ints[row], c->unit, false));
	}
}

size_t ow_result_show(const ow_result *result, uint32_t row, uint32_t column, char *text,
		      size_t size)
{
	char buffer[HUMAN_BYTES];
	struct str cell = shown(cell_column(result, row, column), row, buffer);

	if (size) {
		size_t len = MIN(cell.len, size - 1);

		if (len)
			memcpy(text, cell.ptr, len);
		text[len] = '\0';
	}
	return cell.len;
}

static const struct result_column *whole_column(const ow_result *result, uint32_t column)
{
	const struct result *r = columns_of(result);

	return column < r->column_count ? &r->columns[column] : NULL;
}

const int64_t *ow_result_ints(const ow_result *result, uint32_t column)
{
	const struct result_column *c = whole_column(result, column);

	return c && (c->type == RESULT_INT || c->type == RESULT_BOOL) ? c->ints : NULL;
}

const double *ow_result_reals(const ow_result *result, uint32_t column)
{
	const struct result_column *c = whole_column(result, column);

	return c && c->type == RESULT_REAL ? c->reals : NULL;
}

_Static_assert(sizeof(struct ow_text) == sizeof(struct str) &&
		       offsetof(struct ow_text, len) == offsetof(struct str, len),
	       "the public text is the internal one");

const struct ow_text *ow_result_texts(const ow_result *result, uint32_t column)
{
	const struct result_column *c = whole_column(result, column);

	return c && (c->type == RESULT_TEXT || c->type == RESULT_NUMBER)
		       ? (const struct ow_text *)(const void *)c->texts
		       : NULL;
}

const uint8_t *ow_result_marks(const ow_result *result, uint32_t column)
{
	const struct result_column *c = whole_column(result, column);

	return c ? c->known : NULL;
}

const char *ow_result_message(const ow_result *result, uint32_t index)
{
	const struct tree *tree = result->r->tree;

	if (index < result->message_count)
		return result->messages[index].ptr;
	return tree && index < tree->message_count ? tree->messages[index].ptr : NULL;
}

/* ---- writing ---------------------------------------------------------------------------------- */

void ow_write_options_init(struct ow_write_options *options)
{
	*options = (struct ow_write_options){ .size = sizeof(*options) };
}

struct writer {
	ow_write_fn write;
	void *arg;
	const struct ow_write_options *options;
	const ow_profile *profile;
};

static ow_status write_bytes(void *arg, const void *bytes, size_t len, struct error *err)
{
	struct writer *writer = arg;

	if (writer->write(writer->arg, bytes, len))
		return OW_OK;
	return error_set(err, OW_E_INTERRUPTED, "the output was closed");
}

static void send_message(void *arg, struct str line)
{
	struct writer *writer = arg;

	if (writer->options->message)
		writer->options->message(writer->options->line_arg, line.ptr, line.len);
}

static void send_stdout_line(void *arg, struct str line)
{
	struct writer *writer = arg;

	if (writer->options->progress)
		writer->options->progress(writer->options->line_arg, line.ptr, line.len);
}

/* Text of a checkpoint's tensor, or the line that says why there is none. */
static void tensor_text(void *arg, struct str name, struct buf *text, struct buf *message)
{
	struct writer *writer = arg;
	const struct checkpoint *checkpoint = &writer->profile->checkpoint;
	struct checkpoint_tensor tensor;
	struct error err = { 0 };

	if (checkpoint_read(checkpoint, name, &tensor, &err) != OW_OK) {
		buf_puts(message, err.text);
		return;
	}
	switch (checkpoint_tensor_text(&tensor, text)) {
	case TENSOR_TEXT_HUGE:
		buf_puts(message, "Showing huge tensor, the tool might halt...");
		break;
	case TENSOR_TEXT_UNSUPPORTED:
		buf_printf(message, "Not Supported type %d", (int)tensor.dtype);
		break;
	case TENSOR_TEXT_OK:
		break;
	}
	checkpoint_tensor_release(&tensor);
}

static unsigned tree_bit(const struct result *r)
{
	return r->tree ? (unsigned)SINK_TREE_SCOPE << r->tree->kind : 0;
}

static ow_status find_sink(const ow_result *result, const char *name, const struct sink **sink,
			   struct error *err)
{
	*sink = sink_find(name);
	if (!*sink)
		return error_set(err, OW_E_USAGE, "no output is called '%s'", name);
	if ((*sink)->accepts & (SINK_RESULT | tree_bit(result->r)))
		return OW_OK;
	return error_set(err, OW_E_USAGE, "the output '%s' cannot show the view '%s'", name,
			 result->r->name);
}

static bool writes_tree(const struct sink *sink, const ow_result *result,
			const struct sink_options *options)
{
	return result->r->tree && sink->direct && sink->direct(result->r, options);
}

ow_status ow_result_write(ow_result *result, const char *name,
			  const struct ow_write_options *options, ow_write_fn write, void *arg,
			  struct error *err)
{
	struct ow_write_options full;
	struct writer writer = { write, arg, &full, result->profile };
	struct sink_options sink_options;
	struct out out = { write_bytes, &writer };
	uint32_t rows = result->r->row_count;
	uint64_t tables;
	const struct sink *sink;
	struct reading reading;
	ow_status status;

	error_clear(err);
	OW_TRY(find_sink(result, name, &sink, err));
	ow_write_options_init(&full);
	if (options)
		memcpy(&full, options, MIN(options->size, sizeof(full)));
	sink_options = (struct sink_options){
		.width = full.width,
		.colour = full.colour,
		.metric = full.metric,
		.title = full.title,
		.style = full.style,
		.message = send_message,
		.message_arg = &writer,
		.stdout_line = send_stdout_line,
		.stdout_arg = &writer,
	};
	if (result->profile && result->profile->has_checkpoint) {
		sink_options.tensor = tensor_text;
		sink_options.tensor_arg = &writer;
	}
	offer_tensors(result);
	tables = sink->events ? TABLES_ALL : TABLES_ALL & ~EVENT_TABLES;
	if (sink->accepts & SINK_RESULT && !writes_tree(sink, result, &sink_options)) {
		OW_TRY(flatten(result, err));
		tables = 0; /* writes texts and numbers, no rows */
	}
	OW_TRY(api_read_begin(result->profile, tables, &reading, err));
	status = result->r->tree && !sink->folded
			 ? tree_unfold(result->r->tree, result->r->mem, err)
			 : OW_OK;
	if (full.limit && !result->r->tree)
		result_limit(result->r, full.limit);
	if (status == OW_OK)
		status = sink->write(result->r, &sink_options, &out, err);
	if (!result->r->tree)
		result->r->row_count = rows;
	return api_read_end(result->profile, &reading, status, err);
}
