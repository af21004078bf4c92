/*
 * output.h: standard output of the program: buffered, quiet about closed pipes, through a pager when it is a terminal and
 * the text is long; what is known about the terminal; messages and progress lines on standard error.
 */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include "base/buf.h"

#include <time.h>

struct terminal {
	bool out, err, in; /* is a terminal */
	bool colour;	   /* out is one, and NO_COLOR is not set */
	uint32_t width, height;
};

void terminal_look(struct terminal *terminal);
/* Only its size, which may change while a shell runs. */
void terminal_measure(struct terminal *terminal);

/* Set by SIGINT while it is caught: output and loading stop, the shell goes on. */
extern volatile int interrupted;
/* Catches SIGINT (shells), or leaves it to end the program. */
void interrupts_catch(bool catch);

struct output_stream {
	int fd;
	bool closed; /* the reader is gone, or the user interrupted */
	bool paging; /* may start a pager when the text is longer than the screen */
	int pager;   /* its process id, 0 when none */
	int failure; /* errno of what could not be written; of a closed pipe, too */
	uint32_t height;
	size_t lines;
	size_t len;
	char buffer[64 << 10];
};

void output_start(struct output_stream *out, bool paging, uint32_t height);
/* An ow_write_fn. */
bool output_write(void *arg, const void *bytes, size_t len);
/* Flushes and waits for the pager; false when something could not be written (errno says why). A closed pipe is not a
 * failure. */
bool output_end(struct output_stream *out);

/* The name of standard output in messages, once it is a file. */
void output_is(const char *name);
/* Puts the error of a failed output_end into err; returns OW_E_IO. */
ow_status output_failure(struct ow_error *err);
/* Prints it instead. */
ow_status output_complain(void);

/* A text that is complete before it is shown and may go through the pager. */
struct page {
	FILE *file;
	char *text;
	size_t len;
};

/* Where to write it; standard output when there is no memory. */
FILE *page_open(struct page *page);
/* Shows it; false as output_end says. */
bool page_close(struct page *page, bool paging, uint32_t height);

/* printf to standard error. */
void complain(const char *format, ...) OW_PRINTF(1, 2);

/* ---- the line on a terminal that shows how far long work has come ---- */

struct progress_line {
	struct timespec start, last;
	bool terminal, shown;
};

/* Begins to count; without a terminal the line is never due. */
void progress_begin(struct progress_line *line, bool terminal);
/* Whether the line is to be written now: not in the first half second, then ten times a second at most. */
bool progress_due(struct progress_line *line);
double progress_seconds(const struct progress_line *line);
/* Replaces the line; the text has no line feed at its end. */
void progress_show(struct progress_line *line, const char *format, ...) OW_PRINTF(2, 3);
void progress_clear(struct progress_line *line);

#endif
