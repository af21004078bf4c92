/*
 * read.h: functions of read.c, collective_args.c, task_events.c, worker_facts.c, worker_lines.c and job.c that other files of this folder and the tests
 * call.
 */
#ifndef RANKS_READ_H
#define RANKS_READ_H

#include "ranks/ranks.h"

/* The kind of collective that the name of a kernel, call or argument stands for. */
enum collective_kind collective_kind_of(struct str name);
void ranks_worker_release(struct worker *w, struct mem *mem);

/* Reads the arguments of a collective, a JSON object. Values from its kernel's arguments were read before and are kept. */
void collective_args(struct ranks_job *job, struct worker *w, struct collective *c,
		     struct str args);

/* The task in the name of a TensorFlow device, "/job:worker/replica:0/task:1"; empty when the device does not name a
 * task. */
struct str task_of_device(struct str device);
struct str track_device_name(const struct model *m, uint32_t track);
/* The task of a track. Streams of a GPU do not name their task: they belong to the only task of the source that is
 * not a server, if there is one. */
struct str task_of_track(const struct model *m, uint32_t track);
/* The job of a task, "worker", and (below) its number, 1. */
struct str task_job(struct str task);
int64_t task_number(struct str task);
/* Whether the task is a parameter server. */
bool task_is_server(struct str task);

enum task_event_kind {
	TASK_WORK,
	TASK_WAIT, /* neither work nor a message that can be paired */
	TASK_SEND,
	TASK_RECEIVE
};

/* The interpretation of a record of TensorFlow 1. */
struct task_event {
	enum task_event_kind kind;
	/* for messages: hash that is equal on both sides and unique within a run of a session */
	uint64_t edge;
	int64_t bytes; /* size of a message; -1 = unknown */
	bool transfer; /* a receive that only moves data: RecvTensor */
	bool input;    /* work that reads or decodes input */
};

/* Interprets a record; `args` are the bytes of the event in its file: a record of RunMetadata, or the arguments in a
 * timeline. */
struct task_event task_event_of(const struct model *m, uint32_t source, struct str device,
				struct str args);

/* The data that read.c passes to worker_lines_read while it reads a model. */
struct line_reading {
	struct ranks_job *job;
	struct model *m;
	const struct phases *phases;
	const uint32_t *worker_of; /* for each track: 1 + index of the worker; 0 = none */
	/* for each event: the host call that launched it; NULL if the model has no links */
	const uint32_t *launch;
	size_t first; /* index of the first worker of this model */
	struct arena *scratch;
};

/* Fills worker.lines of the workers from index `first` on; stays empty for recordings without call stacks. */
ow_status worker_lines_read(const struct line_reading *in, struct ow_error *err);

/* Copies the letters and digits of a name in lower case, so that "ncclDevKernel_AllReduce" and "all-reduce" contain
 * the same word. */
size_t worker_plain_name(struct str name, char *to, size_t size);

/* The position of a worker in the job, as the names of its track and process give it; -1 = not given. */
struct worker_place {
	int32_t dp, stage, tp;
};

struct worker_place worker_place_of(const struct model *m, uint32_t track);
/* A numeric fact that a recording states about itself; -1 if it states none. */
int64_t worker_fact_number(const struct model *m, uint32_t source, const char *key);
struct str worker_host(const struct model *m, uint32_t source);
/* The rank that the content of a recording gives. A rank taken from a number in the file name does not count. */
int32_t worker_rank(const struct model *m, uint32_t source);
/* The file of a source. Each file is one source, except for recordings with several ranks, where each rank is a
 * source: "x.opw!rank 1". */
uint32_t worker_file(const struct model *m, uint32_t source);

#endif
