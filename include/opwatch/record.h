/*
 * record.h: make new profiles: a program records its own steps, opwatch records another program, samples the stacks
 * of running processes, or asks the profiler in a job for a trace. Part of the public interface; opwatch.h explains
 * the rules for errors, ownership, structs and threads.
 */
#ifndef OPWATCH_RECORD_H
#define OPWATCH_RECORD_H

#include "opwatch/opwatch.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- a program records itself ------------------------------------------------------------------ */

/* A program writes its own steps, slices of time and values into an opwatch file while it runs. The file opens as
 * any profile, also during the recording. Data written by a call survives when the process is killed; only closing
 * protects it against a crash of the machine. Any thread may call these functions; a call takes well below a
 * microsecond. After a fork, calls in the child do nothing, and closing only frees.
 *
 * A write failure (for example, a full disk) does not disturb the program: the recorder stops writing, and
 * ow_recorder_close returns the error. */
typedef struct ow_recorder ow_recorder;

struct ow_recorder_options {
	size_t size;
	uint64_t memory_limit; /* bytes that the library may hold; 0 = no limit */
	int64_t first_step;    /* number of the first step without an explicit number */
};
OW_API void ow_recorder_options_init(struct ow_recorder_options *options);

/* Starts a file and replaces an existing regular file. Programs that have the old file open keep it. The caller
 * closes *recorder. */
OW_API OW_MUST_CHECK ow_status ow_recorder_open(const char *path,
						const struct ow_recorder_options *options,
						ow_recorder **recorder, struct ow_error *err);
/* Completes the file and frees the recorder, also on failure. No other thread may use the recorder. */
OW_API OW_MUST_CHECK ow_status ow_recorder_close(ow_recorder *recorder, struct ow_error *err);
/* Returns false in a forked child, where the recorder writes nothing. */
OW_API bool ow_recorder_is_ours(const ow_recorder *recorder);

/* Returns the current time for the functions below: nanoseconds since 1970, from a clock that does not jump. */
OW_API int64_t ow_recorder_now(const ow_recorder *recorder);
/* Returns a number for a text (UTF-8, at most 4096 bytes). The same text has the same number. Returns 0 if there is
 * no memory; events with the name 0 are still recorded. */
OW_API uint32_t ow_recorder_name(ow_recorder *recorder, const char *text, size_t len);
/* Names the calling thread. */
OW_API void ow_recorder_name_thread(ow_recorder *recorder, uint32_t name);
/* Starts a step and ends the current one. INT64_MIN as number = the next number; as start_ns = now. Returns the number
 * of the step. */
OW_API int64_t ow_recorder_step(ow_recorder *recorder, int64_t number, int64_t start_ns);
/* Ends the current step now. If `drop` is true, the step is discarded. */
OW_API void ow_recorder_end_step(ow_recorder *recorder, bool drop);
/* Records a slice on this thread, from its last mark or slice (or the start of the step) until now. */
OW_API void ow_recorder_mark(ow_recorder *recorder, uint32_t name);
OW_API void ow_recorder_slice(ow_recorder *recorder, uint32_t name, int64_t start_ns,
			      int64_t end_ns);
/* Records a number that changes over time: a loss, a learning rate. */
OW_API void ow_recorder_value(ow_recorder *recorder, uint32_t name, double value);

/* ---- record other programs --------------------------------------------------------------------- */

/* opwatch loads a recording library into a program without changing the program. The file then holds the operators of
 * PyTorch, reads and writes of files, OpenCL commands and socket calls. The file opens as any profile, also during
 * the recording. Data in the file survives when a process is killed. Lost records are counted. */
struct ow_record_options {
	size_t size;
	uint64_t memory_limit; /* bytes that the library may hold; 0 = no limit */
	const char *recorder;  /* path of libopwatch-recorder.so; NULL = the installed one */
	/* records per thread that fit into the ring; a power of two; 0 = the default */
	uint32_t ring_records;
	uint64_t file_limit; /* largest size of the file in bytes; 0 = no limit */
	/* how often Python stacks are read per second, from outside the process; 0 = never */
	uint32_t stacks_hz;
	ow_line_fn message; /* receives lines for people; may be NULL */
	void *message_arg;
	int64_t duration_ns; /* for ow_attach: stop after this time; 0 = when the processes end */
	/* For ow_attach: called many times a second. Returns false to stop. */
	bool (*keep_going)(void *arg);
	void *keep_going_arg;
	/* Save the minute around a problem to a file next to the recording, and report the reason to `message`, from
	 * another thread. on_slowdown: a step takes this much longer than the steps before (0.2 = 20 %); on_stall_ns:
	 * no step ends for this long while processes run. 0 = off. */
	double on_slowdown;
	int64_t on_stall_ns;
	/* For ow_record: after the program ends, continue until the processes that it left
	 * behind end. SIGINT, SIGTERM, SIGHUP and SIGQUIT then end only the recording. */
	bool wait_children;
	/* For ow_record_job: fail if the program cannot be recorded. Otherwise it runs unrecorded, and
	 * `message` receives the reason. */
	bool must_record;
	/* Name of a function whose calls begin the steps, at most 127 bytes; NULL = none. It may be a
	 * function of a library, of the program itself (ow_record) or of Python, or a call that is
	 * recorded anyway. */
	const char *step_marker;
};
OW_API void ow_record_options_init(struct ow_record_options *options);

struct ow_record_summary {
	size_t size;
	bool started;
	/* exit code of the program; -1 = ended by a signal; 127 or 126 = could not be started */
	int exit_code;
	int exit_signal; /* signal that ended the program; 0 = none */
	uint32_t processes, refused_processes;
	uint64_t records;
	uint64_t dropped;   /* number of records that were lost because rings were full */
	uint64_t unnamed;   /* number of texts and threads that did not fit into their tables */
	int64_t stopped_ns; /* for ow_attach: the longest time that a thread was stopped */
	bool hooks_left;    /* for ow_attach: a process did not remove its hooks in time */
	/* for ow_attach: time that a stopped thread waited for a processor; not part of
	 * stopped_ns */
	int64_t waited_ns;
	/* for ow_record: number of processes that still ran when the recording ended */
	uint32_t left_processes;
};

/* Runs a program to its end and records it. argv ends with NULL. During the call SIGINT, SIGTERM, SIGHUP, SIGQUIT,
 * SIGUSR1, SIGUSR2 and SIGCHLD are blocked in the calling thread; signals sent by other processes are passed on to
 * the program. Returns OW_OK also if the program fails; returns an error if the program cannot be started or the file
 * cannot be written. The caller sets summary->size; summary may be NULL. */
OW_API OW_MUST_CHECK ow_status ow_record(const char *const *argv, const char *out_path,
					 const struct ow_record_options *options,
					 struct ow_record_summary *summary, struct ow_error *err);

/* Records running processes and the processes they fork. At the end the hooks are removed; the library stays in
 * memory, but does nothing. Needs permission to trace the processes. If some processes cannot be attached, the call
 * reports them to `message` and records the others. The caller sets summary->size; summary may be NULL. */
OW_API OW_MUST_CHECK ow_status ow_attach(const int64_t *pids, size_t count, const char *out_path,
					 const struct ow_record_options *options,
					 struct ow_record_summary *summary, struct ow_error *err);

/* ---- sample stacks ----------------------------------------------------------------------------- */

/* opwatch reads Python stacks (CPython 3.8 to 3.13) of running processes from outside: it does not stop them, load
 * code or write to their memory. The kernel must allow this: for own processes (unless Yama forbids it) or as root. */
struct ow_stacks_summary {
	size_t size;
	/* number of times that stacks were sampled; late_ticks: times missed because the machine
	 * was busy */
	uint64_t ticks, late_ticks;
	uint64_t samples; /* number of sampled stacks of threads */
	/* number of stacks dropped because they changed while they were read */
	uint64_t torn;
	int64_t cpu_ns; /* processor time that the sampling used; 0 until the end */
	int64_t elapsed_ns;
	uint32_t processes, alive;
	/* Number of ticks that were skipped to keep the sampling below 1 % of a processor (in
	 * proportion above 100 Hz). */
	uint64_t left_out;
};

struct ow_stacks_options {
	size_t size;
	uint32_t hz;	  /* samples per second */
	int64_t for_ns;	  /* how long to sample; 0 = until all processes end */
	bool no_children; /* do not sample child processes */
	bool native; /* also sample native stacks of the given processes, which need not be Python */
	uint64_t memory_limit; /* largest size of the profile in bytes; 0 = no limit */
	/* Called before each sample. Returns false to stop; the samples so far are kept. */
	bool (*progress)(void *arg, const struct ow_stacks_summary *so_far);
	void *progress_arg;
};
OW_API void ow_stacks_options_init(struct ow_stacks_options *options);

/* Samples the stacks of processes. *profile is a frozen profile with the metrics `wall` and `cpu` and one track per
 * thread. Processes may end or be killed at any time. The caller frees *profile. summary may be NULL. */
OW_API OW_MUST_CHECK ow_status ow_stacks_record(const int64_t *pids, size_t count,
						const struct ow_stacks_options *options,
						ow_profile **profile,
						struct ow_stacks_summary *summary,
						struct ow_error *err);
/* Returns the current stacks: one row per frame, innermost first. The caller frees *result. */
OW_API OW_MUST_CHECK ow_status ow_stacks_now(const int64_t *pids, size_t count,
					     const struct ow_stacks_options *options,
					     ow_result **result, struct ow_error *err);

/* ---- sample the whole host ---------------------------------------------------------------------- */

/* Samples all processes of the host through the kernel (perf_event_open): nothing is loaded into them. Needs root,
 * CAP_PERFMON, or kernel.perf_event_paranoid of 0 or less. */
struct ow_system_options {
	size_t size;
	uint32_t hz;	       /* samples per second and processor; 99 by default */
	int64_t for_ns;	       /* how long to sample; 0 = until keep_going returns false */
	bool no_waits;	       /* do not sample the places where threads wait */
	uint64_t memory_limit; /* bytes that the library may hold; 0 = no limit */
	/* Called some fifty times a second. Returns false to stop; the samples so far are kept. */
	bool (*keep_going)(void *arg);
	void *keep_going_arg;
};
OW_API void ow_system_options_init(struct ow_system_options *options);

struct ow_system_summary {
	size_t size;
	uint32_t cpus, processes;
	uint64_t samples; /* number of samples of threads on a processor */
	uint64_t waits;	  /* number of times that a thread left its processor */
	uint64_t lost;	  /* number of records for which the kernel had no room */
	int64_t elapsed_ns;
	int64_t cpu_ns; /* processor time that the sampling used */
};

/*
 * Samples the host. *profile is a frozen profile with one track per thread, the metrics `cpu-clock` (on a
 * processor), `offcpu-time` (waiting) and `run-queue` (ready to run, without a processor), and counters of
 * the resources of each process. The caller frees *profile. summary may be NULL; the caller sets
 * summary->size.
 */
OW_API OW_MUST_CHECK ow_status ow_record_system(const struct ow_system_options *options,
						ow_profile **profile,
						struct ow_system_summary *summary,
						struct ow_error *err);

/* ---- ask a job for a trace ---------------------------------------------------------------------- */

struct ow_capture_options {
	size_t size;
	const char *address; /* HOST:PORT of the profiler service */
	const char *dir;     /* folder for the trace; created if necessary */
	int64_t for_ns;	     /* how long the job records */
	int64_t wait_ns;     /* how long to wait for the answer after the recording */
	uint64_t memory_limit;
	/* Called about five times a second. Returns false to cancel. */
	bool (*keep_going)(void *arg);
	void *keep_going_arg;
	/* for ow_capture_kineto: socket that jobs poll; NULL = the socket of dynolog */
	const char *socket;
};
OW_API void ow_capture_options_init(struct ow_capture_options *options);

struct ow_capture_summary {
	size_t size;
	uint64_t bytes;
	char path[4352]; /* path of the file with the XSpace as received */
};
/* Asks the profiler service in a TensorFlow 2 or JAX job for a trace (gRPC without TLS). On failure there is no
 * partial file. Needs libnghttp2 at build time, otherwise returns OW_E_UNSUPPORTED. The caller sets summary->size;
 * summary may be NULL. */
OW_API OW_MUST_CHECK ow_status ow_capture_tf(const struct ow_capture_options *options,
					     struct ow_capture_summary *summary,
					     struct ow_error *err);

/* Asks PyTorch jobs on this host for traces. The jobs must have been started with KINETO_USE_DAEMON=1. They poll the
 * UNIX socket of dynolog, which opwatch opens during the call, and write their traces into options.dir. Ends when
 * all jobs that polled (or all in `pids`) have written, or after wait_ns. `message` receives one line per file. */
OW_API OW_MUST_CHECK ow_status ow_capture_kineto(const struct ow_capture_options *options,
						 const int64_t *pids, size_t pid_count,
						 ow_line_fn message, void *message_arg,
						 struct ow_error *err);

#ifdef __cplusplus
}
#endif
#endif
