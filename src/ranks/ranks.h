/*
 * ranks.h: many recordings, one job: who was there, whose clock is how far off, who waits for whom, and which worker is slower than its peers.
 * Files are read one at a time: ranks_add keeps a compact summary of each worker (its collectives, the pauses of its own work around them, its
 * steps), so that the model can be freed at once. ranks_finish then compares the workers. Called by the library for `opwatch ranks`.
 *
 *	ranks_init(&job, mem);
 *	for each file: ranks_add(&job, model, path, err);
 *	ranks_finish(&job, err);  ranks_table(&job, table, err);
 *	ranks_release(&job);
 *
 * A worker is a process with its devices: a rank. Traces of other tools that hold a whole job in one file have several, each with a
 * data-parallel number and a pipeline stage. Nothing here takes a rank from the name of a file.
 */
#ifndef RANKS_RANKS_H
#define RANKS_RANKS_H

#include "analyze/steps/phases.h"
#include "table/table.h"

#define NO_STEP INT64_MIN

/* What a collective does, which decides who has to wait for whom. */
enum collective_kind {
	COLLECTIVE_NONE,
	COLLECTIVE_ALL_REDUCE,
	COLLECTIVE_ALL_GATHER,
	COLLECTIVE_REDUCE_SCATTER,
	COLLECTIVE_ALL_TO_ALL,
	COLLECTIVE_BARRIER,
	COLLECTIVE_BROADCAST,
	COLLECTIVE_REDUCE,
	COLLECTIVE_GATHER,
	COLLECTIVE_SCATTER,
	COLLECTIVE_SEND,
	COLLECTIVE_RECV,
	COLLECTIVE_SEND_RECV, /* of a kernel that does not say which */
	COLLECTIVE_OTHER,
	COLLECTIVE_KINDS
};
extern const char *const collective_names[COLLECTIVE_KINDS];

/* Whether no rank can leave before the last has come. */
static inline bool collective_is_mutual(enum collective_kind kind)
{
	return kind >= COLLECTIVE_ALL_REDUCE && kind <= COLLECTIVE_BARRIER;
}

static inline bool collective_is_direct(enum collective_kind kind)
{
	return kind == COLLECTIVE_SEND || kind == COLLECTIVE_RECV;
}

/* One collective of one worker, in the worker's own time. */
struct collective {
	int64_t start_ns, end_ns;
	int64_t ready_ns;	  /* when the worker's own work allowed it, at most start_ns */
	uint64_t group;		  /* hash of what names the group; 0 = it has no name */
	uint64_t name;		  /* hash of the name */
	int64_t seq;		  /* within the group; -1 = unknown */
	int64_t bytes;		  /* -1 = unknown */
	int64_t step;		  /* number of its step, NO_STEP = in none */
	int32_t group_size, peer; /* -1 = unknown; peer: the root, source or destination */
	uint32_t ordinal; /* among those of its step (and name, where groups have no names) */
	uint32_t meeting; /* 1 + the meeting; 0 = not paired */
	uint8_t kind;
	uint8_t forward; /* sends and receives between stages: 1 forward, 2 backward, 0 unknown */
	bool checked;	 /* the list of its group's ranks was read */
	bool launched;	 /* the call that started it is known */
	bool doubtful;	 /* its step shares time with others: it may be of another one */
};

/* When own work that waits for a collective can begin: clocks of devices and rounding let it begin a little before the collective ends. */
static inline int64_t collective_done(const struct collective *c)
{
	int64_t slack = (c->end_ns - c->start_ns) / 20;

	return c->end_ns - (slack < 2000 ? 2000 : slack > 50000 ? 50000 : slack);
}

/* A pause of the worker's own work in which a collective ended; of a worker of a file with many, any pause. */
struct pause {
	int64_t begin_ns, end_ns;
	int64_t before_ns; /* sum of the pauses before it */
};

struct worker_step {
	int64_t number, start_ns, end_ns;
	enum step_use use;
	bool compared;		       /* one of ranks_job.step_numbers */
	int64_t class_ns[CLASS_COUNT]; /* shares; add up to the step */
	uint64_t slices;	       /* of own work */
	int64_t own_ns;		       /* set by replay.c: the step less waits and transfers */
	int64_t wait_ns, transfer_ns;  /* of collectives, also below own work; set by waits.c */
	int64_t others_ns;	       /* median of the peers' own work; set by peers.c */
};

/* Own work of a worker of a file with many: when it ended, and what it was. */
struct timed_work {
	int64_t end_ns;
	uint64_t name;
};

#define LABELS 16 /* kinds of own work that a replay distinguishes; 0 stands for all others */

struct worker_op {
	uint64_t name;
	struct str text;
	int64_t ns;
	uint64_t count;
	uint64_t float_ops; /* of one run */
	uint32_t row;	    /* of the model, while it is read */
};

/* A line of the program's own code, "file:12 function": what it took in the steady steps of the recording. */
struct worker_line {
	struct str text;
	uint64_t name; /* hash of the text */
	int64_t host_ns, device_ns;
};

enum straggler_kind {
	STRAGGLER_NONE,
	STRAGGLER_PERSISTENT,
	STRAGGLER_TRANSIENT,
	STRAGGLER_PERIODIC
};
extern const char *const straggler_names[];

enum cause {
	CAUSE_NONE,
	CAUSE_INPUT,
	CAUSE_HOST,
	CAUSE_COMPUTE,
	CAUSE_MORE_WORK,
	CAUSE_CLOCK_FREQUENCY,
	CAUSE_COMMUNICATION,
	CAUSE_UNKNOWN
};
extern const char *const cause_names[];

/* t + offset is the time of the reference, from `from_ns` on. */
struct clock_piece {
	int64_t from_ns;
	double offset_ns, drift; /* at origin_ns; relative */
	int64_t origin_ns;
};

/* Over the steps that are steady on all ranks: the median step; means of the others, so that they sum to the collectives. */
struct rank_means {
	int64_t step_ns, own_ns, wait_ns, transfer_ns;
	size_t count;
};

struct worker {
	struct str path, host;
	int32_t rank, world; /* -1 = unknown */
	int32_t dp, stage, tp;
	uint32_t file;	 /* which of the files, from 0 */
	uint32_t source; /* its row in the model that it was read from */
	int64_t pid, first_ns, last_ns;
	uint64_t hash; /* of times: equal in copies */
	uint64_t events;
	int64_t resolution_ns;		/* of its times: 1 or 1000 */
	struct collective *collectives; /* by start */
	size_t collective_count, collective_cap;
	struct pause *pauses; /* by time */
	size_t pause_count, pause_cap;
	struct worker_step *steps; /* by time */
	size_t step_count, step_cap;
	struct worker_op *ops;
	size_t op_count, op_cap;
	struct worker_line *lines; /* of recordings with call stacks */
	size_t line_count, line_cap;
	struct timed_work *timed; /* by time */
	size_t timed_count, timed_cap;
	double frequency; /* of its device, where a counter gives it, in the counter's unit; 0 = unknown */
	bool has_device;
	bool many; /* one of several in its file, which has no calls of the host: pauses are not own work */
	bool left_out;	      /* a copy, or of another job */
	const char *outsider; /* why it is not of this job; NULL = it may be */
	uint32_t strange; /* collectives of groups without its rank, or unlike those of its group */
	/* ---- clock ---- */
	bool has_clock; /* its times can be compared with the reference */
	struct clock_piece *pieces;
	size_t piece_count, piece_cap;
	int64_t offset_ns;
	double drift_ppm;
	int64_t likely_ns, proven_ns;
	uint64_t pairs_used, pairs_rejected;
	bool waits_unknown; /* too many of its collectives have no partner on a known clock */
	bool has_totals; /* of all steps, computed elsewhere: `totals` replaces the means of those here */
	struct rank_means totals;
	/* ---- straggler ---- */
	enum straggler_kind straggler;
	double slowdown_caused; /* NaN = unknown */
	bool slow_with_others;	/* alone it costs nothing: others are as slow at the same time */
	enum cause cause;
	uint32_t slow_steps, judged_steps;
	char evidence[384];
	struct str
		slow_line; /* where a straggler spends more time than its peers; empty = unknown */
	int64_t line_excess_ns; /* that time, per steady step */
};

/* One collective of all the workers that took part in it. */
struct meeting {
	uint32_t first, count; /* in `members` */
	uint8_t kind;
	bool rejected; /* its times contradict each other */
	bool complete; /* all members of its group are among the files */
	bool together; /* all members were recorded from one moment on: a wait before it leaves no trace */
	uint64_t group;
	int64_t last_ns; /* when the last one arrived, in the reference's time; TIME_UNKNOWN without clocks */
	int64_t step;
	float link_scale; /* 0, or what its transfer is multiplied with to be like groups like its own; set by links.c */
};

struct member {
	uint32_t worker, collective;
};

enum clock_state { CLOCK_SHARED, CLOCK_FITTED, CLOCK_IMPOSSIBLE };
enum blame { BLAME_NONE, BLAME_RANK, BLAME_STAGE, BLAME_EXPERT, BLAME_HOST, BLAME_LINK };
extern const char *const clock_names[];
extern const char *const blame_names[];

struct size_speed {
	uint8_t kind;
	int64_t bytes;
	uint64_t count;
	double median_ns;
	double bus_rate; /* bytes per ns */
};

/* The parts of a group's name: name, description, ranks. */
struct group_name {
	uint64_t hash; /* struct collective.group */
	struct str name;
};

/* A group that moves data more slowly than groups like it: a collective of one size. */
struct slow_link {
	uint32_t meeting; /* any meeting of the group, for its members */
	uint8_t kind;
	int64_t bytes; /* -1 = unknown */
	size_t alike;  /* groups that it was compared with */
	double median_ns, others_ns;
};

struct ranks_job {
	struct mem *mem;
	struct arena arena;
	struct worker *workers;
	size_t worker_count, worker_cap;
	uint32_t file_count;
	struct group_name *groups;
	size_t group_count, group_cap;
	struct meeting *meetings;
	size_t meeting_count, meeting_cap;
	struct member *members;
	size_t member_count, member_cap;
	uint64_t unpaired; /* collectives without a partner that is certain */
	int64_t world;	   /* -1 = unknown */
	bool mixed_jobs;
	char mixed_why[256];
	uint32_t *copies; /* workers whose recording is a copy of another's */
	size_t copy_count, copy_cap;
	uint32_t *others; /* workers of another run or job */
	size_t other_count, other_cap;
	enum clock_state clock;
	char clock_why[256];
	bool waits_known;
	char waits_why[192];
	int64_t *step_numbers; /* steady on all workers that are compared, ascending */
	size_t step_count, step_cap;
	int64_t step_ns;       /* median; TIME_UNKNOWN without steps */
	size_t steps_added_up; /* by a server; 0: means are of the steps that are compared here */
	double slowdown;       /* NaN = unknown */
	double slowdown_together; /* of all stragglers at once; NaN = unknown */
	double replay_error;
	enum blame blame;
	int64_t *blamed; /* ranks, stages, … */
	size_t blamed_count, blamed_cap;
	char blame_why[448];
	struct size_speed *speeds;
	size_t speed_count, speed_cap;
	double alpha_ns, beta_ns_per_byte; /* NaN = unknown */
	int32_t stages;			   /* of a pipeline; 0 = none are known */
	int64_t micro_batches;		   /* per step and worker; 0 = unknown */
	double bubble, bubble_ideal; /* parts of a step in which stages are idle; NaN = unknown */
	struct slow_link *slow_links;
	size_t slow_link_count, slow_link_cap;
};

#define RANKS_GROUPS_MOST 4096 /* groups whose names are kept */

void ranks_init(struct ranks_job *job, struct mem *mem);
void ranks_release(struct ranks_job *job);
/* read.c: adds the workers of a frozen model. A model without any timed work adds none. */
ow_status ranks_add(struct ranks_job *job, struct model *m, struct str path, struct ow_error *err);
/* Moves the workers of a part, which has the same mem, to the job: threads read files into parts. The caller releases the part. */
ow_status ranks_join(struct ranks_job *job, struct ranks_job *part, struct ow_error *err);
ow_status ranks_finish(struct ranks_job *job, struct ow_error *err);
/* ranks_table.c: one row per worker; the map of ranks and steps is the extra "map". */
ow_status ranks_table(struct ranks_job *job, struct table *out, struct ow_error *err);
void ranks_columns(struct table *t); /* only the columns, with their sentences */

/* align.c: moves all times of a frozen model to the clock of its lowest rank; where that cannot be known a note says so. */
struct builder;
ow_status ranks_align(struct builder *b, struct ow_error *err);

/* ---- parts, in the order of their work ---- */

/* identity.c: copies, other jobs, missing ranks. */
ow_status ranks_identify(struct ranks_job *job, struct ow_error *err);
/* pair.c: meetings. */
ow_status ranks_pair(struct ranks_job *job, struct ow_error *err);
/* clock.c: the clocks of the workers, in the reference's time. */
ow_status ranks_clocks(struct ranks_job *job, struct ow_error *err);
/* pair_rest.c: collectives that pair.c left over, by time. */
ow_status ranks_pair_rest(struct ranks_job *job, struct ow_error *err);
/* outsiders.c: sets workers aside that are not of this job; then the rest has to be paired again. */
ow_status ranks_outsiders(struct ranks_job *job, bool *found, struct ow_error *err);
/* identity.c: leaves a worker out, which is of another job or run, and says why. */
ow_status ranks_set_aside(struct ranks_job *job, uint32_t worker, struct ow_error *err,
			  const char *why);
/* waits.c: waits and transfers, bandwidths. */
ow_status ranks_waits(struct ranks_job *job, struct ow_error *err);
/* links.c: groups that move data more slowly than groups like them. */
ow_status ranks_links(struct ranks_job *job, struct ow_error *err);
/* straggler.c: own work against peers; blame. */
ow_status ranks_stragglers(struct ranks_job *job, struct ow_error *err);
/* pipeline.c: stages of ranks that do not say theirs, from who sends to whom; later how much the stages are idle. */
void ranks_find_stages(struct ranks_job *job);
ow_status ranks_pipeline(struct ranks_job *job, struct ow_error *err);

/* False without steps. */
bool ranks_means(const struct ranks_job *job, const struct worker *w, struct rank_means *out);
/* waits.c: how long the worker waits in a collective for the last one; the meeting's last_ns is known. */
int64_t ranks_wait(const struct worker *w, const struct collective *c, const struct meeting *m);
/* Whether waits and transfers of the worker are known. */
static inline bool ranks_waits_known(const struct ranks_job *job, const struct worker *w)
{
	return job->waits_known && w->has_clock && !w->waits_unknown;
}
/* pair.c: equal in collectives that may be one and the same; equal in those that are. */
uint64_t ranks_pair_key(const struct worker *w, const struct collective *c);
uint64_t ranks_pair_look(const struct collective *c);
/* The pause of own work in which a collective ends, or NULL: then nothing waits for it. */
const struct pause *worker_pause(const struct worker *w, const struct collective *c);
/* The time of the reference; the worker must have a clock. */
int64_t worker_time(const struct worker *w, int64_t ns);
struct worker_step *worker_step_of(const struct worker *w, int64_t number);
/* The number of steps of the worker that are steady. */
int64_t ranks_median(int64_t *values, size_t count); /* sorts them */
double ranks_median_real(double *values, size_t count);

/* ---- replay of a step of the job (job_replay.c) ---- */

/* How long transfers take in a replay. */
enum transfer_use {
	TRANSFER_RECORDED,
	TRANSFER_LIKE_OTHERS, /* those of slow groups as long as those of groups like them */
	TRANSFER_EVEN, /* also, in a file with many workers, the mean of those of their name */
};

/* The job as one program per worker. */
struct job_replay;
ow_status job_replay_open(struct ranks_job *job, struct job_replay **out, struct ow_error *err);
void job_replay_close(struct job_replay *r);
/* How long a step takes when the own work of each worker is multiplied by scale[worker × LABELS + label] (NULL = as recorded); -1 when it
 * cannot be replayed. */
int64_t job_replay_step(struct job_replay *r, size_t step, const double *scale,
			enum transfer_use transfers);
/* From here on, work that is multiplied is done where the peers do theirs: `role` and `apart` (no worker's peer) are per worker, `wanted` are the workers
 * that this is for. */
ow_status job_replay_compare(struct job_replay *r, const uint32_t *role, const bool *apart,
			     const bool *wanted, struct ow_error *err);
/* Own work of a worker in a step by label: LABELS of them. */
const int64_t *job_replay_own(const struct job_replay *r, size_t step, size_t worker);

#endif
