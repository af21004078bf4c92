/*
 * verdict.h: one sentence on where the time goes, and what to look at first. It uses the phases of the steps if the source has them,
 * else the times of ops or samples. It says what was measured; advise/ says what to do about it. Called by view_verdict.c and by
 * summaries of recordings.
 */
#ifndef ANALYZE_VERDICT_H
#define ANALYZE_VERDICT_H

#include "analyze/steps/phases.h"
#include "base/buf.h"
#include "model/event_filter.h"

/* Appends a sentence with its full stop. `metric` selects the samples that count; NULL: the default. */
ow_status verdict_write(struct model *m, const struct event_filter *filter, const char *metric,
			struct buf *text, struct ow_error *err);

/* What a sentence is about. */
struct verdict_subject {
	enum phase_class class; /* CLASS_COUNT: none */
	bool whole;  /* the time that it names is the part of a step that the class has */
	bool hidden; /* it is all time of the class, also below others */
};

/* A verdict that follows a sentence about the subject: it does not repeat that. */
void verdict_after(struct str verdict, struct verdict_subject subject, struct buf *text);
/* Whether the verdict begins with the share of the subject's class. */
bool verdict_leads_with(struct str verdict, struct verdict_subject subject);

/* Whether a running program was recorded. */
bool verdict_is_live(const struct model *m);

/* verdict_samples.c: the same for a profile of samples alone. */
ow_status verdict_samples(struct model *m, const struct event_filter *filter, const char *metric,
			  struct buf *text, struct ow_error *err);
/* verdict_memory.c: the same for memory over time; nothing is written when there is none. */
ow_status verdict_memory(struct model *m, const struct event_filter *filter, struct buf *text,
			 bool *written, struct ow_error *err);

struct phases;
struct phase_groups;

/* waits.c: how much of the collective `op` is waiting for other ranks; nothing where that cannot be known. */
ow_status verdict_collective_wait(const struct model *m, const struct event_filter *filter,
				  uint32_t op, struct buf *text, struct ow_error *err);
/* One more sentence, when the host waits for the device after almost every launch. */
void verdict_sync_calls(const struct model *m, const struct event_filter *filter, struct buf *text);

#endif
