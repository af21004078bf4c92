/*
 * click.c: sends statements to one ClickHouse server over HTTP, repeats them when a failure may be temporary, and
 * explains failures in our own words. Used by everything that pushes and by ow_remote_query. It knows no tables.
 */
#include "push/click.h"

#include "base/clock.h"

#include <stdarg.h>
#include <time.h>

/* limit of the answer to a statement that opwatch itself makes */
#define CONTROL_ANSWER (256u << 20)

/* Exceptions that are explained to the user, by their numbers in ClickHouse's ErrorCodes. */
static const struct meaning {
	int code;
	ow_status status;
	bool transient;
	const char *advice; /* what the user can try, or NULL */
} meanings[] = {
	{ 192, OW_E_PERMISSION, false, "is the user in the address right?" },
	{ 193, OW_E_PERMISSION, false, "set OPWATCH_CLICKHOUSE_PASSWORD or give --password-file" },
	{ 194, OW_E_PERMISSION, false, "set OPWATCH_CLICKHOUSE_PASSWORD or give --password-file" },
	{ 195, OW_E_PERMISSION, false,
	  "the server does not let this user connect from this machine" },
	{ 516, OW_E_PERMISSION, false,
	  "check the user in the address, and set OPWATCH_CLICKHOUSE_PASSWORD or give "
	  "--password-file" },
	{ 497, OW_E_PERMISSION, false, "the user lacks a right on the server" },
	{ 164, OW_E_PERMISSION, false, "the user may only read" },
	{ 291, OW_E_PERMISSION, false, "the user may not use this database" },
	{ 81, OW_E_NOT_FOUND, false,
	  "create it on the server with CREATE DATABASE, or name another" },
	{ 60, OW_E_NOT_FOUND, false, NULL },
	{ 46, OW_E_USAGE, false, NULL },
	{ 47, OW_E_USAGE, false, NULL },
	{ 62, OW_E_USAGE, false, NULL },
	{ 243, OW_E_IO, false, "the disk of the server is full; free some space and push again" },
	{ 158, OW_E_LIMIT, false, NULL },
	{ 307, OW_E_LIMIT, false, NULL },
	{ 241, OW_E_LIMIT, true, "the server's memory limit was reached" },
	{ 159, OW_E_LIMIT, true, NULL },
	{ 202, OW_E_LIMIT, true, "the server is busy" },
	{ 252, OW_E_LIMIT, true, "the server merges parts more slowly than it receives them" },
	{ 209, OW_E_IO, true, NULL },
	{ 210, OW_E_IO, true, NULL },
	{ 279, OW_E_IO, true, "a node of the cluster cannot be reached" },
	{ 242, OW_E_IO, true, "the table is read-only at the moment" },
	{ 999, OW_E_IO, true, NULL },
};

static const struct meaning *find_meaning(int code)
{
	for (size_t i = 0; i < ARRAY_COUNT(meanings); i++)
		if (meanings[i].code == code)
			return &meanings[i];
	return NULL;
}

static void cut_before(struct str *text, struct str what)
{
	size_t at = str_find(*text, what);

	if (at != STR_NONE)
		*text = str_first(*text, at);
}

int click_exception(struct str answer, struct str *text)
{
	size_t at = str_find(answer, STR("Code: "));
	int code = 0;

	*text = answer;
	if (at == STR_NONE)
		return 0;
	answer = str_skip(answer, at + 6);
	while (answer.len && answer.ptr[0] >= '0' && answer.ptr[0] <= '9' && code < 1000000) {
		code = code * 10 + (answer.ptr[0] - '0');
		answer = str_skip(answer, 1);
	}
	at = str_find(answer, STR("DB::"));
	if (at != STR_NONE && str_find(str_skip(answer, at), STR(": ")) != STR_NONE) {
		answer = str_skip(answer, at);
		answer = str_skip(answer, str_find(answer, STR(": ")) + 2);
	}
	cut_before(&answer, STR(", e.what() ="));
	cut_before(&answer, STR(" (version "));
	cut_before(&answer, STR(", Stack trace"));
	*text = str_trim(answer);
	return code;
}

/* Whether an exception's text reports a full disk; older servers have no number for it. */
static bool disk_full(struct str text)
{
	return str_has(text, STR("No space left on device"));
}

static ow_status refused(struct click *click, const struct http_answer *answer,
			 struct ow_error *err)
{
	const struct meaning *meaning;
	struct str text;

	click->code = click_exception(str_from(answer->text), &text);
	if (answer->exception_code)
		click->code = answer->exception_code;
	meaning = find_meaning(disk_full(text) ? 243 : click->code);
	click->transient =
		meaning ? meaning->transient
			: !click->code && (answer->status == 429 || answer->status == 502 ||
					   answer->status == 503 || answer->status == 504);
	if (!click->code && answer->status == 401)
		return error_set(err, OW_E_PERMISSION,
				 "%s refuses the user '%s'; set OPWATCH_CLICKHOUSE_PASSWORD or "
				 "give --password-file",
				 click->place, click->address.user);
	if (!click->code)
		return error_set(err, OW_E_IO,
				 "%s answers with HTTP status %ld: %.*s; is it a "
				 "ClickHouse server, and this its HTTP port?",
				 click->place, answer->status, STR_ARG(str_first(text, 200)));
	return error_set(err, meaning ? meaning->status : OW_E_IO, "%s: %.*s%s%s (code %d)",
			 click->place, STR_ARG(str_first(text, 700)),
			 meaning && meaning->advice ? "; " : "",
			 meaning && meaning->advice ? meaning->advice : "", click->code);
}

static ow_status explain_failure(struct click *click, const struct http_answer *answer,
				 struct ow_error *err)
{
	click->code = 0;
	click->transient = false;
	switch (answer->outcome) {
	case HTTP_ANSWERED:
		return refused(click, answer, err);
	case HTTP_NOT_REACHED:
		click->transient = click->proven || click->options.await;
		return error_set(err, OW_E_IO,
				 "%s cannot be reached: %s; is the server running, and is this "
				 "its %s port?",
				 click->place, answer->text, click->address.tls ? "HTTPS" : "HTTP");
	case HTTP_BROKEN:
		click->transient = true;
		return error_set(err, OW_E_IO, "the connection to %s broke: %s", click->place,
				 answer->text);
	case HTTP_CANCELLED:
		return error_set(err, OW_E_INTERRUPTED, "interrupted");
	case HTTP_TOO_LONG:
		return error_set(err, OW_E_LIMIT,
				 "the answer of %s is larger than the memory limit; request fewer "
				 "rows (LIMIT)",
				 click->place);
	case HTTP_NO_MEMORY:
		return error_no_memory(err);
	case HTTP_REFUSED_TLS:
		return error_set(err, OW_E_PERMISSION,
				 "%s is not trusted: %s; name its authority's certificate in "
				 "SSL_CERT_FILE",
				 click->place, answer->text);
	case HTTP_MAKE_FAILED:
		break; /* the function that makes the rows has set the error */
	}
	return err && err->status != OW_OK ? err->status : OW_E_INTERNAL;
}

uint64_t click_now_ms(void)
{
	return (uint64_t)(steady_ns() / 1000000);
}

/* A pseudo-random number (xorshift), good enough to make pauses differ. */
static uint64_t next_random(struct click *click)
{
	click->random ^= click->random << 13;
	click->random ^= click->random >> 7;
	click->random ^= click->random << 17;
	return click->random;
}

ow_status click_open(struct click *click, struct mem *mem, const struct address *address,
		     const struct click_options *options, struct ow_error *err)
{
	struct timespec now;

	clock_gettime(CLOCK_REALTIME, &now);
	*click = (struct click){ .mem = mem, .address = *address, .options = *options };
	click->random = ((uint64_t)now.tv_nsec << 20 ^ (uintptr_t)click) | 1;
	arena_init(&click->arena, mem);
	click->place = address_place(address, &click->arena);
	if (!click->place)
		return error_no_memory(err);
	return http_new(&click->http, mem, address, options->password, &options->http, err);
}

void click_close(struct click *click)
{
	http_free(click->http);
	click->http = NULL;
	arena_release(&click->arena);
}

static bool is_cancelled(const struct click *click)
{
	const struct http_options *http = &click->options.http;

	return http->keep_going && !http->keep_going(http->keep_going_arg);
}

/* Sleeps 100 ms, 200 ms, … 5 s before each new attempt, at random between half of that and all of it. */
bool click_pause(struct click *click, unsigned attempt, uint64_t began_ms)
{
	uint64_t pause = MIN(5000u, 100u << MIN(attempt - 1, 6u));
	uint64_t end;

	pause = pause / 2 + next_random(click) % (pause / 2 + 1);
	if (click_now_ms() - began_ms + pause > click->options.retry_ms)
		return false;
	for (end = click_now_ms() + pause; click_now_ms() < end && !is_cancelled(click);)
		nanosleep(&(struct timespec){ 0, 10 * 1000 * 1000 }, NULL);
	return !is_cancelled(click);
}

/* Views are subqueries, and older servers (18.16) filter their rows only after reading all runs, unless this setting
 * is sent. */
#define PUSH_DOWN "&enable_optimize_predicate_expression=1"

/* A server parses 256 KB of a statement, unless a setting allows more. */
#define QUERY_USUAL (200u << 10)
#define LARGE_QUERY "&max_query_size=67108864"

/* Whether a setting was refused: the user may not change settings, or the server does not know it or fails on it. */
static bool is_setting_refused(int code)
{
	static const int codes[] = { 164, 115, 8, 10, 36, 43, 47, 49 };

	for (size_t i = 0; i < ARRAY_COUNT(codes); i++)
		if (codes[i] == code)
			return true;
	return false;
}

static ow_status target_of(const struct click *click, struct buf *to, const char *format,
			   const char *query_id, struct str query, struct ow_error *err)
{
	buf_puts(to, "/?database=");
	http_encode(to, str_from(click->address.database));
	if (format) /* the server sends an error instead of the answer, not at its end */
		buf_printf(to, "&wait_end_of_query=1&default_format=%s", format);
	if (query_id)
		buf_printf(to, "&query_id=%s", query_id);
	if (query.len) {
		buf_puts(to, "&query=");
		http_encode(to, query);
	}
	return buf_cstr(to) ? OW_OK : error_no_memory(err);
}

static ow_status run_once(struct click *click, const struct http_request *request,
			  struct ow_error *err)
{
	struct http_answer answer;

	if (request->answer)
		buf_clear(request->answer);
	OW_TRY(http_post(click->http, request, &answer, err));
	click->is_tsv = answer.is_tsv;
	click->code = 0;
	click->transient = false;
	if (answer.outcome == HTTP_ANSWERED && answer.status == 200) {
		click->proven = true;
		return OW_OK;
	}
	return explain_failure(click, &answer, err);
}

/* Reports that a server which has not answered yet is waited for. */
static void report_wait(const struct click *click, unsigned attempt)
{
	char line[400];

	if (attempt != 1 || click->proven || !click->options.await || !click->options.waits)
		return;
	snprintf(line, sizeof(line), "%.200s cannot be reached yet; trying for %u s", click->place,
		 (unsigned)(click->options.retry_ms / 1000));
	click->options.waits(click->options.waits_arg, line);
}

static ow_status run_text(struct click *click, struct str text, enum click_repeat repeat,
			  const char *format, size_t limit, struct buf *answer,
			  struct ow_error *err)
{
	struct http_request request = {
		.body = text, .answer = answer, .answer_limit = limit, .once = repeat == CLICK_ONCE
	};
	uint64_t began = click_now_ms();
	struct buf target;
	ow_status status;

	buf_init(&target, click->mem);
	status = target_of(click, &target, format, NULL, (struct str){ 0 }, err);
	request.target = target.ptr;
	for (unsigned attempt = 1; status == OW_OK; attempt++) {
		status = run_once(click, &request, err);
		if (status == OW_OK || repeat == CLICK_ONCE || !click->transient)
			break;
		report_wait(click, attempt);
		if (!click_pause(click, attempt, began))
			break;
		error_clear(err);
		status = OW_OK;
	}
	buf_release(&target);
	return status;
}

ow_status click_run(struct click *click, struct str text, enum click_repeat repeat,
		    struct buf *answer, struct ow_error *err)
{
	bool large = text.len >= QUERY_USUAL;

	return run_text(click, text, repeat, large ? "TabSeparated" LARGE_QUERY : "TabSeparated",
			CONTROL_ANSWER, answer, err);
}

ow_status click_query(struct click *click, struct str text, size_t limit, struct buf *answer,
		      struct ow_error *err)
{
	static const char format[] = "TabSeparatedWithNamesAndTypes";
	ow_status status = run_text(click, text, CLICK_ONCE,
				    "TabSeparatedWithNamesAndTypes" PUSH_DOWN, limit, answer, err);

	if (status == OW_OK || !is_setting_refused(click->code))
		return status;
	error_clear(err);
	return run_text(click, text, CLICK_ONCE, format, limit, answer, err);
}

ow_status click_runf(struct click *click, struct buf *answer, struct ow_error *err,
		     const char *format, ...)
{
	struct buf text;
	ow_status status;
	va_list args;
	int len;

	va_start(args, format);
	len = vsnprintf(NULL, 0, format, args);
	va_end(args);
	buf_init(&text, click->mem);
	if (len < 0 || !buf_reserve(&text, (size_t)len + 1)) {
		buf_release(&text);
		return error_no_memory(err);
	}
	va_start(args, format);
	vsnprintf(text.ptr, (size_t)len + 1, format, args);
	va_end(args);
	text.len = (size_t)len;
	status = click_run(click, buf_str(&text), CLICK_REPEAT, answer, err);
	buf_release(&text);
	return status;
}

ow_status click_insert(struct click *click, struct str text, const char *query_id,
		       http_body_fn make, void *arg, struct ow_error *err)
{
	struct http_request request = { .make = make, .make_arg = arg };
	struct buf target;
	ow_status status;

	buf_init(&target, click->mem);
	status = target_of(click, &target, NULL, query_id, text, err);
	request.target = target.ptr;
	if (status == OW_OK)
		status = run_once(click, &request, err);
	buf_release(&target);
	return status;
}

static void quote(struct buf *to, struct str text, char mark)
{
	buf_add_char(to, mark);
	for (size_t i = 0; i < text.len; i++) {
		char c = text.ptr[i];

		if (c == mark || c == '\\')
			buf_add_char(to, '\\');
		if (c == 0)
			buf_puts(to, "\\0");
		else
			buf_add_char(to, c);
	}
	buf_add_char(to, mark);
}

void click_quote(struct buf *to, struct str text)
{
	quote(to, text, '\'');
}

void click_quote_name(struct buf *to, struct str name)
{
	quote(to, name, '`');
}

bool click_line(struct str *rest, struct str *line)
{
	if (!rest->ptr || !rest->len)
		return false;
	return str_split(rest, '\n', line);
}

bool click_field(struct str *line, struct str *field)
{
	return line->ptr && str_split(line, '\t', field);
}

bool click_field_u64(struct str *line, uint64_t *value)
{
	struct str field;

	if (!click_field(line, &field) || !field.len || field.len > 20)
		return false;
	*value = 0;
	for (size_t i = 0; i < field.len; i++) {
		if (field.ptr[i] < '0' || field.ptr[i] > '9' ||
		    __builtin_mul_overflow(*value, 10, value) ||
		    __builtin_add_overflow(*value, (uint64_t)(field.ptr[i] - '0'), value))
			return false;
	}
	return true;
}
