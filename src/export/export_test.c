/*
 * export_test.c: tables of models made by hand as files: values, NULLs, quotes, orders, partitions, splitting,
 * packing; what is there stays unless it may be replaced; and whatever fails leaves nothing behind.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "export/format.h"
#include "support/trace_model.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

struct fixture {
	struct small_model models[2];
	struct table_run runs[2];
	size_t run_count;
	char dir[64];
	struct mem mem;
	struct ow_error err;
	struct export_summary sums;
	struct export_options options;
};

static void fill_model(struct small_model *s)
{
	source_id source = trace_source(s, "rank,0 \"x\".json", 3);
	track_id host = trace_track(s, source, "main\nthread", TRACK_HOST, NULL);
	track_id stream = trace_track(s, source, "stream 7", TRACK_STREAM, "/gpu:0");

	trace_step(s, source, 5, 0, 10);
	trace_step(s, source, 6, 10, 20);
	trace_slice(s, host, "call", PHASE_LAUNCH, 1, 3);
	trace_slice(s, host, "call", PHASE_LAUNCH, 11, 12);
	trace_slice(s, stream, "gemm", PHASE_COMPUTE, 2, 9);
	trace_slice(s, stream, "gemm", PHASE_COMPUTE, 13, 19);
	for (uint32_t i = 1; i < s->m->event.count; i++)
		s->m->event.step[i] = builder_step(&s->b, i % 2 ? 5 : 6);
	builder_add_event(&s->b, &(struct event_row){ .ts_ns = 50 * MS,
						      .dur_ns = TIME_UNKNOWN,
						      .name = builder_cstr(&s->b, "tick"),
						      .ph = 'i',
						      .track = host });
	builder_add_counter(&s->b, &(struct counter_row){ .track = host,
							  .name = builder_cstr(&s->b, "loss"),
							  .ts_ns = 7,
							  .value = 0.1 });
}

static void setup(struct fixture *f, size_t runs, const char *format, const char *table)
{
	static const char *const names[] = { "a", "b/c" };
	static const char *tables[1];

	*f = (struct fixture){ .run_count = runs, .dir = "/tmp/opwatch-export-XXXXXX" };
	assert_non_null(mkdtemp(f->dir));
	mem_init(&f->mem, 0);
	for (size_t i = 0; i < runs; i++) {
		small_open(&f->models[i]);
		fill_model(&f->models[i]);
		small_freeze(&f->models[i]);
		f->runs[i] = (struct table_run){ f->models[i].m, names[i], (uint32_t)i + 1 };
	}
	tables[0] = table;
	f->options = (struct export_options){ .dir = f->dir,
					      .format = export_format_find(format),
					      .tables = { tables, 1 } };
}

static ow_status run(struct fixture *f)
{
	return export_tables(f->runs, f->run_count, &f->options, &f->mem, &f->sums, &f->err);
}

static void good(struct fixture *f)
{
	if (run(f) != OW_OK)
		fail_msg("%s", f->err.text);
	assert_int_equal(atomic_load(&f->mem.used), 0);
}

/* Entries of the folder, hidden ones as well. */
static unsigned entries(const struct fixture *f)
{
	DIR *dir = opendir(f->dir);
	struct dirent *entry;
	unsigned count = 0;

	assert_non_null(dir);
	while ((entry = readdir(dir)))
		count += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
	closedir(dir);
	return count;
}

static void teardown(struct fixture *f)
{
	char command[128];

	snprintf(command, sizeof(command), "rm -r '%s'", f->dir);
	assert_int_equal(system(command), 0);
	for (size_t i = 0; i < f->run_count; i++)
		small_close(&f->models[i]);
}

static size_t read_file(const struct fixture *f, const char *name, char *text, size_t size)
{
	char path[256];
	FILE *file;
	size_t len;

	snprintf(path, sizeof(path), "%s/%s", f->dir, name);
	file = fopen(path, "r");
	if (!file)
		fail_msg("%s is not there", path);
	len = fread(text, 1, size - 1, file);
	text[len] = 0;
	fclose(file);
	return len;
}

static void expect_file(const struct fixture *f, const char *name, const char *expected)
{
	char text[8192];

	read_file(f, name, text, sizeof(text));
	assert_string_equal(text, expected);
}

/* The values of "id" in the lines of a file of ndjson, in order. */
static void expect_ids(const struct fixture *f, const char *name, const char *expected)
{
	char text[65536], ids[512] = "";
	const char *at = text;

	read_file(f, name, text, sizeof(text));
	while ((at = strstr(at, "\"id\":"))) {
		size_t len = strlen(ids);

		at += 5;
		snprintf(ids + len, sizeof(ids) - len, "%s%lld", len ? " " : "",
			 strtoll(at, NULL, 10));
	}
	assert_string_equal(ids, expected);
}

/* ---- formats ---- */

static void as_csv(void **state)
{
	struct fixture f;

	(void)state;
	setup(&f, 1, "csv", "track");
	good(&f);
	expect_file(&f, "track.csv",
		    "run,id,name,process,pid,tid,device_id,kind,source_id,labels,sort_index,"
		    "process_sort_index,device,source,rank\r\n"
		    "a,1,\"main\nthread\",,0,0,,host,1,,0,0,,\"rank,0 \"\"x\"\".json\",3\r\n"
		    "a,2,stream 7,,0,0,1,stream,1,,0,0,/gpu:0,\"rank,0 \"\"x\"\".json\",3\r\n");
	assert_int_equal(f.sums.rows, 2);
	assert_int_equal(f.sums.files, 1);
	assert_int_equal(entries(&f), 1);
	teardown(&f);
}

static void as_ndjson(void **state)
{
	struct fixture f;
	char text[4096];

	(void)state;
	setup(&f, 1, "ndjson", "counter");
	good(&f);
	read_file(&f, "counter.ndjson", text, sizeof(text));
	assert_non_null(strstr(text, "{\"run\":\"a\",\"id\":1,\"track_id\":1,\"name\":\"loss\""));
	assert_non_null(strstr(text, "\"series\":null"));
	assert_non_null(strstr(text, "\"value\":0.1"));
	assert_non_null(strstr(text, "\"track\":\"main\\nthread\""));
	assert_string_equal(text + strlen(text) - 2, "}\n");
	teardown(&f);
}

static void as_arrow(void **state)
{
	struct fixture f;
	char text[65536];
	size_t len;
	uint32_t footer;

	(void)state;
	setup(&f, 2, "arrow", "event");
	good(&f);
	len = read_file(&f, "event.arrow", text, sizeof(text));
	assert_memory_equal(text, "ARROW1\0\0\xff\xff\xff\xff", 12);
	assert_memory_equal(text + len - 6, "ARROW1", 6);
	memcpy(&footer, text + len - 10, sizeof(footer));
	assert_true(footer < len - 18 && footer % 8 == 0);
	assert_memory_equal(text + len - 10 - footer - 8, "\xff\xff\xff\xff\0\0\0\0", 8);
	teardown(&f);
}

/* ---- orders and partitions ---- */

static void sorted(void **state)
{
	struct fixture f;

	(void)state;
	setup(&f, 2, "ndjson", "event");
	f.options.sort = "ts";
	good(&f);
	/* Of equal times the first run comes first. */
	expect_ids(&f, "event.ndjson",
		   "1 4294967297 4 4294967300 2 4294967298 5 4294967301 3 4294967299");
	f.options.sort = "dur";
	f.options.overwrite = true;
	good(&f);
	/* What has no duration comes last. */
	expect_ids(&f, "event.ndjson",
		   "2 4294967298 1 4294967297 5 4294967301 4 4294967300 3 4294967299");
	f.options.sort = "name";
	good(&f);
	expect_ids(&f, "event.ndjson",
		   "1 2 4294967297 4294967298 4 5 4294967300 4294967301 3 4294967299");
	teardown(&f);
}

static void partitioned(void **state)
{
	struct fixture f;

	(void)state;
	setup(&f, 2, "ndjson", "event");
	f.options.partition = PARTITION_RUN;
	good(&f);
	expect_ids(&f, "event/run=a/part-0.ndjson", "1 2 3 4 5");
	expect_ids(&f, "event/run=b%2Fc/part-0.ndjson",
		   "4294967297 4294967298 4294967299 4294967300 4294967301");
	f.options.partition = PARTITION_STEP;
	f.options.sort = "dur";
	f.options.overwrite = true;
	good(&f);
	expect_ids(&f, "event/run=a/step=5/part-0.ndjson", "1 4");
	expect_ids(&f, "event/run=a/step=6/part-0.ndjson", "2 5");
	expect_ids(&f, "event/run=a/step=__HIVE_DEFAULT_PARTITION__/part-0.ndjson", "3");
	assert_int_equal(f.sums.files, 6);
	assert_int_equal(entries(&f), 1);
	teardown(&f);
}

static void split_and_packed(void **state)
{
	struct fixture f;
	char text[8192];

	(void)state;
	setup(&f, 2, "ndjson", "event");
	f.options.file_bytes = 1;
	good(&f);
	/* A block is never cut; the runs are two. */
	expect_ids(&f, "event/part-0.ndjson", "1 2 3 4 5");
	expect_ids(&f, "event/part-1.ndjson",
		   "4294967297 4294967298 4294967299 4294967300 4294967301");
	f.options.file_bytes = 0;
	f.options.packing = PACKING_GZIP;
	good(&f);
	assert_true(read_file(&f, "event.ndjson.gz", text, sizeof(text)) > 100);
	assert_memory_equal(text, "\x1f\x8b", 2);
	teardown(&f);
}

/* ---- what is refused ---- */

static void expect_error(struct fixture *f, ow_status status, const char *part)
{
	assert_int_equal(run(f), status);
	if (!strstr(f->err.text, part))
		fail_msg("%s", f->err.text);
	assert_int_equal(atomic_load(&f->mem.used), 0);
}

static void refused(void **state)
{
	static const char *tables[] = { "evnt" };
	struct fixture f;

	(void)state;
	setup(&f, 2, "csv", "event");
	f.options.sort = "nothing";
	expect_error(&f, OW_E_NOT_FOUND, "column nothing");
	f.options.sort = NULL;
	f.options.bigquery = true;
	expect_error(&f, OW_E_USAGE, "ndjson or parquet");
	f.options.bigquery = false;
	f.runs[1].name = "a";
	expect_error(&f, OW_E_USAGE, "two runs");
	f.runs[1].name = "b";
	f.options.format = export_format_find("arrow");
	f.options.packing = PACKING_GZIP;
	expect_error(&f, OW_E_USAGE, "gzip");
	f.options.packing = PACKING_DEFAULT;
	assert_int_equal(entries(&f), 0);
	good(&f);
	expect_error(&f, OW_E_USAGE, "--overwrite");
	assert_int_equal(entries(&f), 1);
	f.options.tables = (struct ow_list){ tables, 1 };
	expect_error(&f, OW_E_NOT_FOUND, "evnt");
	teardown(&f);
}

static bool stop(void *arg, const char *table, uint64_t done, uint64_t total)
{
	(void)arg;
	(void)table;
	(void)total;
	return !done;
}

static void interrupted(void **state)
{
	struct fixture f;

	(void)state;
	setup(&f, 1, "csv", "event");
	f.options.progress = stop;
	expect_error(&f, OW_E_INTERRUPTED, "interrupted");
	assert_int_equal(entries(&f), 0);
	teardown(&f);
}

/* Folders that were made for it go, too; others stay. */
static void new_folders(void **state)
{
	struct fixture f;
	char dir[128];

	(void)state;
	setup(&f, 1, "csv", "event");
	snprintf(dir, sizeof(dir), "%s/one/two/", f.dir);
	f.options.dir = dir;
	f.options.progress = stop;
	expect_error(&f, OW_E_INTERRUPTED, "interrupted");
	assert_int_equal(entries(&f), 0);
	f.options.progress = NULL;
	good(&f);
	assert_int_equal(access(dir, F_OK), 0);
	teardown(&f);
}

/* Every allocation fails once, and from there on. */
static void without_memory(void **state)
{
	static const char *const formats[] = { "csv", "ndjson", "arrow" };
	struct fixture f;

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(formats); i++) {
		setup(&f, 2, formats[i], "event");
		f.options.partition = PARTITION_STEP;
		f.options.sort = "name";
		f.options.overwrite = true;
		f.options.bigquery = i == 1;
		for (uint64_t n = 1;; n++) {
			ow_status status;

			mem_fail_after(n, n % 2);
			status = run(&f);
			mem_fail_after(0, false);
			assert_int_equal(atomic_load(&f.mem.used), 0);
			if (status == OW_OK)
				break;
			assert_int_equal(status, OW_E_NO_MEMORY);
			assert_true(n < 10000);
		}
		teardown(&f);
	}
}

/* ---- BigQuery ---- */

static void for_bigquery(void **state)
{
	struct fixture f;
	char text[16384];
	struct stat st;

	(void)state;
	setup(&f, 1, "ndjson", "event");
	f.options.bigquery = true;
	f.models[0].m->event.ts_ns[1] = ((int64_t)1 << 53) + 1;
	good(&f);
	read_file(&f, "event.ndjson", text, sizeof(text));
	assert_non_null(strstr(text, "\"ts\":\"9007199254740993\""));
	assert_non_null(strstr(text, "\"ts\":2000000,"));
	read_file(&f, "event.schema.json", text, sizeof(text));
	assert_non_null(strstr(text, "{\"name\": \"ts\", \"type\": \"INTEGER\", \"mode\": "
				     "\"NULLABLE\", \"description\": \"start of the event\"}"));
	read_file(&f, "load.sh", text, sizeof(text));
	assert_non_null(strstr(text, "bq load --replace --source_format=NEWLINE_DELIMITED_JSON "
				     "\"$dataset.event\" event.ndjson event.schema.json\n"));
	snprintf(text, sizeof(text), "%s/load.sh", f.dir);
	assert_int_equal(stat(text, &st), 0);
	assert_true(st.st_mode & 0100);
	teardown(&f);
}

static void bigquery_takes_names(void **state)
{
	const char *names[] = { "ts", "a.b",   "2nd", "_table_x", "_PARTITIONTIME",
				"TS", "größe", "",    "_ok",	  "ts_2" };
	struct arena arena;
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	arena_init(&arena, &mem);
	assert_int_equal(bigquery_names(&arena, names, ARRAY_COUNT(names), NULL), OW_OK);
	assert_string_equal(names[0], "ts");
	assert_string_equal(names[1], "a_b");
	assert_string_equal(names[2], "_2nd");
	assert_string_equal(names[3], "x_table_x");
	assert_string_equal(names[4], "x_PARTITIONTIME");
	assert_string_equal(names[5], "TS_2");
	assert_string_equal(names[6], "gr____e");
	assert_string_equal(names[7], "_");
	assert_string_equal(names[8], "_ok");
	assert_string_equal(names[9], "ts_2_2");
	arena_release(&arena);
}

/* ---- text ---- */

static void numbers(void **state)
{
	static const struct {
		double value;
		const char *text;
	} reals[] = { { 0.1, "0.1" },	   { 1.0 / 3, "0.3333333333333333" },
		      { 1e300, "1e+300" }, { 0.30000000000000004, "0.30000000000000004" },
		      { -0.0, "-0" },	   { 5e-324, "4.94065645841247e-324" } };
	struct buf text;
	struct mem mem;

	(void)state;
	mem_init(&mem, 0);
	buf_init(&text, &mem);
	put_int(&text, INT64_MIN);
	buf_add_char(&text, ' ');
	put_uint(&text, UINT64_MAX);
	buf_add_char(&text, ' ');
	put_int(&text, 0);
	buf_add_char(&text, ' ');
	put_int(&text, -107);
	assert_string_equal(buf_cstr(&text), "-9223372036854775808 18446744073709551615 0 -107");
	for (size_t i = 0; i < ARRAY_COUNT(reals); i++) {
		buf_clear(&text);
		put_real(&text, reals[i].value);
		assert_string_equal(buf_cstr(&text), reals[i].text);
	}
	buf_clear(&text);
	json_quote(&text, STR("a\"\\\n\x01\xff\xc3\xa4"));
	assert_string_equal(buf_cstr(&text), "\"a\\\"\\\\\\n\\u0001\xef\xbf\xbd\xc3\xa4\"");
	buf_release(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(as_csv),	cmocka_unit_test(as_ndjson),
		cmocka_unit_test(as_arrow),	cmocka_unit_test(sorted),
		cmocka_unit_test(partitioned),	cmocka_unit_test(split_and_packed),
		cmocka_unit_test(refused),	cmocka_unit_test(interrupted),
		cmocka_unit_test(new_folders),	cmocka_unit_test(without_memory),
		cmocka_unit_test(for_bigquery), cmocka_unit_test(bigquery_takes_names),
		cmocka_unit_test(numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
