/*
 * backing.c: creates, frees, verifies and thaws the file behind a model. The importer of .opw files makes the backing;
 * the model calls backing_verify before a table is first read. It does not know the file format: checksums are verified
 * through the importer's callback. Nothing is written to the file.
 */
#include "model/backing.h"

struct backing *backing_new(struct mem *mem, struct ow_error *err)
{
	struct backing *backing = mem_zalloc(mem, sizeof(*backing));

	if (!backing) {
		error_no_memory(err);
		return NULL;
	}
	backing->file = (struct input){ .mem = mem, .fd = -1 };
	backing->map.slot = -1;
	pthread_mutex_init(&backing->lock, NULL);
	return backing;
}

void backing_free(struct backing *backing, struct mem *mem)
{
	if (!backing)
		return;
	if (backing->release)
		backing->release(backing->state);
	mapping_close(&backing->map);
	input_close(&backing->file);
	pthread_mutex_destroy(&backing->lock);
	mem_free(mem, backing, sizeof(*backing));
}

static ow_status verify_table(struct model *m, int table, struct ow_error *err)
{
	struct backing *backing = m->backing;
	ow_status status = OW_OK;

	if (backing->verify)
		status = backing->verify(backing->state, table, err);
	if (status == OW_OK)
		status = model_check_table(m, (enum table_id)table, err);
	if (status == OW_OK)
		atomic_fetch_or(&backing->verified, (uint64_t)1 << table);
	return status;
}

ow_status backing_verify(struct model *m, uint64_t tables, struct ow_error *err)
{
	struct backing *backing = m->backing;
	ow_status status = OW_OK;
	struct guard guard;

	if (!backing || !(tables & TABLES_ALL & ~atomic_load(&backing->verified)))
		return OW_OK;
	guard_enter(&guard);
	pthread_mutex_lock(&backing->lock);
	tables &= TABLES_ALL & ~atomic_load(&backing->verified);
	for (int table = 0; table < TABLE_COUNT && status == OW_OK; table++)
		if (tables >> table & 1)
			status = verify_table(m, table, err);
	pthread_mutex_unlock(&backing->lock);
	guard_leave(&guard);
	return mapping_lost(&backing->map) ? model_lost(m, err) : status;
}

ow_status model_verify_rest(struct model *m, struct ow_error *err)
{
	struct backing *backing = m->backing;

	if (!backing || !backing->verify)
		return OW_OK;
	return backing->verify(backing->state, TABLE_COUNT, err);
}

ow_status model_lost(const struct model *m, struct ow_error *err)
{
	return error_set(err, OW_E_IO, "%s: the file became shorter while it was open",
			 m->backing->file.name);
}

ow_status model_thaw(struct model *m, struct ow_error *err)
{
	if (!m->backing)
		return OW_OK;
	OW_TRY(backing_verify(m, TABLES_ALL, err));
	m->backing->frozen = false;
	return model_make_lookups(m, err);
}

#define SWAP(member)                                                                               \
	do {                                                                                       \
		__typeof__(a->member) swap_ = a->member;                                           \
		a->member = b->member;                                                             \
		b->member = swap_;                                                                 \
	} while (0)

void model_swap(struct model *a, struct model *b)
{
	bool no_lookups = atomic_load(&a->no_lookups);

	OW_ASSERT(a->mem == b->mem);
#define SWAP_TABLE(table, doc) SWAP(table);
	SCHEMA_TABLES(SWAP_TABLE)
#undef SWAP_TABLE
	SWAP(strings);
	SWAP(time_unit_ns);
	SWAP(has_code);
	SWAP(missing_streams);
	SWAP(damaged);
	SWAP(op_by_name);
	SWAP(shape_map);
	SWAP(strset_map);
	SWAP(frame_map);
	SWAP(stack_map);
	SWAP(stacks_indexed);
	SWAP(track_map);
	SWAP(device_map);
	SWAP(step_map);
	SWAP(metric_map);
	SWAP(inputs);
	SWAP(input_cap);
	SWAP(listings);
	SWAP(listing_cap);
	SWAP(args_readers);
	SWAP(args_reader_cap);
	SWAP(libraries);
	SWAP(library_count);
	SWAP(library_cap);
	SWAP(backing);
	atomic_store(&a->no_lookups, atomic_load(&b->no_lookups));
	atomic_store(&b->no_lookups, no_lookups);
	SWAP(deferred.part[DEFERRED_lookups]);
}
