/* xspace_stats.c: stats of XSpace: which of them are used, how their values are read, and ids to rows. */
#include "import/xspace_int.h"

/* In byte order. */
static const struct {
	const char *name;
	enum xstat stat;
} names[] = {
	{ "Hlo Proto", XSTAT_HLO_PROTO },
	{ "MemFree_details", XSTAT_DETAILS },
	{ "MemoryResidency_details", XSTAT_DETAILS },
	{ "Memset_details", XSTAT_DETAILS },
	{ "_c", XSTAT_CONSUMER_ID },
	{ "_ct", XSTAT_CONSUMER_TYPE },
	{ "_p", XSTAT_PRODUCER_ID },
	{ "_pt", XSTAT_PRODUCER_TYPE },
	{ "_r", XSTAT_ROOT },
	{ "addr", XSTAT_ADDRESS },
	{ "allocation_bytes", XSTAT_ALLOCATION_BYTES },
	{ "allocator_name", XSTAT_ALLOCATOR },
	{ "annotation", XSTAT_ANNOTATION },
	{ "bytes_accessed", XSTAT_BYTES_ACCESSED },
	{ "bytes_allocated", XSTAT_BYTES_ALLOCATED },
	{ "bytes_available", XSTAT_BYTES_AVAILABLE },
	{ "bytes_reserved", XSTAT_BYTES_RESERVED },
	{ "correlation_id", XSTAT_CORRELATION_ID },
	{ "data_type", XSTAT_DATA_TYPE },
	{ "device_ordinal", XSTAT_DEVICE_ORDINAL },
	{ "flops", XSTAT_FLOPS },
	{ "fragmentation", XSTAT_FRAGMENTATION },
	{ "group_id", XSTAT_GROUP_ID },
	{ "hlo_category", XSTAT_HLO_CATEGORY },
	{ "hlo_module", XSTAT_HLO_MODULE },
	{ "hlo_op", XSTAT_HLO_OP },
	{ "id", XSTAT_ID },
	{ "index_on_host", XSTAT_INDEX_ON_HOST },
	{ "is_eager", XSTAT_IS_EAGER },
	{ "iter_num", XSTAT_ITER_NUM },
	{ "memalloc_details", XSTAT_DETAILS },
	{ "memcpy_details", XSTAT_DETAILS },
	{ "model_flops", XSTAT_MODEL_FLOPS },
	{ "peak_bytes_in_use", XSTAT_PEAK_BYTES },
	{ "profile_start_time", XSTAT_START_TIME },
	{ "profile_stop_time", XSTAT_STOP_TIME },
	{ "program_id", XSTAT_PROGRAM_ID },
	{ "region_type", XSTAT_REGION_TYPE },
	{ "requested_bytes", XSTAT_REQUESTED_BYTES },
	{ "shape", XSTAT_SHAPE },
	{ "source", XSTAT_SOURCE },
	{ "step_name", XSTAT_STEP_NAME },
	{ "step_num", XSTAT_STEP_NUM },
	{ "symbol_id", XSTAT_SYMBOL_ID },
	{ "tf_op", XSTAT_TF_OP },
};

enum xstat xstat_of(struct str name)
{
	size_t low = 0, high = ARRAY_COUNT(names);

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		int order = str_cmp(name, str_from(names[middle].name));

		if (!order)
			return names[middle].stat;
		if (order < 0)
			high = middle;
		else
			low = middle + 1;
	}
	return XSTAT_OTHER;
}

bool xvalue_read(struct pb message, struct xvalue *value)
{
	struct pb_field f;

	*value = (struct xvalue){ 0 };
	while (pb_next(&message, &f)) {
		switch (f.tag) {
		case PB_TAG(1, PB_VARINT):
			value->stat = f.value;
			continue;
		case PB_TAG(2, PB_FIXED64):
		case PB_TAG(3, PB_VARINT):
		case PB_TAG(4, PB_VARINT):
		case PB_TAG(7, PB_VARINT):
			value->bits = f.value;
			break;
		case PB_TAG(5, PB_BYTES):
		case PB_TAG(6, PB_BYTES):
			value->text = pb_str(&f);
			break;
		default:
			continue;
		}
		value->field = (uint8_t)pb_number(&f);
	}
	return !message.problem;
}

static int64_t int_of_real(double real)
{
	if (!(real >= -9.2e18 && real <= 9.2e18))
		return real > 0 ? INT64_MAX : 0;
	return (int64_t)real;
}

int64_t xvalue_int(const struct xvalue *value)
{
	int64_t number = 0;

	switch (value->field) {
	case 2:
		return int_of_real(pb_double(value->bits));
	case 3:
	case 4:
		return (int64_t)value->bits;
	case 5:
		return str_to_i64(value->text, &number) ? number : 0;
	default:
		return 0;
	}
}

double xvalue_real(const struct xvalue *value)
{
	switch (value->field) {
	case 2:
		return pb_double(value->bits);
	case 3:
		return (double)value->bits;
	case 4:
		return (double)(int64_t)value->bits;
	default:
		return 0;
	}
}

struct str xvalue_text(const struct xplane *plane, const struct xvalue *value)
{
	if (value->field == 7) {
		uint32_t row = xids_find(&plane->stat_ids, value->bits);

		return row ? plane->stats[row].name : STR("");
	}
	return value->field == 5 ? value->text : STR("");
}

enum xstat xvalue_stat(const struct xplane *plane, const struct xvalue *value)
{
	uint32_t row = xids_find(&plane->stat_ids, value->stat);

	return row ? (enum xstat)plane->stats[row].stat : XSTAT_OTHER;
}

/* ---- ids ---- */

#define DENSE_MAX ((uint64_t)1 << 20)

void xids_init(struct xids *ids, struct mem *mem)
{
	*ids = (struct xids){ .mem = mem, .count = 1 };
	map_init(&ids->map, mem);
}

void xids_release(struct xids *ids)
{
	if (!ids->mem)
		return;
	mem_free(ids->mem, ids->dense, ids->dense_cap * sizeof(*ids->dense));
	mem_free(ids->mem, ids->ids, ids->id_cap * sizeof(*ids->ids));
	map_release(&ids->map);
	*ids = (struct xids){ 0 };
}

uint32_t xids_find_far(const struct xids *ids, uint64_t id)
{
	struct map_iter it;

	if (id < DENSE_MAX)
		return 0;
	for (it = map_find(&ids->map, map_hash_u64(id, 1)); it.value; it = map_next(&ids->map, it))
		if (ids->ids[it.value] == id)
			return it.value;
	return 0;
}

static bool place(struct xids *ids, uint64_t id, uint32_t row)
{
	size_t old = ids->dense_cap;
	void *dense = ids->dense;

	if (id >= DENSE_MAX)
		return map_add(&ids->map, map_hash_u64(id, 1), row);
	if (id >= old) {
		if (!mem_grow(ids->mem, &dense, &ids->dense_cap, (size_t)id + 1,
			      sizeof(*ids->dense)))
			return false;
		ids->dense = dense;
		memset(ids->dense + old, 0, (ids->dense_cap - old) * sizeof(*ids->dense));
	}
	ids->dense[id] = row;
	return true;
}

uint32_t xids_add(struct xids *ids, uint64_t id)
{
	uint32_t row = xids_find(ids, id);
	void *list = ids->ids;

	if (row || ids->count == UINT32_MAX)
		return row;
	if (!mem_grow(ids->mem, &list, &ids->id_cap, (size_t)ids->count + 1, sizeof(*ids->ids)))
		return 0;
	ids->ids = list;
	ids->ids[ids->count] = id;
	return place(ids, id, ids->count) ? ids->count++ : 0;
}
