/*
 * hang.h: why a job of many processes hangs: which rank did not enter which collective. Evidence from many
 * files (flight recorder dumps, logs, dumps of stacks, our own recordings) becomes one struct hang_job; hang_table
 * follows the waits from rank to rank and returns the answer as a table. Called by the library.
 *
 *	hang_init(&job, mem);
 *	hang_read(&job, &input, &known, err);		for each file; known: it was one of these formats
 *	hang_add_model(&job, model, file, err);		for recordings of our own
 *	hang_table(&job, table, err);
 *	hang_release(&job);
 *
 * It opens no files, and does not know which file belongs to which process except by what the file says.
 */
#ifndef HANG_HANG_H
#define HANG_HANG_H

#include "base/arena.h"
#include "base/input.h"
#include "base/map.h"
#include "base/str.h"
#include "base/vec.h"
#include "table/table.h"

#define HANG_NO_RANK (-1)
#define HANG_NO_SEQUENCE INT64_MIN
#define HANG_RANK_MAX (1 << 20) /* limit of ranks: no job has this many processes */
#define HANG_STACK_FRAMES 24u
#define NOTE_FILE_MOST ((size_t)200) /* limit in bytes for the name of a file in a note */

enum hang_state { HANG_SCHEDULED, HANG_STARTED, HANG_COMPLETED };

/* How the rank of a process was found; earlier values are more certain. */
enum rank_source {
	RANK_GIVEN, /* the file states the rank */
	/* the only rank that is a member of all groups that the process used, or that its messages name */
	RANK_MEMBER,
	RANK_GROUPS,   /* the only rank that is a member of all groups that the dump lists */
	RANK_COMMAND,  /* from the command line of the process */
	RANK_FILE_NAME /* from the file's name, because the content does not state it */
};

/* A collective or message, as one process recorded it. */
struct hang_op {
	uint32_t process, group;
	int64_t sequence; /* sequence number within the group; HANG_NO_SEQUENCE: unknown */
	int64_t order;	  /* index among the operations of the process */
	int32_t from,
		/* from, to: for a message, ranks within the group until hang_table converts them to ranks of the
		 * job; -1: none */
		to;
	bool message;
	bool timed_out; /* the program itself gave up waiting */
	uint8_t state;
	struct str name; /* name of the operation: all_reduce */
	struct str key;	 /* the name in a form for comparison: allreduce */
	struct str types;
	int64_t elements; /* elements of the inputs; -1: unknown */
	/* seen_ns: the last time that the dump has for the operation */
	int64_t created_ns, seen_ns, timeout_ns;
	/* stack at which the operation was called; innermost frame first */
	struct str stack;
};

/* The last sequence numbers that a process entered and completed in a group, as its dump states them. */
struct hang_progress {
	uint32_t process, group;
	int64_t entered, completed; /* -1: unknown */
};

struct hang_group {
	struct str name, about;
	int32_t *members; /* ranks of the job, in the order of the group; NULL: unknown */
	size_t member_count;
};

/* One file, or one rank of a log with many ranks. */
struct hang_process {
	int32_t rank;
	enum rank_source rank_from;
	struct str file;
	/* the collectives of the process are known, so one that is not listed was not entered */
	bool has_ops;
	bool only_active;  /* only collectives that are not complete are listed */
	bool torn;	   /* the dump ends early: an operation that is not listed is unknown */
	bool starts_known; /* "scheduled" means not started; false: starts were not recorded */
	bool ended;	   /* the process has ended */
	/* the file belongs to another job, or is an older dump of the same rank */
	bool left_out;
	int64_t world;	    /* number of processes of the job; 0: unknown */
	int64_t last_ns;    /* the latest time in the file; 0: none */
	int64_t written_ns; /* when the file was written; 0: unknown */
	struct str ended_why;
	bool ended_likely; /* that the process ended is concluded, not stated */
	struct str stack;  /* stack of the main thread; innermost frame first, one frame per line */
	int64_t stack_since_ns,
		/* stack_since_ns, stack_until_ns: the time for which the stack is known to be the same; 0: one
		 * moment */
		stack_until_ns;
	/* From a recording: collectives of all groups, and the longest time between two. */
	int64_t entered, completed, longest_gap_ns;
	bool counts_all; /* the counts begin at the start of the program */
};

/* The name of a file, and the text that replaces it. */
struct hang_hidden {
	struct str name, shown;
};

struct hang_job {
	struct mem *mem;
	struct arena arena;
	struct map texts;
	struct str *text_items;
	size_t text_count, text_cap;
	struct hang_process *processes;
	size_t process_count, process_cap;
	struct hang_group *groups;
	size_t group_count, group_cap;
	struct hang_op *ops;
	size_t op_count, op_cap;
	struct hang_progress *progress;
	size_t progress_count, progress_cap;
	struct str *notes; /* notes about the inputs, for the answer */
	size_t note_count, note_cap;
	struct str *unread; /* files that were not read */
	size_t unread_count, unread_cap;
	struct hang_hidden *hidden; /* filled by hang_redact */
	size_t hidden_count, hidden_cap;
	size_t files_read, files_unreadable, files_torn, duplicates, other_jobs;
	bool guessed; /* something is only likely, so that no conclusion is certain */
	bool no_memory;
};

void hang_init(struct hang_job *job, struct mem *mem);
void hang_release(struct hang_job *job);

/* Reads a file if its format is known. *known false: the format is unknown, and nothing was added. Damage is counted
 * and noted. */
ow_status hang_read(struct hang_job *job, const struct input *in, bool *known,
		    struct ow_error *err);
/* Adds the ranks of an opwatch recording: stacks at its end, and collectives. */
ow_status hang_add_model(struct hang_job *job, struct model *m, const char *file,
			 struct ow_error *err);
/* Adds a file that was not read, and the reason. */
void hang_add_unreadable(struct hang_job *job, const char *file, const char *why);

/* redact.c: replaces the user's names of files, functions and groups by hashes. Called after all files are read,
 * before hang_table. */
ow_status hang_redact(struct hang_job *job, struct ow_error *err);
/* The name of a file, and a note, as they may be shown after redaction. */
struct str hang_shown_file(const struct hang_job *job, struct str file);
void hang_shown_note(const struct hang_job *job, struct str note, struct buf *to);

/* Makes the answer, with rows for all ranks of the job. */
ow_status hang_table(struct hang_job *job, struct table *out, struct ow_error *err);

/* A copy of a text that lives as long as the job; equal texts share one copy. If memory runs out the copy is empty
 * and job->failed is set. */
struct str hang_text(struct hang_job *job, struct str text);
void hang_note(struct hang_job *job, const char *format, ...) OW_PRINTF(2, 3);
/* Adds a process; UINT32_MAX if memory runs out. */
uint32_t hang_add_process(struct hang_job *job, struct str file);
/* The process of a rank in a file; it is added if there is none. */
uint32_t hang_process_of(struct hang_job *job, struct str file, int32_t rank);
/* The group with this name and these members (NULL: unknown); it is added if there is none. */
uint32_t hang_find_group(struct hang_job *job, struct str name, struct str about,
			 const int32_t *members, size_t count);
/* An operation in which nothing is known. */
struct hang_op hang_new_op(uint32_t process, uint32_t group);
/* Sets name and key from "nccl:all_reduce", "ALLREDUCE", "ncclAllReduce" and similar names, and the ends of messages
 * from "nccl:send 0->1". */
void hang_name_op(struct hang_job *job, struct hang_op *op, struct str name);
void hang_add_op(struct hang_job *job, const struct hang_op *op);
/* The progress of a process in a group; it is added if there is none. NULL if memory runs out. */
struct hang_progress *hang_progress_of(struct hang_job *job, uint32_t process, uint32_t group);
/* The rank in a command line: --rank=3, RANK=3; HANG_NO_RANK if there is none. */
int32_t hang_rank_in(struct str command);
/* The last number in a file's name; HANG_NO_RANK if there is none. */
int32_t hang_rank_of_file(struct str file);

/* Whether a function enters a collective or waits for one. */
bool hang_is_collective_call(struct str function, struct str file);
/* Whether a function waits for a device or for other ranks although its name does not show it: backward,
 * synchronize. */
bool hang_is_waiting_call(struct str function, struct str file);

/* Formats: each …_is_… function recognises its own files by their first bytes. */

bool flight_is_dump(const struct input *in, struct str head);
ow_status flight_read(struct hang_job *job, const struct input *in, struct str head,
		      struct ow_error *err);
bool pyspy_is_dump(struct str head);
ow_status pyspy_read(struct hang_job *job, const struct input *in, struct str head,
		     struct ow_error *err);
/* Reads a log. A log is recognised by its lines: *known is true when one of them has a known form. */
ow_status hang_log_read(struct hang_job *job, const struct input *in, bool *known,
			struct ow_error *err);

#endif
