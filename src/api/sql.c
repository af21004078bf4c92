/*
 * sql.c: bodies of the ow_sql functions: results of queries as tables, held whole or handed to a sink piece by piece.
 */
#include "api/api_int.h"
#include "relation/relation.h"
#include "sql/sql.h"

#include <errno.h>
#include <unistd.h>

#define TEXT_ROWS 10000 /* that are aligned with each other */

struct ow_sql {
	struct mem mem;
	struct sql *sql;
	struct relation_run *runs;
	size_t run_count;
	ow_profile *first;
	struct ow_sql_options options;
};

void ow_sql_options_init(struct ow_sql_options *options)
{
	*options = (struct ow_sql_options){ .size = sizeof(*options) };
}

static ow_status open_session(ow_sql *s, const char *may_write, struct sql **sql, struct error *err)
{
	const struct ow_sql_options *o = &s->options;
	struct sql_options options = {
		.memory_limit = o->memory_limit,
		.temp_dir = o->temp_dir,
		.threads = o->threads,
		.allow_io = o->allow_io,
		.may_write = may_write,
		.progress = o->progress,
		.progress_arg = o->progress_arg,
	};

	return sql_open(s->runs, s->run_count, &options, &s->mem, sql, err);
}

ow_status ow_sql_open(const struct ow_run *runs, size_t count, const struct ow_sql_options *options,
		      ow_sql **out, struct error *err)
{
	ow_sql *s;
	ow_status status;

	error_clear(err);
	*out = NULL;
	if (!count)
		return error_set(err, OW_E_USAGE, "SQL needs a profile to ask about");
	for (size_t i = 0; i < count; i++)
		if (!runs[i].profile->frozen)
			return error_set(err, OW_E_USAGE, "a profile is still being loaded");
	s = calloc(1, sizeof(*s));
	if (!s)
		return error_no_memory(err);
	mem_init(&s->mem, 0);
	ow_sql_options_init(&s->options);
	if (options)
		memcpy(&s->options, options, MIN(options->size, sizeof(s->options)));
	s->first = runs[0].profile;
	s->run_count = count;
	s->runs = mem_zalloc(&s->mem, count * sizeof(*s->runs));
	for (size_t i = 0; s->runs && i < count; i++)
		s->runs[i] =
			(struct relation_run){ runs[i].profile->m, runs[i].name, (uint32_t)i + 1 };
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

/* ---- results as tables ---- */

static enum result_type type_of(enum sql_type type)
{
	static const enum result_type types[] = {
		[SQL_BOOL] = RESULT_BOOL,     [SQL_INT] = RESULT_INT,	[SQL_REAL] = RESULT_REAL,
		[SQL_NUMBER] = RESULT_NUMBER, [SQL_TEXT] = RESULT_TEXT,
	};

	return types[type];
}

static ow_status add_columns(struct result *r, const struct sql_result *from, struct error *err)
{
	if (from->column_count > RESULT_COLUMNS_MAX)
		return error_set(err, OW_E_LIMIT, "more than %d columns: name those you need",
				 RESULT_COLUMNS_MAX);
	for (uint32_t i = 0; i < from->column_count; i++) {
		char *name = arena_cstr(&r->arena, str_from(from->columns[i].name));

		if (!name)
			return error_no_memory(err);
		result_column(r, name, name, type_of(from->columns[i].type), RESULT_PLAIN);
	}
	return OW_OK;
}

static void copy_cell(struct result *r, uint32_t row, uint32_t column, const struct sql_column *c,
		      uint32_t i)
{
	if (!c->known[i])
		result_set_unknown(r, row, column);
	else if (c->type == SQL_TEXT || c->type == SQL_NUMBER)
		result_set_text(r, row, column, c->texts[i]);
	else if (c->type == SQL_REAL)
		result_set_real(r, row, column, c->reals[i]);
	else
		result_set_int(r, row, column, c->ints[i]);
}

static ow_status copy_rows(struct result *r, const struct sql_result *from, uint32_t rows,
			   struct error *err)
{
	if (r->row_count > UINT32_MAX - 1 - rows)
		return error_set(err, OW_E_LIMIT,
				 "more than 2^32 rows do not fit into one result; add a LIMIT");
	for (uint32_t i = 0; i < rows; i++) {
		uint32_t row = result_row(r, 0);

		for (uint32_t c = 0; row != UINT32_MAX && c < from->column_count; c++)
			copy_cell(r, row, c, &from->columns[c], i);
	}
	return r->status == OW_OK ? OW_OK : error_no_memory(err);
}

ow_status api_hold_rows(struct sql_script *script, const struct sql_result *from, struct result *r,
			struct error *err)
{
	uint32_t rows;

	OW_TRY(add_columns(r, from, err));
	do {
		OW_TRY(sql_fetch(script, &rows, err));
		OW_TRY(copy_rows(r, from, rows, err));
	} while (rows);
	result_narrow(r);
	return OW_OK;
}

static ow_status query(ow_sql *s, struct sql_script *script, struct result **out, struct error *err)
{
	const struct sql_result *from;

	for (;;) {
		OW_TRY(sql_step(script, &from, err));
		if (!from)
			return OW_OK;
		if (!from->has_rows)
			continue;
		result_free(*out);
		*out = result_new(&s->first->mem, "sql", err);
		if (!*out)
			return OW_E_NO_MEMORY;
		OW_TRY(api_hold_rows(script, from, *out, err));
	}
}

ow_status ow_sql_query(ow_sql *s, const char *text, ow_result **out, struct error *err)
{
	struct sql_script *script;
	struct result *r = NULL;
	ow_status status;

	error_clear(err);
	*out = NULL;
	OW_TRY(sql_parse(s->sql, str_from(text), &script, err));
	status = query(s, script, &r, err);
	sql_script_free(script);
	if (status == OW_OK && !r) {
		r = result_new(&s->first->mem, "sql", err);
		status = r ? OW_OK : OW_E_NO_MEMORY;
	}
	if (status != OW_OK) {
		result_free(r);
		return status;
	}
	return api_wrap_result(s->first, r, out, err);
}

/* ---- results through a sink ---- */

struct writing {
	ow_sql *sql;
	const struct sink *sink;
	struct sink_options options;
	uint32_t limit; /* rows of a statement */
	const struct out *out;
	struct error *err;
};

/* A piece as it lies in the script's columns. */
static ow_status write_piece(struct writing *w, const struct sql_result *from, uint32_t rows)
{
	struct result *r = result_new(&w->sql->mem, "sql", w->err);
	ow_status status;

	if (!r)
		return OW_E_NO_MEMORY;
	status = add_columns(r, from, w->err);
	for (uint32_t i = 0; i < r->column_count; i++) {
		r->columns[i].ints = from->columns[i].ints;
		r->columns[i].known = from->columns[i].known;
	}
	r->row_count = rows;
	if (status == OW_OK)
		status = w->sink->write(r, &w->options, w->out, w->err);
	for (uint32_t i = 0; i < r->column_count; i++) {
		r->columns[i].ints = NULL; /* not its own */
		r->columns[i].known = NULL;
	}
	result_free(r);
	return status;
}

/* The next rows of those that are wanted; none at the end. */
static ow_status fetch(struct writing *w, struct sql_script *script, uint32_t *left, uint32_t *rows)
{
	*rows = 0;
	if (!*left)
		return OW_OK;
	OW_TRY(sql_fetch(script, rows, w->err));
	*rows = MIN(*rows, *left);
	*left -= *rows;
	return OW_OK;
}

static ow_status write_pieces(struct writing *w, struct sql_script *script,
			      const struct sql_result *from)
{
	uint32_t rows, left = w->limit;

	w->options.continued = false;
	w->options.rows_before = 0;
	do {
		OW_TRY(fetch(w, script, &left, &rows));
		w->options.continues = rows != 0;
		OW_TRY(write_piece(w, from, rows));
		w->options.continued = true;
		w->options.rows_before += rows;
	} while (rows);
	return OW_OK;
}

/* Tables for people are aligned, so rows are held; beyond many of them a new table begins. */
static ow_status write_tables(struct writing *w, struct sql_script *script,
			      const struct sql_result *from)
{
	ow_status status = OW_OK;
	uint32_t rows = 1, left = w->limit;
	bool any = false;

	while (rows && status == OW_OK) {
		struct result *r = result_new(&w->sql->mem, "sql", w->err);

		if (!r)
			return OW_E_NO_MEMORY;
		status = add_columns(r, from, w->err);
		while (status == OW_OK && rows && r->row_count < TEXT_ROWS) {
			status = fetch(w, script, &left, &rows);
			if (status == OW_OK)
				status = copy_rows(r, from, rows, w->err);
		}
		if (status == OW_OK && (r->row_count || !any))
			status = w->sink->write(r, &w->options, w->out, w->err);
		any = true;
		result_free(r);
	}
	return status;
}

struct target {
	ow_write_fn write;
	void *arg;
};

static ow_status write_bytes(void *arg, const void *bytes, size_t len, struct error *err)
{
	const struct target *to = arg;

	if (to->write(to->arg, bytes, len))
		return OW_OK;
	return error_set(err, OW_E_INTERRUPTED, "the output was closed");
}

static ow_status write_script(struct writing *w, struct sql_script *script)
{
	bool table = strcmp(w->sink->name, "text") == 0;
	const struct sql_result *from;
	size_t results = 0;

	for (;;) {
		OW_TRY(sql_step(script, &from, w->err));
		if (!from)
			return OW_OK;
		if (!from->has_rows)
			continue;
		if (table && results++)
			OW_TRY(w->out->write(w->out->arg, "\n", 1, w->err));
		OW_TRY(table ? write_tables(w, script, from) : write_pieces(w, script, from));
	}
}

ow_status ow_sql_write(ow_sql *s, const char *text, const char *sink,
		       const struct ow_write_options *options, ow_write_fn write, void *arg,
		       struct error *err)
{
	struct target to = { write, arg };
	struct out out = { write_bytes, &to };
	struct writing w = { .sql = s, .sink = sink_find(sink), .out = &out, .err = err };
	struct ow_write_options full;
	struct sql_script *script;
	ow_status status;

	error_clear(err);
	if (!w.sink || !(w.sink->accepts & SINK_RESULT))
		return error_set(err, OW_E_USAGE,
				 "results of SQL are written as text, json or csv, not as '%s'",
				 sink);
	ow_write_options_init(&full);
	if (options)
		memcpy(&full, options, MIN(options->size, sizeof(full)));
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

/* ---- Parquet ---- */

ow_status ow_sql_write_parquet(ow_sql *s, const char *text, const char *path, struct error *err)
{
	struct sql *sql;
	ow_status status;
	char name[4096];
	int len;

	error_clear(err);
	len = snprintf(name, sizeof(name), "%s.%ld.tmp", path, (long)getpid());
	if (len < 0 || (size_t)len >= sizeof(name))
		return error_set(err, OW_E_USAGE, "the name of the file is too long");
	/* A session of its own, which may write that file and nothing else. */
	OW_TRY(open_session(s, name, &sql, err));
	status = sql_copy_parquet(sql, str_from(text), name, err);
	sql_close(sql);
	if (status == OW_OK && rename(name, path) != 0)
		status = error_errno(err, errno, "%s", path);
	if (status != OW_OK)
		unlink(name);
	return status;
}

/* ---- what there is ---- */

bool ow_relation_info(size_t index, struct ow_part_info *info)
{
	const struct relation *relation = relation_at(index);

	if (!relation)
		return false;
	*info = (struct ow_part_info){ relation->name, relation->doc,
				       relation->params ? "options" : "" };
	return true;
}

static const char *type_name(enum relation_type type)
{
	static const char *const names[] = {
		[RELATION_BOOL] = "BOOLEAN", [RELATION_INT32] = "INTEGER",
		[RELATION_INT64] = "BIGINT", [RELATION_UINT64] = "UBIGINT",
		[RELATION_REAL] = "DOUBLE",  [RELATION_TEXT] = "VARCHAR",
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

static ow_status find_relation(const char *name, const struct relation **out, struct error *err)
{
	error_clear(err);
	*out = relation_find(str_from(name));
	return *out ? OW_OK
		    : error_set(err, OW_E_NOT_FOUND, "no table is called '%s'; .tables lists them",
				name);
}

ow_status ow_relation_columns(const char *name,
			      void (*take)(void *arg, const struct ow_relation_column *column),
			      void *arg, struct error *err)
{
	const struct relation *relation;
	struct relation_table *t;
	struct mem mem;

	OW_TRY(find_relation(name, &relation, err));
	mem_init(&mem, 0);
	OW_TRY(relation_open(relation, NULL, 0, NULL, 0, &mem, &t, err));
	for (uint32_t i = 0; i < t->column_count; i++) {
		const struct relation_column *c = &t->columns[i];

		take(arg, &(struct ow_relation_column){ c->name, type_name(c->type),
							unit_name(c->unit), c->doc });
	}
	relation_close(t);
	return OW_OK;
}

ow_status ow_relation_options(const char *name,
			      void (*take)(void *arg, const struct ow_relation_column *option),
			      void *arg, struct error *err)
{
	const struct relation *relation;

	OW_TRY(find_relation(name, &relation, err));
	for (const struct relation_param *p = relation->params; p && p->name; p++)
		take(arg, &(struct ow_relation_column){ p->name, type_name(p->type), "", p->doc });
	return OW_OK;
}
