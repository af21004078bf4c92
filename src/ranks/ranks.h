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
	COLLECTIVE_SEND_RECV, /* a kernel that does not say whether it sends or receives */
	COLLECTIVE_OTHER,
	COLLECTIVE_KINDS
};
extern const char *const collective_names[COLLECTIVE_KINDS];

/* Whether no rank can leave this kind of collective before the last rank has entered it. */
static inline bool collective_is_mutual(enum collective_kind kind)
{
	return kind >= COLLECTIVE_ALL_REDUCE && kind <= COLLECTIVE_BARRIER;
}

static inline bool collective_is_direct(enum collective_kind kind)
{
	return kind == COLLECTIVE_SEND || kind == COLLECTIVE_RECV;
}

/* One collective as recorded by one worker, in the worker's own time. */
struct collective {
	int64_t start_ns, end_ns;
	/* when the worker's own work allowed the collective to start; at most start_ns */
	int64_t ready_ns;
	/* hash of the group's name, description or ranks; 0 = the group has no name */
	uint64_t group;
	uint64_t name; /* hash of the collective's name */
	int64_t seq;   /* sequence number within the group; -1 = unknown */
	int64_t bytes; /* -1 = unknown */
	/* number of the step that the collective is in; NO_STEP = in none */
	int64_t step;
	int32_t group_size, peer; /* -1 = unknown; peer: the root, source or destination */
	/* index among the collectives of the step (and of the same name, where groups have no names) */
	uint32_t ordinal;
	uint32_t meeting; /* 1 + index of the meeting; 0 = not paired with other workers */
	uint8_t kind;
	uint8_t forward; /* sends and receives between stages: 1 forward, 2 backward, 0 unknown */
	bool checked;	 /* the list of the group's ranks was read */
	bool launched;	 /* the host call that launched the collective is known */
	bool transfer;	 /* a receive of which only the movement of data is recorded */
	/* the step overlaps other steps: the collective may belong to another one */
	bool doubtful;
};

/* When own work that waits for a collective can begin: clocks of devices and rounding let it begin a little before the collective ends. */
static inline int64_t collective_done(const struct collective *c)
{
	int64_t slack = (c->end_ns - c->start_ns) / 20;

	return c->end_ns - (slack < 2000 ? 2000 : slack > 50000 ? 50000 : slack);
}

/* A pause of the worker's own work in which a collective ended; if the file holds many workers, any pause. */
struct pause {
	int64_t begin_ns, end_ns;
	int64_t before_ns; /* sum of the worker's earlier pauses */
};

struct worker_step {
	int64_t number, start_ns, end_ns;
	enum step_use use;
	bool compared; /* the step is one of ranks_job.step_numbers */
	/* time of each part of the step; the parts add up to the step */
	int64_t class_ns[CLASS_COUNT];
	uint64_t slices; /* number of slices of own work */
	int64_t own_ns;	 /* set by job_replay.c: the step less waits and transfers */
	/* time in collectives, also while own work runs; set by waits.c */
	int64_t wait_ns, transfer_ns;
	int64_t others_ns; /* median of the peers' own work; set by peers.c */
};

/* Own work of a worker, in a file with many workers: when the work ended, and its kind. */
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
	uint64_t float_ops; /* float operations of one call */
	uint32_t row;	    /* row of the op in the model; used only while the model is read */
};

/* A line of the program's own code, "file:12 function", and the time that it took in the steady steps of the
 * recording. */
struct worker_line {
	struct str text;
	uint64_t name; /* hash of the text "file:12 function" */
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

/* From `from_ns` on, a time of the worker plus the offset is a time of the reference clock. */
struct clock_piece {
	int64_t from_ns;
	double offset_ns, drift; /* offset at origin_ns; the drift is relative (ns per ns) */
	int64_t origin_ns;
};

/* Over the steps that are steady on all ranks: the median length of the step, and means of its parts, which sum to
 * the collectives. */
struct rank_means {
	int64_t step_ns, own_ns, wait_ns, transfer_ns;
	size_t count;
};

struct worker {
	struct str path, host;
	struct str task; /* of TensorFlow, "/job:ps/replica:0/task:1"; empty = not a task */
	bool server;	 /* a task that is a parameter server */
	bool is_double;	 /* a task of a file that is a copy of another */
	bool overlaps; /* a server that works for several sessions at once: its steps share time */
	int32_t rank, world; /* -1 = unknown */
	int32_t dp, stage, tp;
	uint32_t file;	 /* index of the file, from 0 */
	uint32_t source; /* row of the worker's source in the model that it was read from */
	int64_t pid, first_ns, last_ns;
	uint64_t hash; /* hash of the worker's times: equal in copies of a recording */
	uint64_t events;
	int64_t resolution_ns;		/* resolution of the worker's times: 1 or 1000 */
	struct collective *collectives; /* sorted by start */
	size_t collective_count, collective_cap;
	struct pause *pauses; /* sorted by time */
	size_t pause_count, pause_cap;
	struct worker_step *steps; /* sorted by time */
	size_t step_count, step_cap;
	struct worker_op *ops;
	size_t op_count, op_cap;
	struct worker_line *lines; /* only in recordings with call stacks */
	size_t line_count, line_cap;
	struct timed_work *timed; /* sorted by time */
	size_t timed_count, timed_cap;
	/* mean frequency of the worker's device, in the unit of the trace's counter; 0 = unknown */
	double frequency;
	bool has_device;
	bool many; /* the file holds several workers and no host calls: pauses are not own work */
	bool left_out; /* the recording is a copy, or belongs to another job */
	/* why the worker does not belong to this job; NULL = it may belong to it */
	const char *outsider;
	/* collectives of groups that do not list the worker's rank, or that differ from those of the group's other
	 * members */
	uint32_t strange;
	bool has_clock; /* the worker's times can be converted to the reference clock */
	struct clock_piece *pieces;
	size_t piece_count, piece_cap;
	int64_t offset_ns;
	double drift_ppm;
	int64_t likely_ns, proven_ns;
	uint64_t pairs_used, pairs_rejected;
	/* too many of the worker's collectives have no partner on a known clock */
	bool waits_unknown;
	/* a server has summed all steps: `totals` replaces the means computed here */
	bool has_totals;
	struct rank_means totals;
	enum straggler_kind straggler;
	double slowdown_caused; /* NaN = unknown */
	/* without this worker alone the step is not shorter: others are as slow at the same time */
	bool slow_with_others;
	enum cause cause;
	uint32_t slow_steps, judged_steps;
	char evidence[384];
	/* the line of code where a straggler spends more time than its peers; empty = unknown */
	struct str slow_line;
	int64_t line_excess_ns; /* time in slow_line above that of the peers, per steady step */
};

/* One collective with all the workers that took part in it. */
struct meeting {
	uint32_t first, count; /* range in ranks_job.members */
	uint8_t kind;
	bool rejected; /* the members' times contradict each other */
	bool complete; /* all members of the group are among the files */
	/* all members were recorded only from the moment at which the last one had come: earlier waits are not
	 * visible */
	bool together;
	uint64_t group;
	/* when the last member arrived, on the reference clock; TIME_UNKNOWN without clocks */
	int64_t last_ns;
	int64_t step;
	/* factor that makes the transfer as fast as in groups like this one; 0 = none; set by links.c */
	float link_scale;
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

/* The parts of a group's name, as JSON arguments give them: name, description, list of ranks. */
struct group_name {
	uint64_t hash; /* the same value as struct collective.group */
	struct str name;
};

/* A group that moves data more slowly than groups like it, in collectives of one kind and size. */
struct slow_link {
	uint32_t meeting; /* index of any meeting of the group, to find the group's members */
	uint8_t kind;
	int64_t bytes; /* -1 = unknown */
	size_t alike;  /* number of groups that this one was compared with */
	double median_ns, others_ns;
};

/* A parameter server whose messages take longer than those of the others. */
struct hot_server {
	bool found;
	uint32_t worker;
	double busy_ns, others_ns;  /* time of a step in which messages are under way */
	double bytes, others_bytes; /* bytes of these messages in a step; 0 = unknown */
	size_t alike;		    /* number of servers that it was compared with */
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
	uint64_t unpaired; /* number of collectives without a certain partner */
	int64_t world;	   /* -1 = unknown */
	bool mixed_jobs;
	char mixed_why[256];
	uint32_t *copies; /* indexes of workers whose recording is a copy of another one */
	size_t copy_count, copy_cap;
	uint32_t *others; /* indexes of workers that belong to another run or job */
	size_t other_count, other_cap;
	enum clock_state clock;
	char clock_why[256];
	bool waits_known;
	char waits_why[192];
	int64_t *step_numbers; /* steps that are steady on all compared workers, ascending */
	size_t step_count, step_cap;
	int64_t step_ns; /* median length of a step; TIME_UNKNOWN without steps */
	/* steps that a server has summed; 0: the means come from the steps compared here */
	size_t steps_added_up;
	double slowdown;	  /* NaN = unknown */
	double slowdown_together; /* slowdown that all stragglers cause together; NaN = unknown */
	double replay_error;
	enum blame blame;
	int64_t *blamed; /* the ranks, hosts, stages, … that are to blame */
	size_t blamed_count, blamed_cap;
	char blame_why[448];
	struct size_speed *speeds;
	size_t speed_count, speed_cap;
	double alpha_ns, beta_ns_per_byte; /* NaN = unknown */
	int32_t stages;			   /* number of pipeline stages; 0 = unknown */
	int64_t micro_batches;		   /* for each step and worker; 0 = unknown */
	/* share of a step in which stages are idle: as recorded, and the unavoidable share; NaN = unknown */
	double bubble, bubble_ideal;
	struct slow_link *slow_links;
	size_t slow_link_count, slow_link_cap;
	struct hot_server hot;
};

#define RANKS_GROUPS_MOST 4096 /* limit of groups whose names are kept */

void ranks_init(struct ranks_job *job, struct mem *mem);
void ranks_release(struct ranks_job *job);
/* read.c: adds the workers of a frozen model; a model without timed work adds none. */
ow_status ranks_add(struct ranks_job *job, struct model *m, struct str path, struct ow_error *err);
/* Moves the workers of `part`, which uses the same struct mem, to `job`: threads read files into parts. The caller
 * releases the part. */
ow_status ranks_join(struct ranks_job *job, struct ranks_job *part, struct ow_error *err);
ow_status ranks_finish(struct ranks_job *job, struct ow_error *err);
/* ranks_table.c: one row for each worker; the map of ranks and steps is an extra value of the table, "map". */
ow_status ranks_table(struct ranks_job *job, struct table *out, struct ow_error *err);
void ranks_columns(struct table *t); /* adds only the columns and their descriptions */

/* align.c: moves all times of a frozen model to the clock of its lowest rank; a note is added for files whose clock
 * is unknown. */
struct builder;
ow_status ranks_align(struct builder *b, struct ow_error *err);

/* The parts of the analysis, in the order in which they run. */

/* tasks.c: joins the parts of each TensorFlow task, which come from many files, and numbers their steps and ranks. */
ow_status ranks_join_tasks(struct ranks_job *job, struct ow_error *err);
/* identity.c: finds copies, other jobs and missing ranks. */
ow_status ranks_identify(struct ranks_job *job, struct ow_error *err);
/* pair.c: finds meetings, that is collectives of several workers that are the same. */
ow_status ranks_pair(struct ranks_job *job, struct ow_error *err);
/* clock.c: converts each worker's clock to the reference clock. */
ow_status ranks_clocks(struct ranks_job *job, struct ow_error *err);
/* pair_rest.c: pairs collectives that pair.c left over, by their times. */
ow_status ranks_pair_rest(struct ranks_job *job, struct ow_error *err);
/* outsiders.c: sets workers aside that do not belong to this job; if *found, the rest has to be paired again. */
ow_status ranks_outsiders(struct ranks_job *job, bool *found, struct ow_error *err);
/* identity.c: leaves out a worker that belongs to another job or run; the format and arguments give the reason. */
ow_status ranks_set_aside(struct ranks_job *job, uint32_t worker, struct ow_error *err,
			  const char *why);
/* waits.c: splits collectives into waits and transfers, and computes bandwidths. */
ow_status ranks_waits(struct ranks_job *job, struct ow_error *err);
/* links.c: finds groups that move data more slowly than groups like them. */
ow_status ranks_links(struct ranks_job *job, struct ow_error *err);
/* servers.c: finds the parameter server that moves data for longer than the others. */
ow_status ranks_servers(struct ranks_job *job, struct ow_error *err);
/* straggler.c: compares own work with that of peers, and finds whom to blame. */
ow_status ranks_stragglers(struct ranks_job *job, struct ow_error *err);
/* pipeline.c: finds the stages of ranks that do not record theirs, from who sends to whom; later also how much the
 * stages are idle. */
void ranks_find_stages(struct ranks_job *job);
ow_status ranks_pipeline(struct ranks_job *job, struct ow_error *err);

/* Fills the means of a worker over the compared steps; false if there are no such steps. */
bool ranks_means(const struct ranks_job *job, const struct worker *w, struct rank_means *out);
/* waits.c: how long the worker waits in a collective for the last member; the meeting's last_ns must be known. */
int64_t ranks_wait(const struct worker *w, const struct collective *c, const struct meeting *m);
/* Whether the waits and transfers of the worker are known. */
static inline bool ranks_waits_known(const struct ranks_job *job, const struct worker *w)
{
	return job->waits_known && w->has_clock && !w->waits_unknown;
}
/* pair.c: two hashes of a collective. ranks_pair_key is equal for candidates that may be the same collective; ranks_pair_look covers
 * kind and size, which members of one collective share. */
uint64_t ranks_pair_key(const struct worker *w, const struct collective *c);
uint64_t ranks_pair_look(const struct collective *c);
/* The pause of own work in which a collective ends; NULL if no own work waits for the collective. */
const struct pause *worker_pause(const struct worker *w, const struct collective *c);
/* Converts a time of a worker to the reference clock; the worker must have a clock. */
int64_t worker_time(const struct worker *w, int64_t ns);
struct worker_step *worker_step_of(const struct worker *w, int64_t number);
/* The median of the values; the function sorts the array. */
int64_t ranks_median(int64_t *values, size_t count);
double ranks_median_real(double *values, size_t count);

/* How long transfers of data take in a replay (job_replay.c). */
enum transfer_use {
	TRANSFER_RECORDED,
	/* transfers of slow groups take as long as those of groups like them */
	TRANSFER_LIKE_OTHERS,
	/* in addition, in a file with many workers, transfers of one name all take their mean time */
	TRANSFER_EVEN,
};

/* The job as one program for each worker; opaque. */
struct job_replay;
ow_status job_replay_open(struct ranks_job *job, struct job_replay **out, struct ow_error *err);
void job_replay_close(struct job_replay *r);
/* The length of a step when the own work of each worker is multiplied by scale[worker × LABELS + label] (NULL = as
 * recorded); -1 when the step cannot be replayed. */
int64_t job_replay_step(struct job_replay *r, size_t step, const double *scale,
			enum transfer_use transfers);
/* From now on, a worker whose work is scaled gets its peers' work between two collectives each. `role` and `apart` (the
 * worker is not a peer of any other) have one entry for each worker; `wanted` selects the workers that this is prepared
 * for.
 */
ow_status job_replay_compare(struct job_replay *r, const uint32_t *role, const bool *apart,
			     const bool *wanted, struct ow_error *err);
/* Own work of a worker in a step: an array of LABELS values, one for each kind of work. */
const int64_t *job_replay_own(const struct job_replay *r, size_t step, size_t worker);

#endif
