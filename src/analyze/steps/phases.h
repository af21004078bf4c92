/*
 * phases.h: what each moment of a step was spent on: input, host, initialisation, allocation, launch, copies, compute, communication, synchronisation, or nothing. Used by
 * the views `steps` and `phases`, the verdict and SQL. It reads only event.phase, track.kind, track.device, source.rank, window and link,
 * so every format that fills these gets the same answers.
 *
 * Per input (rank) and device, each instant of a step belongs to the first active class in the order of enum phase_class, so shares add up
 * to the time of the step. Each device of an input sees the host threads of that input. Without device work the operators of the host
 * are the compute. Where frames of Python are recorded, the time between operators is host code, or a wait if Python waits.
 */
#ifndef ANALYZE_PHASES_H
#define ANALYZE_PHASES_H

#include "analyze/steps/spans.h"
#include "analyze/steps/steady.h"
#include "model/event_filter.h"

/* Classes of phases, in order of precedence. */
enum phase_class {
	CLASS_COMPUTE,
	CLASS_COMMUNICATION,
	CLASS_DEVICE_TO_HOST,
	CLASS_HOST_TO_DEVICE,
	CLASS_INPUT,
	CLASS_SYNCHRONISATION,
	CLASS_INITIALISATION,
	CLASS_ALLOCATION,
	CLASS_LAUNCH,
	CLASS_HOST,
	/* threads were ready to run but had no processor; has a share only, see processors.h */
	CLASS_RUN_QUEUE,
	CLASS_IDLE, /* nothing was recorded; has a share only */
	CLASS_COUNT
};

extern const char *const phase_class_names[CLASS_COUNT];
/* The class of a slice; CLASS_COUNT when it is in none. `has_device`: its input has device work. Tracks that are not work have no class. */
enum phase_class phase_class_of(const struct model *m, uint32_t event, bool has_device);
/* Returns the class of a Python frame on a thread that runs operators: host code, or a wait if Python itself
 * waits in it. */
enum phase_class phase_class_of_frame(const struct model *m, uint32_t event);
/* Order of the classes within a step: before the device, on it, after it, none of these. */
extern const uint8_t phase_class_order[CLASS_COUNT];
/* place of each class: "before", "on", "after" or "" */
extern const char *const phase_class_places[CLASS_COUNT];

struct phase_sums {
	/* time that belongs to the class alone; all shares sum to the time */
	int64_t share[CLASS_COUNT];
	int64_t total
		[CLASS_COUNT]; /* time in which the class was active, also where another class has the share */
	int64_t overlapped
		[CLASS_COUNT]; /* for copies and communication: time in which compute was also active; for others total - share */
	int64_t device_busy;
};

/* An input and one of its devices; no device if the input has no device work. */
struct phase_lane {
	source_id source;
	device_id device; /* device of the lane; nil for a device without a name */
	bool has_device;
};

/* Span of an input, from its first to its last slice; first > last if it has none. */
struct phase_input {
	int64_t first_ns, last_ns;
};

struct phase_row {
	uint32_t window, lane;
	struct phase_sums sums;
	/* time in which the device was idle because its next work was launched too late */
	int64_t launch_gap_ns;
	/* time in which the device was idle although its next work had been launched */
	int64_t dependency_gap_ns;
	/* time from the end of the launching call to the start of the work, summed over `queued` */
	int64_t queue_delay_ns;
	uint64_t queued; /* number of launches in queue_delay_ns */
};

struct phases {
	struct arena arena;
	struct phase_lane *lanes;
	uint32_t lane_count;
	struct phase_window *windows; /* windows, sorted by input and then by time */
	uint32_t window_count;
	struct phase_input *inputs; /* inputs by source */
	uint32_t input_count;
	struct phase_row *rows;
	uint32_t row_count;
	/* the time of threads on processors is known, so CLASS_RUN_QUEUE may have a share */
	bool processors;
	bool extended; /* some windows end with the device work that was launched in them */
};

/* Analyses the phases. Inputs without classified events have no windows. The caller calls
 * phases_release in any case. */
ow_status phases_analyse(const struct model *m, const struct event_filter *filter,
			 struct phases *out, struct ow_error *err);
/* Like phases_analyse, without rows: finds the steps, and which of them medians use. Windows have their row_count,
 * but nothing is measured. */
ow_status phases_find_windows(const struct model *m, const struct event_filter *filter,
			      struct phases *out, struct ow_error *err);
void phases_release(struct phases *p);

/* Sums over all steps. */

/* The steps of one rank of one job on one device, added up; or of several of them. */
struct phase_group {
	uint32_t run;	  /* number of the job; 0 = several jobs */
	source_id source; /* one of the inputs of the group */
	int32_t rank;	  /* rank of the group; -1 = unknown, or several */
	device_id device;
	bool has_device;
	uint32_t steps;
	bool known;	 /* the group consists of steps; else of whole recordings */
	bool processors; /* see struct phases, field `processors` */
	int64_t time_ns, between_ns;
	struct phase_sums sums;
	int64_t launch_gap_ns, dependency_gap_ns, queue_delay_ns;
	uint64_t queued, device_slices;
};

struct phase_groups {
	struct phase_group all;
	struct phase_group *items; /* groups, sorted by job, rank and device */
	uint32_t count;
	uint32_t runs;		      /* number of jobs in the groups */
	uint32_t left_out[STEP_USES]; /* numbers of left-out steps of all inputs, by reason */
};

/* Groups the steps. Steps that are not steady are left out, unless there are no others. */
ow_status phases_group(const struct model *m, const struct phases *p, struct arena *arena,
		       struct phase_groups *out, struct ow_error *err);

/* Returns the name of a group's job, or else the path of its file. */
struct str phase_group_job(const struct model *m, const struct phase_group *group);

/* Parts of the analysis, for tests and other readers. */

/* Computes the mean of rows so that the shares still add up. */
void phases_mean(const struct phase_row *rows, uint32_t count, struct phase_row *out);
void phases_add(struct phase_sums *to, const struct phase_sums *from);
/* Divides from..to among the classes; lists[CLASS_IDLE] holds all device work. */
void phases_measure(const struct span_list *const lists[CLASS_COUNT], int64_t from, int64_t to,
		    struct phase_sums *out);

#endif
