/*
 * opw_memory_test.c: which rows of memory an op has in a step. Files of older versions have columns for it, newer ones
 * only where they are needed (model_memory_of); others may have one of them, or numbers that do not fit.
 */
#include "api/api_int.h"
#include "sink/own/opw_save.h"
#include "support/scratch.h"
#include "support/tf_files.h"

#include <fcntl.h>
#include <unistd.h>

enum variant { PLAIN, BOTH, ONLY_FIRST, ONLY_COUNT, TOO_MANY, VARIANTS };

static char folder[64], saved[VARIANTS][96], runs[2][96];

static bool to_buf(void *arg, const void *bytes, size_t len)
{
	buf_add(arg, bytes, len);
	return true;
}

static ow_status write_at(void *arg, uint64_t offset, const void *bytes, size_t len,
			  struct ow_error *err)
{
	(void)err;
	return pwrite(*(int *)arg, bytes, len, (off_t)offset) == (ssize_t)len ? OW_OK : OW_E_IO;
}

static ow_profile *open_all(const char *const *paths, size_t count)
{
	struct ow_error err = { 0 };
	ow_profile *p = NULL;

	if (ow_profile_open(paths, count, NULL, &p, &err) != OW_OK)
		fail_msg("%s: %s", paths[0], err.text);
	return p;
}

/* As an older version filled it. */
static void add_column(struct model *m, size_t column, uint32_t value_of_row, uint32_t plus)
{
	struct ow_error err = { 0 };
	struct builder b;
	uint32_t *values;

	builder_init(&b, m, &err);
	assert_true(builder_need_column(&b, TABLE_op_step, column));
	values = *(uint32_t **)(void *)((char *)&m->op_step + column);
	for (uint32_t i = 1; i < m->op_step.count; i++)
		values[i] = value_of_row * i + plus;
}

static void save(enum variant variant)
{
	const struct opw_save_options options = { .writer = "test" };
	ow_profile *p = open_all((const char *const[]){ runs[0] }, 1);
	struct ow_error err = { 0 };
	int fd = open(saved[variant], O_RDWR | O_CREAT | O_TRUNC, 0600);
	struct opw_out out = { write_at, &fd };

	assert_true(fd >= 0);
	assert_int_equal(model_require_rows(p->m, TABLES_ALL, &err), OW_OK);
	assert_true(p->m->memory.count > 2);
	assert_null(p->m->op_step.memory_first);
	assert_null(p->m->op_step.memory_count);
	if (variant == BOTH || variant == ONLY_FIRST || variant == TOO_MANY)
		add_column(p->m, offsetof(struct op_step_table, memory_first), 1, 0);
	if (variant == BOTH || variant == ONLY_COUNT || variant == TOO_MANY)
		add_column(p->m, offsetof(struct op_step_table, memory_count), 0,
			   variant == TOO_MANY ? 1000000 : 1);
	assert_int_equal(opw_save(p->m, &options, &out, &err), OW_OK);
	close(fd);
	ow_profile_free(p);
}

/* Each op reports its memory once. */
static void write_run(const char *path, int run)
{
	FILE *file = fopen(path, "wb");
	struct buf text, bytes;
	struct mem mem;

	mem_init(&mem, 0);
	buf_init(&text, &mem);
	buf_printf(&text, "step_stats { dev_stats { device: '/job:w/task:0/device:CPU:0'\n");
	for (int i = 0; i < 9; i++)
		buf_printf(
			&text,
			"node_stats { node_name: 'op_%d' all_start_micros: %d op_end_rel_micros: 5 "
			"memory { allocator_name: 'cpu' total_bytes: %d peak_bytes: %d } }\n",
			(i * 5 + run) % 9, 1000 + i * 10, 100 + i * 7 + run, 50 + i);
	buf_printf(&text, "} }%c", 0);
	assert_false(text.failed);
	bytes = tf_binary(&mem, &tf_run_metadata, text.ptr);
	assert_non_null(file);
	assert_int_equal(fwrite(bytes.ptr, 1, bytes.len, file), bytes.len);
	assert_int_equal(fclose(file), 0);
	buf_release(&text);
	buf_release(&bytes);
}

static int save_all(void **state)
{
	(void)state;
	if (!scratch_make(folder, sizeof(folder), "opw-memory"))
		return -1;
	for (int i = 0; i < 2; i++) {
		snprintf(runs[i], sizeof(runs[i]), "%.60s/run_%d", folder, i);
		write_run(runs[i], i);
	}
	for (enum variant v = PLAIN; v < VARIANTS; v++) {
		snprintf(saved[v], sizeof(saved[v]), "%.60s/%d.opw", folder, (int)v);
		save(v);
	}
	return 0;
}

static int remove_all(void **state)
{
	(void)state;
	for (enum variant v = PLAIN; v < VARIANTS; v++)
		unlink(saved[v]);
	for (int i = 0; i < 2; i++)
		unlink(runs[i]);
	return rmdir(folder);
}

/* Whatever adds memory up. Takes the profile. */
static struct buf answers(struct mem *mem, ow_profile *p)
{
	static const char *const names[] = { "op", "scope", "devices", "memory_peak" };
	struct ow_error err = { 0 };
	struct buf text;

	buf_init(&text, mem);
	for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
		ow_result *result = NULL;

		if (ow_view(p, names[i], NULL, &result, &err) != OW_OK)
			fail_msg("%s: %s", names[i], err.text);
		assert_int_equal(ow_result_write(result, "json", NULL, to_buf, &text, &err), OW_OK);
		ow_result_free(result);
	}
	assert_int_equal(ow_timeline_write(p, NULL, to_buf, &text, &err), OW_OK);
	ow_profile_free(p);
	assert_false(text.failed);
	return text;
}

/* Alone and with another run beside it, as the originals. */
static void compare(size_t count, const char *second)
{
	struct mem mem;
	struct buf a, b;

	mem_init(&mem, 0);
	a = answers(&mem, open_all((const char *const[]){ runs[0], runs[1] }, count));
	b = answers(&mem, open_all((const char *const[]){ second, runs[1] }, count));
	assert_true(a.len > 1000);
	if (!str_eq(buf_str(&a), buf_str(&b)))
		fail_msg("%s gives other answers", second);
	buf_release(&a);
	buf_release(&b);
}

static void columns_or_not(void **state)
{
	(void)state;
	for (enum variant v = PLAIN; v < TOO_MANY; v++) {
		compare(1, saved[v]);
		compare(2, saved[v]);
	}
}

static void counts_that_do_not_fit(void **state)
{
	const char *path = saved[TOO_MANY];
	struct ow_error err = { 0 };
	ow_result *result = NULL;
	ow_profile *p = NULL;
	ow_status status = ow_profile_open(&path, 1, NULL, &p, &err);

	(void)state;
	if (status == OW_OK)
		status = ow_view(p, "op", NULL, &result, &err);
	assert_int_equal(status, OW_E_CORRUPT);
	ow_profile_free(p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(columns_or_not),
		cmocka_unit_test(counts_that_do_not_fit),
	};

	return cmocka_run_group_tests(tests, save_all, remove_all);
}
