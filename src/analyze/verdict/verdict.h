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

/* The subject of a sentence. */
struct verdict_subject {
	enum phase_class class; /* phase class of the sentence; CLASS_COUNT: none */
	bool whole;		/* the time in the sentence is the share of the class in a step */
	/* the time in the sentence is the total of the class, also during other classes */
	bool hidden;
};

/* Appends a verdict that follows a sentence about the subject, without repeating the subject. */
void verdict_after(struct str verdict, struct verdict_subject subject, struct buf *text);
/* Whether the verdict begins with the share of the subject's class. */
bool verdict_leads_with(struct str verdict, struct verdict_subject subject);

/* Returns whether a running program was recorded. */
bool verdict_is_live(const struct model *m);

/* verdict_samples.c: writes the verdict for a profile that has only samples. */
ow_status verdict_samples(struct model *m, const struct event_filter *filter, const char *metric,
			  struct buf *text, struct ow_error *err);
/* verdict_memory.c: writes the verdict on memory over time; nothing if there is no memory data. */
ow_status verdict_memory(struct model *m, const struct event_filter *filter, struct buf *text,
			 bool *written, struct ow_error *err);

struct phases;
struct phase_groups;

/* waits.c: writes how much of the collective `op` is waiting for other ranks; nothing if that is unknown. */
ow_status verdict_collective_wait(const struct model *m, const struct event_filter *filter,
				  uint32_t op, struct buf *text, struct ow_error *err);
/* Adds a sentence if the host waits for the device after almost every launch. */
void verdict_sync_calls(const struct model *m, const struct event_filter *filter, struct buf *text);

#endif
