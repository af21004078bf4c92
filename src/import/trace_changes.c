/*
 * trace_changes.c: what the [memory] events of PyTorch say, kept while they are at hand: their arguments lie all over the
 * file, and reading them once more takes longer than all the rest that is done with them. mean_memory.c makes rows
 * of it, and reads what is missing here: names written with escapes, arguments that an end brings along.
 */
#include "import/trace_int.h"

void trace_take_change(struct trace_worker *w, const struct json_event *ev, size_t slice)
{
	struct memory_change *c = TRACE_NEW_ROW(w, changes, change_count, change_cap);

	if (!c)
		return;
	*c = (struct memory_change){ .event = (uint32_t)slice };
	memory_change_read(json_text(ev->value[FIELD_ARGS]), c);
}

static size_t count_changes(const struct trace *t)
{
	size_t count = 0;

	for (size_t i = 0; i < t->accepted_count; i++)
		count += t->accepted[i].last.changes - t->accepted[i].first.changes;
	return count;
}

/* One for each change, in file order; the place takes the place of the time. */
static void refer(const struct trace *t, struct trace_ref *refs)
{
	size_t count = 0;

	for (size_t i = 0; i < t->accepted_count; i++) {
		const struct trace_part *p = &t->accepted[i];
		const struct trace_worker *w = &t->workers[p->worker];

		for (size_t r = p->first.changes; r < p->last.changes; r++)
			refs[count++] =
				(struct trace_ref){ .ts = w->slices.track[w->changes[r].event],
						    .row = (uint32_t)r,
						    .worker = (uint16_t)p->worker };
	}
}

ow_status trace_place_changes(struct trace *t)
{
	size_t count = count_changes(t);
	struct trace_ref *refs;

	if (!count)
		return OW_OK;
	refs = mem_alloc(t->mem, 2 * count * sizeof(*refs));
	t->changes = refs ? mem_alloc(t->mem, count * sizeof(*t->changes)) : NULL;
	if (t->changes) {
		t->change_count = count;
		refer(t, refs);
		trace_sort(refs, count, refs + count);
		for (size_t i = 0; i < count; i++) {
			t->changes[i] = t->workers[refs[i].worker].changes[refs[i].row];
			t->changes[i].event = t->first_event + (uint32_t)refs[i].ts;
		}
	}
	for (unsigned i = 0; i < t->worker_count; i++) {
		struct trace_worker *w = &t->workers[i];

		mem_free(t->mem, w->changes, w->change_cap * sizeof(*w->changes));
		w->changes = NULL;
		w->change_count = w->change_cap = 0;
	}
	mem_free(t->mem, refs, 2 * count * sizeof(*refs));
	return t->changes ? OW_OK : error_no_memory(t->ctx->err);
}
