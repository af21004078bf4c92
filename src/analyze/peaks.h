/*
 * peaks.h: how fast a device could be: float operations and bytes per second. From what the user says, from what the source
 * tells of the device, or from a table of known ones. Used by the view roofline.
 */
#ifndef ANALYZE_PEAKS_H
#define ANALYZE_PEAKS_H

#include "base/error.h"
#include "model/model.h"

struct peaks {
	double flops, bytes; /* per second; 0 = unknown */
	char from[120];	     /* where that comes from, for people */
};

/* "A100" or "312T:2.04T": operations and bytes per second, either may be left out. */
ow_status peaks_parse(const char *text, struct peaks *out, struct error *err);
/* Of the first device of which the source tells enough; all zero when it is of none. */
void peaks_find(const struct model *m, struct peaks *out);
/* Of a device whose name has the name of a known one in it; false when none does. */
bool peaks_known(struct str name, struct peaks *out);

#endif
