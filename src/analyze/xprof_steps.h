/*
 * xprof_steps.h: what the moments of a step went to as XProf counts them: of all that goes on in a moment the category of the
 * highest priority has it, whatever the thread or stream. For the view steps, beside our own phases (phases.h).
 */
#ifndef ANALYZE_XPROF_STEPS_H
#define ANALYZE_XPROF_STEPS_H

#include "base/arena.h"
#include "model/model.h"

/* By priority. */
enum xprof_part {
	XPROF_COMPUTE_16, /* on the device, with 16-bit floats by its name */
	XPROF_COMPUTE,
	XPROF_OUTPUT, /* device to host */
	XPROF_DEVICE_TO_DEVICE,
	XPROF_WAIT_INPUT,
	XPROF_COLLECTIVES,
	XPROF_PREPARE, /* the host launches something */
	XPROF_HOST_TO_DEVICE,
	XPROF_HOST_COMPUTE,
	XPROF_UNKNOWN,
	XPROF_PARTS
};

struct xprof_step {
	bool known; /* it has work of a device, or of the host where there is no device */
	int64_t time_ps;
	int64_t part_ps[XPROF_PARTS]; /* add up to the time */
};

/* One per row of the table window. NULL in *out when the model is not one of XProf's. */
ow_status xprof_steps_make(const struct model *m, struct arena *arena, struct xprof_step **out,
			   struct error *err);

#endif
