/*
 * sink_pprof.c: the sink `pprof`: the code view as a gzip-packed profile.proto for `go tool pprof`. Ops are laid out as in tfprof: one sample
 * per op, labelled with its name, and a location per call, that is, per edge of the displayed tree; ids and strings are numbered in the order
 * of the walk, tables are written in the order of their keys. Sampled stacks have one sample per displayed node with a value of its own.
 */
#include "sink/sink.h"

#include "base/map.h"
#include "base/vec.h"
#include "model/metrics.h"
#include "sink/stacks/gzip_out.h"
#include "sink/tree_out.h"
#include "base/writer.h"
#include "wire/protobuf/pb_write.h"

/* Field numbers of profile.proto. */
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING = 6,
	PROFILE_COMMENT = 13
};
enum { VALUE_TYPE = 1, VALUE_UNIT = 2 };
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE = 2, SAMPLE_LABEL = 3 };
enum { LABEL_KEY = 1, LABEL_STR = 2 };
enum { LOCATION_ID = 1, LOCATION_LINE = 4 };
enum { LINE_FUNCTION = 1, LINE_NUMBER = 2 };
enum {
	FUNCTION_ID = 1,
	FUNCTION_NAME = 2,
	FUNCTION_SYSTEM_NAME = 3,
	FUNCTION_FILE = 4,
	FUNCTION_START = 5
};

struct place {
	uint32_t function; /* index of the function's name in the string table */
	int32_t line;
};

struct function {
	uint32_t name, file;
};

struct pprof_samples {
	struct mem *mem;
	struct ow_error *err;
	const struct tree *tree;
	struct writer w;
	struct buf message;
	struct str *strings;
	size_t string_count, string_cap;
	struct place *places; /* locations; index = id - 1 */
	size_t place_count, place_cap;
	struct function *functions; /* functions; index = id - 1 */
	size_t function_count, function_cap;
	struct map string_map, place_map, function_map;
	uint32_t *location; /* for each node: id of its location */
	bool failed;
};

static uint32_t intern_string(struct pprof_samples *p, struct str text)
{
	uint64_t hash = str_hash(text);

	if (!text.len)
		return 0;
	for (struct map_iter it = map_find(&p->string_map, hash); it.value;
	     it = map_next(&p->string_map, it))
		if (str_eq(p->strings[it.value], text))
			return it.value;
	if (!vec_reserve(p->mem, p->strings, p->string_cap, MAX(p->string_count, 1) + 1)) {
		p->failed = true;
		return 0;
	}
	p->string_count = MAX(p->string_count, 1);
	p->strings[0] = STR("");
	p->strings[p->string_count] = text;
	if (!map_add(&p->string_map, hash, (uint32_t)p->string_count))
		p->failed = true;
	return (uint32_t)p->string_count++;
}

static uint32_t function_id(struct pprof_samples *p, uint32_t name, uint32_t file)
{
	uint64_t hash = map_hash_u64(name, file);

	for (struct map_iter it = map_find(&p->function_map, hash); it.value;
	     it = map_next(&p->function_map, it))
		if (p->functions[it.value - 1].name == name &&
		    p->functions[it.value - 1].file == file)
			return it.value;
	if (!vec_push(p->mem, p->functions, p->function_count, p->function_cap,
		      (struct function){ name, file })) {
		p->failed = true;
		return 0;
	}
	if (!map_add(&p->function_map, hash, (uint32_t)p->function_count))
		p->failed = true;
	return (uint32_t)p->function_count;
}

static uint32_t place_id(struct pprof_samples *p, const struct tree_node *node)
{
	const struct model *m = p->tree->model;
	uint32_t frame = p->tree->code_nodes[node->code].frame.v;
	uint32_t function = function_id(p, intern_string(p, node->name),
					intern_string(p, model_str(m, m->frame.file[frame])));
	int32_t line = m->frame.line[frame];
	uint64_t hash = map_hash_u64(function, (uint32_t)line);

	for (struct map_iter it = map_find(&p->place_map, hash); it.value;
	     it = map_next(&p->place_map, it))
		if (p->places[it.value - 1].function == function &&
		    p->places[it.value - 1].line == line)
			return it.value;
	if (!vec_push(p->mem, p->places, p->place_count, p->place_cap,
		      (struct place){ function, line })) {
		p->failed = true;
		return 0;
	}
	if (!map_add(&p->place_map, hash, (uint32_t)p->place_count))
		p->failed = true;
	return (uint32_t)p->place_count;
}

static void add_number(struct buf *to, uint32_t field, uint64_t value)
{
	pb_add_varint(to, PB_TAG(field, PB_VARINT));
	pb_add_varint(to, value);
}

static void put_sampled_message(struct pprof_samples *p, uint32_t field)
{
	unsigned char head[20];
	size_t len = pb_encode_varint(head, PB_TAG(field, PB_BYTES));

	if (p->message.failed || p->failed)
		writer_fail(&p->w, error_no_memory(p->err));
	len += pb_encode_varint(head + len, p->message.len);
	writer_add(&p->w, head, len);
	writer_str(&p->w, buf_str(&p->message));
	buf_clear(&p->message);
}

static void put_sample(struct pprof_samples *p, uint32_t node, int64_t own)
{
	size_t mark = pb_begin(&p->message, SAMPLE_LOCATION);

	for (uint32_t at = node; at; at = p->tree->nodes[at].parent)
		pb_add_varint(&p->message, p->location[at]);
	pb_end(&p->message, mark);
	mark = pb_begin(&p->message, SAMPLE_VALUE);
	pb_add_varint(&p->message, (uint64_t)own);
	pb_end(&p->message, mark);
	put_sampled_message(p, PROFILE_SAMPLE);
}

static void put_sampled_rows(struct pprof_samples *p, const int64_t *child_sums)
{
	for (uint32_t i = 1; i < p->tree->node_count && p->w.status == OW_OK; i++) {
		const struct tree_node *node = &p->tree->nodes[i];
		int64_t total = tree_out_total(p->tree, node, METRIC_WEIGHT);
		int64_t own = total - MIN(total, child_sums[i]);

		p->location[i] = place_id(p, node);
		if (own > 0)
			put_sample(p, i, own);
	}
}

static void put_tables(struct pprof_samples *p)
{
	for (size_t i = 0; i < p->place_count; i++) {
		size_t mark;

		add_number(&p->message, LOCATION_ID, i + 1);
		mark = pb_begin(&p->message, LOCATION_LINE);
		add_number(&p->message, LINE_FUNCTION, p->places[i].function);
		if (p->places[i].line > 0)
			add_number(&p->message, LINE_NUMBER, (uint64_t)p->places[i].line);
		pb_end(&p->message, mark);
		put_sampled_message(p, PROFILE_LOCATION);
	}
	for (size_t i = 0; i < p->function_count; i++) {
		add_number(&p->message, FUNCTION_ID, i + 1);
		add_number(&p->message, FUNCTION_NAME, p->functions[i].name);
		add_number(&p->message, FUNCTION_SYSTEM_NAME, p->functions[i].name);
		if (p->functions[i].file)
			add_number(&p->message, FUNCTION_FILE, p->functions[i].file);
		put_sampled_message(p, PROFILE_FUNCTION);
	}
	for (size_t i = 0; i < MAX(p->string_count, 1); i++) {
		if (i)
			buf_add_str(&p->message, p->strings[i]);
		put_sampled_message(p, PROFILE_STRING);
	}
}

static void put_sampled_profile(struct pprof_samples *p, const int64_t *child_sums)
{
	struct str unit = p->tree->weight_source_unit;

	if (p->tree->weight_unit == UNIT_NS)
		unit = STR("nanoseconds");
	add_number(&p->message, VALUE_TYPE, intern_string(p, p->tree->weight_name));
	add_number(&p->message, VALUE_UNIT, intern_string(p, unit));
	put_sampled_message(p, PROFILE_SAMPLE_TYPE);
	put_sampled_rows(p, child_sums);
	put_tables(p);
}

static ow_status write_sampled(struct pprof_samples *p, const struct out *out,
			       const int64_t *child_sums)
{
	struct gzip_out gz;
	struct out stream;

	OW_TRY(gzip_out_init(&gz, p->mem, out, p->err));
	stream = gzip_out_stream(&gz);
	writer_init(&p->w, p->mem, &stream, p->err);
	put_sampled_profile(p, child_sums);
	return gzip_out_finish(&gz, writer_finish(&p->w), p->err);
}

static void release_sampled(struct pprof_samples *p)
{
	mem_free(p->mem, p->strings, p->string_cap * sizeof(*p->strings));
	mem_free(p->mem, p->places, p->place_cap * sizeof(*p->places));
	mem_free(p->mem, p->functions, p->function_cap * sizeof(*p->functions));
	map_release(&p->string_map);
	map_release(&p->place_map);
	map_release(&p->function_map);
	buf_release(&p->message);
}

static ow_status pprof_samples_write(struct table *result, const struct out *out,
				     struct ow_error *err)
{
	struct pprof_samples p = { .mem = result->mem, .err = err, .tree = result->tree };
	size_t size = ((size_t)p.tree->node_count + 1) * sizeof(*p.location);
	int64_t *child_sums;
	ow_status status;

	OW_TRY(tree_out_child_sums(p.tree, METRIC_WEIGHT, p.mem, &child_sums, err));
	map_init(&p.string_map, p.mem);
	map_init(&p.place_map, p.mem);
	map_init(&p.function_map, p.mem);
	buf_init(&p.message, p.mem);
	p.location = mem_zalloc(p.mem, size);
	status = p.location ? write_sampled(&p, out, child_sums) : error_no_memory(err);
	mem_free(p.mem, p.location, size);
	tree_out_release(p.tree, p.mem, child_sums);
	release_sampled(&p);
	return status;
}

#define GRADIENT_SUFFIX " (gradient)"

static const struct attribute {
	enum metric metric;
	const char *unit, *comment;
} attributes[] = {
	{ METRIC_MICROS, "microseconds",
	  "Sum of accelerator execution time and cpu execution time." },
	{ METRIC_ACCELERATOR_MICROS, "microseconds", "Accelerator execution time." },
	{ METRIC_CPU_MICROS, "microseconds", "CPU execution time." },
	{ METRIC_BYTES, "bytes",
	  "Sum of operation total memory requests, excluding deallocations." },
	{ METRIC_PEAK_BYTES, "bytes", "Sum of operation peak memory usage." },
	{ METRIC_RESIDUAL_BYTES, "bytes", "Sum of operation allocated memory after finish." },
	{ METRIC_OUTPUT_BYTES, "bytes", "Sum of operation output size." },
	{ METRIC_PARAMS, "count", "Model parameters." },
	{ METRIC_FLOAT_OPS, "count", "Model float operations (Only available if defined)." },
};

/* A function (file, name, first line), or a location, which is a call of a function (caller's file, name, caller's
 * line). */
struct entry {
	struct str file, name;
	uint64_t line;
	uint32_t id;
	uint32_t function;		   /* for a location: id of its function */
	uint32_t name_string, file_string; /* for a function: indexes in the string table */
};

struct entries {
	struct entry *items;
	size_t cap;
	uint32_t count;
	struct map map; /* key → id, from 1 */
};

struct sample {
	struct str key;
	op_id op;
	uint32_t node;	/* displayed node whose path is the stack of the sample */
	uint32_t label; /* index in the string table */
};

struct pprof {
	struct mem *mem;
	struct ow_error *err;
	const struct tree *tree;
	const struct model *m;
	const struct attribute *attribute;
	const char *attribute_name;
	struct arena arena;

	struct str *strings;
	size_t string_cap;
	uint32_t string_count;
	/* text → index in the string table; the empty string is not in the map */
	struct map string_map;

	struct entries functions, locations;
	/* for each displayed node: location of the call that leads to the node, 0 = none */
	uint32_t *location;

	struct sample *samples;
	size_t sample_cap;
	uint32_t sample_count;
	struct map sample_map; /* key → 1 + index of the sample */

	struct buf message; /* one encoded message of the profile */
};

static ow_status intern(struct pprof *p, struct str s, uint32_t *index)
{
	uint64_t hash = str_hash(s);

	*index = 0;
	if (!s.len)
		return OW_OK;
	for (struct map_iter it = map_find(&p->string_map, hash); it.value;
	     it = map_next(&p->string_map, it))
		if (str_eq(p->strings[it.value], s)) {
			*index = it.value;
			return OW_OK;
		}
	if (!vec_reserve(p->mem, p->strings, p->string_cap, (size_t)p->string_count + 1) ||
	    !map_add(&p->string_map, hash, p->string_count))
		return error_no_memory(p->err);
	*index = p->string_count;
	p->strings[p->string_count++] = s;
	return OW_OK;
}

/* Finds or adds an entry; its id is 1 + its index. *is_new says whether it was added. */
static ow_status find_entry(struct pprof *p, struct entries *table, const struct entry *key,
			    uint32_t *id, bool *added)
{
	uint64_t hash =
		map_hash_u64(map_hash_u64(str_hash(key->file), str_hash(key->name)), key->line);

	*added = false;
	for (struct map_iter it = map_find(&table->map, hash); it.value;
	     it = map_next(&table->map, it)) {
		const struct entry *entry = &table->items[it.value - 1];

		*id = it.value;
		if (entry->line == key->line && str_eq(entry->file, key->file) &&
		    str_eq(entry->name, key->name))
			return OW_OK;
	}
	if (!vec_reserve(p->mem, table->items, table->cap, (size_t)table->count + 1) ||
	    !map_add(&table->map, hash, table->count + 1))
		return error_no_memory(p->err);
	table->items[table->count++] = *key;
	*id = table->items[table->count - 1].id = table->count;
	*added = true;
	return OW_OK;
}

/* Length of "scheme://host" at the start of a name, 0 when there is none. */
static size_t uri_host_end(struct str s)
{
	size_t scheme = str_find(s, STR("://")), slash;

	if (scheme == STR_NONE || scheme < 2)
		return 0;
	for (size_t i = 0; i < scheme; i++) {
		unsigned char c = (unsigned char)s.ptr[i], lower = c | 0x20;
		bool letter = lower >= 'a' && lower <= 'z';

		if (!letter && (!i || !((c >= '0' && c <= '9') || c == '.')))
			return 0;
	}
	slash = str_find_char(str_skip(s, scheme + 3), '/');
	return slash == STR_NONE ? s.len : scheme + 3 + slash;
}

/* The last part of a path without its extension. */
static struct str stem(struct str path)
{
	size_t at;

	path = str_skip(path, uri_host_end(path));
	at = str_rfind_char(path, '/');
	if (at != STR_NONE)
		path = str_skip(path, at + 1);
	at = str_rfind_char(path, '.');
	return at == STR_NONE ? path : str_first(path, at);
}

static struct str joined(struct pprof *p, struct str a, struct str between, struct str b)
{
	size_t len = a.len + between.len + b.len;
	char *text = arena_push_aligned(&p->arena, len + 1, 1);

	if (!text)
		return (struct str){ 0 };
	if (a.len)
		memcpy(text, a.ptr, a.len);
	memcpy(text + a.len, between.ptr, between.len);
	if (b.len)
		memcpy(text + a.len + between.len, b.ptr, b.len);
	return str_make(text, len);
}

static const struct code_node *code_of(const struct pprof *p, uint32_t node)
{
	return &p->tree->code_nodes[p->tree->nodes[node].code];
}

static struct str file_of(const struct pprof *p, const struct code_node *code)
{
	return model_str(p->m, p->m->frame.file[code->frame.v]);
}

static uint64_t line_of(int32_t line)
{
	return (uint64_t)(int64_t)line;
}

static ow_status function_name(struct pprof *p, const struct code_node *code, struct str *name)
{
	*name = model_str(p->m, p->m->frame.function[code->frame.v]);
	if (!code->gradient)
		return OW_OK;
	*name = joined(p, *name, STR(GRADIENT_SUFFIX), STR(""));
	return name->ptr ? OW_OK : error_no_memory(p->err);
}

static ow_status find_function(struct pprof *p, const struct code_node *callee, struct str name,
			       uint32_t *id)
{
	struct entry key = { .file = file_of(p, callee),
			     .name = name,
			     .line = line_of(p->m->frame.function_line[callee->frame.v]) };
	struct str text;
	bool added;

	OW_TRY(find_entry(p, &p->functions, &key, id, &added));
	if (!added)
		return OW_OK;
	text = joined(p, stem(key.file), STR(":"), name);
	if (!text.ptr)
		return error_no_memory(p->err);
	OW_TRY(intern(p, text, &p->functions.items[*id - 1].name_string));
	return intern(p, key.file, &p->functions.items[*id - 1].file_string);
}

/* Finds the location of the call that leads from the node's parent to the node. */
static ow_status find_location(struct pprof *p, uint32_t node)
{
	const struct code_node *caller = code_of(p, p->tree->nodes[node].parent);
	const struct code_node *callee = code_of(p, node);
	struct entry key = { .file = file_of(p, caller),
			     .line = line_of(p->m->frame.line[caller->frame.v]) };
	uint32_t id = 0, function = 0;
	bool added;

	OW_TRY(function_name(p, callee, &key.name));
	OW_TRY(find_entry(p, &p->locations, &key, &id, &added));
	p->location[node] = id;
	if (!added)
		return OW_OK;
	OW_TRY(find_function(p, callee, key.name, &function));
	p->locations.items[id - 1].function = function;
	return OW_OK;
}

static bool key_taken(const struct pprof *p, struct str key)
{
	for (struct map_iter it = map_find(&p->sample_map, str_hash(key)); it.value;
	     it = map_next(&p->sample_map, it))
		if (str_eq(p->samples[it.value - 1].key, key))
			return true;
	return false;
}

static ow_status add_sample(struct pprof *p, uint32_t node, op_id op)
{
	struct sample sample = { .key = model_str(p->m, p->m->op.name[op.v]),
				 .op = op,
				 .node = node };
	uint32_t ignored;

	OW_TRY(intern(p, STR("graph node:"), &ignored));
	OW_TRY(intern(p, sample.key, &sample.label));
	while (key_taken(p, sample.key)) {
		sample.key = joined(p, sample.key, STR("@"), STR(""));
		if (!sample.key.ptr)
			return error_no_memory(p->err);
	}
	if (!vec_reserve(p->mem, p->samples, p->sample_cap, (size_t)p->sample_count + 1) ||
	    !map_add(&p->sample_map, str_hash(sample.key), p->sample_count + 1))
		return error_no_memory(p->err);
	p->samples[p->sample_count++] = sample;
	return OW_OK;
}

/* Adds a sample for each op at every leaf of the complete code tree below a displayed node. */
static ow_status add_leaf_samples(struct pprof *p, uint32_t node)
{
	const struct code_node *codes = p->tree->code_nodes;
	uint32_t top = p->tree->nodes[node].code, at = top;

	for (;;) {
		if (codes[at].first_child) {
			at = codes[at].first_child;
			continue;
		}
		for (uint32_t i = 0; i < codes[at].op_count; i++)
			OW_TRY(add_sample(p, node, p->tree->code_ops[codes[at].op_first + i]));
		while (at != top && !codes[at].next_sibling)
			at = codes[at].parent;
		if (at == top)
			return OW_OK;
		at = codes[at].next_sibling;
	}
}

static ow_status add_samples_of_tree(struct pprof *p)
{
	for (uint32_t i = 1; i < p->tree->node_count; i++) {
		const struct tree_node *node = &p->tree->nodes[i];

		if (node->parent)
			OW_TRY(find_location(p, i));
		if (!node->child_count)
			OW_TRY(add_leaf_samples(p, i));
	}
	return OW_OK;
}

static int compare_samples(const void *a, const void *b)
{
	const struct sample *x = a, *y = b;

	return str_cmp(x->key, y->key);
}

static int compare_entries(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	int order = str_cmp(x->file, y->file);

	if (!order)
		order = str_cmp(x->name, y->name);
	return order ? order : x->line < y->line ? -1 : x->line > y->line;
}

/* Writes a number field; proto3 leaves out zeros. */
static void put_number(struct buf *to, uint32_t field, uint64_t value)
{
	if (value)
		pb_put_varint(to, field, value);
}

/* Writes the message in p->message as one field of the profile. */
static void put_message(struct pprof *p, struct writer *w, uint32_t field)
{
	char head[2 * PB_VARINT_BYTES];
	size_t len = pb_encode_varint(head, PB_TAG(field, PB_BYTES));

	if (p->message.failed)
		writer_fail(w, error_no_memory(p->err));
	len += pb_encode_varint(head + len, p->message.len);
	writer_add(w, head, len);
	writer_str(w, buf_str(&p->message));
	buf_clear(&p->message);
}

static void put_value_type(struct pprof *p, struct writer *w, uint32_t type, uint32_t unit)
{
	put_number(&p->message, VALUE_TYPE, type);
	put_number(&p->message, VALUE_UNIT, unit);
	put_message(p, w, PROFILE_SAMPLE_TYPE);
}

static void put_stack(struct pprof *p, uint32_t node)
{
	size_t mark;

	if (!p->location[node])
		return;
	mark = pb_begin(&p->message, SAMPLE_LOCATION);
	for (; p->location[node]; node = p->tree->nodes[node].parent)
		pb_add_varint(&p->message, p->location[node]);
	pb_end(&p->message, mark);
}

static void put_samples(struct pprof *p, struct writer *w, uint32_t label_key)
{
	enum metric metric = p->attribute->metric;
	struct metric_plan plan;

	metric_plan_init(&plan, p->m, p->tree->step, METRIC_BIT(metric));
	plan.in_micros = p->tree->in_micros;
	plan.all_steps = p->tree->all_steps;
	metric_plan_filter(&plan, p->tree->sums);
	for (uint32_t i = 0; i < p->sample_count && w->status == OW_OK; i++) {
		const struct sample *s = &p->samples[i];
		int64_t values[METRIC_COUNT] = { 0 };
		size_t mark;

		metric_eval(&plan, s->op, values);
		put_stack(p, s->node);
		mark = pb_begin(&p->message, SAMPLE_VALUE);
		pb_add_varint(&p->message, 1);
		pb_add_varint(&p->message, (uint64_t)tree_shown(p->tree, metric, values[metric]));
		pb_end(&p->message, mark);
		mark = pb_begin(&p->message, SAMPLE_LABEL);
		put_number(&p->message, LABEL_KEY, label_key);
		put_number(&p->message, LABEL_STR, s->label);
		pb_end(&p->message, mark);
		put_message(p, w, PROFILE_SAMPLE);
	}
}

static void put_locations(struct pprof *p, struct writer *w)
{
	for (uint32_t i = 0; i < p->locations.count; i++) {
		const struct entry *e = &p->locations.items[i];
		size_t mark;

		put_number(&p->message, LOCATION_ID, e->id);
		mark = pb_begin(&p->message, LOCATION_LINE);
		put_number(&p->message, LINE_FUNCTION, e->function);
		put_number(&p->message, LINE_NUMBER, e->line);
		pb_end(&p->message, mark);
		put_message(p, w, PROFILE_LOCATION);
	}
}

static void put_functions(struct pprof *p, struct writer *w)
{
	for (uint32_t i = 0; i < p->functions.count; i++) {
		const struct entry *e = &p->functions.items[i];

		put_number(&p->message, FUNCTION_ID, e->id);
		put_number(&p->message, FUNCTION_NAME, e->name_string);
		put_number(&p->message, FUNCTION_FILE, e->file_string);
		put_number(&p->message, FUNCTION_START, e->line);
		put_message(p, w, PROFILE_FUNCTION);
	}
}

static ow_status put_profile(struct pprof *p, struct writer *w)
{
	uint32_t label_key = 0, count, type, unit, comment;

	if (p->sample_count)
		OW_TRY(intern(p, STR("graph node:"), &label_key));
	OW_TRY(intern(p, STR("count"), &count));
	OW_TRY(intern(p, str_from(p->attribute_name), &type));
	OW_TRY(intern(p, str_from(p->attribute->unit), &unit));
	OW_TRY(intern(p, str_from(p->attribute->comment), &comment));
	put_value_type(p, w, count, count);
	put_value_type(p, w, type, unit);
	put_samples(p, w, label_key);
	put_locations(p, w);
	put_functions(p, w);
	for (uint32_t i = 0; i < p->string_count; i++) {
		buf_add_str(&p->message, p->strings[i]);
		put_message(p, w, PROFILE_STRING);
	}
	pb_add_varint(&p->message, comment);
	put_message(p, w, PROFILE_COMMENT);
	return OW_OK;
}

static ow_status write_packed(struct pprof *p, const struct out *out)
{
	struct gzip_out gz;
	struct writer w;
	struct out stream;
	ow_status status;

	if (p->sample_count)
		qsort(p->samples, p->sample_count, sizeof(*p->samples), compare_samples);
	if (p->functions.count)
		qsort(p->functions.items, p->functions.count, sizeof(struct entry),
		      compare_entries);
	if (p->locations.count)
		qsort(p->locations.items, p->locations.count, sizeof(struct entry),
		      compare_entries);
	OW_TRY(gzip_out_init(&gz, p->mem, out, p->err));
	stream = gzip_out_stream(&gz);
	writer_init(&w, p->mem, &stream, p->err);
	writer_fail(&w, put_profile(p, &w));
	status = writer_finish(&w);
	return gzip_out_finish(&gz, status, p->err);
}

static ow_status find_attribute(struct pprof *p, const char *name)
{
	for (size_t i = 0; i < ARRAY_COUNT(attributes); i++)
		if (!strcmp(name, metric_infos[attributes[i].metric].name)) {
			p->attribute = &attributes[i];
			p->attribute_name = metric_infos[attributes[i].metric].name;
			return OW_OK;
		}
	return error_set(p->err, OW_E_USAGE, "pprof doesn't support -select=%s", name);
}

/* Chooses the attribute to write: the only selected column, unless the caller names a metric. */
static ow_status choose_attribute(struct pprof *p, const struct sink_options *options)
{
	const struct tree *tree = p->tree;

	if (options->metric)
		return find_attribute(p, options->metric);
	if ((uint32_t)__builtin_popcount(tree->select) + tree->unknown_select_count != 1)
		return error_set(p->err, OW_E_USAGE,
				 "Can only select 1 attribute for pprof output.");
	return find_attribute(p, tree->unknown_select_count
					 ? tree->unknown_select[0]
					 : select_names[__builtin_ctz(tree->select)]);
}

static void release(struct pprof *p)
{
	if (p->strings)
		mem_free(p->mem, p->strings, p->string_cap * sizeof(*p->strings));
	if (p->functions.items)
		mem_free(p->mem, p->functions.items, p->functions.cap * sizeof(struct entry));
	if (p->locations.items)
		mem_free(p->mem, p->locations.items, p->locations.cap * sizeof(struct entry));
	if (p->samples)
		mem_free(p->mem, p->samples, p->sample_cap * sizeof(*p->samples));
	map_release(&p->string_map);
	map_release(&p->functions.map);
	map_release(&p->locations.map);
	map_release(&p->sample_map);
	buf_release(&p->message);
	arena_release(&p->arena);
}

static ow_status build(struct pprof *p, const struct out *out)
{
	p->location = ARENA_ARRAY(&p->arena, uint32_t, (size_t)p->tree->node_count + 1);
	if (!p->location || !vec_reserve(p->mem, p->strings, p->string_cap, 64))
		return error_no_memory(p->err);
	p->strings[0] = STR("");
	p->string_count = 1;
	OW_TRY(add_samples_of_tree(p));
	return write_packed(p, out);
}

static ow_status pprof_write(struct table *result, const struct sink_options *options,
			     const struct out *out, struct ow_error *err)
{
	struct pprof p = { .mem = result->mem, .err = err, .tree = result->tree };
	ow_status status;

	if (!p.tree || p.tree->kind != TREE_CODE)
		return error_set(err, OW_E_USAGE, "Only 'code' view supports pprof output now.");
	if (p.tree->weight_name.ptr)
		return pprof_samples_write(result, out, err);
	OW_TRY(choose_attribute(&p, options));
	p.m = p.tree->model;
	arena_init(&p.arena, p.mem);
	map_init(&p.string_map, p.mem);
	map_init(&p.functions.map, p.mem);
	map_init(&p.locations.map, p.mem);
	map_init(&p.sample_map, p.mem);
	buf_init(&p.message, p.mem);
	status = build(&p, out);
	release(&p);
	return status;
}

const struct sink sink_pprof = {
	.name = "pprof",
	.summary = "the code view for go tool pprof (profile.proto, gzip)",
	.extension = "pb.gz",
	.accepts = SINK_TREE_CODE,
	.binary = true,
	.write = pprof_write,
};
