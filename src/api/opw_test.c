/*
 * opw_test.c: opwatch files through the public functions: save → open is equal in every column of every
 * table; cuts, turned bits and hostile numbers end in a status; a file that shrinks under an open profile
 * is an error and no signal. OPWATCH_CORPUS may point to real files, which are all tried.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "api/api_int.h"
#include "model/backing.h"
#include "wire/own/opw.h"
#include "relation/args.h"
#include "sink/own/opw_save.h"
#include "support/open_good.h"
#include "support/scratch.h"
#include "wire/container/crc32c.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

static char folder[64];

static int make_folder(void **state)
{
	(void)state;
	return scratch_make(folder, sizeof(folder), "opw") ? 0 : -1;
}

static const char *in_folder(const char *name)
{
	static char path[16][512];
	static unsigned next;
	char *to = path[next++ % ARRAY_COUNT(path)];

	snprintf(to, sizeof(path[0]), "%.60s/%s", folder, name);
	return to;
}

static int remove_folder(void **state)
{
	DIR *dir = opendir(folder);
	struct dirent *entry;

	(void)state;
	while (dir && (entry = readdir(dir)))
		if (entry->d_name[0] != '.')
			unlink(in_folder(entry->d_name));
	if (dir)
		closedir(dir);
	return rmdir(folder);
}

static void write_file(const char *path, const void *bytes, size_t len)
{
	FILE *f = fopen(path, "wb");

	assert_non_null(f);
	assert_int_equal(fwrite(bytes, 1, len, f), len);
	assert_int_equal(fclose(f), 0);
}

static unsigned char *read_file(const char *path, size_t *len)
{
	FILE *f = fopen(path, "rb");
	unsigned char *bytes;
	struct stat st;

	assert_non_null(f);
	assert_int_equal(fstat(fileno(f), &st), 0);
	bytes = malloc((size_t)st.st_size + 1);
	assert_non_null(bytes);
	*len = fread(bytes, 1, (size_t)st.st_size, f);
	fclose(f);
	return bytes;
}

static void save_good(ow_profile *p, const char *path)
{
	struct ow_error err = { 0 };

	if (ow_profile_save(p, path, NULL, &err) != OW_OK)
		fail_msg("%s: %s", path, err.text);
}

/* ---- a trace of any size ---- */

static char *make_trace(size_t events, size_t *len)
{
	size_t cap = events * 160 + 4096, at = 0;
	char *text = malloc(cap);

	assert_non_null(text);
	at += (size_t)snprintf(text, cap,
			       "{\"traceEvents\": [\n"
			       "{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":"
			       "{\"name\":\"trainer\"}}");
	for (size_t i = 0; i < events; i++)
		at += (size_t)snprintf(
			text + at, cap - at,
			",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%zu,\"ts\":%zu.125,\"dur\":7,"
			"\"name\":\"op_%zu\",\"cat\":\"c%zu\",\"args\":{\"n\":%zu}}",
			i % 3, 1000 + i * 3, i % 50, i % 4, i);
	at += (size_t)snprintf(text + at, cap - at, "]}\n");
	*len = at;
	return text;
}

/* An opwatch file of a trace; large enough to be mapped when events ≥ 40000. */
static const char *make_opw(const char *name, size_t events)
{
	const char *trace = in_folder("made.json"), *path = in_folder(name);
	size_t len;
	char *text = make_trace(events, &len);
	ow_profile *p;

	write_file(trace, text, len);
	free(text);
	p = open_good(trace);
	save_good(p, path);
	ow_profile_free(p);
	unlink(trace); /* the original may be deleted */
	return path;
}

/* ---- equal ---- */

static const void *values_of(const struct model *m, int table, const struct column_info *column,
			     uint32_t *rows)
{
	const char *head = (const char *)m + model_tables[table].offset;

	*rows = *(const uint32_t *)(const void *)head;
	return *(void *const *)(const void *)(head + column->offset);
}

static bool all_zero(const unsigned char *bytes, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (bytes[i])
			return false;
	return true;
}

/* Places differ; what is there is compared. Undecoded code is not saved, definitions are cut. */
static bool is_place(const char *name)
{
	static const char *const names[] = { "args_offset",   "args_size",   "shared_offset",
					     "shared_size",   "code_offset", "code_size",
					     "record_offset", "record_size" };

	for (size_t i = 0; i < ARRAY_COUNT(names); i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

static void compare_columns(const struct model *a, const struct model *b, int table)
{
	for (uint32_t c = 0; c < model_tables[table].column_count; c++) {
		const struct column_info *column = &model_tables[table].columns[c];
		uint32_t rows, other;
		const void *x = values_of(a, table, column, &rows);
		const void *y = values_of(b, table, column, &other);
		size_t size = (size_t)rows * column->size;

		assert_int_equal(rows, other);
		if (is_place(column->name))
			continue;
		if (x && y ? memcmp(x, y, size) != 0 : !all_zero(x ? x : y, x || y ? size : 0))
			fail_msg("%s.%s differs of %s", model_tables[table].name, column->name,
				 a->inputs[1] ? a->inputs[1]->name : "");
	}
}

static void compare_bytes(const struct model *a, uint32_t source_a, uint64_t offset_a,
			  const struct model *b, uint32_t source_b, uint64_t offset_b, size_t size)
{
	unsigned char *x = malloc(size), *y = malloc(size);
	struct ow_error err = { 0 };

	assert_true(source_a < a->input_cap && source_b < b->input_cap);
	assert_int_equal(input_read_at(a->inputs[source_a], offset_a, x, size, &err), OW_OK);
	assert_int_equal(input_read_at(b->inputs[source_b], offset_b, y, size, &err), OW_OK);
	assert_memory_equal(x, y, size);
	free(x);
	free(y);
}

static uint32_t source_of(const struct model *m, uint32_t event)
{
	return m->track.source[m->event.track[event].v].v;
}

/* As people are told of them, wherever they are kept. */
static void compare_told(const struct model *a, const struct model *b)
{
	struct str x[256], y[256];
	uint32_t rows[256], n;
	struct ow_error err = { 0 };
	struct arena arena;

	arena_init(&arena, a->mem);
	for (uint32_t first = 1; first < a->event.count; first += n) {
		n = MIN(a->event.count - first, (uint32_t)ARRAY_COUNT(rows));
		for (uint32_t i = 0; i < n; i++)
			rows[i] = first + i;
		assert_int_equal(args_read(a, rows, n, x, &arena, &err), OW_OK);
		assert_int_equal(args_read(b, rows, n, y, &arena, &err), OW_OK);
		for (uint32_t i = 0; i < n; i++)
			if (!str_eq(x[i], y[i]))
				fail_msg("event %u: %.*s is %.*s", rows[i], (int)x[i].len, x[i].ptr,
					 (int)y[i].len, y[i].ptr);
		arena_clear(&arena);
	}
	arena_release(&arena);
}

static void compare_args(const struct model *a, const struct model *b)
{
	compare_told(a, b);
	for (uint32_t i = 1; i < a->event_args.count; i++)
		if (a->event_args.args_size[i])
			compare_bytes(a, source_of(a, a->event_args.event[i].v),
				      a->event_args.args_offset[i], b,
				      source_of(b, b->event_args.event[i].v),
				      b->event_args.args_offset[i], a->event_args.args_size[i]);
	for (uint32_t i = 1; i < a->op.count; i++)
		assert_int_equal(COLUMN_GET(a->op.record_size, i) != 0,
				 COLUMN_GET(b->op.record_size, i) != 0);
}

static void compare_models(const struct model *a, const struct model *b)
{
	assert_int_equal(a->strings.count, b->strings.count);
	for (uint32_t i = 0; i < a->strings.count; i++) {
		assert_true(str_eq(a->strings.text[i], b->strings.text[i]));
		assert_int_equal(b->strings.text[i].ptr[b->strings.text[i].len], 0);
	}
	for (int t = 0; t < TABLE_COUNT; t++)
		compare_columns(a, b, t);
	compare_args(a, b);
	assert_int_equal(a->time_unit_ns, b->time_unit_ns);
	assert_int_equal(a->has_code, b->has_code);
	assert_int_equal(a->missing_streams, b->missing_streams);
	assert_int_equal(a->damaged, b->damaged);
	assert_true(b->frozen);
}

/* Every view through every way of writing, and the facts; the texts must agree. */
static bool to_buf(void *arg, const void *bytes, size_t len)
{
	buf_add(arg, bytes, len);
	return true;
}

/* Those two: a view or a report that this profile has nothing for. */
static bool is_odd(ow_status status)
{
	return status != OW_OK && status != OW_E_USAGE && status != OW_E_NOT_FOUND;
}

/* Takes the result. */
static ow_status show(const char *name, ow_result *result, ow_status status, struct buf *text,
		      struct ow_error *err)
{
	if (status == OW_OK) {
		buf_printf(text, "-- %s\n", name);
		status = ow_result_write(result, "json", NULL, to_buf, text, err);
		(void)!ow_result_write(result, "svg", NULL, to_buf, text, NULL);
		ow_result_free(result);
	}
	return is_odd(status) ? status : OW_OK;
}

static ow_status show_all(ow_profile *p, struct buf *text, struct ow_error *err)
{
	static const char *const reports[] = {
		"cuda_gpu_kern_sum",	 "cuda_api_sum", "cuda_gpu_mem_time_sum",
		"cuda_gpu_mem_size_sum", "nvtx_sum",	 "osrt_sum",
		"cuda_kern_exec_sum"
	};
	struct ow_part_info view = { .size = sizeof(view) };
	ow_result *result = NULL;
	ow_status status = OW_OK;

	for (size_t i = 0; ow_view_info(i, &view) && status == OW_OK; i++) {
		struct ow_view_options options;

		ow_view_options_init(&options);
		options.max_depth = 100;
		status = ow_view(p, view.name, &options, &result, err);
		status = show(view.name, result, status, text, err);
	}
	for (size_t i = 0; i < ARRAY_COUNT(reports) && status == OW_OK; i++) {
		status = ow_nsys_stats(p, reports[i], NULL, &result, err);
		status = show(reports[i], result, status, text, err);
	}
	if (status != OW_OK)
		return status;
	status = ow_advise(p, NULL, &result, err);
	return show("advice", result, status, text, err);
}

/* Everything else that reads rows; what a view or output cannot show is refused. */
static void write_all(ow_profile *p, struct buf *text)
{
	static const char *const outputs[] = { "tfprof", "folded", "flamegraph", "pprof",
					       "timeline" };
	static const char *const trees[] = { "scope", "graph", "op", "code" };
	struct ow_error err = { 0 };
	ow_result *result;

	for (size_t i = 0; i < ARRAY_COUNT(trees); i++) {
		if (ow_view(p, trees[i], NULL, &result, &err) != OW_OK)
			continue;
		for (size_t k = 0; k < ARRAY_COUNT(outputs); k++)
			(void)!ow_result_write(result, outputs[k], NULL, to_buf, text, &err);
		ow_result_free(result);
	}
	if (ow_advise(p, NULL, &result, &err) == OW_OK)
		ow_result_free(result);
	(void)!ow_info_json(p, to_buf, text, &err);
	(void)!ow_timeline_write(p, NULL, to_buf, text, &err);
}

static void compare_views(ow_profile *a, ow_profile *b)
{
	struct ow_error err = { 0 };
	struct buf x, y;
	struct mem mem;

	mem_init(&mem, 0);
	buf_init(&x, &mem);
	buf_init(&y, &mem);
	assert_int_equal(show_all(a, &x, &err), OW_OK);
	assert_int_equal(show_all(b, &y, &err), OW_OK);
	assert_true(str_eq(buf_str(&x), buf_str(&y)));
	buf_release(&x);
	buf_release(&y);
}

/* False when the file is none that opwatch opens. */
static bool try_round_trip(const char *path, bool show)
{
	const char *saved = in_folder("one.opw"), *again = in_folder("two.opw");
	struct ow_error err = { 0 };
	uint64_t bytes;
	ow_profile *a, *b, *c;

	if (ow_profile_open(&path, 1, NULL, &a, &err) != OW_OK)
		return false;
	save_good(a, saved);
	b = open_good(saved);
	if (ow_profile_verify(b, &bytes, &err) != OW_OK)
		fail_msg("%s: %s", path, err.text);
	assert_true(bytes > 0);
	compare_models(a->m, b->m);
	if (show)
		compare_views(a, b);
	save_good(b, again); /* and from the file itself */
	c = open_good(again);
	assert_int_equal(ow_profile_verify(c, NULL, &err), OW_OK);
	compare_models(a->m, c->m);
	ow_profile_free(c);
	ow_profile_free(b);
	ow_profile_free(a);
	return true;
}

static unsigned try_tree(const char *root, unsigned depth, bool show)
{
	DIR *dir = depth < 4 ? opendir(root) : NULL;
	struct dirent *entry;
	unsigned good = 0;

	while (dir && (entry = readdir(dir))) {
		char path[4096];
		struct stat st;

		if (entry->d_name[0] == '.')
			continue;
		snprintf(path, sizeof(path), "%s/%s", root, entry->d_name);
		if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
			good += try_tree(path, depth + 1, show);
		else
			good += try_round_trip(path, show && st.st_size < 200000);
	}
	if (dir)
		closedir(dir);
	return good;
}

static void saved_and_opened_is_equal(void **state)
{
	const char *src = getenv("OPWATCH_SRC"), *corpus = getenv("OPWATCH_CORPUS");
	char path[4096];

	(void)state;
	snprintf(path, sizeof(path), "%s/tests/fuzz/seeds", src ? src : ".");
	assert_true(try_tree(path, 0, true) > 5);
	snprintf(path, sizeof(path), "%s/samples", src ? src : ".");
	try_tree(path, 0, true);
	if (!corpus) {
		print_message("OPWATCH_CORPUS is not set: real files are not tried\n");
		return;
	}
	print_message("%u files of the corpus\n", try_tree(corpus, 0, true));
}

static void large_files_are_mapped(void **state)
{
	const char *path = make_opw("large.opw", 40000);
	struct ow_memory_use use = { .size = sizeof(use) };
	ow_profile *p = open_good(path);

	(void)state;
	assert_non_null(p->m->backing);
	assert_non_null(p->m->backing->map.ptr);
	assert_true(backing_has(p->m, p->m->event.ts_ns));
	ow_profile_memory(p, &use);
	assert_true(use.used < 400000);
	ow_profile_free(p);
	assert_true(try_round_trip(path, true));
}

/* ---- beside other files ---- */

static ow_profile *open_all(const char *const *paths, size_t count)
{
	struct ow_error err = { 0 };
	ow_profile *p = NULL;

	if (ow_profile_open(paths, count, NULL, &p, &err) != OW_OK)
		fail_msg("%s: %s", paths[0], err.text);
	return p;
}

/* What the four views say of both; sources and their tracks differ by the opwatch files themselves. */
static void compare_sums(ow_profile *a, ow_profile *b)
{
	static const char *const names[] = { "op", "scope", "graph", "code", "steps" };
	struct mem mem;

	mem_init(&mem, 0);
	for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
		struct ow_error err = { 0 };
		struct ow_view_options options;
		ow_result *x, *y;
		struct buf s, t;

		buf_init(&s, &mem);
		buf_init(&t, &mem);
		ow_view_options_init(&options);
		options.max_depth = 100;
		if (ow_view(a, names[i], &options, &x, &err) != OW_OK)
			continue;
		assert_int_equal(ow_view(b, names[i], &options, &y, &err), OW_OK);
		assert_int_equal(ow_result_write(x, "csv", NULL, to_buf, &s, &err), OW_OK);
		assert_int_equal(ow_result_write(y, "csv", NULL, to_buf, &t, &err), OW_OK);
		assert_string_equal(buf_cstr(&s), buf_cstr(&t));
		ow_result_free(x);
		ow_result_free(y);
		buf_release(&s);
		buf_release(&t);
	}
}

static const char *save_as(const char *from, const char *name)
{
	const char *to = in_folder(name);
	ow_profile *p = open_good(from);

	save_good(p, to);
	ow_profile_free(p);
	return to;
}

static void opened_together_is_as_the_originals(void **state)
{
	const char *src = getenv("OPWATCH_SRC");
	char graph[512], runs[3][512], log[512];
	const char *originals[] = { graph, runs[0], runs[1], runs[2], log };
	const char *mixed[] = { graph, in_folder("b.opw"), runs[2], in_folder("a.opw"), log };
	const char *first[] = { in_folder("g.opw"), runs[0], in_folder("b.opw"), runs[2], log };
	ow_profile *a, *b;

	(void)state;
	src = src ? src : ".";
	snprintf(graph, sizeof(graph), "%s/samples/graph.pb", src);
	snprintf(log, sizeof(log), "%s/samples/op_log", src);
	for (int i = 0; i < 3; i++)
		snprintf(runs[i], sizeof(runs[i]), "%s/samples/run_meta_%d", src, i);
	if (access(graph, R_OK) != 0) {
		print_message("no samples: not tried\n");
		skip();
	}
	a = open_all(originals, 5);
	assert_int_equal(model_require_rows(a->m, TABLES_ALL, NULL), OW_OK);
	save_as(graph, "g.opw");
	save_as(runs[0], "a.opw");
	save_as(runs[1], "b.opw");
	b = open_all(first, 5);
	assert_int_equal(model_require_rows(b->m, TABLES_ALL, NULL), OW_OK);
	assert_int_equal(a->m->event.count, b->m->event.count);
	assert_int_equal(a->m->op.count, b->m->op.count);
	assert_int_equal(a->m->step.count, b->m->step.count);
	assert_int_equal(a->m->tensor.count, b->m->tensor.count);
	ow_profile_free(b);
	b = open_all(mixed, 5); /* the order of steps is another */
	assert_int_equal(model_require_rows(b->m, TABLES_ALL, NULL), OW_OK);
	assert_int_equal(a->m->event.count, b->m->event.count);
	assert_int_equal(a->m->step.count, b->m->step.count);
	ow_profile_free(b);
	ow_profile_free(a);
}

static void traces_opened_together_are_as_the_originals(void **state)
{
	const char *one = in_folder("one.json"), *two = in_folder("two.json");
	size_t len;
	char *text = make_trace(300, &len);
	const char *saved[2];
	ow_profile *a, *b;

	(void)state;
	write_file(one, text, len);
	for (char *at = text; (at = strstr(at, "\"op_1")); at++)
		memcpy(at, "\"new", 4);
	write_file(two, text, len);
	free(text);
	a = open_all((const char *[]){ one, two }, 2);
	saved[0] = strdup(save_as(one, "one.opw"));
	saved[1] = strdup(save_as(two, "two.opw"));
	b = open_all(saved, 2);
	compare_sums(a, b);
	assert_int_equal(a->m->event.count, b->m->event.count);
	compare_args(a->m, b->m);
	ow_profile_free(b);
	b = open_all((const char *[]){ one, saved[1] }, 2);
	compare_sums(a, b);
	ow_profile_free(b);
	b = open_all((const char *[]){ saved[0], two }, 2);
	compare_sums(a, b);
	save_good(b, in_folder("both.opw"));
	ow_profile_free(b);
	b = open_good(in_folder("both.opw"));
	compare_sums(a, b);
	ow_profile_free(b);
	ow_profile_free(a);
	free((void *)(uintptr_t)saved[0]);
	free((void *)(uintptr_t)saved[1]);
}

static void appending_may_fail_anywhere(void **state)
{
	const char *paths[2];
	char one[512], two[512];
	unsigned failed = 0;

	(void)state;
	snprintf(one, sizeof(one), "%s", make_opw("small.opw", 30));
	snprintf(two, sizeof(two), "%s", make_opw("other.opw", 20));
	paths[0] = one;
	paths[1] = two;
	for (uint64_t n = 1; n < 600; n++) {
		struct ow_error err = { 0 };
		ow_profile *p = NULL;
		ow_status status;

		mem_fail_after(n, false);
		status = ow_profile_open(paths, 2, NULL, &p, &err);
		mem_fail_after(0, false);
		ow_profile_free(p);
		failed += status != OW_OK;
		if (status != OW_OK)
			assert_int_equal(status, OW_E_NO_MEMORY);
	}
	assert_true(failed > 50 && failed < 599);
}

/* ---- damage ---- */

static ow_status open_any(const char *path, struct ow_error *err)
{
	struct buf text;
	struct mem mem;
	ow_profile *p;
	ow_status status = ow_profile_open(&path, 1, NULL, &p, err);

	if (status != OW_OK)
		return status;
	mem_init(&mem, 0);
	buf_init(&text, &mem);
	status = show_all(p, &text, err);
	if (status == OW_OK)
		write_all(p, &text);
	if (status == OW_OK)
		status = ow_profile_verify(p, NULL, err);
	buf_release(&text);
	ow_profile_free(p);
	return status;
}

static void every_cut_ends_in_a_status(void **state)
{
	const char *small = make_opw("small.opw", 30), *cut = in_folder("cut.opw");
	unsigned recovered = 0;
	size_t len;
	unsigned char *bytes = read_file(small, &len);

	(void)state;
	for (size_t at = 0; at < len; at += at < 4096 ? 7 : 61) {
		struct ow_error err = { 0 };
		ow_status status;

		write_file(cut, bytes, at);
		status = open_any(cut, &err);
		recovered += status == OW_OK;
		if (status != OW_OK)
			assert_true(err.text[0]);
		assert_int_not_equal(status, OW_E_INTERNAL);
	}
	assert_true(recovered > 20);
	free(bytes);
}

static void every_turned_bit_is_found(void **state)
{
	const char *small = make_opw("small.opw", 30), *bad = in_folder("bad.opw");
	size_t len, found = 0, tried = 0;
	unsigned char *bytes = read_file(small, &len);

	(void)state;
	for (size_t bit = 3; bit < len * 8; bit += 8 * 37 + 1) {
		struct ow_error err = { 0 };
		const char *path = bad;
		ow_profile *p;

		bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
		write_file(bad, bytes, len);
		tried++;
		if (open_any(path, &err) != OW_OK) {
			found++;
		} else if (ow_profile_open(&path, 1, NULL, &p, &err) == OW_OK) {
			found += ow_profile_damaged(p);
			ow_profile_free(p);
		}
		bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
	}
	/* Only padding is covered by no checksum. */
	assert_true(found * 2 > tried);
	free(bytes);
}

static void mapped_files_are_checked_table_by_table(void **state)
{
	const char *path = make_opw("large.opw", 40000);
	struct ow_error err = { 0 };
	const struct opw_segment *segment = NULL;
	struct opw_file file;
	struct arena arena;
	struct input in;
	struct mem mem;
	ow_result *result;
	ow_profile *p;
	uint64_t at;
	int fd;

	(void)state;
	mem_init(&mem, 0);
	arena_init(&arena, &mem);
	assert_int_equal(input_open(&in, &mem, path, &err), OW_OK);
	assert_int_equal(opw_read(&file, &in, &arena, &err), OW_OK);
	assert_true(file.complete);
	for (size_t i = 0; i < file.count; i++)
		if (strcmp(file.segments[i].head.table, "event") == 0)
			segment = &file.segments[i];
	assert_non_null(segment);
	at = segment->offset + segment->blocks[0].offset + 1000;
	input_close(&in);
	arena_release(&arena);
	fd = open(path, O_RDWR);
	assert_int_equal(pwrite(fd, "\xff\xff", 2, (off_t)at), 2);
	close(fd);
	p = open_good(path); /* nothing of that table is needed to open it */
	assert_int_equal(ow_profile_verify(p, NULL, &err), OW_E_CORRUPT);
	assert_non_null(strstr(err.text, "event.ts_ns"));
	assert_int_equal(ow_view(p, "tracks", NULL, &result, &err), OW_E_CORRUPT);
	assert_null(result);
	ow_profile_free(p);
}

static void patch_header(unsigned char *bytes, uint32_t major)
{
	struct opw_header *h = (struct opw_header *)(void *)bytes;

	h->major = major;
	h->crc = crc32c(h, offsetof(struct opw_header, crc));
}

static void newer_files_are_refused(void **state)
{
	const char *small = make_opw("small.opw", 30), *newer = in_folder("newer.opw");
	struct ow_error err = { 0 };
	size_t len;
	unsigned char *bytes = read_file(small, &len);

	(void)state;
	patch_header(bytes, OPW_MAJOR + 1);
	write_file(newer, bytes, len);
	assert_int_equal(open_any(newer, &err), OW_E_UNSUPPORTED);
	assert_non_null(strstr(err.text, "newer opwatch"));
	free(bytes);
}

/* ---- hostile numbers with right checksums ---- */

static uint32_t random_value(unsigned *seed, uint32_t old)
{
	switch (rand_r(seed) % 5) {
	case 0:
		return old + 1;
	case 1:
		return UINT32_MAX;
	case 2:
		return (uint32_t)rand_r(seed);
	case 3:
		return 0;
	default:
		return (uint32_t)rand_r(seed) % 64;
	}
}

static void spoil(struct model *m, unsigned *seed)
{
	for (int changes = 1 + rand_r(seed) % 3; changes > 0;) {
		int table = rand_r(seed) % TABLE_COUNT;
		const struct table_info *info = &model_tables[table];
		const struct column_info *column =
			&info->columns[(uint32_t)rand_r(seed) % info->column_count];
		uint32_t rows, row;
		uint32_t *values = (uint32_t *)(uintptr_t)values_of(m, table, column, &rows);

		if (!values || column->size != 4 || rows < 2)
			continue;
		row = (uint32_t)rand_r(seed) % rows;
		values[row] = random_value(seed, values[row]);
		changes--;
	}
}

static ow_status file_write_at(void *arg, uint64_t offset, const void *bytes, size_t len,
			       struct ow_error *err)
{
	(void)err;
	return pwrite(*(int *)arg, bytes, len, (off_t)offset) == (ssize_t)len ? OW_OK : OW_E_IO;
}

static void hostile_numbers_end_in_a_status(void **state)
{
	const char *src = getenv("OPWATCH_SRC"), *path = in_folder("hostile.opw");
	char origin[4096];
	unsigned refused = 0;

	(void)state;
	snprintf(origin, sizeof(origin), "%s/tests/fuzz/seeds/opw/run.opw", src ? src : ".");
	for (unsigned i = 0; i < 300; i++) {
		const struct opw_save_options options = { .writer = "test" };
		struct ow_error err = { 0 };
		int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
		struct opw_out out = { file_write_at, &fd };
		unsigned seed = i;
		ow_profile *p = open_good(origin);

		assert_int_equal(model_require_rows(p->m, UINT64_MAX, &err), OW_OK);
		spoil(p->m, &seed);
		/* places and sources may be nonsense by now: saving may refuse */
		if (model_repair(p->m) == 0 || i % 2 == 0)
			refused += opw_save(p->m, &options, &out, &err) != OW_OK;
		close(fd);
		ow_profile_free(p);
		refused += open_any(path, &err) != OW_OK;
		assert_int_not_equal(err.status, OW_E_INTERNAL);
	}
	assert_true(refused > 0);
}

/* ---- files that change ---- */

static void shrinking_is_an_error(void **state)
{
	const char *path = make_opw("large.opw", 40000);
	struct sigaction before, after;
	struct ow_error err = { 0 };
	ow_result *result;
	ow_profile *p;

	(void)state;
	sigaction(SIGBUS, NULL, &before);
	p = open_good(path);
	assert_int_equal(ow_view(p, "steps", NULL, &result, &err), OW_OK);
	ow_result_free(result);
	assert_int_equal(truncate(path, 5000), 0);
	assert_int_equal(ow_view(p, "tracks", NULL, &result, &err), OW_E_IO);
	assert_null(result);
	assert_true(err.text[0]);
	assert_int_equal(ow_profile_verify(p, NULL, &err), OW_E_IO);
	assert_int_equal(ow_profile_save(p, in_folder("never.opw"), NULL, &err), OW_E_IO);
	assert_int_not_equal(access(in_folder("never.opw"), F_OK), 0);
	sigaction(SIGBUS, NULL, &after);
	assert_ptr_equal(before.sa_sigaction, after.sa_sigaction);
	ow_profile_free(p);
}

/* The file is cut in the middle of a call: the first byte that is written triggers it. */
static bool cut_on_write(void *arg, const void *bytes, size_t len)
{
	(void)bytes;
	(void)len;
	assert_int_equal(truncate(arg, 5000), 0);
	return true;
}

static void shrinking_during_a_call_is_an_error(void **state)
{
	const char *path = make_opw("large.opw", 40000);
	struct ow_error err = { 0 };
	ow_profile *p = open_good(path);

	(void)state;
	assert_int_equal(ow_info_json(p, cut_on_write, (void *)(uintptr_t)path, &err), OW_E_IO);
	ow_profile_free(p);
}

/* Under the guard, past all checks: what the model reads becomes zeros. */
static void lost_rows_read_as_zero(void **state)
{
	const char *path = make_opw("large.opw", 40000);
	struct ow_error err = { 0 };
	struct reading reading;
	int64_t sum = 0;
	ow_profile *p = open_good(path);

	(void)state;
	assert_int_equal(api_read_begin(p, TABLES_ALL, &reading, &err), OW_OK);
	assert_int_equal(truncate(path, 5000), 0);
	for (uint32_t i = 0; i < p->m->event.count; i++)
		sum |= p->m->event.ts_ns[i];
	assert_int_equal(sum, 0);
	assert_int_equal(api_read_end(p, &reading, OW_OK, &err), OW_E_IO);
	assert_non_null(strstr(err.text, "shorter"));
	ow_profile_free(p);
}

static void replacing_an_open_file_is_fine(void **state)
{
	const char *path = make_opw("large.opw", 40000);
	struct ow_error err = { 0 };
	ow_profile *p = open_good(path);

	(void)state;
	save_good(p, path); /* onto itself */
	assert_int_equal(ow_profile_verify(p, NULL, &err), OW_OK);
	ow_profile_free(p);
	assert_int_equal(open_any(path, &err), OW_OK);
}

/* ---- what a recorder writes ---- */

struct row_pair {
	int64_t ts, dur;
};

/* Strings, an op and a track first, then events in two segments; no footer, nothing frozen. */
static void write_recorded(const char *path, bool footer)
{
	static const uint32_t lengths[] = { 0, 4, 6 };
	static const char texts[] = "\0name\0worker";
	static const uint32_t op_names[] = { 0, 1 }, tracks[] = { 0, 2 };
	static const int64_t ts[] = { 0, 10, 20, 30, 40 }, dur[] = { 0, 5, 5, 5, 5 };
	static const uint32_t ids[] = { 0, 1, 1, 1, 1 };
	struct opw_part parts[4] = {
		{ .name = "length",
		  .type = "uint32_t",
		  .value_size = 4,
		  .size = 12,
		  .bytes = lengths },
		{ .name = "text", .type = "bytes", .value_size = 1, .size = 13, .bytes = texts }
	};
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC, 0600);
	struct opw_out out = { file_write_at, &fd };
	struct ow_error err = { 0 };
	struct opw_writer w;
	struct mem mem;
	uint64_t size;

	mem_init(&mem, 0);
	opw_writer_init(&w, &mem, &out);
	assert_int_equal(opw_put_header(&w, "recorder", &err), OW_OK);
	assert_int_equal(opw_put_segment(&w, OPW_STRINGS, "", 0, 3, parts, 2, &err), OW_OK);
	parts[0] = (struct opw_part){
		.name = "name", .type = "str_id", .value_size = 4, .size = 8, .bytes = op_names
	};
	assert_int_equal(opw_put_segment(&w, OPW_ROWS, "op", 0, 2, parts, 1, &err), OW_OK);
	parts[0].bytes = tracks;
	parts[1] = (struct opw_part){
		.name = "novelty", .type = "uint64_t", .value_size = 8, .size = 16, .bytes = ts
	};
	assert_int_equal(opw_put_segment(&w, OPW_ROWS, "track", 0, 2, parts, 2, &err), OW_OK);
	for (uint32_t first = 0; first < 5; first += 3) {
		uint32_t rows = MIN(3, 5 - first);

		parts[0] = (struct opw_part){ .name = "ts_ns",
					      .type = "int64_t",
					      .value_size = 8,
					      .size = rows * 8,
					      .bytes = ts + first };
		parts[1] = (struct opw_part){ .name = "dur_ns",
					      .type = "int64_t",
					      .value_size = 8,
					      .size = rows * 8,
					      .bytes = dur + first };
		parts[2] = (struct opw_part){ .name = "op",
					      .type = "op_id",
					      .value_size = 4,
					      .size = rows * 4,
					      .bytes = ids + first };
		parts[3] = (struct opw_part){ .name = "track",
					      .type = "track_id",
					      .value_size = 4,
					      .size = rows * 4,
					      .bytes = ids + first };
		assert_int_equal(
			opw_put_segment(&w, OPW_ROWS, "event", first, rows, parts, 4, &err), OW_OK);
	}
	if (footer)
		assert_int_equal(opw_put_footer(&w, &size, &err), OW_OK);
	opw_writer_release(&w);
	close(fd);
}

static void segments_append(void **state)
{
	const char *path = in_folder("recorded.opw");

	(void)state;
	for (int footer = 0; footer < 2; footer++) {
		ow_profile *p;

		write_recorded(path, footer);
		p = open_good(path);
		assert_int_equal(p->m->event.count, 5);
		assert_int_equal(p->m->event.ts_ns[4], 40);
		assert_string_equal(model_str(p->m, p->m->op.name[1]).ptr, "name");
		assert_string_equal(model_str(p->m, p->m->track.name[1]).ptr, "worker");
		assert_int_equal(p->m->track.pid[1], 0); /* no such column in the file */
		assert_int_equal(model_find_op(p->m, STR("name")).v, 1);
		assert_int_equal(ow_profile_damaged(p), !footer);
		assert_true(p->m->note.count > 1); /* the column nobody knows */
		ow_profile_free(p);
		assert_true(try_round_trip(path, true));
	}
}

/* ---- memory ---- */

/* Some failures are made good by asking for less, so success is no end. */
static void every_allocation_may_fail(void **state)
{
	const char *path = make_opw("small.opw", 30), *copy = in_folder("copy.opw");
	unsigned failed = 0;

	(void)state;
	for (uint64_t n = 1; n < 1000; n++) {
		struct ow_error err = { 0 };
		ow_profile *p = NULL;
		ow_status status;

		mem_fail_after(n, false);
		status = ow_profile_open(&path, 1, NULL, &p, &err);
		if (status == OW_OK)
			status = ow_profile_save(p, copy, NULL, &err);
		mem_fail_after(0, false);
		ow_profile_free(p);
		failed += status != OW_OK;
		if (status != OW_OK)
			assert_int_equal(status, OW_E_NO_MEMORY);
	}
	assert_true(failed > 20 && failed < 999);
}

static void the_limit_is_respected(void **state)
{
	const char *path = make_opw("large.opw", 40000);
	struct ow_open_options options;
	struct ow_error err = { 0 };
	ow_profile *p;

	(void)state;
	ow_open_options_init(&options);
	options.memory_limit = 2000000; /* far less than the columns */
	assert_int_equal(ow_profile_open(&path, 1, &options, &p, &err), OW_OK);
	assert_int_equal(ow_profile_verify(p, NULL, &err), OW_OK);
	ow_profile_free(p);
}

static void redacted_files_tell_nothing(void **state)
{
	const char *path = make_opw("large.opw", 40000), *hidden = in_folder("hidden.opw");
	struct ow_open_options options;
	struct ow_error err = { 0 };
	unsigned char *bytes;
	ow_profile *p;
	size_t len;

	(void)state;
	ow_open_options_init(&options);
	options.redact = true;
	assert_int_equal(ow_profile_open(&path, 1, &options, &p, &err), OW_OK);
	save_good(p, hidden);
	ow_profile_free(p);
	bytes = read_file(hidden, &len);
	assert_null(memmem(bytes, len, "op_17", 5));
	assert_null(memmem(bytes, len, "trainer", 7));
	free(bytes);
	assert_int_equal(open_any(hidden, &err), OW_OK);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(saved_and_opened_is_equal),
		cmocka_unit_test(large_files_are_mapped),
		cmocka_unit_test(opened_together_is_as_the_originals),
		cmocka_unit_test(traces_opened_together_are_as_the_originals),
		cmocka_unit_test(appending_may_fail_anywhere),
		cmocka_unit_test(every_cut_ends_in_a_status),
		cmocka_unit_test(every_turned_bit_is_found),
		cmocka_unit_test(mapped_files_are_checked_table_by_table),
		cmocka_unit_test(newer_files_are_refused),
		cmocka_unit_test(hostile_numbers_end_in_a_status),
		cmocka_unit_test(shrinking_is_an_error),
		cmocka_unit_test(shrinking_during_a_call_is_an_error),
		cmocka_unit_test(lost_rows_read_as_zero),
		cmocka_unit_test(replacing_an_open_file_is_fine),
		cmocka_unit_test(segments_append),
		cmocka_unit_test(every_allocation_may_fail),
		cmocka_unit_test(the_limit_is_respected),
		cmocka_unit_test(redacted_files_tell_nothing),
	};

	return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
