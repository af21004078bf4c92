/*
 * diff_int.h: struct comparison, which the files of src/diff share. diff.c fills it, limits.c checks limits on it,
 * setup.c compares configurations.
 */
#ifndef DIFF_DIFF_INT_H
#define DIFF_DIFF_INT_H

#include "base/human.h"
#include "diff/diff.h"

struct comparison {
	struct mem *mem;
	struct ow_error *err;
	struct table *out;
	const struct diff_run *runs;
	size_t base, other;
	struct diff_rows rows;
	struct arena scratch;
	double *steps;	    /* for each run: mean steady step, ns */
	int64_t step_ns[2]; /* mean step of each side */
	int64_t delta_ns, unexplained_ns;
	struct shift means, robust;
	double p, detectable;
	bool comparable;
	bool mixed; /* the runs have values of different units, so that differences say nothing */
	char why[256];
	const char *conclusion;
};

/* limits.c: checks every limit; the worst of them is *gate. */
ow_status diff_check_limits(struct comparison *c, const struct diff_options *options,
			    enum diff_gate *gate);

/* Returns the launches per step of a run; NAN when they are unknown. A run without launches and without a device has 0 of them only if
 * no other run has any: beside runs with launches, its device was probably not recorded. */
double diff_launches(const struct comparison *c, const struct diff_run *run);

/* The unit of the values: the metric's unit for profiles of samples, else ns. */
enum column_unit diff_unit(const struct comparison *c);
enum human_unit diff_human_unit(const struct comparison *c);

/* sentence.c: writes "new is 12.4ms (7.1 %) slower per step; 9.8ms of it is aten::conv2d …". */
void diff_write_sentence(const struct comparison *c, char *to, size_t size);
/* How a row changed: new, gone, renamed, split, … */
enum diff_change diff_change_of(const struct diff_row *row);

/* frames.c: fills the table with the frames of a flame graph; frames below `least` of a step are left out. */
ow_status diff_fill_frames(struct comparison *c, double least);

/* setup.c: checks whether the sides can be compared, and adds the extra value "configuration": the settings that
 * differ. */
ow_status diff_compare_setup(struct comparison *c);

#endif
