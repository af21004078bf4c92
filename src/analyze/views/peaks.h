/*
 * peaks.h: how fast a device can be: float operations and bytes per second. They come from the user, from the source's description of the
 * device (cores, clock, capability, by XProf's formula), or from a table of known devices. Implemented and used by view_roofline.c.
 */
#ifndef ANALYZE_PEAKS_H
#define ANALYZE_PEAKS_H

#include "base/error.h"
#include "model/model.h"

struct peaks {
	double flops, bytes; /* peak rates per second; 0 = unknown */
	double flops32;	     /* peak rate of 32-bit products without tensor cores; 0 = unknown */
	char from[120];	     /* text that names the source of the rates */
};

/* Parses "A100" or "312T:2.04T" (operations and bytes per second). Either may be left out. */
ow_status peaks_parse(const char *text, struct peaks *out, struct ow_error *err);
/* Finds the peaks of the first device that the source describes well enough; all zero if there
 * is none. */
void peaks_find(const struct model *m, struct peaks *out);
/* Finds the peaks of a known device whose name is part of `name`; false if there is none. */
bool peaks_known(struct str name, struct peaks *out);

#endif
