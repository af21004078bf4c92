/*
 * run_memory.c: reads the cells of a recording of memory without times (run.h), such as a memory snapshot of PyTorch:
 * the memory in use at the peak of the largest heap, grouped by what the source knows best: the line that allocated it,
 * the op, or its purpose. Called by run.c.
 */
#include "diff/run.h"

#include "analyze/memory/heaps.h"
#include "base/vec.h"

/* The grouping that explains the most bytes; if several do, the first of these. */
static enum heap_grouping best_grouping(const struct heap_alive *alive)
{
	static const enum heap_grouping order[] = { GROUP_LINE, GROUP_OP, GROUP_PURPOSE };
	enum heap_grouping best = GROUP_LINE;
	int64_t most = -1;

	for (size_t o = 0; o < ARRAY_COUNT(order); o++) {
		int64_t bytes = 0;

		for (uint32_t g = 0; g < alive->count; g++)
			if (alive->groups[g].by == order[o] && alive->groups[g].name.len)
				bytes = span_add(bytes, alive->groups[g].bytes);
		if (bytes > most) {
			most = bytes;
			best = order[o];
		}
	}
	return best;
}

static ow_status add_cell(struct diff_run *run, struct diff_cell cell, struct ow_error *err)
{
	cell.class = CLASS_ALLOCATION;
	cell.rank = -1;
	cell.op = arena_str(&run->arena, cell.op);
	cell.line = arena_str(&run->arena, cell.line);
	run->total_ns = span_add(run->total_ns, cell.ns);
	if (!cell.op.ptr || !cell.line.ptr ||
	    !vec_push(run->arena.mem, run->cells, run->cell_count, run->cell_cap, cell))
		return error_no_memory(err);
	return OW_OK;
}

/* Adds the groups of a heap, and a cell for memory without a known group, so that the cells sum to the peak. */
static ow_status add_heap(struct heaps *h, uint32_t heap, struct diff_run *run,
			  struct ow_error *err)
{
	struct heap_alive *all, *alive;
	int64_t rest = h->items[heap].peak;
	enum heap_grouping by;

	OW_TRY(heaps_alive(h, NULL, &all));
	alive = &all[heap];
	by = best_grouping(alive);
	for (uint32_t g = 0; g < alive->count; g++) {
		const struct heap_group *group = &alive->groups[g];
		bool lines = by == GROUP_LINE;
		struct diff_cell cell = { .op = lines ? STR("memory in use") : group->name,
					  .line = lines ? group->name : STR(""),
					  .ns = group->bytes,
					  .count = (int64_t)group->count };

		if (group->by != by || !group->name.len || group->bytes <= 0)
			continue;
		rest = span_add(rest, -group->bytes);
		OW_TRY(add_cell(run, cell, err));
	}
	if (rest > 0)
		OW_TRY(add_cell(run, (struct diff_cell){ .op = STR("[unknown]"), .ns = rest },
				err));
	run->metric = STR(METRIC_MEMORY);
	run->unit = STR("bytes");
	run->steps = run->cell_count != 0;
	return OW_OK;
}

ow_status diff_memory_read(struct model *m, bool cells, struct diff_run *run, struct ow_error *err)
{
	struct view_options options;
	struct heaps heaps;
	ow_status status;

	view_options_init(&options);
	status = heaps_find(&heaps, m, &options, err);
	run->peak_memory = -1;
	if (status == OW_E_EMPTY || status == OW_E_NOT_FOUND) {
		error_clear(err);
		status = OW_OK;
	} else if (status == OW_OK && heaps.count > 1) {
		run->peak_memory = heaps.items[heaps.order[0]].peak;
		status = cells ? add_heap(&heaps, heaps.order[0], run, err) : OW_OK;
	}
	heaps_release(&heaps);
	return status;
}
