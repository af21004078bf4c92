/*
 * relation.c: the list of relations, and opening a relation as a table. tables/relation_<name>.c describes the columns
 * of each, mostly with columns.c; table/table.c reads the rows.
 */
#include "relation/columns.h"

#include <strings.h>

#define RELATION(name) extern const struct table_source relation_##name;
#include "relation/relations.def"
#undef RELATION

static const struct table_source *const relations[] = {
#define RELATION(name) &relation_##name,
#include "relation/relations.def"
#undef RELATION
};

const struct table_source *relation_at(size_t index)
{
	if (index < ARRAY_COUNT(relations))
		return relations[index];
	return view_relation_at(index - ARRAY_COUNT(relations));
}

static bool same_name(struct str a, const char *b)
{
	return strlen(b) == a.len && strncasecmp(a.ptr, b, a.len) == 0;
}

const struct table_source *relation_find(struct str name)
{
	const struct table_source *relation;

	for (size_t i = 0; (relation = relation_at(i)); i++)
		if (same_name(name, relation->name))
			return relation;
	return NULL;
}

static ow_status fill_run(const struct table_part *p, const struct table_column *c, uint64_t first,
			  uint32_t n, struct table_vec *out, struct ow_error *err)
{
	uint32_t *codes = out->values;

	(void)p;
	(void)c;
	(void)first;
	(void)err;
	for (uint32_t i = 0; i < n; i++)
		codes[i] = 1;
	return OW_OK;
}

static ow_status describe(struct table *t, struct ow_error *err)
{
	OW_TRY(columns_add(t,
			   &(struct table_column){ .name = "run",
						   .doc = "name of the run",
						   .type = TYPE_TEXT,
						   .fill = fill_run,
						   .dict = DICT_RUN },
			   err));
	if (t->source->is_table)
		OW_TRY(columns_of_table(t, t->source->table, err));
	return t->source->describe ? t->source->describe(t, err) : OW_OK;
}

ow_status relation_open(const struct table_source *relation, const struct table_run *runs,
			size_t run_count, const struct table_arg *args, size_t arg_count,
			struct mem *mem, struct table **table, struct ow_error *err)
{
	ow_status status;

	OW_TRY(table_open(relation, runs, run_count, args, arg_count, mem, table, err));
	status = describe(*table, err);
	if (status != OW_OK) {
		table_free(*table);
		*table = NULL;
	}
	return status;
}
