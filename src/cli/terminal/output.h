/*
 * output.h: standard output of the program: buffered, quiet about closed pipes, through a pager when
 * it is a terminal and the text is long; and what is known about the terminal.
 */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

#include "base/buf.h"

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
/* Flushes, waits for the pager; false when something could not be written (errno says why; a closed
 * pipe is no failure). */
bool output_end(struct output_stream *out);

/* What a user knows standard output as, once it is a file. */
void output_is(const char *name);
/* Of an output_end that failed: tells it in err. Gives OW_E_IO. */
ow_status output_failure(struct ow_error *err);
/* The same, said at once. */
ow_status output_complain(void);

/* A text that is made whole before it is shown, so that it can go through the pager. */
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

#endif
