/*
 * pprof_samples.c: see pprof_samples.h. One sample per displayed node with something of its own; a function
 * per label, a location per label and line. Processes are the outermost functions.
 */
#include "sink/pprof_samples.h"

#include "base/map.h"
#include "sink/gzip_out.h"
#include "sink/tree_out.h"
#include "sink/writer.h"
#include "wire/pb_write.h"

/* Fields of profile.proto. */
enum {
	PROFILE_SAMPLE_TYPE = 1,
	PROFILE_SAMPLE = 2,
	PROFILE_LOCATION = 4,
	PROFILE_FUNCTION = 5,
	PROFILE_STRING = 6
};
enum { VALUE_TYPE = 1, VALUE_UNIT = 2 };
enum { SAMPLE_LOCATION = 1, SAMPLE_VALUE = 2 };
enum { LOCATION_ID = 1, LOCATION_LINE = 4 };
enum { LINE_FUNCTION = 1, LINE_NUMBER = 2 };
enum { FUNCTION_ID = 1, FUNCTION_NAME = 2, FUNCTION_SYSTEM_NAME = 3, FUNCTION_FILE = 4 };

struct place {
	uint32_t function; /* string of its name */
	int32_t line;
};

struct function {
	uint32_t name, file;
};

struct pprof_samples {
	struct mem *mem;
	struct error *err;
	const struct tree *tree;
	struct writer w;
	struct buf message;
	struct str *strings;
	size_t string_count, string_cap;
	struct place *places; /* id - 1 */
	size_t place_count, place_cap;
	struct function *functions; /* id - 1 */
	size_t function_count, function_cap;
	struct map string_map, place_map, function_map;
	uint32_t *location; /* of a node */
	bool failed;
};

static uint32_t intern(struct pprof_samples *p, struct str text)
{
	uint64_t hash = str_hash(text);
	void *strings = p->strings;

	if (!text.len)
		return 0;
	for (struct map_iter it = map_find(&p->string_map, hash); it.value;
	     it = map_next(&p->string_map, it))
		if (str_eq(p->strings[it.value], text))
			return it.value;
	if (!mem_grow(p->mem, &strings, &p->string_cap, MAX(p->string_count, 1) + 1,
		      sizeof(*p->strings))) {
		p->failed = true;
		return 0;
	}
	p->strings = strings;
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
	void *functions = p->functions;

	for (struct map_iter it = map_find(&p->function_map, hash); it.value;
	     it = map_next(&p->function_map, it))
		if (p->functions[it.value - 1].name == name &&
		    p->functions[it.value - 1].file == file)
			return it.value;
	if (!mem_grow(p->mem, &functions, &p->function_cap, p->function_count + 1,
		      sizeof(*p->functions))) {
		p->failed = true;
		return 0;
	}
	p->functions = functions;
	p->functions[p->function_count++] = (struct function){ name, file };
	if (!map_add(&p->function_map, hash, (uint32_t)p->function_count))
		p->failed = true;
	return (uint32_t)p->function_count;
}

static uint32_t place_id(struct pprof_samples *p, const struct tree_node *node)
{
	const struct model *m = p->tree->model;
	uint32_t frame = p->tree->code_nodes[node->code].frame.v;
	uint32_t function = function_id(p, intern(p, node->name),
					intern(p, model_str(m, m->frame.file[frame])));
	int32_t line = m->frame.line[frame];
	uint64_t hash = map_hash_u64(function, (uint32_t)line);
	void *places = p->places;

	for (struct map_iter it = map_find(&p->place_map, hash); it.value;
	     it = map_next(&p->place_map, it))
		if (p->places[it.value - 1].function == function &&
		    p->places[it.value - 1].line == line)
			return it.value;
	if (!mem_grow(p->mem, &places, &p->place_cap, p->place_count + 1, sizeof(*p->places))) {
		p->failed = true;
		return 0;
	}
	p->places = places;
	p->places[p->place_count++] = (struct place){ function, line };
	if (!map_add(&p->place_map, hash, (uint32_t)p->place_count))
		p->failed = true;
	return (uint32_t)p->place_count;
}

/* ---- writing ---- */

static void add_number(struct buf *to, uint32_t field, uint64_t value)
{
	pb_add_varint(to, PB_TAG(field, PB_VARINT));
	pb_add_varint(to, value);
}

static void put_message(struct pprof_samples *p, uint32_t field)
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
	put_message(p, PROFILE_SAMPLE);
}

static void put_samples(struct pprof_samples *p, const int64_t *child_sums)
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
		put_message(p, PROFILE_LOCATION);
	}
	for (size_t i = 0; i < p->function_count; i++) {
		add_number(&p->message, FUNCTION_ID, i + 1);
		add_number(&p->message, FUNCTION_NAME, p->functions[i].name);
		add_number(&p->message, FUNCTION_SYSTEM_NAME, p->functions[i].name);
		if (p->functions[i].file)
			add_number(&p->message, FUNCTION_FILE, p->functions[i].file);
		put_message(p, PROFILE_FUNCTION);
	}
	for (size_t i = 0; i < MAX(p->string_count, 1); i++) {
		if (i)
			buf_add_str(&p->message, p->strings[i]);
		put_message(p, PROFILE_STRING);
	}
}

static void put_profile(struct pprof_samples *p, const int64_t *child_sums)
{
	struct str unit = p->tree->weight_source_unit;

	if (p->tree->weight_unit == RESULT_NS)
		unit = STR("nanoseconds");
	add_number(&p->message, VALUE_TYPE, intern(p, p->tree->weight_name));
	add_number(&p->message, VALUE_UNIT, intern(p, unit));
	put_message(p, PROFILE_SAMPLE_TYPE);
	put_samples(p, child_sums);
	put_tables(p);
}

static ow_status write_packed(struct pprof_samples *p, const struct out *out,
			      const int64_t *child_sums)
{
	struct gzip_out gz;
	struct out stream;

	OW_TRY(gzip_out_init(&gz, p->mem, out, p->err));
	stream = gzip_out_stream(&gz);
	writer_init(&p->w, p->mem, &stream, p->err);
	put_profile(p, child_sums);
	return gzip_out_finish(&gz, writer_finish(&p->w), p->err);
}

static void release(struct pprof_samples *p)
{
	mem_free(p->mem, p->strings, p->string_cap * sizeof(*p->strings));
	mem_free(p->mem, p->places, p->place_cap * sizeof(*p->places));
	mem_free(p->mem, p->functions, p->function_cap * sizeof(*p->functions));
	map_release(&p->string_map);
	map_release(&p->place_map);
	map_release(&p->function_map);
	buf_release(&p->message);
}

ow_status pprof_samples_write(struct result *result, const struct out *out, struct error *err)
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
	status = p.location ? write_packed(&p, out, child_sums) : error_no_memory(err);
	mem_free(p.mem, p.location, size);
	tree_out_release(p.tree, p.mem, child_sums);
	release(&p);
	return status;
}
