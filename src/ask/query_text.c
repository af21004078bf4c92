/*
 * query_text.c: reads the header of a named query (what it answers, its parameters) and replaces parameters in its text. Called by
 * queries.c; it does not run anything.
 */
#include "ask/queries.h"

#include "sql/bigquery.h"

#define PARAMS_MAX 16
#define NEEDS_MAX 16

struct reading {
	struct arena *arena;
	const char *name, *path;
	unsigned line;
	struct query *query;
	struct query_param params[PARAMS_MAX];
	struct query_need needs[NEEDS_MAX];
	struct buf doc;
};

static ow_status fault(const struct reading *r, struct ow_error *err, const char *what)
{
	return error_set(err, OW_E_FORMAT, "%s:%u: %s", r->path ? r->path : r->name, r->line, what);
}

static bool is_name(struct str name)
{
	for (size_t i = 0; i < name.len; i++) {
		char c = name.ptr[i];

		if (!(c >= 'a' && c <= 'z') && !(c >= 'A' && c <= 'Z') && c != '_' &&
		    !(i && c >= '0' && c <= '9'))
			return false;
	}
	return name.len > 0;
}

static struct str take_word(struct str *rest)
{
	struct str word;
	size_t blank;

	*rest = str_trim(*rest);
	blank = str_find_char(*rest, ' ');
	word = blank == STR_NONE ? *rest : str_first(*rest, blank);
	*rest = str_skip(*rest, word.len);
	return word;
}

static bool read_type(struct str word, enum column_type *type)
{
	if (str_eq(word, STR("int")))
		*type = TYPE_INT;
	else if (str_eq(word, STR("real")))
		*type = TYPE_REAL;
	else if (str_eq(word, STR("text")))
		*type = TYPE_TEXT;
	else
		return false;
	return true;
}

/* Reads a parameter line, such as "limit int 20: rows to show". */
static ow_status read_param(struct reading *r, struct str rest, struct ow_error *err)
{
	struct query_param *param = &r->params[r->query->param_count];
	struct str name = take_word(&rest), type = take_word(&rest), usual;
	size_t colon;

	if (r->query->param_count == PARAMS_MAX)
		return fault(r, err, "more than 16 parameters");
	rest = str_trim(rest);
	if (str_starts(rest, STR("'"))) { /* a quoted default value may contain a colon */
		size_t quote = str_find_char(str_skip(rest, 1), '\'');

		if (quote == STR_NONE)
			return fault(r, err, "a quote is missing");
		usual = str_first(str_skip(rest, 1), quote);
		rest = str_trim(str_skip(rest, quote + 2));
		colon = 0;
	} else {
		colon = str_find_char(rest, ':');
		usual = str_trim(str_first(rest, colon));
	}
	if (!is_name(name) || !read_type(type, &param->type) || colon == STR_NONE ||
	    !str_starts(str_skip(rest, colon), STR(":")))
		return fault(r, err,
			     "write a parameter as '-- param NAME int|real|text DEFAULT: what "
			     "it means'");
	param->name = arena_cstr(r->arena, name);
	param->usual = arena_cstr(r->arena, usual);
	param->doc = arena_cstr(r->arena, str_trim(str_skip(rest, colon + 1)));
	if (!param->name || !param->usual || !param->doc)
		return error_no_memory(err);
	r->query->param_count++;
	return OW_OK;
}

/* Reads a line "needs: TABLE WHERE … | REASON" or "instead: QUERY | TABLE WHERE …". */
static ow_status read_need(struct reading *r, struct str rest, bool instead, struct ow_error *err)
{
	struct query_need *need = &r->needs[r->query->need_count];
	size_t bar = str_find(rest, STR(" | "));
	struct str first, second;

	if (r->query->need_count == NEEDS_MAX)
		return fault(r, err, "more than 16 lines 'needs:' and 'instead:'");
	if (bar == STR_NONE)
		return fault(r, err,
			     "write '-- needs: TABLE WHERE … | REASON' or '-- instead: QUERY | "
			     "TABLE WHERE …'");
	first = str_trim(str_first(rest, bar));
	second = str_trim(str_skip(rest, bar + 3));
	need->rows = arena_cstr(r->arena, instead ? second : first);
	need->text = arena_cstr(r->arena, instead ? first : second);
	need->instead = instead;
	if (!need->rows || !need->text)
		return error_no_memory(err);
	r->query->need_count++;
	return OW_OK;
}

static ow_status read_header_line(struct reading *r, struct str line, struct ow_error *err)
{
	line = str_trim(str_skip(line, 2));
	if (str_starts(line, STR("title:"))) {
		r->query->title = arena_cstr(r->arena, str_trim(str_skip(line, 6)));
		return r->query->title ? OW_OK : error_no_memory(err);
	}
	if (str_eq(line, STR("param")) || str_starts(line, STR("param ")))
		return read_param(r, str_skip(line, 6), err);
	if (str_starts(line, STR("none:"))) {
		r->query->none = arena_cstr(r->arena, str_trim(str_skip(line, 5)));
		return r->query->none ? OW_OK : error_no_memory(err);
	}
	if (str_starts(line, STR("needs:")))
		return read_need(r, str_skip(line, 6), false, err);
	if (str_starts(line, STR("instead:")))
		return read_need(r, str_skip(line, 8), true, err);
	if (str_starts(line, STR("runs:"))) {
		int64_t runs;

		if (!str_to_i64(str_trim(str_skip(line, 5)), &runs) || runs < 1 || runs > 1000)
			return fault(r, err, "write '-- runs: 2'");
		r->query->least_runs = (size_t)runs;
		return OW_OK;
	}
	if (r->doc.len && line.len)
		buf_add_char(&r->doc, ' ');
	buf_add_str(&r->doc, line);
	return OW_OK;
}

/* Cuts off the next line of the text. */
static bool next_line(struct reading *r, struct str *rest, struct str *line)
{
	if (!rest->len || !str_split(rest, '\n', line))
		return false;
	r->line++;
	*line = str_trim(*line);
	return true;
}

/* Cuts off the ClickHouse form of the query, which begins with its own line. */
static struct str cut_clickhouse(struct str *sql, bool *same)
{
	struct str rest = *sql, line;
	size_t before;

	*same = false;
	do {
		before = sql->len - (rest.ptr ? rest.len : 0);
		if (!rest.ptr || !rest.len || !str_split(&rest, '\n', &line))
			return (struct str){ 0 };
		line = str_trim(line);
	} while (!str_starts(line, STR("-- clickhouse:")));
	*same = str_eq(str_trim(str_skip(line, 14)), STR("same"));
	*sql = str_first(*sql, before);
	return *same ? *sql : rest.ptr ? rest : STR("");
}

static ow_status read_forms(struct reading *r, struct str sql, struct ow_error *err)
{
	struct query *query = r->query;
	bool same;
	struct str other = cut_clickhouse(&sql, &same);

	query->sql = arena_cstr(r->arena, str_trim(sql));
	if (!query->sql)
		return error_no_memory(err);
	if (!*query->sql)
		return fault(r, err, "there is no query");
	if (bigquery_statement(str_from(query->sql), 1).len)
		return fault(r, err,
			     "there is more than one statement; a named query is one, with WITH "
			     "name AS (…) for its parts");
	if (!other.ptr)
		return OW_OK;
	query->clickhouse = same ? query->sql : arena_cstr(r->arena, str_trim(other));
	if (!query->clickhouse)
		return error_no_memory(err);
	return *query->clickhouse ? OW_OK : fault(r, err, "nothing follows '-- clickhouse:'");
}

static ow_status read_header(struct reading *r, struct str *text, struct ow_error *err)
{
	struct str rest = *text, line;

	while (next_line(r, &rest, &line)) {
		if (line.len && !str_starts(line, STR("--")))
			break;
		if (line.len)
			OW_TRY(read_header_line(r, line, err));
		*text = rest.ptr ? rest : STR("");
	}
	return OW_OK;
}

ow_status query_parse(struct arena *arena, const char *name, const char *path, struct str text,
		      struct query *query, struct ow_error *err)
{
	struct reading r = { .arena = arena, .name = name, .path = path, .query = query };
	struct query_param *params;
	struct query_need *needs;
	ow_status status;

	*query = (struct query){ .name = name, .title = name, .path = path };
	buf_init(&r.doc, arena->mem);
	status = utf8_valid(text) ? read_header(&r, &text, err)
				  : fault(&r, err, "the file is not UTF-8");
	if (status == OW_OK)
		status = read_forms(&r, text, err);
	params = ARENA_ARRAY(arena, struct query_param, query->param_count + 1);
	needs = ARENA_ARRAY(arena, struct query_need, query->need_count + 1);
	query->doc = arena_cstr(arena, buf_str(&r.doc));
	if (status == OW_OK && (!params || !needs || !query->doc || r.doc.failed))
		status = error_no_memory(err);
	if (params)
		memcpy(params, r.params, query->param_count * sizeof(*params));
	if (needs)
		memcpy(needs, r.needs, query->need_count * sizeof(*needs));
	query->params = params;
	query->needs = needs;
	buf_release(&r.doc);
	return status;
}
