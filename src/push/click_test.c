/* click_test.c: statements against a server inside this program: good answers, every kind of refusal, and
 * what is repeated when. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "push/click.h"
#include "support/http_server.h"

#define SECRET "hunter2 &%"
#define PATIENCE_MS 60000u /* for what comes at once unless the machine is busy */

struct scene {
	struct http_server server;
	struct mem mem;
	struct arena arena;
	struct click click;
	struct buf answer;
	struct ow_error err;
	struct address address;
	/* what the server does */
	const char *refusal; /* the body of a refusal */
	int status;
	unsigned refusals; /* of the first requests */
	bool hang_up, early;
	int silence_ms;
	const char *headers;
	/* what it saw */
	char head[4096];
	size_t body_len;
	atomic_bool cancel;
};

static void handle(void *arg, struct http_exchange *x)
{
	struct scene *s = arg;

	if (x->body) {
		s->body_len = x->body_len;
		snprintf(s->head, sizeof(s->head), "%s", x->head);
	}
	snprintf(x->answer, sizeof(x->answer), "1\n");
	x->headers = s->headers;
	if (x->number >= s->refusals)
		return;
	snprintf(x->answer, sizeof(x->answer), "%s", s->refusal ? s->refusal : "");
	x->status = s->status ? s->status : 500;
	x->hang_up = s->hang_up;
	x->silence_ms = s->silence_ms;
	x->before_body = s->early;
}

static bool keep_going(void *arg)
{
	struct scene *s = arg;

	return !atomic_load(&s->cancel);
}

static void scene_open(struct scene *s, uint32_t retry_ms, uint32_t silence_ms)
{
	struct click_options options = { .http = { PATIENCE_MS, silence_ms, keep_going, NULL,
						   false },
					 .password = SECRET,
					 .retry_ms = retry_ms };

	memset(s, 0, sizeof(*s));
	options.http.keep_going_arg = s;
	mem_init(&s->mem, 0);
	arena_init(&s->arena, &s->mem);
	buf_init(&s->answer, &s->mem);
	http_server_start(&s->server, handle, s);
	s->address = (struct address){
		.host = "127.0.0.1", .port = s->server.port, .user = "ann", .database = "my db"
	};
	assert_int_equal(click_open(&s->click, &s->mem, &s->address, &options, &s->err), OW_OK);
}

static void scene_close(struct scene *s)
{
	assert_null(strstr(s->err.text, "hunter2"));
	click_close(&s->click);
	http_server_end(&s->server);
	buf_release(&s->answer);
	arena_release(&s->arena);
	assert_int_equal(atomic_load(&s->mem.used), 0);
}

static void good(void **state)
{
	struct scene s;

	(void)state;
	scene_open(&s, 0, PATIENCE_MS);
	assert_int_equal(click_runf(&s.click, &s.answer, &s.err, "SELECT %d", 1), OW_OK);
	assert_string_equal(buf_cstr(&s.answer), "1\n");
	assert_true(s.click.proven);
	assert_int_equal(s.body_len, strlen("SELECT 1"));
	assert_non_null(strstr(s.head, "POST /?database=my%20db&"));
	assert_non_null(strstr(s.head, "X-ClickHouse-User: ann\r\n"));
	assert_non_null(strstr(s.head, "X-ClickHouse-Key: " SECRET "\r\n"));
	assert_null(strstr(s.head, "Expect"));
	scene_close(&s);
}

static void refused(int status, const char *text, const char *headers, ow_status expected, int code,
		    const char *words)
{
	struct scene s;

	scene_open(&s, 0, PATIENCE_MS);
	s.status = status;
	s.refusal = text;
	s.headers = headers;
	s.refusals = 1;
	assert_int_equal(click_run(&s.click, STR("SELECT 1"), CLICK_REPEAT, &s.answer, &s.err),
			 expected);
	assert_int_equal(s.click.code, code);
	if (!strstr(s.err.text, words))
		fail_msg("%s", s.err.text);
	assert_int_equal(atomic_load(&s.server.requests), 1);
	scene_close(&s);
}

static void refusals(void **state)
{
	(void)state;
	refused(401,
		"Code: 193, e.displayText() = DB::Exception: Wrong password for user ann, e.what() "
		"= "
		"DB::Exception\n",
		NULL, OW_E_PERMISSION, 193,
		"Wrong password for user ann; set OPWATCH_CLICKHOUSE_PASSWORD");
	refused(403,
		"Code: 516. DB::Exception: ann: Authentication failed. (AUTHENTICATION_FAILED) "
		"(version 23.8.1.1 (official build))",
		"X-ClickHouse-Exception-Code: 516\r\n", OW_E_PERMISSION, 516,
		"Authentication failed. (AUTHENTICATION_FAILED); check the user");
	refused(401, "", NULL, OW_E_PERMISSION, 0, "refuses the user 'ann'");
	refused(404,
		"Code: 81, e.displayText() = DB::Exception: Database x doesn't exist, e.what() = "
		"DB::Exception",
		NULL, OW_E_NOT_FOUND, 81, "doesn't exist; create it");
	refused(400, "Code: 62. DB::Exception: Syntax error (SYNTAX_ERROR) (version 24.1)", NULL,
		OW_E_USAGE, 62, "Syntax error (SYNTAX_ERROR) (code 62)");
	refused(500,
		"Code: 164, e.displayText() = DB::Exception: Cannot create table in readonly mode, "
		"e.what() = DB::Exception",
		NULL, OW_E_PERMISSION, 164, "may only read");
	refused(500, "Code: 243. DB::Exception: Cannot reserve 1.00 MiB, not enough space.", NULL,
		OW_E_IO, 243, "disk of the server is full");
	refused(500,
		"Code: 75, e.displayText() = DB::ErrnoException: Cannot write to file, errno: 28, "
		"strerror: No space left on device, e.what() = DB::ErrnoException",
		NULL, OW_E_IO, 75, "disk of the server is full");
	refused(500, "Code: 9999. DB::Exception: Something new", NULL, OW_E_IO, 9999,
		"Something new (code 9999)");
	refused(404, "<html>no such page</html>", NULL, OW_E_IO, 0, "is it a ClickHouse server");
	refused(302, "", "Location: http://127.0.0.1:1/\r\n", OW_E_IO, 0, "HTTP status 302");
}

static void exceptions(void **state)
{
	struct str text;

	(void)state;
	assert_int_equal(
		click_exception(STR("Code: 47, e.displayText() = DB::Exception: Received from "
				    "127.0.0.2:9000. DB::Exception: Unknown identifier: x, "
				    "e.what() = DB::Exception"),
				&text),
		47);
	assert_true(str_starts(text, STR("Received from 127.0.0.2:9000.")));
	assert_int_equal(click_exception(STR("nothing of the kind"), &text), 0);
	assert_int_equal(click_exception(STR("Code: 99999999999999999999"), &text), 9999999);
}

static void repeated(void **state)
{
	struct scene s;

	(void)state;
	scene_open(&s, PATIENCE_MS, PATIENCE_MS);
	s.refusals = 3;
	s.status = 503;
	s.refusal = "busy";
	assert_int_equal(click_run(&s.click, STR("SELECT 1"), CLICK_REPEAT, &s.answer, &s.err),
			 OW_OK);
	assert_string_equal(buf_cstr(&s.answer), "1\n");
	assert_int_equal(atomic_load(&s.server.requests), 4);
	scene_close(&s);
}

static void hung_up(enum click_repeat repeat, ow_status expected, unsigned requests)
{
	struct scene s;

	scene_open(&s, PATIENCE_MS, PATIENCE_MS);
	s.refusals = 1;
	s.hang_up = true;
	assert_int_equal(click_run(&s.click, STR("SELECT 1"), repeat, &s.answer, &s.err), expected);
	assert_int_equal(atomic_load(&s.server.requests), requests);
	scene_close(&s);
}

static void broken(void **state)
{
	(void)state;
	hung_up(CLICK_REPEAT, OW_OK, 2);
	hung_up(CLICK_ONCE, OW_E_IO, 1); /* it may have been done */
}

static void given_up(void **state)
{
	uint64_t began = click_now_ms();
	struct scene s;

	(void)state;
	scene_open(&s, 2000, PATIENCE_MS);
	s.refusals = UINT32_MAX;
	s.refusal = "Code: 202. DB::Exception: Too many simultaneous queries.";
	assert_int_equal(click_run(&s.click, STR("SELECT 1"), CLICK_REPEAT, &s.answer, &s.err),
			 OW_E_LIMIT);
	assert_true(atomic_load(&s.server.requests) > 1);
	assert_true(click_now_ms() - began < PATIENCE_MS);
	assert_non_null(strstr(s.err.text, "the server is busy"));
	scene_close(&s);
}

static void count_wait(void *arg, const char *line)
{
	++*(int *)arg;
	assert_non_null(strstr(line, "cannot be reached yet; trying for 1 s"));
}

/* No server listens: reported at once, unless it had answered before or is waited for. */
static void not_reached(void **state)
{
	struct click_options options = { .http = { PATIENCE_MS, PATIENCE_MS, NULL, NULL, false },
					 .retry_ms = 2 * PATIENCE_MS };
	struct address gone;
	uint64_t began = click_now_ms();
	struct click click;
	struct scene s;
	int waits = 0;

	(void)state;
	scene_open(&s, 0, PATIENCE_MS);
	gone = s.address;
	scene_close(&s);
	assert_int_equal(click_open(&click, &s.mem, &gone, &options, &s.err), OW_OK);
	assert_int_equal(click_run(&click, STR("SELECT 1"), CLICK_REPEAT, NULL, &s.err), OW_E_IO);
	assert_non_null(strstr(s.err.text, "cannot be reached"));
	assert_true(click_now_ms() - began < PATIENCE_MS);
	click.options.retry_ms = 300;
	click.proven = true;
	assert_int_equal(click_run(&click, STR("SELECT 1"), CLICK_REPEAT, NULL, &s.err), OW_E_IO);
	assert_true(click.transient);
	click_close(&click);
	options.await = true;
	options.retry_ms = 1000;
	options.waits = count_wait;
	options.waits_arg = &waits;
	began = click_now_ms();
	assert_int_equal(click_open(&click, &s.mem, &gone, &options, &s.err), OW_OK);
	assert_int_equal(click_run(&click, STR("SELECT 1"), CLICK_REPEAT, NULL, &s.err), OW_E_IO);
	assert_int_equal(waits, 1);
	assert_true(click_now_ms() - began >= 200);
	click_close(&click);
	options.await = false;
	gone.host = "no-such-host.invalid";
	assert_int_equal(click_open(&click, &s.mem, &gone, &options, &s.err), OW_OK);
	assert_int_equal(click_run(&click, STR("SELECT 1"), CLICK_REPEAT, NULL, &s.err), OW_E_IO);
	assert_non_null(strstr(s.err.text, "no-such-host.invalid"));
	click_close(&click);
}

static void silence(void **state)
{
	struct scene s;

	(void)state;
	scene_open(&s, 0, 1000);
	s.refusals = 1;
	s.silence_ms = 4000;
	assert_int_equal(click_run(&s.click, STR("SELECT 1"), CLICK_ONCE, &s.answer, &s.err),
			 OW_E_IO);
	assert_true(s.click.transient);
	assert_non_null(strstr(s.err.text, "broke"));
	scene_close(&s);
}

static void cancelled(void **state)
{
	struct scene s;

	(void)state;
	scene_open(&s, PATIENCE_MS, PATIENCE_MS);
	atomic_store(&s.cancel, true);
	assert_int_equal(click_run(&s.click, STR("SELECT 1"), CLICK_REPEAT, &s.answer, &s.err),
			 OW_E_INTERRUPTED);
	scene_close(&s);
}

static void too_long(void **state)
{
	struct scene s;

	(void)state;
	scene_open(&s, 0, PATIENCE_MS);
	assert_int_equal(click_query(&s.click, STR("SELECT 1"), 1, &s.answer, &s.err), OW_E_LIMIT);
	scene_close(&s);
}

/* ---- bodies that are made while they are sent ---- */

struct made {
	size_t left;
	bool fails;
	struct ow_error *err;
};

static size_t make(void *arg, void *to, size_t cap)
{
	struct made *made = arg;
	size_t len = MIN(cap, made->left);

	if (made->fails) {
		(void)error_set(made->err, OW_E_NO_MEMORY, "no more");
		return HTTP_BODY_FAILED;
	}
	memset(to, 'x', len);
	made->left -= len;
	return len;
}

static void inserted(void **state)
{
	struct made made = { .left = 5 << 20 };
	struct scene s;

	(void)state;
	scene_open(&s, 0, PATIENCE_MS);
	assert_int_equal(click_insert(&s.click, STR("INSERT INTO t FORMAT Native"), "id-1", make,
				      &made, &s.err),
			 OW_OK);
	assert_int_equal(s.body_len, 5 << 20);
	assert_non_null(
		strstr(s.head, "&query_id=id-1&query=INSERT%20INTO%20t%20FORMAT%20Native "));
	scene_close(&s);
}

/* A full disk is told while the rows still come. */
static void refused_early(void **state)
{
	struct made made = { .left = 50 << 20 };
	struct scene s;

	(void)state;
	scene_open(&s, PATIENCE_MS, PATIENCE_MS);
	s.refusals = UINT32_MAX;
	s.early = true;
	s.refusal = "Code: 243. DB::Exception: Not enough space";
	assert_int_equal(click_insert(&s.click, STR("INSERT INTO t FORMAT Native"), "id-1", make,
				      &made, &s.err),
			 OW_E_IO);
	assert_int_equal(s.click.code, 243);
	assert_false(s.click.transient);
	assert_int_equal(atomic_load(&s.server.requests), 1);
	scene_close(&s);
}

static void maker_fails(void **state)
{
	struct scene s;
	struct made made = { .left = 100, .fails = true, .err = &s.err };

	(void)state;
	scene_open(&s, PATIENCE_MS, PATIENCE_MS);
	assert_int_equal(click_insert(&s.click, STR("INSERT INTO t FORMAT Native"), "id-1", make,
				      &made, &s.err),
			 OW_E_NO_MEMORY);
	assert_string_equal(s.err.text, "no more");
	scene_close(&s);
}

/* ---- texts ---- */

static void quotes(void **state)
{
	struct buf text;
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	buf_init(&text, &mem);
	click_quote(&text, STR("it's a \\ \n"));
	click_quote_name(&text, STR("a`b"));
	assert_string_equal(buf_cstr(&text), "'it\\'s a \\\\ \n'`a\\`b`");
	buf_clear(&text);
	http_encode(&text, STR("a b&c=%/\xc3\xa9~"));
	assert_string_equal(buf_cstr(&text), "a%20b%26c%3D%25%2F%C3%A9~");
	buf_release(&text);
}

static void fields(void **state)
{
	struct str rest = STR("a\t18446744073709551615\n\tx\n"), line, field;
	uint64_t number;

	(void)state;
	assert_true(click_line(&rest, &line));
	assert_true(click_field(&line, &field) && str_eq(field, STR("a")));
	assert_true(click_field_u64(&line, &number) && number == UINT64_MAX);
	assert_false(click_field(&line, &field));
	assert_true(click_line(&rest, &line));
	assert_false(click_field_u64(&line, &number));
	assert_true(click_field(&line, &field) && str_eq(field, STR("x")));
	assert_false(click_line(&rest, &line));
	line = STR("18446744073709551616");
	assert_false(click_field_u64(&line, &number));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(good),	       cmocka_unit_test(refusals),
		cmocka_unit_test(exceptions),  cmocka_unit_test(repeated),
		cmocka_unit_test(broken),      cmocka_unit_test(given_up),
		cmocka_unit_test(not_reached), cmocka_unit_test(silence),
		cmocka_unit_test(cancelled),   cmocka_unit_test(too_long),
		cmocka_unit_test(inserted),    cmocka_unit_test(refused_early),
		cmocka_unit_test(maker_fails), cmocka_unit_test(quotes),
		cmocka_unit_test(fields),
	};
	struct ow_error err = { 0 };

	if (http_available(&err) != OW_OK) {
		print_message("skipped: %s\n", err.text);
		return 0;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
