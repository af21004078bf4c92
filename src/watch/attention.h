/*
 * attention.h: waits for trouble of a job that is recorded: steps that have become longer (change.h), or no step for long
 * although its processes live. Then it says why in one sentence (attention_why.c: which phase grew, which operation, on
 * which rank; or where the job stands) and has the minute around it saved.
 *
 * It reads the recording as anybody may (watch.h), so it runs beside the one who writes it, in a thread of its own
 * (attention_start) or in whatever loop calls attention_turn.
 */
#ifndef WATCH_ATTENTION_H
#define WATCH_ATTENTION_H

#include "watch/change.h"
#include "watch/watch.h"

struct attention_options {
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
	ow_line_fn message; /* may be NULL */
	void *message_arg;
	/* Writes a part of a recording to a file. */
	ow_status (*save)(struct follow *f, struct follow_range *range, const char *path,
			  struct error *err);
};

/* A rank whose steps are compared. */
struct attention_rank {
	int32_t rank;
	uint64_t fed; /* steps of it that were seen */
	struct change change;
};

struct attention {
	struct mem *mem;
	struct attention_options options;
	char *texts; /* our copies of the strings */
	size_t texts_size;
	struct watch watch;
	bool opened;
	struct attention_rank *ranks;
	size_t rank_count, rank_cap;
	uint32_t restarts;
	bool stalled;	     /* and that was told; until the next step */
	int64_t quiet_until; /* monotonic: no further file before */
	uint64_t saved_bytes;
	bool full; /* nothing more is saved, and that was told */
	/* What is to be saved once it is there. */
	bool pending;
	int64_t from_ns, to_ns; /* monotonic */
	char path[4352];
};

/* What is told of a change, or a stall. */
struct attention_why {
	struct watch *watch;
	struct watch_file *file;
	const struct watch_rank *rank;
	struct change_found change;
	int64_t since_ns; /* wall: when the first longer step began; or when the last step ended */
	int64_t stalled_ns; /* for how long */
};
ow_status attention_explain_change(const struct attention_why *why, struct buf *to,
				   struct error *err);
ow_status attention_explain_stall(const struct attention_why *why, struct buf *to,
				  struct error *err);

ow_status attention_init(struct attention *a, struct mem *mem,
			 const struct attention_options *options, struct error *err);
void attention_release(struct attention *a);
/* Looks; `last`: the recording has ended, what is pending is saved. Only memory fails. The recording need not be there
 * yet. */
ow_status attention_turn(struct attention *a, bool last, struct error *err);

/* ---- in a thread of its own, with memory of its own; it is told and saved from there ---- */

struct attention_thread;
/* NULL in *out and an error when there is none. */
ow_status attention_start(const struct attention_options *options, struct attention_thread **out,
			  struct error *err);
/* After the recording was closed: looks for the last time, saves what is pending, and ends. NULL is fine. */
void attention_stop(struct attention_thread *thread);

#endif
