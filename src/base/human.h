/*
 * human.h: numbers and names for people. Used by tables, charts and flame graphs (src/sink), by the verdict and by
 * the command line. Files for programs (CSV, JSON) hold plain numbers instead.
 */
#ifndef BASE_HUMAN_H
#define BASE_HUMAN_H

#include "base/buf.h"

#define HUMAN_SIZE 48 /* bytes of any text made here, with its NUL */

enum human_unit {
	HUMAN_UNIT_NONE, /* whole numbers as they are, others with four digits */
	HUMAN_UNIT_NS,	 /* 1.23ms; also hours */
	HUMAN_UNIT_US, /* the same from microseconds; whole ones below a millisecond stay whole: 7us */
	HUMAN_UNIT_BYTES,    /* 45.6MB; in thousands */
	HUMAN_UNIT_COUNT,    /* 789, 1.20k */
	HUMAN_UNIT_PERCENT,  /* 12.3% */
	HUMAN_UNIT_US_TO_S,  /* microseconds that are shown as us, ms or s only */
	HUMAN_UNIT_NS_APART, /* for sentences: 1.23 ms, 2.50 min */
};

/* Writes a NUL-terminated text of less than HUMAN_SIZE bytes into `to` and returns its length. Three significant
 * digits. With `full` the number comes as it is: 1234567ns, 45600000B. */
size_t human_int(char *to, int64_t value, enum human_unit unit, bool full);
size_t human_real(char *to, double value, enum human_unit unit, bool full);

/* No number from 0 to HUMAN_NARROW_MAX takes more than HUMAN_NARROW bytes in NS, US, BYTES or COUNT. */
#define HUMAN_NARROW 6
#define HUMAN_NARROW_MAX 1000000000

/* Whether a character turns the direction of the text around it (U+202E and its like): a name that has one reads as another. */
static inline bool utf8_turns_text(uint32_t c)
{
	return c == 0x61c || c == 0x200e || c == 0x200f || (c >= 0x202a && c <= 0x202e) ||
	       (c >= 0x2066 && c <= 0x2069);
}

/* Control characters could drive the terminal, others turn the direction of text; they and invalid bytes are added as
 * U+FFFD. */
void human_printable(struct buf *to, struct str s);

/* The end of a text that takes at most `columns` of a terminal; utf8_fit returns the start. */
struct str human_fit_end(struct str s, size_t columns);

#endif
