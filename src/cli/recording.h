/* recording.h: what the commands that record have in common: the name of the file, and what is told at the end. */
#ifndef CLI_RECORDING_H
#define CLI_RECORDING_H

#include "base/arena.h"

#include <opwatch/opwatch.h>

/* For ow_record_options: to stderr. */
void recording_message(void *arg, const char *text, size_t len);
/* opwatch-20261116-030405.opw, here; NULL without memory. */
const char *recording_name(struct arena *arena);
/* "x.opw: the last 2.0 s of job train, 10 records and 20 stacks of 1 process" */
void recording_tell_cut(const char *path, const char *what, const char *job,
			const struct ow_cut_summary *summary);
void recording_tell(const char *path, const struct ow_record_summary *summary);

#endif
