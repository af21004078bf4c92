/*
 * scan.c: provides the relations as DuckDB table functions, and a view for each: FROM event works as well as FROM
 * event(). Columns that a query does not name are not read. Several threads take rows in pieces of a vector's size;
 * texts are codes of a dictionary that all threads share. The functions run on DuckDB's threads: errors are set there,
 * never returned through it.
 */
#include "opwatch_config.h"

#if OPWATCH_HAVE_DUCKDB

#include "sql/sql_int.h"

static ow_status add_table(struct sql *sql, const struct table_source *relation,
			   const struct table_arg *args, size_t count, struct str key,
			   struct sql_table **out, struct ow_error *err)
{
	struct sql_table *table = ARENA_NEW(&sql->arena, struct sql_table);

	if (!table)
		return error_no_memory(err);
	table->sql = sql;
	table->relation = relation;
	table->args = arena_str(&sql->arena, key);
	if (!table->args.ptr)
		return error_no_memory(err);
	OW_TRY(relation_open(relation, sql->runs, sql->run_count, args, count, sql->mem, &table->t,
			     err));
	table->next = sql->tables;
	sql->tables = table;
	*out = table;
	return OW_OK;
}

static ow_status get_table(struct sql *sql, const struct table_source *relation,
			   const struct table_arg *args, size_t count, struct str key,
			   struct sql_table **out, struct ow_error *err)
{
	ow_status status = OW_OK;

	pthread_mutex_lock(&sql->lock);
	for (*out = sql->tables; *out; *out = (*out)->next)
		if ((*out)->relation == relation && str_eq((*out)->args, key))
			break;
	if (!*out)
		status = add_table(sql, relation, args, count, key, out, err);
	pthread_mutex_unlock(&sql->lock);
	return status;
}

static duckdb_type type_of(enum column_type type)
{
	switch (type) {
	case TYPE_BOOL:
		return DUCKDB_TYPE_BOOLEAN;
	case TYPE_INT32:
		return DUCKDB_TYPE_INTEGER;
	case TYPE_INT:
		return DUCKDB_TYPE_BIGINT;
	case TYPE_UINT64:
		return DUCKDB_TYPE_UBIGINT;
	case TYPE_REAL:
		return DUCKDB_TYPE_DOUBLE;
	default:
		return DUCKDB_TYPE_VARCHAR;
	}
}

#define ARGS_MAX 48

struct bound_args {
	struct table_arg list[ARGS_MAX];
	char *texts[ARGS_MAX]; /* argument texts, which DuckDB allocated */
	size_t count;
	struct buf key;
};

static void read_arg(const struct duckdb_lib *lib, const struct table_param *p, duckdb_value value,
		     struct bound_args *args)
{
	struct table_arg *arg = &args->list[args->count];

	*arg = (struct table_arg){ .param = p };
	if (p->type == TYPE_TEXT) {
		args->texts[args->count] = lib->get_varchar(value);
		arg->text = str_from(args->texts[args->count]);
	} else if (p->type == TYPE_BOOL) {
		arg->number = lib->get_bool(value);
	} else {
		arg->number = lib->get_int64(value);
	}
	buf_printf(&args->key, "%s=%" PRId64 ",%zu:", p->name, arg->number, arg->text.len);
	buf_add_str(&args->key, arg->text);
	args->count++;
}

static void read_args(const struct duckdb_lib *lib, const struct table_source *relation,
		      duckdb_bind_info info, struct bound_args *args)
{
	for (const struct table_param *p = relation->params; p && p->name; p++) {
		duckdb_value value = lib->bind_get_named_parameter(info, p->name);

		if (!value)
			continue;
		if (!lib->is_null_value(value) && args->count < ARGS_MAX)
			read_arg(lib, p, value, args);
		lib->destroy_value(&value);
	}
}

static void add_columns(const struct duckdb_lib *lib, const struct sql_table *table,
			duckdb_bind_info info)
{
	const struct table *t = table->t;

	for (uint32_t i = 0; i < t->column_count; i++) {
		duckdb_logical_type type = lib->create_logical_type(type_of(t->columns[i].type));

		lib->bind_add_result_column(info, t->columns[i].name, type);
		lib->destroy_logical_type(&type);
	}
	if (table->relation->is_table)
		lib->bind_set_cardinality(info, table_estimate(t), true);
}

static void bind(duckdb_bind_info info)
{
	const struct duckdb_lib *lib = duckdb_lib();
	const struct sql_function *function = lib->bind_get_extra_info(info);
	struct bound_args args = { .count = 0 };
	struct sql_table *table = NULL;
	struct ow_error err = { 0 };
	ow_status status;

	buf_init(&args.key, function->sql->mem);
	read_args(lib, function->relation, info, &args);
	status = args.key.failed ? error_no_memory(&err)
				 : get_table(function->sql, function->relation, args.list,
					     args.count, buf_str(&args.key), &table, &err);
	for (size_t i = 0; i < args.count; i++)
		if (args.texts[i])
			lib->free(args.texts[i]);
	buf_release(&args.key);
	if (status != OW_OK) {
		lib->bind_set_error(info, err.text);
		return;
	}
	add_columns(lib, table, info);
	lib->bind_set_bind_data(info, table, NULL);
}

/* State shared by the threads of one scan. */
struct scan {
	struct mem *mem;
	atomic_uint_fast64_t next; /* number of the next piece */
	uint64_t piece_count;
	/* number of each part's first piece; one more entry marks the end */
	uint64_t *first_pieces;
	uint32_t part_count;
};

static void scan_free(void *arg)
{
	struct scan *s = arg;

	mem_free(s->mem, s->first_pieces, (s->part_count + 1) * sizeof(*s->first_pieces));
	mem_free(s->mem, s, sizeof(*s));
}

static struct scan *scan_new(const struct table *t, uint64_t piece)
{
	struct scan *s = mem_zalloc(t->mem, sizeof(*s));
	uint64_t *first = mem_zalloc(t->mem, (t->part_count + 1) * sizeof(*first));

	if (!s || !first) {
		mem_free(t->mem, s, sizeof(*s));
		mem_free(t->mem, first, (t->part_count + 1) * sizeof(*first));
		return NULL;
	}
	s->mem = t->mem;
	s->first_pieces = first;
	s->part_count = t->part_count;
	for (uint32_t i = 0; i < t->part_count; i++)
		first[i + 1] = first[i] + (t->parts[i].rows + piece - 1) / piece;
	s->piece_count = first[t->part_count];
	return s;
}

static ow_status prepare(const struct duckdb_lib *lib, duckdb_init_info info, struct table *t,
			 struct ow_error *err)
{
	idx_t count = lib->init_get_column_count(info);

	OW_TRY(table_start(t, err));
	for (idx_t i = 0; i < count; i++) {
		idx_t column = lib->init_get_column_index(info, i);

		/* a column number beyond the columns asks only for the existence of rows */
		if (column < t->column_count)
			OW_TRY(table_need(t, (uint32_t)column, err));
	}
	return OW_OK;
}

static void init(duckdb_init_info info)
{
	const struct duckdb_lib *lib = duckdb_lib();
	const struct sql_table *table = lib->init_get_bind_data(info);
	struct ow_error err = { 0 };
	struct scan *s;

	if (prepare(lib, info, table->t, &err) != OW_OK) {
		lib->init_set_error(info, err.text);
		return;
	}
	s = scan_new(table->t, lib->vector_size());
	if (!s) {
		lib->init_set_error(info, "out of memory");
		return;
	}
	lib->init_set_init_data(info, s, scan_free);
	lib->init_set_max_threads(info, MIN(MAX(s->piece_count / 16, 1), 256));
}

/* State of one thread. */
struct reader {
	struct mem *mem;
	struct arena scratch;
	struct table_memo memo;
	uint64_t *valid;
	void *values; /* buffer for texts without a dictionary, which cannot be read in place */
	duckdb_selection_vector selection; /* receives dictionary codes */
	idx_t vector_size, column_count;
	idx_t columns[]; /* columns of the relation, in the order of the chunk */
};

static size_t reader_size(idx_t columns)
{
	return sizeof(struct reader) + columns * sizeof(idx_t);
}

static void reader_free(void *arg)
{
	struct reader *r = arg;

	arena_release(&r->scratch);
	if (r->selection)
		duckdb_lib()->destroy_selection_vector(r->selection);
	mem_free(r->mem, r->valid, (r->vector_size / 64 + 1) * sizeof(*r->valid));
	mem_free(r->mem, r->values, r->vector_size * sizeof(struct str));
	mem_free(r->mem, r, reader_size(r->column_count));
}

static void local_init(duckdb_init_info info)
{
	const struct duckdb_lib *lib = duckdb_lib();
	const struct sql_table *table = lib->init_get_bind_data(info);
	idx_t count = lib->init_get_column_count(info);
	struct reader *r = mem_zalloc(table->sql->mem, reader_size(count));

	if (!r) {
		lib->init_set_error(info, "out of memory");
		return;
	}
	r->mem = table->sql->mem;
	r->column_count = count;
	r->vector_size = lib->vector_size();
	arena_init(&r->scratch, r->mem);
	r->valid = mem_zalloc(r->mem, (r->vector_size / 64 + 1) * sizeof(*r->valid));
	r->values = mem_alloc(r->mem, r->vector_size * sizeof(struct str));
	r->selection = lib->create_selection_vector(r->vector_size);
	if (!r->valid || !r->values || !r->selection) {
		reader_free(r);
		lib->init_set_error(info, "out of memory");
		return;
	}
	for (idx_t i = 0; i < count; i++)
		r->columns[i] = lib->init_get_column_index(info, i);
	lib->init_set_init_data(info, r, reader_free);
}

/* Writes a text in DuckDB's form: up to twelve bytes are stored inside, longer texts are pointed to in our memory. */
static void put_string(duckdb_string_t *to, struct str text)
{
	memset(to, 0, sizeof(*to));
	if (text.len <= sizeof(to->value.inlined.inlined)) {
		to->value.inlined.length = (uint32_t)text.len;
		memcpy(to->value.inlined.inlined, text.ptr, text.len);
		return;
	}
	to->value.pointer.length = (uint32_t)text.len;
	memcpy(to->value.pointer.prefix, text.ptr, sizeof(to->value.pointer.prefix));
	to->value.pointer.ptr = (char *)(uintptr_t)text.ptr;
}

/* Uses a dictionary once, before threads share it: the first use changes it, and so does the first hashing of its
 * texts. */
static bool use_once(const struct duckdb_lib *lib, duckdb_logical_type type, duckdb_vector dict,
		     uint32_t size)
{
	duckdb_selection_vector selection = lib->create_selection_vector(1);
	duckdb_vector to = lib->create_vector(type, 1);
	bool good = selection && to;

	if (good) {
		lib->selection_vector_get_data_ptr(selection)[0] = 0;
		lib->dictionary(to, dict, size, selection, 1);
		lib->hash_dictionary(to);
	}
	if (to)
		lib->destroy_vector(&to);
	if (selection)
		lib->destroy_selection_vector(selection);
	return good;
}

/* DuckDB uses the id of dictionaries with less than 20,000 entries. Setting an id doubles the entries and copies the
 * texts. */
#define NAMED_MAX 10000

/* Performs everything that the first use of a dictionary would do. */
static bool set_up_dict(const struct duckdb_lib *lib, duckdb_logical_type type, uint32_t count,
			struct sql_dict *dict)
{
	if (!lib->dictionary)
		return true;
	if (count >= NAMED_MAX)
		return use_once(lib, type, dict->vector, count);
	lib->name_dictionary(dict->vector, count);
	lib->hash_dictionary(dict->vector);
	dict->named = true;
	return true;
}

static bool make_dict(const struct duckdb_lib *lib, const struct table_dict *from,
		      struct sql_dict *dict)
{
	duckdb_logical_type type = lib->create_logical_type(DUCKDB_TYPE_VARCHAR);
	duckdb_string_t *strings;
	bool good;

	dict->vector = lib->create_vector(type, MAX(from->count, 1));
	if (!dict->vector) {
		lib->destroy_logical_type(&type);
		return false;
	}
	strings = lib->vector_get_data(dict->vector);
	lib->vector_ensure_validity_writable(dict->vector);
	lib->vector_get_validity(dict->vector)[0] &= ~(uint64_t)1;
	put_string(&strings[0], (struct str){ "", 0 });
	for (uint32_t i = 1; i < from->count; i++)
		put_string(&strings[i],
			   from->texts[i].ptr ? from->texts[i] : (struct str){ "", 0 });
	good = set_up_dict(lib, type, MAX(from->count, 1), dict);
	lib->destroy_logical_type(&type);
	if (!good)
		lib->destroy_vector(&dict->vector);
	return good;
}

/* The session's dictionary of these texts; NULL if memory runs out. */
static const struct sql_dict *get_dict(struct sql *sql, const struct table_dict *from)
{
	struct sql_dict *dict;

	pthread_mutex_lock(&sql->lock);
	for (dict = sql->dicts; dict && dict->texts != from->texts; dict = dict->next)
		;
	if (!dict) {
		dict = ARENA_NEW(&sql->arena, struct sql_dict);
		if (dict && make_dict(sql->lib, from, dict)) {
			dict->texts = from->texts;
			dict->next = sql->dicts;
			sql->dicts = dict;
		} else {
			dict = NULL;
		}
	}
	pthread_mutex_unlock(&sql->lock);
	return dict;
}

struct piece {
	uint32_t part, n;
	uint64_t first;
};

static bool next_piece(struct scan *s, const struct table *t, uint64_t size, struct piece *piece)
{
	uint64_t number = atomic_fetch_add(&s->next, 1);
	uint64_t rows;

	if (number >= s->piece_count)
		return false;
	piece->part = 0;
	while (s->first_pieces[piece->part + 1] <= number)
		piece->part++;
	piece->first = (number - s->first_pieces[piece->part]) * size;
	rows = t->parts[piece->part].rows - piece->first;
	piece->n = (uint32_t)MIN(rows, size);
	return true;
}

/* Reads codes directly into the selection of the dictionary. A dictionary with an id is sliced, which copies the
 * codes, so the thread's own selection can be reused. */
static ow_status read_codes(const struct sql_table *table, struct reader *r,
			    const struct piece *piece, uint32_t column,
			    const struct table_dict *from, duckdb_vector to, struct ow_error *err)
{
	struct sql *sql = table->sql;
	const struct duckdb_lib *lib = sql->lib;
	const struct sql_dict *dict = get_dict(sql, from);
	duckdb_selection_vector selection = r->selection;
	struct table_vec vec = { .valid = r->valid, .scratch = &r->scratch, .memo = &r->memo };
	ow_status status;

	if (dict && !dict->named)
		selection = lib->create_selection_vector(piece->n);
	if (!dict || !selection)
		return error_no_memory(err);
	vec.values = lib->selection_vector_get_data_ptr(selection);
	status = table_read(table->t, piece->part, column, piece->first, piece->n, &vec, err);
	if (status == OW_OK && lib->dictionary && !dict->named) {
		lib->dictionary(to, dict->vector, from->count, selection, piece->n);
	} else if (status == OW_OK) {
		lib->vector_reference_vector(to, dict->vector);
		lib->slice_vector(to, selection, piece->n);
	}
	if (!dict->named)
		lib->destroy_selection_vector(selection);
	return status;
}

static void put_texts(const struct duckdb_lib *lib, const struct str *texts, uint32_t n,
		      duckdb_vector to)
{
	for (uint32_t i = 0; i < n; i++) {
		if (texts[i].ptr) {
			lib->vector_assign_string_element_len(to, i, texts[i].ptr, texts[i].len);
			continue;
		}
		lib->vector_ensure_validity_writable(to);
		lib->vector_get_validity(to)[i / 64] &= ~((uint64_t)1 << i % 64);
	}
}

static ow_status read_column(const struct sql_table *table, struct reader *r,
			     const struct piece *piece, uint32_t column, duckdb_vector to,
			     struct ow_error *err)
{
	const struct duckdb_lib *lib = table->sql->lib;
	const struct table_column *c = &table->t->columns[column];
	const struct table_dict *dict = table_dict(table->t, piece->part, column);
	struct table_vec vec = {
		.values = r->values, .valid = r->valid, .scratch = &r->scratch, .memo = &r->memo
	};

	if (dict)
		return read_codes(table, r, piece, column, dict, to, err);
	if (c->type != TYPE_TEXT)
		vec.values = lib->vector_get_data(to);
	OW_TRY(table_read(table->t, piece->part, column, piece->first, piece->n, &vec, err));
	if (c->type == TYPE_TEXT) {
		put_texts(lib, vec.values, piece->n, to);
		return OW_OK;
	}
	if (vec.has_nulls) {
		lib->vector_ensure_validity_writable(to);
		memcpy(lib->vector_get_validity(to), r->valid,
		       (piece->n + 63) / 64 * sizeof(uint64_t));
	}
	return OW_OK;
}

static void scan(duckdb_function_info info, duckdb_data_chunk chunk)
{
	const struct duckdb_lib *lib = duckdb_lib();
	const struct sql_table *table = lib->function_get_bind_data(info);
	struct reader *r = lib->function_get_local_init_data(info);
	struct ow_error err = { 0 };
	struct piece piece;

	lib->data_chunk_set_size(chunk, 0);
	if (sql_is_cancelled(table->sql)) {
		lib->function_set_error(info, "cancelled");
		return;
	}
	if (!next_piece(lib->function_get_init_data(info), table->t, r->vector_size, &piece))
		return;
	for (idx_t i = 0; i < r->column_count; i++) {
		if (r->columns[i] >= table->t->column_count)
			continue; /* only the number of rows is wanted */
		if (read_column(table, r, &piece, (uint32_t)r->columns[i],
				lib->data_chunk_get_vector(chunk, i), &err) != OW_OK) {
			lib->function_set_error(info, err.text);
			return;
		}
	}
	r->memo = (struct table_memo){ 0 };
	if (r->scratch.blocks)
		arena_clear(&r->scratch);
	lib->data_chunk_set_size(chunk, piece.n);
}

static ow_status register_table(struct sql *sql, struct sql_function *function,
				struct ow_error *err)
{
	const struct duckdb_lib *lib = sql->lib;
	const struct table_source *relation = function->relation;
	duckdb_table_function f = lib->create_table_function();
	bool ok;

	if (!f)
		return error_no_memory(err);
	lib->table_function_set_name(f, relation->name);
	lib->table_function_set_extra_info(f, function, NULL);
	lib->table_function_set_bind(f, bind);
	lib->table_function_set_init(f, init);
	lib->table_function_set_local_init(f, local_init);
	lib->table_function_set_function(f, scan);
	lib->table_function_supports_projection_pushdown(f, true);
	for (const struct table_param *p = relation->params; p && p->name; p++) {
		duckdb_logical_type type = lib->create_logical_type(type_of(p->type));

		lib->table_function_add_named_parameter(f, p->name, type);
		lib->destroy_logical_type(&type);
	}
	ok = lib->register_table_function(sql->connection, f) == DuckDBSuccess;
	lib->destroy_table_function(&f);
	return ok ? OW_OK
		  : error_set(err, OW_E_INTERNAL, "DuckDB does not accept the table %s",
			      relation->name);
}

ow_status sql_register_tables(struct sql *sql, struct ow_error *err)
{
	ow_status status = OW_OK;
	struct buf views;
	size_t count = 0;

	while (relation_at(count))
		count++;
	sql->functions = ARENA_ARRAY(&sql->arena, struct sql_function, count);
	if (!sql->functions)
		return error_no_memory(err);
	buf_init(&views, sql->mem);
	for (size_t i = 0; i < count && status == OW_OK; i++) {
		sql->functions[i] = (struct sql_function){ sql, relation_at(i) };
		status = register_table(sql, &sql->functions[i], err);
		buf_printf(&views, "CREATE VIEW %s AS FROM %s();", relation_at(i)->name,
			   relation_at(i)->name);
	}
	if (status == OW_OK)
		status = buf_cstr(&views) ? sql_run(sql, views.ptr, err) : error_no_memory(err);
	buf_release(&views);
	return status;
}

#endif
