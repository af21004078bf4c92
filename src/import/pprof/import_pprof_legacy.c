/*
 * import_pprof_legacy.c: the importer of the formats that pprof read before profile.proto: CPU profiles of gperftools
 * and early Go (binary), and heap, growth, contention, thread and count profiles (text, see pprof_text.c), also Java's.
 * This file reads the binary format, finds code locations by the memory map and the names that some writers add, and
 * makes rows. It does not open the recorded programs, and does not drop frames by the names of pprof's own functions.
 */
#include "import/pprof/pprof_legacy.h"
#include "import/common/function_name.h"

#include "base/vec.h"
#include "wire/protobuf/pb.h"

static void skip_blanks(struct str *from)
{
	while (from->len && (*from->ptr == ' ' || *from->ptr == '\t'))
		*from = str_skip(*from, 1);
}

bool legacy_take_word(struct str *from, const char *word)
{
	skip_blanks(from);
	if (!str_starts(*from, str_from(word)))
		return false;
	*from = str_skip(*from, strlen(word));
	return true;
}

bool legacy_take_number(struct str *from, int64_t *value)
{
	size_t len = 0;

	skip_blanks(from);
	while (len < from->len && from->ptr[len] >= '0' && from->ptr[len] <= '9')
		len++;
	if (!len || !str_to_i64(str_first(*from, len), value))
		return false;
	*from = str_skip(*from, len);
	return true;
}

/* For each character: the value of the hexadecimal digit + 1, or 0. A table is faster, because branches on digits
 * are mispredicted half of the time. */
static const uint8_t hex_digits[256] = {
	['0'] = 1,  ['1'] = 2,	['2'] = 3,  ['3'] = 4,	['4'] = 5,  ['5'] = 6,
	['6'] = 7,  ['7'] = 8,	['8'] = 9,  ['9'] = 10, ['a'] = 11, ['b'] = 12,
	['c'] = 13, ['d'] = 14, ['e'] = 15, ['f'] = 16, ['A'] = 11, ['B'] = 12,
	['C'] = 13, ['D'] = 14, ['E'] = 15, ['F'] = 16,
};

static bool legacy_take_bare_hex(struct str *from, uint64_t *value)
{
	uint64_t sum = 0;
	size_t len = 0;

	skip_blanks(from);
	for (; len < from->len; len++) {
		uint8_t digit = hex_digits[(unsigned char)from->ptr[len]];

		if (!digit)
			break;
		if (sum >> 60)
			return false;
		sum = sum << 4 | (digit - 1u);
	}
	*value = sum;
	*from = str_skip(*from, len);
	return len > 0;
}

bool legacy_take_hex(struct str *from, uint64_t *value)
{
	size_t at = 0;

	while (at < from->len && (from->ptr[at] == ' ' || from->ptr[at] == '\t'))
		at++;
	if (from->len - at < 2 || from->ptr[at] != '0' || from->ptr[at + 1] != 'x') {
		*from = str_skip(*from, at);
		return false;
	}
	*from = str_make(from->ptr + at + 2, from->len - at - 2);
	return legacy_take_bare_hex(from, value);
}

/* Finds or adds the place of an address; NULL if memory runs out. */
static struct legacy_place *legacy_place(struct legacy *l, uint64_t address)
{
	uint64_t hash = map_hash_u64(address, 51);

	for (struct map_iter it = map_find(&l->by_address, hash); it.value;
	     it = map_next(&l->by_address, it))
		if (l->places[it.value - 1].address == address)
			return &l->places[it.value - 1];
	if (l->place_count >= UINT32_MAX - 1 ||
	    !vec_push(l->mem, l->places, l->place_count, l->place_cap,
		      (struct legacy_place){ .address = address }))
		return NULL;
	if (!map_add(&l->by_address, hash, (uint32_t)l->place_count))
		return NULL;
	return &l->places[l->place_count - 1];
}

ow_status legacy_name(struct legacy *l, uint64_t address, struct str name)
{
	struct legacy_place *p = legacy_place(l, address);

	if (!p)
		return import_no_memory(l->ctx);
	if (!p->function.v)
		p->function = function_name(l->b, name);
	return l->b->status;
}

/* Sets file and line from "file:12". The line may be missing or below 1. */
static void set_file(struct legacy *l, struct legacy_place *p, struct str file)
{
	size_t colon = str_rfind_char(file, ':');
	int64_t line = 0;

	if (colon != STR_NONE && str_to_i64(str_skip(file, colon + 1), &line)) {
		file = str_first(file, colon);
		p->line = line > 0 && line <= INT32_MAX ? (int32_t)line : 0;
	} else {
		size_t slash = str_rfind_char(file, '/'); /* a library: only its name is kept */

		file = slash == STR_NONE ? file : str_skip(file, slash + 1);
	}
	p->file = builder_str(l->b, file);
}

/* Reads a line of Java's list of methods: "0x12 function (file:12)", "… (/lib/x.so)", "… (generated stub/JIT)" or
 * just an activity: "GC". */
ow_status legacy_method_line(struct legacy *l, struct str line)
{
	struct legacy_place *p;
	size_t open;
	uint64_t address;

	if (!legacy_take_hex(&line, &address))
		return OW_OK;
	line = str_trim(line);
	p = legacy_place(l, address);
	if (!p)
		return import_no_memory(l->ctx);
	open = str_rfind_char(line, '(');
	if (str_has(line, STR("generated stub/JIT"))) {
		p->function = builder_str(l->b, STR("STUB"));
	} else if (open != STR_NONE && open && line.ptr[line.len - 1] == ')') {
		set_file(l, p, str_first(str_skip(line, open + 1), line.len - open - 2));
		p->function = function_name(l->b, str_trim(str_first(line, open)));
	} else {
		p->function = function_name(l->b, line);
	}
	return l->b->status;
}

ow_status legacy_comment_line(struct legacy *l, struct str line)
{
	struct legacy_place *p;
	uint64_t address;
	size_t end, plus;

	if (!legacy_take_word(&line, "#") || !legacy_take_hex(&line, &address))
		return OW_OK;
	line = str_trim(line);
	end = str_find_char(line, '\t');
	plus = str_rfind_char(str_first(line, MIN(end, line.len)), '+');
	p = legacy_place(l, address);
	if (!p)
		return import_no_memory(l->ctx);
	/* of several lines for an address the innermost comes first, and is kept */
	if (p->function.v || !line.len)
		return OW_OK;
	p->function = function_name(l->b, str_first(line, MIN(MIN(end, plus), line.len)));
	if (end != STR_NONE)
		set_file(l, p, str_trim(str_skip(line, end)));
	return l->b->status;
}

/* Reads the permissions of a mapping: "r-xp". */
static bool take_rights(struct str *from, bool *code)
{
	size_t len = 0;

	skip_blanks(from);
	while (len < from->len && strchr("-rwxps", from->ptr[len]) && from->ptr[len])
		len++;
	if (!len || (len < from->len && from->ptr[len] != ' ' && from->ptr[len] != '\t'))
		return false;
	*code = str_find_char(str_first(*from, len), 'x') != STR_NONE;
	*from = str_skip(*from, len);
	return true;
}

/* Reads the offset, the device and the inode, as in /proc/PID/maps. */
static bool take_details(struct str *from, uint64_t *offset)
{
	struct str at = *from;
	uint64_t major, minor;
	int64_t inode;

	if (!legacy_take_bare_hex(&at, offset) || !legacy_take_bare_hex(&at, &major) ||
	    !legacy_take_word(&at, ":") || !legacy_take_bare_hex(&at, &minor) ||
	    !legacy_take_number(&at, &inode))
		return false;
	*from = at;
	return true;
}

static bool parse_map(struct str line, struct legacy_map *m, struct str *file, bool *code)
{
	size_t end;

	(void)legacy_take_word(&line, "0x");
	if (!legacy_take_bare_hex(&line, &m->start))
		return false;
	(void)legacy_take_word(&line, "-");
	(void)legacy_take_word(&line, "0x");
	if (!legacy_take_bare_hex(&line, &m->end) || m->end <= m->start)
		return false;
	(void)legacy_take_word(&line, ":");
	*code = true;
	(void)take_rights(&line, code);
	m->offset = 0;
	if (!take_details(&line, &m->offset)) { /* the brief form: file (@offset) id */
		skip_blanks(&line);
		end = str_find_char(line, ' ');
		*file = str_first(line, MIN(end, line.len));
		line = str_skip(line, file->len);
		if (legacy_take_word(&line, "(@") && !legacy_take_bare_hex(&line, &m->offset))
			m->offset = 0;
		return true;
	}
	*file = str_trim(line);
	return true;
}

ow_status legacy_map_line(struct legacy *l, struct str line)
{
	struct legacy_map m;
	struct str file;
	bool code;

	if (!parse_map(str_trim(line), &m, &file, &code) || !code)
		return OW_OK;
	if (!vec_reserve(l->mem, l->maps, l->map_cap, l->map_count + 1))
		return import_no_memory(l->ctx);
	m.file = builder_str(l->b, file);
	l->maps[l->map_count++] = m;
	return l->b->status;
}

/* The module of an address. The first mapping of a program may be missing: then the offset of the next one shows
 * where it was. */
static str_id module_of(const struct legacy *l, uint64_t address)
{
	for (size_t i = 0; i < l->map_count; i++)
		if (l->maps[i].start <= address && address < l->maps[i].end)
			return l->maps[i].file;
	for (size_t i = 0; i < l->map_count; i++)
		if (l->maps[i].offset && l->maps[i].offset <= l->maps[i].start &&
		    l->maps[i].start - l->maps[i].offset <= address && address < l->maps[i].start)
			return l->maps[i].file;
	return (str_id){ 0 };
}

static frame_id find_frame(struct legacy *l, uint64_t address)
{
	struct legacy_place *p = legacy_place(l, address);

	if (!p) {
		import_no_memory(l->ctx);
		return (frame_id){ 0 };
	}
	if (p->placed)
		return p->frame;
	p->placed = true;
	if (!l->named)
		p->module = module_of(l, address);
	p->frame =
		builder_frame(l->b, &(struct frame_row){ .file = p->file,
							 .function = p->function,
							 .line = p->line,
							 .module = p->module,
							 .address = p->function.v ? 0 : address });
	return p->frame;
}

/* The frame of an address, with a cache of recent addresses. */
static frame_id legacy_frame(struct legacy *l, uint64_t address)
{
	uint64_t mixed = address * 0x9e3779b97f4a7c15ull;
	struct legacy_recent *r = &l->recent->frames[mixed >> 48 & (LEGACY_RECENT - 1)];

	if (OW_LIKELY(r->address == address && r->frame.v))
		return r->frame;
	*r = (struct legacy_recent){ address, find_frame(l, address) };
	return r->frame;
}

#define HEAD_WORDS 5

/* The byte order and size of words in a binary profile. */
struct word_form {
	size_t size;
	bool big;
};

static uint64_t word_at(const unsigned char *p, struct word_form how)
{
	uint64_t value = 0;

	if (how.size == 8 && !how.big)
		return pb_load64(p);
	for (size_t i = 0; i < how.size; i++)
		value |= (uint64_t)p[how.big ? how.size - 1 - i : i] << 8 * i;
	return value;
}

static bool head_fits(const unsigned char *p, struct word_form how)
{
	return word_at(p, how) == 0 && word_at(p + how.size, how) == 3 &&
	       word_at(p + 2 * how.size, how) <= 1 && word_at(p + 3 * how.size, how) > 0 &&
	       word_at(p + 3 * how.size, how) < UINT32_MAX && word_at(p + 4 * how.size, how) == 0;
}

static bool words_fit(struct str head, struct word_form *how)
{
	static const struct word_form ways[] = {
		{ 4, false }, { 4, true }, { 8, false }, { 8, true }
	};

	for (size_t i = 0; i < ARRAY_COUNT(ways); i++)
		if (head.len >= HEAD_WORDS * ways[i].size &&
		    head_fits((const unsigned char *)head.ptr, ways[i])) {
			*how = ways[i];
			return true;
		}
	return false;
}

static ow_status read_words_sample(struct legacy *l, const unsigned char *p, uint64_t count,
				   struct word_form how, int64_t times)
{
	int64_t values[LEGACY_TYPES] = { times, (int64_t)((uint64_t)times * (uint64_t)l->period) };

	OW_TRY(legacy_sample_begin(l, values));
	for (uint64_t i = 0; i < count; i++)
		OW_TRY(legacy_sample_address(l, word_at(p + i * how.size, how)));
	return l->b->status;
}

static void drop_second(struct legacy *l, struct legacy_sample *s)
{
	uint64_t *at = l->addresses + s->first;

	memmove(at + 1, at + 2, (s->count - 2) * sizeof(*at));
	s->count--;
}

/* Finds the most frequent second address by majority vote. Returns whether nearly all samples have it. */
static bool same_second(const struct legacy *l, uint64_t *address)
{
	size_t votes = 0, count = 0;

	for (size_t i = 0; i < l->sample_count; i++) {
		uint64_t second;

		if (l->samples[i].count < 2)
			continue;
		second = l->addresses[l->samples[i].first + 1];
		if (!votes)
			*address = second;
		votes += second == *address ? 1 : (size_t)-1;
	}
	for (size_t i = 0; i < l->sample_count; i++)
		count += l->samples[i].count > 1 &&
			 l->addresses[l->samples[i].first + 1] == *address;
	return count && count >= l->sample_count - l->sample_count / 32;
}

void legacy_drop_double(struct legacy *l, struct legacy_sample *s)
{
	if (s->count > 1 && l->addresses[s->first] == l->addresses[s->first + 1] + 1)
		drop_second(l, s);
}

/* Removes the address that the signal handler itself pushed: nearly all samples have it after their leaf. */
static void drop_handler_addresses(struct legacy *l)
{
	for (int round = 0; round < 2; round++) {
		uint64_t address = 0;

		if (!same_second(l, &address))
			continue;
		for (size_t i = 0; i < l->sample_count; i++) {
			struct legacy_sample *s = &l->samples[i];

			if (s->count > 1 && l->addresses[s->first + 1] == address)
				drop_second(l, s);
		}
	}
	for (size_t i = 0; i < l->sample_count; i++)
		legacy_drop_double(l, &l->samples[i]);
}

/* Reads the binary samples; *end is the offset of the text after them. */
static ow_status read_words(struct legacy *l, struct window *w, uint64_t *end)
{
	struct str head = window_peek(w, 0, HEAD_WORDS * 8);
	struct word_form how = { 8, false };
	uint64_t size = l->ctx->in->size, at;

	if (!head.ptr)
		return w->status;
	if (!words_fit(head, &how))
		return error_at(l->ctx->err, OW_E_FORMAT, 0, "%s: not a CPU profile of pprof",
				l->ctx->in->name);
	at = HEAD_WORDS * how.size;
	l->named = word_at((const unsigned char *)head.ptr + 2 * how.size, how) == 1;
	l->period = (int64_t)word_at((const unsigned char *)head.ptr + 3 * how.size, how) * 1000;
	l->leaf_is_exact = true;
	l->kind = "cpu";
	legacy_type(l, "samples", STR("count"));
	legacy_type(l, "cpu", STR("nanoseconds"));
	for (;;) {
		const unsigned char *p = NULL;
		uint64_t times = 0, count = 0;

		if (size - at >= 2 * how.size) {
			p = window_at(w, at, 2 * how.size);
			if (!p)
				return w->status;
			times = word_at(p, how);
			count = word_at(p + how.size, how);
		}
		if (!p || count > (size - at) / how.size - 2) {
			if (size > at)
				builder_note(l->b, NOTE_TRUNCATED, at,
					     "the profile is cut: it ends inside a sample");
			else
				builder_note(l->b, NOTE_TRUNCATED, at,
					     "the profile is cut: the mark of its end is missing");
			at = size;
			break;
		}
		p = window_at(w, at + 2 * how.size, (size_t)count * how.size);
		if (!p)
			return w->status;
		at += (2 + count) * how.size;
		if (!times && count == 1 && !word_at(p, how))
			break;
		OW_TRY(read_words_sample(l, p, count, how, (int64_t)(times & INT64_MAX)));
	}
	if (!l->named)
		drop_handler_addresses(l);
	*end = at;
	return l->b->status;
}

static int sniff_legacy(const struct sniff *sniff)
{
	struct word_form how;
	char text[4096];

	if (words_fit(sniff->head, &how))
		return 90;
	return legacy_text_fits(text_head(str_first(sniff->head, 4096), text, sizeof(text))) ? 95
											     : 0;
}

void legacy_note_bad(struct legacy *l, uint64_t offset)
{
	l->bad_offset = l->bad++ ? l->bad_offset : offset;
}

void legacy_type(struct legacy *l, const char *name, struct str unit)
{
	if (l->type_count == LEGACY_TYPES)
		return;
	l->types[l->type_count].name = builder_cstr(l->b, name);
	l->types[l->type_count++].unit = builder_str(l->b, unit);
}

ow_status legacy_sample_begin(struct legacy *l, const int64_t *values)
{
	if (!vec_reserve(l->mem, l->samples, l->sample_cap, l->sample_count + 1))
		return import_no_memory(l->ctx);
	l->samples[l->sample_count] = (struct legacy_sample){ .first = l->address_count };
	if (values)
		memcpy(l->samples[l->sample_count].value, values, LEGACY_TYPES * sizeof(*values));
	l->sample_count++;
	return OW_OK;
}

/* Adds an address to the last sample. A return address lies after the call: one less is inside it. */
ow_status legacy_sample_address(struct legacy *l, uint64_t address)
{
	struct legacy_sample *s = &l->samples[l->sample_count - 1];

	if (s->count == LEGACY_FRAMES_MAX) {
		l->cut++;
		return OW_OK;
	}
	if (!vec_reserve(l->mem, l->addresses, l->address_cap, l->address_count + 1))
		return import_no_memory(l->ctx);
	if (address && !l->named && (s->count || !l->leaf_is_exact))
		address--;
	l->addresses[l->address_count++] = address;
	s->count++;
	return OW_OK;
}

/* The unit in the model for a unit in the file; times become nanoseconds. */
static struct str unit_of(struct str unit, int64_t *factor)
{
	*factor = 1;
	if (str_eq(unit, STR("nanoseconds")))
		return STR("ns");
	if (str_eq(unit, STR("microseconds"))) {
		*factor = 1000;
		return STR("ns");
	}
	return unit.len ? unit : STR("count");
}

static void add_rows(struct legacy *l, const struct legacy_sample *s, const metric_id *metrics,
		     const int64_t *factors)
{
	stack_id stack = { 0 };
	str_id label = { 0 };
	char text[40];

	for (uint32_t i = s->count; i--;)
		stack = stack_cache_push(&l->recent->stacks, l->b, stack,
					 legacy_frame(l, l->addresses[s->first + i]));
	if (s->block > 0) {
		snprintf(text, sizeof(text), "bytes=%" PRId64, s->block);
		label = builder_cstr(l->b, text);
	}
	if (!s->track.v && !l->track.v)
		l->track = builder_track(
			l->b, &(struct track_row){ .kind = TRACK_HOST, .source = l->b->source });
	for (size_t i = 0; i < l->type_count; i++)
		if (s->value[i])
			builder_add_sample(l->b, &(struct sample_row){
							 .ts_ns = TIME_UNKNOWN,
							 .weight = sum_mul(s->value[i], factors[i]),
							 .metric = metrics[i],
							 .stack = stack,
							 .track = s->track.v ? s->track : l->track,
							 .label = label });
}

static ow_status add_samples(struct legacy *l)
{
	metric_id metrics[LEGACY_TYPES] = { { 0 } };
	int64_t factors[LEGACY_TYPES] = { 0 };

	for (size_t i = 0; i < l->type_count; i++) {
		struct str unit = unit_of(model_str(l->b->m, l->types[i].unit), &factors[i]);

		metrics[i] = builder_metric(l->b, model_str(l->b->m, l->types[i].name), unit);
	}
	if (l->type_count)
		l->b->m->metric.is_default[metrics[l->type_count - 1].v] = 1;
	for (size_t i = 0; i < l->sample_count && l->b->status == OW_OK; i++)
		add_rows(l, &l->samples[i], metrics, factors);
	return l->b->status;
}

static void add_notes_and_facts(struct legacy *l)
{
	struct builder *b = l->b;
	const fact_id top = { 0 };
	size_t used = 0;
	fact_id list;

	if (l->bad)
		builder_note_many(b, NOTE_DAMAGED, l->bad_offset, l->bad,
				  "lines that cannot be understood are left out");
	if (l->cut)
		builder_note_many(b, NOTE_DROPPED, OW_NO_OFFSET, l->cut,
				  "addresses beyond the first %d of a stack are left out",
				  LEGACY_FRAMES_MAX);
	for (size_t i = 0; i < l->place_count; i++)
		used += l->places[i].placed;
	fact_text(b, top, "kind", str_from(l->kind ? l->kind : "?"));
	fact_text(b, top, "format", l->words ? STR("legacy: binary words") : STR("legacy: text"));
	fact_int(b, top, "samples", (int64_t)l->sample_count);
	fact_int(b, top, "locations", (int64_t)used);
	fact_int(b, top, "mappings", (int64_t)l->map_count);
	fact_int(b, top, "duration_nanos", l->duration);
	fact_int(b, top, "period", l->period);
	list = fact_list(b, top, "sample_types");
	for (size_t i = 0; i < l->type_count; i++) {
		fact_id pair = fact_list(b, list, NULL);
		struct str unit = model_str(b->m, l->types[i].unit);

		fact_text(b, pair, NULL, model_str(b->m, l->types[i].name));
		fact_text(b, pair, NULL, unit);
	}
	list = fact_list(b, top, "sum_values");
	for (size_t i = 0; i < l->type_count; i++) {
		int64_t sum = 0;

		for (size_t k = 0; k < l->sample_count; k++)
			sum = wrap_add(sum, l->samples[k].value[i]);
		fact_int(b, list, NULL, sum);
	}
}

static ow_status load_profile(struct legacy *l, struct text_lines *lines)
{
	struct str head = window_peek(&lines->window, 0, 64);
	struct word_form how;
	uint64_t end = 0;

	if (!head.ptr)
		return lines->window.status;
	l->words = !lines->utf16 && words_fit(head, &how);
	if (l->words) {
		OW_TRY(read_words(l, &lines->window, &end));
		text_lines_seek(lines, end);
	}
	OW_TRY(legacy_text_read(l, lines));
	OW_TRY(add_samples(l));
	add_notes_and_facts(l);
	if (!l->sample_count)
		builder_note(l->b, NOTE_MISSING, OW_NO_OFFSET, "this file has no samples");
	return l->b->status;
}

static ow_status load_legacy(struct import_ctx *ctx)
{
	struct mem *mem = ctx->b->m->mem;
	struct legacy l = { .ctx = ctx, .b = ctx->b, .mem = mem };
	struct text_lines lines;
	ow_status status;

	map_init(&l.by_address, mem);
	status = text_lines_init(&lines, ctx->in, ctx->err);
	l.recent = mem_zalloc(mem, sizeof(*l.recent));
	if (!l.recent)
		status = import_no_memory(ctx);
	if (status == OW_OK)
		status = load_profile(&l, &lines);
	text_lines_release(&lines);
	mem_free(mem, l.samples, l.sample_cap * sizeof(*l.samples));
	mem_free(mem, l.addresses, l.address_cap * sizeof(*l.addresses));
	mem_free(mem, l.places, l.place_cap * sizeof(*l.places));
	mem_free(mem, l.maps, l.map_cap * sizeof(*l.maps));
	mem_free(mem, l.recent, sizeof(*l.recent));
	map_release(&l.by_address);
	return status;
}

const struct importer import_pprof_legacy = {
	.name = "pprof_legacy",
	.summary = "pprof's older forms: CPU, heap, contention and thread profiles of gperftools, "
		   "jemalloc and Go",
	.extensions = "*.prof *.heap",
	.role = ROLE_TRACE,
	.sniff = sniff_legacy,
	.load = load_legacy,
};
