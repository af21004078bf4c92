/*
 * click.h: statements for a ClickHouse server over one connection: the result is the answer, or an error with the
 * server's message and what to try. Statements that may be repeated are repeated for a while, with growing random
 * pauses, when the server cannot be reached, is starting or is busy.
 */
#ifndef PUSH_CLICK_H
#define PUSH_CLICK_H

#include "push/http.h"

struct click_options {
	struct http_options http;
	const char *password; /* may be NULL */
	uint32_t retry_ms;    /* how long repeatable statements are tried; 0 = no repetition */
	/* also wait for a server that has never answered, instead of reporting a wrong address */
	bool await;
	void (*waits)(void *arg,
		      /* wait_note: called once, when waiting begins; may be NULL */
		      const char *line);
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
	/* the server has answered before: a failure to connect is an outage, not a wrong address */
	bool proven;
	/* number of the server's exception for the last statement, 0 when there was none */
	int code;
	bool transient; /* the last statement failed in a way that may be temporary */
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
/* Like click_run, for a text made as by printf. */
ow_status click_runf(struct click *click, struct buf *answer, struct ow_error *err,
		     const char *format, ...) OW_PRINTF(4, 5);
/* Runs a query once; the answer has names and types before the rows (answer.h) and at most `limit` bytes. */
ow_status click_query(struct click *click, struct str text, size_t limit, struct buf *answer,
		      struct ow_error *err);

/* Runs one insertion whose rows the function `make` produces. It is never repeated here, because rows that arrived
 * must be dropped first. `text` ends in FORMAT. If `make` fails, the error is the one that it set. */
ow_status click_insert(struct click *click, struct str text, const char *query_id,
		       http_body_fn make, void *arg, struct ow_error *err);

/* Sleeps before attempt number `attempt` (from 1) of an operation that began at `began_ms`; false when there is no
 * time left or the caller cancelled. */
bool click_pause(struct click *click, unsigned attempt, uint64_t began_ms);
uint64_t click_now_ms(void);

/* Returns the number of the server's exception and its text, or 0 if `answer` is not an exception: "Code: 62,
 * e.displayText() = DB::Exception: Syntax error …, e.what() = …" (up to 2019) or "Code: 62. DB::Exception: Syntax error …
 * (SYNTAX_ERROR) (version …)". */
int click_exception(struct str answer, struct str *text);

/* Appends a text in single quotes, or a name in backquotes, escaped for the server. */
void click_quote(struct buf *to, struct str text);
void click_quote_name(struct buf *to, struct str name);

/* Takes the next line of a tab-separated answer, and the next field of a line. */
bool click_line(struct str *rest, struct str *line);
bool click_field(struct str *line, struct str *field);
bool click_field_u64(struct str *line, uint64_t *value);

#endif
