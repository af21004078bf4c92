/*
 * sink_markdown.c: the sink `markdown`: any table as a table in GitHub's Markdown, for pull requests and notes. Numbers
 * are human-readable, as in the sink text, and columns for programs are left out. Names are formatted as code and
 * escaped, so that a name never becomes markup, a link or a mention. Above the table of a comparison are its sentence,
 * its conclusion and its limits.
 */
#include "sink/diff/diff_out.h"
#include "sink/table/table_out.h"

#define DEPTH_MAX 24u /* rows are indented up to this level */

/* Writes characters that could be markup, or end a cell, as HTML entities. */
static void put_entities(struct writer *w, struct str text)
{
	for (size_t i = 0, from = 0; i <= text.len; i++) {
		char c = i < text.len ? text.ptr[i] : '\0';
		bool special = c && strchr("&<>|`*_[]~\\#", c);
		bool control = (unsigned char)c < ' ';

		if (i < text.len && !special && !control && c != '@')
			continue;
		writer_utf8(w, str_make(text.ptr + from, i - from));
		if (i < text.len && control)
			writer_char(w, ' ');
		else if (c == '@') /* a word joiner after @ prevents a mention */
			writer_puts(w, "@\xe2\x81\xa0");
		else if (i < text.len)
			writer_printf(w, "&#%d;", c);
		from = i + 1;
	}
}

static bool is_plain_code(struct str text)
{
	for (size_t i = 0; i < text.len; i++)
		if ((unsigned char)text.ptr[i] < ' ' || text.ptr[i] == '`' || text.ptr[i] == '|' ||
		    text.ptr[i] == '\\')
			return false;
	return text.len && text.ptr[0] != ' ' && text.ptr[text.len - 1] != ' ';
}

static void put_code(struct writer *w, struct str text)
{
	if (is_plain_code(text)) {
		writer_char(w, '`');
		writer_utf8(w, text);
		writer_char(w, '`');
	} else {
		writer_puts(w, "<code>");
		put_entities(w, text);
		writer_puts(w, "</code>");
	}
}

static void put_sentence(struct writer *w, const char *before, struct str text, const char *after)
{
	writer_puts(w, before);
	put_entities(w, text);
	writer_puts(w, after);
}

static void put_summary(struct writer *w, const struct diff_out *d)
{
	put_sentence(w, "**", d->sentence, ".**\n\n");
	put_sentence(w, "Conclusion: ", d->conclusion, ".\n\n");
	for (size_t i = 0; i < d->limit_count; i++) {
		writer_puts(w, "- ");
		put_code(w, d->limits[i].text);
		put_sentence(w, ": **", d->limits[i].gate, "**, ");
		put_sentence(w, "", d->limits[i].message, "\n");
	}
	if (d->limit_count)
		writer_char(w, '\n');
}

static bool is_shown(const struct rows_column *column)
{
	return !column->c->for_programs;
}

static bool is_number(const struct table_column *c)
{
	return c->type != TYPE_TEXT && c->type != TYPE_BOOL;
}

static void put_head(struct writer *w, const struct rows *rows)
{
	for (uint32_t c = 0; c < rows->column_count; c++) {
		const struct table_column *column = rows->columns[c].c;

		if (is_shown(&rows->columns[c]))
			put_sentence(w, "| ",
				     str_from(column->title ? column->title : column->name), " ");
	}
	writer_puts(w, "|\n");
	for (uint32_t c = 0; c < rows->column_count; c++)
		if (is_shown(&rows->columns[c]))
			writer_puts(w, is_number(rows->columns[c].c) ? "| ---: " : "| --- ");
	writer_puts(w, "|\n");
}

static void put_number(struct writer *w, const struct rows_column *column, uint32_t i)
{
	enum human_unit unit = human_unit_of(column->c->unit);
	char text[HUMAN_SIZE];

	switch (column->c->type) {
	case TYPE_INT:
		human_int(text, ((const int64_t *)column->values)[i], unit, false);
		break;
	case TYPE_INT32:
		human_int(text, ((const int32_t *)column->values)[i], unit, false);
		break;
	case TYPE_UINT64:
		human_real(text, (double)((const uint64_t *)column->values)[i], unit, false);
		break;
	case TYPE_REAL:
		human_real(text, ((const double *)column->values)[i], unit, false);
		break;
	default:
		text[0] = '\0';
	}
	writer_puts(w, text);
}

/* Indents a name in the first column of a tree: two non-breaking spaces, which Markdown keeps, for each level. */
static void put_indent(struct writer *w, const struct rows *rows, uint32_t i)
{
	uint32_t depth = rows->t->depth ? MIN(rows->t->depth[rows->row + i], DEPTH_MAX) : 0;

	for (; depth; depth--)
		writer_puts(w, "&nbsp;&nbsp;");
}

static void put_cell(struct writer *w, const struct rows *rows, const struct rows_column *column,
		     uint32_t i)
{
	writer_puts(w, "| ");
	if (column == rows->columns)
		put_indent(w, rows, i);
	if (column->c->type == TYPE_TEXT || column->c->type == TYPE_NUMBER) {
		struct str text = rows_text(rows, column, i);

		if (text.len)
			put_code(w, text);
	} else if (!rows_known(column, i)) {
		writer_char(w, '-');
	} else if (column->c->type == TYPE_BOOL) {
		writer_puts(w, ((const bool *)column->values)[i] ? "yes" : "no");
	} else {
		put_number(w, column, i);
	}
	writer_char(w, ' ');
}

static ow_status put_rows(struct writer *w, struct rows *rows, struct ow_error *err)
{
	for (;;) {
		OW_TRY(rows_next(rows, err));
		if (!rows->n)
			return OW_OK;
		for (uint32_t i = 0; i < rows->n && w->status == OW_OK; i++) {
			for (uint32_t c = 0; c < rows->column_count; c++)
				if (is_shown(&rows->columns[c]))
					put_cell(w, rows, &rows->columns[c], i);
			writer_puts(w, "|\n");
		}
	}
}

static ow_status put_table(struct writer *w, struct table *table, struct ow_error *err)
{
	struct rows rows;
	ow_status status = table_prepare(table, err);

	if (status != OW_OK)
		return status;
	status = rows_open(&rows, table, NULL, err);
	if (status == OW_OK) {
		rows_start(&rows, 0, table->part_count);
		put_head(w, &rows);
		status = put_rows(w, &rows, err);
	}
	rows_close(&rows);
	return status;
}

static ow_status markdown_write(struct table *table, const struct sink_options *options,
				const struct out *out, struct ow_error *err)
{
	struct diff_out d = { 0 };
	struct writer w;
	bool diff = strcmp(table->name, "diff") == 0;
	ow_status status = diff ? diff_out_read(&d, table, "markdown", err) : OW_OK;

	(void)options;
	if (status == OW_OK) {
		writer_init(&w, table->mem, out, err);
		if (diff)
			put_summary(&w, &d);
		writer_fail(&w, put_table(&w, table, err));
		status = writer_finish(&w);
	}
	if (diff)
		diff_out_release(&d);
	return status;
}

const struct sink sink_markdown = {
	.name = "markdown",
	.summary = "a table in GitHub's Markdown",
	.extension = "md",
	.accepts = SINK_RESULT,
	.write = markdown_write,
};
