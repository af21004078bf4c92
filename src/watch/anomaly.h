/*
 * anomaly.h: waits for anomalies of a recorded job: steps that have become longer (step_change.h), or no step for
 * long although its processes live. It then says why in one sentence (anomaly_why.c: which phase, operation and
 * rank grew, or where the job is) and saves the minute around it.
 *
 * It only reads the recording (watch.h), so it runs beside the writer, in a thread of its own (anomaly_start) or
 * from any loop that calls anomaly_turn. anomaly_daemon does the same for all jobs of a daemon: it asks for the
 * jobs like any client and reads their rings on disk.
 */
#ifndef WATCH_ANOMALY_H
#define WATCH_ANOMALY_H

#include "table/table.h"
#include "watch/step_change.h"
#include "watch/watch.h"

#include <sys/types.h>

/* A report of an anomaly, for programs. */
struct anomaly_event {
	const char *kind; /* "slow" or "stall" */
	const char *job;  /* NULL without one */
	const char *why;  /* a sentence */
	const char *file; /* where the minute around it goes; NULL: it is not saved */
};

struct anomaly_options {
	double slowdown;       /* 0.2: a fifth longer; 0: not looked at */
	int64_t stall_ns;      /* 0: not looked at */
	const char *recording; /* a file, or the folder of a daemon's job */
	const char *
		prefix; /* saved files are called prefix-slow-120304.opw, prefix-stall-120304.opw */
	const char *job; /* a name to put before sentences; or NULL */
	uint32_t
		uid; /* whose job it is: what root saves is given to that user; 0: root, or oneself */
	uint64_t
		saved_limit; /* bytes: when what was saved has as many, no more is; 0: others see to it */
	bool keep_why;	     /* the sentence goes beside the minute, prefix-slow-120304.why.txt */
	ow_line_fn message; /* may be NULL */
	void *message_arg;
	void (*event)(void *arg, const struct anomaly_event *event); /* may be NULL */
	void *event_arg;
	/* Writes the answer about a stall beside the saved minute; may be NULL. */
	ow_status (*save_answer)(struct table *answer, const char *path, struct ow_error *err);
	/* Writes a part of a recording to a file. */
	ow_status (*save)(struct follow *f, struct follow_range *range, const char *path,
			  struct ow_error *err);
};

/* A rank whose steps are compared. */
struct anomaly_rank {
	int32_t rank;
	uint32_t pid; /* where it has no rank */
	uint64_t fed; /* number of its steps that were used */
	struct step_change change;
};

struct anomaly_watch {
	struct mem *mem;
	struct anomaly_options options;
	char *texts; /* our copies of the strings */
	size_t texts_size;
	struct watch watch;
	bool opened;
	struct anomaly_rank *ranks;
	size_t rank_count, rank_cap;
	uint32_t restarts;
	bool stalled;	     /* and that was reported; until the next step */
	int64_t quiet_until; /* monotonic: no further file before */
	uint64_t saved_bytes;
	bool full; /* nothing more is saved, and that was reported */
	/* The part of the recording to save as soon as it is complete. */
	bool pending;
	int64_t from_ns, to_ns; /* monotonic */
	char path[4352];
};

/* The facts of a change or a stall. */
struct anomaly_why {
	struct watch *watch;
	struct watch_file *file;
	const struct watch_rank *rank;
	struct step_change_found change;
	int64_t since_ns; /* wall: when the first longer step began; or when the last step ended */
	int64_t stalled_ns; /* for how long */
};
ow_status anomaly_explain_change(const struct anomaly_why *why, struct buf *to,
				 struct ow_error *err);
ow_status anomaly_explain_stall(const struct anomaly_why *why, struct buf *to,
				struct ow_error *err);

/* The frames of the main thread of a Python process, the innermost first, a line "name (file:line)" each, added to `to`. False when
 * they cannot be read, or not in the time that is left; what it took is subtracted from that. */
#define ANOMALY_STACK_NS 2000000000LL /* for all processes of a job */
bool anomaly_stack(pid_t pid, size_t frames_max, int64_t *left_ns, struct buf *to);

/* Where all ranks are and which one holds up the others, as a table of hang_table; NULL when the job has one rank. */
ow_status anomaly_hang(const struct anomaly_why *why, struct table **out, struct ow_error *err);

ow_status anomaly_init(struct anomaly_watch *a, struct mem *mem,
		       const struct anomaly_options *options, struct ow_error *err);
void anomaly_release(struct anomaly_watch *a);
/* Looks; `last`: the recording has ended, what is pending is saved. Only memory fails. The recording need not be there
 * yet. */
ow_status anomaly_turn(struct anomaly_watch *a, bool last, struct ow_error *err);

/* ---- in a thread of its own, with memory of its own; it reports and saves from there ---- */

struct anomaly_thread;
/* NULL in *out and an error when there is none. */
ow_status anomaly_start(const struct anomaly_options *options, struct anomaly_thread **out,
			struct ow_error *err);
/* After the recording was closed: looks for the last time, saves what is pending, and ends. NULL is fine. */
void anomaly_stop(struct anomaly_thread *thread);

struct anomaly_daemon;

/* `options` as for one job; recording, prefix and job are set for each. Files go to the daemon's folder. socket_path NULL:
 * as jobs_connect finds it. The daemon need not be there yet. */
ow_status anomaly_daemon_start(const char *socket_path, const struct anomaly_options *options,
			       struct anomaly_daemon **out, struct ow_error *err);
/* Saves what is pending, and ends. NULL is fine. */
void anomaly_daemon_stop(struct anomaly_daemon *daemon);

#endif
