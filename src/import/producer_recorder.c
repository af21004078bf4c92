/*
 * producer_recorder.c: recordings of our own (journal_rows.c). Steps are what the program said; the names that it
 * gave to its slices are its own, but some words mean a phase wherever they are used.
 */
#include "import/mean_int.h"

static bool recognise(const struct meaning *x)
{
	return x->in->recorded;
}

static ow_status steps(struct meaning *x)
{
	for (size_t i = 0; i < x->in->step_count; i++) {
		const struct recorded_step *step = &x->in->steps[i];

		OW_TRY(mean_add_marker(x, &(struct mean_marker){ .start = step->start_ns,
								 .end = step->end_ns,
								 .number = step->number }));
	}
	return OW_OK;
}

/* A whole name, without case, or its first part: "forward", "Forward/encoder". */
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

static enum event_phase host_phase(const struct meaning *x, uint32_t event)
{
	struct str name = mean_text(x, mean_name(x, event));
	size_t slash = str_find_char(name, '/');

	if (slash != STR_NONE)
		name = str_first(name, slash);
	for (size_t i = 0; i < ARRAY_COUNT(words); i++)
		if (same_word(name, words[i].word))
			return words[i].phase;
	return PHASE_HOST; /* the program did something, or the step around it */
}

const struct producer producer_recorder = {
	.name = "recorder",
	.title = "opwatch recorder",
	.recognise = recognise,
	.steps = steps,
	.host_phase = host_phase,
};
