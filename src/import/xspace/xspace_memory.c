/*
 * xspace_memory.c: converts XSpace events about memory (MemoryAllocation, MemoryDeallocation) to rows of the table
 * heap, and counter values to rows of the table counter. The name of an allocator identifies the device. Ops exist only
 * when all events have been interpreted, so rows of heap keep the names of ops until then. The meaning of counters is
 * not known here.
 */
#include "import/xspace/xspace_int.h"

#include "base/vec.h"

/* The device of an allocator: "GPU_0_bfc" is memory of that device, any other name is host memory. */
static device_id device_of(struct xspace *x, struct str allocator, const struct xplane *plane)
{
	char name[64];
	size_t at, len = 0;
	struct str digits;

	at = str_find(allocator, STR("GPU_"));
	if (at == STR_NONE)
		return builder_device(x->b, plane->name.len ? plane->name : STR("/host:CPU"));
	digits = str_skip(allocator, at + 4);
	while (len < digits.len && len < 9 && digits.ptr[len] >= '0' && digits.ptr[len] <= '9')
		len++;
	snprintf(name, sizeof(name), "/device:GPU:%.*s", len ? (int)len : 1,
		 len ? digits.ptr : "0");
	return builder_device(x->b, str_from(name));
}

/* Names the heap of a TPU, whose allocators have a number instead of a name. */
static void name_ordinal(struct xspace *x, struct heap_row *row, int64_t ordinal)
{
	char name[64];

	snprintf(name, sizeof(name), "/device:TPU:%" PRId64, ordinal);
	row->device = builder_device(x->b, str_from(name));
}

struct memory {
	struct heap_row row;
	struct str allocator;
	int64_t ordinal; /* -1 = none */
	int64_t reserved, allocated, size;
	str_id op;
};

static void take(struct xspace *x, const struct xplane *plane, const struct xvalue *v,
		 struct memory *m)
{
	switch (xvalue_stat(plane, v)) {
	case XSTAT_ALLOCATOR:
		m->allocator = xvalue_text(plane, v);
		break;
	case XSTAT_INDEX_ON_HOST:
	case XSTAT_DEVICE_ORDINAL:
		m->ordinal = xvalue_int(v);
		break;
	case XSTAT_BYTES_RESERVED:
		m->reserved = xvalue_int(v);
		break;
	case XSTAT_BYTES_ALLOCATED:
		m->allocated = xvalue_int(v);
		break;
	case XSTAT_BYTES_AVAILABLE:
		m->row.available = MAX(xvalue_int(v), 0);
		break;
	case XSTAT_PEAK_BYTES:
		m->row.peak = MAX(xvalue_int(v), 0);
		break;
	case XSTAT_REQUESTED_BYTES:
		m->row.requested = MAX(xvalue_int(v), 0);
		break;
	case XSTAT_ALLOCATION_BYTES:
		m->size = MAX(xvalue_int(v), 0);
		break;
	case XSTAT_ADDRESS:
		m->row.address = (uint64_t)xvalue_int(v);
		break;
	case XSTAT_FRAGMENTATION:
		m->row.fragmentation = xvalue_real(v);
		break;
	case XSTAT_DATA_TYPE:
		m->row.dtype = (int32_t)MIN(MAX(xvalue_int(v), 0), INT32_MAX);
		break;
	case XSTAT_TF_OP:
		m->op = xspace_op_of_text(x, xvalue_text(plane, v));
		break;
	default:
		break;
	}
}

static ow_status add_heap(struct xspace *x, const struct memory *m)
{
	if (x->heap_count >= UINT32_MAX - 1 ||
	    !vec_push(x->mem, x->heaps, x->heap_count, x->heap_cap,
		      (struct xheap){ m->row, m->op, 0 }))
		return xspace_no_memory(x);
	return builder_status(x->b);
}

ow_status xspace_take_memory(struct xspace *x, const struct xplane *plane, struct pb message,
			     int64_t ts_ns, bool release)
{
	struct memory m = { .ordinal = -1, .allocator = STR("") };
	struct xvalue value;
	struct pb_field f;

	while (pb_next(&message, &f))
		if (f.tag == PB_TAG(4, PB_BYTES) && xvalue_read(pb_message(&f), &value))
			take(x, plane, &value, &m);
	m.row.ts_ns = ts_ns;
	m.row.kind = release ? HEAP_FREE : HEAP_ALLOC;
	m.row.source = x->b->source;
	m.row.size = release ? -m.size : m.size;
	m.row.allocated = MAX(wrap_add(m.reserved, m.allocated), 0);
	m.row.allocator = xspace_text(x, m.allocator);
	if (!(m.row.fragmentation >= 0 && m.row.fragmentation <= 1))
		m.row.fragmentation = 0;
	if (!m.allocator.len && m.ordinal >= 0)
		name_ordinal(x, &m.row, m.ordinal);
	else
		m.row.device = device_of(x, m.allocator, plane);
	return add_heap(x, &m);
}

static int by_time(const void *a, const void *b)
{
	const struct xheap *x = a, *y = b;

	return (x->row.ts_ns > y->row.ts_ns) - (x->row.ts_ns < y->row.ts_ns);
}

/* The first row with the same address, or the row itself; UINT32_MAX if memory runs out. */
static uint32_t first_of_place(struct xspace *x, struct map *places, uint32_t at)
{
	const struct heap_row *row = &x->heaps[at].row;
	uint64_t hash =
		map_hash_u64(row->address, (uint64_t)row->allocator.v << 32 | row->device.v);

	for (struct map_iter it = map_find(places, hash); it.value; it = map_next(places, it)) {
		const struct heap_row *other = &x->heaps[it.value - 1].row;

		if (other->address == row->address && other->device.v == row->device.v &&
		    other->allocator.v == row->allocator.v)
			return it.value - 1;
	}
	return map_add(places, hash, at + 1) ? at : UINT32_MAX;
}

/* Copies the op, and on TPUs the size, of an allocation to the release at its address. */
static void match_releases(struct xspace *x, struct map *places)
{
	for (uint32_t i = 0; i < x->heap_count; i++) {
		struct xheap *heap = &x->heaps[i];
		uint32_t first = first_of_place(x, places, i);
		const struct xheap *last;

		if (first == UINT32_MAX) {
			xspace_no_memory(x);
			return;
		}
		last = x->heaps[first].latest ? &x->heaps[x->heaps[first].latest - 1] : NULL;
		if (heap->row.kind == HEAP_ALLOC) {
			x->heaps[first].latest = i + 1;
		} else if (last) {
			heap->row.size = heap->row.size ? heap->row.size : -last->row.size;
			heap->row.dtype = heap->row.dtype ? heap->row.dtype : last->row.dtype;
			heap->op = heap->op.v ? heap->op : last->op;
		}
	}
}

ow_status xspace_add_memory(struct xspace *x)
{
	struct map places;

	if (!x->heap_count)
		return OW_OK;
	qsort(x->heaps, x->heap_count, sizeof(*x->heaps), by_time);
	map_init(&places, x->mem);
	match_releases(x, &places);
	map_release(&places);
	for (size_t i = 0; i < x->heap_count && builder_status(x->b) == OW_OK; i++) {
		struct heap_row *row = &x->heaps[i].row;

		row->op = builder_find_op(x->b, x->heaps[i].op);
		builder_add_heap(x->b, row);
	}
	return builder_status(x->b);
}

bool xspace_has_counters(const struct xplane *plane, const struct xline *line)
{
	return str_eq(line->name, STR("_counters_")) || str_starts(plane->name, STR("#Chip"));
}

/* Whether a number identifies a counter and is not its value. */
static bool is_identity(struct str stat)
{
	return !stat.len || stat.ptr[0] == '_' || str_ends(stat, STR("_id"));
}

ow_status xspace_take_counter(struct xspace *x, const struct xplane *plane, str_id name,
			      struct pb message, track_id track, int64_t ts_ns)
{
	struct xvalue value;
	struct pb_field f;

	while (pb_next(&message, &f)) {
		struct str stat;
		uint32_t row;

		if (f.tag != PB_TAG(4, PB_BYTES) || !xvalue_read(pb_message(&f), &value) ||
		    value.field < 2 || value.field > 4)
			continue;
		row = xids_find(&plane->stat_ids, value.stat);
		stat = row ? plane->stats[row].name : STR("");
		if (is_identity(stat))
			continue;
		builder_add_counter(x->b, &(struct counter_row){ .track = track,
								 .name = name,
								 .series = xspace_text(x, stat),
								 .ts_ns = ts_ns,
								 .value = xvalue_real(&value) });
	}
	return builder_status(x->b);
}
