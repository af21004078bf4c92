/*
 * peaks.h: how fast a device can be: float operations and bytes per second. They come from the user, from the source's description of the
 * device (cores, clock, capability, by XProf's formula), or from a table of known devices. Implemented and used by view_roofline.c.
 */
#ifndef ANALYZE_PEAKS_H
#define ANALYZE_PEAKS_H

#include "base/error.h"
#include "model/model.h"

struct peaks {
	double flops, bytes; /* per second; 0 = unknown */
	double flops32;	     /* of 32-bit products without tensor cores; 0 = unknown */
	char from[120];	     /* where they come from, as text */
};

/* Reads "A100" or "312T:2.04T": operations and bytes per second. Either may be left out. */
ow_status peaks_parse(const char *text, struct peaks *out, struct ow_error *err);
/* The peaks of the first device that the source describes well enough; all zero when there is none. */
void peaks_find(const struct model *m, struct peaks *out);
/* The peaks of a device whose name contains that of a known device; false when it does not. */
bool peaks_known(struct str name, struct peaks *out);

#endif
