/*
 * rule_data_quality.c: what is missing or damaged in the recording, as far as it makes the other findings uncertain: lost data, steps that cover
 * little of it, a replay that was refused. It has no saving.
 */
#include "advise/advice.h"

#define LITTLE 0.5 /* smallest part of the recording that steps should cover */

static ow_status remark(struct advice *a, struct str what, struct str where, struct str advice)
{
	struct report report = { .what = what,
				 .where = where,
				 .advice = advice,
				 .falsified_by = STR(""),
				 .most = CONFIDENCE_HIGH,
				 .class = CLASS_COUNT };

	report.falsified_by = STR("record again with the missing data");
	return advice_remark(a, SEVERITY_INFO, -1, -1, false, &report, (struct str){ 0 });
}

static ow_status advise(struct advice *a, struct ow_error *err)
{
	const struct model *m = a->m;
	uint64_t lost = 0;

	(void)err;
	for (uint32_t i = 1; i < m->note.count; i++)
		if (m->note.kind[i] == NOTE_DAMAGED || m->note.kind[i] == NOTE_TRUNCATED ||
		    m->note.kind[i] == NOTE_DROPPED)
			lost += m->note.times[i];
	if (lost)
		OW_TRY(remark(
			a,
			advice_text(a, "%llu item%s of the input %s damaged, cut off or left out",
				    (unsigned long long)lost, lost == 1 ? "" : "s",
				    lost == 1 ? "was" : "were"),
			STR("input"),
			STR("'opwatch notes' lists them; record again if findings "
			    "depend on them")));
	if (a->has_steps && a->steady.known && a->steady.coverage < LITTLE)
		OW_TRY(remark(
			a,
			advice_text(a,
				    "steps cover %.0f %% of the recording: the findings are about "
				    "that part",
				    a->steady.coverage * 100),
			STR("steps"), STR("mark every step, or give --step-marker")));
	if (advice_replays(a) && a->s.replay_error > TRUSTED_ERROR)
		OW_TRY(remark(
			a,
			advice_text(a,
				    "the replay predicts other steps only within %.0f %%: the "
				    "intervals of savings are wider by that",
				    a->s.replay_error * 100),
			STR("replay"),
			STR("record more steps; what differs between them may not be "
			    "recorded")));
	if (a->has_steps && !advice_replays(a))
		OW_TRY(remark(a,
			      advice_text(a,
					  "savings are shares of phases, because there is no "
					  "replay: %s",
					  a->s.g.refused),
			      STR("replay"),
			      STR("record host and device with launches (correlation ids)")));
	return OW_OK;
}

const struct rule rule_data_quality = {
	.name = "data_quality",
	.summary = "what is missing or damaged in the recording",
	.doc = "data_quality",
	.advise = advise,
};
