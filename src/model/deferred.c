/*
 * deferred.c: work that importers put off until somebody asks for what it gives, and rows that are made then. Views and
 * relations say which tables they read (model_require_rows) and know nothing of this. Stacks, which have a table and
 * a column each, are asked for in model.c.
 */
#include "model/backing.h"
#include "model/builder.h"

/* Appends to a list of what is put off. */
static ow_status defer(struct builder *b, struct deferred **list, const struct deferred *work)
{
	struct deferred *d = ARENA_NEW(&b->m->arena, struct deferred);

	if (!d) {
		if (work->release)
			work->release(work->state);
		return builder_no_memory(b);
	}
	*d = *work;
	d->next = NULL;
	while (*list)
		list = &(*list)->next;
	*list = d;
	return OW_OK;
}

ow_status builder_defer_stacks(struct builder *b, const struct deferred *work)
{
	return defer(b, &b->m->deferred_stacks, work);
}

ow_status builder_defer_rows(struct builder *b, uint64_t tables, const struct deferred *work)
{
	OW_TRY(defer(b, &b->m->deferred_rows, work));
	atomic_fetch_or(&b->m->deferred_tables, tables);
	return OW_OK;
}

void deferred_release(struct deferred *d)
{
	for (; d; d = d->next)
		if (d->release)
			d->release(d->state);
}

static uint32_t *count_of(struct model *m, int table)
{
	return (uint32_t *)(void *)((char *)m + model_tables[table].offset);
}

/* All of it or nothing. */
static ow_status run_all(struct model *m, struct error *err)
{
	uint64_t tables = atomic_load(&m->deferred_tables);
	uint32_t before[TABLE_COUNT];
	ow_status status = OW_OK;

	for (int table = 0; table < TABLE_COUNT; table++)
		before[table] = *count_of(m, table);
	for (struct deferred *d = m->deferred_rows; d && status == OW_OK; d = d->next)
		status = d->run(m, d->state, err);
	for (int table = 0; table < TABLE_COUNT && status != OW_OK; table++)
		if (tables >> table & 1)
			*count_of(m, table) = before[table];
	return status;
}

static ow_status make_rows(struct model *m, struct error *err)
{
	ow_status status = OW_OK;

	pthread_mutex_lock(&m->lock);
	if (atomic_load(&m->deferred_tables)) /* nobody was faster */
		status = run_all(m, err);
	if (status == OW_OK) {
		deferred_release(m->deferred_rows);
		m->deferred_rows = NULL;
		atomic_store(&m->deferred_tables, 0);
	}
	pthread_mutex_unlock(&m->lock);
	return status;
}

ow_status model_require_rows(struct model *m, uint64_t tables, struct error *err)
{
	if (OW_UNLIKELY(tables & atomic_load(&m->deferred_tables)))
		OW_TRY(make_rows(m, err));
	return backing_verify(m, tables, err);
}
