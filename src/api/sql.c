/*
 * sql.c: bodies of the ow_sql functions: results of queries as tables, held whole or handed to a sink piece by piece.
 */
#include "api/api_int.h"

#include "base/atomic_file.h"
#include "base/human.h"
#include "relation/relation.h"
#include "sql/sql.h"
#include "opwatch/sql.h"
#include "diff/diff.h"
#include "hang/answer.h"
#include "live/daemon/jobs.h"
#include "ranks/ranks.h"
#include "replay/session.h"

#include <errno.h>
#include <unistd.h>

#define TEXT_ROWS 10000 /* number of rows that are aligned with each other */

struct ow_sql {
	struct mem mem;
	struct sql *sql;
	struct table_run *runs;
	size_t run_count;
	ow_profile *first;
	struct ow_sql_options options;
};

void ow_sql_options_init(struct ow_sql_options *options)
{
	*options = (struct ow_sql_options){ .size = sizeof(*options) };
}

static ow_status open_session(ow_sql *s, const char *may_write, struct sql **sql,
			      struct ow_error *err)
{
	const struct ow_sql_options *o = &s->options;
	struct sql_options options = {
		.memory_limit = o->memory_limit,
		.temp_dir = o->temp_dir,
		.threads = o->threads,
		.allow_io = o->allow_io,
		.may_write = may_write,
		.progress = o->keep_going,
		.progress_arg = o->keep_going_arg,
	};

	return sql_open(s->runs, s->run_count, &options, &s->mem, sql, err);
}

ow_status ow_sql_open(const struct ow_run *runs, size_t count, const struct ow_sql_options *options,
		      ow_sql **out, struct ow_error *err)
{
	ow_sql *s;
	ow_status status;

	error_clear(err);
	*out = NULL;
	if (!count)
		return error_set(err, OW_E_USAGE, "SQL needs a profile to ask about");
	for (size_t i = 0; i < count; i++)
		OW_TRY(api_check_frozen(runs[i].profile, err));
	s = calloc(1, sizeof(*s));
	if (!s)
		return error_no_memory(err);
	mem_init(&s->mem, 0);
	ow_sql_options_init(&s->options);
	SIZED_IN(&s->options, options);
	s->first = runs[0].profile;
	s->run_count = count;
	s->runs = mem_zalloc(&s->mem, count * sizeof(*s->runs));
	for (size_t i = 0; s->runs && i < count; i++)
		s->runs[i] =
			(struct table_run){ runs[i].profile->m, runs[i].name, (uint32_t)i + 1 };
	status = s->runs ? open_session(s, NULL, &s->sql, err) : error_no_memory(err);
	if (status != OW_OK) {
		ow_sql_close(s);
		return status;
	}
	*out = s;
	return OW_OK;
}

void ow_sql_close(ow_sql *s)
{
	if (!s)
		return;
	sql_close(s->sql);
	mem_free(&s->mem, s->runs, s->run_count * sizeof(*s->runs));
	free(s);
}

void ow_sql_cancel(ow_sql *s)
{
	sql_cancel(s->sql);
}

ow_status api_hold_rows(struct sql_script *script, struct table *from, struct table *r,
			struct ow_error *err)
{
	OW_TRY(table_add_columns_of(r, from, err));
	do {
		OW_TRY(sql_fetch(script, err));
		OW_TRY(table_append(r, from, err));
	} while (from->row_count);
	table_narrow(r);
	return OW_OK;
}

static ow_status query(ow_sql *s, struct sql_script *script, struct table **out,
		       struct ow_error *err)
{
	struct table *from;

	for (;;) {
		OW_TRY(sql_step(script, &from, err));
		if (!from)
			return OW_OK;
		table_free(*out);
		*out = table_new(&s->first->mem, "sql", err);
		if (!*out)
			return OW_E_NO_MEMORY;
		OW_TRY(api_hold_rows(script, from, *out, err));
	}
}

static struct ow_sql_value value_of(const struct ow_sql_param *from)
{
	static const ow_sql_kind kinds[] = { [OW_TYPE_INT] = OW_SQL_INT,
					     [OW_TYPE_REAL] = OW_SQL_REAL,
					     [OW_TYPE_TEXT] = OW_SQL_TEXT,
					     [OW_TYPE_BOOL] = OW_SQL_BOOL,
					     [OW_TYPE_NUMBER] = OW_SQL_NUMBER };
	struct ow_sql_value value = { .name = from->name,
				      .kind = OW_SQL_TEXT,
				      .number = from->number,
				      .real = from->real,
				      .text = from->text };

	if (from->is_null)
		value.kind = OW_SQL_NULL;
	else if ((size_t)from->type < ARRAY_COUNT(kinds))
		value.kind = kinds[from->type];
	return value;
}

/* Lists in lists; more levels are refused. */
#define LISTS_MAX 8

static ow_status param_of(struct arena *arena, const struct ow_sql_value *from, unsigned depth,
			  struct sql_param *to, struct ow_error *err)
{
	static const struct {
		enum column_type type;
		enum sql_kind kind;
	} kinds[] = {
		[OW_SQL_NULL] = { TYPE_TEXT, SQL_PLAIN },
		[OW_SQL_BOOL] = { TYPE_BOOL, SQL_PLAIN },
		[OW_SQL_INT] = { TYPE_INT, SQL_PLAIN },
		[OW_SQL_REAL] = { TYPE_REAL, SQL_PLAIN },
		[OW_SQL_TEXT] = { TYPE_TEXT, SQL_PLAIN },
		[OW_SQL_NUMBER] = { TYPE_TEXT, SQL_NUMBER },
		[OW_SQL_BYTES] = { TYPE_TEXT, SQL_BYTES },
		[OW_SQL_DATE] = { TYPE_INT, SQL_DATE },
		[OW_SQL_TIME] = { TYPE_INT, SQL_TIME },
		[OW_SQL_TIMESTAMP] = { TYPE_INT, SQL_TIMESTAMP },
		[OW_SQL_TIMESTAMPTZ] = { TYPE_INT, SQL_TIMESTAMPTZ },
		[OW_SQL_TIMESTAMP_NS] = { TYPE_INT, SQL_TIMESTAMP_NS },
		[OW_SQL_INTERVAL] = { TYPE_INT, SQL_INTERVAL },
		[OW_SQL_LIST] = { TYPE_TEXT, SQL_LIST },
	};
	struct sql_param *items = NULL;

	if ((size_t)from->kind >= ARRAY_COUNT(kinds) || depth > LISTS_MAX)
		return error_set(err, OW_E_USAGE,
				 "a value of a parameter has an unknown type, or "
				 "more than %d lists in lists",
				 LISTS_MAX);
	if (from->kind == OW_SQL_LIST) {
		items = ARENA_ARRAY(arena, struct sql_param, from->item_count + 1);
		if (!items)
			return error_no_memory(err);
		for (size_t i = 0; i < from->item_count; i++)
			OW_TRY(param_of(arena, &from->items[i], depth + 1, &items[i], err));
	}
	*to = (struct sql_param){
		.name = from->name,
		.type = kinds[from->kind].type,
		.kind = kinds[from->kind].kind,
		.number = from->number,
		.real = from->real,
		.text = str_make(from->text.ptr, from->text.len),
		.is_null = from->kind == OW_SQL_NULL,
		.items = items,
		.item_count = items ? from->item_count : 0,
	};
	return OW_OK;
}

static ow_status query_script(ow_sql *s, struct sql_script *script, struct arena *arena,
			      const struct ow_sql_value *values, size_t count, struct table **r,
			      struct ow_error *err)
{
	struct sql_param *params = ARENA_ARRAY(arena, struct sql_param, count + 1);

	if (!params)
		return error_no_memory(err);
	for (size_t i = 0; i < count; i++)
		OW_TRY(param_of(arena, &values[i], 0, &params[i], err));
	sql_bind(script, params, count);
	sql_use_json(script);
	OW_TRY(query(s, script, r, err));
	if (sql_unused(script))
		return error_set(err, OW_E_USAGE, "the query has no parameter $%s",
				 sql_unused(script));
	return OW_OK;
}

ow_status ow_sql_query(ow_sql *s, const char *text, ow_result **out, struct ow_error *err)
{
	return ow_sql_query_with(s, text, NULL, 0, out, err);
}

ow_status ow_sql_query_with(ow_sql *s, const char *text, const struct ow_sql_param *params,
			    size_t count, ow_result **out, struct ow_error *err)
{
	struct ow_sql_value *values = mem_zalloc(&s->mem, (count + 1) * sizeof(*values));
	ow_status status;

	error_clear(err);
	*out = NULL;
	if (!values)
		return error_no_memory(err);
	for (size_t i = 0; i < count; i++)
		values[i] = value_of(&params[i]);
	status = ow_sql_query_values(s, text, values, count, out, err);
	mem_free(&s->mem, values, (count + 1) * sizeof(*values));
	return status;
}

ow_status ow_sql_query_values(ow_sql *s, const char *text, const struct ow_sql_value *values,
			      size_t count, ow_result **out, struct ow_error *err)
{
	struct arena arena;
	struct sql_script *script;
	struct table *r = NULL;
	ow_status status;

	error_clear(err);
	*out = NULL;
	OW_TRY(sql_parse(s->sql, str_from(text), &script, err));
	arena_init(&arena, &s->mem);
	status = query_script(s, script, &arena, values, count, &r, err);
	sql_script_free(script);
	arena_release(&arena);
	if (status == OW_OK && !r) {
		r = table_new(&s->first->mem, "sql", err);
		status = r ? OW_OK : OW_E_NO_MEMORY;
	}
	if (status != OW_OK) {
		table_free(r);
		return status;
	}
	return api_wrap_result(s->first, r, out, err);
}

struct writing {
	ow_sql *sql;
	const struct sink *sink;
	struct sink_options options;
	uint32_t limit; /* largest number of rows of a statement */
	const struct out *out;
	struct ow_error *err;
};

/* Fetches the next wanted rows; none at the end. */
static ow_status fetch(struct writing *w, struct sql_script *script, struct table *from,
		       uint32_t *left)
{
	if (*left) {
		OW_TRY(sql_fetch(script, w->err));
		table_limit(from, *left);
	} else {
		from->row_count = 0;
	}
	*left -= from->row_count;
	return OW_OK;
}

static ow_status write_pieces(struct writing *w, struct sql_script *script, struct table *from)
{
	uint32_t left = w->limit;

	w->options.continued = false;
	w->options.rows_before = 0;
	do {
		OW_TRY(fetch(w, script, from, &left));
		w->options.continues = from->row_count != 0;
		OW_TRY(w->sink->write(from, &w->options, w->out, w->err));
		w->options.continued = true;
		w->options.rows_before += from->row_count;
	} while (from->row_count);
	return OW_OK;
}

/* Writes tables for people. Rows are held to align them; after many rows a new table begins. */
static ow_status write_tables(struct writing *w, struct sql_script *script, struct table *from)
{
	ow_status status = OW_OK;
	uint32_t left = w->limit;
	bool any = false, more = true;

	while (more && status == OW_OK) {
		struct table *r = table_new(&w->sql->mem, "sql", w->err);

		if (!r)
			return OW_E_NO_MEMORY;
		status = table_add_columns_of(r, from, w->err);
		while (status == OW_OK && more && r->row_count < TEXT_ROWS) {
			status = fetch(w, script, from, &left);
			if (status == OW_OK)
				status = table_append(r, from, w->err);
			more = from->row_count != 0;
		}
		if (status == OW_OK && (r->row_count || !any))
			status = w->sink->write(r, &w->options, w->out, w->err);
		any = true;
		table_free(r);
	}
	return status;
}

static bool is_plan(const struct table *t)
{
	return t->column_count == 2 && strcmp(t->columns[0].name, "explain_key") == 0 &&
	       strcmp(t->columns[1].name, "explain_value") == 0;
}

/* Writes the answer of EXPLAIN, a drawing of many lines in one cell. */
static ow_status write_plan(struct writing *w, struct sql_script *script, struct table *from)
{
	ow_status status = OW_OK;
	struct buf text;

	buf_init(&text, &w->sql->mem);
	do {
		status = sql_fetch(script, w->err);
		for (uint32_t i = 0; status == OW_OK && i < from->row_count; i++) {
			struct str rest = from->columns[1].texts[i], line;

			while (rest.len && str_split(&rest, '\n', &line)) {
				human_printable(&text, line);
				buf_add_char(&text, '\n');
			}
		}
	} while (status == OW_OK && from->row_count);
	if (status == OW_OK)
		status = text.failed ? error_no_memory(w->err)
				     : w->out->write(w->out->arg, text.ptr ? text.ptr : "",
						     text.len, w->err);
	buf_release(&text);
	return status;
}

static ow_status write_result(struct writing *w, struct sql_script *script, struct table *from)
{
	if (strcmp(w->sink->name, "text") != 0)
		return write_pieces(w, script, from);
	return is_plan(from) ? write_plan(w, script, from) : write_tables(w, script, from);
}

/* Writes the separator between two results: an empty line between tables; several JSON documents
 * form one list. */
static ow_status write_between(const struct writing *w, const char *text)
{
	return w->out->write(w->out->arg, text, strlen(text), w->err);
}

static ow_status write_script(struct writing *w, struct sql_script *script)
{
	bool table = strcmp(w->sink->name, "text") == 0;
	bool list = strcmp(w->sink->name, "json") == 0 && sql_results(script) != 1;
	struct table *from;

	if (strcmp(w->sink->name, "arrow") == 0 && sql_results(script) > 1)
		return error_set(w->err, OW_E_USAGE,
				 "an Arrow stream holds the result of one query");

	for (size_t results = 0;; results++) {
		OW_TRY(sql_step(script, &from, w->err));
		if (!from)
			return list ? write_between(w, results ? "]\n" : "[]\n") : OW_OK;
		if (table && results)
			OW_TRY(write_between(w, "\n"));
		if (list)
			OW_TRY(write_between(w, results ? "," : "["));
		OW_TRY(write_result(w, script, from));
	}
}

ow_status ow_sql_write(ow_sql *s, const char *text, const char *sink,
		       const struct ow_write_options *options, ow_write_fn write, void *arg,
		       struct ow_error *err)
{
	struct api_writer to = { write, arg };
	struct out out = { api_write_bytes, &to };
	struct writing w = { .sql = s, .sink = sink_find(sink), .out = &out, .err = err };
	struct ow_write_options full;
	struct sql_script *script;
	ow_status status;

	error_clear(err);
	if (!w.sink || !(w.sink->accepts & SINK_RESULT))
		return error_set(err, OW_E_USAGE,
				 "results of SQL are written as text, json, csv, ndjson or arrow, "
				 "not as '%s'",
				 sink);
	ow_write_options_init(&full);
	SIZED_IN(&full, options);
	w.limit = full.limit ? full.limit : UINT32_MAX;
	w.options = (struct sink_options){ .width = full.width,
					   .colour = full.colour,
					   .title = full.title,
					   .full_numbers = true,
					   .all_columns = true };
	OW_TRY(sql_parse(s->sql, str_from(text), &script, err));
	status = write_script(&w, script);
	sql_script_free(script);
	return status;
}

ow_status ow_sql_write_parquet(ow_sql *s, const char *text, const char *path, struct ow_error *err)
{
	struct atomic_path to;
	struct sql *sql;
	ow_status status;

	error_clear(err);
	OW_TRY(atomic_path_find_regular(&to, path, "a Parquet file", err));
	/* a session of its own may write that file and no other */
	OW_TRY(open_session(s, to.temp, &sql, err));
	status = sql_copy_parquet(sql, str_from(text), to.temp, err);
	sql_close(sql);
	if (status == OW_OK)
		status = atomic_path_publish(&to, err);
	if (status != OW_OK)
		atomic_path_discard(&to);
	return status;
}

bool ow_relation_info(size_t index, struct ow_part_info *info)
{
	const struct table_source *relation = relation_at(index);

	if (!relation)
		return false;
	return api_part_info(info, relation->name, relation->doc,
			     relation->params ? "options" : "");
}

static const char *type_name(enum column_type type)
{
	static const char *const names[] = {
		[TYPE_BOOL] = "BOOLEAN",   [TYPE_INT32] = "INTEGER", [TYPE_INT] = "BIGINT",
		[TYPE_UINT64] = "UBIGINT", [TYPE_REAL] = "DOUBLE",   [TYPE_TEXT] = "VARCHAR",
	};

	return names[type];
}

static const char *unit_name(enum column_unit unit)
{
	static const char *const names[] = {
		[UNIT_NS] = "ns", [UNIT_BYTES] = "bytes", [UNIT_COUNT] = "count"
	};

	return unit < ARRAY_COUNT(names) && names[unit] ? names[unit] : "";
}

static ow_status find_relation(const char *name, const struct table_source **out,
			       struct ow_error *err)
{
	error_clear(err);
	*out = relation_find(str_from(name));
	return *out ? OW_OK
		    : error_set(err, OW_E_NOT_FOUND, "no table is called '%s'; .tables lists them",
				name);
}

static void take_columns(const struct table *t,
			 void (*take)(void *arg, const struct ow_relation_column *column),
			 void *arg)
{
	for (uint32_t i = 0; i < t->column_count; i++) {
		const struct table_column *c = &t->columns[i];

		take(arg, &(struct ow_relation_column){ sizeof(struct ow_relation_column), c->name,
							type_name(c->type), unit_name(c->unit),
							c->doc });
	}
}

ow_status ow_relation_columns(const char *name,
			      void (*take)(void *arg, const struct ow_relation_column *column),
			      void *arg, struct ow_error *err)
{
	const struct table_source *relation;
	struct table *t;
	struct mem mem;

	OW_TRY(find_relation(name, &relation, err));
	mem_init(&mem, 0);
	OW_TRY(relation_open(relation, NULL, 0, NULL, 0, &mem, &t, err));
	take_columns(t, take, arg);
	table_free(t);
	return OW_OK;
}

static void diff_columns_of_time(struct table *t)
{
	diff_columns(t, UNIT_NS);
}

ow_status ow_answer_columns(const char *command,
			    void (*take)(void *arg, const struct ow_relation_column *column),
			    void *arg, struct ow_error *err)
{
	static const struct {
		const char *command;
		void (*add)(struct table *t);
	} answers[] = {
		{ "path", path_columns },
		{ "what-if", path_columns },
		{ "diff", diff_columns_of_time },
		{ "ranks", ranks_columns },
		{ "hang", answer_columns },
		{ "jobs", jobs_columns },
		{ "baseline", diff_columns_of_time },
	};
	struct table *t;
	struct mem mem;
	size_t i = 0;

	error_clear(err);
	while (i < ARRAY_COUNT(answers) && strcmp(answers[i].command, command) != 0)
		i++;
	if (i == ARRAY_COUNT(answers))
		return error_set(err, OW_E_NOT_FOUND, "no columns are known for the command '%s'",
				 command);
	mem_init(&mem, 0);
	t = table_new(&mem, command, err);
	if (!t)
		return OW_E_NO_MEMORY;
	answers[i].add(t);
	take_columns(t, take, arg);
	table_free(t);
	return OW_OK;
}

ow_status ow_relation_options(const char *name,
			      void (*take)(void *arg, const struct ow_relation_column *option),
			      void *arg, struct ow_error *err)
{
	const struct table_source *relation;

	OW_TRY(find_relation(name, &relation, err));
	for (const struct table_param *p = relation->params; p && p->name; p++)
		take(arg, &(struct ow_relation_column){ sizeof(struct ow_relation_column), p->name,
							type_name(p->type), "", p->doc });
	return OW_OK;
}
