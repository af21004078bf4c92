/*
 * launch.h: starts a job under the recorder and records it until it ends. The job is a child of the caller and
 * shares its terminal; signals that reach the caller are passed on. Processes that the job starts are recorded as
 * long as they keep their environment. Processes that still run when the job's first process has ended are
 * reported, or waited for.
 */
#ifndef LIVE_LAUNCH_H
#define LIVE_LAUNCH_H

#include "base/arena.h"
#include "live/proc/proc.h"
#include "live/record/collector.h"

struct launch {
	const char *const *argv;  /* arguments, ends with NULL */
	const char *recorder;	  /* path of the recorder library */
	uint32_t ring_records;	  /* number of records per ring; 0 = the default */
	const char *step_marker;  /* name of the function whose calls begin steps; or NULL */
	void (*begun)(void *arg); /* called when the program runs; or NULL */
	void *begun_arg;
	bool wait_children; /* continue until no process of the job runs, or a signal comes */
	bool started;	    /* result: the program was started */
	int exit_code;	    /* result: exit code of the program, or -1 */
	int exit_signal;    /* result: signal that ended the program, or 0 */
	/* result: number of processes that still ran when the recording ended */
	uint32_t left;
};

/* Returns whether execvp would find the program; checked before anything is created. */
bool launch_is_there(const char *program);
/* Runs the job to its end. Fails if it could not be started. */
ow_status launch_job(struct launch *launch, struct collector *c, struct ow_error *err);

/* Finds the recorder of this installation, or the one that OPWATCH_RECORDER names. */
ow_status recorder_find(char *path, size_t size, struct ow_error *err);

/* Checks a step marker: a possible name of a function; NULL is allowed. */
ow_status step_marker_check(const char *name, struct ow_error *err);

/* Returns the environment of this process with the recorder's variables; NULL if memory runs out. */
char *const *environment_make(struct arena *arena, const char *recorder, const char *socket_path,
			      uint32_t ring_records, const char *step_marker, bool once);

/* Adds the running processes, ordered by their numbers. False if memory runs out. */
bool surviving_children_find(const struct collector *c, struct pid_list *list);
/* Writes "2 processes that it started still run: 4711 (python3), 4712 (sh)"; the verb is `one`
 * or `many`. */
void surviving_children_describe(const struct pid_list *list, const char *one, const char *many,
				 char *to, size_t size);

#endif
