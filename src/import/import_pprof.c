/*
 * import_pprof.c: profile.proto, as `go tool pprof` and many profilers write it (gzip is undone before).
 * Every value of a sample is a metric of its own. There are no times of samples in such a file.
 * What drop_frames names is left out, as pprof does.
 */
#include "import/importer.h"
#include "import/pprof_prune.h"
#include "wire/pb.h"

#define FRAMES_MAX 8192
#define TYPES_MAX 64

struct pprof_function {
	uint64_t id;
	uint64_t name, file;
	int64_t line;
	enum { UNASKED, KEPT, DROPPED } fate;
};

struct pprof_mapping {
	uint64_t id, file;
};

struct pprof_location {
	uint64_t id, mapping, address;
	const uint8_t *lines; /* the whole message, for its lines */
	size_t size;
};

struct list {
	void *items;
	size_t count, cap;
	struct map by_id; /* → item + 1 */
};

struct pprof_file {
	struct import_ctx *ctx;
	struct builder *b;
	struct mem *mem;
	const uint8_t *bytes;
	size_t size;
	struct str *strings;
	size_t string_count, string_cap;
	struct list functions, mappings, locations;
	struct {
		uint64_t type, unit;
	} types[TYPES_MAX];
	size_t type_count;
	metric_id metrics[TYPES_MAX];
	int64_t scale[TYPES_MAX], sums[TYPES_MAX];
	uint64_t default_type, drop_frames, keep_frames;
	struct pprof_prune prune;
	struct {
		uint32_t first; /* frame */
		bool drops, beneath;
	} parts[FRAMES_MAX]; /* of the sample at hand: its locations */
	uint32_t part_count;
	uint64_t pruned;
	int64_t time, duration, period;
	uint64_t samples, bad, cut;
	frame_id frames[FRAMES_MAX];
	track_id track;
	struct buf label;
};

/* ---- recognition ---- */

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

/* Which fields there can be, and of what kind. */
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

static int sniff(const struct sniff *sniff)
{
	struct pb r = pb_over(sniff->head.ptr, sniff->head.len);
	unsigned types = 0, samples = 0, strings = 0, tables = 0;
	struct pb_field f;

	while (pb_next(&r, &f)) {
		if (!is_known_field(f.tag))
			return 0;
		if (f.tag == PB_TAG(1, PB_BYTES)) {
			if (!is_value_type(&f))
				return 0;
			types++;
		}
		samples += f.tag == PB_TAG(2, PB_BYTES);
		tables += f.tag == PB_TAG(4, PB_BYTES) || f.tag == PB_TAG(5, PB_BYTES);
		if (f.tag == PB_TAG(6, PB_BYTES) && !strings++ && f.value)
			return 0; /* the first string is empty */
	}
	if (r.problem && (sniff->size == sniff->head.len || r.problem != PB_TRUNCATED))
		return 0;
	return types && (samples || tables || strings) ? 80 : 0;
}

/* ---- tables ---- */

static ow_status no_memory(struct pprof_file *p)
{
	return builder_fail(p->b, error_no_memory(p->ctx->err));
}

static void *add_item(struct pprof_file *p, struct list *list, uint64_t id, size_t size)
{
	if (list->count >= UINT32_MAX - 1 ||
	    !mem_grow(p->mem, &list->items, &list->cap, list->count + 1, size) ||
	    !map_add(&list->by_id, map_hash_u64(id, 41), (uint32_t)list->count + 1))
		return NULL;
	return (char *)list->items + list->count++ * size;
}

/* Ids come first in each struct. */
static void *find_item(const struct list *list, uint64_t id, size_t size)
{
	for (struct map_iter it = map_find(&list->by_id, map_hash_u64(id, 41)); it.value;
	     it = map_next(&list->by_id, it)) {
		char *item = (char *)list->items + (it.value - 1) * size;

		if (*(const uint64_t *)(const void *)item == id)
			return item;
	}
	return NULL;
}

static struct str text_at(const struct pprof_file *p, uint64_t index)
{
	return index < p->string_count ? p->strings[index] : STR("");
}

static ow_status read_string(struct pprof_file *p, struct str text)
{
	void *strings = p->strings;

	if (!mem_grow(p->mem, &strings, &p->string_cap, p->string_count + 1, sizeof(*p->strings)))
		return no_memory(p);
	p->strings = strings;
	p->strings[p->string_count++] = text;
	return OW_OK;
}

static void read_type(struct pprof_file *p, const struct pb_field *f)
{
	struct pb r = pb_message(f);
	struct pb_field sub;

	if (p->type_count == TYPES_MAX)
		return;
	while (pb_next(&r, &sub)) {
		if (sub.tag == PB_TAG(1, PB_VARINT))
			p->types[p->type_count].type = sub.value;
		else if (sub.tag == PB_TAG(2, PB_VARINT))
			p->types[p->type_count].unit = sub.value;
	}
	p->type_count++;
}

/* The varint fields 1…7 of a message. */
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
			return no_memory(p);
		*m = (struct pprof_mapping){ n[1], n[5] };
	} else if (f->tag == PB_TAG(4, PB_BYTES)) {
		struct pprof_location *l = add_item(p, &p->locations, n[1], sizeof(*l));

		if (!l)
			return no_memory(p);
		*l = (struct pprof_location){ n[1], n[2], n[3], f->ptr, (size_t)f->value };
	} else {
		struct pprof_function *fn = add_item(p, &p->functions, n[1], sizeof(*fn));

		if (!fn)
			return no_memory(p);
		*fn = (struct pprof_function){
			.id = n[1], .name = n[2] ? n[2] : n[3], .file = n[4], .line = (int64_t)n[5]
		};
	}
	return OW_OK;
}

static ow_status read_tables(struct pprof_file *p)
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
			     "the profile is cut or damaged here: what comes before is used");
	return OW_OK;
}

/* ---- frames ---- */

static frame_id frame_of(struct pprof_file *p, const struct pprof_location *l, uint64_t function,
			 int64_t line, bool inlined)
{
	const struct pprof_function *fn =
		find_item(&p->functions, function, sizeof(struct pprof_function));
	const struct pprof_mapping *m =
		find_item(&p->mappings, l->mapping, sizeof(struct pprof_mapping));
	struct frame_row row = { 0 };

	if (fn) {
		row.function = builder_str(p->b, text_at(p, fn->name));
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

/* ---- frames that nobody wants ---- */

static bool is_dropped(struct pprof_file *p, uint64_t id)
{
	struct pprof_function *fn = find_item(&p->functions, id, sizeof(struct pprof_function));

	if (!fn)
		return false;
	if (fn->fate == UNASKED)
		fn->fate = pprof_prune_drops(&p->prune, text_at(p, fn->name)) ? DROPPED : KEPT;
	return fn->fate == DROPPED;
}

/* How many lines of a location, from the innermost, are to be dropped: up to the outermost that matches. */
static uint32_t dropped_lines(struct pprof_file *p, const struct pprof_location *l, uint32_t *all)
{
	struct pb r = pb_over(l->lines, l->size);
	uint32_t dropped = 0;
	struct pb_field f;

	*all = 0;
	while (p->prune.active && pb_next(&r, &f)) {
		uint64_t n[8];

		if (f.tag != PB_TAG(4, PB_BYTES))
			continue;
		read_numbers(&f, n);
		++*all;
		if (is_dropped(p, n[1]))
			dropped = *all;
	}
	return dropped;
}

/* The first frame that stays. From the root on, the first location that matches goes, with all that it calls; but
 * not before one that does not match, so that something is left. */
static uint32_t first_kept(struct pprof_file *p, uint32_t frames)
{
	bool found = false;

	for (uint32_t i = p->part_count; i--;) {
		uint32_t end = i + 1 < p->part_count ? p->parts[i + 1].first : frames;

		if (!p->parts[i].drops && !p->parts[i].beneath) {
			found = true;
		} else if (found) {
			p->pruned++;
			return p->parts[i].drops ? end : p->parts[i].first;
		}
	}
	return 0;
}

/* Frames of a location, the innermost first, behind those that are there. */
static uint32_t add_location(struct pprof_file *p, uint64_t id, uint32_t count)
{
	const struct pprof_location *l =
		find_item(&p->locations, id, sizeof(struct pprof_location));
	uint32_t first = count, dropped, all;
	struct pb_field f;
	struct pb r;

	if (!l) {
		p->bad++;
		return count;
	}
	dropped = dropped_lines(p, l, &all);
	if (p->part_count < FRAMES_MAX) {
		p->parts[p->part_count].first = count;
		p->parts[p->part_count].drops = dropped && dropped == all;
		p->parts[p->part_count++].beneath = dropped && dropped < all;
	}
	r = pb_over(l->lines, l->size);
	if (dropped == all) /* whether it goes depends on its callers */
		dropped = 0;
	while (pb_next(&r, &f) && count < FRAMES_MAX) {
		uint64_t n[8];

		if (f.tag != PB_TAG(4, PB_BYTES) || (dropped && dropped--))
			continue;
		read_numbers(&f, n);
		p->frames[count++] = frame_of(p, l, n[1], (int64_t)n[2], false);
	}
	if (count == first && count < FRAMES_MAX)
		p->frames[count++] = frame_of(p, l, 0, 0, false);
	p->cut += count == FRAMES_MAX;
	return count;
}

/* ---- samples ---- */

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

/* Numbers that may be packed: calls for each. */
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

static void add_values(struct pprof_file *p, const int64_t *values, size_t count, stack_id stack)
{
	str_id label = builder_str(p->b, buf_str(&p->label));

	for (size_t i = 0; i < count; i++) {
		p->sums[i] = wrap_add(p->sums[i], values[i]);
		if (!values[i])
			continue;
		builder_add_sample(p->b,
				   &(struct sample_row){ .ts_ns = TIME_UNKNOWN,
							 .weight = (int64_t)((uint64_t)values[i] *
									     (uint64_t)p->scale[i]),
							 .metric = p->metrics[i],
							 .stack = stack,
							 .track = p->track,
							 .label = label });
	}
}

static ow_status read_sample(struct pprof_file *p, const struct pb_field *f)
{
	struct pb r = pb_message(f);
	uint32_t frames = 0, kept;
	size_t values = 0;
	int64_t value[TYPES_MAX];
	stack_id stack = { 0 };
	struct pb_field sub;

	buf_clear(&p->label);
	p->part_count = 0;
	while (pb_next(&r, &sub)) {
		struct numbers n = numbers_of(&sub);
		uint64_t number;

		if (sub.tag >> 3 == 1)
			while (next_number(&n, &number))
				frames = add_location(p, number, frames);
		else if (sub.tag >> 3 == 2)
			while (next_number(&n, &number) && values < p->type_count)
				value[values++] = (int64_t)number;
		else if (sub.tag == PB_TAG(3, PB_BYTES))
			add_label(p, &sub);
	}
	kept = first_kept(p, frames);
	while (frames-- > kept)
		stack = builder_stack(p->b, stack, p->frames[frames]);
	add_values(p, value, values, stack);
	return p->label.failed ? no_memory(p) : p->b->status;
}

/* ---- metrics ---- */

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

static void tell(struct pprof_file *p)
{
	struct builder *b = p->b;
	const fact_id top = { 0 };
	fact_id list;

	if (p->bad)
		builder_note_many(b, NOTE_DAMAGED, OW_NO_OFFSET, p->bad,
				  "a sample names a location that is not there");
	if (p->cut)
		builder_note_many(b, NOTE_DROPPED, OW_NO_OFFSET, p->cut,
				  "a stack of more than %d frames, cut there", FRAMES_MAX);
	if (p->prune.invalid)
		builder_note(
			b, NOTE_DROPPED, OW_NO_OFFSET,
			"drop_frames or keep_frames is no regular expression: all frames stay");
	if (p->pruned)
		builder_note_many(b, NOTE_INFO, OW_NO_OFFSET, p->pruned,
				  "a stack without the frames that the profile says to drop");
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

	OW_TRY(read_tables(p));
	if (!p->type_count || !p->string_count)
		return error_at(p->ctx->err, OW_E_FORMAT, 0,
				"%s: no types of samples, or no strings, in this profile",
				p->ctx->in->name);
	make_metrics(p);
	OW_TRY(p->b->status);
	OW_TRY(pprof_prune_init(&p->prune, p->mem, text_at(p, p->drop_frames),
				text_at(p, p->keep_frames), p->ctx->err));
	r = pb_over(p->bytes, p->size);
	while (pb_next(&r, &f))
		if (f.tag == PB_TAG(2, PB_BYTES))
			OW_TRY(read_sample(p, &f));
	OW_TRY(regex_list_status(&p->prune.drop, p->ctx->err));
	OW_TRY(regex_list_status(&p->prune.keep, p->ctx->err));
	tell(p);
	return p->b->status;
}

static void release(struct pprof_file *p)
{
	mem_free(p->mem, p->strings, p->string_cap * sizeof(*p->strings));
	mem_free(p->mem, p->functions.items, p->functions.cap * sizeof(struct pprof_function));
	mem_free(p->mem, p->mappings.items, p->mappings.cap * sizeof(struct pprof_mapping));
	mem_free(p->mem, p->locations.items, p->locations.cap * sizeof(struct pprof_location));
	map_release(&p->functions.by_id);
	map_release(&p->mappings.by_id);
	map_release(&p->locations.by_id);
	buf_release(&p->label);
	pprof_prune_release(&p->prune);
}

static ow_status load(struct import_ctx *ctx)
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
	map_init(&p->functions.by_id, mem);
	map_init(&p->mappings.by_id, mem);
	map_init(&p->locations.by_id, mem);
	buf_init(&p->label, mem);
	window_init(&w, ctx->in, ctx->err);
	p->size = (size_t)ctx->in->size;
	p->bytes = window_at(&w, 0, p->size);
	status = p->bytes ? load_bytes(p) : w.status;
	window_release(&w);
	release(p);
	mem_free(mem, p, sizeof(*p));
	return status;
}

const struct importer import_pprof = {
	.name = "pprof",
	.summary = "pprof's profile.proto: sampled stacks of Go and many others",
	.extensions = "*.pb.gz *.pprof *.prof",
	.role = ROLE_TRACE,
	.sniff = sniff,
	.load = load,
};
