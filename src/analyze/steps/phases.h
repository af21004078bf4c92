/*
 * phases.h: what every moment of a step went to: input, host, launch, copies, compute, communication,
 * synchronisation, or nothing. The views `steps` and `phases` and the verdict read this; it reads only
 * event.phase, track.kind, track.device, source.rank, window and link, so that every format that fills
 * them gets the same answers.
 *
 * Per input (rank) and device, each instant of a step goes to the first class of enum phase_class that
 * is active, so that shares add up to the step's time. Host threads of the input are seen by each of its
 * devices. Without any device work the host's operators are the compute.
 */
#ifndef ANALYZE_PHASES_H
#define ANALYZE_PHASES_H

#include "analyze/spans.h"
#include "model/event_filter.h"

/* In order of precedence. */
enum phase_class {
	CLASS_COMPUTE,
	CLASS_COMMUNICATION,
	CLASS_DEVICE_TO_HOST,
	CLASS_HOST_TO_DEVICE,
	CLASS_INPUT,
	CLASS_SYNCHRONISATION,
	CLASS_LAUNCH,
	CLASS_HOST,
	CLASS_IDLE, /* nothing was recorded; has a share only */
	CLASS_COUNT
};

extern const char *const phase_class_names[CLASS_COUNT];
/* As a step goes: before the device, on it, after it, nowhere. */
extern const uint8_t phase_class_order[CLASS_COUNT];
extern const char *const phase_class_places[CLASS_COUNT]; /* "before", "on", "after", "" */

struct phase_sums {
	int64_t share[CLASS_COUNT]; /* adds up to the time */
	int64_t total[CLASS_COUNT]; /* union of the class, also below others */
	int64_t overlapped
		[CLASS_COUNT]; /* copies and communication: with compute; else total - share */
	int64_t device_busy;
};

/* One input and one device of it, or none when it has no device work. */
struct phase_lane {
	source_id source;
	device_id device; /* may be nil: a device without a name */
	bool has_device;
};

enum window_use { WINDOW_COUNTS, WINDOW_FIRST, WINDOW_INCOMPLETE };

/* A step of an input. */
struct phase_window {
	step_id step;
	source_id source;
	int64_t start_ns, end_ns;
	int64_t between_ns;	/* since the end of the step before, TIME_UNKNOWN for the first */
	uint64_t device_slices; /* that start in it */
	enum window_use use;	/* WINDOW_FIRST and WINDOW_INCOMPLETE are left out of means */
	uint32_t row_first, row_count; /* one row per lane of the input */
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
	struct phase_row *rows;
	uint32_t row_count;
	bool extended; /* some windows end with the device work that was launched in them */
};

/* Inputs without classified events have no windows. phases_release is due in any case. */
ow_status phases_analyse(const struct model *m, const struct event_filter *filter,
			 struct phases *out, struct error *err);
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
	int64_t time_ns, between_ns;
	struct phase_sums sums;
	int64_t launch_gap_ns, dependency_gap_ns, queue_delay_ns;
	uint64_t queued, device_slices;
};

struct phase_groups {
	struct phase_group all;
	struct phase_group *items; /* by job, then by rank, then by device */
	uint32_t count;
	uint32_t runs;				      /* jobs that they are of */
	uint32_t first_left_out, incomplete_left_out; /* steps, of all inputs */
};

/* Steps that means leave out are left out, unless there are no others. */
ow_status phases_group(const struct model *m, const struct phases *p, struct arena *arena,
		       struct phase_groups *out, struct error *err);

/* What the job of a group is called: its name, or else where it was read from. */
struct str phase_group_job(const struct model *m, const struct phase_group *group);

/* ---- parts, for tests and other readers ---- */

/* lists[CLASS_IDLE] is all device work. */
void phases_measure(const struct span_list *const lists[CLASS_COUNT], int64_t from, int64_t to,
		    struct phase_sums *out);

/* The mean of rows, such that the shares still add up. */
void phases_mean(const struct phase_row *rows, uint32_t count, struct phase_row *out);
void phases_add(struct phase_sums *to, const struct phase_sums *from);

/* A step's marker on the host; work_end_ns is the end of the last device work launched in it, or
 * TIME_UNKNOWN. Markers come by begin. */
struct phase_marker {
	int64_t begin_ns, end_ns, work_end_ns;
	step_id step;
};
/* Makes windows of markers; `extended`: they end with the work that was launched in them. */
void phase_windows_make(const struct phase_marker *markers, uint32_t count, bool extended,
			struct phase_window *out);
/* Sets `use`, from the device slices. */
void phase_windows_choose(struct phase_window *windows, uint32_t count);

#endif
