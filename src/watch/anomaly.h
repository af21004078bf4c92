/*
 * anomaly.h: detects anomalies of a recorded job: steps that have become longer (step_change.h), or no step for long
 * although the processes live. It then reports the reason in one sentence (anomaly_why.c: which phase, operation and
 * rank grew, or where the job is) and saves the minute around it. It only reads the recording (watch.h), so it runs
 * beside the writer, in a thread of its own (anomaly_start) or from any loop that calls anomaly_turn. anomaly_daemon
 * does the same for all jobs of a daemon: it asks for the jobs like any client and reads their rings on disk.
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
	const char *job;  /* name of the job; NULL if it has none */
	const char *why;  /* the reason, as a sentence */
	/* path of the file with the minute around the anomaly; NULL: it is not saved */
	const char *file;
};

struct anomaly_options {
	/* steps that are longer by this share are reported (0.2: a fifth longer); 0: never */
	double slowdown;
	int64_t stall_ns;      /* no step for this long is reported; 0: never */
	const char *recording; /* path of a file, or of the folder of a daemon's job */
	/* prefix: saved files are called prefix-slow-120304.opw, prefix-stall-120304.opw */
	const char *prefix;
	const char *job; /* name of the job, printed before sentences; may be NULL */
	/* uid: owner of the job, to whom root gives saved files; 0: root, or the own user */
	uint32_t uid;
	/* saved_limit: no more is saved when saved files have this many bytes; 0: the caller limits them */
	uint64_t saved_limit;
	/* the sentence is also saved, beside the minute, as prefix-slow-120304.why.txt */
	bool keep_why;
	ow_line_fn message; /* receives messages; may be NULL */
	void *message_arg;
	/* receives each anomaly; may be NULL */
	void (*event)(void *arg, const struct anomaly_event *event);
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
	uint32_t pid; /* process id, if the process has no rank */
	uint64_t fed; /* number of the rank's steps that were passed to step_change */
	struct step_change change;
};

struct anomaly_watch {
	struct mem *mem;
	struct anomaly_options options;
	char *texts; /* memory of the copied strings of the options */
	size_t texts_size;
	struct watch watch;
	bool opened;
	struct anomaly_rank *ranks;
	size_t rank_count, rank_cap;
	uint32_t restarts;
	bool stalled;	     /* a stall was reported; reset by the next step */
	int64_t quiet_until; /* monotonic time: no further file is saved before it */
	uint64_t saved_bytes;
	bool full; /* saved_limit was reached, which was reported; nothing more is saved */
	/* The part of the recording to save as soon as it is complete. */
	bool pending;
	int64_t from_ns, to_ns; /* monotonic times */
	char path[4352];
};

/* The facts of a change or a stall, for a sentence. */
struct anomaly_why {
	struct watch *watch;
	struct watch_file *file;
	const struct watch_rank *rank;
	struct step_change_found change;
	/* wall-clock time at which the first longer step began, or the last step ended */
	int64_t since_ns;
	int64_t stalled_ns; /* how long there has been no step */
};
ow_status anomaly_explain_change(const struct anomaly_why *why, struct buf *to,
				 struct ow_error *err);
ow_status anomaly_explain_stall(const struct anomaly_why *why, struct buf *to,
				struct ow_error *err);

/* Appends the frames of the main thread of a Python process to `to`, the innermost first, a line "name (file:line)"
 * each. False when they cannot be read, or not within *left_ns; the time taken is subtracted from *left_ns. */
#define ANOMALY_STACK_NS 2000000000LL /* time limit for all processes of a job */
bool anomaly_stack(pid_t pid, size_t frames_max, int64_t *left_ns, struct buf *to);

/* The position of all ranks and the rank that holds up the others, as a table of hang_table; NULL when the job has
 * one rank. */
ow_status anomaly_hang(const struct anomaly_why *why, struct table **out, struct ow_error *err);

ow_status anomaly_init(struct anomaly_watch *a, struct mem *mem,
		       const struct anomaly_options *options, struct ow_error *err);
void anomaly_release(struct anomaly_watch *a);
/* Checks for anomalies. `last`: the recording has ended, so pending files are saved now. Fails only if memory runs
 * out. The recording need not exist yet. */
ow_status anomaly_turn(struct anomaly_watch *a, bool last, struct ow_error *err);

/* anomaly_turn in a separate thread with its own memory; it reports and saves from there. */

struct anomaly_thread;
/* Starts the thread; *out is NULL on failure. */
ow_status anomaly_start(const struct anomaly_options *options, struct anomaly_thread **out,
			struct ow_error *err);
/* Called after the recording was closed: checks for the last time, saves pending files, and ends the thread. NULL is
 * allowed. */
void anomaly_stop(struct anomaly_thread *thread);

struct anomaly_daemon;

/* Starts a thread for all jobs of a daemon. `options` are as for one job, except that recording, prefix and job are set
 * for each job; files go to the daemon's folder. socket_path NULL: the path that jobs_connect finds. The daemon need
 * not be running yet.
 */
ow_status anomaly_daemon_start(const char *socket_path, const struct anomaly_options *options,
			       struct anomaly_daemon **out, struct ow_error *err);
/* Saves pending files and ends the thread. NULL is allowed. */
void anomaly_daemon_stop(struct anomaly_daemon *daemon);

#endif
