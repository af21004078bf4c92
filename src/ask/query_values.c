/*
 * query_values.c: values of the parameters of a named query. The embedded engine gets them beside the text. For a
 * server without parameters they become literals, each written from its value and never from the user's spelling of it.
 */
#include "ask/queries.h"

#include <errno.h>
#include <math.h>

static ow_status wrong(const struct query_param *param, const char *text, struct ow_error *err)
{
	return error_set(err, OW_E_USAGE, "%s takes %s, not '%s'", param->name,
			 param->type == TYPE_INT ? "an integer" : "a number", text);
}

static ow_status read_value(const struct query_param *param, const char *text,
			    struct sql_param *value, struct ow_error *err)
{
	char *end;

	*value = (struct sql_param){ .name = param->name, .type = param->type };
	switch (param->type) {
	case TYPE_INT:
		return str_to_i64(str_from(text), &value->number) ? OW_OK : wrong(param, text, err);
	case TYPE_REAL:
		value->real = strtod(text, &end);
		return end != text && !*end && isfinite(value->real) ? OW_OK
								     : wrong(param, text, err);
	default:
		value->text = str_from(text);
		return utf8_valid(value->text)
			       ? OW_OK
			       : error_set(err, OW_E_USAGE, "%s is not UTF-8", param->name);
	}
}

static ow_status unknown(const struct query *query, struct str name, struct ow_error *err)
{
	char list[512] = "";

	for (size_t i = 0; i < query->param_count; i++) {
		size_t len = strlen(list);

		snprintf(list + len, sizeof(list) - len, "%s%s", i ? ", " : "",
			 query->params[i].name);
	}
	return error_set(err, OW_E_USAGE, "%s has no parameter %.*s; it has %s", query->name,
			 STR_ARG(name), *list ? list : "none");
}

/* Compares two names; '-' and '_' count as equal. */
static bool same_name(struct str a, const char *b)
{
	if (a.len != strlen(b))
		return false;
	for (size_t i = 0; i < a.len; i++)
		if (a.ptr[i] != b[i] && !(a.ptr[i] == '-' && b[i] == '_'))
			return false;
	return true;
}

static ow_status take(const struct query *query, const char *word, struct sql_param *values,
		      struct ow_error *err)
{
	struct str text = str_from(word);
	size_t equals = str_find_char(text, '=');
	struct str name = str_first(text, equals);

	if (equals == STR_NONE)
		return error_set(err, OW_E_USAGE, "a parameter is given as name=value, not '%s'",
				 word);
	for (size_t i = 0; i < query->param_count; i++)
		if (same_name(name, query->params[i].name))
			return read_value(&query->params[i], word + equals + 1, &values[i], err);
	return unknown(query, name, err);
}

ow_status query_values(const struct query *query, const struct ow_list *given, struct arena *arena,
		       struct sql_param **out, struct ow_error *err)
{
	struct sql_param *values = ARENA_ARRAY(arena, struct sql_param, query->param_count + 1);

	if (!values)
		return error_no_memory(err);
	for (size_t i = 0; i < query->param_count; i++)
		OW_TRY(read_value(&query->params[i], query->params[i].usual, &values[i], err));
	for (size_t i = 0; i < given->count; i++)
		OW_TRY(take(query, given->items[i], values, err));
	*out = values;
	return OW_OK;
}

static void put_text(struct buf *to, struct str text)
{
	buf_add_char(to, '\'');
	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.ptr[i];

		if (c == '\'' || c == '\\')
			buf_add_char(to, '\\');
		if (c < 32)
			buf_printf(to, "\\x%02x", c);
		else
			buf_add_char(to, (char)c);
	}
	buf_add_char(to, '\'');
}

static void put_value(struct buf *to, const struct sql_param *value)
{
	if (value->type == TYPE_TEXT)
		put_text(to, value->text);
	else if (value->type == TYPE_REAL)
		buf_printf(to, signbit(value->real) ? "(%.17g)" : "%.17g", value->real);
	else if (value->number < 0)
		buf_printf(to, "(%" PRId64 ")",
			   value->number); /* parentheses keep "a - (-1)" from becoming a comment */
	else
		buf_printf(to, "%" PRId64, value->number); /* LIMIT does not accept parentheses */
}

/* Returns the end of the quoted part or comment that begins at `at`; `at` itself if none begins
 * there. */
static size_t skip_quoted(const char *text, size_t at)
{
	char quote = text[at];

	if (quote == '-' && text[at + 1] == '-') {
		while (text[at] && text[at] != '\n')
			at++;
		return at;
	}
	if (quote != '\'' && quote != '"' && quote != '`')
		return at;
	for (at++; text[at] && text[at] != quote; at++)
		if (text[at] == '\\' && text[at + 1])
			at++;
	return text[at] ? at + 1 : at;
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

static ow_status put_param(struct buf *to, struct str name, const struct sql_param *values,
			   size_t count, struct ow_error *err)
{
	for (size_t i = 0; i < count; i++)
		if (str_eq(name, str_from(values[i].name))) {
			put_value(to, &values[i]);
			return OW_OK;
		}
	return error_set(err, OW_E_USAGE, "the query has a parameter $%.*s that is not declared",
			 STR_ARG(name));
}

ow_status query_render(const char *text, const struct sql_param *values, size_t count,
		       struct buf *to, struct ow_error *err)
{
	for (size_t at = 0; text[at];) {
		size_t end = skip_quoted(text, at);

		if (end == at && text[at] == '$' && is_word(text[at + 1])) {
			for (end = at + 1; is_word(text[end]);)
				end++;
			OW_TRY(put_param(to, str_make(text + at + 1, end - at - 1), values, count,
					 err));
			at = end;
			continue;
		}
		end += end == at;
		buf_add(to, text + at, end - at);
		at = end;
	}
	return to->failed ? error_no_memory(err) : OW_OK;
}
