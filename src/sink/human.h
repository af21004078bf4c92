/*
 * human.h: numbers and shortened names for people, and which metric a word means. Used by the text
 * table and the flame graph. tfprof's own formats are in sink_tfprof.c and differ on purpose.
 */
#ifndef SINK_HUMAN_H
#define SINK_HUMAN_H

#include "base/buf.h"
#include "model/tree.h"

#define HUMAN_BYTES 48

/* Writes a NUL-terminated text of at most HUMAN_BYTES into `to` and returns its length. Three
 * significant digits: 1.23ms, 45.6MB, 789, 1.20k. Bytes count in thousands. With `full` the number
 * comes as it is: 1234567ns, 45600000B. */
size_t human_int(char *to, int64_t value, enum result_unit unit, bool full);
size_t human_real(char *to, double value, enum result_unit unit, bool full);

/* No number from 0 to HUMAN_NARROW_MAX takes more than HUMAN_NARROW bytes in a unit that is scaled (all but
 * RESULT_PLAIN and RESULT_PERCENT). */
#define HUMAN_NARROW 6
#define HUMAN_NARROW_MAX 1000000000

/* Control characters could drive the terminal; they and invalid bytes are added as U+FFFD. */
void human_printable(struct buf *to, struct str s);

/* The end of a text that takes at most `columns` of a terminal; utf8_fit gives the start. */
struct str human_fit_end(struct str s, size_t columns);

struct metric_info {
	const char *name;  /* as after --select */
	const char *title; /* "total time" */
	enum result_unit unit;
};
extern const struct metric_info metric_infos[METRIC_COUNT];

/* The metric of that name, micros for NULL; METRIC_COUNT when there is none. */
enum metric metric_find(const char *name);

#endif
