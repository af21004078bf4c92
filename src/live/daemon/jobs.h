/*
 * jobs.h: talks to the daemon of a host (live/daemon/daemon.h): which jobs it has, where their rings on disk are,
 * which processes belong to them, and a few actions. Used by the commands that name a job; the daemon uses the
 * structs.
 *
 * Requests go over the same socket as recorded processes: packets of fixed structs. Both ends are on the same
 * machine; a version number detects ends that were built from different headers. Users see their own jobs, root
 * sees all.
 *
 * The ring of a job is a folder of files, 000001.opw and on, each an ordinary recording (wire/own/opw.h).
 * The last file grows. A new file is started now and then and the oldest are removed, to stay below a limit. A
 * reader opens first_file to last_file and must expect that the first one has just been removed.
 */
#ifndef LIVE_JOBS_H
#define LIVE_JOBS_H

#include "base/error.h"
#include "base/mem.h"
#include "table/table.h"

#include <sys/types.h>

#define JOBS_VERSION 2u
#define JOBS_ASK_MAGIC "OPW-ASK\n"
#define JOBS_SAY_MAGIC "OPW-SAY\n"
#define JOBS_NAME 64
#define JOBS_PATH 320
#define JOBS_SOCKET_PATH 108

enum job_state {
	JOB_RUNNING = 1, /* the job has recorded processes */
	/* the job ran before the daemon was restarted and has not reconnected yet */
	JOB_AWAITED,
	JOB_ENDED /* the job has ended; its ring is kept for a while */
};

struct job_info {
	uint32_t id; /* number of the ring; a daemon never uses a number twice */
	uint32_t state;
	uint32_t uid;
	uint32_t ranks;	    /* number of different ranks; 1 for a job without ranks */
	uint32_t processes; /* number of processes that are recorded now */
	uint32_t pid;	    /* pid of the first process */
	int64_t since_ns;   /* time of day when the job first connected */
	int64_t ended_ns;   /* time of day when the job ended, or 0 */
	uint64_t records, dropped;
	uint64_t steps;
	/* median of the last steps of the process with the most steps; 0: none seen */
	int64_t step_ns;
	uint64_t disk_bytes;
	uint64_t saved_bytes;		/* size of saved incidents next to the ring */
	uint32_t first_file, last_file; /* numbers of the ring's files; 0: no file yet */
	char name[JOBS_NAME];
	char framework[JOBS_NAME];
	char identity[JOBS_NAME * 2]; /* how the job was identified: "slurm 4711", "process 815" */
	char folder[JOBS_PATH];	      /* folder of the job's ring */
};

/* A process that is recorded now. */
struct job_process {
	uint32_t job; /* id of the job */
	uint32_t pid, parent;
	uint32_t number; /* number of the process in the recording */
	int32_t rank;	 /* rank of the process; -1: none */
	uint32_t zero;
	uint64_t records, steps;
	int64_t step_ns;
};

/* The daemon that answers. */
struct job_server {
	uint32_t pid, uid;
	int64_t since_ns;
	uint64_t job_limit, total_limit; /* limits in bytes on disk */
	uint32_t metrics_port;		 /* port of the metrics page; 0: none */
	uint32_t has_kineto;
	char version[32];
	char folder[JOBS_PATH];
	char socket_path[JOBS_SOCKET_PATH];
	uint32_t zero;
};

/* A process that polls for requests because of KINETO_USE_DAEMON=1. */
struct job_kineto {
	uint32_t pid, state; /* pid, and enum kineto_state */
	int64_t kineto_job;
	uint64_t size;
	char path[600]; /* path of the process's trace */
};

/* A job that became slow or stalled, and the file that was saved. */
struct job_anomaly {
	uint32_t job;	 /* id of the job */
	uint32_t saved;	 /* 1: the file with the minute around it exists; 0: it will */
	int64_t time_ns; /* time of day when the anomaly was found */
	uint64_t bytes;	 /* size of the file */
	char kind[8];	 /* kind of the anomaly: slow or stall */
	char name[JOBS_NAME];
	char path[576];
	char why[344]; /* sentences, one per line; empty: unknown */
};

/* Messages on the wire. */

enum jobs_ask {
	JOBS_ASK_LIST = 1,
	JOBS_ASK_FLUSH, /* argument job: write its buffered data to disk before the answer */
	/* arguments pid and name: this process will join and is part of that job */
	JOBS_ASK_EXPECT,
	/* argument job: its processes remove their hooks; with pid: only that process */
	JOBS_ASK_STOP,
	/* arguments pid (0: all), path of a folder, and duration ns. Without a path: ask for the
	 * state of the request */
	JOBS_ASK_KINETO,
	/* argument job: sample its Python stacks hz (in pid) times a second for the next ns */
	JOBS_ASK_STACKS,
	JOBS_ASK_ANOMALIES
};

struct jobs_request {
	char magic[8];
	uint32_t version, kind;
	uint32_t job, pid;
	int64_t ns;
	char name[JOBS_NAME];
	char path[JOBS_PATH];
};

enum jobs_say {
	JOBS_SAY_SERVER = 1, /* struct job_server follows */
	JOBS_SAY_JOB,	     /* struct job_info follows */
	JOBS_SAY_PROCESS,    /* struct job_process follows */
	JOBS_SAY_KINETO,     /* struct job_kineto follows */
	JOBS_SAY_FAILED,     /* an error text follows */
	JOBS_SAY_END,	     /* last message of an answer */
	JOBS_SAY_ANOMALY     /* struct job_anomaly follows */
};

struct jobs_head {
	char magic[8];
	uint32_t version, kind;
	uint32_t size; /* size of the data that follows */
	uint32_t status;
};
#define JOBS_PACKET (sizeof(struct jobs_head) + 1024)
_Static_assert(sizeof(struct job_info) <= 1024 && sizeof(struct job_server) <= 1024 &&
		       sizeof(struct job_kineto) <= 1024 && sizeof(struct job_anomaly) <= 1024,
	       "a packet");

/* Requests to the daemon. */

/* A complete answer of the daemon. */
struct jobs {
	struct mem *mem;
	struct job_server server;
	struct job_info *items;
	size_t count, cap;
	struct job_process *processes;
	size_t process_count, process_cap;
	struct job_kineto *kinetos;
	size_t kineto_count, kineto_cap;
	struct job_anomaly *anomalies; /* anomalies, the latest first */
	size_t anomaly_count, anomaly_cap;
};

/* how long to wait for an answer, because the daemon may wait for a disk */
#define JOBS_PATIENCE_NS ((int64_t)60000000000)

/* Asks the daemon at the path, or else the user's, or else root's, and reads the whole answer. OW_E_NOT_FOUND when
 * no daemon runs, OW_E_LIMIT when it has not answered within that time. `asked` (or NULL) receives the path of the socket,
 * also on failure. */
ow_status jobs_ask_within(struct jobs *jobs, struct mem *mem, const char *socket_path,
			  const struct jobs_request *request, int64_t patience_ns,
			  char asked[JOBS_SOCKET_PATH], struct ow_error *err);
/* Sends a request and waits up to a minute. */
ow_status jobs_ask(struct jobs *jobs, struct mem *mem, const char *socket_path,
		   const struct jobs_request *request, struct ow_error *err);
ow_status jobs_list(struct jobs *jobs, struct mem *mem, const char *socket_path,
		    struct ow_error *err);
void jobs_release(struct jobs *jobs);

/* Finds a job by its name or number; of several with the same name the running one, or else the
 * last one. */
ow_status jobs_find(const struct jobs *jobs, const char *name, const struct job_info **job,
		    struct ow_error *err);
/* jobs_table.c: the columns of the list, with their descriptions. */
void jobs_columns(struct table *r);
/* Adds these columns and one row per job. */
ow_status jobs_fill_table(const struct jobs *jobs, struct table *r, struct ow_error *err);
/* Adds the columns and rows of anomalies. */
ow_status jobs_fill_anomalies(const struct jobs *jobs, struct table *r, struct ow_error *err);
/* Writes the path of a file of the job's ring. */
void job_file_path(const struct job_info *job, uint32_t number, char *path, size_t size);
const char *job_state_name(uint32_t state);

/* Returns $XDG_RUNTIME_DIR/opwatch or else /tmp/opwatch-UID; for root /run/opwatch. Creates nothing. */
void runtime_dir(char *to, size_t size);
/* The places where a client looks for a socket, one after the other: only that of $OPWATCH_SOCKET when that is set. False
 * after the last; empty when there is nothing. */
bool runtime_socket(unsigned index, char *to, size_t size);
/* Returns the socket of the user's daemon, or $OPWATCH_SOCKET, whether it exists or not. */
void runtime_usual_socket(char *to, size_t size);
/* Returns the folder of rings: /var/tmp/opwatch-UID, for root /var/lib/opwatch. */
void runtime_data_dir(char *to, size_t size);

/* Creates the folder unless it exists. An existing one must belong to this user, not be a link, and be
 * writable only by its owner. */
ow_status runtime_make_dir(const char *path, mode_t mode, struct ow_error *err);

#endif
