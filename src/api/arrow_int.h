/*
 * arrow_int.h: what arrow.c (arrays, streams) and arrow_schema.c (their description) share: the life of
 * what is handed out.
 *
 * A consumer may move the children of a struct apart and release them in any order and from any thread, so
 * every part owns its memory, and all of them hold one `struct export`; the last one out tells the owner.
 */
#ifndef API_ARROW_INT_H
#define API_ARROW_INT_H

#include "api/api_int.h"

struct export
{
	atomic_size_t refs;
	ow_result *result;
	struct mem *mem; /* the profile's */
	void (*release)(void *owner);
	void *owner;
};

ow_status export_new(ow_result *result, const struct ow_arrow_options *options, struct export **out,
		     struct error *err);
void export_drop(struct export *e);
/* Drops without telling the owner: the call failed. */
void export_abandon(struct export *e);

/* A block of an export: zeroed, `size` bytes behind its head; holds the export. */
struct export_block {
	struct export *e;
	size_t size;
};
void *export_block_new(struct export *e, size_t size);
void export_block_free(void *block);

/* Texts of a column beyond 2 GB have 64-bit offsets. */
bool export_is_large(const struct result_column *column, uint32_t rows);

bool arrow_schema_make(struct export *e, struct ArrowSchema *schema);
bool arrow_array_make(struct export *e, struct ArrowArray *array);

#endif
