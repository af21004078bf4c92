/*
 * xspace_hlo_test.c: what instructions cost, from programs written for the purpose.
 */
#include "import/xspace/xspace_int.h"
#include "wire/protobuf/pb_write.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define F32 11
#define BF16 16

struct writing {
	struct mem mem;
	struct buf proto, module, computation;
	struct hlo_instruction found[16];
	size_t count;
};

static void open_program(struct writing *w)
{
	*w = (struct writing){ 0 };
	mem_init(&w->mem, 0);
	buf_init(&w->proto, &w->mem);
	buf_init(&w->module, &w->mem);
	buf_init(&w->computation, &w->mem);
	pb_put_str(&w->module, 1, STR("jit_f"));
}

static void end_computation(struct writing *w, uint64_t id)
{
	pb_put_varint(&w->computation, 5, id);
	pb_put_str(&w->module, 3, buf_str(&w->computation));
	buf_clear(&w->computation);
}

static void put_packed(struct buf *to, uint32_t field, const uint64_t *values, size_t count)
{
	size_t list = pb_begin(to, field);

	for (size_t i = 0; i < count; i++)
		pb_add_varint(to, values[i]);
	pb_end(to, list);
}

/* Begins an instruction; returns what pb_end wants. Its operands are given as ids. */
static size_t begin(struct writing *w, const char *name, const char *opcode, uint64_t id,
		    uint64_t type, const uint64_t *dims, size_t rank)
{
	struct buf *to = &w->computation;
	size_t at = pb_begin(to, 2), shape;

	pb_put_str(to, 1, str_from(name));
	pb_put_str(to, 2, str_from(opcode));
	shape = pb_begin(to, 3);
	pb_put_varint(to, 2, type);
	put_packed(to, 3, dims, rank);
	pb_end(to, shape);
	pb_put_varint(to, 35, id);
	return at;
}

#define DIMS(...)                                                                                  \
	(const uint64_t[]){ __VA_ARGS__ },                                                         \
		sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t)

static void plain(struct writing *w, const char *name, const char *opcode, uint64_t id,
		  uint64_t type, const uint64_t *dims, size_t rank)
{
	pb_end(&w->computation, begin(w, name, opcode, id, type, dims, rank));
}

static ow_status take(void *arg, const struct hlo_instruction *i)
{
	struct writing *w = arg;

	assert_true(w->count < 16);
	w->found[w->count++] = *i;
	return OW_OK;
}

static void read_all(struct writing *w, bool damaged)
{
	struct arena scratch;
	bool got;

	pb_put_str(&w->proto, 1, buf_str(&w->module));
	arena_init(&scratch, &w->mem);
	assert_int_equal(hlo_read(buf_str(&w->proto), &scratch, take, w, &got), OW_OK);
	assert_int_equal(got, damaged);
	arena_release(&scratch);
}

static void close_program(struct writing *w)
{
	buf_release(&w->proto);
	buf_release(&w->module);
	buf_release(&w->computation);
	assert_int_equal(atomic_load(&w->mem.used), 0);
}

static const struct hlo_instruction *find(const struct writing *w, const char *name)
{
	for (size_t i = 0; i < w->count; i++)
		if (str_eq(w->found[i].name, str_from(name)))
			return &w->found[i];
	fail_msg("no %s", name);
	return NULL;
}

static void products_and_fusions(void **state)
{
	struct writing w;
	struct buf *to = &w.computation;
	size_t at, part;

	(void)state;
	open_program(&w);
	plain(&w, "a", "parameter", 1, F32, DIMS(4, 8));
	plain(&w, "b", "parameter", 2, F32, DIMS(8, 16));
	at = begin(&w, "dot.1", "dot", 3, F32, DIMS(4, 16));
	part = pb_begin(to, 30);
	put_packed(to, 1, DIMS(1));
	pb_end(to, part);
	put_packed(to, 36, DIMS(1, 2));
	pb_end(to, at);
	at = begin(&w, "add.1", "add", 4, F32, DIMS(4, 16));
	put_packed(to, 36, DIMS(3, 3));
	pb_end(to, at);
	end_computation(&w, 10);
	plain(&w, "p", "parameter", 5, F32, DIMS(4, 8));
	plain(&w, "q", "parameter", 6, F32, DIMS(8, 16));
	at = begin(&w, "fusion.1", "fusion", 7, F32, DIMS(4, 16));
	pb_put_str(to, 11, STR("kCustom"));
	put_packed(to, 36, DIMS(5, 6));
	put_packed(to, 38, DIMS(10));
	pb_end(to, at);
	plain(&w, "copy.1", "copy", 8, F32, DIMS(4, 16));
	end_computation(&w, 11);
	read_all(&w, false);
	assert_int_equal(find(&w, "dot.1")->flops, 2 * 4 * 16 * 8);
	assert_int_equal(find(&w, "add.1")->flops, 64);
	assert_int_equal(find(&w, "fusion.1")->flops, 2 * 4 * 16 * 8 + 64);
	assert_int_equal(find(&w, "fusion.1")->accessed, 4 * (4 * 8 + 8 * 16 + 4 * 16));
	assert_true(str_eq(find(&w, "fusion.1")->category, STR("convolution fusion")));
	assert_int_equal(find(&w, "copy.1")->flops, 0);
	close_program(&w);
}

static void calls_of_libraries(void **state)
{
	struct writing w;
	struct buf *to = &w.computation;
	size_t at, part;

	(void)state;
	open_program(&w);
	plain(&w, "a", "parameter", 1, BF16, DIMS(32, 64));
	plain(&w, "b", "parameter", 2, BF16, DIMS(64, 8));
	at = begin(&w, "gemm.1", "custom-call", 3, BF16, DIMS(32, 8));
	pb_put_str(to, 28, STR("__cublas$gemm"));
	pb_put_str(to, 43, STR("{\"x\":1,\"lhs_contracting_dimensions\":[\"1\"],\"y\":[]}"));
	put_packed(to, 36, DIMS(1, 2));
	pb_end(to, at);
	plain(&w, "image", "parameter", 4, F32, DIMS(1, 3, 9, 9));
	plain(&w, "kernel", "parameter", 5, F32, DIMS(16, 3, 3, 3));
	at = begin(&w, "conv.1", "convolution", 6, F32, DIMS(1, 16, 7, 7));
	part = pb_begin(to, 16);
	pb_put_varint(to, 3, 1);
	pb_end(to, part);
	put_packed(to, 36, DIMS(4, 5));
	pb_end(to, at);
	at = begin(&w, "reduce.1", "reduce", 7, F32, DIMS(16));
	put_packed(to, 36, DIMS(6));
	pb_end(to, at);
	end_computation(&w, 10);
	read_all(&w, false);
	assert_int_equal(find(&w, "gemm.1")->flops, 2 * 32 * 8 * 64);
	assert_int_equal(find(&w, "gemm.1")->accessed, 2 * (32 * 64 + 64 * 8 + 32 * 8));
	assert_int_equal(find(&w, "conv.1")->flops, 2 * 16 * 7 * 7 * 3 * 3 * 3);
	assert_int_equal(find(&w, "reduce.1")->flops, 16 * 7 * 7);
	close_program(&w);
}

static void hostile_numbers(void **state)
{
	struct writing w;
	struct buf *to = &w.computation;
	size_t at;

	(void)state;
	open_program(&w);
	plain(&w, "a", "parameter", 1, F32, DIMS(UINT64_MAX, 1ull << 62, 1ull << 62));
	at = begin(&w, "dot.1", "dot", 1, F32, DIMS(1ull << 62, 1ull << 62));
	put_packed(to, 36, DIMS(1, 99, UINT64_MAX));
	put_packed(to, 38, DIMS(10, 99));
	pb_end(to, at);
	pb_put_str(to, 2, STR("\x0a\x7f"));
	end_computation(&w, 10);
	read_all(&w, true);
	assert_true(find(&w, "dot.1")->flops >= 0);
	close_program(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(products_and_fusions),
		cmocka_unit_test(calls_of_libraries),
		cmocka_unit_test(hostile_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
