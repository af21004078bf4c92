/*
 * job_identity.h: which job a process belongs to, from its own data: a name that the user gave, the number of a
 * batch job, the address where the ranks of a distributed job meet, its container, or only the process itself.
 * Ancestors are the daemon's business (daemon_jobs.c). Pure functions.
 */
#ifndef LIVE_JOB_IDENTITY_H
#define LIVE_JOB_IDENTITY_H

#include "base/str.h"
#include "live/daemon/jobs.h"

/* Ways to identify a job, from the most certain to the least certain. */
enum identity_kind {
	IDENTITY_NAME, /* the variable OPWATCH_JOB */
	IDENTITY_SLURM,
	IDENTITY_MASTER,    /* MASTER_ADDR and MASTER_PORT of a rank */
	IDENTITY_MPI,	    /* for a rank: the program that started it */
	IDENTITY_CONTAINER, /* a container other than ours */
	IDENTITY_PROCESS
};

struct identity_facts {
	struct str variables;	/* NAME=VALUE, each with a NUL: ring_process.identity */
	struct str command;	/* words of the command line, each with a NUL */
	const char *cgroup;	/* text of /proc/PID/cgroup, "" if unknown */
	const char *our_cgroup; /* cgroup of the daemon */
	uint32_t uid, pid, parent;
};

struct job_identity {
	enum identity_kind kind;
	char key[192];		   /* key that is equal for processes of one job */
	char name[JOBS_NAME];	   /* name for people; several jobs may have the same */
	char shown[JOBS_NAME * 2]; /* text such as "slurm 4711" */
};

void identity_find(const struct identity_facts *facts, struct job_identity *id);

/* Returns the value of RANK or a similar variable; -1 without any. */
int32_t identity_rank(struct str variables);
/* Returns the value of a variable; its ptr is NULL if it is missing. */
struct str identity_variable(struct str variables, const char *name);
/* Makes a job name from any text: printable, without slashes, cut to its size. */
void identity_clean_name(char *to, size_t size, struct str name);
/* Copies a name that identifies a job: a name that is cut ends with a hash of the whole, so that two names with the
 * same beginning stay different. Only the first 128 bytes count, as in recorders. */
void identity_job_name(char to[JOBS_NAME], struct str name);

#endif
