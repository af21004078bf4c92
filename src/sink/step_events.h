/*
 * step_events.h: the events of step_timeline.c as Python's json.dumps(…, indent=4) writes them. Knows the
 * layout and the escapes, not what the events mean.
 *
 *	events_open(e, 'X', "Op", name, pid, tid, ts);
 *	events_int(e, "dur", 5);
 *	events_args(e);
 *	events_arg(e, STR("name"), true);
 *	events_string(e, name);
 *	events_args_end(e);
 *	events_close(e);
 */
#ifndef SINK_STEP_EVENTS_H
#define SINK_STEP_EVENTS_H

#include "sink/writer.h"

struct step_events {
	struct writer w;
	bool any; /* an event was written */
};

void events_begin(struct step_events *e, struct mem *mem, const struct out *out, struct error *err);
ow_status events_finish(struct step_events *e) OW_MUST_CHECK;

/* The whole metadata event that gives a process its name, in two parts. */
void events_process(struct step_events *e, int64_t pid, struct str name, const char *what);

/* What all other events have in common. */
void events_open(struct step_events *e, char ph, const char *category, struct str name, int64_t pid,
		 int64_t tid, int64_t ts);
void events_int(struct step_events *e, const char *key, int64_t value);
void events_args(struct step_events *e);
/* The key; the value follows. */
void events_arg(struct step_events *e, struct str key, bool first);
void events_string(struct step_events *e, struct str s);
void events_args_end(struct step_events *e);
void events_close(struct step_events *e);

#endif
