/* push_test.c: plans, the format Native and the statements of a push, and a whole push against a server
 * inside this program that behaves, refuses, forgets and doubles. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "push/native.h"
#include "push/plan.h"
#include "push/schema.h"
#include "support/http_server.h"
#include "support/trace_model.h"

static const char *const only_event[] = { "event" };

static void fill_model(struct small_model *s)
{
	source_id source = trace_source(s, "rank0.json", 3);
	track_id host = trace_track(s, source, "main", TRACK_HOST, NULL);

	for (int i = 0; i < 5; i++)
		trace_slice(s, host, i % 2 ? "odd" : "even", PHASE_COMPUTE, 2 * i, 2 * i + 1);
	small_freeze(s);
}

static struct push_options plain_options(void)
{
	return (struct push_options){ .run = "r",
				      .content = "00112233445566778899aabbccddeeff",
				      .tables = { only_event, 1 },
				      .connections = 1,
				      .batch_rows = 2 };
}

/* ---- plans ---- */

static uint64_t push_number(struct model *m, const struct push_options *options, struct mem *mem)
{
	struct ow_error err = { 0 };
	struct plan plan;
	uint64_t push;

	assert_int_equal(plan_make(&plan, m, options, mem, &err), OW_OK);
	push = plan.push;
	plan_release(&plan);
	return push;
}

static void plans(void **state)
{
	struct push_options options = plain_options();
	struct ow_error err = { 0 };
	struct small_model s;
	uint64_t push;
	struct plan plan;
	struct mem mem;

	(void)state;
	small_open(&s);
	fill_model(&s);
	mem_init(&mem, 0);
	assert_int_equal(plan_make(&plan, s.m, &options, &mem, &err), OW_OK);
	assert_int_equal(plan.chosen_count, 1);
	assert_true(plan.table_count > 10);
	assert_int_equal(plan.rows, 5);
	assert_int_equal(plan.batch_count, 3);
	assert_int_equal(plan.batches[2].number, 2);
	assert_int_equal(plan.batches[2].first, 4);
	assert_int_equal(plan.batches[2].rows, 1);
	push = plan.push;
	plan_release(&plan);
	/* The same is the same, and everything that changes rows changes it. */
	assert_true(push_number(s.m, &options, &mem) == push);
	options.content = "10112233445566778899aabbccddeeff";
	assert_true(push_number(s.m, &options, &mem) != push);
	options = plain_options();
	options.run = "q";
	assert_true(push_number(s.m, &options, &mem) != push);
	options = plain_options();
	options.reading = 1;
	assert_true(push_number(s.m, &options, &mem) != push);
	options = plain_options();
	options.batch_rows = 3;
	assert_true(push_number(s.m, &options, &mem) != push);
	options = plain_options();
	options.tables = (struct ow_list){ 0 };
	assert_true(push_number(s.m, &options, &mem) != push);
	options.tables = (struct ow_list){ &options.run, 1 };
	assert_int_equal(plan_make(&plan, s.m, &options, &mem, &err), OW_E_USAGE);
	plan_release(&plan);
	assert_int_equal(atomic_load(&mem.used), 0);
	small_close(&s);
}

/* ---- statements ---- */

static const struct plan_table *find_table(const struct plan *plan, const char *name)
{
	for (uint32_t i = 0; i < plan->table_count; i++)
		if (strcmp(plan->tables[i].relation->name, name) == 0)
			return &plan->tables[i];
	fail_msg("no table %s", name);
	return NULL;
}

static void statements(void **state)
{
	struct push_options options = plain_options();
	struct ow_error err = { 0 };
	struct small_model s;
	struct plan plan;
	struct buf text;

	(void)state;
	small_open(&s);
	fill_model(&s);
	buf_init(&text, &s.mem);
	assert_int_equal(plan_make(&plan, s.m, &options, &s.mem, &err), OW_OK);
	schema_table_text(&text, find_table(&plan, "step"));
	assert_true(str_starts(buf_str(&text),
			       STR("CREATE TABLE IF NOT EXISTS opwatch_step (opwatch_push UInt64, "
				   "opwatch_batch UInt32, `run` String, `id` Int64, `number` "
				   "Nullable(Int64), ")));
	assert_true(str_ends(buf_str(&text), STR(") ENGINE = MergeTree ORDER BY (run, id)")));
	buf_clear(&text);
	schema_table_text(&text, find_table(&plan, "event"));
	assert_true(str_ends(buf_str(&text), STR(" ORDER BY (run, ifNull(ts, 0))")));
	buf_clear(&text);
	schema_view_text(&text, find_table(&plan, "step"), NULL);
	assert_true(str_starts(
		buf_str(&text),
		STR("CREATE VIEW IF NOT EXISTS `step` AS SELECT `run`, `id`, `number`, ")));
	assert_true(str_ends(buf_str(&text),
			     STR(" FROM opwatch_step WHERE opwatch_push IN (SELECT argMax(push, "
				 "version) FROM opwatch_publish GROUP BY run)")));
	buf_clear(&text);
	schema_view_text(&text, find_table(&plan, "step"), "c");
	assert_true(str_ends(buf_str(&text),
			     STR(" FROM opwatch_step_all WHERE opwatch_push GLOBAL IN (SELECT "
				 "argMax(push, version) FROM opwatch_publish_all GROUP BY run)")));
	buf_release(&text);
	plan_release(&plan);
	small_close(&s);
}

/* ---- the format ---- */

static size_t get_length(const unsigned char **at)
{
	size_t value = 0;

	for (int shift = 0;; shift += 7) {
		value |= (size_t)(**at & 0x7f) << shift;
		if (!(*(*at)++ & 0x80))
			return value;
	}
}

static struct str get_text(const unsigned char **at)
{
	size_t len = get_length(at);
	struct str text = str_make(*at, len);

	*at += len;
	return text;
}

/* Walks over the values of a column; the texts or numbers of `wanted` are put in `to`, NULL as "-". */
static void walk_column(const unsigned char **at, size_t rows, struct str wanted, struct buf *to)
{
	struct str name = get_text(at), type = get_text(at);
	bool is_wanted = str_eq(name, wanted), nullable = str_starts(type, STR("Nullable("));
	const unsigned char *nulls = *at;
	size_t size = str_has(type, STR("32")) ? 4 : str_has(type, STR("UInt8")) ? 1 : 8;

	*at += nullable ? rows : 0;
	for (size_t i = 0; i < rows; i++) {
		struct str text = { 0 };
		int64_t number = 0;

		if (str_has(type, STR("String"))) {
			text = get_text(at);
		} else {
			memcpy(&number, *at, size);
			*at += size;
		}
		if (!is_wanted)
			continue;
		if (nullable && nulls[i]) {
			assert_true(!text.len && !number);
			buf_puts(to, "- ");
		} else if (str_has(type, STR("String"))) {
			buf_printf(to, "%.*s ", STR_ARG(text));
		} else {
			buf_printf(to, "%" PRId64 " ", number);
		}
	}
}

static void expect_column(const struct plan *plan, struct mem *mem, uint64_t first, uint64_t rows,
			  const char *column, const char *values)
{
	struct ow_error err = { 0 };
	struct native native;
	struct buf bytes, text;
	const unsigned char *at;
	size_t len, columns;

	buf_init(&bytes, mem);
	buf_init(&text, mem);
	assert_int_equal(native_init(&native, mem, &err), OW_OK);
	native_start(&native, find_table(plan, "event")->rows, 0, first, rows, 77, 3, &err);
	assert_true(buf_reserve(&bytes, 1 << 20));
	while ((len = native_take(&native, bytes.ptr + bytes.len, 13)) > 0)
		bytes.len += len;
	at = (const unsigned char *)bytes.ptr;
	columns = get_length(&at);
	assert_int_equal(get_length(&at), rows);
	for (size_t i = 0; i < columns; i++)
		walk_column(&at, rows, str_from(column), &text);
	assert_ptr_equal(at, bytes.ptr + bytes.len);
	assert_string_equal(buf_cstr(&text), values);
	native_release(&native);
	buf_release(&text);
	buf_release(&bytes);
}

static void native_blocks(void **state)
{
	struct push_options options = plain_options();
	struct ow_error err = { 0 };
	struct small_model s;
	struct plan plan;

	(void)state;
	small_open(&s);
	fill_model(&s);
	assert_int_equal(plan_make(&plan, s.m, &options, &s.mem, &err), OW_OK);
	expect_column(&plan, &s.mem, 0, 2, "opwatch_push", "77 77 ");
	expect_column(&plan, &s.mem, 0, 2, "opwatch_batch", "3 3 ");
	expect_column(&plan, &s.mem, 0, 5, "run", "r r r r r ");
	expect_column(&plan, &s.mem, 1, 3, "name", "odd even odd ");
	expect_column(&plan, &s.mem, 1, 3, "dur", "1000000 1000000 1000000 ");
	expect_column(&plan, &s.mem, 0, 2, "device", "- - ");
	expect_column(&plan, &s.mem, 0, 2, "step", "- - ");
	expect_column(&plan, &s.mem, 0, 2, "rank", "3 3 ");
	plan_release(&plan);
	small_close(&s);
}

/* ---- a whole push ---- */

#define PARTITIONS 16

/* A ClickHouse that knows just the statements of a push. */
struct fake {
	struct http_server server;
	struct small_model s;
	struct plan plan;	   /* to know what is right */
	uint64_t rows[PARTITIONS]; /* of event, by batch */
	char publish[256];	   /* "push\tcontent" of the run */
	unsigned inserts, publishes, drops, creates;
	/* mishaps */
	unsigned refuse_insert; /* the first ones, after taking the rows */
	const char *refusal;
	bool lose, twice;    /* rows of the first insertion */
	const char *foreign; /* a table of somebody else */
	const char *version; /* of the tables that are there */
	const char *other;   /* another claim */
	char owner[64];	     /* of the push that claims */
	unsigned state;
	bool cancel;
};

static void sent_rows(struct fake *f, struct http_exchange *x)
{
	const unsigned char *at = (const unsigned char *)x->body;
	const char *id = strstr(x->head, "query_id=opwatch-");
	unsigned batch = 0;
	size_t rows;

	assert_non_null(id);
	assert_int_equal(sscanf(id, "query_id=opwatch-%*16[0-9a-f]-event-%u-", &batch), 1);
	assert_true(batch < PARTITIONS);
	get_length(&at);
	rows = get_length(&at);
	if (!(f->lose && f->inserts == 0))
		f->rows[batch] += f->twice && f->inserts == 0 ? 2 * rows : rows;
	if (f->inserts++ < f->refuse_insert) {
		x->status = 500;
		snprintf(x->answer, sizeof(x->answer), "%s", f->refusal);
	}
}

static void put(struct http_exchange *x, const char *format, ...) OW_PRINTF(2, 3);
static void put(struct http_exchange *x, const char *format, ...)
{
	size_t len = strlen(x->answer);
	va_list args;

	va_start(args, format);
	vsnprintf(x->answer + len, sizeof(x->answer) - len, format, args);
	va_end(args);
}

static void list_parts(struct fake *f, struct http_exchange *x)
{
	const char *one = strstr(x->body, "AND opwatch_batch = toUInt32(");
	char push[64];
	unsigned batch;

	snprintf(push, sizeof(push), "WHERE run = 'r' AND opwatch_push = toUInt64(%" PRIu64 ")",
		 f->plan.push);
	if (one) {
		assert_int_equal(sscanf(one, "AND opwatch_batch = toUInt32(%u)", &batch), 1);
		put(x, "%" PRIu64 "\n", f->rows[batch]);
		return;
	}
	for (batch = 0; strstr(x->body, push) && batch < PARTITIONS; batch++)
		if (f->rows[batch])
			put(x, "opwatch_event\t%u\t%" PRIu64 "\n", batch, f->rows[batch]);
}

static void list_columns(const struct fake *f, struct http_exchange *x)
{
	for (uint32_t t = 0; t < f->plan.table_count; t++)
		for (uint32_t c = 0; c < f->plan.tables[t].rows->column_count; c++)
			put(x, "opwatch_%s\t%s\t%s\n", f->plan.tables[t].relation->name,
			    f->plan.tables[t].rows->columns[c].name,
			    native_type(&f->plan.tables[t].rows->columns[c]));
}

static void drop_rows(struct fake *f, const struct http_exchange *x)
{
	unsigned batch;

	if (sscanf(x->body,
		   "ALTER TABLE opwatch_event DELETE WHERE run = 'r' AND opwatch_push = "
		   "toUInt64(%*[0-9]) AND opwatch_batch = toUInt32(%u)",
		   &batch) != 1)
		return;
	f->drops++;
	f->rows[batch] = 0;
}

static void publish_run(struct fake *f, const struct http_exchange *x)
{
	uint64_t push;

	f->publishes++;
	assert_int_equal(
		sscanf(x->body, "INSERT INTO opwatch_publish SELECT 'r', toUInt64(%" SCNu64, &push),
		1);
	snprintf(f->publish, sizeof(f->publish), "%" PRIu64 "\t%s\n", push,
		 plain_options().content);
}

static void note_claim(struct fake *f, const struct http_exchange *x)
{
	assert_int_equal(
		sscanf(x->body,
		       "INSERT INTO opwatch_claim SELECT 'r', toUInt64(%*[0-9]), '%63[^']', "
		       "'%*[^']', toUInt64(%*[0-9]), now(), toUInt8(%u)",
		       f->owner, &f->state),
		2);
}

static bool has(const struct http_exchange *x, const char *words)
{
	return strstr(x->body, words) != NULL;
}

static void handle(void *arg, struct http_exchange *x)
{
	struct fake *f = arg;

	if (!x->body)
		return;
	if (strstr(x->head, "query=INSERT"))
		sent_rows(f, x);
	else if (has(x, "count() FROM opwatch_"))
		list_parts(f, x);
	else if (has(x, "FROM system.mutations"))
		put(x, "0\n");
	else if (has(x, "FROM system.columns"))
		list_columns(f, x);
	else if (has(x, "FROM system.tables"))
		put(x, "%s", f->foreign ? f->foreign : "");
	else if (has(x, "FROM system.processes"))
		put(x, "0\n");
	else if (has(x, "SELECT version, cluster, writer"))
		put(x, "%s", f->version ? f->version : "");
	else if (has(x, "SELECT owner, any(host)"))
		put(x, "%s%s\there\t1\t0\t5\t%u\n", f->other ? f->other : "", f->owner, f->state);
	else if (has(x, "INSERT INTO opwatch_claim"))
		note_claim(f, x);
	else if (has(x, "SELECT push, content FROM opwatch_publish"))
		put(x, "%s", f->publish);
	else if (has(x, "INSERT INTO opwatch_publish"))
		publish_run(f, x);
	else if (has(x, " DELETE WHERE "))
		drop_rows(f, x);
	else if (has(x, "CREATE "))
		f->creates++;
}

static bool on_progress(void *arg, uint64_t done, uint64_t total)
{
	const struct fake *f = arg;

	assert_true(done <= total);
	return !f->cancel;
}

static struct push_options fake_options(struct fake *f)
{
	struct push_options options = plain_options();

	options.address = (struct address){
		.host = "127.0.0.1", .port = f->server.port, .user = "u", .database = "d"
	};
	options.password = "hunter2";
	options.retry_ms = 20000;
	options.progress = on_progress;
	options.progress_arg = f;
	return options;
}

static void fake_open(struct fake *f)
{
	struct push_options options = plain_options();
	struct ow_error err = { 0 };

	memset(f, 0, sizeof(*f));
	small_open(&f->s);
	fill_model(&f->s);
	assert_int_equal(plan_make(&f->plan, f->s.m, &options, &f->s.mem, &err), OW_OK);
	http_server_start(&f->server, handle, f);
}

static void fake_close(struct fake *f)
{
	http_server_end(&f->server);
	plan_release(&f->plan);
	small_close(&f->s);
}

static ow_status push_to(struct fake *f, struct push_summary *sums, struct ow_error *err)
{
	struct push_options options = fake_options(f);
	struct mem mem;
	ow_status status;

	mem_init(&mem, 0);
	status = push_run(f->s.m, &options, &mem, sums, err);
	assert_int_equal(atomic_load(&mem.used), 0);
	assert_null(strstr(err->text, "hunter2"));
	return status;
}

static void expect_complete(const struct fake *f)
{
	assert_int_equal(f->rows[0], 2);
	assert_int_equal(f->rows[1], 2);
	assert_int_equal(f->rows[2], 1);
	assert_int_equal(strtoull(f->publish, NULL, 10) == f->plan.push, true);
}

static void pushed_and_again(void **state)
{
	struct push_summary sums;
	struct ow_error err = { 0 };
	struct fake f;

	(void)state;
	fake_open(&f);
	assert_int_equal(push_to(&f, &sums, &err), OW_OK);
	expect_complete(&f);
	assert_int_equal(f.publishes, 1);
	assert_int_equal(f.inserts, 3);
	assert_int_equal(sums.sent, 5);
	assert_int_equal(f.drops, 0);
	assert_int_equal(push_to(&f, &sums, &err), OW_OK);
	assert_true(sums.published_before);
	assert_int_equal(f.publishes, 1);
	assert_int_equal(f.inserts, 3);
	fake_close(&f);
}

/* Half a batch of an earlier push is dropped; a whole one is kept. */
static void resumed(void **state)
{
	struct push_summary sums;
	struct ow_error err = { 0 };
	struct fake f;

	(void)state;
	fake_open(&f);
	f.rows[0] = 2;
	f.rows[1] = 1;
	assert_int_equal(push_to(&f, &sums, &err), OW_OK);
	expect_complete(&f);
	assert_int_equal(sums.batches_found, 1);
	assert_int_equal(f.inserts, 2);
	assert_int_equal(f.drops, 1);
	fake_close(&f);
}

static void mishap(bool lose, bool twice, unsigned refuse, const char *refusal)
{
	struct push_summary sums;
	struct ow_error err = { 0 };
	struct fake f;

	fake_open(&f);
	f.lose = lose;
	f.twice = twice;
	f.refuse_insert = refuse;
	f.refusal = refusal;
	if (push_to(&f, &sums, &err) != OW_OK)
		fail_msg("%s", err.text);
	expect_complete(&f);
	assert_int_equal(f.publishes, 1);
	assert_int_equal(sums.repeats, refuse ? refuse : 1);
	assert_true(lose || f.drops >= 1); /* what was lost need not be deleted */
	fake_close(&f);
}

static void repeated(void **state)
{
	(void)state;
	mishap(true, false, 0, NULL);
	mishap(false, true, 0, NULL);
	mishap(false, false, 2, "Code: 210. DB::NetException: Connection reset");
	mishap(false, false, 1, "Code: 252. DB::Exception: Too many parts");
}

static void expect_refused(struct fake *f, ow_status status, const char *words)
{
	struct push_summary sums;
	struct ow_error err = { 0 };

	assert_int_equal(push_to(f, &sums, &err), status);
	if (!strstr(err.text, words))
		fail_msg("%s", err.text);
	assert_int_equal(f->publishes, 0);
	fake_close(f);
}

static void refused(void **state)
{
	struct fake f;

	(void)state;
	fake_open(&f);
	f.refuse_insert = 1;
	f.refusal = "Code: 243. DB::Exception: Not enough space";
	expect_refused(&f, OW_E_IO, "nothing was published");
	fake_open(&f);
	f.foreign = "event\tMergeTree\n";
	expect_refused(&f, OW_E_UNSUPPORTED, "of its own");
	fake_open(&f);
	f.version = "0-12\t\t9.9\n";
	expect_refused(&f, OW_E_UNSUPPORTED, "have version 0-12 (made by opwatch 9.9)");
	fake_open(&f);
	f.other = "z\telsewhere\t5\t7\t4\t0\n"; /* asked before us */
	expect_refused(&f, OW_E_PERMISSION, "pushed from elsewhere (process 5, last seen 7 s ago)");
	fake_open(&f);
	f.other = "0\telsewhere\t6\t0\t5\t0\n"; /* in the same second */
	expect_refused(&f, OW_E_PERMISSION, "(process 6,");
	fake_open(&f);
	f.other = "z\telsewhere\t7\t0\t6\t1\n"; /* after us, but has it */
	expect_refused(&f, OW_E_PERMISSION, "(process 7,");
	fake_open(&f);
	snprintf(f.publish, sizeof(f.publish), "5\tanother content\n");
	expect_refused(&f, OW_E_USAGE, "--replace");
	fake_open(&f);
	f.cancel = true;
	expect_refused(&f, OW_E_INTERRUPTED, "interrupted");
}

static void without_memory(void **state)
{
	ow_status status = OW_E_NO_MEMORY;
	struct push_summary sums;
	struct ow_error err = { 0 };
	struct fake f;

	(void)state;
	fake_open(&f);
	for (uint64_t n = 1; status == OW_E_NO_MEMORY; n += 1 + n / 40) {
		memset(f.rows, 0, sizeof(f.rows));
		f.publish[0] = 0;
		mem_fail_after(n, true);
		status = push_to(&f, &sums, &err);
		mem_fail_after(0, false);
		assert_true(status == OW_OK || !f.publish[0]);
		assert_true(n < 1000000);
	}
	if (status != OW_OK)
		fail_msg("%s", err.text);
	fake_close(&f);
}

int main(void)
{
	const struct CMUnitTest plain[] = {
		cmocka_unit_test(plans),
		cmocka_unit_test(statements),
		cmocka_unit_test(native_blocks),
	};
	const struct CMUnitTest with_server[] = {
		cmocka_unit_test(pushed_and_again), cmocka_unit_test(resumed),
		cmocka_unit_test(repeated),	    cmocka_unit_test(refused),
		cmocka_unit_test(without_memory),
	};
	struct ow_error err = { 0 };
	int failed = cmocka_run_group_tests_name("plain", plain, NULL, NULL);

	if (http_available(&err) == OW_OK)
		return failed +
		       cmocka_run_group_tests_name("with a server", with_server, NULL, NULL);
	print_message("skipped: %s\n", err.text);
	return failed;
}
