/* click.c: see click.h. */
#include "push/click.h"

#include "base/clock.h"
#include "push/click_error.h"

#include <stdarg.h>
#include <time.h>

#define CONTROL_ANSWER (256u << 20) /* the longest answer to a statement of our own */

uint64_t click_now_ms(void)
{
	return (uint64_t)(steady_ns() / 1000000);
}

/* xorshift: pauses only have to differ. */
static uint64_t next_random(struct click *click)
{
	click->random ^= click->random << 13;
	click->random ^= click->random >> 7;
	click->random ^= click->random << 17;
	return click->random;
}

ow_status click_open(struct click *click, struct mem *mem, const struct address *address,
		     const struct click_options *options, struct error *err)
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

/* ---- pauses ---- */

static bool is_cancelled(const struct click *click)
{
	const struct http_options *http = &click->options.http;

	return http->cancelled && http->cancelled(http->cancel_arg);
}

/* 100 ms, 200 ms, … 5 s, each between half and all of it. */
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

/* ---- statements ---- */

static ow_status target_of(const struct click *click, struct buf *to, const char *format,
			   const char *query_id, struct str query, struct error *err)
{
	buf_puts(to, "/?database=");
	http_encode(to, str_from(click->address.database));
	if (format) /* errors come instead of the answer, not at its end */
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
			  struct error *err)
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
	return click_failure(click, &answer, err);
}

static ow_status run_text(struct click *click, struct str text, enum click_repeat repeat,
			  const char *format, size_t limit, struct buf *answer, struct error *err)
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
		if (status == OW_OK || repeat == CLICK_ONCE || !click->transient ||
		    !click_pause(click, attempt, began))
			break;
		error_clear(err);
		status = OW_OK;
	}
	buf_release(&target);
	return status;
}

ow_status click_run(struct click *click, struct str text, enum click_repeat repeat,
		    struct buf *answer, struct error *err)
{
	return run_text(click, text, repeat, "TabSeparated", CONTROL_ANSWER, answer, err);
}

ow_status click_query(struct click *click, struct str text, size_t limit, struct buf *answer,
		      struct error *err)
{
	return run_text(click, text, CLICK_ONCE, "TabSeparatedWithNamesAndTypes", limit, answer,
			err);
}

ow_status click_runf(struct click *click, struct buf *answer, struct error *err, const char *format,
		     ...)
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
		       http_body_fn make, void *arg, struct error *err)
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

/* ---- texts ---- */

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
