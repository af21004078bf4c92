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

/* In order of precedence. */
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
	CLASS_RUN_QUEUE, /* ready to run, but others had the processors; has a share only, see processors.h */
	CLASS_IDLE, /* nothing was recorded; has a share only */
	CLASS_COUNT
};

extern const char *const phase_class_names[CLASS_COUNT];
/* The class of a slice; CLASS_COUNT when it is in none. `has_device`: its input has device work. Tracks that are not work have no class. */
enum phase_class phase_class_of(const struct model *m, uint32_t event, bool has_device);
/* The class of a frame of Python on a thread that runs operators: code of the host, or a wait if Python itself waits in it. */
enum phase_class phase_class_of_frame(const struct model *m, uint32_t event);
/* The order within a step: before the device, on it, after it, nowhere. */
extern const uint8_t phase_class_order[CLASS_COUNT];
extern const char *const phase_class_places[CLASS_COUNT]; /* "before", "on", "after", "" */

struct phase_sums {
	int64_t share[CLASS_COUNT]; /* adds up to the time */
	int64_t total
		[CLASS_COUNT]; /* time in which the class was active, also where another class has the share */
	int64_t overlapped
		[CLASS_COUNT]; /* copies and communication: with compute; else total - share */
	int64_t device_busy;
};

/* An input and one of its devices, or no device when the input has no device work. */
struct phase_lane {
	source_id source;
	device_id device; /* may be nil: a device without a name */
	bool has_device;
};

/* An input: from its first to its last slice; first > last without any. */
struct phase_input {
	int64_t first_ns, last_ns;
};

struct phase_row {
	uint32_t window, lane;
	struct phase_sums sums;
	int64_t launch_gap_ns;	   /* device idle: what came next was launched too late */
	int64_t dependency_gap_ns; /* device idle although what came next was launched before */
	int64_t queue_delay_ns; /* from the end of the launching call to the start, added up … */
	uint64_t queued;	/* … over that many */
};

struct phases {
	struct arena arena;
	struct phase_lane *lanes;
	uint32_t lane_count;
	struct phase_window *windows; /* by input, then by time */
	uint32_t window_count;
	struct phase_input *inputs; /* by source */
	uint32_t input_count;
	struct phase_row *rows;
	uint32_t row_count;
	bool processors; /* what threads got of them is known: CLASS_RUN_QUEUE may have a share */
	bool extended;	 /* some windows end with the device work that was launched in them */
};

/* Inputs without classified events have no windows. phases_release is due in any case. */
ow_status phases_analyse(const struct model *m, const struct event_filter *filter,
			 struct phases *out, struct ow_error *err);
void phases_release(struct phases *p);

/* ---- over all steps ---- */

/* The steps of one rank of one job on one device, added up; or of all. */
struct phase_group {
	uint32_t run;	  /* which job; 0 = of several */
	source_id source; /* an input of it */
	int32_t rank;	  /* -1 = unknown, or of several */
	device_id device;
	bool has_device;
	uint32_t steps;
	bool known;	 /* these are steps; else whole recordings */
	bool processors; /* as in struct phases */
	int64_t time_ns, between_ns;
	struct phase_sums sums;
	int64_t launch_gap_ns, dependency_gap_ns, queue_delay_ns;
	uint64_t queued, device_slices;
};

struct phase_groups {
	struct phase_group all;
	struct phase_group *items; /* by job, then by rank, then by device */
	uint32_t count;
	uint32_t runs;		      /* number of jobs in the groups */
	uint32_t left_out[STEP_USES]; /* steps, of all inputs */
};

/* Steps that means leave out are left out, unless there are no others. */
ow_status phases_group(const struct model *m, const struct phases *p, struct arena *arena,
		       struct phase_groups *out, struct ow_error *err);

/* The name of a group's job, or else the path that it was read from. */
struct str phase_group_job(const struct model *m, const struct phase_group *group);

/* ---- parts, for tests and other readers ---- */

/* The mean of rows, such that the shares still add up. */
void phases_mean(const struct phase_row *rows, uint32_t count, struct phase_row *out);
void phases_add(struct phase_sums *to, const struct phase_sums *from);
/* Divides from..to among the classes; lists[CLASS_IDLE] is all device work. */
void phases_measure(const struct span_list *const lists[CLASS_COUNT], int64_t from, int64_t to,
		    struct phase_sums *out);

#endif
