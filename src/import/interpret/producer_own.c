/*
 * producer_own.c: interprets recordings of opwatch itself. For running programs (import_live.c) names and categories
 * are those of PyTorch and others, so the shared passes handle most; this file handles file reads, and steps without a
 * profiler's marker. For the recorder API (journal_rows.c) steps are given and names are the program's own, but some
 * words mean a phase wherever they are used.
 */
#include "import/interpret/interpret_int.h"

static bool recognise_live(const struct interpret *x)
{
	return x->in->live;
}

static ow_status live_links(struct interpret *x)
{
	return interpret_link_correlations(x);
}

static bool is_loader_iteration(void *arg, struct str name)
{
	(void)arg;
	return str_starts(name, STR("enumerate(DataLoader)#"));
}

static int by_start(const void *a, const void *b)
{
	const struct interpret_marker *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

/* Marks steps from the begin of each wait for data to the begin of the next. The part after the last wait is the end
 * of the data. */
static ow_status mark_iterations(struct interpret *x)
{
	struct interpret_markers *m = &x->markers;

	OW_TRY(interpret_mark_slices(x, is_loader_iteration, NULL));
	if (m->count < 2) {
		m->count = 0;
		return OW_OK;
	}
	qsort(m->list, m->count, sizeof(*m->list), by_start);
	for (size_t i = 0; i + 1 < m->count; i++)
		m->list[i].end = m->list[i + 1].start;
	m->count--;
	for (size_t i = 0; i < m->count; i++)
		m->list[i].number = INT64_MIN;
	return OW_OK;
}

/* The time of the first wait for data. */
static int64_t first_iteration(const struct interpret *x)
{
	int64_t first = INT64_MAX;

	for (uint32_t t = x->first_track; t < x->last_track; t++) {
		const struct interpret_track *track = interpret_track(x, t);

		for (uint32_t e = track->first; e < track->last; e++)
			if (x->m->event.ts_ns[e] < first &&
			    is_loader_iteration(NULL, model_str(x->m, interpret_name(x, e))))
				first = x->m->event.ts_ns[e];
	}
	return first;
}

/* Whether an event is a call of the function that the user named as step marker; `recorded`: it was recorded for
 * that purpose. */
static bool begins_step(const struct interpret *x, uint32_t event, bool recorded)
{
	if (recorded)
		return str_eq(interpret_text(x, COLUMN_GET(x->m->event.category, event)),
			      STR("step_begin"));
	return interpret_name(x, event).v == x->in->step_begin.v;
}

static uint32_t count_begins(const struct interpret *x, uint32_t t, bool recorded)
{
	const struct interpret_track *track = interpret_track(x, t);
	uint32_t count = 0;

	for (uint32_t e = track->first; x->m->track.kind[t] == TRACK_HOST && e < track->last; e++)
		count += begins_step(x, e, recorded);
	return count;
}

/* Marks steps on the thread with most of these calls. A step lasts until the next one begins; the length of the last
 * one is unknown. */
static ow_status mark_begins(struct interpret *x, bool recorded)
{
	const struct interpret_track *track;
	uint32_t most = 0, found = 0, last = 0;

	for (uint32_t t = x->first_track; t < x->last_track; t++) {
		uint32_t count = count_begins(x, t, recorded);

		found = count > most ? t : found;
		most = MAX(most, count);
	}
	if (most < 2)
		return OW_OK;
	track = interpret_track(x, found);
	for (uint32_t e = track->first; e < track->last; e++) {
		if (!begins_step(x, e, recorded))
			continue;
		if (last)
			OW_TRY(interpret_add_marker(
				x, &(struct interpret_marker){ .start = x->m->event.ts_ns[last],
							       .end = x->m->event.ts_ns[e],
							       .number = INT64_MIN,
							       .name = x->in->step_begin }));
		last = e;
	}
	return OW_OK;
}

/* Marks steps that begin with the event named by --step-marker when the recording began. */
static ow_status mark_named(struct interpret *x)
{
	struct str name = interpret_text(x, x->in->step_begin);

	OW_TRY(mark_begins(x, true));
	if (!x->markers.count)
		OW_TRY(mark_begins(x, false));
	if (x->markers.count)
		builder_note(x->b, NOTE_INFO, OW_NO_OFFSET,
			     "a step lasts from one call of %.*s to the next", STR_ARG(name));
	else
		builder_note(
			x->b, NOTE_MISSING, OW_NO_OFFSET,
			"step marker %.*s: fewer than two calls were recorded. opwatch can record "
			"calls that the recorder knows, calls between libraries, functions of the "
			"program itself (with record, not attach; not in a stripped program) and "
			"Python functions (before Python 3.12 only those in sampled stacks)",
			STR_ARG(name));
	return builder_status(x->b);
}

static bool is_step_mark(struct str name)
{
	return is_loader_iteration(NULL, name) || str_starts(name, STR("Optimizer.step#"));
}

/* Marks the steps of a live recording: they end with the optimizer's; the first one does not begin with the program. */
static ow_status live_steps(struct interpret *x)
{
	struct interpret_marker *first;
	int64_t begin;

	if (x->in->step_begin.v)
		OW_TRY(mark_named(x));
	if (x->markers.count)
		return OW_OK;
	OW_TRY(interpret_mark_optimizer_steps(x));
	if (!x->markers.count)
		OW_TRY(mark_iterations(x));
	if (!x->markers.count) /* in a single step, no part is a step */
		return interpret_has_name(x, is_step_mark) ? OW_OK : interpret_mark_loops(x);
	begin = first_iteration(x);
	first = &x->markers.list[0];
	if (begin > first->start && begin < first->end)
		first->start = begin;
	return OW_OK;
}

static const struct {
	const char *category;
	enum event_phase phase;
} phase_of_category[] = {
	{ "file_read", PHASE_INPUT },	{ "file_open", PHASE_INPUT },
	{ "file_write", PHASE_HOST },	{ "opencl_wait", PHASE_SYNCHRONISATION },
	{ "opencl_build", PHASE_HOST }, { "cuda_wait", PHASE_SYNCHRONISATION },
};

static enum event_phase live_host_phase(const struct interpret *x, uint32_t event)
{
	struct str category = interpret_text(x, COLUMN_GET(x->m->event.category, event));

	for (size_t i = 0; i < ARRAY_COUNT(phase_of_category); i++)
		if (str_eq(category, str_from(phase_of_category[i].category)))
			return phase_of_category[i].phase;
	return PHASE_IDLE;
}

const struct producer producer_live = {
	.name = "live",
	.title = "opwatch record",
	.recognise = recognise_live,
	.links = live_links,
	.steps = live_steps,
	.host_phase = live_host_phase,
};

static bool recognise_recorder(const struct interpret *x)
{
	return x->in->recorded;
}

static ow_status recorder_steps(struct interpret *x)
{
	for (size_t i = 0; i < x->in->step_count; i++) {
		const struct recorded_step *step = &x->in->steps[i];

		OW_TRY(interpret_add_marker(x,
					    &(struct interpret_marker){ .start = step->start_ns,
									.end = step->end_ns,
									.number = step->number }));
	}
	return OW_OK;
}

/* Words that mean a phase: the whole name, ignoring case, or its first part: "forward", "Forward/encoder". */
static const struct {
	const char *word;
	enum event_phase phase;
} words[] = {
	{ "data", PHASE_INPUT },
	{ "input", PHASE_INPUT },
	{ "load", PHASE_INPUT },
	{ "dataload", PHASE_INPUT },
	{ "data_loading", PHASE_INPUT },
	{ "dataloader", PHASE_INPUT },
	{ "fetch", PHASE_INPUT },
	{ "batch", PHASE_INPUT },
	{ "h2d", PHASE_HOST_TO_DEVICE },
	{ "to_device", PHASE_HOST_TO_DEVICE },
	{ "host_to_device", PHASE_HOST_TO_DEVICE },
	{ "d2h", PHASE_DEVICE_TO_HOST },
	{ "to_host", PHASE_DEVICE_TO_HOST },
	{ "device_to_host", PHASE_DEVICE_TO_HOST },
	{ "forward", PHASE_COMPUTE },
	{ "fwd", PHASE_COMPUTE },
	{ "backward", PHASE_COMPUTE },
	{ "bwd", PHASE_COMPUTE },
	{ "loss", PHASE_COMPUTE },
	{ "optimizer", PHASE_COMPUTE },
	{ "optim", PHASE_COMPUTE },
	{ "update", PHASE_COMPUTE },
	{ "compute", PHASE_COMPUTE },
	{ "train", PHASE_COMPUTE },
	{ "eval", PHASE_COMPUTE },
	{ "communication", PHASE_COMMUNICATION },
	{ "comm", PHASE_COMMUNICATION },
	{ "allreduce", PHASE_COMMUNICATION },
	{ "all_reduce", PHASE_COMMUNICATION },
	{ "sync", PHASE_SYNCHRONISATION },
	{ "synchronize", PHASE_SYNCHRONISATION },
	{ "synchronise", PHASE_SYNCHRONISATION },
	{ "barrier", PHASE_SYNCHRONISATION },
	{ "wait", PHASE_SYNCHRONISATION },
	{ "launch", PHASE_LAUNCH },
};

static bool same_word(struct str name, const char *word)
{
	return name.len == strlen(word) && str_has_ignoring_case(name, word);
}

static enum event_phase recorder_host_phase(const struct interpret *x, uint32_t event)
{
	struct str name = interpret_text(x, interpret_name(x, event));
	size_t slash = str_find_char(name, '/');

	if (slash != STR_NONE)
		name = str_first(name, slash);
	for (size_t i = 0; i < ARRAY_COUNT(words); i++)
		if (same_word(name, words[i].word))
			return words[i].phase;
	return PHASE_HOST; /* other work of the program, or the enclosing step */
}

const struct producer producer_recorder = {
	.name = "recorder",
	.title = "opwatch recorder",
	.recognise = recognise_recorder,
	.steps = recorder_steps,
	.host_phase = recorder_host_phase,
};
