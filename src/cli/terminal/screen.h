/*
 * screen.h: the whole terminal for a command that draws (top): other keys, other screen, no cursor, and all of it given
 * back however the program ends: return, error, exit(), SIGINT, SIGTERM, SIGHUP, SIGQUIT, and around a stop (ctrl-Z). Frames
 * are drawn line by line into a buffer and written at once. Plain ANSI sequences, which every terminal of today knows.
 *
 * There is one terminal, so there is one screen: what signal handlers need is in a static.
 */
#ifndef CLI_SCREEN_H
#define CLI_SCREEN_H

#include "base/buf.h"

#include <termios.h>

struct screen {
	struct termios before;
	uint32_t width, height;
	bool colour;
	struct buf frame;
	uint32_t row; /* row that is drawn next */
};

/* Opens the screen. False, with errno, if standard input or output is not a terminal. */
bool screen_open(struct screen *s, struct mem *mem, bool colour);
void screen_close(struct screen *s);

/* Returns whether a signal requested the end. */
bool screen_ended(void);

enum screen_key {
	KEY_NONE = 0,
	KEY_UP = 256,
	KEY_DOWN,
	KEY_PAGE_UP,
	KEY_PAGE_DOWN,
	KEY_HOME,
	KEY_END,
	KEY_RESIZE,
	KEY_EOF /* the terminal is gone */
};
/* Waits up to the timeout for a key: a character or one of the values above; KEY_NONE if none
 * came. */
int screen_key(struct screen *s, int timeout_ms);

/* Begins a frame: lines from the top, cut to the width; text below the last row is not drawn. */
void screen_begin(struct screen *s);
/* Draws a line. `text` may contain sequences of screen_style, which take no room. */
void screen_line(struct screen *s, struct str text);
void screen_end(struct screen *s);
/* Returns the number of rows left. */
uint32_t screen_left(const struct screen *s);

/* Returns the sequence of a style, "" without colour: 0 plain, 1 bold, 2 dim, 7 reverse, 31 red,
 * … */
const char *screen_style(bool colour, unsigned style);

/* Returns the longest prefix of a text with sequences that takes at most `columns`; *used becomes its
 * width. */
struct str screen_fit(struct str text, size_t columns, size_t *used);

#endif
