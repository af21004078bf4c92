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
	uint64_t memory_limit; /* bytes that the library may hold; 0 = no limit */
	int64_t span_ns;       /* length of the time that counts as recent; 10 s by default */
	/* regular expression for the names of step slices, as in ow_open_options */
	const char *step_marker;
};
OW_API void ow_watch_options_init(struct ow_watch_options *options);

/* The phases of a step in display order: input, host, launch, ... Returns NULL after the last. */
#define OW_PHASES 12
OW_API const char *ow_phase_name(size_t index);

/* One rank of a job. */
struct ow_job_rank {
	/* number of the rank; -1 = the process has no rank and takes steps by itself */
	int32_t rank;
	int64_t pid; /* process that takes the steps; 0 = unknown */
	uint64_t steps;
	int64_t step_ns, last_ns; /* duration of the median recent step, and of the last step */
	/* part of step_ns without waiting for other ranks; shows the slowest rank */
	int64_t own_ns;
	int64_t phase_ns[OW_PHASES]; /* mean time of each phase in recent steps */
	/* steps per second in the last ten seconds; negative = no steps */
	double steps_per_s;
};

/* One op of a job. */
struct ow_job_op {
	const char *name;
	int64_t self_ns; /* own time of the op per step; per second if there are no steps */
	double runs;	 /* runs of the op per step; per second if there are no steps */
	/* part of the time of these steps that the op takes; above 1 if several threads run it */
	double share;
};

typedef enum {
	OW_JOB_RUNS,
	OW_JOB_ENDED, /* the recording was closed, or all processes have ended */
	OW_JOB_LOST   /* the file of the recording was removed */
} ow_job_state;

/* One job. Pointers are valid until the next ow_watch_turn. Unknown numbers are negative. */
struct ow_job {
	size_t size;
	const char *name; /* name of the program or of the job */
	const char *path; /* path of the job's first recording */
	ow_job_state state;
	uint32_t recordings, processes;
	const int64_t *pids; /* ids of the job's processes that run on this host */
	size_t pid_count;
	bool has_steps;
	uint64_t steps;		  /* number of steps seen so far */
	int64_t step_ns, last_ns; /* duration of the median recent step, and of the last step */
	/* how much longer the last steps took than the steps before: 0.1 = 10 %, or NAN */
	double trend;
	int64_t since_ns; /* time since the last step ended; without steps, since the last record */
	int64_t phase_ns
		[OW_PHASES]; /* mean time of each phase in recent steps, over all ranks; without steps, in recent time */
	double cpu;    /* number of processors that the job kept busy */
	double device; /* part of the time in which a device of the job worked, 0 to 1 */
	double gpu;    /* utilization that the NVIDIA driver of the host reports, 0 to 1 */
	const struct ow_job_rank *ranks;
	size_t rank_count;
	const struct ow_job_op *ops; /* costliest ops of the job */
	size_t op_count;
	const int64_t *recent; /* durations of the last steps of the first rank, oldest first */
	size_t recent_count;
	int32_t slowest_rank; /* rank that is slower than the others; -1 = none */
	double slowest_by;    /* how much slower that rank is than the median rank */
	uint64_t records, dropped, damaged;
	double cost; /* number of processors that watching this job uses now */
};

/* Creates a watch. The caller frees *watch. */
OW_API OW_MUST_CHECK ow_status ow_watch_new(const struct ow_watch_options *options,
					    ow_watch **watch, struct ow_error *err);
OW_API void ow_watch_free(ow_watch *watch);
/* Adds a recording. Several recordings may belong to one job. Reading starts with the next turn. */
OW_API OW_MUST_CHECK ow_status ow_watch_add(ow_watch *watch, const char *path,
					    struct ow_error *err);
/* Adds all jobs that run under the daemon of this host, or only the job with that name or number. Jobs
 * that are already watched are skipped. If socket is NULL, the daemon of the user is asked, and if there
 * is none, the daemon of root. Returns OW_E_NOT_FOUND if there is no daemon or no job of that name. */
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
	const char *name; /* name of the process as the kernel keeps it */
	/* the command line, at most 255 bytes; empty for threads of the kernel */
	const char *arguments;
	char state; /* state as in /proc: R, S, D, T, ... */
	uint32_t threads;
	/* start of the process in clock ticks since the host booted; distinguishes processes
	 * that had the same pid */
	uint64_t start;
	double cpu;	/* number of processors that the process keeps busy */
	double wait;	/* number of threads that wait for a processor, on average */
	int64_t memory; /* resident memory in bytes */
	double read_rate,
		/* bytes that calls of the process read and write per second; unknown for other
		 * users' processes */
		write_rate;
	const double *history; /* earlier values of cpu, oldest first */
	size_t history_count;
};

struct ow_host {
	size_t size;
	uint32_t cpus;
	double cpu;  /* number of processors that are busy */
	double load; /* load: threads that run or are ready to run, average of the last minute */
	int64_t memory_total, memory_used;
	/* bytes per second that disks read and write, and that networks receive and send */
	double disk_read, disk_written, received, sent;
	const double *history; /* earlier values of cpu, oldest first */
	size_t history_count;
};

/* One function of running processes. Shares cover the last seconds; a share of 1 means one
 * thread for all of that time. */
struct ow_function {
	size_t size;
	const char *name;
	const char *place; /* file and first line, or the library; may be empty */
	double own;	   /* share of samples in which the function is the innermost one */
	double total;	   /* share of samples whose stack contains the function */
	double cpu;	   /* part of `own` that was spent on a processor */
};

/* One thread of a process. */
struct ow_thread {
	size_t size;
	int64_t tid;
	const char *name; /* name of the thread as the kernel keeps it */
	char state;	  /* state as in /proc; X = the thread has ended in the last seconds */
	double cpu;	  /* part of the time that the thread was on a processor */
	double wait;	  /* part of the time that the thread waited for a processor */
};

/* Creates an empty list. The caller frees *processes. */
OW_API OW_MUST_CHECK ow_status ow_processes_new(ow_processes **processes, struct ow_error *err);
OW_API void ow_processes_free(ow_processes *processes);
/* Reads the processes in `pids`, with `children` also the processes that they started. pids NULL = all
 * processes of the host. Rates are known from the second turn on. */
OW_API OW_MUST_CHECK ow_status ow_processes_turn(ow_processes *processes, const int64_t *pids,
						 size_t count, bool children, struct ow_error *err);
/* Returns the number of processes, which are sorted by pid. */
OW_API size_t ow_processes_count(const ow_processes *processes);
/* Fills *process; the caller sets process->size. Returns false after the last process. Pointers are valid
 * until the next turn. */
OW_API bool ow_processes_get(const ow_processes *processes, size_t index,
			     struct ow_process *process);
/* Fills *process with the process of that pid, as ow_processes_get does. */
OW_API bool ow_processes_find(const ow_processes *processes, int64_t pid,
			      struct ow_process *process);
/* Fills *host; the caller sets host->size. */
OW_API void ow_processes_host(const ow_processes *processes, struct ow_host *host);
/* Samples the functions of these processes from now on, in a thread: Python functions of Python processes, native
 * functions of others. count 0 = stop. */
OW_API OW_MUST_CHECK ow_status ow_processes_sample(ow_processes *processes, const int64_t *pids,
						   size_t count, struct ow_error *err);
/* Reads the sampled functions and returns their number. Functions that were on a processor most come
 * first. *why becomes a sentence about processes that could not be sampled, or "". */
OW_API size_t ow_processes_functions(ow_processes *processes, const char **why);
/* Fills *function; the caller sets function->size. Returns false after the last function. */
OW_API bool ow_processes_function(const ow_processes *processes, size_t index,
				  struct ow_function *function);
/* Reads the threads of a process and returns their number. The busiest threads come first, threads that
 * have ended come last. Rates are known from the second call for the same process on. */
OW_API size_t ow_processes_threads(ow_processes *processes, int64_t pid);
/* Fills *thread; the caller sets thread->size. Returns false after the last thread. Pointers are valid
 * until the next reading. */
OW_API bool ow_processes_thread(const ow_processes *processes, size_t index,
				struct ow_thread *thread);
/* Sends a signal to the process that began at `start` (struct ow_process). If the pid now belongs to
 * another process, nothing is sent. */
OW_API OW_MUST_CHECK ow_status ow_process_signal(int64_t pid, uint64_t start, int number,
						 struct ow_error *err);

/* ---- the daemon --------------------------------------------------------------------------------- */

/* One daemon serves all jobs of a host. Recorded processes connect to its socket, and the daemon writes their records
 * to one ring of files per job. The recent past of a job can be cut out of its ring. If the daemon is killed and
 * restarted, the jobs continue. */
struct ow_daemon_options {
	size_t size;
	uint64_t memory_limit; /* bytes that the library may hold; 0 = no limit */
	/* NULL = $XDG_RUNTIME_DIR/opwatch/socket; for root /run/opwatch/socket */
	const char *socket;
	/* folder of the rings; NULL = /var/tmp/opwatch-UID; for root /var/lib/opwatch */
	const char *dir;
	uint64_t job_limit;   /* bytes on disk per job; 0 = 512 MiB */
	uint64_t total_limit; /* bytes on disk of all jobs; 0 = 4 GiB */
	bool all_users;	      /* root only: other users may connect and see their own jobs */
	/* do not open the socket through which dynolog reaches PyTorch jobs */
	bool no_kineto;
	int32_t metrics_port; /* serve /metrics on this port of 127.0.0.1; 0 = any free port; -1 = none */
	ow_line_fn message; /* receives lines for people; may be NULL */
	void *message_arg;
	/* Called at least once a second. Returns false to stop. */
	bool (*keep_going)(void *arg);
	void *keep_going_arg;
	const char *kineto_socket; /* socket for PyTorch jobs; NULL = the socket of dynolog */
	/* limits for slow steps and stalls, as in ow_record_options; files are saved in dir */
	double on_slowdown;
	int64_t on_stall_ns;
	/* how often the Python stacks of all jobs are sampled per second; 0 = only on request */
	uint32_t stacks_hz;
	/* show the names of jobs in /metrics to all users; otherwise only root and their owners
	 * see them */
	bool metrics_names;
	/* Destinations to which the daemon sends data. An unreachable destination is tried again; at most
	 * 8 MB wait for each one, and jobs never wait. */
	/* ClickHouse server (clickhouse://...) that receives roll-ups and anomalies of all jobs;
	 * NULL = none */
	const char *push;
	/* file with the password of that server; NULL = environment variable
	 * OPWATCH_CLICKHOUSE_PASSWORD */
	const char *password_file;
	/* OpenTelemetry collector (http://HOST:4318/v1/metrics) that receives metrics as JSON;
	 * token in OPWATCH_OTLP_TOKEN */
	const char *otlp;
	/* HTTP address that receives each anomaly as JSON; token in OPWATCH_ANOMALY_TOKEN */
	const char *anomaly_post;
	/* program that receives each anomaly as JSON on its standard input */
	const char *anomaly_run;
	int64_t push_every_ns; /* time between two roll-ups; 10 s by default */
	/* ADDRESS:PORT at which GET /jobs is answered for clients with the token; NULL = none */
	const char *listen;
	const char *token_file; /* file whose first line is the token, 16 to 32 characters */
	/* how often the whole host is sampled per second, into DIR/system; 0 = never */
	uint32_t system_hz;
	/* Send pseudonyms instead of the names of jobs, users, hosts and operators to push, otlp, anomaly_post and
	 * listen; anomalies then have no reason and no file. anomaly_run, a program on this host, gets the names. */
	bool redact;
};
OW_API void ow_daemon_options_init(struct ow_daemon_options *options);
/* Serves until it is cancelled. Returns OW_E_LIMIT if another daemon already serves this socket. */
OW_API OW_MUST_CHECK ow_status ow_daemon(const struct ow_daemon_options *options,
					 struct ow_error *err);

/* ---- jobs of the daemon -------------------------------------------------------------------------- */

/* In all functions below, socket NULL means the daemon of the user or, if there is none, the daemon of
 * root. A job is named by its name or number. All of these functions return OW_E_NOT_FOUND if there is no
 * daemon or no job of that name. */

/* Lists the jobs of this user; for root, all jobs. The caller frees *result. */
OW_API OW_MUST_CHECK ow_status ow_jobs(const char *socket, ow_result **result,
				       struct ow_error *err);
/* Lists the slow steps and stalls that the daemon found (on_slowdown, on_stall_ns), the latest first.
 * Columns: job, kind, reason, time, and the file with the minute around it, once that minute is over. The
 * caller frees *result. */
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
	int64_t covers_ns; /* time from the first record to the last one */
	uint64_t samples;  /* number of sampled stacks */
};
/* Writes the last last_ns of a job (0 = everything in its ring) as a recording. The job may have ended.
 * The call writes to out_path + ".part-" + the pid of this process and then renames the file. The caller
 * sets summary->size; summary may be NULL. */
OW_API OW_MUST_CHECK ow_status ow_job_cut(const char *socket, const char *job, int64_t last_ns,
					  const char *out_path, struct ow_cut_summary *summary,
					  struct ow_error *err);
/* Records a job from now on, for options.duration_ns, until the job ends or until options.keep_going
 * returns false. With options.stacks_hz the daemon also samples the Python stacks of the job. The caller
 * sets summary->size; summary may be NULL. */
OW_API OW_MUST_CHECK ow_status ow_job_follow(const char *socket, const char *job,
					     const char *out_path,
					     const struct ow_record_options *options,
					     struct ow_cut_summary *summary, struct ow_error *err);

#ifdef __cplusplus
}
#endif
#endif
