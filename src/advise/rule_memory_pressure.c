/*
 * rule_memory_pressure.c: memory that is nearly used up, or a request that failed: what to free, shrink or checkpoint to fit, in bytes, by line or
 * operation. It reads the heaps of the recording. How large a heap may get is known where its source says so.
 */
#include "advise/advice.h"

#include "analyze/memory/heaps.h"

#define NEARLY_FULL 0.90

/* Returns whether the id in a fact's object is the number of the device. */
static bool is_of_device(const struct model *m, fact_id object, int64_t device)
{
	for (uint32_t i = object.v + 1; i < m->fact.count; i++)
		if (m->fact.parent[i].v == object.v &&
		    str_eq(model_str(m, m->fact.key[i]), STR("id")))
			return m->fact.number[i] == device;
	return false;
}

/* Returns the number in a device name: 3 for "GPU 3"; -1 without a number. */
static int64_t number_of(struct str device)
{
	int64_t number = 0, unit = 1;
	size_t len = device.len;

	while (len && device.ptr[len - 1] >= '0' && device.ptr[len - 1] <= '9' &&
	       unit <= INT64_C(1000000)) {
		number += (device.ptr[--len] - '0') * unit;
		unit *= 10;
	}
	return len < device.len ? number : -1;
}

/* Returns the total memory of a device as described by PyTorch's profiler; 0 if it is not
 * described. */
static int64_t described(const struct model *m, struct str device)
{
	int64_t number = number_of(device);

	for (uint32_t i = 1; i < m->fact.count && number >= 0; i++)
		if (str_eq(model_str(m, m->fact.key[i]), STR("totalGlobalMem")) &&
		    is_of_device(m, m->fact.parent[i], number))
			return m->fact.number[i];
	return 0;
}

/* Returns the memory that the device can provide: memory held at the peak plus memory still
 * available, or else its total. */
static int64_t capacity(const struct model *m, const struct heap *heap)
{
	int64_t held = MAX(heap->reserved_peak, heap->peak);

	return heap->available > 0
		       ? span_add(MAX(heap->end.reserved, heap->end.in_use), heap->available)
	       : heap->failures ? held
				: described(m, model_str(m, heap->device));
}

/* Lists the groups that use the most memory, by line or else by operation: "1.2 GB at
 * train.py:12 forward, 0.8 GB at …". */
static struct str largest(struct advice *a, const struct heap_alive *alive)
{
	enum heap_grouping by = GROUP_OP;
	struct buf text;
	struct str kept;
	uint32_t shown = 0;

	for (uint32_t i = 0; i < alive->count; i++)
		if (alive->groups[i].by == GROUP_LINE && alive->groups[i].name.len)
			by = GROUP_LINE;
	buf_init(&text, a->m->mem);
	for (uint32_t i = 0; i < alive->count && shown < 3; i++)
		if (alive->groups[i].by == by) {
			struct str name = utf8_fit(alive->groups[i].name, 80);

			buf_printf(&text, "%s%lld bytes of %.*s", shown++ ? ", " : "",
				   (long long)alive->groups[i].bytes, STR_ARG(name));
		}
	kept = (struct str){ 0 };
	if (!text.failed)
		kept = arena_str(a->arena, buf_str(&text));
	buf_release(&text);
	return kept;
}

static ow_status report_full_heaps(struct advice *a, struct heaps *h,
				   const struct heap_alive *alive)
{
	struct report report = { .falsified_by =
					 STR("look at the peak after the change: 'opwatch memory'"),
				 .most = CONFIDENCE_MEDIUM,
				 .class = CLASS_COUNT };

	for (uint32_t i = 1; i < h->count; i++) {
		const struct heap *heap = &h->items[i];
		int64_t most = capacity(a->m, heap), held = MAX(heap->reserved_peak, heap->peak);

		if (!heap->failures && (most <= 0 || (double)held < NEARLY_FULL * (double)most))
			continue;
		report.where = largest(a, &alive[i]);
		report.what = advice_text(
			a, "%s on %.*s: the peak holds %lld bytes%s",
			heap->failures ? "a request for memory failed" : "memory is nearly full",
			STR_ARG(model_str(a->m, heap->device)), (long long)heap->peak,
			heap->reserved_peak > heap->peak + heap->peak / 4
				? ", and a quarter more is reserved but unused (fragmentation)"
				: "");
		report.advice = advice_text(
			a,
			"free %lld bytes to be below 90 %%: checkpoint activations "
			"(torch.utils.checkpoint), a smaller batch, 16-bit types; the largest are "
			"%.*s",
			(long long)MAX(held - (int64_t)(NEARLY_FULL * (double)most),
				       heap->failures ? held / 10 : 1),
			STR_ARG(report.where));
		OW_TRY(advice_remark(a, heap->failures ? SEVERITY_HIGH : SEVERITY_MEDIUM, -1, -1,
				     false, &report, (struct str){ 0 }));
		/* only the largest heap is reported, because the others have the same cause */
		break;
	}
	return OW_OK;
}

static ow_status advise(struct advice *a, struct ow_error *err)
{
	struct view_options options;
	struct heap_alive *alive;
	struct heaps h;
	ow_status status;

	if (a->m->heap.count <= 1)
		return advice_not_checked(a, "no memory events: record with profile_memory=True");
	view_options_init(&options);
	status = heaps_find(&h, a->m, &options, err);
	if (status == OW_OK)
		status = heaps_alive(&h, NULL, &alive);
	if (status == OW_OK)
		status = report_full_heaps(a, &h, alive);
	heaps_release(&h);
	return status;
}

const struct rule rule_memory_pressure = {
	.name = "memory_pressure",
	.summary = "memory that is nearly used up, or a request that failed",
	.doc = "memory_pressure",
	.advise = advise,
};
