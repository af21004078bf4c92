/*
 * steps_file.h: watches a file that a program writes about itself (opwatch.steps of Python, ow_recorder_open) while it
 * grows. It has no rings and no index at its end: the whole file is read again when due, within the same share of
 * processor time as other analyses.
 */
#ifndef WATCH_STEPS_FILE_H
#define WATCH_STEPS_FILE_H

#include "watch/watch.h"

#define STEPS_FILE_MOST ((uint64_t)256 << 20) /* larger files are not read repeatedly */

/* Whether the file was written by opwatch.steps; false for a file that cannot be read. */
bool steps_file_is(const char *path);
ow_status steps_file_open(struct watch *w, struct watch_file *f, const char *path,
			  struct ow_error *err);
/* Reads the file when it is due, or at once with `now`. Fails only if memory runs out; damage is reported in
 * f->problem. */
ow_status steps_file_turn(struct watch *w, struct watch_file *f, bool now, struct ow_error *err);

#endif
