/*
 * perf_simple.c: what simpleperf, Android's perf, writes beside what perf does: tables of symbols from the device (FILE, and FILE2 as
 * protocol buffers), names of events (META_INFO), and records of its own, of which ids of events are read. See perf_data.h.
 */
#include "import/perf_data.h"

#include "wire/pb.h"

enum { FEATURE_FILE = 128, FEATURE_META_INFO = 129, FEATURE_FILE2 = 132 };
enum { FILE_KERNEL, FILE_KERNEL_MODULE, FILE_ELF, FILE_DEX, FILE_SYMBOL_MAP, FILE_UNKNOWN };
enum { RECORD_EVENT_ID = PERF_SIMPLE_FIRST + 5 };

/* The head of a file's table. */
struct simple_file {
	struct str path;
	uint32_t kind;
	uint64_t min_address;
	uint64_t
		min_offset; /* where that lies in the file, or in the memory of a module; UINT64_MAX: not said */
};

/* How addresses of its symbols follow from those of the process. */
static struct perf_given given_of(const struct simple_file *file)
{
	struct perf_given given = { 0 };

	if (file->kind == FILE_ELF && file->min_offset != UINT64_MAX) {
		given.by = PERF_GIVEN_OFFSET;
		given.shift = file->min_address - file->min_offset;
	} else if (file->kind == FILE_ELF) {
		given.by = PERF_GIVEN_START;
		given.shift = file->min_address;
	} else if (file->kind == FILE_KERNEL_MODULE && file->min_offset != UINT64_MAX) {
		given.by = PERF_GIVEN_START;
		given.shift = file->min_address - file->min_offset;
	} else if (file->kind == FILE_DEX) {
		given.by = PERF_GIVEN_OFFSET;
	}
	return given;
}

static ow_status begin_file(struct perf_file *f, const struct simple_file *file, str_id *module)
{
	*module = builder_str(f->b, file->path);
	OW_TRY(f->b->status);
	return perf_names_given(&f->names, *module, given_of(file)) ? OW_OK
								    : import_no_memory(f->ctx);
}

static ow_status add_symbol(struct perf_file *f, str_id module, uint64_t start, uint64_t len,
			    struct str name)
{
	if (!name.len || len > UINT64_MAX - start)
		return OW_OK;
	return perf_names_given_symbol(&f->names, module, start, start + len, name)
		       ? f->b->status
		       : import_no_memory(f->ctx);
}

/* ---- FILE ---- */

static ow_status read_old_file(struct perf_file *f, struct perf_bytes b)
{
	struct simple_file file = { .path = perf_take_text(&b), .min_offset = UINT64_MAX };
	struct perf_bytes symbols;
	uint32_t count;
	str_id module;

	file.kind = perf_take_u32(&b);
	file.min_address = perf_take_u64(&b);
	count = perf_take_u32(&b);
	symbols = b;
	for (uint32_t i = 0; i < count && !b.bad; i++) { /* what the table means stands behind it */
		(void)perf_take_u64(&b);
		(void)perf_take_u32(&b);
		(void)perf_take_text(&b);
	}
	if (b.bad || file.kind > FILE_UNKNOWN) {
		perf_note_bad(f);
		return OW_OK;
	}
	if (file.kind != FILE_DEX && b.end - b.at >= 8)
		file.min_offset = perf_take_u64(&b);
	OW_TRY(begin_file(f, &file, &module));
	for (uint32_t i = 0; i < count; i++) {
		uint64_t start = perf_take_u64(&symbols);
		uint32_t len = perf_take_u32(&symbols);

		OW_TRY(add_symbol(f, module, start, len, perf_take_text(&symbols)));
	}
	return OW_OK;
}

/* ---- FILE2 ---- */

static void read_place(struct simple_file *file, const struct pb_field *f)
{
	struct pb r = pb_message(f);
	struct pb_field sub;

	file->min_offset = 0;
	while (pb_next(&r, &sub))
		if (sub.tag == PB_TAG(1, PB_VARINT))
			file->min_offset = sub.value;
}

static ow_status read_new_symbol(struct perf_file *f, str_id module, const struct pb_field *field)
{
	struct pb r = pb_message(field);
	uint64_t start = 0, len = 0;
	struct pb_field sub;
	struct str name = STR("");

	while (pb_next(&r, &sub)) {
		if (sub.tag == PB_TAG(1, PB_VARINT))
			start = sub.value;
		else if (sub.tag == PB_TAG(2, PB_VARINT))
			len = sub.value & UINT32_MAX;
		else if (sub.tag == PB_TAG(3, PB_BYTES))
			name = pb_str(&sub);
	}
	return r.problem ? OW_OK : add_symbol(f, module, start, len, name);
}

static ow_status read_new_file(struct perf_file *f, struct perf_bytes b)
{
	struct simple_file file = { .path = STR(""), .min_offset = UINT64_MAX };
	struct pb r = pb_over(b.at, (size_t)(b.end - b.at)), again = r;
	struct pb_field sub;
	str_id module;

	while (pb_next(&r, &sub)) {
		if (sub.tag == PB_TAG(1, PB_BYTES))
			file.path = pb_str(&sub);
		else if (sub.tag == PB_TAG(2, PB_VARINT))
			file.kind = (uint32_t)MIN(sub.value, (uint64_t)UINT32_MAX);
		else if (sub.tag == PB_TAG(3, PB_VARINT))
			file.min_address = sub.value;
		else if (sub.tag == PB_TAG(6, PB_BYTES) || sub.tag == PB_TAG(7, PB_BYTES))
			read_place(&file, &sub);
	}
	if (r.problem || file.kind > FILE_UNKNOWN) {
		perf_note_bad(f);
		return OW_OK;
	}
	OW_TRY(begin_file(f, &file, &module));
	while (pb_next(&again, &sub))
		if (sub.tag == PB_TAG(4, PB_BYTES))
			OW_TRY(read_new_symbol(f, module, &sub));
	return OW_OK;
}

static ow_status read_files(struct perf_file *f, struct perf_bytes b, bool old)
{
	while (b.end - b.at >= 4) {
		uint32_t len = perf_take_u32(&b);
		struct perf_bytes one = { b.at, b.at, f->swap, false };

		if (len > (size_t)(b.end - b.at)) {
			perf_note_bad(f);
			break;
		}
		one.end += len;
		b.at += len;
		OW_TRY(old ? read_old_file(f, one) : read_new_file(f, one));
	}
	perf_names_given_done(&f->names);
	return OW_OK;
}

/* ---- META_INFO ---- */

/* "cpu-clock,1,0": a name, and the type and number of the event. */
static void name_events(struct perf_file *f, struct str lines)
{
	struct str line;

	while (str_split(&lines, '\n', &line)) {
		size_t last = str_rfind_char(line, ','), first;
		int64_t type, config;

		first = last == STR_NONE ? last : str_rfind_char(str_first(line, last), ',');
		if (first == STR_NONE || !first || !str_to_i64(str_skip(line, last + 1), &config) ||
		    !str_to_i64(str_skip(str_first(line, last), first + 1), &type))
			continue;
		for (size_t i = 0; i < f->event_count; i++)
			if (f->events[i].attr.type == (uint64_t)type &&
			    f->events[i].attr.config == (uint64_t)config && !f->events[i].name.v)
				f->events[i].name = builder_str(f->b, str_first(line, first));
	}
}

/* Pairs of texts. The rest of them tells about the device, and is not kept. */
static void read_meta(struct perf_file *f, struct perf_bytes b)
{
	while (b.at < b.end && !b.bad) {
		struct str key = perf_take_text(&b), value = perf_take_text(&b);

		if (str_eq(key, STR("event_type_info")))
			name_events(f, value);
		else if (str_eq(key, STR("simpleperf_version")))
			f->b->m->source.producer[f->b->source.v] = builder_cstr(f->b, "simpleperf");
	}
}

ow_status perf_simple_feature(struct perf_file *f, uint64_t feature, struct perf_bytes b)
{
	if (feature == FEATURE_FILE || feature == FEATURE_FILE2)
		return read_files(f, b, feature == FEATURE_FILE);
	if (feature == FEATURE_META_INFO)
		read_meta(f, b);
	return f->b->status;
}

/* ---- records ---- */

ow_status perf_simple_record(struct perf_file *f, uint32_t type, struct perf_bytes b)
{
	uint64_t count;

	if (type != RECORD_EVENT_ID)
		return OW_OK;
	count = perf_take_u64(&b);
	for (uint64_t i = 0; i < count; i++) {
		uint64_t event = perf_take_u64(&b), id = perf_take_u64(&b);

		if (b.bad)
			break;
		if (event < f->event_count)
			OW_TRY(perf_event_id(f, (uint32_t)event, id));
	}
	return OW_OK;
}
