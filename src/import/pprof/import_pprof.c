/*
 * import_pprof.c: the importer of profile.proto, which `go tool pprof` and many profilers write (gzip is undone
 * before). The first pass reads tables of functions, locations and strings, the second one makes rows of samples. Each
 * value of a sample is a separate metric. The format has no times of samples. Frames that match its drop_frames are
 * left out, as in pprof.
 */
#include "import/importer.h"
#include "import/common/function_name.h"
#include "import/common/stack_cache.h"

#include "base/vec.h"
#include "base/buf.h"
#include "base/regex/regex.h"
#include "wire/protobuf/pb.h"

#define PPROF_FRAMES_MAX 8192
#define PPROF_TYPES_MAX 64

/* drop_frames and keep_frames of a profile: patterns of functions that belong to the profiler itself. */
struct pprof_prune {
	struct regex_list drop, keep;
	bool active;  /* there is a pattern of frames to drop */
	bool invalid; /* a pattern is invalid: nothing is dropped */
};

/* In all tables the id is the first field: see find_item. */
struct pprof_function {
	uint64_t id;
	uint64_t name, file;
	int64_t line;
	enum { UNKNOWN, KEPT, DROPPED } fate;
};

struct pprof_mapping {
	uint64_t id, file;
};

struct pprof_location {
	uint64_t id, mapping, address;
	const uint8_t *lines; /* the whole encoded message; its lines are decoded when needed */
	size_t size;
	uint32_t frame_first,
		/* range in location_frames, the innermost first; none until the location is used */
		frame_count;
	/* number of inner lines that are dropped, and so are not frames of the location */
	uint32_t dropped;
	bool drops; /* all lines are dropped or kept, depending on the callers */
};

/* A sequence of encoded locations, and the stack that results from calling them from `parent`. */
struct pprof_run {
	uint64_t bytes;
	uint32_t parent, stack; /* stack 0: the entry is empty */
};

/* A whole encoded list of a sample's locations, and its stack. */
struct pprof_known {
	const uint8_t *ptr;
	uint16_t len, tag; /* tag: some bits of the hash, tested before following ptr */
	uint32_t stack;	   /* 0: the entry is empty */
};

#define RUN_SLOTS 65536u
#define KNOWN_SLOTS 65536u
#define LABEL_SLOTS 4096u

struct pprof_label {
	const uint8_t *ptr; /* encoded labels of a sample in the file */
	size_t len;
	str_id text;
};

struct pprof_list {
	void *items;
	size_t count, cap;
	struct map by_id; /* id → 1 + index of the item */
	uint32_t *direct; /* the same for ids below direct_count, which includes nearly all */
	size_t direct_count;
};

struct pprof_file {
	struct import_ctx *ctx;
	struct builder *b;
	struct mem *mem;
	const uint8_t *bytes;
	size_t size;
	struct str *strings;
	size_t string_count, string_cap;
	struct pprof_list functions, mappings, locations;
	struct {
		uint64_t type, unit;
	} types[PPROF_TYPES_MAX];
	size_t type_count;
	metric_id metrics[PPROF_TYPES_MAX];
	int64_t scale[PPROF_TYPES_MAX], sums[PPROF_TYPES_MAX];
	uint64_t default_type, drop_frames, keep_frames;
	struct pprof_prune prune;
	struct {
		uint32_t first; /* index of the location's first frame */
		bool drops, drops_beneath;
	} parts[PPROF_FRAMES_MAX]; /* locations of the current sample */
	uint32_t part_count;
	bool drops; /* some location drops frames */
	frame_id *location_frames;
	size_t location_frame_count, location_frame_cap;
	uint32_t most_lines; /* largest number of lines of a location */
	struct stack_cache recent;
	struct pprof_run runs[RUN_SLOTS];
	struct pprof_known known[KNOWN_SLOTS];
	struct pprof_label labels[LABEL_SLOTS];
	uint64_t pruned;
	int64_t time, duration, period;
	uint64_t samples, bad, cut;
	frame_id frames[PPROF_FRAMES_MAX];
	track_id track;
	struct buf label;
};

static struct str text_at(const struct pprof_file *p, uint64_t index)
{
	return index < p->string_count ? p->strings[index] : STR("");
}

static void note_invalid(void *arg, struct str pattern, const char *why)
{
	struct pprof_prune *p = arg;

	(void)pattern;
	(void)why;
	p->invalid = true;
}

static ow_status compile_pattern(struct pprof_prune *p, struct regex_list *list, struct mem *mem,
				 struct str text, struct ow_error *err)
{
	const char *pattern;
	ow_status status;
	struct buf copy;

	buf_init(&copy, mem);
	buf_add_str(&copy, text);
	pattern = buf_cstr(&copy);
	if (pattern)
		status = regex_list_init(list, mem, &pattern, 1, note_invalid, p, err);
	else
		status = error_no_memory(err);
	buf_release(&copy);
	return status;
}

/* Compiles the patterns; either text may be empty. Fails only if memory runs out; the caller releases p in any case. */
static ow_status pprof_prune_init(struct pprof_prune *p, struct mem *mem, struct str drop,
				  struct str keep, struct ow_error *err)
{
	*p = (struct pprof_prune){ .drop.mem = mem, .keep.mem = mem };
	if (!drop.len)
		return OW_OK;
	OW_TRY(compile_pattern(p, &p->drop, mem, drop, err));
	if (keep.len)
		OW_TRY(compile_pattern(p, &p->keep, mem, keep, err));
	p->active = !p->invalid;
	return OW_OK;
}

/* The name up to its parameters; "(anonymous namespace)" and "operator()" belong to it. */
static struct str plain_name(struct str name)
{
	static const char space[] = "(anonymous namespace)";

	if (str_starts(name, STR(".")))
		name = str_skip(name, 1);
	for (size_t i = 0; i < name.len; i++) {
		struct str rest = str_skip(name, i);

		if (name.ptr[i] != '(')
			continue;
		if (str_starts(rest, str_from(space)))
			i += sizeof(space) - 2;
		else if (str_starts(rest, STR("()")) &&
			 str_ends(str_first(name, i), STR("operator")))
			i++;
		else
			return str_first(name, i);
	}
	return name;
}

/* Whether to drop a function of this name and everything that it calls. Parameters are ignored. */
static bool pprof_prune_drops(struct pprof_prune *p, struct str function)
{
	if (!p->active || !function.len)
		return false;
	function = plain_name(function);
	return regex_match(&p->drop, function) && !regex_match(&p->keep, function);
}

static void *add_item(struct pprof_file *p, struct pprof_list *list, uint64_t id, size_t size)
{
	if (list->count >= UINT32_MAX - 1 ||
	    !mem_grow(p->mem, &list->items, &list->cap, list->count + 1, size) ||
	    !map_add(&list->by_id, map_hash_u64(id, 41), (uint32_t)list->count + 1))
		return NULL;
	return (char *)list->items + list->count++ * size;
}

/* The item with an id, of `size` bytes, or NULL. Ids are arbitrary numbers. */
static void *find_item(const struct pprof_list *list, uint64_t id, size_t size)
{
	if (OW_LIKELY(id < list->direct_count && list->direct[id]))
		return (char *)list->items + (size_t)(list->direct[id] - 1) * size;
	for (struct map_iter it = map_find(&list->by_id, map_hash_u64(id, 41)); it.value;
	     it = map_next(&list->by_id, it)) {
		char *item = (char *)list->items + (it.value - 1) * size;

		if (*(const uint64_t *)(const void *)item == id)
			return item;
	}
	return NULL;
}

/* Makes the array `direct`, if the ids are not much larger than their count. The first item with an id wins, as in
 * find_item. */
static bool index_items(struct pprof_file *p, struct pprof_list *list, size_t size)
{
	list->direct_count = list->count * 2 + 64;
	list->direct = mem_zalloc(p->mem, list->direct_count * sizeof(*list->direct));
	if (!list->direct) {
		list->direct_count = 0;
		return false;
	}
	for (size_t i = list->count; i--;) {
		uint64_t id = *(const uint64_t *)(const void *)((char *)list->items + i * size);

		if (id < list->direct_count)
			list->direct[id] = (uint32_t)i + 1;
	}
	return true;
}

static ow_status read_string(struct pprof_file *p, struct str text)
{
	if (!vec_push(p->mem, p->strings, p->string_count, p->string_cap, text))
		return import_no_memory(p->ctx);
	return OW_OK;
}

static void read_type(struct pprof_file *p, const struct pb_field *f)
{
	struct pb r = pb_message(f);
	struct pb_field sub;

	if (p->type_count == PPROF_TYPES_MAX)
		return;
	while (pb_next(&r, &sub)) {
		if (sub.tag == PB_TAG(1, PB_VARINT))
			p->types[p->type_count].type = sub.value;
		else if (sub.tag == PB_TAG(2, PB_VARINT))
			p->types[p->type_count].unit = sub.value;
	}
	p->type_count++;
}

/* Reads the varint fields 1…7 of a message. */
static void read_numbers(const struct pb_field *f, uint64_t numbers[8])
{
	struct pb r = pb_message(f);
	struct pb_field sub;

	memset(numbers, 0, 8 * sizeof(*numbers));
	while (pb_next(&r, &sub))
		if ((sub.tag & 7) == PB_VARINT && sub.tag >> 3 < 8)
			numbers[sub.tag >> 3] = sub.value;
}

static ow_status read_table(struct pprof_file *p, const struct pb_field *f)
{
	uint64_t n[8];

	read_numbers(f, n);
	if (f->tag == PB_TAG(3, PB_BYTES)) {
		struct pprof_mapping *m = add_item(p, &p->mappings, n[1], sizeof(*m));

		if (!m)
			return import_no_memory(p->ctx);
		*m = (struct pprof_mapping){ n[1], n[5] };
	} else if (f->tag == PB_TAG(4, PB_BYTES)) {
		struct pprof_location *l = add_item(p, &p->locations, n[1], sizeof(*l));

		if (!l)
			return import_no_memory(p->ctx);
		*l = (struct pprof_location){ .id = n[1],
					      .mapping = n[2],
					      .address = n[3],
					      .lines = f->ptr,
					      .size = (size_t)f->value };
	} else {
		struct pprof_function *fn = add_item(p, &p->functions, n[1], sizeof(*fn));

		if (!fn)
			return import_no_memory(p->ctx);
		*fn = (struct pprof_function){
			.id = n[1], .name = n[2] ? n[2] : n[3], .file = n[4], .line = (int64_t)n[5]
		};
	}
	return OW_OK;
}

/* Reads everything but the samples, which it counts. */
static ow_status pprof_tables_read(struct pprof_file *p)
{
	struct pb r = pb_over(p->bytes, p->size);
	struct pb_field f;

	while (pb_next(&r, &f)) {
		switch (f.tag) {
		case PB_TAG(1, PB_BYTES):
			read_type(p, &f);
			break;
		case PB_TAG(2, PB_BYTES):
			p->samples++;
			break;
		case PB_TAG(3, PB_BYTES):
		case PB_TAG(4, PB_BYTES):
		case PB_TAG(5, PB_BYTES):
			OW_TRY(read_table(p, &f));
			break;
		case PB_TAG(6, PB_BYTES):
			OW_TRY(read_string(p, pb_str(&f)));
			break;
		case PB_TAG(7, PB_VARINT):
			p->drop_frames = f.value;
			break;
		case PB_TAG(8, PB_VARINT):
			p->keep_frames = f.value;
			break;
		case PB_TAG(9, PB_VARINT):
			p->time = (int64_t)f.value;
			break;
		case PB_TAG(10, PB_VARINT):
			p->duration = (int64_t)f.value;
			break;
		case PB_TAG(12, PB_VARINT):
			p->period = (int64_t)f.value;
			break;
		case PB_TAG(14, PB_VARINT):
			p->default_type = f.value;
			break;
		default:
			break;
		}
	}
	if (r.problem)
		builder_note(p->b, NOTE_TRUNCATED, (uint64_t)(r.at - p->bytes),
			     "the profile is cut or damaged here; only what comes before is used");
	return OW_OK;
}

static void pprof_tables_init(struct pprof_file *p)
{
	map_init(&p->functions.by_id, p->mem);
	map_init(&p->mappings.by_id, p->mem);
	map_init(&p->locations.by_id, p->mem);
}

static void pprof_tables_release(struct pprof_file *p)
{
	struct pprof_list *const lists[] = { &p->functions, &p->mappings, &p->locations };

	mem_free(p->mem, p->strings, p->string_cap * sizeof(*p->strings));
	mem_free(p->mem, p->functions.items, p->functions.cap * sizeof(struct pprof_function));
	mem_free(p->mem, p->mappings.items, p->mappings.cap * sizeof(struct pprof_mapping));
	mem_free(p->mem, p->locations.items, p->locations.cap * sizeof(struct pprof_location));
	mem_free(p->mem, p->location_frames, p->location_frame_cap * sizeof(*p->location_frames));
	for (size_t i = 0; i < ARRAY_COUNT(lists); i++) {
		struct pprof_list *list = lists[i];

		mem_free(p->mem, list->direct, list->direct_count * sizeof(*list->direct));
		map_release(&list->by_id);
	}
}

static frame_id frame_of(struct pprof_file *p, const struct pprof_location *l, uint64_t function,
			 int64_t line, bool inlined)
{
	const struct pprof_function *fn =
		find_item(&p->functions, function, sizeof(struct pprof_function));
	const struct pprof_mapping *m =
		find_item(&p->mappings, l->mapping, sizeof(struct pprof_mapping));
	struct frame_row row = { 0 };

	if (fn) {
		row.function = function_name(p->b, text_at(p, fn->name));
		row.file = builder_str(p->b, text_at(p, fn->file));
		row.function_line = (int32_t)MAX(MIN(fn->line, INT32_MAX), 0);
	}
	row.line = (int32_t)MAX(MIN(line, INT32_MAX), 0);
	if (m)
		row.module = builder_str(p->b, text_at(p, m->file));
	if (!fn || !row.function.v)
		row.address = l->address;
	row.flags = inlined ? FRAME_INLINED : 0;
	return builder_frame(p->b, &row);
}

static bool is_dropped(struct pprof_file *p, uint64_t id)
{
	struct pprof_function *fn = find_item(&p->functions, id, sizeof(struct pprof_function));

	if (!fn)
		return false;
	if (fn->fate == UNKNOWN)
		fn->fate = pprof_prune_drops(&p->prune, text_at(p, fn->name)) ? DROPPED : KEPT;
	return fn->fate == DROPPED;
}

/* Counts the lines of a location in *all; returns how many of them to drop, from the innermost to the outermost that
 * matches. */
static uint32_t count_lines(struct pprof_file *p, const struct pprof_location *l, uint32_t *all)
{
	struct pb r = pb_over(l->lines, l->size);
	uint32_t dropped = 0;
	struct pb_field f;

	*all = 0;
	while (pb_next(&r, &f)) {
		uint64_t n[8];

		if (f.tag != PB_TAG(4, PB_BYTES))
			continue;
		++*all;
		if (!p->prune.active)
			continue;
		read_numbers(&f, n);
		if (is_dropped(p, n[1]))
			dropped = *all;
	}
	return dropped;
}

/* The first frame that is kept. From the root on, the first location that matches is dropped, with everything that
 * it calls. Locations before the first that does not match are kept, so a stack is never empty. */
static uint32_t first_kept(struct pprof_file *p, uint32_t frames)
{
	bool found = false;

	for (uint32_t i = p->part_count; i--;) {
		uint32_t end = i + 1 < p->part_count ? p->parts[i + 1].first : frames;

		if (!p->parts[i].drops && !p->parts[i].drops_beneath) {
			found = true;
		} else if (found) {
			p->pruned++;
			return p->parts[i].drops ? end : p->parts[i].first;
		}
	}
	return 0;
}

/* Collects facts about locations that are needed before the first sample is read. */
static void scan_locations(struct pprof_file *p)
{
	struct pprof_location *l = p->locations.items;

	for (size_t i = 0; i < p->locations.count; i++) {
		uint32_t all;

		l[i].dropped = count_lines(p, &l[i], &all);
		l[i].drops = l[i].dropped && l[i].dropped == all;
		p->drops |= l[i].dropped > 0;
		p->most_lines = MAX(p->most_lines, all);
		if (l[i].drops)
			l[i].dropped = 0;
	}
}

static bool add_frame(struct pprof_file *p, struct pprof_location *l, uint64_t function,
		      int64_t line)
{
	frame_id frame = frame_of(p, l, function, line, false);

	if (p->location_frame_count >= UINT32_MAX - 1 ||
	    !vec_push(p->mem, p->location_frames, p->location_frame_count, p->location_frame_cap,
		      frame)) {
		builder_no_memory(p->b);
		return false;
	}
	l->frame_count++;
	return true;
}

/* Makes the frames of a location; it has several if calls were inlined. */
static void make_frames(struct pprof_file *p, struct pprof_location *l)
{
	struct pb r = pb_over(l->lines, l->size);
	uint32_t skip = l->dropped;
	struct pb_field f;
	uint64_t n[8];

	l->frame_first = (uint32_t)p->location_frame_count;
	while (pb_next(&r, &f) && l->frame_count < PPROF_FRAMES_MAX) {
		if (f.tag != PB_TAG(4, PB_BYTES) || (skip && skip--))
			continue;
		read_numbers(&f, n);
		if (!add_frame(p, l, n[1], (int64_t)n[2]))
			return;
	}
	if (!l->frame_count)
		(void)add_frame(p, l, 0, 0);
}

/* The location with this id; NULL when the profile does not have it. */
static const struct pprof_location *location_of(struct pprof_file *p, uint64_t id)
{
	struct pprof_location *l = find_item(&p->locations, id, sizeof(*l));

	if (l && OW_UNLIKELY(!l->frame_count))
		make_frames(p, l);
	return l;
}

/* Appends the frames of a location to the `count` frames in p->frames, the innermost first. Returns the new count. */
static uint32_t add_location(struct pprof_file *p, uint64_t id, uint32_t count)
{
	const struct pprof_location *l = location_of(p, id);
	uint32_t more;

	if (!l) {
		p->bad++;
		return count;
	}
	if (p->part_count < PPROF_FRAMES_MAX) {
		p->parts[p->part_count].first = count;
		p->parts[p->part_count].drops = l->drops;
		p->parts[p->part_count++].drops_beneath = l->dropped > 0;
	}
	more = MIN(l->frame_count, PPROF_FRAMES_MAX - count);
	for (uint32_t i = 0; i < more; i++)
		p->frames[count + i] = p->location_frames[l->frame_first + i];
	count += more;
	p->cut += count == PPROF_FRAMES_MAX;
	return count;
}

static bool is_value_type(const struct pb_field *f)
{
	struct pb r = pb_message(f);
	struct pb_field sub;
	bool any = false;

	while (pb_next(&r, &sub)) {
		if (sub.tag != PB_TAG(1, PB_VARINT) && sub.tag != PB_TAG(2, PB_VARINT))
			return false;
		any = true;
	}
	return any && !r.problem && f->value <= 22;
}

/* Whether a field tag belongs to profile.proto. */
static bool is_known_field(uint32_t tag)
{
	uint32_t number = tag >> 3, wire = tag & 7;

	if (number >= 1 && number <= 6)
		return wire == PB_BYTES;
	if (number == 11)
		return wire == PB_BYTES;
	if (number == 13)
		return wire == PB_BYTES || wire == PB_VARINT;
	return number >= 7 && number <= 15 && wire == PB_VARINT;
}

static int sniff_pprof(const struct sniff *sniff)
{
	struct pb r = pb_over(sniff->head.ptr, sniff->head.len);
	unsigned types = 0, blank = 0, samples = 0, strings = 0, tables = 0;
	struct pb_field f;

	while (pb_next(&r, &f)) {
		if (!is_known_field(f.tag))
			return 0;
		if (f.tag == PB_TAG(1, PB_BYTES)) {
			if (f.value && !is_value_type(&f))
				return 0;
			types += f.value != 0;
			blank += !f.value; /* some writers lose the name */
		}
		samples += f.tag == PB_TAG(2, PB_BYTES);
		tables += f.tag == PB_TAG(4, PB_BYTES) || f.tag == PB_TAG(5, PB_BYTES);
		if (f.tag == PB_TAG(6, PB_BYTES) && !strings++ && f.value)
			return 0; /* the first string must be empty */
	}
	if (r.problem && (sniff->size == sniff->head.len || r.problem != PB_TRUNCATED))
		return 0;
	if (!types)
		return blank && samples && tables && strings ? 60 : 0;
	return samples || tables || strings ? 80 : 0;
}

static void add_label(struct pprof_file *p, const struct pb_field *f)
{
	uint64_t n[8];

	read_numbers(f, n);
	if (p->label.len)
		buf_puts(&p->label, ", ");
	buf_add_str(&p->label, text_at(p, n[1]));
	buf_add_char(&p->label, '=');
	if (n[2])
		buf_add_str(&p->label, text_at(p, n[2]));
	else
		buf_printf(&p->label, "%" PRId64, (int64_t)n[3]);
}

/* Reads a repeated number, which may be packed. */
struct numbers {
	const uint8_t *at, *end;
	uint64_t one;
	bool single;
};

static struct numbers numbers_of(const struct pb_field *f)
{
	if ((f->tag & 7) == PB_BYTES)
		return (struct numbers){ f->ptr, f->ptr + f->value, 0, false };
	return (struct numbers){ .one = f->value, .single = true };
}

static bool next_number(struct numbers *n, uint64_t *value)
{
	struct pb_varint v;

	if (n->single) {
		*value = n->one;
		n->single = false;
		return true;
	}
	if (n->at >= n->end)
		return false;
	v = pb_varint_at(n->at, n->end);
	if (!v.next)
		return false;
	n->at = v.next;
	*value = v.value;
	return true;
}

/* The beginning of the last run of numbers before `end`: eight bytes before it, or fewer if those begin inside a
 * number. */
static const uint8_t *run_begin(const uint8_t *begin, const uint8_t *end)
{
	const uint8_t *at = end - begin > 8 ? end - 8 : begin;

	while (at > begin && at < end && at[-1] & 0x80)
		at++;
	return at;
}

/* Finds the stack of the locations in begin…end, called from `stack`. False when a location is missing or longer
 * than a run. */
static bool walk_run(struct pprof_file *p, const uint8_t *begin, const uint8_t *end,
		     stack_id *stack)
{
	const struct pprof_location *run[8] = { NULL };
	size_t count = 0;

	while (begin < end) {
		struct pb_varint v = pb_varint_at(begin, end);

		if (!v.next)
			return false;
		run[count] = location_of(p, v.value);
		if (!run[count++])
			return false;
		begin = v.next;
	}
	while (count--)
		for (uint32_t i = run[count]->frame_count; i--;)
			*stack = stack_cache_push(&p->recent, p->b, *stack,
						  p->location_frames[run[count]->frame_first + i]);
	return true;
}

/* Finds the stack of packed locations, from its root on. Samples share their callers, so the results for sequences of
 * locations are cached by their bytes. False when the locations have to be read one by one: one is missing, long or to
 * be dropped.
 */
static bool find_stack(struct pprof_file *p, const struct pb_field *f, stack_id *stack)
{
	const uint8_t *end = f->ptr + f->value;

	*stack = (stack_id){ 0 };
	if (p->drops || f->value * MAX(p->most_lines, 1) >= PPROF_FRAMES_MAX)
		return false;
	while (end > f->ptr) {
		const uint8_t *begin = run_begin(f->ptr, end);
		struct pprof_run *slot;
		uint64_t bytes = 0;

		/* zeros after a number would encode the same number in other bytes */
		if (begin == end || !end[-1])
			return false;
		memcpy(&bytes, begin, (size_t)(end - begin));
		slot = &p->runs[map_hash_u64(bytes, stack->v) & (RUN_SLOTS - 1)];
		if (slot->bytes == bytes && slot->parent == stack->v && slot->stack) {
			stack->v = slot->stack;
		} else {
			uint32_t parent = stack->v;

			if (!walk_run(p, begin, end, stack))
				return false;
			*slot = (struct pprof_run){ bytes, parent, stack->v };
		}
		end = begin;
	}
	return true;
}

/* The stack of a sample whose locations are read one by one. */
static stack_id read_stack(struct pprof_file *p, const struct pb_field *sample)
{
	struct pb r = pb_message(sample);
	uint32_t frames = 0, kept;
	stack_id stack = { 0 };
	struct pb_field f;

	p->part_count = 0;
	while (pb_next(&r, &f)) {
		struct numbers n = numbers_of(&f);
		uint64_t number;

		while (f.tag >> 3 == 1 && next_number(&n, &number))
			frames = add_location(p, number, frames);
	}
	kept = first_kept(p, frames);
	while (frames-- > kept)
		stack = stack_cache_push(&p->recent, p->b, stack, p->frames[frames]);
	return stack;
}

/* The stack of a packed list of locations. Samples with different labels share stacks, so whole lists are cached,
 * except for those with notes. */
static stack_id read_list(struct pprof_file *p, const struct pb_field *sample,
			  const struct pb_field *list)
{
	struct str bytes = pb_str(list);
	uint64_t hash = str_hash(bytes);
	struct pprof_known *slot = &p->known[hash >> 32 & (KNOWN_SLOTS - 1)];
	uint64_t noted = p->bad + p->cut + p->pruned;
	stack_id stack;

	if (slot->stack && slot->len == bytes.len && slot->tag == (uint16_t)hash &&
	    memcmp(slot->ptr, list->ptr, bytes.len) == 0)
		return (stack_id){ slot->stack };
	if (!find_stack(p, list, &stack))
		stack = read_stack(p, sample);
	if (p->bad + p->cut + p->pruned == noted && bytes.len <= UINT16_MAX)
		*slot = (struct pprof_known){ list->ptr, (uint16_t)bytes.len, (uint16_t)hash,
					      stack.v };
	return stack;
}

/* The labels of a sample as one text. They begin at `begin`; other fields may lie between them and the end. Many
 * samples have the same labels. */
static str_id read_labels(struct pprof_file *p, const uint8_t *begin, const uint8_t *end)
{
	struct str bytes = str_make(begin, (size_t)(end - begin));
	struct pprof_label *slot = &p->labels[str_hash(bytes) >> 32 & (LABEL_SLOTS - 1)];
	struct pb r = pb_over(begin, bytes.len);
	struct pb_field f;

	if (slot->len == bytes.len && memcmp(slot->ptr, begin, bytes.len) == 0)
		return slot->text;
	buf_clear(&p->label);
	while (pb_next(&r, &f))
		if (f.tag == PB_TAG(3, PB_BYTES))
			add_label(p, &f);
	*slot = (struct pprof_label){ begin, bytes.len, builder_str(p->b, buf_str(&p->label)) };
	return slot->text;
}

/* A sample while it is read. */
struct pprof_sample {
	stack_id stack;
	str_id label;
	int64_t value[PPROF_TYPES_MAX];
	size_t values;
};

static void add_values(struct pprof_file *p, const struct pprof_sample *s)
{
	for (size_t i = 0; i < s->values; i++) {
		p->sums[i] = sum_add(p->sums[i], s->value[i]);
		if (!s->value[i])
			continue;
		builder_add_sample(
			p->b, &(struct sample_row){ .ts_ns = TIME_UNKNOWN,
						    .weight = sum_mul(s->value[i], p->scale[i]),
						    .metric = p->metrics[i],
						    .stack = s->stack,
						    .track = p->track,
						    .label = s->label });
	}
}

static ow_status read_sample(struct pprof_file *p, const struct pb_field *f)
{
	struct pb r = pb_message(f);
	struct pprof_sample s = { .values = 0 };
	const uint8_t *at = r.at, *labels = NULL;
	struct pb_field sub, list = { 0 };
	unsigned lists = 0;

	for (; pb_next(&r, &sub); at = r.at) {
		if (sub.tag >> 3 == 1 && !lists++) {
			list = sub;
		} else if (sub.tag >> 3 == 2) {
			struct numbers n = numbers_of(&sub);
			uint64_t number;

			while (next_number(&n, &number) && s.values < p->type_count)
				s.value[s.values++] = (int64_t)number;
		} else if (sub.tag == PB_TAG(3, PB_BYTES) && !labels) {
			labels = at;
		}
	}
	s.stack = lists == 1 && (list.tag & 7) == PB_BYTES ? read_list(p, f, &list)
							   : read_stack(p, f);
	if (labels)
		s.label = read_labels(p, labels, f->ptr + f->value);
	add_values(p, &s);
	return p->label.failed ? import_no_memory(p->ctx) : p->b->status;
}

static struct str unit_of(struct str unit, int64_t *scale)
{
	static const struct {
		const char *word, *unit;
		int64_t scale;
	} units[] = { { "nanoseconds", "ns", 1 },	 { "microseconds", "ns", 1000 },
		      { "milliseconds", "ns", 1000000 }, { "seconds", "ns", 1000000000 },
		      { "kilobytes", "bytes", 1024 },	 { "megabytes", "bytes", 1048576 } };

	*scale = 1;
	for (size_t i = 0; i < ARRAY_COUNT(units); i++)
		if (str_eq(unit, str_from(units[i].word))) {
			*scale = units[i].scale;
			return str_from(units[i].unit);
		}
	return unit.len ? unit : STR("count");
}

static void make_metrics(struct pprof_file *p)
{
	size_t shown = p->type_count - 1;

	for (size_t i = 0; i < p->type_count; i++) {
		struct str name = text_at(p, p->types[i].type);
		struct str unit = unit_of(text_at(p, p->types[i].unit), &p->scale[i]);

		p->metrics[i] = builder_metric(p->b, name.len ? name : STR("value"), unit);
		if (p->default_type && p->types[i].type == p->default_type)
			shown = i;
	}
	p->b->m->metric.is_default[p->metrics[shown].v] = 1;
	p->track = builder_track(p->b,
				 &(struct track_row){ .kind = TRACK_HOST, .source = p->b->source });
}

static void add_notes_and_facts(struct pprof_file *p)
{
	struct builder *b = p->b;
	const fact_id top = { 0 };
	fact_id list;

	if (p->bad)
		builder_note_many(b, NOTE_DAMAGED, OW_NO_OFFSET, p->bad,
				  "locations of samples are missing in the profile");
	if (p->cut)
		builder_note_many(b, NOTE_DROPPED, OW_NO_OFFSET, p->cut,
				  "stacks are cut after %d frames", PPROF_FRAMES_MAX);
	if (p->prune.invalid)
		builder_note(
			b, NOTE_DROPPED, OW_NO_OFFSET,
			"drop_frames or keep_frames is not a valid regular expression: all frames "
			"are shown");
	if (p->pruned)
		builder_note_many(b, NOTE_INFO, OW_NO_OFFSET, p->pruned,
				  "stacks are shown without the frames that the profile says to "
				  "drop");
	fact_text(b, top, "kind", STR("profile.proto"));
	fact_int(b, top, "samples", (int64_t)p->samples);
	fact_int(b, top, "mappings", (int64_t)p->mappings.count);
	fact_int(b, top, "locations", (int64_t)p->locations.count);
	fact_int(b, top, "functions", (int64_t)p->functions.count);
	fact_int(b, top, "strings", (int64_t)p->string_count);
	fact_int(b, top, "time_nanos", p->time);
	fact_int(b, top, "duration_nanos", p->duration);
	fact_int(b, top, "period", p->period);
	list = fact_list(b, top, "sample_types");
	for (size_t i = 0; i < p->type_count; i++) {
		fact_id pair = fact_list(b, list, NULL);

		fact_text(b, pair, NULL, text_at(p, p->types[i].type));
		fact_text(b, pair, NULL, text_at(p, p->types[i].unit));
	}
	list = fact_list(b, top, "sum_values");
	for (size_t i = 0; i < p->type_count; i++)
		fact_int(b, list, NULL, p->sums[i]);
}

static ow_status load_bytes(struct pprof_file *p)
{
	struct pb_field f;
	struct pb r;

	OW_TRY(pprof_tables_read(p));
	if (!p->type_count || !p->string_count)
		return error_at(p->ctx->err, OW_E_FORMAT, 0,
				"%s: this profile has no sample types or no strings, so its "
				"samples cannot be read",
				p->ctx->in->name);
	make_metrics(p);
	OW_TRY(p->b->status);
	OW_TRY(pprof_prune_init(&p->prune, p->mem, text_at(p, p->drop_frames),
				text_at(p, p->keep_frames), p->ctx->err));
	if (!index_items(p, &p->functions, sizeof(struct pprof_function)) ||
	    !index_items(p, &p->mappings, sizeof(struct pprof_mapping)) ||
	    !index_items(p, &p->locations, sizeof(struct pprof_location)))
		return import_no_memory(p->ctx);
	scan_locations(p);
	r = pb_over(p->bytes, p->size);
	while (pb_next(&r, &f))
		if (f.tag == PB_TAG(2, PB_BYTES))
			OW_TRY(read_sample(p, &f));
	OW_TRY(regex_list_status(&p->prune.drop, p->ctx->err));
	OW_TRY(regex_list_status(&p->prune.keep, p->ctx->err));
	add_notes_and_facts(p);
	return p->b->status;
}

static ow_status load_pprof(struct import_ctx *ctx)
{
	struct mem *mem = ctx->b->m->mem;
	struct pprof_file *p = mem_zalloc(mem, sizeof(*p));
	struct window w;
	ow_status status;

	if (!p)
		return error_no_memory(ctx->err);
	p->ctx = ctx;
	p->b = ctx->b;
	p->mem = mem;
	pprof_tables_init(p);
	buf_init(&p->label, mem);
	window_init(&w, ctx->in, ctx->err);
	p->size = (size_t)ctx->in->size;
	p->bytes = window_at(&w, 0, p->size);
	status = p->bytes ? load_bytes(p) : w.status;
	window_release(&w);
	pprof_tables_release(p);
	buf_release(&p->label);
	regex_list_release(&p->prune.drop);
	regex_list_release(&p->prune.keep);
	mem_free(mem, p, sizeof(*p));
	return status;
}

const struct importer import_pprof = {
	.name = "pprof",
	.summary = "pprof's profile.proto: sampled stacks of Go and many others",
	.extensions = "*.pb.gz *.pprof *.prof",
	.role = ROLE_TRACE,
	.sniff = sniff_pprof,
	.load = load_pprof,
};
