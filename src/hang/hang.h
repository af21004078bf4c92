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
#define HANG_RANK_MAX (1 << 20) /* no job has as many processes */
#define HANG_STACK_FRAMES 24u
#define NOTE_FILE_MOST ((size_t)200) /* bytes of the name of a file in a note */

enum hang_state { HANG_SCHEDULED, HANG_STARTED, HANG_COMPLETED };

/* Why a rank has the number that it has; what comes first is surer. */
enum rank_source {
	RANK_GIVEN, /* the file says it */
	RANK_MEMBER, /* the only rank that is a member of all groups that the process used, or that its messages name */
	RANK_GROUPS,   /* the only one that is in all groups that the dump lists */
	RANK_COMMAND,  /* of the command line of the process */
	RANK_FILE_NAME /* nothing in the file says it */
};

/* A collective or message, as one process saw it. */
struct hang_op {
	uint32_t process, group;
	int64_t sequence; /* within its group; HANG_NO_SEQUENCE: not known */
	int64_t order;	  /* among the operations of its process */
	int32_t from,
		to; /* of a message: ranks within the group until hang_table makes them ranks of the job; -1 */
	bool message;
	bool timed_out; /* the program itself gave up waiting */
	uint8_t state;
	struct str name; /* all_reduce */
	struct str key;	 /* the same for comparison: allreduce */
	struct str types;
	int64_t elements;			 /* of the inputs; -1: not known */
	int64_t created_ns, seen_ns, timeout_ns; /* seen: the last time that the dump has of it */
	struct str stack;			 /* where it was called; innermost first */
};

/* What a process says of a group as a whole: the last sequence numbers that it entered and completed. */
struct hang_progress {
	uint32_t process, group;
	int64_t entered, completed; /* -1: not known */
};

struct hang_group {
	struct str name, about;
	int32_t *members; /* ranks of the job, in the order of the group; NULL: not known */
	size_t member_count;
};

/* A file, or a rank of a log with many. */
struct hang_process {
	int32_t rank;
	enum rank_source rank_from;
	struct str file;
	bool has_ops;	  /* its collectives are known, so one that is not listed was not entered */
	bool only_active; /* only collectives that are not complete are listed */
	bool torn;	  /* the dump ends early: what is not there is not known */
	bool starts_known;  /* "scheduled" means not started; else starts were not recorded */
	bool ended;	    /* the process is not there any more */
	bool left_out;	    /* of another job, or an older dump of the same rank */
	int64_t world;	    /* processes of the job; 0: not known */
	int64_t last_ns;    /* the last time in it; 0: none */
	int64_t written_ns; /* when the file was written; 0: not known */
	struct str ended_why;
	bool ended_likely; /* that it ended is concluded, not said */
	struct str stack;  /* what its main thread does; innermost first, one frame a line */
	int64_t stack_since_ns,
		stack_until_ns; /* that it is known to have done that; 0: a moment */
	/* Of a recording: collectives of all groups, and the longest time between two. */
	int64_t entered, completed, longest_gap_ns;
	bool counts_all; /* from the start of the program */
};

/* The name of a file, and what stands for it. */
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
	struct str *notes; /* what is to be said of the inputs */
	size_t note_count, note_cap;
	struct str *unread; /* files that were not read */
	size_t unread_count, unread_cap;
	struct hang_hidden *hidden; /* set by hang_redact */
	size_t hidden_count, hidden_cap;
	size_t files_read, files_unreadable, files_torn, duplicates, other_jobs;
	bool guessed; /* something is only likely: enough that nothing is certain */
	bool no_memory;
};

void hang_init(struct hang_job *job, struct mem *mem);
void hang_release(struct hang_job *job);

/* Reads a file whose format it knows. *known false: it does not, and nothing was added. Damage is counted and noted. */
ow_status hang_read(struct hang_job *job, const struct input *in, bool *known,
		    struct ow_error *err);
/* The ranks of a recording of our own: stacks at its end, and collectives. */
ow_status hang_add_model(struct hang_job *job, struct model *m, const char *file,
			 struct ow_error *err);
/* Something that was not read, and why. */
void hang_add_unreadable(struct hang_job *job, const char *file, const char *why);

/* redact.c: replaces the names of files, functions and groups of the user by hashes. After all is read, before hang_table. */
ow_status hang_redact(struct hang_job *job, struct ow_error *err);
/* A file's name and a note as they may be shown. */
struct str hang_shown_file(const struct hang_job *job, struct str file);
void hang_shown_note(const struct hang_job *job, struct str note, struct buf *to);

/* The answer, with rows for all ranks of the job. */
ow_status hang_table(struct hang_job *job, struct table *out, struct ow_error *err);

/* ---- for the readers ---- */

/* A copy that lives as long as the job, the same for the same text. Empty without memory, which is remembered. */
struct str hang_text(struct hang_job *job, struct str text);
void hang_note(struct hang_job *job, const char *format, ...) OW_PRINTF(2, 3);
/* A new process, or UINT32_MAX. */
uint32_t hang_add_process(struct hang_job *job, struct str file);
/* The process of a rank in the same file; made if there is none. */
uint32_t hang_process_of(struct hang_job *job, struct str file, int32_t rank);
/* The group of that name with these members (NULL: not known), made if there is none. */
uint32_t hang_find_group(struct hang_job *job, struct str name, struct str about,
			 const int32_t *members, size_t count);
/* An operation with nothing known. */
struct hang_op hang_new_op(uint32_t process, uint32_t group);
/* Sets name and key from "nccl:all_reduce", "ALLREDUCE", "ncclAllReduce" and their like; and the ends of messages
 * from "nccl:send 0->1". */
void hang_name_op(struct hang_job *job, struct hang_op *op, struct str name);
void hang_add_op(struct hang_job *job, const struct hang_op *op);
/* The progress of the process in the group; a new one when there is none yet. NULL without memory. */
struct hang_progress *hang_progress_of(struct hang_job *job, uint32_t process, uint32_t group);
/* The rank that the words of a command say: --rank=3, RANK=3; or HANG_NO_RANK. */
int32_t hang_rank_in(struct str command);
/* The last number in a file's name, or HANG_NO_RANK. */
int32_t hang_rank_of_file(struct str file);

/* Whether a function enters a collective or waits for one. */
bool hang_is_collective_call(struct str function, struct str file);
/* Whether a function waits for a device or for other ranks although its name does not say so: backward, synchronize. */
bool hang_is_waiting_call(struct str function, struct str file);

/* ---- formats; each says whether the file is one of its own, by its first bytes ---- */

bool flight_is_dump(const struct input *in, struct str head);
ow_status flight_read(struct hang_job *job, const struct input *in, struct str head,
		      struct ow_error *err);
bool pyspy_is_dump(struct str head);
ow_status pyspy_read(struct hang_job *job, const struct input *in, struct str head,
		     struct ow_error *err);
/* A log is known by its lines: *known when one of them says something. */
ow_status hang_log_read(struct hang_job *job, const struct input *in, bool *known,
			struct ow_error *err);

#endif
