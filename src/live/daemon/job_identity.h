/*
 * job_identity.h: which job a process belongs to, from its own data: a name that the user gave, the number of a
 * batch job, the address where the ranks of a distributed job meet, its container, or only the process itself.
 * Ancestors are the daemon's business (daemon_jobs.c). Pure functions.
 */
#ifndef LIVE_JOB_IDENTITY_H
#define LIVE_JOB_IDENTITY_H

#include "base/str.h"
#include "live/daemon/jobs.h"

/* From the surest to the least sure. */
enum identity_kind {
	IDENTITY_NAME, /* OPWATCH_JOB */
	IDENTITY_SLURM,
	IDENTITY_MASTER,    /* MASTER_ADDR and MASTER_PORT of a rank */
	IDENTITY_MPI,	    /* a rank: of the program that started it */
	IDENTITY_CONTAINER, /* another one than ours */
	IDENTITY_PROCESS
};

struct identity_facts {
	struct str variables;	/* NAME=VALUE and NUL each: ring_process.identity */
	struct str command;	/* words that end with NUL */
	const char *cgroup;	/* text of /proc/PID/cgroup, "" when it is not known */
	const char *our_cgroup; /* of the daemon */
	uint32_t uid, pid, parent;
};

struct job_identity {
	enum identity_kind kind;
	char key[192];		   /* equal for processes of one job */
	char name[JOBS_NAME];	   /* for people; several jobs may have the same */
	char shown[JOBS_NAME * 2]; /* "slurm 4711" */
};

void identity_find(const struct identity_facts *facts, struct job_identity *id);

/* RANK or a similar variable; -1 without any. */
int32_t identity_rank(struct str variables);
/* The value of a variable; no pointer when it is not there. */
struct str identity_variable(struct str variables, const char *name);
/* A job name from any text: printable, without slashes, cut to its size. */
void identity_clean_name(char *to, size_t size, struct str name);
/* The same for a name that identifies a job: one that is cut ends with a hash of the
 * whole, so two names that begin alike stay different. Only the first 128 bytes count, as in recorders. */
void identity_job_name(char to[JOBS_NAME], struct str name);

#endif
