/*
 * live.h: running jobs: watch recordings while they grow, run the daemon that serves all jobs of a host, and ask the
 * daemon about its jobs. Part of the public interface; opwatch.h explains the rules for errors, ownership, structs
 * and threads.
 */
#ifndef OPWATCH_LIVE_H
#define OPWATCH_LIVE_H

#include "opwatch/opwatch.h"
#include "opwatch/record.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- watch running jobs ------------------------------------------------------------------------ */

/* Reads recordings while they grow. Each turn analyses the new records as the views do, and keeps a summary of the
 * last steps. Memory and time are bounded: when records arrive too fast, only the latest are analysed. A file that is
 * truncated, replaced or removed does no harm. */
typedef struct ow_watch ow_watch;

struct ow_watch_options {
	size_t size;
	uint64_t memory_limit;	 /* bytes that the library may hold; 0 = no limit */
	int64_t span_ns;	 /* length of "recent"; 10 s by default */
	const char *step_marker; /* as in ow_open_options */
};
OW_API void ow_watch_options_init(struct ow_watch_options *options);

/* The phases of a step in display order: input, host, launch, ... Returns NULL after the last. */
#define OW_PHASES 12
OW_API const char *ow_phase_name(size_t index);

/* One rank of a job. */
struct ow_job_rank {
	int32_t rank; /* -1 = none: a process that takes steps by itself */
	int64_t pid;  /* of the process that takes the steps; 0 = unknown */
	uint64_t steps;
	int64_t step_ns, last_ns; /* median of recent steps; the last step */
	int64_t own_ns; /* of that, without waiting for other ranks; shows the slowest rank */
	int64_t phase_ns[OW_PHASES]; /* mean of recent steps */
	double steps_per_s;	     /* in the last ten seconds; negative = no steps */
};

/* One op of a job. */
struct ow_job_op {
	const char *name;
	int64_t self_ns; /* per step; per second if there are no steps */
	double runs;	 /* per step; per second if there are no steps */
	double share; /* part of the time of these steps; work of several threads may be above 1 */
};

typedef enum {
	OW_JOB_RUNS,
	OW_JOB_ENDED, /* the recording was closed, or all processes have ended */
	OW_JOB_LOST   /* the file was removed */
} ow_job_state;

/* One job. Pointers are valid until the next ow_watch_turn. Unknown numbers are negative. */
struct ow_job {
	size_t size;
	const char *name; /* the program, or the name of the job */
	const char *path; /* its first recording */
	ow_job_state state;
	uint32_t recordings, processes;
	const int64_t *pids; /* processes that run on this host */
	size_t pid_count;
	bool has_steps;
	uint64_t steps;		  /* seen so far */
	int64_t step_ns, last_ns; /* median of recent steps; the last step */
	double trend;	  /* growth of the last steps over those before: 0.1 = 10 %, or NAN */
	int64_t since_ns; /* time since the last step ended; without steps, since the last record */
	int64_t phase_ns
		[OW_PHASES]; /* mean of recent steps over all ranks; without steps, of recent time */
	double cpu;	     /* processors that the job kept busy */
	double device;	     /* part of the time in which a device worked, 0 to 1 */
	double gpu;	     /* utilization that the NVIDIA driver of the host reports, 0 to 1 */
	const struct ow_job_rank *ranks;
	size_t rank_count;
	const struct ow_job_op *ops; /* the costliest ops */
	size_t op_count;
	const int64_t *recent; /* durations of the last steps of the first rank, oldest first */
	size_t recent_count;
	int32_t slowest_rank; /* -1 = no rank stands out */
	double slowest_by;    /* how much slower than the median rank */
	uint64_t records, dropped, damaged;
	double cost; /* processors that watching this job takes now */
};

/* Creates a watch. The caller frees *watch. */
OW_API OW_MUST_CHECK ow_status ow_watch_new(const struct ow_watch_options *options,
					    ow_watch **watch, struct ow_error *err);
OW_API void ow_watch_free(ow_watch *watch);
/* Adds a recording. Several recordings may belong to one job. Reading starts with the next turn. */
OW_API OW_MUST_CHECK ow_status ow_watch_add(ow_watch *watch, const char *path,
					    struct ow_error *err);
/* Adds all jobs that run under the daemon of this host, or only the job with that name or number. Jobs that are
 * already watched are skipped. socket NULL: the daemon of the user, otherwise root's. Returns OW_E_NOT_FOUND if
 * there is no daemon or no job of that name. */
OW_API OW_MUST_CHECK ow_status ow_watch_add_jobs(ow_watch *watch, const char *socket,
						 const char *job, struct ow_error *err);
/* Reads the new records. *more (may be NULL) becomes true if there was too much for one turn. */
OW_API OW_MUST_CHECK ow_status ow_watch_turn(ow_watch *watch, bool *more, struct ow_error *err);
/* Returns the number of jobs after the last turn. */
OW_API size_t ow_watch_count(const ow_watch *watch);
/* Fills *job; the caller sets job->size. Returns false after the last job. */
OW_API bool ow_watch_job(const ow_watch *watch, size_t index, struct ow_job *job);
/* Saves the last span_ns of a job (at most two minutes) as a recording that only its owner can read. A job with several
 * recordings becomes one opwatch file with the permissions of the umask. */
OW_API OW_MUST_CHECK ow_status ow_watch_save(ow_watch *watch, size_t index, int64_t span_ns,
					     const char *path, struct ow_error *err);
/* Returns the last span_ns of a job (at most two minutes) as a frozen profile, which the caller frees. */
OW_API OW_MUST_CHECK ow_status ow_watch_profile(ow_watch *watch, size_t index, int64_t span_ns,
						ow_profile **profile, struct ow_error *err);

/* ---- processes of this host -------------------------------------------------------------------- */

/* Reads what processes use from /proc, twice or more. Nothing is stopped or written. Unknown numbers are negative. */
typedef struct ow_processes ow_processes;

struct ow_process {
	size_t size;
	int64_t pid, parent;
	const char *user;
	const char *name; /* as the kernel keeps it */
	const char *
		arguments; /* the command line, at most 255 bytes; empty for threads of the kernel */
	char state;	   /* R, S, D, T, ... */
	uint32_t threads;
	uint64_t
		start; /* when it began, in ticks since the start of the host: a later process of that pid has another */
	double cpu;	/* processors that it keeps busy */
	double wait;	/* threads that wait for a processor, on average; 1 = one all the time */
	int64_t memory; /* resident bytes */
	double read_rate,
		write_rate;    /* bytes per second, by calls; unknown for other users' processes */
	const double *history; /* of cpu, oldest first */
	size_t history_count;
};

struct ow_host {
	size_t size;
	uint32_t cpus;
	double cpu;  /* processors that are busy */
	double load; /* threads that run or want to, average of the last minute */
	int64_t memory_total, memory_used;
	double disk_read, disk_written, received, sent; /* bytes per second */
	const double *history;				/* of cpu, oldest first */
	size_t history_count;
};

/* One function of running processes. Shares are of the last seconds; 1 = one thread all the time. */
struct ow_function {
	size_t size;
	const char *name;
	const char *place; /* file and first line, or library; may be empty */
	double own;	   /* innermost */
	double total;	   /* anywhere in the stack */
	double cpu;	   /* of own: on a processor */
};

/* One thread of a process. */
struct ow_thread {
	size_t size;
	int64_t tid;
	const char *name; /* as the kernel keeps it */
	char state;	  /* as of a process; X = it has ended in the last seconds */
	double cpu;	  /* part of the time on a processor */
	double wait;	  /* part of the time that it waited for a processor */
};

/* Creates an empty list. The caller frees *processes. */
OW_API OW_MUST_CHECK ow_status ow_processes_new(ow_processes **processes, struct ow_error *err);
OW_API void ow_processes_free(ow_processes *processes);
/* Reads these processes, with `children` also those that they started; pids NULL = all of the host. Rates are known from
 * the second turn on. */
OW_API OW_MUST_CHECK ow_status ow_processes_turn(ow_processes *processes, const int64_t *pids,
						 size_t count, bool children, struct ow_error *err);
/* Returns the number of processes, which are sorted by pid. */
OW_API size_t ow_processes_count(const ow_processes *processes);
/* Fills *process; the caller sets process->size. Returns false after the last. Pointers are valid until the next turn. */
OW_API bool ow_processes_get(const ow_processes *processes, size_t index,
			     struct ow_process *process);
/* The same by pid. */
OW_API bool ow_processes_find(const ow_processes *processes, int64_t pid,
			      struct ow_process *process);
/* Fills *host; the caller sets host->size. */
OW_API void ow_processes_host(const ow_processes *processes, struct ow_host *host);
/* Samples the functions of these processes from now on, in a thread: Python functions of Python processes, native
 * functions of others. count 0 = stop. */
OW_API OW_MUST_CHECK ow_status ow_processes_sample(ow_processes *processes, const int64_t *pids,
						   size_t count, struct ow_error *err);
/* Reads the sampled functions; returns how many there are, those first that were on a processor most. *why becomes a sentence about what could not be
 * sampled, or "". */
OW_API size_t ow_processes_functions(ow_processes *processes, const char **why);
/* Fills *function; the caller sets function->size. Returns false after the last. */
OW_API bool ow_processes_function(const ow_processes *processes, size_t index,
				  struct ow_function *function);
/* Reads the threads of a process; returns how many there are, the busiest first, those that have ended last. Rates are known from
 * the second call for the same process on. */
OW_API size_t ow_processes_threads(ow_processes *processes, int64_t pid);
/* Fills *thread; the caller sets thread->size. Returns false after the last. Pointers are valid until the next reading. */
OW_API bool ow_processes_thread(const ow_processes *processes, size_t index,
				struct ow_thread *thread);
/* Sends a signal to a process that began at `start` (struct ow_process), never to another that has its pid now. */
OW_API OW_MUST_CHECK ow_status ow_process_signal(int64_t pid, uint64_t start, int number,
						 struct ow_error *err);

/* ---- the daemon --------------------------------------------------------------------------------- */

/* One daemon serves all jobs of a host. Recorded processes connect to its socket, and the daemon writes their records
 * to one ring of files per job. The recent past of a job can be cut out of its ring. If the daemon is killed and
 * restarted, the jobs continue. */
struct ow_daemon_options {
	size_t size;
	uint64_t memory_limit; /* bytes that the library may hold; 0 = no limit */
	const char
		*socket; /* NULL = $XDG_RUNTIME_DIR/opwatch/socket; for root /run/opwatch/socket */
	const char *
		dir; /* folder of the rings; NULL = /var/tmp/opwatch-UID; for root /var/lib/opwatch */
	uint64_t job_limit;   /* bytes on disk per job; 0 = 512 MiB */
	uint64_t total_limit; /* bytes on disk of all jobs; 0 = 4 GiB */
	bool all_users;	      /* root only: other users may connect and see their own jobs */
	bool no_kineto;	      /* do not open the socket of dynolog */
	int32_t metrics_port; /* serve /metrics on this port of 127.0.0.1; 0 = any free port; -1 = none */
	ow_line_fn message; /* receives lines for people; may be NULL */
	void *message_arg;
	/* Called at least once a second. Returns false to stop. */
	bool (*keep_going)(void *arg);
	void *keep_going_arg;
	const char *kineto_socket; /* NULL = that of dynolog */
	double on_slowdown;	   /* as in ow_record_options; files go to dir */
	int64_t on_stall_ns;
	uint32_t stacks_hz; /* Python stacks of all jobs per second; 0 = only on request */
	bool metrics_names; /* /metrics has names of jobs for all users, not for root and their owners alone */
	/* Destinations of what the daemon sends. An unreachable one is tried again; at most 8 MB wait for each, and jobs never
	 * wait. */
	const char *push; /* clickhouse://...: roll-ups and anomalies of all jobs; NULL = none */
	const char *
		password_file; /* of that server; else the environment variable OPWATCH_CLICKHOUSE_PASSWORD */
	const char *
		otlp; /* http://HOST:4318/v1/metrics: metrics of OpenTelemetry, as JSON; token in OPWATCH_OTLP_TOKEN */
	const char *
		anomaly_post; /* an address that gets each anomaly as JSON; token in OPWATCH_ANOMALY_TOKEN */
	const char
		*anomaly_run;  /* a program that gets each anomaly as JSON on its standard input */
	int64_t push_every_ns; /* 10 s by default */
	const char
		*listen; /* ADDRESS:PORT: answer GET /jobs there, with the token; NULL = nowhere */
	const char *token_file; /* its first line is the token, 16 to 32 characters */
	uint32_t system_hz; /* samples of the whole host per second, kept in DIR/system; 0 = none */
};
OW_API void ow_daemon_options_init(struct ow_daemon_options *options);
/* Serves until it is cancelled. Returns OW_E_LIMIT if another daemon already serves this socket. */
OW_API OW_MUST_CHECK ow_status ow_daemon(const struct ow_daemon_options *options,
					 struct ow_error *err);

/* ---- jobs of the daemon -------------------------------------------------------------------------- */

/* In all functions below, socket NULL means the daemon of the user, otherwise root's. A job is named by its
 * name or number. All of them return OW_E_NOT_FOUND if there is no daemon or no job of that name. */

/* Lists the jobs of this user; for root, all jobs. The caller frees *result. */
OW_API OW_MUST_CHECK ow_status ow_jobs(const char *socket, ow_result **result,
				       struct ow_error *err);
/* Lists what the daemon found with on_slowdown and on_stall_ns, the latest first: job, kind, why, time, and the file with the
 * minute around it, once that is over. The caller frees *result. */
OW_API OW_MUST_CHECK ow_status ow_job_anomalies(const char *socket, ow_result **result,
						struct ow_error *err);
/* Calls `line` with each environment variable (NAME=VALUE) that makes a process report to the daemon. */
OW_API OW_MUST_CHECK ow_status ow_job_environment(const char *socket, ow_line_fn line, void *arg,
						  struct ow_error *err);

/* Replaces this process by the program (argv ends with NULL), which reports to the daemon as part of that job.
 * Returns only on failure. job NULL: the daemon finds the job. Uses recorder and ring_records of the options. */
OW_API OW_MUST_CHECK ow_status ow_record_job(const char *const *argv, const char *socket,
					     const char *job,
					     const struct ow_record_options *options,
					     struct ow_error *err);
/* Makes running processes report to the daemon. The caller sets summary->size; summary may be NULL. */
OW_API OW_MUST_CHECK ow_status ow_attach_job(const int64_t *pids, size_t count, const char *socket,
					     const char *job,
					     const struct ow_record_options *options,
					     struct ow_record_summary *summary,
					     struct ow_error *err);
/* Removes the hooks from all processes of a job, which then stop reporting. */
OW_API OW_MUST_CHECK ow_status ow_detach_job(const char *socket, const char *job,
					     struct ow_error *err);

/* Writes at most `cap` pids of the running processes of a job; *count becomes their number. Returns OW_E_EMPTY if the
 * job has ended. */
OW_API OW_MUST_CHECK ow_status ow_job_pids(const char *socket, const char *job, int64_t *pids,
					   size_t cap, size_t *count, struct ow_error *err);

struct ow_cut_summary {
	size_t size;
	uint64_t records;
	uint32_t processes;
	int64_t covers_ns; /* from the first record to the last */
	uint64_t samples;  /* stacks */
};
/* Writes the last last_ns of a job (0 = all that is left) as a recording. The job may have ended. The call writes to
 * out_path + ".part-" + the pid of this process and then renames the file. The caller sets summary->size; summary
 * may be NULL. */
OW_API OW_MUST_CHECK ow_status ow_job_cut(const char *socket, const char *job, int64_t last_ns,
					  const char *out_path, struct ow_cut_summary *summary,
					  struct ow_error *err);
/* Records a job from now on, for options.duration_ns, until the job ends or until options.keep_going returns false. With
 * options.stacks_hz the daemon also samples its Python stacks. The caller sets summary->size; summary may be NULL. */
OW_API OW_MUST_CHECK ow_status ow_job_follow(const char *socket, const char *job,
					     const char *out_path,
					     const struct ow_record_options *options,
					     struct ow_cut_summary *summary, struct ow_error *err);

#ifdef __cplusplus
}
#endif
#endif
