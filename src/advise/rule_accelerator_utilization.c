/*
 * rule_accelerator_utilization.c: how busy each accelerator was between the start of the first and the
 * end of the last operation placed on it; tfprof's AcceleratorUtilizationChecker, with its text.
 *
 * Like the original it takes each operation's latest step and adds up accelerator times without
 * looking for overlap, so several streams can give more than 1.
 *
 * Traces do not place operations on devices but have what devices ran: there it is the part of the steady steps, or of the
 * recording where no steps are known, in which a device was busy, with overlapping work counted once.
 */
#include "advise/rule.h"
#include "analyze/steps/phases.h"

#define UTILIZATION_FAIR 0.5
#define UTILIZATION_POOR 0.2

struct usage {
	str_id device;
	int64_t start_ns, end_ns, busy_ns;
};

struct usages {
	struct arena *arena;
	struct usage *items;
	size_t count, cap;
};

/* Finds or adds the usage of a device by linear search: a machine has few devices. NULL if memory runs out. */
static struct usage *usage_of(struct usages *all, str_id device)
{
	for (size_t i = all->count; i-- > 0;)
		if (all->items[i].device.v == device.v)
			return &all->items[i];
	if (all->count == all->cap) {
		size_t cap = all->cap ? all->cap * 2 : 16;
		struct usage *grown = ARENA_ARRAY(all->arena, struct usage, cap);

		if (!grown)
			return NULL;
		if (all->count)
			memcpy(grown, all->items, all->count * sizeof(*grown));
		all->items = grown;
		all->cap = cap;
	}
	all->items[all->count] = (struct usage){ .device = device };
	return &all->items[all->count++];
}

/* The rows of op_step are sorted by step number within an op, so the last row is the latest
 * step. */
static void add_op(const struct model *m, uint32_t op, struct usage *usage)
{
	uint32_t row = m->op.step_first[op] + m->op.step_count[op] - 1;
	int64_t start = m->op_step.first_start_ns[row];

	if (!usage->start_ns || (start && start < usage->start_ns))
		usage->start_ns = start;
	usage->end_ns = MAX(usage->end_ns, m->op_step.latest_end_ns[row]);
	usage->busy_ns = wrap_add(usage->busy_ns, m->op_step.accelerator_ns[row]);
}

static ow_status collect(const struct model *m, struct usages *all)
{
	str_id known = { 0 }; /* the last device that was found to be an accelerator */

	for (uint32_t op = 1; op < m->op.count; op++) {
		str_id device = m->op.device[op];
		struct usage *usage;

		if (!device.v || !m->op.step_count[op])
			continue;
		if (device.v != known.v && !rule_is_accelerator(model_str(m, device)))
			continue;
		known = device;
		usage = usage_of(all, device);
		if (!usage)
			return OW_E_NO_MEMORY;
		add_op(m, op, usage);
	}
	return OW_OK;
}

static void sort_by_name(const struct model *m, struct usages *all)
{
	for (size_t i = 1; i < all->count; i++) {
		struct usage item = all->items[i];
		struct str name = model_str(m, item.device);
		size_t k = i;

		for (; k > 0 && str_cmp(model_str(m, all->items[k - 1].device), name) > 0; k--)
			all->items[k] = all->items[k - 1];
		all->items[k] = item;
	}
}

static ow_status report(const struct model *m, const struct usage *usage, struct findings *out)
{
	struct str device = model_str(m, usage->device);
	double span = (double)usage->end_ns - (double)usage->start_ns;
	double used = (double)usage->busy_ns / span;
	bool low = used < UTILIZATION_FAIR;
	struct finding finding = { .severity = SEVERITY_INFO, .where = device, .confidence = 0.8 };
	char *what;

	what = arena_printf(out->arena, "device: %.*s %s: %.2f", STR_ARG(device),
			    low ? "low utilization" : "utilization", used);
	if (!what)
		return OW_E_NO_MEMORY;
	finding.what = str_from(what);
	if (low) {
		finding.severity = used <= UTILIZATION_POOR ? SEVERITY_HIGH : SEVERITY_MEDIUM;
		finding.gain_ns = (int64_t)((UTILIZATION_FAIR - MAX(used, 0.0)) * span);
		finding.advice =
			STR("the device waits for most of the step: look at the steps and the "
			    "operations on the CPU for what it waits for, overlap the input "
			    "pipeline with the computation, or use larger batches");
	}
	return finding_add(out, &finding);
}

static ow_status report_lane(const struct model *m, const struct phase_group *g,
			     struct findings *out)
{
	struct str device = model_str(m, m->device.name[g->device.v]);
	double used = (double)g->sums.device_busy / (double)g->time_ns;
	struct finding finding = { .severity = SEVERITY_INFO, .where = device, .confidence = 0.8 };
	char rank[32] = "", *what;

	if (g->rank >= 0)
		snprintf(rank, sizeof(rank), "rank %" PRId32 " ", g->rank);
	what = arena_printf(out->arena, "device: %s%.*s %s: %.2f of %s", rank, STR_ARG(device),
			    used < UTILIZATION_FAIR ? "low utilization" : "utilization", used,
			    g->known ? "its steady steps" : "the recording");
	if (!what)
		return OW_E_NO_MEMORY;
	finding.what = str_from(what);
	if (used < UTILIZATION_FAIR) {
		finding.severity = used <= UTILIZATION_POOR ? SEVERITY_HIGH : SEVERITY_MEDIUM;
		finding.advice = STR("the device waits for most of the time: the view phases shows "
				     "for what");
	}
	return finding_add(out, &finding);
}

/* Reports the utilization of devices from the events of a trace. */
static ow_status report_lanes(struct model *m, struct findings *out, size_t *reported,
			      struct ow_error *err)
{
	const struct event_filter all = EVENT_FILTER_ALL;
	struct phases p;
	struct phase_groups groups = { 0 };
	ow_status status = phases_analyse(m, &all, &p, err);

	if (status == OW_OK)
		status = phases_group(m, &p, &p.arena, &groups, err);
	for (uint32_t i = 0; i < groups.count && status == OW_OK; i++) {
		if (!groups.items[i].has_device || groups.items[i].time_ns <= 0)
			continue;
		status = report_lane(m, &groups.items[i], out);
		*reported += 1;
	}
	phases_release(&p);
	return status;
}

static ow_status check(struct model *m, struct findings *out, struct ow_error *err)
{
	struct usages all = { .arena = out->arena };
	size_t reported = 0;

	if (collect(m, &all) != OW_OK)
		return error_no_memory(err);
	sort_by_name(m, &all);
	for (size_t i = 0; i < all.count; i++) {
		if (all.items[i].end_ns <= all.items[i].start_ns)
			continue;
		if (report(m, &all.items[i], out) != OW_OK)
			return error_no_memory(err);
		reported++;
	}
	if (!reported && m->event.phase)
		OW_TRY(report_lanes(m, out, &reported, err));
	if (reported)
		return OW_OK;
	if (m->step.count <= 1)
		out->not_checked = STR("not checked: no run-time statistics");
	else
		out->not_checked = STR("not checked: nothing was measured on an accelerator");
	return OW_OK;
}

const struct rule rule_accelerator_utilization = {
	.name = "accelerator_utilization",
	.summary = "accelerators that were idle while their operations ran",
	.checker = "AcceleratorUtilizationChecker",
	.doc = "accelerator_utilization",
	.check = check,
};
