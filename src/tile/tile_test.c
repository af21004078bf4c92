/*
 * tile_test.c: rows never overlap and lose nothing; every tile equals what a plain loop over all items of its row gives;
 * threads share the work; every failing allocation ends in a status.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "support/small_model.h"
#include "tile/tile_int.h"

static uint64_t random_state;

static uint64_t next_random(uint64_t below)
{
	random_state ^= random_state << 13;
	random_state ^= random_state >> 7;
	random_state ^= random_state << 17;
	return below ? random_state % below : random_state;
}

static track_id add_track(struct small_model *s, const char *name, uint8_t flags)
{
	return builder_track(&s->b, &(struct track_row){ .name = builder_cstr(&s->b, name),
							 .kind = TRACK_STREAM,
							 .flags = flags,
							 .source = { 1 } });
}

static void add_event(struct small_model *s, track_id track, int64_t ts, int64_t dur)
{
	str_id id = builder_cstr(&s->b, "op");
	op_id op = builder_find_op(&s->b, id);

	if (!op.v)
		op = builder_new_op(&s->b, &(struct op_row){ .name = id, .type = id });
	builder_add_event(
		&s->b, &(struct event_row){ .ts_ns = ts, .dur_ns = dur, .op = op, .track = track });
}

/* ---- comparison with a plain loop ---- */

struct plain {
	uint64_t busy, best;
	uint32_t count, item, touched;
	double min, max, last;
};

static void plain_bucket(const struct tiles *t, const struct row_store *row, uint32_t level,
			 uint64_t number, struct plain *p)
{
	uint64_t begin = number << level, end = begin + ((uint64_t)1 << level);

	*p = (struct plain){ 0 };
	for (uint32_t i = 0; i < row->info.items; i++) {
		uint64_t a = tile_offset(t, item_start_ns(t, row, i));
		uint64_t b = tile_offset(t, item_end_ns(t, row, i));
		uint64_t covered = a < end && b > begin ? MIN(b, end) - MAX(a, begin) : 0;
		bool begins = a >= begin && a < end;
		uint32_t item = row->items ? row->items[i] : i;

		if (!covered && !begins)
			continue;
		if (!p->touched || covered > p->best) {
			p->best = covered;
			p->item = item;
		}
		if (row_has_values(row)) {
			double value = item_value(t, row, i);

			p->min = p->touched ? MIN(p->min, value) : value;
			p->max = p->touched ? MAX(p->max, value) : value;
			p->last = value;
		}
		p->touched++;
		p->busy += covered;
		p->count += begins;
	}
}

static void check_tile(struct tiles *t, uint32_t number, uint32_t level, uint64_t index)
{
	const struct row_store *row = &t->rows[number];
	struct tile_cell cells[TILE_BUCKETS];
	struct ow_error err;
	uint32_t count, at = 0;

	assert_int_equal(tile_read(t, number, level, index, cells, &count, &err), OW_OK);
	assert_true(count <= TILE_BUCKETS);
	for (uint32_t x = 0; x < TILE_BUCKETS; x++) {
		const struct tile_cell *cell = at < count && cells[at].x <= x ? &cells[at] : NULL;
		double width = (double)((uint64_t)1 << level);
		struct plain p;

		plain_bucket(t, row, level, (index << TILE_BITS) + x, &p);
		if (!p.touched) {
			assert_null(cell);
			continue;
		}
		assert_non_null(cell);
		assert_int_equal(x == cell->x ? cell->count : 0, p.count);
		if (row_has_values(row)) {
			assert_true(cell->min == p.min && cell->max == p.max &&
				    cell->last == p.last);
		} else {
			assert_int_equal(cell->item, p.item);
			assert_true((double)cell->busy / 255 >= (double)p.busy / width - 1.0 / 255);
			assert_true((double)cell->busy / 255 <= (double)p.busy / width + 1.0 / 255);
			assert_int_equal(cell->busy == 255, p.busy == (uint64_t)1 << level);
		}
		if (x + 1u == (unsigned)cell->x + cell->width)
			at++;
	}
	assert_int_equal(at, count);
}

/* All tiles of the upper levels, and a few of the others. */
static void check_row(struct tiles *t, uint32_t number, unsigned samples)
{
	uint32_t top = tiles_top_level(t);

	for (uint32_t level = 0; level <= top + 1; level++) {
		uint64_t last = tile_offset(t, t->end_ns) >> (level + TILE_BITS);

		for (unsigned i = 0; i < samples && i <= last; i++)
			check_tile(t, number, level, last < samples ? i : next_random(last + 1));
	}
}

/* Rows do not overlap, and each event with a time is in one of them. */
static void check_rows(const struct tiles *t)
{
	uint64_t events = 0, placed = 0;

	for (uint32_t e = 1; e < t->m->event.count; e++)
		events += t->m->event.ts_ns[e] != TIME_UNKNOWN;
	for (uint32_t r = 0; r < tiles_row_count(t); r++) {
		const struct row_store *row = &t->rows[r];

		for (uint32_t i = 1; i < row->info.items; i++)
			assert_true(item_end_ns(t, row, i - 1) <= item_start_ns(t, row, i));
		if (row->info.kind != TILE_EVENTS)
			continue;
		placed += row->info.items;
		assert_int_equal(tiles_row_of_event(t, (event_id){ row->items[0] }), r);
		assert_int_equal(tile_item_at(t, r, item_start_ns(t, row, 0) - 1, 1),
				 row->items[0]);
		assert_int_equal(tile_item_at(t, r, INT64_MAX, -1),
				 row->items[row->info.items - 1]);
		assert_int_equal(tile_item_at(t, r, item_start_ns(t, row, 0) - 1, 0), 0);
	}
	assert_int_equal(events, placed);
}

static void make_tiles(struct small_model *s, struct tiles **t)
{
	small_freeze(s);
	assert_int_equal(tiles_new(s->m, &s->mem, t, &s->err), OW_OK);
	check_rows(*t);
}

/* ---- cases ---- */

static void two_kernels_on_one_stream_are_both_there(void **state)
{
	struct small_model s;
	struct tiles *t;
	struct tile_cell cells[TILE_BUCKETS];
	track_id track;
	uint32_t count;

	(void)state;
	small_open(&s);
	small_source(&s, "a", "trace");
	track = add_track(&s, "stream 7", TRACK_SLICES);
	add_event(&s, track, 1000, 100);
	add_event(&s, track, 1050, 100);
	add_event(&s, track, 1100, 10);
	make_tiles(&s, &t);
	assert_int_equal(tiles_row_count(t), 2);
	assert_int_equal(tiles_row(t, 0)->items + tiles_row(t, 1)->items, 3);
	assert_int_equal(tiles_start(t), 1000);
	assert_int_equal(tiles_end(t), 1150);
	assert_int_equal(tiles_top_level(t), 0);
	assert_int_equal(tile_read(t, 0, 0, 0, cells, &count, &s.err), OW_OK);
	assert_int_equal(cells[0].x, 0);
	assert_int_equal(cells[0].width, 100);
	assert_int_equal(cells[0].busy, 255);
	assert_int_equal(tile_read(t, 0, TILE_LEVELS, 0, cells, &count, &s.err), OW_E_USAGE);
	tiles_free(t);
	small_close(&s);
}

static void a_model_without_events_has_no_rows(void **state)
{
	struct small_model s;
	struct tiles *t;

	(void)state;
	small_open(&s);
	make_tiles(&s, &t);
	assert_int_equal(tiles_row_count(t), 0);
	assert_int_equal(tiles_start(t), tiles_end(t));
	tiles_free(t);
	small_close(&s);
}

static void random_rows_equal_a_plain_loop(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 40; seed++) {
		struct small_model s;
		struct tiles *t;
		uint64_t span = (uint64_t)1 << next_random(40), longest;

		random_state = seed * 0x9e3779b97f4a7c15u;
		span = (uint64_t)1 << (8 + next_random(36));
		longest = 1 + next_random(span / 4);
		small_open(&s);
		small_source(&s, "a", "trace");
		for (int k = 0; k < 3; k++) {
			char name[16];
			track_id track;

			snprintf(name, sizeof(name), "t%d", k);
			track = add_track(&s, name, k == 2 ? 0 : TRACK_SLICES);
			for (uint64_t n = next_random(120); n > 0; n--)
				add_event(&s, track, (int64_t)next_random(span) - 1000,
					  next_random(5)   ? (int64_t)next_random(longest)
					  : next_random(2) ? 0
							   : TIME_UNKNOWN);
		}
		make_tiles(&s, &t);
		for (uint32_t r = 0; r < tiles_row_count(t); r++)
			check_row(t, r, 3);
		tiles_free(t);
		small_close(&s);
	}
}

/* More items than a tile is computed from: even, in bursts, and all at one moment. */
static void dense_rows_equal_a_plain_loop(void **state)
{
	(void)state;
	for (int kind = 0; kind < 3; kind++) {
		struct small_model s;
		struct tiles *t;
		track_id track;
		int64_t at = 0;

		random_state = 88172645463325252u + (uint64_t)kind;
		small_open(&s);
		small_source(&s, "a", "trace");
		track = add_track(&s, "t", TRACK_SLICES);
		for (int i = 0; i < 40000; i++) {
			int64_t dur = (int64_t)next_random(900);

			add_event(&s, track, at, kind == 2 ? 0 : dur);
			if (kind == 0)
				at += dur + (int64_t)next_random(200);
			else if (kind == 1)
				at += dur + (int64_t)(i % 20000 ? next_random(3) : 1u << 30);
		}
		make_tiles(&s, &t);
		for (uint32_t r = 0; r < MIN(tiles_row_count(t), 4); r++)
			check_row(t, r, 1);
		assert_true(t->rows[0].kept_count > 0);
		tiles_free(t);
		small_close(&s);
	}
}

static void counters_and_series_have_least_most_and_last(void **state)
{
	struct small_model s;
	struct tiles *t;
	track_id track;
	int64_t ts[3] = { -5, 10, 4000 };
	double values[3] = { 3, -1, 2 };

	(void)state;
	random_state = 7;
	small_open(&s);
	small_source(&s, "a", "trace");
	track = add_track(&s, "t", TRACK_SLICES);
	for (int i = 0; i < 20000; i++)
		builder_add_counter(&s.b, &(struct counter_row){
						  .track = track,
						  .name = builder_cstr(&s.b, "memory"),
						  .series = builder_cstr(&s.b, i % 2 ? "x" : "y"),
						  .ts_ns = (int64_t)next_random(100000),
						  .value = (double)next_random(1000) });
	make_tiles(&s, &t);
	assert_int_equal(tiles_add_series(t, STR("heap"), ts, values, 3, &s.err), OW_OK);
	assert_int_equal(tiles_row_count(t), 3);
	for (uint32_t r = 0; r < 3; r++)
		check_row(t, r, 2);
	tiles_free(t);
	small_close(&s);
}

static void samples_last_until_the_next(void **state)
{
	struct small_model s;
	struct tiles *t;
	track_id track;
	metric_id metric;

	(void)state;
	small_open(&s);
	small_source(&s, "a", "trace");
	track = add_track(&s, "t", 0);
	metric = builder_metric(&s.b, STR("wall"), STR("ns"));
	BUILDER_SET(&s.b, metric, is_default, metric, 1);
	for (int i = 0; i < 10; i++)
		builder_add_sample(&s.b, &(struct sample_row){ .ts_ns = i * 100,
							       .weight = 100,
							       .metric = metric,
							       .track = track });
	make_tiles(&s, &t);
	assert_int_equal(tiles_row_count(t), 1);
	assert_int_equal(tiles_row(t, 0)->items, 10);
	assert_int_equal(tiles_row(t, 0)->busy_ns, 900);
	check_row(t, 0, 3);
	tiles_free(t);
	small_close(&s);
}

static void failing_allocations_end_in_a_status(void **state)
{
	struct small_model s;
	struct tiles *t;
	struct tile_cell cells[TILE_BUCKETS];
	track_id track;
	uint32_t count;
	bool done = false;

	(void)state;
	small_open(&s);
	small_source(&s, "a", "trace");
	track = add_track(&s, "t", TRACK_SLICES);
	for (int i = 0; i < 20000; i++)
		add_event(&s, track, i * 10, 15);
	make_tiles(&s, &t);
	tiles_free(t);
	for (uint64_t n = 1; !done; n++) {
		ow_status status;

		mem_fail_after(n, false);
		status = tiles_new(s.m, &s.mem, &t, &s.err);
		if (status == OW_OK)
			status = tile_read(t, 0, tiles_top_level(t), 0, cells, &count, &s.err);
		done = mem_fail_left() > 0;
		mem_fail_after(0, false);
		/* Growing an array may succeed at its second try. */
		assert_true(status == OW_OK || (!done && status == OW_E_NO_MEMORY));
		tiles_free(t);
	}
	small_close(&s);
}

#define SHARED_ROWS 6u

/* Reads the top tiles of all rows, or builds them in order, while others do. */
static void *read_all(void *arg)
{
	struct tiles *t = arg;
	struct tile_cell cells[TILE_BUCKETS];
	uint64_t events = 0;
	struct ow_error err;
	uint32_t n;

	for (uint32_t r = tiles_row_count(t); r-- > 0;)
		if (tile_prepare(t, r, tiles_top_level(t), 0, &err) != OW_OK)
			return NULL;
	for (uint32_t r = 0; r < tiles_row_count(t); r++) {
		if (tile_read(t, r, tiles_top_level(t), 0, cells, &n, &err) != OW_OK)
			return NULL;
		for (uint32_t i = 0; i < n; i++)
			events += cells[i].count;
	}
	return (void *)(uintptr_t)events;
}

static void *build_all(void *arg)
{
	struct tiles *t = arg;
	struct ow_error err;

	for (uint32_t r = 0; r < tiles_row_count(t); r++)
		if (tiles_build_row(t, r, &err) != OW_OK)
			return NULL;
	return (void *)1;
}

static void threads_share_the_rows(void **state)
{
	enum { EVENTS = 5000 };
	struct small_model s;
	struct tiles *t;
	pthread_t builder, readers[3];
	void *result;

	(void)state;
	small_open(&s);
	small_source(&s, "a", "trace");
	for (uint32_t k = 0; k < SHARED_ROWS; k++) {
		char name[8];
		track_id track;

		snprintf(name, sizeof(name), "t%u", k);
		track = add_track(&s, name, TRACK_SLICES);
		for (int i = 0; i < EVENTS; i++)
			add_event(&s, track, i * 10, 5);
	}
	make_tiles(&s, &t);
	assert_int_equal(tiles_row_count(t), SHARED_ROWS);
	assert_int_equal(pthread_create(&builder, NULL, build_all, t), 0);
	for (size_t i = 0; i < ARRAY_COUNT(readers); i++)
		assert_int_equal(pthread_create(&readers[i], NULL, read_all, t), 0);
	for (size_t i = 0; i < ARRAY_COUNT(readers); i++) {
		pthread_join(readers[i], &result);
		assert_int_equal((uintptr_t)result, SHARED_ROWS * EVENTS);
	}
	pthread_join(builder, &result);
	assert_non_null(result);
	for (uint32_t r = 0; r < SHARED_ROWS; r++)
		assert_true(t->rows[r].built && !t->rows[r].claimed && t->rows[r].kept_count);
	tiles_free(t);
	small_close(&s);
}

/* A mapped file that is cut has zeros where its times were: what is read is wrong, but in bounds. */
static void times_that_vanish_stay_in_bounds(void **state)
{
	(void)state;
	for (int built = 0; built < 2; built++)
		for (uint32_t every = 1; every < 4; every++) {
			struct tile_cell cells[TILE_BUCKETS];
			struct small_model s;
			struct tiles *t;
			track_id track;
			uint32_t n;

			small_open(&s);
			small_source(&s, "a", "trace");
			track = add_track(&s, "t", TRACK_SLICES);
			for (int i = 0; i < 20000; i++)
				add_event(&s, track, 1000 + i * 10, 5);
			make_tiles(&s, &t);
			if (built)
				assert_int_equal(tiles_build_row(t, 0, &s.err), OW_OK);
			for (uint32_t e = 1; e < s.m->event.count; e++)
				if (e % every == 0 || e > 15000)
					s.m->event.ts_ns[e] = s.m->event.dur_ns[e] = 0;
			for (uint32_t level = 0; level <= tiles_top_level(t); level++)
				for (uint64_t index = 0; index < 40; index++) {
					assert_int_equal(
						tile_read(t, 0, level, index, cells, &n, &s.err),
						OW_OK);
					assert_true(n <= TILE_BUCKETS);
				}
			tiles_free(t);
			small_close(&s);
		}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_kernels_on_one_stream_are_both_there),
		cmocka_unit_test(a_model_without_events_has_no_rows),
		cmocka_unit_test(random_rows_equal_a_plain_loop),
		cmocka_unit_test(dense_rows_equal_a_plain_loop),
		cmocka_unit_test(counters_and_series_have_least_most_and_last),
		cmocka_unit_test(samples_last_until_the_next),
		cmocka_unit_test(threads_share_the_rows),
		cmocka_unit_test(times_that_vanish_stay_in_bounds),
		cmocka_unit_test(failing_allocations_end_in_a_status),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
