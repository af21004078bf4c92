/* arrow_schema.c: the description of a result's columns for Arrow's C data interface; see arrow_int.h. */
#include "api/arrow_int.h"

/* ---- blocks ---- */

ow_status export_new(ow_result *result, const struct ow_arrow_options *options, struct export **out,
		     struct error *err)
{
	struct mem *mem = result->r->mem;
	struct export *e = mem_zalloc(mem, sizeof(*e));

	if (!e)
		return error_no_memory(err);
	*e = (struct export){ .refs = 1,
			      .result = result,
			      .mem = mem,
			      .release = options->release,
			      .owner = options->owner };
	*out = e;
	return OW_OK;
}

void export_drop(struct export *e)
{
	void (*release)(void *owner) = e->release;
	void *owner = e->owner;

	if (atomic_fetch_sub(&e->refs, 1) != 1)
		return;
	mem_free(e->mem, e, sizeof(*e));
	if (release)
		release(owner); /* the profile, and with it the memory's account, may end here */
}

void export_abandon(struct export *e)
{
	e->release = NULL;
	export_drop(e);
}

void *export_block_new(struct export *e, size_t size)
{
	struct export_block *block = mem_zalloc(e->mem, sizeof(*block) + size);

	if (!block)
		return NULL;
	atomic_fetch_add(&e->refs, 1);
	*block = (struct export_block){ e, sizeof(*block) + size };
	return block + 1;
}

void export_block_free(void *ptr)
{
	struct export_block *block = (struct export_block *)ptr - 1;
	struct export *e = block->e;

	mem_free(e->mem, block, block->size);
	export_drop(e);
}

/* ---- schemas ---- */

/* A schema owns a block: the structs of its children, or its texts. */
static void release_schema(struct ArrowSchema *schema)
{
	for (int64_t i = 0; i < schema->n_children; i++)
		if (schema->children[i]->release)
			schema->children[i]->release(schema->children[i]);
	schema->release = NULL;
	export_block_free(schema->private_data);
}

static const char *format_of(const struct export *e, const struct result_column *column)
{
	switch (column->type) {
	case RESULT_REAL:
	case RESULT_NUMBER:
		return "g";
	case RESULT_BOOL:
		return "b";
	case RESULT_TEXT:
		return export_is_large(column, e->result->r->row_count) ? "U" : "u";
	default:
		return "l";
	}
}

static const char *unit_of(const struct result_column *column)
{
	static const char *const units[] = { "", "ns", "us", "bytes", "count", "percent" };

	return units[column->unit];
}

static char *put_text(char *to, const char *text)
{
	int32_t len = (int32_t)strlen(text);

	memcpy(to, &len, sizeof(len));
	memcpy(to + sizeof(len), text, (size_t)len);
	return to + sizeof(len) + len;
}

/* The specification's form: a count, then keys and values with their lengths, native byte order. */
static void put_metadata(char *to, const struct result_column *column)
{
	int32_t pairs = 2;

	memcpy(to, &pairs, sizeof(pairs));
	to = put_text(to + sizeof(pairs), "opwatch.title");
	to = put_text(to, column->title);
	to = put_text(to, "opwatch.unit");
	put_text(to, unit_of(column));
}

#define METADATA_FRAME 64 /* more than the keys and lengths take */

static bool make_column(struct export *e, const struct result_column *column,
			struct ArrowSchema *schema)
{
	size_t name = strlen(column->name) + 1;
	size_t size = name + METADATA_FRAME + strlen(column->title) + strlen(unit_of(column));
	char *texts = export_block_new(e, size);

	if (!texts)
		return false;
	memcpy(texts, column->name, name);
	put_metadata(texts + name, column);
	*schema = (struct ArrowSchema){ .format = format_of(e, column),
					.name = texts,
					.metadata = texts + name,
					.flags = column->known ? ARROW_FLAG_NULLABLE : 0,
					.release = release_schema,
					.private_data = texts };
	return true;
}

bool arrow_schema_make(struct export *e, struct ArrowSchema *schema)
{
	const struct result *r = e->result->r;
	size_t each = sizeof(struct ArrowSchema *) + sizeof(struct ArrowSchema);
	struct ArrowSchema **children = export_block_new(e, r->column_count * each);
	struct ArrowSchema *structs;

	if (!children)
		return false;
	structs = (struct ArrowSchema *)(children + r->column_count);
	*schema = (struct ArrowSchema){ .format = "+s",
					.name = "",
					.children = children,
					.release = release_schema,
					.private_data = children };
	for (uint32_t i = 0; i < r->column_count; i++) {
		if (!make_column(e, &r->columns[i], &structs[i])) {
			release_schema(schema);
			return false;
		}
		children[i] = &structs[i];
		schema->n_children = i + 1;
	}
	return true;
}
