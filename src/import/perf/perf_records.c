/*
 * perf_records.c: decodes the records and features of perf.data, including those that only simpleperf, Android's perf,
 * writes: tables of symbols from the device (FILE, and FILE2 as protocol buffers), names of events (META_INFO) and ids
 * of events. Compressed records are one stream of zstd over the whole file: only the first begins a frame, and
 * uncompressed bytes may end inside a record. Called by import_perf_data.c. Samples go to perf_samples.c, switches to
 * perf_resolve.c.
 */
#include "opwatch_config.h"

#include "base/vec.h"
#include "import/perf/perf_data.h"

#include "wire/protobuf/pb.h"

#include <sys/sysmacros.h>
#if OPWATCH_HAVE_ZSTD
#include <zstd.h>
#endif

enum { FEATURE_FILE = 128, FEATURE_META_INFO = 129, FEATURE_FILE2 = 132 };
enum { FILE_KERNEL, FILE_KERNEL_MODULE, FILE_ELF, FILE_DEX, FILE_SYMBOL_MAP, FILE_UNKNOWN };
enum { RECORD_EVENT_ID = PERF_SIMPLE_FIRST + 5 };

/* The header of a file's table of symbols. */
struct simple_file {
	struct str path;
	uint32_t kind;
	uint64_t min_address;
	/* Offset of min_address in the file, or in the memory of a module; UINT64_MAX = unknown. */
	uint64_t min_offset;
};

/* The conversion from addresses of the process to those of the table. */
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

static ow_status add_given_symbol(struct perf_file *f, str_id module, uint64_t start, uint64_t len,
				  struct str name)
{
	if (!name.len || len > UINT64_MAX - start)
		return OW_OK;
	return perf_names_given_symbol(&f->names, module, start, start + len, name)
		       ? f->b->status
		       : import_no_memory(f->ctx);
}

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
	for (uint32_t i = 0; i < count && !b.bad; i++) { /* the meaning of the table follows it */
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

		OW_TRY(add_given_symbol(f, module, start, len, perf_take_text(&symbols)));
	}
	return OW_OK;
}

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
	return r.problem ? OW_OK : add_given_symbol(f, module, start, len, name);
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

/* Reads names of events, "cpu-clock,1,0": a name, and the type and number of the event. */
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

/* Reads META_INFO, pairs of texts; those that describe the device are not kept. */
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

static ow_status perf_simple_feature(struct perf_file *f, uint64_t feature, struct perf_bytes b)
{
	if (feature == FEATURE_FILE || feature == FEATURE_FILE2)
		return read_files(f, b, feature == FEATURE_FILE);
	if (feature == FEATURE_META_INFO)
		read_meta(f, b);
	return f->b->status;
}

static ow_status perf_simple_record(struct perf_file *f, uint32_t type, struct perf_bytes b)
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

#define MISC_MODE 7
#define MISC_KERNEL 1
#define MISC_MMAP_BUILD_ID (1 << 14)
#define MISC_BUILD_ID_SIZE (1 << 15)
#define CHUNK ((size_t)128 << 10)

enum {
	FEATURE_BUILD_ID = 2,
	FEATURE_HOST = 3,
	FEATURE_RELEASE = 4,
	FEATURE_EVENT_DESC = 12,
	FEATURE_CLOCK_DATA = 29
};
enum { UPDATE_NAME = 2 };

void perf_records_init(struct perf_file *f)
{
	map_init(&f->ids, f->mem);
	buf_init(&f->unpacked, f->mem);
	perf_space_init(&f->space, f->b);
	perf_names_init(&f->names, f->b);
	f->names.recorded = f->ctx->in->mtime;
}

void perf_records_release(struct perf_file *f)
{
#if OPWATCH_HAVE_ZSTD
	ZSTD_freeDCtx(f->zstd);
#endif
	buf_release(&f->unpacked);
	perf_space_release(&f->space);
	perf_names_release(&f->names);
	map_release(&f->ids);
	mem_free(f->mem, f->events, f->event_cap * sizeof(*f->events));
	mem_free(f->mem, f->changes, f->change_cap * sizeof(*f->changes));
}

void perf_note_bad(struct perf_file *f)
{
	f->bad_offset = f->bad++ ? f->bad_offset : f->at;
}

ow_status perf_event_add(struct perf_file *f, const unsigned char *attr, size_t len,
			 uint32_t *event)
{
	if (f->event_count >= PERF_EVENTS_MAX)
		return error_at(
			f->ctx->err, OW_E_LIMIT, f->at,
			"%s: the recording has more than %d events, which is the limit; record "
			"fewer events at once (-e, --cgroup), or open the output of 'perf script'",
			f->ctx->in->name, PERF_EVENTS_MAX);
	if (!vec_reserve(f->mem, f->events, f->event_cap, f->event_count + 1))
		return import_no_memory(f->ctx);
	*event = (uint32_t)f->event_count;
	f->events[f->event_count] = (struct perf_event){ 0 };
	perf_attr_parse(attr, len, f->swap, &f->events[f->event_count++].attr);
	return OW_OK;
}

ow_status perf_event_id(struct perf_file *f, uint32_t event, uint64_t id)
{
	return map_add(&f->ids, map_hash_u64(id, 31), event + 1) ? OW_OK : import_no_memory(f->ctx);
}

/* The event of an id; among so few ids, 64-bit hashes do not collide. */
uint32_t perf_event_of(const struct perf_file *f, uint64_t id, uint32_t otherwise)
{
	uint32_t found = map_find(&f->ids, map_hash_u64(id, 31)).value;

	return found && found <= f->event_count ? found - 1 : otherwise;
}

static ow_status read_attr(struct perf_file *f, const unsigned char *p, size_t size)
{
	uint32_t own = size >= 8 ? perf_u32(p + 4, f->swap) : 0, event = 0;

	if (own < 64 || own > size) {
		perf_note_bad(f);
		return OW_OK;
	}
	OW_TRY(perf_event_add(f, p, own, &event));
	for (size_t at = own; at + 8 <= size; at += 8)
		OW_TRY(perf_event_id(f, event, perf_u64(p + at, f->swap)));
	return OW_OK;
}

static void read_update(struct perf_file *f, struct perf_bytes body)
{
	uint64_t type = perf_take_u64(&body), id = perf_take_u64(&body);
	uint32_t event = perf_event_of(f, id, 0);

	if (type == UPDATE_NAME && event < f->event_count && !body.bad)
		f->events[event].name = builder_str(f->b, perf_take_text(&body));
}

static ow_status read_event_desc(struct perf_file *f, struct perf_bytes b)
{
	uint32_t count = perf_take_u32(&b), attr_size = perf_take_u32(&b);

	for (uint32_t i = 0; i < count && !b.bad; i++) {
		const unsigned char *attr = b.at;
		uint32_t ids, len, event = i;
		struct str name;

		if (attr_size < 64 || attr_size > (size_t)(b.end - b.at))
			break;
		b.at += attr_size;
		ids = perf_take_u32(&b);
		len = perf_take_u32(&b);
		if (b.bad || len > (size_t)(b.end - b.at))
			break;
		name = str_make((const char *)b.at, strnlen((const char *)b.at, len));
		b.at += len;
		if (i >= f->event_count)
			OW_TRY(perf_event_add(f, attr, attr_size, &event));
		for (uint32_t k = 0; k < ids && !b.bad; k++) {
			uint64_t id = perf_take_u64(&b);

			if (b.bad)
				break;
			event = perf_event_of(f, id, event);
			if (!map_find(&f->ids, map_hash_u64(id, 31)).value)
				OW_TRY(perf_event_id(f, event, id));
		}
		f->events[event].name = builder_str(f->b, name);
	}
	return OW_OK;
}

/* Reads the same moment on the wall clock and on perf's clock. */
static void read_clock(struct perf_file *f, struct perf_bytes b)
{
	uint32_t version = perf_take_u32(&b);
	uint64_t wall, clock;

	(void)perf_take_u32(&b);
	wall = perf_take_u64(&b);
	clock = perf_take_u64(&b);
	if (b.bad || version != 1)
		return;
	f->clock_offset = (int64_t)(wall - clock);
	f->has_clock = true;
}

/* Reads a build id: the process, the id with its length (20 if it is missing), the name. */
static ow_status read_build_id(struct perf_file *f, struct perf_bytes b, uint16_t misc)
{
	const unsigned char *id;
	struct str name;
	size_t len;

	(void)perf_take_u32(&b);
	id = b.at;
	for (int i = 0; i < 6; i++)
		(void)perf_take_u32(&b);
	if (b.bad)
		return OW_OK;
	len = misc & MISC_BUILD_ID_SIZE ? MIN(id[20], 20) : 20;
	name = perf_take_text(&b);
	if (str_starts(name, STR("[kernel.kallsyms]")))
		perf_names_kernel_id(&f->names, id, len);
	else if (!perf_names_id(&f->names, builder_str(f->b, name), id, len))
		return import_no_memory(f->ctx);
	return f->b->status;
}

static ow_status read_build_ids(struct perf_file *f, struct perf_bytes b)
{
	while (b.end - b.at >= 36) {
		uint16_t size = perf_u16(b.at + 6, f->swap);
		struct perf_bytes one = { b.at + 8, b.at + size, f->swap, false };

		if (size < 36 || size > b.end - b.at)
			break;
		OW_TRY(read_build_id(f, one, perf_u16(b.at + 4, f->swap)));
		b.at += size;
	}
	return OW_OK;
}

static void read_text(struct perf_bytes *b, char *to, size_t size)
{
	struct str text;

	(void)perf_take_u32(b);
	text = perf_take_text(b);
	snprintf(to, size, "%.*s", (int)MIN(text.len, size - 1), text.ptr);
}

ow_status perf_feature_read(struct perf_file *f, uint64_t feature, const unsigned char *p,
			    size_t size)
{
	struct perf_bytes b = { p, p + size, f->swap, false };

	if (feature == FEATURE_EVENT_DESC)
		return read_event_desc(f, b);
	if (feature == FEATURE_BUILD_ID)
		return read_build_ids(f, b);
	/* the host name is only compared with this host, never stored */
	if (feature == FEATURE_HOST)
		read_text(&b, f->names.host, sizeof(f->names.host));
	if (feature == FEATURE_RELEASE)
		read_text(&b, f->names.release, sizeof(f->names.release));
	if (feature == FEATURE_CLOCK_DATA)
		read_clock(f, b);
	return perf_simple_feature(f, feature, b);
}

static ow_status add_change(struct perf_file *f, const struct perf_change *change)
{
	if (!vec_push(f->mem, f->changes, f->change_count, f->change_cap, *change))
		return import_no_memory(f->ctx);
	return f->b->status;
}

/* The time of a record that is not a sample. Records that perf itself generated have none: they come first. */
static uint64_t time_of(const struct perf_file *f, const unsigned char *body, size_t size)
{
	return f->event_count ? perf_trailer_of(&f->events[0].attr, body, size, f->swap).time : 0;
}

/* The name of a module: "[kernel.kallsyms]_text" is the kernel; /lib/modules/…/x-y.ko is [x_y]. */
static str_id module_name(struct perf_file *f, struct str name, bool kernel)
{
	size_t end = str_find_char(name, ']'), slash = str_rfind_char(name, '/');
	size_t dot = str_find(name, STR(".ko"));
	char text[256];
	int len;

	if (!kernel)
		return builder_str(f->b, name);
	if (str_starts(name, STR("[kernel.kallsyms]")) ||
	    str_starts(name, STR("[guest.kernel.kallsyms]")))
		return builder_str(f->b, str_first(name, end + 1));
	if (dot == STR_NONE || slash == STR_NONE || dot <= slash)
		return builder_str(f->b, name);
	len = snprintf(text, sizeof(text), "[%.*s]", (int)MIN(dot - slash - 1, 250),
		       name.ptr + slash + 1);
	for (int i = 0; i < len; i++)
		text[i] = text[i] == '-' ? '_' : text[i];
	return builder_str(f->b, str_make(text, (size_t)len));
}

/* Whether a mapping is memory without a file: perf looks for its functions in /tmp/perf-PID.map. */
static bool is_anonymous(struct str name)
{
	static const char *const starts[] = { "//anon", "/dev/zero", "/anon_hugepage", "[heap]",
					      "[stack", "/SYSV",     "anon_inode:",    "[anon" };

	for (size_t i = 0; i < ARRAY_COUNT(starts); i++)
		if (str_starts(name, str_from(starts[i])))
			return true;
	return false;
}

static str_id jit_name(struct perf_file *f, int32_t pid)
{
	char text[48];

	snprintf(text, sizeof(text), "/tmp/perf-%d.map", (int)pid);
	return builder_cstr(f->b, text);
}

static ow_status read_map(struct perf_file *f, struct perf_bytes b, uint16_t misc, bool second,
			  uint64_t time)
{
	struct perf_change c = { .kind = CHANGE_MAP, .time = time };
	bool kernel = (misc & MISC_MODE) == MISC_KERNEL;
	const unsigned char *id;
	struct str name;
	uint64_t len;

	c.pid = (int32_t)perf_take_u32(&b);
	c.tid = (int32_t)perf_take_u32(&b);
	c.map.start = perf_take_u64(&b);
	len = perf_take_u64(&b);
	c.map.pgoff = perf_take_u64(&b);
	id = b.at;
	/* skips device and inode, or the build id, and the protection */
	for (int i = 0; second && i < 4; i++)
		(void)perf_take_u64(&b);
	if (b.bad) {
		perf_note_bad(f);
		return OW_OK;
	}
	kernel = kernel || c.pid == PERF_KERNEL_PID;
	name = perf_take_text(&b);
	c.map.end = c.map.start + MIN(len, UINT64_MAX - c.map.start);
	c.map.jit = !kernel && is_anonymous(name);
	c.map.name = c.map.jit ? jit_name(f, c.pid) : module_name(f, name, kernel);
	if (kernel && str_eq(name, STR("[kernel.kallsyms]_text")))
		f->names.kernel.text_at = c.map.pgoff;
	if (second && misc & MISC_MMAP_BUILD_ID && kernel)
		perf_names_kernel_id(&f->names, id + 4, MIN(id[0], 20));
	else if (second && misc & MISC_MMAP_BUILD_ID &&
		 !perf_names_id(&f->names, c.map.name, id + 4, MIN(id[0], 20)))
		return import_no_memory(f->ctx);
	if (second && !(misc & MISC_MMAP_BUILD_ID) && !kernel && !c.map.jit) {
		c.map.device = makedev(perf_u32(id, f->swap), perf_u32(id + 4, f->swap));
		c.map.inode = perf_u64(id + 8, f->swap);
		if (!perf_names_place(&f->names, &c.map))
			return import_no_memory(f->ctx);
	}
	if ((misc & MISC_MODE) == MISC_KERNEL)
		c.pid = PERF_KERNEL_PID;
	return add_change(f, &c);
}

static ow_status read_comm(struct perf_file *f, struct perf_bytes b, uint64_t time)
{
	struct perf_change c = { .kind = CHANGE_COMM, .time = time };

	c.pid = (int32_t)perf_take_u32(&b);
	c.tid = (int32_t)perf_take_u32(&b);
	c.map.name = builder_str(f->b, perf_take_text(&b));
	return add_change(f, &c);
}

static ow_status read_fork(struct perf_file *f, struct perf_bytes b)
{
	struct perf_change c = { .kind = CHANGE_FORK };

	c.pid = (int32_t)perf_take_u32(&b);
	c.parent_pid = (int32_t)perf_take_u32(&b);
	c.tid = (int32_t)perf_take_u32(&b);
	c.parent_tid = (int32_t)perf_take_u32(&b);
	c.time = perf_take_u64(&b);
	return b.bad ? OW_OK : add_change(f, &c);
}

static ow_status read_symbol(struct perf_file *f, struct perf_bytes b)
{
	uint64_t start = perf_take_u64(&b);
	uint32_t len = perf_take_u32(&b);

	(void)perf_take_u32(&b); /* type and flags */
	if (b.bad)
		return OW_OK;
	return perf_space_symbol(&f->space, start, len, builder_str(f->b, perf_take_text(&b)))
		       ? f->b->status
		       : import_no_memory(f->ctx);
}

#if OPWATCH_HAVE_ZSTD

/* Reads the complete records in the uncompressed bytes; the beginning of the last one stays in the buffer. */
static ow_status read_unpacked(struct perf_file *f)
{
	const unsigned char *p = (const unsigned char *)f->unpacked.ptr;
	size_t at = 0;

	while (at + 8 <= f->unpacked.len) {
		uint16_t size = perf_u16(p + at + 6, f->swap);

		if (size < 8) {
			perf_note_bad(f);
			at = f->unpacked.len;
			break;
		}
		if (size > f->unpacked.len - at)
			break;
		OW_TRY(perf_record_read(f, p + at, size, false));
		at += size;
	}
	if (!perf_chains_finish(f))
		return import_no_memory(f->ctx);
	if (at)
		memmove(f->unpacked.ptr, f->unpacked.ptr + at, f->unpacked.len - at);
	f->unpacked.len -= at;
	return OW_OK;
}

static ow_status read_compressed(struct perf_file *f, const unsigned char *p, size_t size)
{
	ZSTD_inBuffer from = { p, size, 0 };
	bool full = true;

	if (!f->zstd)
		f->zstd = ZSTD_createDCtx();
	if (!f->zstd)
		return import_no_memory(f->ctx);
	while (!f->zstd_failed && (from.pos < from.size || full)) {
		ZSTD_outBuffer to;
		size_t status;

		if (!buf_reserve(&f->unpacked, CHUNK))
			return import_no_memory(f->ctx);
		to = (ZSTD_outBuffer){ f->unpacked.ptr + f->unpacked.len, CHUNK, 0 };
		status = ZSTD_decompressStream(f->zstd, &to, &from);
		if (ZSTD_isError(status)) {
			f->zstd_failed = true;
			builder_note(f->b, NOTE_DAMAGED, f->at,
				     "compressed records cannot be unpacked from here on: %s",
				     ZSTD_getErrorName(status));
		}
		f->unpacked.len += to.pos;
		full = to.pos == to.size;
		OW_TRY(read_unpacked(f));
		if (!to.pos && from.pos == from.size)
			break;
	}
	return f->b->status;
}

#else

static ow_status read_compressed(struct perf_file *f, const unsigned char *p, size_t size)
{
	(void)p;
	(void)size;
	if (!f->zstd_failed)
		builder_note(
			f->b, NOTE_DROPPED, f->at,
			"compressed records are left out: this opwatch was built without zstd");
	f->zstd_failed = true;
	return OW_OK;
}

#endif

static ow_status read_compressed2(struct perf_file *f, const unsigned char *p, size_t size)
{
	uint64_t len = size >= 8 ? perf_u64(p, f->swap) : 0;

	if (size < 8 || len > size - 8) {
		perf_note_bad(f);
		return OW_OK;
	}
	return read_compressed(f, p + 8, (size_t)len);
}

ow_status perf_record_read(struct perf_file *f, const unsigned char *p, size_t size, bool top)
{
	uint32_t type = perf_u32(p, f->swap);
	uint16_t misc = perf_u16(p + 4, f->swap);
	const unsigned char *body = p + 8;
	struct perf_bytes b = { body, p + size, f->swap, false };
	struct perf_trailer who;
	uint64_t records = 0;
	size_t used = 0;

	if (top && type < PERF_TYPES)
		f->records[type]++;
	switch (type) {
	case PERF_SAMPLE:
		return perf_samples_read(f, p, size, &used, &records);
	case PERF_MMAP:
	case PERF_MMAP2:
		return read_map(f, b, misc, type == PERF_MMAP2, time_of(f, body, size - 8));
	case PERF_COMM:
		return read_comm(f, b, time_of(f, body, size - 8));
	case PERF_FORK:
		return read_fork(f, b);
	case PERF_KSYMBOL:
		return read_symbol(f, b);
	case PERF_HEADER_BUILD_ID:
		return read_build_id(f, b, misc);
	case PERF_READ:
	case PERF_SWITCH:
	case PERF_SWITCH_CPU_WIDE:
		if (!f->event_count)
			return OW_OK;
		who = perf_trailer_of(&f->events[0].attr, body, size - 8, f->swap);
		return type == PERF_READ ? perf_count_read(f, b, &who)
					 : perf_switch_read(f, &who, misc);
	case PERF_LOST:
		(void)perf_take_u64(&b);
		f->lost += perf_take_u64(&b);
		return OW_OK;
	case PERF_LOST_SAMPLES:
		f->lost += perf_take_u64(&b);
		return OW_OK;
	case PERF_HEADER_ATTR:
		return read_attr(f, body, size - 8);
	case PERF_EVENT_UPDATE:
		read_update(f, b);
		return f->b->status;
	case PERF_HEADER_FEATURE:
		if (size < 16)
			return OW_OK;
		return perf_feature_read(f, perf_u64(body, f->swap), body + 8, size - 16);
	case PERF_COMPRESSED:
		return top ? read_compressed(f, body, size - 8) : OW_OK;
	case PERF_COMPRESSED2:
		return top ? read_compressed2(f, body, size - 8) : OW_OK;
	default:
		if (perf_is_simple(type))
			return perf_simple_record(f, type, b);
		f->unknown += !perf_type_name(type);
		return OW_OK;
	}
}
