/*
 * click.h: statements for a ClickHouse server over one connection: the answer, or an error that says what
 * the server said and what to try. Statements that may be repeated are, for a while, with growing and
 * uneven pauses, when the server cannot be reached, is starting or is busy.
 */
#ifndef PUSH_CLICK_H
#define PUSH_CLICK_H

#include "push/http.h"

struct click_options {
	struct http_options http;
	const char *password; /* may be NULL */
	uint32_t retry_ms;    /* how long to go on trying what may be repeated; 0 = not */
	bool await; /* a server that never answered is away, too, and not a wrong address */
	void (*waits)(void *arg,
		      const char *line); /* once, when it begins to wait for that; may be NULL */
	void *waits_arg;
};

struct click {
	struct mem *mem;
	struct arena arena;
	struct address address;
	const char *place; /* host:port, for messages */
	struct http *http;
	struct click_options options;
	uint64_t random;
	bool proven; /* it answered before: silence is an outage, not a wrong address */
	/* of the last statement */
	int code;	/* of the server's exception, 0 when there was none */
	bool transient; /* it failed in a way that may pass */
	bool is_tsv;
};

ow_status click_open(struct click *click, struct mem *mem, const struct address *address,
		     const struct click_options *options, struct ow_error *err);
void click_close(struct click *click);

enum click_repeat { CLICK_ONCE, CLICK_REPEAT };

/* Runs a statement; its answer, tab-separated unless the text has a FORMAT of its own, is put in `answer`
 * (cleared first; NULL when none is wanted). */
ow_status click_run(struct click *click, struct str text, enum click_repeat repeat,
		    struct buf *answer, struct ow_error *err);
/* The same for a text made as by printf. */
ow_status click_runf(struct click *click, struct buf *answer, struct ow_error *err,
		     const char *format, ...) OW_PRINTF(4, 5);
/* With names and types before the rows (answer.h), once; `limit` bytes at most. */
ow_status click_query(struct click *click, struct str text, size_t limit, struct buf *answer,
		      struct ow_error *err);

/* One insertion whose rows `make` gives; never repeated here, since what is before must be dropped first.
 * `text` ends in FORMAT. When the maker fails the error is its own. */
ow_status click_insert(struct click *click, struct str text, const char *query_id,
		       http_body_fn make, void *arg, struct ow_error *err);

/* Sleeps before attempt number `attempt` (from 1) of something that began `spent_ms` ago; false when there
 * is no time left or the caller cancelled. */
bool click_pause(struct click *click, unsigned attempt, uint64_t began_ms);
uint64_t click_now_ms(void);

/* Returns the number of the server's exception and its text, or 0 if `answer` is not an exception: "Code: 62,
 * e.displayText() = DB::Exception: Syntax error …, e.what() = …" (up to 2019) or "Code: 62. DB::Exception: Syntax error …
 * (SYNTAX_ERROR) (version …)". */
int click_exception(struct str answer, struct str *text);

/* 'text' and `name` as the server reads them. */
void click_quote(struct buf *to, struct str text);
void click_quote_name(struct buf *to, struct str name);

/* Takes the next line, and the next field of a line, of a tab-separated answer. */
bool click_line(struct str *rest, struct str *line);
bool click_field(struct str *line, struct str *field);
bool click_field_u64(struct str *line, uint64_t *value);

#endif
