/*
 * output.h: standard output of the program: buffered, quiet about closed pipes, through a pager when it is a terminal and
 * the text is long; what is known about the terminal; messages and progress lines on standard error.
 */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include "base/buf.h"

#include <time.h>

struct terminal {
	bool out, err, in; /* standard output, error and input are terminals */
	bool colour;	   /* `out` is a terminal and NO_COLOR is not set */
	uint32_t width, height;
};

void terminal_look(struct terminal *terminal);
/* Measures the size again, which may change while a shell runs. */
void terminal_measure(struct terminal *terminal);

/* Set by SIGINT while it is caught: output and loading stop, the shell continues. */
extern volatile int interrupted;
/* Catches SIGINT (for shells), or lets it end the program. */
void interrupts_catch(bool catch);

struct output_stream {
	int fd;
	bool closed; /* the reader closed the pipe, or the user interrupted */
	bool paging; /* a pager may be started if the text is longer than the screen */
	int pager;   /* process id of the pager, 0 = none */
	int failure; /* errno of the first failed write, also for a closed pipe */
	uint32_t height;
	size_t lines;
	size_t len;
	char buffer[64 << 10];
};

void output_start(struct output_stream *out, bool paging, uint32_t height);
/* Writes output; an ow_write_fn. */
bool output_write(void *arg, const void *bytes, size_t len);
/* Flushes and waits for the pager; false if a write failed (errno says why). A closed pipe is not a
 * failure. */
bool output_end(struct output_stream *out);

/* Sets the name of standard output for messages, if it is a file. */
void output_is(const char *name);
/* Puts the error of a failed output_end into err; returns OW_E_IO. */
ow_status output_failure(struct ow_error *err);
/* Prints the error of a failed output_end. */
ow_status output_complain(void);

/* A text that is collected before it is shown and may go through the pager. */
struct page {
	FILE *file;
	char *text;
	size_t len;
};

/* Returns the stream to write to; standard output if memory runs out. */
FILE *page_open(struct page *page);
/* Shows the text; returns as output_end does. */
bool page_close(struct page *page, bool paging, uint32_t height);

/* Prints to standard error, as printf does. */
void complain(const char *format, ...) OW_PRINTF(1, 2);

/* A line on a terminal that shows the progress of long work. */

struct progress_line {
	struct timespec start, last;
	bool terminal, shown;
};

/* Starts the clock of the line; without a terminal the line is never due. */
void progress_begin(struct progress_line *line, bool terminal);
/* Returns whether the line should be written now: not in the first half second, then at most ten times a
 * second. */
bool progress_due(struct progress_line *line);
double progress_seconds(const struct progress_line *line);
/* Replaces the line; the text has no line feed at its end. */
void progress_show(struct progress_line *line, const char *format, ...) OW_PRINTF(2, 3);
void progress_clear(struct progress_line *line);

#endif
