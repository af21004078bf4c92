/* json_scan_test.c: events and documents from text, on both paths, cut, damaged, and across windows. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "wire/json/json.h"
#include "wire/json/json_scan.h"

/* What a scan says, as text: one line per thing found. */
struct story {
	struct mem mem;
	struct buf text;
};

static void tell_event(struct story *s, const struct json_event *ev)
{
	static const char *const names[FIELD_COUNT] = {
		"other", "ph",	    "name",    "cat",	   "pid",   "tid",  "ts",
		"dur",	 "args",    "id",      "id2",	   "scope", "bp",   "s",
		"sf",	 "bind_id", "flow_in", "flow_out", "tts",   "tdur", "stack"
	};

	buf_printf(&s->text, "event");
	for (int f = 1; f < FIELD_COUNT; f++)
		if (json_event_has(ev, (enum json_field)f))
			buf_printf(&s->text, " %s=%.*s", names[f], (int)ev->value[f].len,
				   ev->value[f].at);
	buf_add_char(&s->text, '\n');
}

static void tell_events(struct story *s, struct json_scan *scan)
{
	struct json_event ev;

	for (;;) {
		switch (json_scan_event(scan, UINT64_MAX, &ev)) {
		case SCAN_EVENT:
			tell_event(s, &ev);
			continue;
		case SCAN_OTHER:
			buf_puts(&s->text, "other\n");
			continue;
		case SCAN_DAMAGE:
			buf_puts(&s->text, "damage\n");
			continue;
		case SCAN_END:
			buf_puts(&s->text, "end\n");
			return;
		case SCAN_TRUNCATED:
			buf_printf(&s->text, "cut %s\n",
				   ev.offset < scan->in->size ? "in event" : "after event");
			return;
		case SCAN_STOP:
		case SCAN_FAILED:
			buf_puts(&s->text, "failed\n");
			return;
		}
	}
}

static void tell_document(struct story *s, const void *text, size_t len, enum json_path path)
{
	struct ow_error err = { 0 };
	struct json_doc doc = { 0 };
	struct json_item item;
	struct json_scan scan;
	struct input in;
	void *copy = malloc(len ? len : 1);

	memcpy(copy, text, len);
	mem_init(&s->mem, 0);
	buf_init(&s->text, &s->mem);
	assert_int_equal(input_from_memory(&in, &s->mem, "test", copy, len, &err), OW_OK);
	json_scan_init(&scan, &in, &err);
	scan.path = path;
	for (bool more = true; more;) {
		switch (json_scan_document(&scan, &doc, &item)) {
		case ITEM_EVENTS:
			buf_printf(&s->text, item.bare ? "bare\n" : "events\n");
			tell_events(s, &scan);
			break;
		case ITEM_MEMBER:
			buf_printf(&s->text, "member %.*s %d%s\n", (int)item.key.len, item.key.at,
				   (int)item.size, item.complete ? "" : " cut");
			break;
		case ITEM_DOCUMENT:
			buf_puts(&s->text, "document\n");
			break;
		case ITEM_DAMAGE:
			buf_puts(&s->text, "damage\n");
			break;
		case ITEM_TRUNCATED:
			buf_puts(&s->text, "cut\n");
			break;
		case ITEM_EOF:
			more = false;
			break;
		case ITEM_FAILED:
			fail_msg("%s", err.text);
		}
	}
	json_scan_release(&scan);
	input_close(&in);
	free(copy);
}

static void reads_as(const char *text, const char *want)
{
	struct story best, portable;

	tell_document(&best, text, strlen(text), json_best_path());
	tell_document(&portable, text, strlen(text), JSON_PORTABLE);
	assert_string_equal(buf_cstr(&best.text), want);
	assert_string_equal(buf_cstr(&portable.text), want);
	buf_release(&best.text);
	buf_release(&portable.text);
}

static void test_forms(void **state)
{
	(void)state;
	reads_as("[]", "events\nend\n");
	reads_as("", "");
	reads_as(" \n[{\"ph\":\"X\"}]", "events\nevent ph=X\nend\n");
	reads_as("\xef\xbb\xbf[{}]", "events\nevent\nend\n");
	reads_as("{\"traceEvents\":[{\"ph\":\"X\",\"name\":\"a\"}]}",
		 "events\nevent ph=X name=a\nend\ndocument\n");
	reads_as("{\"a\":1,\"b\":\"\\\"]\",\"traceEvents\":[{\"ph\":\"i\"}],\"c\":{\"traceEvents\":"
		 "[1]"
		 "}}",
		 "member a 1\nmember b 5\nevents\nevent ph=i\nend\nmember c 19\ndocument\n");
	reads_as("{\"\\u0074raceEvents\":[{\"\\u0070h\":\"i\"}]}",
		 "events\nevent ph=i\nend\ndocument\n");
	reads_as("{\"ph\":\"X\"}\n{\"ph\":\"i\"}\n",
		 "bare\nevent ph=X\nevent ph=i\ncut after event\n");
	reads_as("[{\"ph\":\"X\"}] [{\"ph\":\"i\"}]\n{\"traceEvents\":[]}",
		 "events\nevent ph=X\nend\nevents\nevent ph=i\nend\nevents\nend\ndocument\n");
}

static void test_values(void **state)
{
	(void)state;
	reads_as("[{\"ts\":1.5e3,\"dur\":\"7\",\"pid\":-1,\"tid\":null,\"args\":{\"a\":[1,{}]},"
		 "\"id\":"
		 "{}}]",
		 "events\nevent pid=-1 tid=null ts=1.5e3 dur=7 args={\"a\":[1,{}]} id={}\nend\n");
	reads_as("[{\"args\":{\"t\":\"}]\\\\\"},\"x\":[\"]\"],\"flow_out\":true,\"bind_id\":"
		 "\"0x1\"}]",
		 "events\nevent args={\"t\":\"}]\\\\\"} bind_id=0x1 flow_out=true\nend\n");
	reads_as("[{\"ph\":\"a\",\"ph\":\"b\"}]", "events\nevent ph=b\nend\n");
	reads_as("[{\"ts\":NaN,\"dur\":-Infinity,\"ts2\":1}]",
		 "events\nevent ts=NaN dur=-Infinity\nend\n");
	reads_as("[{\"ts\":12345678901234567890123456789012345678901234567890}]",
		 "events\nevent ts=12345678901234567890123456789012345678901234567890\nend\n");
}

static void test_lenience(void **state)
{
	(void)state;
	reads_as("[,{\"ph\":\"X\",},,{\"ph\":\"i\"},]", "events\nevent ph=X\nevent ph=i\nend\n");
	reads_as("[{\"ph\" : \"X\" \"pid\":1}{\"ph\":\"i\"}",
		 "events\nevent ph=X pid=1\nevent ph=i\ncut after event\n");
	reads_as("// \"a\n[/* { */{\"ph\"://x\n\"X\"/*\"*/,\"pid\":7// \n}]//",
		 "events\nevent ph=X pid=7\nend\n");
	reads_as("[1,\"{\\\"ph\\\":\\\"X\\\"}\",null,[{\"ph\":\"X\"}],{\"ph\":\"i\"}]",
		 "events\nother\nother\nother\nother\nevent ph=i\nend\n");
	reads_as("x{\"traceEvents\":[{\"ph\":\"X\"}]}y",
		 "damage\nevents\nevent ph=X\nend\ndocument\ndamage\n");
}

static void test_damage(void **state)
{
	(void)state;
	reads_as("[{\"ph\":\"X\",\"name\":\"a\"b\"},{\"ph\":\"i\"},{\"ph\":\"n\"}]",
		 "events\ndamage\nevent ph=i\nevent ph=n\nend\n");
	reads_as("[{\"ph\":\"X\"},:{\"ph\":\"i\"}]",
		 "events\nevent ph=X\ndamage\ncut after event\n");
	reads_as("[{\"ph\":\"X\"},}{{\"ph\":\"i\"},{\"ph\":\"n\"}]",
		 "events\nevent ph=X\ndamage\nevent ph=i\nevent ph=n\nend\n");
	reads_as("[{\"ph\":\"X\"},{\"ph\":\"i\",\"na", "events\nevent ph=X\ncut in event\n");
	reads_as("{\"a\":\"b", "member a 2 cut\ncut\n");
	reads_as("{\"a\":[", "member a 1 cut\ncut\n");
	reads_as("{\"a", "cut\n");
	reads_as("{\"a\":}", "damage\ndocument\n");
	reads_as("{\"a\" \"b\":1]}", "damage\nmember b 1\ndamage\ndocument\n");
}

/* Every prefix tells the events that are complete in it, and no more. */
static void test_prefixes(void **state)
{
	static const char text[] =
		"{\"k\":[1,2],\"traceEvents\":[{\"ph\":\"X\",\"ts\":1,\"args\":{\"a\":\"]}\"}} , "
		"{\"ph\":\"i\",\"name\":\"\\\\\\\"\"},{\"ph\":\"n\"}],\"z\":\"\\\"\"}";
	size_t ends[3] = { 0 }, count = 0;

	(void)state;
	for (const char *p = text; count < 3; p++) /* where the events end, by hand */
		if (strncmp(p, "}} ", 3) == 0 || strncmp(p, "\"},", 3) == 0 ||
		    strncmp(p, "\"}]", 3) == 0)
			ends[count++] = (size_t)(p + 2 - text);
	for (size_t len = 0; len < sizeof(text); len++) {
		struct story best, portable;
		size_t events = 0, want = 0;

		tell_document(&best, text, len, json_best_path());
		tell_document(&portable, text, len, JSON_PORTABLE);
		assert_string_equal(buf_cstr(&best.text), buf_cstr(&portable.text));
		for (const char *p = buf_cstr(&best.text); (p = strstr(p, "event ")); p++)
			events += strncmp(p - 1, "\n", 1) == 0;
		for (size_t i = 0; i < 3; i++)
			want += len >= ends[i];
		assert_int_equal(events, want);
		buf_release(&best.text);
		buf_release(&portable.text);
	}
}

/* ---- more than one window ---- */

struct many {
	struct mem mem;
	struct buf text;
	size_t count;
};

static void make_many(struct many *m, size_t bytes)
{
	uint64_t seed = 3;

	mem_init(&m->mem, 0);
	buf_init(&m->text, &m->mem);
	m->count = 0;
	buf_puts(&m->text, "{\"long\":\"");
	buf_add_repeat(&m->text, 'x', 1500000);
	buf_puts(&m->text, "\",\"nested\":[");
	for (int i = 0; i < 300000; i++)
		buf_puts(&m->text, "[\"]\"],");
	buf_puts(&m->text, "0],\"traceEvents\":[\n");
	while (m->text.len < bytes) {
		seed = seed * 6364136223846793005ull + 1442695040888963407ull;
		buf_printf(&m->text,
			   "%s{\"ph\":\"X\",\"ts\":%zu,\"args\":{\"s\":\"{\\\"ph\\\":\\\"X\\\"},{"
			   "\",\"fill\":\"",
			   m->count ? ",\n" : "", m->count);
		buf_add_repeat(&m->text, m->count % 1000 == 999 ? '\\' : 'y',
			       m->count % 1000 == 999 ? 2000 : (seed >> 40) % 200);
		if (m->count == 5000)
			buf_add_repeat(&m->text, 'z', 1300000); /* larger than a window */
		buf_puts(&m->text, "\"}}");
		m->count++;
	}
	buf_puts(&m->text, "]}");
}

static size_t count_events(struct json_scan *scan, uint64_t stop, enum json_scan_result *last)
{
	struct json_event ev;
	size_t count = 0;

	while ((*last = json_scan_event(scan, stop, &ev)) == SCAN_EVENT)
		count++;
	return count;
}

static void test_windows(void **state)
{
	struct json_doc doc = { 0 };
	struct ow_error err = { 0 };
	enum json_scan_result last;
	struct json_item item;
	struct json_scan scan;
	struct input in;
	struct many m;

	(void)state;
	make_many(&m, 8 << 20);
	assert_int_equal(input_from_memory(&in, &m.mem, "many", m.text.ptr, m.text.len, &err),
			 OW_OK);
	json_scan_init(&scan, &in, &err);
	assert_int_equal(json_scan_document(&scan, &doc, &item), ITEM_MEMBER);
	assert_int_equal(item.size, 1500002);
	assert_int_equal(json_scan_document(&scan, &doc, &item), ITEM_MEMBER);
	assert_true(item.complete);
	assert_int_equal(json_scan_document(&scan, &doc, &item), ITEM_EVENTS);
	assert_int_equal(count_events(&scan, UINT64_MAX, &last), m.count);
	assert_int_equal(last, SCAN_END);
	assert_int_equal(json_scan_document(&scan, &doc, &item), ITEM_DOCUMENT);
	assert_int_equal(json_scan_document(&scan, &doc, &item), ITEM_EOF);

	/* In parts, each from where the one before stopped. */
	json_scan_seek(&scan, 0);
	doc = (struct json_doc){ 0 };
	while (json_scan_document(&scan, &doc, &item) != ITEM_EVENTS)
		;
	for (size_t total = 0, stop = 0;; stop += 100000) {
		total += count_events(&scan, stop, &last);
		if (last == SCAN_END) {
			assert_int_equal(total, m.count);
			break;
		}
		assert_int_equal(last, SCAN_STOP);
	}
	json_scan_release(&scan);
	input_close(&in);
	buf_release(&m.text);
}

/* A guess finds a real event, because text in strings has its quotes escaped. */
static void test_guess(void **state)
{
	struct ow_error err = { 0 };
	struct json_scan scan;
	struct input in;
	struct many m;
	int hits = 0;

	(void)state;
	make_many(&m, 5 << 20);
	assert_int_equal(input_from_memory(&in, &m.mem, "many", m.text.ptr, m.text.len, &err),
			 OW_OK);
	json_scan_init(&scan, &in, &err);
	for (uint64_t from = 0; from < m.text.len; from += 9973) {
		uint64_t found;

		if (json_scan_guess(&scan, from, from + 100000, &found)) {
			assert_true(found >= from && found < from + 100000);
			assert_memory_equal(m.text.ptr + found - 1, "\n{\"ph\":\"X\"", 10);
			hits++;
		}
	}
	assert_true(hits > 40);
	json_scan_release(&scan);
	input_close(&in);
	buf_release(&m.text);
}

/* Keys of a nested object, by the window's marks. */
static void test_pick(void **state)
{
	static const char text[] = "[{\"args\":{\"a\":{\"name\":1},\"b\" : [\"}\"] "
				   ",\n\"name\":\"x\\\"y\", \"a longer key\":-5e1,"
				   "\"name\":2}}]";
	static const struct json_pick picks[] = { JSON_PICK("name"), JSON_PICK("a longer key"),
						  JSON_PICK("missing") };

	(void)state;
	for (enum json_path path = JSON_BEST; path <= JSON_PORTABLE; path++) {
		struct json_value found[3];
		struct ow_error err = { 0 };
		struct json_scan scan;
		struct json_event ev;
		struct input in;
		struct mem mem;

		mem_init(&mem, 0);
		assert_int_equal(input_from_memory(&in, &mem, "t", text, sizeof(text) - 1, &err),
				 OW_OK);
		json_scan_init(&scan, &in, &err);
		scan.path = path == JSON_BEST ? json_best_path() : JSON_PORTABLE;
		json_scan_seek(&scan, 1);
		assert_int_equal(json_scan_event(&scan, UINT64_MAX, &ev), SCAN_EVENT);
		json_scan_pick(&scan, &ev.value[FIELD_ARGS], picks, 3, found);
		assert_true(str_eq(json_text(found[0]), STR("x\\\"y")));
		assert_true(str_eq(json_text(found[1]), STR("-5e1")) &&
			    found[1].kind == JSON_NUMBER);
		assert_int_equal(found[2].kind, JSON_NONE);
		json_scan_release(&scan);
		input_close(&in);
	}
}

/* How often the bytes of `count` times `unit` between head and tail are read. */
static double times_read(const char *head, const char *unit, size_t count, const char *tail)
{
	atomic_uint_fast64_t done = 0;
	struct ow_error err = { 0 };
	struct json_doc doc = { 0 };
	struct json_item item;
	struct json_scan scan;
	struct json_event ev;
	struct input in;
	struct mem mem;
	struct buf text;
	double times;

	mem_init(&mem, 0);
	buf_init(&text, &mem);
	buf_puts(&text, head);
	for (size_t i = 0; i < count; i++)
		buf_puts(&text, unit);
	buf_puts(&text, tail);
	assert_int_equal(input_from_memory(&in, &mem, "test", text.ptr, text.len, &err), OW_OK);
	json_scan_init(&scan, &in, &err);
	scan.done = &done;
	do {
		if (json_scan_document(&scan, &doc, &item) != ITEM_EVENTS)
			continue;
		json_scan_seek(&scan, item.offset);
		while (json_scan_event(&scan, UINT64_MAX, &ev) == SCAN_EVENT)
			continue;
	} while (item.kind != ITEM_EOF && item.kind != ITEM_FAILED);
	assert_int_equal(item.kind, ITEM_EOF);
	times = (double)done / (double)in.size;
	json_scan_release(&scan);
	input_close(&in);
	buf_release(&text);
	return times;
}

/* Damage in every other event costs neither the events between nor much time. */
static void test_much_damage(void **state)
{
	static const char pair[] =
		"{\"ph\":\"X\",\"name\":\"a\"},\n{\"ph\":\"X\",\"name\":\"a \"b\" c\"},\n";
	const size_t count = 500000;
	struct ow_error err = { 0 };
	enum json_scan_result what;
	struct json_scan scan;
	struct json_event ev;
	struct input in;
	size_t good = 0;
	struct buf text;
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	buf_init(&text, &mem);
	for (size_t i = 0; i < count; i++)
		buf_puts(&text, pair);
	assert_int_equal(input_from_memory(&in, &mem, "test", text.ptr, text.len, &err), OW_OK);
	json_scan_init(&scan, &in, &err);
	while ((what = json_scan_event(&scan, UINT64_MAX, &ev)) <= SCAN_DAMAGE)
		good += what == SCAN_EVENT;
	assert_int_equal(what, SCAN_TRUNCATED); /* the list has no end */
	assert_int_equal(good, count);
	json_scan_release(&scan);
	input_close(&in);
	buf_release(&text);
}

/* Many small things between which there are no events: the window is not read again for each. */
static void test_bytes_are_read_once(void **state)
{
	static const char events[] = "\"traceEvents\":[{\"ph\":\"X\"}]}";

	(void)state;
	assert_true(times_read("{", "\"k\":1,", 300000, events) < 2);
	assert_true(times_read("{", "\"k\":\"[\",", 300000, events) < 2);
	assert_true(times_read("{", "\"k\":{\"a\":[]},", 300000, events) < 2);
	assert_true(times_read("{", "\"k\",", 300000, events) < 2);
	assert_true(times_read("node {", " name: \"a\" op: \"b\" attr {", 100000, "") < 2);
	assert_true(times_read("node ", "{ x: 'a' } ", 100000, "") < 2);
	assert_true(times_read("", "[{\"ph\":\"X\"}]\n", 100000, "") < 2);
	assert_true(times_read("", "{\"traceEvents\":[{\"ph\":\"X\"}]}\n", 100000, "") < 2);
	/* Each quote is escaped by what is before it, and none when it is come to: limited. */
	assert_true(times_read("{", "x\\\"", 1000000, "") < 200);
	assert_true(times_read("{", "//\"\n", 1000000, "") < 200);
}

static void test_no_memory(void **state)
{
	static const char text[] = "[{\"ph\":\"X\"}]";
	struct ow_error err = { 0 };
	struct json_scan scan;
	struct json_event ev;
	struct input in;
	struct mem mem;

	(void)state;
	for (uint64_t n = 1; n < 4; n++) {
		mem_init(&mem, 0);
		assert_int_equal(input_from_memory(&in, &mem, "t", text, sizeof(text) - 1, &err),
				 OW_OK);
		json_scan_init(&scan, &in, &err);
		json_scan_seek(&scan, 1);
		mem_fail_after(n, true);
		if (n <= 2) {
			assert_int_equal(json_scan_event(&scan, UINT64_MAX, &ev), SCAN_FAILED);
			assert_int_equal(scan.status, OW_E_NO_MEMORY);
		}
		mem_fail_after(0, false);
		json_scan_release(&scan);
		input_close(&in);
		assert_int_equal(atomic_load(&mem.used), 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_forms),	    cmocka_unit_test(test_values),
		cmocka_unit_test(test_lenience),    cmocka_unit_test(test_damage),
		cmocka_unit_test(test_prefixes),    cmocka_unit_test(test_windows),
		cmocka_unit_test(test_guess),	    cmocka_unit_test(test_pick),
		cmocka_unit_test(test_no_memory),   cmocka_unit_test(test_bytes_are_read_once),
		cmocka_unit_test(test_much_damage),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
