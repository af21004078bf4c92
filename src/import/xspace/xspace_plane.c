/*
 * xspace_plane.c: finds the planes of an XSpace, and reads all of a plane except its events: name, dictionaries of
 * events and stats, its own stats, the headers of its lines. An entry of the dictionary of events is resolved once: its
 * op and type, its own name, whether it is a Python frame or memory. xspace_line.c reads events.
 */
#include "import/xspace/xspace_int.h"

#include "base/vec.h"

/* Names of stats, in byte order. */
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

static enum xstat xstat_of(struct str name)
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

#define DENSE_MAX ((uint64_t)1 << 20)

static void xids_init(struct xids *ids, struct mem *mem)
{
	*ids = (struct xids){ .mem = mem, .count = 1 };
	map_init(&ids->map, mem);
}

static void xids_release(struct xids *ids)
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

	if (id >= DENSE_MAX)
		return map_add(&ids->map, map_hash_u64(id, 1), row);
	if (id >= old) {
		if (!vec_reserve(ids->mem, ids->dense, ids->dense_cap, (size_t)id + 1))
			return false;
		memset(ids->dense + old, 0, (ids->dense_cap - old) * sizeof(*ids->dense));
	}
	ids->dense[id] = row;
	return true;
}

/* The row of an id, added if necessary; 0 if memory runs out. */
static uint32_t xids_add(struct xids *ids, uint64_t id)
{
	uint32_t row = xids_find(ids, id);

	if (row || ids->count == UINT32_MAX)
		return row;
	if (!vec_reserve(ids->mem, ids->ids, ids->id_cap, (size_t)ids->count + 1))
		return 0;
	ids->ids[ids->count] = id;
	return place(ids, id, ids->count) ? ids->count++ : 0;
}

/* Names of events that are internal to the runtime. */
static const char *const internal_names[] = {
	"ThreadpoolListener::StartRegion",
	"ThreadpoolListener::StopRegion",
	"ThreadpoolListener::Record",
	"PrefetchProduce",
	"PrefetchConsume",
	"ParallelInterleaveProduce",
	"ParallelInterleaveConsume",
	"ParallelInterleaveInitializedInput",
	"ParallelMapProduce",
	"ParallelMapConsume",
	"MapAndBatchProduce",
	"MapAndBatchConsume",
	"ParseExampleProduce",
	"ParseExampleConsume",
};

struct xop *xspace_op(struct xspace *x, str_id name)
{
	if (OW_UNLIKELY(name.v >= x->op_cap)) {
		if (!vec_reserve_zero(x->mem, x->ops, x->op_cap,
				      MAX((size_t)name.v + 1, (size_t)x->b->m->strings.count))) {
			xspace_no_memory(x);
			return NULL;
		}
	}
	return &x->ops[name.v];
}

/* Names of roots, iterations, and ops of runtimes that have no iterations. */
static const char *const root_names[] = { "TraceContext",	"ProcessBatch",
					  "BatchingSessionRun", "ExecutorState::Process",
					  "WhileOp-EvalCond",	"ForOp",
					  "WhileOp-StartBody",	"ParallelForOp",
					  "ForeverOp" };

bool xspace_is_captured(struct str name)
{
	return str_starts(name, STR("InstantiatedCapturedFunction::Run"));
}

uint8_t xspace_kind_of(struct str text, bool *release)
{
	struct str name = tf_op_name_strip(text);

	*release = false;
	if (name.len > 1 && name.ptr[0] == '$')
		return XEVENT_FRAME;
	*release = str_eq(name, STR("MemoryDeallocation"));
	if (*release || str_eq(name, STR("MemoryAllocation")))
		return XEVENT_MEMORY;
	for (size_t i = 0; i < ARRAY_COUNT(internal_names); i++)
		if (str_eq(name, str_from(internal_names[i])))
			return XEVENT_INTERNAL;
	for (size_t i = 0; i < ARRAY_COUNT(root_names); i++)
		if (str_eq(name, str_from(root_names[i])))
			return XEVENT_ROOT;
	return xspace_is_captured(name) ? XEVENT_ROOT : XEVENT_PLAIN;
}

/* The op of a text "scope/node:Type"; its properties are stored under its name. */
static str_id op_of(struct xspace *x, const struct tf_op_name *op, bool framework)
{
	str_id name, type;
	struct xop *known;

	if (op->kind == TF_OP_DATA) {
		name = iterator_path(x->b, op->name);
		type = iterator_stage(x->b, op->name);
	} else {
		name = xspace_text(x, op->name);
		type = xspace_text(x, op->type);
	}
	known = xspace_op(x, name);
	if (!known || !name.v)
		return (str_id){ 0 };
	if (!known->type)
		known->type = type.v;
	if (framework)
		known->flags |= OP_FRAMEWORK;
	return name;
}

str_id xspace_op_of_text(struct xspace *x, struct str text)
{
	struct tf_op_name op;
	size_t nested;

	/* for nested annotations, the innermost counts */
	while ((nested = str_find(text, STR("::"))) != STR_NONE &&
	       !str_starts(text, STR("Iterator::")))
		text = str_skip(text, nested + 2);
	text = tf_op_name_strip(text);
	if (str_starts(text, STR("XlaModule:")) || str_eq(text, STR("(null)")))
		return (str_id){ 0 };
	op = tf_op_name_parse(text, true);
	if (op.kind == TF_OP_NONE)
		return (str_id){ 0 };
	return op_of(x, &op, true);
}

struct entry_stats {
	uint64_t program;
	bool has_program;
	struct str category, source, tf_op;
	int64_t flops, accessed;
};

static void read_entry_stats(const struct xplane *plane, struct str stats, struct entry_stats *of)
{
	struct pb r = pb_over(stats.ptr, stats.len);
	struct xvalue value;
	int64_t model_flops = 0;
	struct pb_field f;

	while (pb_next(&r, &f)) {
		if (!xvalue_read(pb_message(&f), &value))
			continue;
		switch (xvalue_stat(plane, &value)) {
		case XSTAT_PROGRAM_ID:
			of->program = (uint64_t)xvalue_int(&value);
			of->has_program = true;
			break;
		case XSTAT_HLO_CATEGORY:
			of->category = xvalue_text(plane, &value);
			break;
		case XSTAT_SOURCE:
			of->source = xvalue_text(plane, &value);
			break;
		case XSTAT_TF_OP:
			of->tf_op = xvalue_text(plane, &value);
			break;
		case XSTAT_FLOPS:
			of->flops = xvalue_int(&value);
			break;
		case XSTAT_MODEL_FLOPS:
			model_flops = xvalue_int(&value);
			break;
		case XSTAT_BYTES_ACCESSED:
			of->accessed = xvalue_int(&value);
			break;
		default:
			break;
		}
	}
	if (model_flops > 0)
		of->flops = model_flops;
}

/* Splits "path/file.py:38". */
static void split_source(struct str source, struct hlo_op *op)
{
	size_t colon = str_rfind_char(source, ':');
	int64_t line;

	if (colon == STR_NONE || !str_to_i64(str_skip(source, colon + 1), &line) || line < 0 ||
	    line > INT32_MAX)
		return;
	op->file = str_first(source, colon);
	op->line = (int32_t)line;
}

#define HOST_MEMORY STR("S(5)") /* text of the host's memory space in a layout */

/* The flags of an instruction that moves data between memories: only the shapes show which memories. In %copy-done.1
 * = f32[8]{0:S(5)} copy-done((f32[8]{0:S(5)}, f32[8]{0}, u32[]) %copy-start.1) the first shape is the destination. */
static uint32_t host_transfer(struct str label, struct str text)
{
	size_t at = str_find(text, STR(" = ")), end;
	struct str to;

	if (at == STR_NONE)
		return 0;
	if (str_has(text, STR("is_host_transfer=true")))
		return str_starts(label, STR("send")) ? OP_TO_HOST : OP_FROM_HOST;
	if (!str_starts(label, STR("copy")) && !str_has(label, STR("-start")) &&
	    !str_has(label, STR("-done")))
		return 0;
	to = str_skip(text, at + 3);
	end = str_find_char(to, '}');
	if (end == STR_NONE || !str_has(to, HOST_MEMORY))
		return 0;
	return str_has(str_first(to, end), HOST_MEMORY) ? OP_TO_HOST : OP_FROM_HOST;
}

static ow_status resolve_hlo(struct xspace *x, const struct entry_stats *of,
			     const struct xevent_text *text, struct xevent_entry *entry)
{
	struct str label = text->display.len ? text->display : text->name;
	struct hlo_op op = { .program = of->program,
			     .name = label,
			     .scope = tf_op_name_strip(of->tf_op),
			     .category = of->category,
			     .flops = MAX(of->flops, 0),
			     .accessed = MAX(of->accessed, 0) };
	uint32_t row = xspace_hlo_find(x, of->program, label);
	struct xop *known;

	if (!row) {
		if (op.scope.len && op.scope.ptr[op.scope.len - 1] == ':')
			op.scope.len--;
		split_source(of->source, &op);
		OW_TRY(xspace_hlo_add(x, &op, &row));
	}

	entry->op = xspace_hlo_op(x, row);
	known = entry->op.v ? xspace_op(x, entry->op) : NULL;
	if (known)
		known->flags |= host_transfer(label, text->name);
	entry->label = xspace_text(x, label);
	if (entry->op.v == entry->label.v)
		entry->label.v = 0;
	return builder_status(x->b);
}

ow_status xspace_resolve(struct xspace *x, struct xplane *plane, uint32_t row)
{
	struct xevent_entry *entry = &plane->events[row];
	const struct xevent_text *text = &plane->texts[row];
	struct str name = tf_op_name_strip(text->name);
	struct str label = text->display.len ? text->display : name;
	struct entry_stats of = { 0 };
	struct tf_op_name op;

	entry->resolved = true;
	entry->kind = xspace_kind_of(text->name, &entry->release);
	if (plane->kind == XPLANE_TPU || plane->kind == XPLANE_DEVICE) {
		read_entry_stats(plane, text->stats, &of);
		if (of.has_program && of.category.len)
			return resolve_hlo(x, &of, text, entry);
	}
	op = tf_op_name_parse(name, true);
	if (plane->kind == XPLANE_HOST &&
	    (entry->kind == XEVENT_PLAIN || entry->kind == XEVENT_ROOT) && op.kind != TF_OP_NONE)
		entry->op = op_of(x, &op, x->hyphen || tf_op_name_parse(name, false).kind);
	if (!entry->op.v) {
		entry->op = xspace_text(x, label.len ? label : STR("[no name]"));
		return builder_status(x->b);
	}
	entry->label = xspace_text(x, label);
	if (entry->label.v == entry->op.v)
		entry->label.v = 0;
	return builder_status(x->b);
}

/* limit for the stats of an entry; HLO programs are read elsewhere */
#define ENTRY_STATS_MAX ((size_t)64 << 10)
#define HEAD_BYTES ((size_t)4 << 10) /* limit for the fields before a long one */

static enum xplane_kind kind_of(struct str name)
{
	if (str_eq(name, STR("/host:metadata")))
		return XPLANE_METADATA;
	if (str_starts(name, STR("/device:GPU:")))
		return XPLANE_GPU;
	if (str_starts(name, STR("/device:TPU:")))
		return XPLANE_TPU;
	if (str_starts(name, STR("/device:")) || str_starts(name, STR("/virtualdevice:")))
		return XPLANE_DEVICE;
	return str_starts(name, STR("/host:")) ? XPLANE_HOST : XPLANE_OTHER;
}

static ow_status add_plane(struct xspace *x, const struct pb_stream_field *f)
{
	if (!vec_reserve(x->mem, x->planes, x->plane_cap, x->plane_count + 1))
		return xspace_no_memory(x);
	x->planes[x->plane_count] = (struct xplane){ .offset = f->offset,
						     .size = f->size,
						     .kind = XPLANE_OTHER,
						     .number = (int64_t)x->plane_count + 1,
						     .min_start_ps = INT64_MAX,
						     .max_end_ps = INT64_MIN };
	x->plane_count++;
	return OW_OK;
}

static ow_status add_hostname(struct xspace *x, struct pb_stream *s,
			      const struct pb_stream_field *f)
{
	const uint8_t *bytes = f->size <= 4096 ? pb_stream_bytes(s, f) : NULL;

	if (!bytes)
		return OW_OK;
	if (!vec_push(x->mem, x->hostnames, x->hostname_count, x->hostname_cap,
		      xspace_text(x, str_make(bytes, f->size))))
		return xspace_no_memory(x);
	return builder_status(x->b);
}

/* Reports the end of the readable data; data before it is used. */
static void note_problem(struct xspace *x, const struct pb_stream *s)
{
	if (s->status == OW_OK || x->truncated)
		return;
	x->truncated = true;
	x->truncated_at = s->at;
}

/* Adds the errors and warnings of the profiler itself as notes. */
static void note_message(struct xspace *x, struct pb_stream *s, const struct pb_stream_field *f)
{
	const uint8_t *bytes = f->size <= 64 << 10 ? pb_stream_bytes(s, f) : NULL;

	if (bytes)
		builder_note(x->b, NOTE_INFO, f->start, "the profiler says: %.*s",
			     STR_ARG(model_str(
				     x->b->m,
				     xspace_text(x, str_first(str_make(bytes, f->size), 500)))));
}

/* Reads the plane's name, which comes before its lines. */
static ow_status read_plane_head(struct xspace *x, struct xplane *plane)
{
	struct str head = window_peek(&x->window, plane->offset,
				      (size_t)MIN(plane->size, (uint64_t)HEAD_BYTES));
	struct pb_field f;
	struct pb r;

	if (!head.ptr)
		return plane->size ? x->window.status : OW_OK;
	r = pb_over(head.ptr, (size_t)MIN(plane->size, (uint64_t)head.len));
	while (pb_next(&r, &f)) {
		if (f.tag == PB_TAG(2, PB_BYTES)) {
			plane->name = arena_str(&x->arena, pb_str(&f));
			plane->kind = kind_of(plane->name);
			return plane->name.ptr ? OW_OK : xspace_no_memory(x);
		}
		if (f.tag == PB_TAG(3, PB_BYTES))
			break;
	}
	return OW_OK;
}

ow_status xspace_find_planes(struct xspace *x)
{
	struct pb_stream s;
	struct pb_stream_field f;

	pb_stream_init(&s, &x->window, 0, x->ctx->in->size);
	while (pb_stream_next(&s, &f)) {
		uint32_t number = f.tag >> 3;

		if (f.tag == PB_TAG(1, PB_BYTES)) {
			OW_TRY(add_plane(x, &f));
			if (f.cut) {
				x->truncated = true;
				x->truncated_at = x->ctx->in->size;
			}
			continue;
		}
		x->others[number < ARRAY_COUNT(x->others) ? number : 0]++;
		if (f.tag == PB_TAG(2, PB_BYTES) || f.tag == PB_TAG(3, PB_BYTES))
			note_message(x, &s, &f);
		if (f.tag == PB_TAG(4, PB_BYTES))
			OW_TRY(add_hostname(x, &s, &f));
		OW_TRY(builder_status(x->b));
	}
	if (s.status != OW_OK && s.status != OW_E_CORRUPT)
		return s.status;
	note_problem(x, &s);
	for (size_t i = 0; i < x->plane_count; i++)
		OW_TRY(read_plane_head(x, &x->planes[i]));
	return OW_OK;
}

/* Reads the fields of a line before its events. A display name comes after them. */
static ow_status read_line_head(struct xspace *x, struct xline *line)
{
	struct str head = window_peek(&x->window, line->offset,
				      (size_t)MIN(line->size, (uint64_t)HEAD_BYTES));
	struct pb_field f;
	struct pb r;

	if (!head.ptr)
		return line->size ? x->window.status : OW_OK;
	r = pb_over(head.ptr, (size_t)MIN(line->size, (uint64_t)head.len));
	while (pb_next(&r, &f)) {
		if (f.tag == PB_TAG(4, PB_BYTES))
			break;
		if (f.tag == PB_TAG(1, PB_VARINT))
			line->id = (int64_t)f.value;
		else if (f.tag == PB_TAG(3, PB_VARINT))
			line->timestamp_ns = (int64_t)f.value;
		else if (f.tag == PB_TAG(2, PB_BYTES))
			line->name = arena_str(&x->shelf, pb_str(&f));
	}
	return line->name.len && !line->name.ptr ? xspace_no_memory(x) : OW_OK;
}

static ow_status add_line(struct xspace *x, struct xplane *plane, const struct pb_stream_field *f)
{
	if (!vec_push(x->mem, plane->lines, plane->line_count, plane->line_cap,
		      (struct xline){ .offset = f->offset, .size = f->size }))
		return xspace_no_memory(x);
	return OW_OK;
}

/* Joins lines with the same id. */
static ow_status join_lines(struct xspace *x, struct xplane *plane)
{
	uint32_t *last = ARENA_ARRAY(&x->shelf, uint32_t, plane->line_count + 1);
	ow_status status = last ? OW_OK : xspace_no_memory(x);
	struct xids seen;

	xids_init(&seen, x->mem);
	for (size_t i = 0; i < plane->line_count && status == OW_OK; i++) {
		uint32_t before = seen.count, row = xids_add(&seen, (uint64_t)plane->lines[i].id);

		if (!row) {
			status = xspace_no_memory(x);
			break;
		}
		if (row < before) {
			plane->lines[last[row]].next = (uint32_t)i;
			plane->lines[i].joined = true;
		}
		last[row] = (uint32_t)i;
	}
	xids_release(&seen);
	return status;
}

/* A copy of a text that lives while the plane is read. */
static struct str copy_for_plane(struct xspace *x, struct str text, bool *failed)
{
	struct str copy = text.len ? arena_str(&x->shelf, text) : STR("");

	*failed |= !copy.ptr;
	return copy;
}

/* Reads the entry of a map: key #1, value #2. */
static bool read_pair(struct pb record, uint64_t *key, struct pb *value)
{
	struct pb_field f;

	*key = 0;
	*value = pb_over("", 0);
	while (pb_next(&record, &f)) {
		if (f.tag == PB_TAG(1, PB_VARINT))
			*key = f.value;
		else if (f.tag == PB_TAG(2, PB_BYTES))
			*value = pb_message(&f);
	}
	return !record.problem;
}

/* Copies the small stats of an entry, one after the other. */
static struct str keep_stats(struct xspace *x, struct pb message, bool *failed)
{
	struct pb r = message;
	struct pb_field f;
	size_t size = 0;
	char *to, *at;

	while (pb_next(&r, &f))
		if (f.tag == PB_TAG(5, PB_BYTES) && f.value <= ENTRY_STATS_MAX)
			size += (size_t)f.value + PB_VARINT_BYTES + 1;
	if (!size)
		return STR("");
	to = at = arena_push_aligned(&x->shelf, size, 1);
	if (!to) {
		*failed = true;
		return STR("");
	}
	for (r = message; pb_next(&r, &f);) {
		uint64_t len = f.value;

		if (f.tag != PB_TAG(5, PB_BYTES) || len > ENTRY_STATS_MAX)
			continue;
		*at++ = PB_TAG(5, PB_BYTES);
		for (; len >= 0x80; len >>= 7)
			*at++ = (char)(len | 0x80);
		*at++ = (char)len;
		memcpy(at, f.ptr, (size_t)f.value);
		at += f.value;
	}
	return str_make(to, (size_t)(at - to));
}

uint32_t xspace_add_entry(struct xspace *x, struct xplane *plane, uint64_t id,
			  const struct xevent_text *text)
{
	uint32_t row = xids_add(&plane->event_ids, id);

	if (!row || !vec_reserve(x->mem, plane->events, plane->event_cap, (size_t)row + 1))
		return 0;
	plane->events[row] = (struct xevent_entry){ 0 };
	if (!vec_reserve(x->mem, plane->texts, plane->text_cap, (size_t)row + 1))
		return 0;
	plane->texts[row] = *text;
	return row;
}

static ow_status add_event_entry(struct xspace *x, struct xplane *plane, uint64_t id,
				 struct pb message)
{
	struct xevent_text entry = { .name = STR(""), .display = STR(""), .stats = STR("") };
	bool failed = false;
	struct pb r = message;
	struct pb_field f;

	while (pb_next(&r, &f)) {
		if (f.tag == PB_TAG(2, PB_BYTES))
			entry.name = copy_for_plane(x, pb_str(&f), &failed);
		else if (f.tag == PB_TAG(4, PB_BYTES))
			entry.display = copy_for_plane(x, pb_str(&f), &failed);
	}
	entry.stats = keep_stats(x, message, &failed);
	return !failed && xspace_add_entry(x, plane, id, &entry) ? OW_OK : xspace_no_memory(x);
}

static ow_status add_stat_entry(struct xspace *x, struct xplane *plane, uint64_t id,
				struct pb message)
{
	uint32_t row = xids_add(&plane->stat_ids, id);
	struct str name = STR("");
	bool failed = false;
	struct pb_field f;

	if (!row || !vec_reserve(x->mem, plane->stats, plane->stat_cap, (size_t)row + 1))
		return xspace_no_memory(x);
	while (pb_next(&message, &f))
		if (f.tag == PB_TAG(2, PB_BYTES))
			name = copy_for_plane(x, pb_str(&f), &failed);
	plane->stats[row] = (struct xstat_entry){ .name = name, .stat = (uint8_t)xstat_of(name) };
	return failed ? xspace_no_memory(x) : OW_OK;
}

static ow_status add_value(struct xspace *x, struct xplane *plane, struct pb message)
{
	struct xvalue value;
	bool failed = false;

	if (!xvalue_read(message, &value))
		return OW_OK;
	value.text = copy_for_plane(x, value.text, &failed);
	if (failed || !vec_push(x->mem, plane->values, plane->value_count, plane->value_cap, value))
		return xspace_no_memory(x);
	return OW_OK;
}

static ow_status read_record(struct xspace *x, struct xplane *plane, struct pb_stream *s,
			     const struct pb_stream_field *f)
{
	struct pb record, value;
	uint64_t id;

	if (!pb_stream_record(s, f, &record)) {
		if (f->cut)
			xspace_damage(x, f->start);
		return s->status == OW_E_NO_MEMORY || s->status == OW_E_IO ? s->status : OW_OK;
	}
	if (f->tag == PB_TAG(2, PB_BYTES)) {
		plane->name = arena_str(&x->arena, str_make(record.at, f->size));
		plane->kind = kind_of(plane->name);
		return plane->name.ptr ? OW_OK : xspace_no_memory(x);
	}
	if (f->tag == PB_TAG(6, PB_BYTES))
		return add_value(x, plane, record);
	if (!read_pair(record, &id, &value)) {
		xspace_damage(x, f->start);
		return OW_OK;
	}
	return f->tag == PB_TAG(4, PB_BYTES) ? add_event_entry(x, plane, id, value)
					     : add_stat_entry(x, plane, id, value);
}

static ow_status read_fields(struct xspace *x, struct xplane *plane, struct pb_stream *s)
{
	struct pb_stream_field f;

	while (pb_stream_next(s, &f)) {
		switch (f.tag) {
		case PB_TAG(1, PB_VARINT):
			plane->id = (int64_t)f.value;
			break;
		case PB_TAG(3, PB_BYTES):
			OW_TRY(add_line(x, plane, &f));
			break;
		case PB_TAG(2, PB_BYTES):
		case PB_TAG(4, PB_BYTES):
		case PB_TAG(5, PB_BYTES):
		case PB_TAG(6, PB_BYTES):
			OW_TRY(read_record(x, plane, s, &f));
			break;
		default:
			break;
		}
	}
	return s->status == OW_E_CORRUPT ? OW_OK : s->status;
}

/* Stats that are used for events of hosts, and of devices. */
static const struct {
	uint8_t stat, taken_as, kinds;
	bool host, device;
} wanted_stats[] = {
	{ XSTAT_CORRELATION_ID, XSTAT_CORRELATION_ID, XKIND_NUMBER, true, true },
	{ XSTAT_PRODUCER_TYPE, XSTAT_PRODUCER_TYPE, XKIND_NUMBER, true, true },
	{ XSTAT_PRODUCER_ID, XSTAT_PRODUCER_ID, XKIND_NUMBER, true, true },
	{ XSTAT_CONSUMER_TYPE, XSTAT_CONSUMER_TYPE, XKIND_NUMBER, true, true },
	{ XSTAT_CONSUMER_ID, XSTAT_CONSUMER_ID, XKIND_NUMBER, true, true },
	{ XSTAT_DETAILS, XSTAT_DETAILS, XKIND_REF, true, true },
	{ XSTAT_TF_OP, XSTAT_TF_OP, XKIND_REF, false, true },
	{ XSTAT_ANNOTATION, XSTAT_TF_OP, XKIND_REF, false, true },
	{ XSTAT_HLO_OP, XSTAT_HLO_OP, XKIND_REF, false, true },
	{ XSTAT_PROGRAM_ID, XSTAT_PROGRAM_ID, XKIND_NUMBER, false, true },
	{ XSTAT_GROUP_ID, XSTAT_GROUP_ID, XKIND_NUMBER, true, false },
	{ XSTAT_STEP_NUM, XSTAT_STEP_NUM, XKIND_NUMBER, true, false },
	{ XSTAT_STEP_NAME, XSTAT_STEP_NAME, XKIND_REF, true, false },
	{ XSTAT_ROOT, XSTAT_ROOT, XKIND_NUMBER, true, false },
};

struct xwanted xspace_wanted(const struct xplane *plane, enum xstat stat)
{
	for (size_t i = 0; i < ARRAY_COUNT(wanted_stats); i++)
		if (wanted_stats[i].stat == stat &&
		    (plane->device ? wanted_stats[i].device : wanted_stats[i].host))
			return (struct xwanted){ wanted_stats[i].taken_as, wanted_stats[i].kinds };
	return (struct xwanted){ 0, 0 };
}

/* Chooses the stats that are read from events of the plane. */
static ow_status xspace_choose_stats(struct xspace *x, struct xplane *plane)
{
	plane->device = plane->kind == XPLANE_GPU || plane->kind == XPLANE_TPU ||
			plane->kind == XPLANE_DEVICE;
	plane->wanted_count = plane->stat_ids.dense_cap;
	plane->wanted =
		ARENA_ARRAY(&x->shelf, struct xwanted, MAX(plane->wanted_count, (size_t)128));
	plane->ref_ops = ARENA_ARRAY(&x->shelf, uint32_t, plane->wanted_count + 1);
	if (!plane->wanted || !plane->ref_ops)
		return xspace_no_memory(x);
	for (size_t id = 0; id < plane->wanted_count; id++) {
		uint32_t row = plane->stat_ids.dense[id];

		if (row)
			plane->wanted[id] =
				xspace_wanted(plane, (enum xstat)plane->stats[row].stat);
	}
	xspace_forget_groups(x, plane);
	return OW_OK;
}

void xspace_forget_groups(const struct xspace *x, struct xplane *plane)
{
	for (size_t id = 0; id < plane->wanted_count && x->step_source == XSTEP_NUMBER; id++)
		if (plane->wanted[id].stat == XSTAT_GROUP_ID)
			plane->wanted[id] = (struct xwanted){ 0, 0 };
}

ow_status xspace_read_plane(struct xspace *x, struct xplane *plane)
{
	struct pb_stream s;

	xids_init(&plane->event_ids, x->mem);
	xids_init(&plane->stat_ids, x->mem);
	pb_stream_init(&s, &x->window, plane->offset, plane->offset + plane->size);
	OW_TRY(read_fields(x, plane, &s));
	if (s.status != OW_OK)
		note_problem(x, &s);
	for (size_t i = 0; i < plane->line_count; i++)
		OW_TRY(read_line_head(x, &plane->lines[i]));
	OW_TRY(xspace_choose_stats(x, plane));
	return join_lines(x, plane);
}

void xspace_release_plane(struct xspace *x, struct xplane *plane)
{
	xids_release(&plane->event_ids);
	xids_release(&plane->stat_ids);
	mem_free(x->mem, plane->events, plane->event_cap * sizeof(*plane->events));
	mem_free(x->mem, plane->texts, plane->text_cap * sizeof(*plane->texts));
	mem_free(x->mem, plane->stats, plane->stat_cap * sizeof(*plane->stats));
	mem_free(x->mem, plane->lines, plane->line_cap * sizeof(*plane->lines));
	mem_free(x->mem, plane->values, plane->value_cap * sizeof(*plane->values));
	plane->events = NULL;
	plane->texts = NULL;
	plane->stats = NULL;
	plane->lines = NULL;
	plane->values = NULL;
	plane->wanted = NULL;
	plane->ref_ops = NULL;
	plane->shapes = NULL;
	plane->wanted_count = 0;
	plane->event_cap = plane->text_cap = plane->stat_cap = plane->line_cap = plane->value_cap =
		0;
	plane->line_count = plane->value_count = 0;
	arena_clear(&x->shelf);
}
