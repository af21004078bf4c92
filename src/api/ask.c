/* ask.c: named queries: listing them, running one on profiles, and their text for a server. */
#include "api/api_int.h"
#include "opwatch/sql.h"

#include "ask/queries.h"

struct ow_queries {
	struct mem mem;
	struct queries set;
};

ow_status ow_queries_open(const struct ow_list *dirs, ow_queries **out, struct ow_error *err)
{
	static const struct ow_list none = { NULL, 0 };
	ow_queries *q = calloc(1, sizeof(*q));
	ow_status status;

	error_clear(err);
	*out = NULL;
	if (!q)
		return error_no_memory(err);
	mem_init(&q->mem, 0);
	status = queries_open(&q->set, &q->mem, dirs ? dirs : &none, err);
	if (status != OW_OK)
		free(q);
	else
		*out = q;
	return status;
}

void ow_queries_free(ow_queries *q)
{
	if (!q)
		return;
	queries_close(&q->set);
	free(q);
}

static void describe(const struct query *query, struct ow_query_info *info)
{
	const struct ow_query_info all = { sizeof(all),	      query->name,	 query->title,
					   query->doc,	      query->path,	 query->sql,
					   query->clickhouse, query->param_count };

	SIZED_OUT(info, &all);
}

bool ow_queries_at(const ow_queries *q, size_t index, struct ow_query_info *info)
{
	if (index >= q->set.count)
		return false;
	describe(&q->set.items[index], info);
	return true;
}

bool ow_queries_find(const ow_queries *q, const char *name, struct ow_query_info *info)
{
	const struct query *query = queries_find(&q->set, name);

	if (query)
		describe(query, info);
	return query != NULL;
}

bool ow_queries_param(const ow_queries *q, const char *name, size_t index,
		      struct ow_query_param *param)
{
	const struct query *query = queries_find(&q->set, name);
	const struct query_param *from;
	struct ow_query_param all;

	if (!query || index >= query->param_count)
		return false;
	from = &query->params[index];
	all = (struct ow_query_param){ sizeof(all), from->name,
				       from->type == TYPE_INT	 ? "int"
				       : from->type == TYPE_REAL ? "real"
								 : "text",
				       from->usual, from->doc };
	SIZED_OUT(param, &all);
	return true;
}

static ow_status find(const ow_queries *q, const char *name, const struct query **query,
		      struct ow_error *err)
{
	*query = queries_find(&q->set, name);
	if (*query)
		return OW_OK;
	return error_set(err, OW_E_NOT_FOUND, "no query is called '%s'", name);
}

void ow_ask_options_init(struct ow_ask_options *options)
{
	*options = (struct ow_ask_options){ .size = sizeof(*options) };
}

struct asking {
	const struct queries *set;
	const struct query *query;
	const struct sql_param *values;
	struct ow_ask_options options;
	struct mem *mem;
};

/* Returns whether a table has a row; false also if it cannot be read. */
static bool has_rows(struct sql *sql, struct mem *mem, const char *rows)
{
	struct sql_script *script;
	struct ow_error ignored = { 0 };
	struct table *from = NULL;
	struct buf text;
	bool found = false;

	buf_init(&text, mem);
	buf_printf(&text, "SELECT 1 FROM %s LIMIT 1", rows);
	if (!text.failed && sql_parse(sql, buf_str(&text), &script, &ignored) == OW_OK) {
		found = sql_step(script, &from, &ignored) == OW_OK && from &&
			sql_fetch(script, &ignored) == OW_OK && from->row_count;
		sql_script_free(script);
	}
	buf_release(&text);
	return found;
}

/* Writes the parameters that the user gave: the likely reason for an empty result if the data
 * exist. */
static void put_given(const struct asking *a, struct buf *to)
{
	for (size_t i = 0; i < a->options.params.count; i++)
		buf_printf(to, "%s--%s", i ? " " : "", a->options.params.items[i]);
}

/* Returns the reason that belongs to the first required table without rows, or NULL. */
static const char *find_missing(const struct asking *a, struct sql *sql, const struct query *query)
{
	for (size_t i = 0; i < query->need_count; i++)
		if (!query->needs[i].instead && !has_rows(sql, a->mem, query->needs[i].rows))
			return query->needs[i].text;
	return NULL;
}

/* Names another query that has the answer, or one that shows what was recorded. */
static void put_instead(const struct asking *a, struct sql *sql, struct buf *to)
{
	static const char *const usual[] = { "top_ops",	       "hot_functions", "memory_at_peak",
					     "longest_events", "scopes",	"largest_tensors",
					     "counters" };
	const struct query *query = a->query, *other;

	for (size_t i = 0; i < query->need_count; i++)
		if (query->needs[i].instead && has_rows(sql, a->mem, query->needs[i].rows)) {
			buf_printf(to, " 'opwatch ask %s' has an answer.", query->needs[i].text);
			return;
		}
	for (size_t i = 0; i < ARRAY_COUNT(usual); i++) {
		other = queries_find(a->set, usual[i]);
		if (other && other != query && !find_missing(a, sql, other)) {
			buf_printf(to, " 'opwatch ask %s' shows what was recorded.", other->name);
			return;
		}
	}
	buf_puts(to, " 'opwatch info' shows what the files have.");
}

/* Explains, below an empty result, why it is empty and which other query has the answer. */
static void explain_empty(const struct asking *a, struct sql *sql, struct table *r)
{
	const char *why = find_missing(a, sql, a->query);
	struct buf text;

	buf_init(&text, a->mem);
	if (!why && !a->options.params.count)
		why = a->query->none;
	if (why) {
		buf_printf(&text, "No rows: %s.", why);
	} else {
		buf_puts(&text, "No rows: nothing in the files meets the conditions of the query");
		buf_puts(&text, a->options.params.count ? " with " : "");
		put_given(a, &text);
		buf_puts(&text, ".");
	}
	put_instead(a, sql, &text);
	r->footer = text.failed ? NULL : arena_cstr(&r->arena, buf_str(&text));
	buf_release(&text);
}

static ow_status run_script(const struct asking *a, struct sql *sql, struct table *r,
			    struct ow_error *err)
{
	struct sql_script *script;
	struct table *from;
	ow_status status;

	OW_TRY(sql_parse(sql, str_from(a->query->sql), &script, err));
	sql_bind(script, a->values, a->query->param_count);
	status = sql_step(script, &from, err);
	if (status == OW_OK && from)
		status = api_hold_rows(script, from, r, err);
	sql_script_free(script);
	if (status == OW_OK && !r->row_count)
		explain_empty(a, sql, r);
	return status;
}

static ow_status run_query(const struct asking *a, const struct ow_run *runs, size_t count,
			   struct table *r, struct ow_error *err)
{
	struct table_run *relations = mem_zalloc(a->mem, count * sizeof(*relations));
	const struct sql_options options = { .memory_limit = a->options.memory_limit,
					     .temp_dir = a->options.temp_dir,
					     .progress = a->options.keep_going,
					     .progress_arg = a->options.keep_going_arg };
	struct sql *sql = NULL;
	ow_status status;

	if (!relations)
		return error_no_memory(err);
	for (size_t i = 0; i < count; i++)
		relations[i] =
			(struct table_run){ runs[i].profile->m, runs[i].name, (uint32_t)i + 1 };
	status = sql_open(relations, count, &options, a->mem, &sql, err);
	if (status == OW_OK)
		status = run_script(a, sql, r, err);
	sql_close(sql);
	mem_free(a->mem, relations, count * sizeof(*relations));
	return status;
}

static ow_status ask(struct asking *a, const struct ow_run *runs, size_t count, ow_result **result,
		     struct ow_error *err)
{
	struct sql_param *values;
	struct table *r = NULL;
	struct arena arena;
	ow_status status;

	arena_init(&arena, a->mem);
	status = query_values(a->query, &a->options.params, &arena, &values, err);
	a->values = values;
	if (status == OW_OK) {
		r = table_new(a->mem, "ask", err);
		status = r ? run_query(a, runs, count, r, err) : OW_E_NO_MEMORY;
	}
	arena_release(&arena);
	if (status != OW_OK) {
		if (r)
			table_free(r);
		return error_wrap(err, status, "%s", a->query->name);
	}
	return api_wrap_result(runs[0].profile, r, result, err);
}

ow_status ow_ask(const ow_queries *q, const char *name, const struct ow_run *runs, size_t count,
		 const struct ow_ask_options *options, ow_result **result, struct ow_error *err)
{
	struct asking a = { 0 };

	error_clear(err);
	*result = NULL;
	OW_TRY(find(q, name, &a.query, err));
	a.set = &q->set;
	if (!count)
		return error_set(err, OW_E_USAGE, "a query needs a profile to ask about");
	if (count < a.query->least_runs)
		return error_set(err, OW_E_USAGE,
				 "%s compares runs: give at least %zu, such as two files (--run "
				 "NAME=FILE names a run)",
				 name, a.query->least_runs);
	for (size_t i = 0; i < count; i++)
		OW_TRY(api_check_frozen(runs[i].profile, err));
	ow_ask_options_init(&a.options);
	SIZED_IN(&a.options, options);
	a.mem = &runs[0].profile->mem;
	return ask(&a, runs, count, result, err);
}

static ow_status write_text(const struct query *query, const struct ow_list *params,
			    struct mem *mem, struct buf *text, struct ow_error *err)
{
	struct sql_param *values;
	struct arena arena;
	ow_status status;

	arena_init(&arena, mem);
	status = query_values(query, params, &arena, &values, err);
	if (status == OW_OK)
		status = query_render(query->clickhouse, values, query->param_count, text, err);
	arena_release(&arena);
	return error_wrap(err, status, "%s", query->name);
}

ow_status ow_ask_text(const ow_queries *q, const char *name, const struct ow_list *params,
		      ow_write_fn write, void *arg, struct ow_error *err)
{
	static const struct ow_list none = { NULL, 0 };
	const struct query *query;
	struct buf text;
	struct mem mem;
	ow_status status;

	error_clear(err);
	OW_TRY(find(q, name, &query, err));
	if (!query->clickhouse)
		return error_set(err, OW_E_UNSUPPORTED,
				 "%s has no form for ClickHouse: it needs the embedded engine; ask "
				 "it of files",
				 name);
	mem_init(&mem, 0);
	buf_init(&text, &mem);
	status = write_text(query, params ? params : &none, &mem, &text, err);
	if (status == OW_OK && !write(arg, text.ptr ? text.ptr : "", text.len))
		status = error_set(err, OW_E_INTERRUPTED, "the output was closed");
	buf_release(&text);
	return status;
}
