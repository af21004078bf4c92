/*
 * Room that is made for rows to come: files that begin dense and go on with one large record must not be refused for what
 * was asked for too much, and every allocation on the way may fail.
 */
#include "support/tf_files.h"

#define SAMPLE ((size_t)1100 << 10) /* more than TF_SAMPLE_BYTES */

static void put_filler(struct buf *out, uint32_t field, size_t size)
{
	size_t at = pb_begin(out, field);

	for (size_t i = 0; i < size; i += 16)
		buf_add(out, "0123456789abcdef", 16);
	pb_end(out, at);
}

static void put_name(struct buf *out, uint32_t number)
{
	char name[32];

	snprintf(name, sizeof(name), "scope/node_%u", number);
	pb_put_str(out, 1, str_from(name));
}

/* NodeDef: name, op, input, and an attribute of `filler` bytes that nobody reads. */
static void put_node(struct buf *out, uint32_t number, size_t filler)
{
	size_t node = pb_begin(out, 1), attr;

	put_name(out, number);
	pb_put_str(out, 2, STR("Relu"));
	pb_put_str(out, 3, STR("scope/node_0"));
	if (filler) {
		attr = pb_begin(out, 5);
		pb_put_str(out, 1, STR("value"));
		put_filler(out, 2, filler);
		pb_end(out, attr);
	}
	pb_end(out, node);
}

/* NodeExecStats: name, start, end, and a label. */
static void put_record(struct buf *out, uint32_t number, size_t filler)
{
	size_t record = pb_begin(out, 2);

	put_name(out, number);
	pb_put_varint(out, 2, 1000 + number);
	pb_put_varint(out, 4, 5);
	if (filler)
		put_filler(out, 8, filler);
	pb_end(out, record);
}

static void put_device(struct buf *out, const char *name, uint32_t count, size_t filler)
{
	size_t device = pb_begin(out, 1);

	pb_put_str(out, 1, str_from(name));
	for (uint32_t i = 0; i < count; i++)
		put_record(out, i, i + 1 == count ? filler : 0);
	pb_end(out, device);
}

/* An entry of the map of nodes. */
static void put_profile_node(struct buf *out, uint32_t number, size_t filler)
{
	size_t entry = pb_begin(out, 1), node;

	pb_put_varint(out, 1, number);
	node = pb_begin(out, 2);
	put_name(out, number);
	pb_put_str(out, 9, STR("Relu"));
	if (filler)
		put_filler(out, 100, filler);
	pb_end(out, node);
	pb_end(out, entry);
}

/* ---- dense, then not ---- */

#define REST ((size_t)48 << 20)
#define LIMIT ((size_t)64 << 20)

static void check_limit(const char *importer, struct buf *file)
{
	struct str bytes = buf_str(file);

	assert_false(file->failed);
	assert_int_equal(import_memory(importer, bytes.ptr, bytes.len, LIMIT), OW_OK);
	buf_release(file);
}

static void large_constant_at_the_end(void **state)
{
	struct mem mem;
	struct buf file;

	(void)state;
	mem_init(&mem, 0);
	buf_init(&file, &mem);
	for (uint32_t i = 0; file.len < SAMPLE; i++)
		put_node(&file, i, 0);
	pb_put_varint(&file, 3, 1); /* ends the list of nodes */
	put_node(&file, 1000000, REST);
	check_limit("graphdef", &file);
}

/* Partition graphs behind the times: no rows come of them. */
static void graphs_behind_the_times(void **state)
{
	struct mem mem;
	struct buf file;
	size_t stats;

	(void)state;
	mem_init(&mem, 0);
	buf_init(&file, &mem);
	stats = pb_begin(&file, 1);
	put_device(&file, "/device:CPU:0", (uint32_t)(SAMPLE / 20), 0);
	put_device(&file, "/device:CPU:1", 10, 0);
	pb_end(&file, stats);
	put_filler(&file, 3, REST);
	check_limit("runmeta", &file);
}

static void large_node_at_the_end(void **state)
{
	struct mem mem;
	struct buf file;

	(void)state;
	mem_init(&mem, 0);
	buf_init(&file, &mem);
	for (uint32_t i = 0; file.len < SAMPLE; i++)
		put_profile_node(&file, i, 0);
	pb_put_varint(&file, 2, 1); /* ends the list of nodes */
	put_profile_node(&file, 1000000, REST);
	check_limit("profile", &file);
}

/* ---- failures ---- */

#define FEW 40

static void failures_when_room_is_made(void **state)
{
	struct mem mem;
	struct buf file;
	size_t stats;

	(void)state;
	mem_init(&mem, 0);
	buf_init(&file, &mem);
	for (uint32_t i = 0; i < FEW; i++) {
		put_node(&file, i, i % (FEW / 4) ? 0 : SAMPLE / 2);
		pb_put_varint(&file, 3, 1);
	}
	tf_every_failure_within("graphdef", buf_str(&file), 0);
	buf_clear(&file);
	stats = pb_begin(&file, 1);
	for (uint32_t i = 0; i < 3; i++)
		put_device(&file, "/device:CPU:0", FEW, SAMPLE);
	pb_end(&file, stats);
	tf_every_failure_within("runmeta", buf_str(&file), 0);
	buf_clear(&file);
	for (uint32_t i = 0; i < FEW; i++) {
		put_profile_node(&file, i, i % (FEW / 4) ? 0 : SAMPLE / 2);
		pb_put_varint(&file, 2, 1);
	}
	tf_every_failure_within("profile", buf_str(&file), 0);
	buf_release(&file);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(large_constant_at_the_end),
		cmocka_unit_test(graphs_behind_the_times),
		cmocka_unit_test(large_node_at_the_end),
		cmocka_unit_test(failures_when_room_is_made),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
