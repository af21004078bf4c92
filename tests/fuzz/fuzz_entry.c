/*
 * fuzz_entry.c: the targets that are not importers alone.
 *
 *     views      recognised as any file is, then every view through every output, advice and timeline
 *     opw_views  the same of an opwatch file, whose columns the views read in place
 *     tables     the same, then every table of SQL, each row and column of it
 *     sql        the bytes are a query: it is split into statements and rewritten from BigQuery's dialect, and what comes out is
 *                rewritten again
 *     hang       the bytes are a file of a job that stands still, of two ranks
 *     request    the bytes are a request to the server of the web page (fuzz_request.c)
 *     merge      merged with itself and a small trace, with options that its length chooses; what comes
 *                out must be one JSON document to the letter
 */
#include "fuzz_entry.h"

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "api/api_int.h"
#include "hang/hang.h"
#include "merge/merge.h"
#include "relation/relation.h"
#include "sql/bigquery.h"
#include "support/every_view.h"
#include "support/relation_text.h"
#include "wire/json/json_strict.h"

/* ---- views ---- */

/* Every row of every table that SQL has. */
static void read_tables(ow_profile *profile)
{
	struct table_run run = { .m = profile->m, .name = "fuzz", .number = 1 };
	const struct table_source *source;

	for (size_t i = 0; (source = relation_at(i)); i++) {
		struct ow_error err = { 0 };
		struct buf text;

		buf_init(&text, &profile->mem);
		every_view_status(
			relation_text(source->name, &run, 1, NULL, &profile->mem, &text, &err),
			&err, source->name);
		buf_release(&text);
	}
}

static ow_status run_views(const char *format, const void *data, size_t len, bool tables)
{
	struct ow_file_options file = { .size = sizeof(file), .format = format, .step = INT64_MIN };
	struct ow_open_options options;
	struct every_view all = { 0 };
	struct ow_error err = { 0 };
	ow_profile *profile = NULL;
	ow_status status;

	ow_open_options_init(&options);
	options.memory_limit = FUZZ_MEMORY_LIMIT;
	status = ow_profile_new(&options, &profile, &err);
	if (status == OW_OK)
		status = ow_profile_add_memory(profile, "fuzz", data, len, &file, NULL, &err);
	if (status == OW_OK)
		status = ow_profile_freeze(profile, &err);
	if (status == OW_OK && tables)
		read_tables(profile);
	else if (status == OW_OK)
		every_view(&all, profile);
	ow_profile_free(profile);
	return status;
}

/* ---- sql ---- */

static ow_status rewrite(struct str text, struct mem *mem, struct buf *out, struct ow_error *err)
{
	static const char *const runs[] = { "job_1", "job_2" };
	static const char *const files[] = { "job_1.json", "job_2.json" };
	struct bigquery_names names = { .runs = { runs, 2 }, .files = { files, 2 } };
	struct arena scratch;
	ow_status status;

	arena_init(&scratch, mem);
	status = bigquery_rewrite(text, &names, &scratch, out, err);
	arena_release(&scratch);
	return status;
}

static ow_status run_sql(const void *data, size_t len)
{
	struct str text = bigquery_body(str_make(data, len)), statement;
	struct ow_error err = { 0 };
	struct buf once, twice;
	ow_status status = OW_OK;
	struct mem mem;

	mem_init(&mem, FUZZ_MEMORY_LIMIT);
	buf_init(&once, &mem);
	buf_init(&twice, &mem);
	for (size_t n = 0; status == OW_OK && (statement = bigquery_statement(text, n)).len; n++) {
		(void)bigquery_first_word(statement);
		buf_clear(&once);
		buf_clear(&twice);
		status = rewrite(statement, &mem, &once, &err);
		if (status == OW_OK)
			status = rewrite(buf_str(&once), &mem, &twice, &err);
	}
	buf_release(&once);
	buf_release(&twice);
	return status;
}

/* ---- merge ---- */

/* A file of these bytes; its path is valid while it is open. */
static int open_bytes(const void *data, size_t len, char path[64])
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (fd < 0 || write(fd, data, len) != (ssize_t)len)
		abort();
	snprintf(path, 64, "/proc/self/fd/%d", fd);
	return fd;
}

static ow_status take(void *arg, const void *bytes, size_t len, struct ow_error *err)
{
	struct buf *out = arg;

	buf_add(out, bytes, len);
	return out->failed ? error_no_memory(err) : OW_OK;
}

static ow_status forget(void *arg, struct ow_error *err)
{
	(void)err;
	buf_clear(arg);
	return OW_OK;
}

static void choose(struct merge_options *options, unsigned char choice)
{
	static const char *const names[] = { "a.*", "ProfilerStep.*" };

	merge_options_init(options);
	options->align = (enum merge_align)(choice % 3);
	options->labels = choice & 4;
	if (choice & 8)
		options->names = (struct ow_list){ names, 2 };
	if (choice & 16)
		options->from_ns = 1000;
	if (choice & 32)
		options->first_step = options->last_step = 1;
	options->threads = choice & 64 ? 2 : 1;
	options->part_bytes = choice & 128 ? 64 : 0;
}

/* ---- hang ---- */

static ow_status run_hang(const void *data, size_t len)
{
	static const char *const names[] = { "rank_0", "rank_1" };
	struct ow_error err = { 0 };
	struct hang_job job;
	struct table *answer;
	struct mem mem;
	ow_status status = OW_OK;
	bool known;

	mem_init(&mem, FUZZ_MEMORY_LIMIT);
	hang_init(&job, &mem);
	for (size_t i = 0; i < 2 && status == OW_OK; i++) {
		struct input in;

		status = input_from_memory(&in, &mem, names[i], data, len, &err);
		if (status != OW_OK)
			break;
		status = hang_read(&job, &in, &known, &err);
		input_close(&in);
	}
	answer = table_new(&mem, "hang", &err);
	if (status == OW_OK)
		status = answer ? hang_table(&job, answer, &err) : OW_E_NO_MEMORY;
	table_free(answer);
	hang_release(&job);
	return status;
}

static ow_status run_merge(const unsigned char *data, size_t len)
{
	static const char other[] =
		"[{\"ph\":\"X\",\"name\":\"a\",\"pid\":1,\"tid\":1,\"ts\":5,\"dur\":1,\"id\":1},"
		"{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":1,\"args\":{\"name\":\"p\"}}]";
	struct merge_path paths[3] = { 0 };
	struct merge_counts counts = { 0 };
	struct merge_options options;
	char names[3][64];
	struct mem mem;
	struct buf text;
	struct merge_out out = { .write = take, .restart = forget, .arg = &text };
	struct ow_error err = { 0 };
	ow_status status;
	int fds[3];

	choose(&options, (unsigned char)(len * 37));
	fds[0] = open_bytes(data, len, names[0]);
	fds[1] = open_bytes(other, sizeof(other) - 1, names[1]);
	fds[2] = open_bytes(data, len, names[2]);
	for (int i = 0; i < 3; i++)
		paths[i].name = names[i];
	mem_init(&mem, FUZZ_MEMORY_LIMIT);
	buf_init(&text, &mem);
	status = merge_files(&mem, paths, 3, &options, &out, &counts, &err);
	while (text.len && text.ptr[text.len - 1] == '\n')
		text.len--;
	if (status == OW_OK && !json_strict(buf_str(&text)))
		status = OW_E_INTERNAL;
	buf_release(&text);
	for (int i = 0; i < 3; i++)
		close(fds[i]);
	return status;
}

ow_status fuzz_run(const char *target, const void *data, size_t len)
{
	if (strcmp(target, "views") == 0)
		return run_views(NULL, data, len, false);
	if (strcmp(target, "opw_views") == 0)
		return run_views("opw", data, len, false);
	if (strcmp(target, "tables") == 0)
		return run_views(NULL, data, len, true);
	if (strcmp(target, "sql") == 0)
		return run_sql(data, len);
	if (strcmp(target, "hang") == 0)
		return run_hang(data, len);
	if (strcmp(target, "merge") == 0)
		return run_merge(data, len);
	if (strcmp(target, "request") == 0)
		return fuzz_request(data, len);
	return import_memory(target, data, len, FUZZ_MEMORY_LIMIT);
}
