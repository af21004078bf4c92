/*
 * firefox_stacks.c: frames and stacks of a Firefox profile out of its tables; see firefox_int.h. Functions without a name (samply saves
 * profiles before it looks them up) are looked for in the files of this machine, as for perf.data: only where the build id is
 * that of the profile.
 */
#include "import/firefox_int.h"

/* Since version 71 frames, since version 75 functions have flags, and what they lack is 0 in its column. */
enum {
	FLAG_INLINED = 1 << 0,
	FLAG_ADDRESS = 1 << 1,
	FLAG_CATEGORY = 1 << 2,
	FLAG_FRAME_LINE = 1 << 4
};
enum { FLAG_RESOURCE = 1 << 2, FLAG_SOURCE = 1 << 3, FLAG_FUNC_LINE = 1 << 4 };

static int64_t gated(const struct fx_column *c, const struct fx_column *flags, size_t row,
		     int64_t flag)
{
	int64_t bits = flags->count ? fx_index(flags, row) : -1;

	return bits >= 0 && !(bits & flag) ? -1 : fx_index(c, row);
}

static int32_t line_of(int64_t line)
{
	return line > 0 && line <= INT32_MAX ? (int32_t)line : 0;
}

static bool is_hex(struct str text, uint64_t *value)
{
	*value = 0;
	if (!str_starts(text, STR("0x")) || text.len < 3 || text.len > 18)
		return false;
	for (size_t i = 2; i < text.len; i++) {
		char c = text.ptr[i];
		int digit = c >= '0' && c <= '9'   ? c - '0'
			    : c >= 'a' && c <= 'f' ? c - 'a' + 10
			    : c >= 'A' && c <= 'F' ? c - 'A' + 10
						   : -1;

		if (digit < 0)
			return false;
		*value = *value << 4 | (uint64_t)digit;
	}
	return true;
}

/* Names that are only an address are none. */
static void name_frame(struct firefox *f, struct frame_row *row, str_id name, int64_t address)
{
	uint64_t number;

	row->function = name;
	if (!is_hex(model_str(f->b->m, name), &number))
		return;
	row->function = (str_id){ 0 };
	row->address = address >= 0 ? (uint64_t)address : number;
	if (row->module.v)
		row->function = perf_names_relative(&f->names, row->module, row->address);
	if (row->function.v)
		row->address = 0;
	else
		f->nameless++;
}

static bool is_kernel(struct str module)
{
	return str_starts(module, STR("[kernel")) || str_ends(module, STR(".ko"));
}

static str_id lib_name(const struct firefox *f, int64_t lib)
{
	return lib >= 0 && (uint64_t)lib < f->lib_count ? f->libs[lib].name : (str_id){ 0 };
}

/* ---- what Firefox itself writes: one text per frame ---- */

/* The number that ends at `*len`, behind a colon; -1 when there is none. */
static int64_t take_number(struct str text, size_t *len)
{
	size_t at = *len;
	int64_t number = -1;

	while (at && text.ptr[at - 1] >= '0' && text.ptr[at - 1] <= '9')
		at--;
	if (!at || at == *len || text.ptr[at - 1] != ':' ||
	    json_decimal(str_make(text.ptr + at, *len - at), 0, &number) != JSON_EXACT)
		return -1;
	*len = at - 1;
	return number;
}

/* "name (file:line:column)", where the last number may be missing. */
static void split_place(struct firefox *f, struct frame_row *row, struct str text)
{
	size_t open = text.len, len;
	int64_t first, second;
	struct str place;

	while (open && !str_starts(str_skip(text, open - 1), STR(" (")))
		open--;
	if (!open--)
		return;
	place = str_skip(text, open + 2);
	len = place.len - 1; /* without its bracket */
	first = take_number(place, &len);
	second = first >= 0 ? take_number(place, &len) : -1;
	if (first < 0 || !len)
		return;
	row->line = line_of(second >= 0 ? second : first);
	row->file = builder_str(f->b, str_first(place, len));
	row->function = builder_str(f->b, str_first(text, open));
}

/* "name (in library)", as `perf script gecko` has them. */
static bool split_module(struct firefox *f, struct frame_row *row, struct str text)
{
	size_t at = text.len;

	while (at && !str_starts(str_skip(text, at - 1), STR(" (in ")))
		at--;
	if (!at--)
		return false;
	row->module = builder_str(f->b, str_make(text.ptr + at + 5, text.len - at - 6));
	name_frame(f, row, builder_str(f->b, str_first(text, at)), -1);
	return true;
}

static void read_location(struct firefox *f, struct frame_row *row, str_id location)
{
	struct str text = model_str(f->b->m, location);
	uint64_t address;

	row->function = location;
	if (is_hex(text, &address)) {
		for (size_t i = 0; i < f->lib_count && !row->module.v; i++)
			if (address >= f->libs[i].start && address < f->libs[i].end) {
				row->module = f->libs[i].name;
				address -= f->libs[i].start;
			}
		name_frame(f, row, location, (int64_t)MIN(address, (uint64_t)INT64_MAX));
		return;
	}
	if (!str_ends(text, STR(")")))
		return;
	if (!split_module(f, row, text))
		split_place(f, row, text);
}

/* ---- frames ---- */

static int64_t lib_of(const struct firefox *f, size_t frame, int64_t func)
{
	const struct fx_table *frames = fx_table(f, FX_FRAMES), *funcs = fx_table(f, FX_FUNCS);
	const struct fx_column *flags = &frames->column[FX_FRAME_FLAGS];
	int64_t resource;

	if (frames->column[FX_FRAME_LIB].count)
		return gated(&frames->column[FX_FRAME_LIB], flags, frame, FLAG_ADDRESS);
	if (func < 0)
		return -1;
	resource = gated(&funcs->column[FUNC_RESOURCE], &funcs->column[FUNC_FLAGS], (size_t)func,
			 FLAG_RESOURCE);
	if (resource < 0)
		return -1;
	return fx_index(&fx_table(f, FX_RESOURCES)->column[RESOURCE_LIB], (size_t)resource);
}

static str_id file_of(struct firefox *f, size_t func)
{
	const struct fx_table *funcs = fx_table(f, FX_FUNCS);
	int64_t source;

	if (funcs->column[FUNC_FILE].count)
		return fx_string(f, fx_index(&funcs->column[FUNC_FILE], func));
	source = gated(&funcs->column[FUNC_SOURCE], &funcs->column[FUNC_FLAGS], func, FLAG_SOURCE);
	if (source < 0)
		return (str_id){ 0 };
	return fx_string(f,
			 fx_index(&fx_table(f, FX_SOURCES)->column[SOURCE_FILE], (size_t)source));
}

static frame_id make_frame(struct firefox *f, size_t i)
{
	const struct fx_table *frames = fx_table(f, FX_FRAMES), *funcs = fx_table(f, FX_FUNCS);
	const struct fx_column *flags = &frames->column[FX_FRAME_FLAGS];
	int64_t line = gated(&frames->column[FX_FRAME_LINE], flags, i, FLAG_FRAME_LINE);
	int64_t func = fx_index(&frames->column[FX_FRAME_FUNC], i), start;
	struct frame_row row = { 0 };

	if (fx_index(&frames->column[FX_FRAME_INLINE], i) > 0 ||
	    (flags->count && fx_index(flags, i) & FLAG_INLINED))
		row.flags = FRAME_INLINED;
	if (!frames->column[FX_FRAME_FUNC].count) {
		read_location(f, &row,
			      fx_string(f, fx_index(&frames->column[FX_FRAME_LOCATION], i)));
		row.line = line > 0 ? line_of(line) : row.line;
		return builder_frame(f->b, &row);
	}
	if (func < 0 || (uint64_t)func >= funcs->column[FUNC_NAME].count) {
		f->bad_frames++;
		return builder_frame(f->b, &row);
	}
	start = gated(&funcs->column[FUNC_LINE], &funcs->column[FUNC_FLAGS], (size_t)func,
		      FLAG_FUNC_LINE);
	row.module = lib_name(f, lib_of(f, i, func));
	if (is_kernel(model_str(f->b->m, row.module)))
		row.flags |= FRAME_KERNEL;
	row.file = file_of(f, (size_t)func);
	row.function_line = line_of(start);
	row.line = line_of(line > 0 ? line : start);
	name_frame(f, &row, fx_string(f, fx_index(&funcs->column[FUNC_NAME], (size_t)func)),
		   gated(&frames->column[FX_FRAME_ADDRESS], flags, i, FLAG_ADDRESS));
	return builder_frame(f->b, &row);
}

static size_t frame_count(const struct fx_table *frames)
{
	return frames->column[FX_FRAME_FUNC].count ? frames->column[FX_FRAME_FUNC].count
						   : frames->column[FX_FRAME_LOCATION].count;
}

/* ---- stacks ---- */

/* Of a stack in row i; -1 for the outermost. Callers stand before what they call. */
static int64_t caller_of(struct firefox *f, const struct fx_table *t, size_t i)
{
	int64_t caller = fx_index(&t->column[STACK_PREFIX], i);

	if (t->column[STACK_OFFSET].count) {
		int64_t offset = fx_index(&t->column[STACK_OFFSET], i);

		caller = offset > 0 ? (int64_t)i - offset : -1;
		f->bad_stacks += caller < -1 || offset > (int64_t)i;
		return MAX(caller, -1);
	}
	if (caller < (int64_t)i)
		return caller;
	f->bad_stacks++;
	return -1;
}

static uint16_t category_of(const struct firefox *f, size_t frame)
{
	const struct fx_table *frames = fx_table(f, FX_FRAMES);
	int64_t category = gated(&frames->column[FX_FRAME_CATEGORY],
				 &frames->column[FX_FRAME_FLAGS], frame, FLAG_CATEGORY);

	return category >= 0 && (uint64_t)category < MIN(f->category_count, (size_t)UINT16_MAX)
		       ? (uint16_t)(category + 1)
		       : 0;
}

static void make_stack(struct firefox *f, struct fx_stacks *s, const frame_id *frames,
		       size_t frame_max, size_t i)
{
	const struct fx_table *t = fx_table(f, FX_STACKS);
	int64_t frame = fx_index(&t->column[STACK_FRAME], i), caller = caller_of(f, t, i);
	uint16_t category = (uint16_t)MIN(f->default_category, (size_t)UINT16_MAX);
	stack_id parent = { 0 };

	if (caller >= 0) {
		parent = s->stacks[caller];
		category = s->categories[caller];
	}
	if (frame < 0 || (uint64_t)frame >= frame_max) {
		f->bad_stacks++;
		s->stacks[i] = parent;
	} else {
		uint16_t own = category_of(f, (size_t)frame);

		s->stacks[i] = builder_stack(f->b, parent, frames[frame]);
		category = own ? own : category;
	}
	s->categories[i] = category;
}

static bool make_stacks(struct firefox *f, struct fx_stacks *s)
{
	const struct fx_table *frames = fx_table(f, FX_FRAMES);
	size_t count = fx_table(f, FX_STACKS)->column[STACK_FRAME].count,
	       frame_max = frame_count(frames);
	frame_id *made;

	fx_stacks_release(f, s);
	s->made = true;
	if (!count)
		return true;
	s->stacks = mem_alloc(f->mem, count * sizeof(*s->stacks));
	s->categories = s->stacks ? mem_alloc(f->mem, count * sizeof(*s->categories)) : NULL;
	if (!s->categories) {
		mem_free(f->mem, s->stacks, count * sizeof(*s->stacks));
		s->stacks = NULL;
		return false;
	}
	s->count = count;
	made = mem_alloc(f->mem, (frame_max + 1) * sizeof(*made));
	if (!made)
		return false;
	for (size_t i = 0; i < frame_max; i++)
		made[i] = make_frame(f, i);
	for (size_t i = 0; i < count; i++)
		make_stack(f, s, made, frame_max, i);
	mem_free(f->mem, made, (frame_max + 1) * sizeof(*made));
	return true;
}

void fx_stacks_release(struct firefox *f, struct fx_stacks *s)
{
	mem_free(f->mem, s->stacks, s->count * sizeof(*s->stacks));
	mem_free(f->mem, s->categories, s->count * sizeof(*s->categories));
	*s = (struct fx_stacks){ 0 };
}

const struct fx_stacks *fx_stacks_of(struct firefox *f)
{
	bool own = f->own.has_strings || f->own.table[FX_STACKS].there ||
		   f->own.table[FX_FRAMES].there || f->own.table[FX_FUNCS].there;
	struct fx_stacks *s = own ? &f->own_stacks : &f->shared_stacks;

	if ((own || !s->made) && !make_stacks(f, s)) {
		fx_no_memory(f);
		return NULL;
	}
	return s;
}
