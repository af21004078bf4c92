/*
 * capture_test.c: traces from the profiler of a job, played by a server of our own: what it sends is kept as it is, and
 * whatever goes wrong is told, without a file.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "opwatch_config.h"
#include "opwatch/record.h"

#include "base/base.h"

#if OPWATCH_HAVE_NGHTTP2

#include "base/mem.h"
#include "live/capture/tf_profiler.h"
#include "support/h2_server.h"
#include "wire/protobuf/pb_write.h"

#include <dirent.h>
#include <sys/stat.h>

static struct mem mem;
static char folder[64];

static int make_folder(void **state)
{
	(void)state;
	mem_init(&mem, 0);
	snprintf(folder, sizeof(folder), "/tmp/opwatch-capture-XXXXXX");
	return mkdtemp(folder) ? 0 : -1;
}

/* How many files there are; all are removed. */
static size_t empty_folder(void)
{
	DIR *dir = opendir(folder);
	const struct dirent *entry;
	char path[512];
	size_t count = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		if (entry->d_name[0] != '.') {
			snprintf(path, sizeof(path), "%s/%s", folder, entry->d_name);
			assert_int_equal(unlink(path), 0);
			count++;
		}
	closedir(dir);
	return count;
}

static int remove_folder(void **state)
{
	(void)state;
	empty_folder();
	return rmdir(folder);
}

enum layout { AS_FIELD, AS_TOOL, SAVED, EMPTY };

/* A ProfileResponse, as servers of several ages write it, after its five bytes. */
static void put_answer(struct buf *to, enum layout layout, struct str xspace)
{
	uint32_t len;
	size_t tool;

	buf_add(to, "\0\0\0\0", 5);
	if (layout == AS_FIELD) {
		pb_put_varint(to, 7, 0);
		pb_put_str(to, 8, xspace);
	} else if (layout == AS_TOOL) {
		tool = pb_begin(to, 6);
		pb_put_str(to, 1, STR("overview_page.json"));
		pb_put_str(to, 2, STR("{}"));
		pb_end(to, tool);
		tool = pb_begin(to, 6);
		pb_put_str(to, 1, STR("host.xplane.pb"));
		pb_put_str(to, 2, xspace);
		pb_end(to, tool);
	} else {
		pb_put_varint(to, 7, layout == EMPTY);
	}
	assert_false(to->failed);
	len = (uint32_t)to->len - 5;
	for (int i = 0; i < 4; i++)
		to->ptr[1 + i] = (char)(len >> (24 - 8 * i));
}

static ow_status ask(struct h2_server *server, struct ow_capture_summary *summary,
		     struct ow_error *err)
{
	struct ow_capture_options options;
	ow_status status;

	assert_true(h2_start(server));
	ow_capture_options_init(&options);
	options.address = server->address;
	options.dir = folder;
	options.for_ns = 10000000;
	if (server->way == H2_SILENT)
		options.wait_ns = 50000000;
	*summary = (struct ow_capture_summary){ .size = sizeof(*summary) };
	status = ow_capture_tf(&options, summary, err);
	h2_stop(server);
	return status;
}

static void check_file(const char *path, struct str content)
{
	FILE *file = fopen(path, "r");
	char *bytes = malloc(content.len + 1);

	assert_non_null(file);
	assert_non_null(bytes);
	assert_int_equal(fread(bytes, 1, content.len + 1, file), content.len);
	assert_memory_equal(bytes, content.ptr, content.len);
	free(bytes);
	fclose(file);
}

static void keeps_what_is_sent(void **state)
{
	static char large[5 << 20];

	(void)state;
	for (size_t i = 0; i < sizeof(large); i++)
		large[i] = (char)(i * 2654435761u >> 24);
	for (int round = 0; round < 4; round++) {
		struct str xspace = str_make(large, round & 1 ? sizeof(large) : 7);
		struct h2_server server = { .way = H2_ANSWERS };
		struct ow_capture_summary summary;
		struct ow_error err = { 0 };
		struct buf answer;

		buf_init(&answer, &mem);
		put_answer(&answer, round < 2 ? AS_FIELD : AS_TOOL, xspace);
		server.answer = (unsigned char *)answer.ptr;
		server.answer_len = answer.len;
		assert_int_equal(ask(&server, &summary, &err), OW_OK);
		assert_string_equal(server.path, "/tensorflow.ProfilerService/Profile");
		assert_int_equal(summary.bytes, xspace.len);
		assert_non_null(strstr(summary.path, ".xplane.pb"));
		check_file(summary.path, xspace);
		assert_int_equal(empty_folder(), 1);
		buf_release(&answer);
	}
}

/* duration_ms, the tool that older servers need, and that the trace is to be sent. */
static void asks_for_what_it_needs(void **state)
{
	struct h2_server server = { .way = H2_ANSWERS };
	struct ow_capture_summary summary;
	uint64_t ms = 0, emit = 0;
	struct ow_error err = { 0 };
	struct str tool = { 0 };
	struct pb_field f;
	struct buf answer;
	struct pb r;

	(void)state;
	buf_init(&answer, &mem);
	put_answer(&answer, AS_FIELD, STR("x"));
	server.answer = (unsigned char *)answer.ptr;
	server.answer_len = answer.len;
	assert_int_equal(ask(&server, &summary, &err), OW_OK);
	assert_int_equal(empty_folder(), 1);
	r = pb_over(server.request + 5, server.request_len - 5);
	while (pb_next(&r, &f)) {
		if (f.tag == PB_TAG(1, PB_VARINT))
			ms = f.value;
		if (f.tag == PB_TAG(3, PB_BYTES))
			tool = pb_str(&f);
		if (f.tag == PB_TAG(9, PB_VARINT))
			emit = f.value;
	}
	assert_false(r.problem);
	assert_int_equal(ms, 10);
	assert_true(str_eq(tool, STR("xplane.pb")));
	assert_int_equal(emit, 1);
	buf_release(&answer);
}

static void tells_what_went_wrong(void **state)
{
	static const struct {
		enum h2_way way;
		enum layout layout;
		ow_status status;
		const char *text;
	} cases[] = {
		{ H2_FAILS, AS_FIELD, OW_E_IO,
		  "answers UNAVAILABLE (14): Another profiler is active" },
		{ H2_SILENT, AS_FIELD, OW_E_IO, "did not finish its answer" },
		{ H2_CUT, AS_FIELD, OW_E_IO, "stopped in the middle of its answer" },
		{ H2_ENDS, AS_FIELD, OW_E_IO, "stopped in the middle of its answer" },
		{ H2_GARBAGE, AS_FIELD, OW_E_FORMAT, "does not speak gRPC" },
		{ H2_404, AS_FIELD, OW_E_FORMAT, "HTTP status 404" },
		{ H2_PAGE, AS_FIELD, OW_E_FORMAT, "answered with 'text/html" },
		{ H2_REFUSES, AS_FIELD, OW_E_IO,
		  "refused the call: it reset the stream (RST_STREAM), REFUSED_STREAM (7)" },
		{ H2_RESETS, AS_FIELD, OW_E_IO,
		  "arrived; it reset the stream (RST_STREAM), CANCEL (8)" },
		{ H2_LEAVES, AS_FIELD, OW_E_IO,
		  "refused the call: it accepts no more calls (GOAWAY), ENHANCE_YOUR_CALM (11), "
		  "'too_many_pings?[2J'" },
		{ H2_HANGS_UP, AS_FIELD, OW_E_IO,
		  "speaks HTTP/2, but closed the connection without an answer" },
		{ H2_ANSWERS, SAVED, OW_E_NOT_FOUND, "saved the trace on its own machine" },
		{ H2_ANSWERS, EMPTY, OW_E_EMPTY, "recorded nothing" },
	};
	static const char text[100000];

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(cases); i++) {
		struct h2_server server = { .way = cases[i].way };
		struct ow_capture_summary summary;
		struct ow_error err = { 0 };
		struct buf answer;

		buf_init(&answer, &mem);
		put_answer(&answer, cases[i].layout, str_make(text, sizeof(text)));
		server.answer = (unsigned char *)answer.ptr;
		server.answer_len = answer.len;
		assert_int_equal(ask(&server, &summary, &err), cases[i].status);
		if (!strstr(err.text, cases[i].text))
			fail_msg("'%s' lacks '%s'", err.text, cases[i].text);
		assert_int_equal(empty_folder(), 0);
		buf_release(&answer);
	}
}

/* Whoever goes away may still answer what came before. */
static void a_last_answer_counts(void **state)
{
	struct h2_server server = { .way = H2_LAST };
	struct ow_capture_summary summary;
	struct ow_error err = { 0 };
	struct buf answer;

	(void)state;
	buf_init(&answer, &mem);
	put_answer(&answer, AS_FIELD, STR("x"));
	server.answer = (unsigned char *)answer.ptr;
	server.answer_len = answer.len;
	assert_int_equal(ask(&server, &summary, &err), OW_OK);
	assert_int_equal(empty_folder(), 1);
	buf_release(&answer);
}

static void nobody_there(void **state)
{
	struct h2_server server = { .way = H2_ANSWERS };
	struct ow_capture_options options;
	struct ow_error err = { 0 };

	(void)state;
	assert_true(h2_start(&server)); /* for a port that is ours */
	shutdown(server.listening, SHUT_RDWR);
	h2_stop(&server);
	ow_capture_options_init(&options);
	options.dir = folder;
	options.address = server.address;
	assert_int_equal(ow_capture_tf(&options, NULL, &err), OW_E_IO);
	assert_non_null(strstr(err.text, "refused"));
	options.address = "nonsense";
	assert_int_equal(ow_capture_tf(&options, NULL, &err), OW_E_USAGE);
	options.address = "127.0.0.1:1";
	options.dir = "/proc/self/no/such";
	assert_int_not_equal(ow_capture_tf(&options, NULL, &err), OW_OK);
}

static void addresses(void **state)
{
	static const char *const bad[] = { "", ":1", "host", "host:", "host:x", "::1:5", "[]:1" };
	char host[256], port[16];

	(void)state;
	assert_true(grpc_split_address("[::1]:6009", host, port));
	assert_string_equal(host, "::1");
	assert_string_equal(port, "6009");
	assert_true(grpc_split_address("worker-0.x:80", host, port));
	assert_string_equal(host, "worker-0.x");
	for (size_t i = 0; i < ARRAY_COUNT(bad); i++)
		if (grpc_split_address(bad[i], host, port))
			fail_msg("'%s' was taken", bad[i]);
}

/* Every allocation of a call fails once. */
static void memory_fails(void **state)
{
	static const char message[] = "\0\0\0\0\1x";
	ow_status status = OW_E_NO_MEMORY;

	(void)state;
	for (uint64_t n = 1; status != OW_OK && n < 100; n++) {
		struct h2_server server = { .way = H2_ANSWERS,
					    .answer = (const unsigned char *)message,
					    .answer_len = 6 };
		const struct grpc_call call = { .address = server.address,
						.path = "/x",
						.connect_ns = 60000000000,
						.timeout_ns = 60000000000,
						.answer_limit = 100 };
		struct ow_error err = { 0 };
		struct buf answer;

		assert_true(h2_start(&server));
		buf_init(&answer, &mem);
		mem_fail_after(n, true);
		status = grpc_call(&call, &answer, &err);
		mem_fail_after(0, false);
		assert_true(status == OW_OK || status == OW_E_NO_MEMORY);
		if (status == OW_OK)
			assert_true(str_eq(buf_str(&answer), STR("x")));
		buf_release(&answer);
		h2_stop(&server);
		assert_int_equal(atomic_load(&mem.used), 0);
	}
	assert_int_equal(status, OW_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(keeps_what_is_sent),	 cmocka_unit_test(asks_for_what_it_needs),
		cmocka_unit_test(tells_what_went_wrong), cmocka_unit_test(a_last_answer_counts),
		cmocka_unit_test(nobody_there),		 cmocka_unit_test(addresses),
		cmocka_unit_test(memory_fails),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}

#else

static void without_the_library(void **state)
{
	(void)state;
	skip();
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(without_the_library) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
