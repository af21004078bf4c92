/*
 * steps_file.h: a file that a program writes of itself (opwatch.steps of Python, ow_recorder_open), watched while it
 * grows. It has no rings and no index of its end: the whole file is read again when that is due, within the same part of
 * a processor as the other looks.
 */
#ifndef WATCH_STEPS_FILE_H
#define WATCH_STEPS_FILE_H

#include "watch/watch.h"

#define STEPS_FILE_MOST ((uint64_t)256 << 20) /* larger files are not read repeatedly */

/* Whether the file was written by opwatch.steps; false for a file that cannot be read. */
bool steps_file_is(const char *path);
ow_status steps_file_open(struct watch *w, struct watch_file *f, const char *path,
			  struct ow_error *err);
/* Reads it when that is due, or `now`. Fails without memory only; damage is in f->problem. */
ow_status steps_file_turn(struct watch *w, struct watch_file *f, bool now, struct ow_error *err);

#endif
