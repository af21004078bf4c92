/*
 * launch.h: starts a job under the recorder and records it until it ends. The job is the caller's child and shares
 * its terminal; signals that reach the caller are passed on. What the job starts is recorded, too, as long as it
 * keeps its environment. What runs on when the job's first process has ended is told, or waited for.
 */
#ifndef LIVE_LAUNCH_H
#define LIVE_LAUNCH_H

#include "live/collector.h"

struct launch {
	const char *const *argv;  /* ends with NULL */
	const char *recorder;	  /* path of the library */
	uint32_t ring_records;	  /* 0 = the usual */
	void (*begun)(void *arg); /* called when the program runs; NULL: nothing is */
	void *begun_arg;
	bool wait_children; /* goes on until nothing of the job runs, or a signal comes */
	bool started;	    /* out */
	int exit_code;	    /* out: of the job, or -1 */
	int exit_signal;    /* out: what ended it, or 0 */
	uint32_t left;	    /* out: processes that ran on when the recording ended */
};

/* Whether there is such a program at all, as execvp looks for it: so that nothing is begun for one that is not. */
bool launch_is_there(const char *program);
/* Runs the job to its end. Fails when it could not be started. */
ow_status launch_job(struct launch *launch, struct collector *c, struct error *err);

/* The recorder of this installation, or what OPWATCH_RECORDER says. */
ow_status recorder_find(char *path, size_t size, struct error *err);

#endif
