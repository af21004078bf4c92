/*
 * result.c: runs views, and reads and writes their results: the bodies of ow_view, ow_verdict, ow_nsys_stats and the ow_result
 * functions. The views are in src/analyze, the outputs in src/sink. Advice is in advise.c.
 */
#include "api/api_int.h"

#include "analyze/nsys/nsys_stats.h"
#include "analyze/samples/samples.h"
#include "base/nearest.h"
#include "base/temp_file.h"
#include "export/export.h"
#include "sink/sink.h"
#include "table/arrow_c.h"

#include <errno.h>
#include <unistd.h>

/* The public enums have the values of the internal ones. */
_Static_assert((int)OW_TYPE_NUMBER == (int)TYPE_NUMBER, "types");
_Static_assert((int)OW_UNIT_MICROS == (int)UNIT_MICROS && (int)OW_UNIT_PERCENT == (int)UNIT_PERCENT,
	       "units");

ow_status api_wrap_result(ow_profile *p, struct table *r, ow_result **out, struct ow_error *err)
{
	ow_result *result = mem_zalloc(&p->mem, sizeof(*result));

	if (!result) {
		table_free(r);
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
	table_free(result->r);
	if (!result->profile) { /* the result of a server owns its memory */
		free(result);
		return;
	}
	atomic_fetch_sub(&result->profile->results, 1);
	mem_free(&result->profile->mem, result, sizeof(*result));
}

void ow_view_options_init(struct ow_view_options *options)
{
	view_options_init(options);
	options->order_by = NULL;
	options->max_depth = OW_DEFAULT_DEPTH;
}

static ow_status refuse_view(const char *name, struct ow_error *err)
{
	struct str word = str_from(name);
	size_t least = nearest_limit(word);
	const char *best = NULL;

	for (size_t i = 0; i < view_count; i++)
		nearest_try(word, views[i]->name, &best, &least);
	return best ? error_set(err, OW_E_USAGE, "no view is called '%s'; did you mean '%s'?", name,
				best)
		    : error_set(err, OW_E_USAGE, "no view is called '%s'", name);
}

ow_status ow_view_options_check(ow_profile *p, const char *name,
				const struct ow_view_options *options, struct ow_error *err)
{
	const struct view *view = view_find(name);
	struct ow_view_options full;

	error_clear(err);
	OW_TRY(api_check_frozen(p, err));
	if (!view)
		return refuse_view(name, err);
	ow_view_options_init(&full);
	SIZED_IN(&full, options);
	return view_options_check(view, p->m, &full, err);
}

void ow_view_options_drop(const ow_profile *p, const char *name, struct ow_view_options *options)
{
	const struct view *view = view_find(name);
	struct ow_view_options full;

	if (!view)
		return;
	ow_view_options_init(&full);
	SIZED_IN(&full, options);
	view_options_drop(view, p->m, &full);
	SIZED_OUT(options, &full);
}

/* Tables that grow with the number of events: most of a file, and possibly not built yet. */
#define EVENT_TABLES                                                                               \
	(TABLE_BIT(event) | TABLE_BIT(event_key) | TABLE_BIT(event_args) | TABLE_BIT(flow) |       \
	 TABLE_BIT(counter) | TABLE_BIT(link) | TABLE_BIT(tensor))

/* The tables that a view reads: the four tfprof views sum over ops, and read events only for a range of time, for
 * some ranks, or for the edges of a trace without a graph. */
static uint64_t tables_of(const struct model *m, const struct view *view,
			  const struct ow_view_options *options)
{
	bool linked = view == &view_graph && m->op_input.count <= 1;
	bool part = options->time_from_ns != INT64_MIN || options->time_to_ns != INT64_MAX ||
		    options->rank >= 0;

	return view->tree && !part && !linked ? TABLES_ALL & ~EVENT_TABLES : TABLES_ALL;
}

/* Explains why a table is empty; for types that the graph does not have, names those that it has. */
static ow_status explain_empty(const struct view *view, const struct model *m,
			       const struct ow_view_options *options, struct table *r,
			       struct ow_error *err)
{
	const char *hint = options->explain_empty && view->tree ? view_type_hint(m, options) : NULL;

	if (hint && !r->footer) {
		r->footer = arena_printf(&r->arena, "%s", hint);
		return r->footer ? OW_OK : error_no_memory(err);
	}
	if (options->explain_empty && !r->footer && samples_only(m) &&
	    (view == &view_scope || view == &view_graph))
		r->footer = arena_printf(&r->arena, "%s", view_empty_reason(view, m, options));
	if (view->tree || r->row_count || r->footer)
		return OW_OK;
	r->footer = arena_printf(&r->arena, "%s", view_empty_reason(view, m, options));
	return r->footer ? OW_OK : error_no_memory(err);
}

/* Warns if trees and lists of ops merge rows of different jobs that have the same name. */
static ow_status warn_of_jobs(const struct view *view, const struct model *m,
			      const struct ow_view_options *options, struct table *r,
			      struct ow_error *err)
{
	uint32_t i = 2;

	if (!options->explain_empty || r->footer ||
	    !(view->tree || view == &view_lines || view == &view_work || view == &view_opstats))
		return OW_OK;
	while (i < m->track.count &&
	       m->source.run[m->track.source[i].v] == m->source.run[m->track.source[1].v])
		i++;
	if (i >= m->track.count)
		return OW_OK;
	r->footer = arena_printf(&r->arena,
				 "These files belong to different jobs, and rows of the same "
				 "name are merged here: open them one by one.");
	return r->footer ? OW_OK : error_no_memory(err);
}

/* Returns whether the options cover the whole recording, as the advice does. */
static bool is_whole(const struct ow_view_options *options)
{
	struct ow_view_options none;

	ow_view_options_init(&none);
	return options->step == none.step && options->rank == none.rank &&
	       options->time_from_ns == none.time_from_ns && options->time_to_ns == none.time_to_ns;
}

ow_status ow_view(ow_profile *p, const char *name, const struct ow_view_options *options,
		  ow_result **out, struct ow_error *err)
{
	struct ow_view_options full;
	const struct view *view = view_find(name);
	struct reading reading;
	struct table *r;
	ow_status status;

	error_clear(err);
	*out = NULL;
	OW_TRY(api_check_frozen(p, err));
	if (!view)
		return refuse_view(name, err);
	ow_view_options_init(&full);
	SIZED_IN(&full, options);
	OW_TRY(view_options_check(view, p->m, &full, err));
	view_choose_defaults(view, &full);
	OW_TRY(api_read_begin(p, tables_of(p->m, view, &full), &reading, err));
	r = table_new(&p->mem, view->name, err);
	status = r ? view->run(p->m, &full, r, err) : OW_E_NO_MEMORY;
	if (status == OW_E_NOT_FOUND && full.explain_empty && view == &view_code &&
	    !p->m->has_code && p->m->sample.count <= 1) {
		table_free(r);
		r = table_new(&p->mem, view->name, err);
		status = r ? OW_OK : OW_E_NO_MEMORY;
		if (r) /* file formats for tables need at least one column */
			table_add_column(r, "name", "name", TYPE_TEXT, UNIT_NONE);
		/* the view `lines` is a table and is empty for the same reason */
		view = &view_lines;
		error_clear(err);
	}
	if (status == OW_OK)
		view_describe(view, r);
	if (status == OW_OK && view == &view_verdict && is_whole(&full))
		status = api_add_headline(p, r, err);
	if (status == OW_OK)
		status = explain_empty(view, p->m, &full, r, err);
	if (status == OW_OK)
		status = warn_of_jobs(view, p->m, &full, r, err);
	if (status == OW_OK)
		status = r->status != OW_OK ? error_no_memory(err) : OW_OK;
	status = api_read_end(p, &reading, status, err);
	if (status != OW_OK || !r) {
		table_free(r);
		return status;
	}
	OW_TRY(api_wrap_result(p, r, out, err));
	status = full.defer_rows ? OW_OK : ow_result_fill(*out, err);
	if (status != OW_OK) {
		ow_result_free(*out);
		*out = NULL;
	}
	return status;
}

#define TENSOR_SHOWN 200 /* largest number of bytes of a tensor's text in a cell */

/* Writes tfprof's text of a tensor as one line of a table: "[[1.00 2.00],[3.00 4.00]]". */
static void tensor_cell(struct str text, struct buf *to)
{
	size_t from = to->len, len;
	uint32_t code;

	for (; text.len && to->len - from < TENSOR_SHOWN; text = str_skip(text, len)) {
		char last = to->len > from ? to->ptr[to->len - 1] : '\0';

		len = utf8_decode(text, &code);
		if (code == ']' && (last == ' ' || last == ','))
			to->len--;
		if (len == 1 && code == 0xfffd) /* strings may contain any bytes */
			buf_add_char(to, '?');
		else if (code != '\n')
			buf_add(to, text.ptr, len);
	}
	if (text.len)
		buf_puts(to, "…");
	else if (to->len > from && to->ptr[to->len - 1] == ',')
		to->len--;
}

/* Appends the value that the checkpoint has for the op, or why it cannot be read; nothing for ops that are not variables. */
static void tensor_value(void *arg, struct str name, struct buf *to)
{
	ow_profile *p = arg;
	struct checkpoint_tensor tensor;
	struct ow_error err = { 0 };
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

/* Makes the columns and rows of a tree, which takes time and memory: not done for a result that is only written as a
 * tree. */
static ow_status flatten(ow_result *result, struct ow_error *err)
{
	struct reading reading;
	ow_status status;

	if (!result->r->tree || result->flat)
		return OW_OK;
	OW_TRY(api_read_begin(result->profile, TABLES_ALL & ~EVENT_TABLES, &reading, err));
	offer_tensors(result);
	status = tree_flatten(result->r, err);
	OW_TRY(api_read_end(result->profile, &reading, status, err));
	if (view_find(result->r->name))
		view_describe(view_find(result->r->name), result->r);
	result->flat = true;
	return OW_OK;
}

ow_status ow_result_fill(ow_result *result, struct ow_error *err)
{
	error_clear(err);
	return flatten(result, err);
}

uint32_t ow_result_rows(const ow_result *result)
{
	return result->r->row_count;
}

uint32_t ow_result_columns(const ow_result *result)
{
	return result->r->column_count;
}

bool ow_result_column(const ow_result *result, uint32_t column, struct ow_column *info)
{
	const struct table *r = result->r;
	struct ow_column all;

	if (column >= r->column_count)
		return false;
	all = (struct ow_column){ .size = sizeof(all),
				  .name = r->columns[column].name,
				  .title = r->columns[column].title,
				  .type = (ow_type)r->columns[column].type,
				  .unit = (ow_unit)r->columns[column].unit,
				  .logical = r->columns[column].logical ? r->columns[column].logical
									: "" };
	SIZED_OUT(info, &all);
	return true;
}

uint32_t ow_result_find(const ow_result *result, const char *name)
{
	const struct table *r = result->r;

	for (uint32_t i = 0; i < r->column_count; i++)
		if (strcmp(r->columns[i].name, name) == 0)
			return i;
	return UINT32_MAX;
}

uint32_t ow_result_depth(const ow_result *result, uint32_t row)
{
	const struct table *r = result->r;

	return r->depth && row < r->row_count ? r->depth[row] : 0;
}

static const struct table_column *cell_column(const ow_result *result, uint32_t row,
					      uint32_t column)
{
	const struct table *r = result->r;

	return row < r->row_count && column < r->column_count ? &r->columns[column] : NULL;
}

bool ow_result_known(const ow_result *result, uint32_t row, uint32_t column)
{
	const struct table_column *c = cell_column(result, row, column);

	return c && (!c->known || c->known[row]);
}

int64_t ow_result_int(const ow_result *result, uint32_t row, uint32_t column)
{
	const struct table_column *c = cell_column(result, row, column);

	int64_t number = 0;

	if (c && c->type == TYPE_NUMBER && str_to_i64(c->texts[row], &number))
		return number;
	if (!c || c->type == TYPE_TEXT)
		return 0;
	return c->type == TYPE_NUMBER ? (int64_t)strtod(c->texts[row].ptr, NULL)
	       : c->type == TYPE_REAL ? (int64_t)c->reals[row]
				      : c->ints[row];
}

double ow_result_real(const ow_result *result, uint32_t row, uint32_t column)
{
	const struct table_column *c = cell_column(result, row, column);

	if (!c || c->type == TYPE_TEXT)
		return 0;
	if (c->type == TYPE_NUMBER)
		return strtod(c->texts[row].ptr, NULL);
	return c->type == TYPE_REAL ? c->reals[row] : (double)c->ints[row];
}

const char *ow_result_text(const ow_result *result, uint32_t row, uint32_t column, size_t *len)
{
	const struct table_column *c = cell_column(result, row, column);
	bool is_text = c && (c->type == TYPE_TEXT || c->type == TYPE_NUMBER);
	struct str text = is_text ? c->texts[row] : STR("");

	if (len)
		*len = text.len;
	return text.ptr ? text.ptr : "";
}

static struct str shown(const struct table_column *c, uint32_t row, char *buffer)
{
	if (!c)
		return STR("");
	if (c->known && !c->known[row])
		return STR("-");
	switch (c->type) {
	case TYPE_TEXT:
	case TYPE_NUMBER:
		return c->texts[row];
	case TYPE_BOOL:
		return c->ints[row] ? STR("yes") : STR("no");
	case TYPE_REAL:
		return str_make(buffer,
				human_real(buffer, c->reals[row], human_unit_of(c->unit), false));
	default:
		return str_make(buffer,
				human_int(buffer, c->ints[row], human_unit_of(c->unit), false));
	}
}

size_t ow_result_show(const ow_result *result, uint32_t row, uint32_t column, char *text,
		      size_t size)
{
	char buffer[HUMAN_SIZE];
	struct str cell = shown(cell_column(result, row, column), row, buffer);

	if (size) {
		size_t len = MIN(cell.len, size - 1);

		if (len)
			memcpy(text, cell.ptr, len);
		text[len] = '\0';
	}
	return cell.len;
}

static const struct table_column *whole_column(const ow_result *result, uint32_t column)
{
	const struct table *r = result->r;

	return column < r->column_count ? &r->columns[column] : NULL;
}

const int64_t *ow_result_ints(const ow_result *result, uint32_t column)
{
	const struct table_column *c = whole_column(result, column);

	return c && (c->type == TYPE_INT || c->type == TYPE_BOOL) ? c->ints : NULL;
}

const double *ow_result_reals(const ow_result *result, uint32_t column)
{
	const struct table_column *c = whole_column(result, column);

	return c && c->type == TYPE_REAL ? c->reals : NULL;
}

_Static_assert(sizeof(struct ow_text) == sizeof(struct str) &&
		       offsetof(struct ow_text, len) == offsetof(struct str, len),
	       "the public text is the internal one");

const struct ow_text *ow_result_texts(const ow_result *result, uint32_t column)
{
	const struct table_column *c = whole_column(result, column);

	return c && (c->type == TYPE_TEXT || c->type == TYPE_NUMBER)
		       ? (const struct ow_text *)(const void *)c->texts
		       : NULL;
}

const uint8_t *ow_result_marks(const ow_result *result, uint32_t column)
{
	const struct table_column *c = whole_column(result, column);

	return c ? c->known : NULL;
}

const char *ow_result_footer(const ow_result *result)
{
	return result->r->footer;
}

const char *ow_result_message(const ow_result *result, uint32_t index)
{
	const struct tree *tree = result->r->tree;

	if (index < result->message_count)
		return result->messages[index].ptr;
	return tree && index < tree->message_count ? tree->messages[index].ptr : NULL;
}

void ow_write_options_init(struct ow_write_options *options)
{
	*options = (struct ow_write_options){ .size = sizeof(*options) };
}

struct writing {
	struct api_writer to;
	const struct ow_write_options *options;
	const ow_profile *profile;
};

static void send_message(void *arg, struct str line)
{
	struct writing *writer = arg;

	if (writer->options->message)
		writer->options->message(writer->options->line_arg, line.ptr, line.len);
}

static void send_stdout_line(void *arg, struct str line)
{
	struct writing *writer = arg;

	if (writer->options->progress)
		writer->options->progress(writer->options->line_arg, line.ptr, line.len);
}

/* Returns the text of a checkpoint's tensor, or the line that says why there is none. */
static void tensor_text(void *arg, struct str name, struct buf *text, struct buf *message)
{
	struct writing *writer = arg;
	const struct checkpoint *checkpoint = &writer->profile->checkpoint;
	struct checkpoint_tensor tensor;
	struct ow_error err = { 0 };

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

/* Writes Parquet. DuckDB writes only to files, so it writes to an unlinked file, which is copied
 * to the target. */
static ow_status write_parquet(struct table *t, const struct out *out, struct ow_error *err)
{
	char path[64], bytes[1 << 16];
	int fd = temp_file_open(err);
	ow_status status;
	ssize_t n = 1;

	if (fd < 0)
		return err ? err->status : OW_E_IO;
	snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
	status = export_parquet_file(t, path, t->mem, err);
	if (status == OW_OK && lseek(fd, 0, SEEK_SET) != 0)
		status = error_errno(err, errno, "a temporary file");
	while (status == OW_OK && n > 0) {
		n = read(fd, bytes, sizeof(bytes));
		if (n < 0)
			status = error_errno(err, errno, "a temporary file");
		if (n > 0)
			status = out->write(out->arg, bytes, (size_t)n, err);
	}
	close(fd);
	return status;
}

static unsigned tree_bit(const struct table *r)
{
	return r->tree ? (unsigned)SINK_TREE_SCOPE << r->tree->kind : 0;
}

static ow_status find_sink(const ow_result *result, const char *name, const struct sink **sink,
			   struct ow_error *err)
{
	*sink = sink_find(name);
	if (!*sink)
		return error_set(err, OW_E_USAGE, "no output is called '%s'", name);
	if ((*sink)->accepts & (SINK_RESULT | tree_bit(result->r)) ||
	    ((*sink)->accepts & SINK_DIFF && strcmp(result->r->name, "diff") == 0))
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
			  struct ow_error *err)
{
	struct ow_write_options full;
	struct writing writer = { { write, arg }, &full, result->profile };
	struct sink_options sink_options;
	struct out out = { api_write_bytes, &writer.to };
	uint32_t rows = result->r->row_count;
	uint64_t tables;
	const struct sink *sink;
	struct reading reading;
	ow_status status;

	error_clear(err);
	OW_TRY(find_sink(result, name, &sink, err));
	ow_write_options_init(&full);
	SIZED_IN(&full, options);
	sink_options = (struct sink_options){
		.width = full.width,
		.short_names = full.short_names,
		.colour = full.colour,
		.metric = full.metric,
		.title = full.title,
		.style = full.style,
		.parquet = write_parquet,
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
		tables = 0; /* this sink writes texts and numbers but no rows */
	}
	OW_TRY(api_read_begin(result->profile, tables, &reading, err));
	status = result->r->tree && !sink->folded
			 ? tree_unfold(result->r->tree, result->r->mem, err)
			 : OW_OK;
	if (full.limit && !result->r->tree)
		table_limit(result->r, full.limit);
	if (status == OW_OK)
		status = sink->write(result->r, &sink_options, &out, err);
	if (!result->r->tree)
		result->r->row_count = rows;
	return api_read_end(result->profile, &reading, status, err);
}

ow_status ow_verdict(ow_profile *p, const struct ow_view_options *options, char *text, size_t size,
		     struct ow_error *err)
{
	const char *sentence;
	ow_result *result;
	struct str shown;
	size_t len;

	if (size)
		*text = '\0';
	OW_TRY(ow_view(p, "verdict", options, &result, err));
	if (!result)
		return OW_E_INTERNAL;
	sentence = ow_result_text(result, 0, 0, &len);
	shown = str_make(sentence, len);
	if (size && len >= size)
		shown.len = utf8_valid_prefix(str_first(shown, size - 1));
	if (size) {
		memcpy(text, shown.ptr, shown.len);
		text[shown.len] = '\0';
	}
	ow_result_free(result);
	return OW_OK;
}

bool ow_nsys_report_info(size_t index, struct ow_part_info *info)
{
	if (index >= nsys_report_count)
		return false;
	return api_part_info(info, nsys_reports[index].name, nsys_reports[index].title,
			     nsys_reports[index].old_name);
}

ow_status ow_nsys_stats(ow_profile *p, const char *name, const struct ow_view_options *options,
			ow_result **out, struct ow_error *err)
{
	const struct nsys_report *report = nsys_report_find(name);
	struct ow_view_options full;
	struct reading reading;
	struct table *r;
	ow_status status;

	error_clear(err);
	*out = NULL;
	OW_TRY(api_check_frozen(p, err));
	if (!report)
		return error_set(err, OW_E_USAGE, "no report is called '%s'", name);
	ow_view_options_init(&full);
	SIZED_IN(&full, options);
	OW_TRY(api_read_begin(p, TABLES_ALL, &reading, err));
	r = table_new(&p->mem, report->name, err);
	status = r ? nsys_report_run(p->m, report, &full, r, err) : OW_E_NO_MEMORY;
	status = api_read_end(p, &reading, status, err);
	if (status != OW_OK) {
		table_free(r);
		return status;
	}
	return api_wrap_result(p, r, out, err);
}

void ow_arrow_options_init(struct ow_arrow_options *options)
{
	*options = (struct ow_arrow_options){ .size = sizeof(*options) };
}

ow_status ow_result_arrow(ow_result *result, const struct ow_arrow_options *options,
			  struct ArrowSchema *schema, struct ArrowArray *array,
			  struct ow_error *err)
{
	struct ow_arrow_options full;

	error_clear(err);
	ow_arrow_options_init(&full);
	SIZED_IN(&full, options);
	OW_TRY(ow_result_fill(result, err));
	return arrow_c_export(result->r, &full, schema, array, err);
}

ow_status ow_result_arrow_stream(ow_result *result, const struct ow_arrow_options *options,
				 struct ArrowArrayStream *stream, struct ow_error *err)
{
	struct ow_arrow_options full;

	error_clear(err);
	ow_arrow_options_init(&full);
	SIZED_IN(&full, options);
	OW_TRY(ow_result_fill(result, err));
	return arrow_c_stream(result->r, &full, stream, err);
}
