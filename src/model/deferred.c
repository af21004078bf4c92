/*
 * deferred.c: the parts that a frozen model computes on first use: SCHEMA_DEFERRED in schema.def. Each part has a
 * function model_require_…, which views, relations and sinks call before they read; the part is computed once, behind
 * the lock of the model. Importers supply the work for the parts rows and stacks; the other parts are computed by the
 * file that knows how: nest.c, name_order.c, intern.c.
 */
#include "base/guard.h"
#include "model/backing.h"
#include "model/builder.h"

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
	return defer(b, &b->m->deferred.stacks, work);
}

ow_status builder_defer_rows(struct builder *b, uint64_t tables, const struct deferred *work)
{
	OW_TRY(defer(b, &b->m->deferred.rows, work));
	b->m->deferred.part[DEFERRED_rows].made = false;
	atomic_fetch_or(&b->m->deferred.tables, tables);
	return OW_OK;
}

static void release_work(struct deferred **list)
{
	for (const struct deferred *d = *list; d; d = d->next)
		if (d->release)
			d->release(d->state);
	*list = NULL;
}

static uint32_t *count_of(struct model *m, int table)
{
	return (uint32_t *)(void *)((char *)m + model_tables[table].offset);
}

/* Makes all deferred rows, or none on failure. */
static ow_status make_rows(struct model *m, struct ow_error *err)
{
	uint64_t tables = atomic_load(&m->deferred.tables);
	uint32_t before[TABLE_COUNT];
	ow_status status = OW_OK;

	for (int table = 0; table < TABLE_COUNT; table++)
		before[table] = *count_of(m, table);
	for (struct deferred *d = m->deferred.rows; d && status == OW_OK; d = d->next)
		status = d->run(m, d->state, err);
	for (int table = 0; table < TABLE_COUNT && status != OW_OK; table++)
		if (tables >> table & 1)
			*count_of(m, table) = before[table];
	if (status != OW_OK)
		return status;
	release_work(&m->deferred.rows);
	atomic_store(&m->deferred.tables, 0);
	return OW_OK;
}

static ow_status make_stacks(struct model *m, struct ow_error *err)
{
	for (struct deferred *d = m->deferred.stacks; d; d = d->next)
		OW_TRY(d->run(m, d->state, err));
	return OW_OK;
}

void code_traces_release(struct code_traces *t, struct mem *mem)
{
	mem_free(mem, t->frames, t->cap * sizeof(*t->frames));
	mem_free(mem, t->first, t->ops * sizeof(*t->first));
	mem_free(mem, t->len, t->ops * sizeof(*t->len));
	*t = (struct code_traces){ 0 };
}

ow_status code_traces_init(struct code_traces *t, const struct model *m, struct ow_error *err)
{
	*t = (struct code_traces){ .ops = m->op.count };
	t->first = mem_zalloc(m->mem, t->ops * sizeof(*t->first));
	t->len = mem_zalloc(m->mem, t->ops * sizeof(*t->len));
	if (t->first && t->len)
		return OW_OK;
	code_traces_release(t, m->mem);
	return error_no_memory(err);
}

static bool can_trace(const struct model *m)
{
	if (m->deferred.part[DEFERRED_stacks].made || m->stack.count > 1 || !m->deferred.stacks)
		return false;
	for (const struct deferred *d = m->deferred.stacks; d; d = d->next)
		if (!d->trace)
			return false;
	return true;
}

static ow_status make_traces(struct model *m, struct ow_error *err)
{
	ow_status status;

	if (m->traces.ops || !can_trace(m))
		return OW_OK;
	status = code_traces_init(&m->traces, m, err);
	for (struct deferred *d = m->deferred.stacks; d && status == OW_OK; d = d->next)
		status = d->trace(m, d->state, err);
	if (status != OW_OK)
		code_traces_release(&m->traces, m->mem);
	return status;
}

static const struct {
	ow_status (*make)(struct model *m, struct ow_error *err);
	bool keeps_failure; /* after a failure it may be half done, so it is not tried again */
} parts[DEFERRED_COUNT] = {
	[DEFERRED_rows] = { make_rows, false },
	[DEFERRED_stacks] = { make_stacks, true },
	[DEFERRED_traces] = { make_traces, false },
	[DEFERRED_nesting] = { nesting_make, false },
	[DEFERRED_name_order] = { name_order_make, false },
	[DEFERRED_lookups] = { lookups_make, false },
};

static ow_status require_part(struct model *m, enum deferred_part part, struct ow_error *err)
{
	ow_status status;

	pthread_mutex_lock(&m->deferred.lock);
	if (!m->deferred.part[part].made) {
		status = parts[part].make(m, err);
		m->deferred.part[part].status = status;
		m->deferred.part[part].made = status == OW_OK || parts[part].keeps_failure;
	}
	status = m->deferred.part[part].status;
	pthread_mutex_unlock(&m->deferred.lock);
	return status;
}

ow_status model_require_rows(struct model *m, uint64_t tables, struct ow_error *err)
{
	if (OW_UNLIKELY(tables & atomic_load(&m->deferred.tables)))
		OW_TRY(require_part(m, DEFERRED_rows, err));
	return backing_verify(m, tables, err);
}

ow_status model_require_stacks(struct model *m, struct ow_error *err)
{
	ow_status status = require_part(m, DEFERRED_stacks, err);

	if (status != OW_OK && err && err->status == OW_OK)
		error_set(err, status, "the code traces of this profile could not be decoded");
	return status;
}

ow_status model_require_traces(struct model *m, const struct code_traces **out,
			       struct ow_error *err)
{
	ow_status status = require_part(m, DEFERRED_traces, err);

	*out = m->traces.ops ? &m->traces : NULL;
	return status;
}

ow_status model_require_nesting(struct model *m, struct ow_error *err)
{
	OW_ASSERT(m->frozen);
	return require_part(m, DEFERRED_nesting, err);
}

const op_id *model_ops_by_name(struct model *m, struct ow_error *err)
{
	return require_part(m, DEFERRED_name_order, err) == OW_OK ? m->ops_by_name : NULL;
}

ow_status model_make_lookups(struct model *m, struct ow_error *err)
{
	const uint64_t tables = TABLE_BIT(op) | TABLE_BIT(shape) | TABLE_BIT(dim) |
				TABLE_BIT(strset) | TABLE_BIT(strset_item) | TABLE_BIT(frame) |
				TABLE_BIT(stack) | TABLE_BIT(device) | TABLE_BIT(track) |
				TABLE_BIT(step) | TABLE_BIT(metric);
	struct guard guard;
	ow_status status;

	if (!atomic_load(&m->no_lookups))
		return OW_OK;
	OW_TRY(model_require_rows(m, tables, err));
	guard_enter(&guard);
	status = require_part(m, DEFERRED_lookups, err);
	guard_leave(&guard);
	return status;
}

void deferred_forget(struct model *m, enum deferred_part part)
{
	bool made = m->deferred.part[part].made;

	if (part == DEFERRED_name_order && m->ops_by_name) {
		mem_free(m->mem, m->ops_by_name, (m->op.count - 1) * sizeof(*m->ops_by_name));
		m->ops_by_name = NULL;
	}
	if (part == DEFERRED_traces)
		code_traces_release(&m->traces, m->mem);
	if (part == DEFERRED_stacks) {
		if (!made || m->deferred.part[part].status != OW_OK)
			return; /* work that is left to do, or cannot be done */
		release_work(&m->deferred.stacks);
		/* the traces were decoded and do not belong to the op that is added next */
		if (m->op.code_size)
			memset(m->op.code_size, 0, m->op.count * sizeof(*m->op.code_size));
	}
	m->deferred.part[part].made = false;
}

void deferred_init(struct model *m)
{
	pthread_mutex_init(&m->deferred.lock, NULL);
}

void deferred_release(struct model *m)
{
	deferred_forget(m, DEFERRED_name_order);
	deferred_forget(m, DEFERRED_traces);
	release_work(&m->deferred.stacks);
	release_work(&m->deferred.rows);
	pthread_mutex_destroy(&m->deferred.lock);
}
