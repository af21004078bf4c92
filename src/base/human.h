/*
 * human.h: numbers and names for people. Used by tables, charts and flame graphs (src/sink), by the verdict and by
 * the command line. Files for programs (CSV, JSON) hold plain numbers instead.
 */
#ifndef BASE_HUMAN_H
#define BASE_HUMAN_H

#include "base/buf.h"

#define HUMAN_SIZE 48 /* size of the longest text that these functions write, with its NUL */

enum human_unit {
	HUMAN_UNIT_NONE, /* no unit: whole numbers as they are, others with four digits */
	HUMAN_UNIT_NS,	 /* nanoseconds: 1.23ms; also hours */
	HUMAN_UNIT_US, /* microseconds: 1.23ms; whole numbers below a millisecond stay whole: 7us */
	HUMAN_UNIT_BYTES,    /* bytes: 45.6MB; 1 kB is 1000 bytes */
	HUMAN_UNIT_COUNT,    /* counts: 789, 1.20k */
	HUMAN_UNIT_PERCENT,  /* percent: 12.3% */
	HUMAN_UNIT_US_TO_S,  /* microseconds that are shown only as us, ms or s */
	HUMAN_UNIT_NS_APART, /* nanoseconds for sentences: 1.23 ms, 2.50 min */
};

/* Writes a NUL-terminated text of less than HUMAN_SIZE bytes into `to` and returns its length. Three significant
 * digits. With `full` the number comes as it is: 1234567ns, 45600000B. */
size_t human_int(char *to, int64_t value, enum human_unit unit, bool full);
size_t human_real(char *to, double value, enum human_unit unit, bool full);

/* In NS, US, BYTES and COUNT, no number from 0 to HUMAN_NARROW_MAX takes more than HUMAN_NARROW
 * bytes. */
#define HUMAN_NARROW 6
#define HUMAN_NARROW_MAX 1000000000

/* Returns whether a character changes the direction of the text around it (such as U+202E), so that a name
 * reads as another one. */
static inline bool utf8_turns_text(uint32_t c)
{
	return c == 0x61c || c == 0x200e || c == 0x200f || (c >= 0x202a && c <= 0x202e) ||
	       (c >= 0x2066 && c <= 0x2069);
}

/* Adds a text without characters that could control the terminal or change the direction of text; they and
 * invalid bytes become U+FFFD. */
void human_printable(struct buf *to, struct str s);

/* Returns the end of a text that fits into `columns` of a terminal; utf8_fit returns the start. */
struct str human_fit_end(struct str s, size_t columns);

#endif
