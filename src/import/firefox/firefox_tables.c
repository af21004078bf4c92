/*
 * firefox_tables.c: reads tables of a Firefox profile, of either form, into lists of numbers, and makes frames and stacks of them.
 * Called by import_firefox.c and firefox_rows.c. Functions without a name are looked up in files of this machine, as for perf.data:
 * only in files with the build id in the profile.
 */
#include "import/firefox/firefox_profile.h"

#include "base/vec.h"

#define POSITIONS 16 /* largest number of columns of a table of rows in any version */

static const struct {
	const char *name;
	struct {
		const char *name;
		/* power of ten: 6 turns milliseconds into ns; 9 turns differences into ps, which
		 * are added up */
		int scale;
	} column[FX_WIDTH];
} specs[FX_TABLES] = {
	[FX_SAMPLES] = { "samples",
			 { [SAMPLE_STACK] = { "stack", 0 },
			   [SAMPLE_TIME] = { "time", 6 },
			   [SAMPLE_DELTA] = { "timeDeltas", 9 },
			   [SAMPLE_WEIGHT] = { "weight", 6 },
			   [SAMPLE_DURATION] = { "duration", 6 },
			   [SAMPLE_CPU] = { "threadCPUDelta", 6 },
			   [SAMPLE_COUNT] = { "count", 6 } } },
	[FX_JS_ALLOCATIONS] = { "jsAllocations",
				{ [SAMPLE_STACK] = { "stack", 0 },
				  [SAMPLE_TIME] = { "time", 6 },
				  [SAMPLE_WEIGHT] = { "weight", 6 },
				  [SAMPLE_DURATION] = { "duration", 6 } } },
	[FX_NATIVE_ALLOCATIONS] = { "nativeAllocations",
				    { [SAMPLE_STACK] = { "stack", 0 },
				      [SAMPLE_TIME] = { "time", 6 },
				      [SAMPLE_WEIGHT] = { "weight", 6 },
				      [SAMPLE_DURATION] = { "duration", 6 } } },
	[FX_MARKERS] = { "markers",
			 { [MARKER_NAME] = { "name", 0 },
			   [MARKER_START] = { "startTime", 6 },
			   [MARKER_END] = { "endTime", 6 },
			   [MARKER_PHASE] = { "phase", 0 },
			   [MARKER_CATEGORY] = { "category", 0 },
			   [MARKER_TIME] = { "time", 6 },
			   [MARKER_DATA] = { "data", 0 } } },
	[FX_FRAMES] = { "frameTable",
			{ [FX_FRAME_FUNC] = { "func", 0 },
			  [FX_FRAME_ADDRESS] = { "address", 0 },
			  [FX_FRAME_LINE] = { "line", 0 },
			  [FX_FRAME_CATEGORY] = { "category", 0 },
			  [FX_FRAME_LIB] = { "lib", 0 },
			  [FX_FRAME_FLAGS] = { "flags", 0 },
			  [FX_FRAME_INLINE] = { "inlineDepth", 0 },
			  [FX_FRAME_LOCATION] = { "location", 0 } } },
	[FX_FUNCS] = { "funcTable",
		       { [FUNC_NAME] = { "name", 0 },
			 [FUNC_RESOURCE] = { "resource", 0 },
			 [FUNC_FILE] = { "fileName", 0 },
			 [FUNC_SOURCE] = { "source", 0 },
			 [FUNC_LINE] = { "lineNumber", 0 },
			 [FUNC_FLAGS] = { "flags", 0 } } },
	[FX_STACKS] = { "stackTable",
			{ [STACK_FRAME] = { "frame", 0 },
			  [STACK_PREFIX] = { "prefix", 0 },
			  [STACK_OFFSET] = { "prefixOffset", 0 } } },
	[FX_RESOURCES] = { "resourceTable",
			   { [RESOURCE_NAME] = { "name", 0 }, [RESOURCE_LIB] = { "lib", 0 } } },
	[FX_SOURCES] = { "sources", { [SOURCE_FILE] = { "filename", 0 } } },
};

static bool push_value(struct firefox *f, struct fx_column *c, int64_t value)
{
	return vec_push(f->mem, c->values, c->count, c->cap, value);
}

static void column_release(struct firefox *f, struct fx_column *c)
{
	mem_free(f->mem, c->values, c->cap * sizeof(*c->values));
	*c = (struct fx_column){ 0 };
}

void fx_table_release(struct firefox *f, struct fx_table *t)
{
	for (size_t i = 0; i < FX_WIDTH; i++)
		column_release(f, &t->column[i]);
	t->there = false;
}

/* Empties the tables and keeps their memory for the next thread. */
void fx_tables_clear(struct firefox *f, struct fx_tables *t)
{
	for (size_t k = 0; k < FX_TABLES; k++) {
		t->table[k].there = false;
		t->table[k].weight = WEIGHT_SAMPLES;
		for (size_t i = 0; i < FX_WIDTH; i++)
			t->table[k].column[i].count = 0;
	}
	t->string_count = 0;
	t->has_strings = false;
	f->payload_count = 0;
}

void fx_tables_release(struct firefox *f, struct fx_tables *t)
{
	for (size_t k = 0; k < FX_TABLES; k++)
		fx_table_release(f, &t->table[k]);
	mem_free(f->mem, t->strings, t->string_cap * sizeof(*t->strings));
	*t = (struct fx_tables){ 0 };
}

str_id fx_string(struct firefox *f, int64_t index)
{
	const struct fx_tables *t = f->own.has_strings ? &f->own : &f->shared;

	if (index >= 0 && (uint64_t)index < t->string_count)
		return t->strings[index];
	f->bad_strings += index >= 0;
	return (str_id){ 0 };
}

/* Firefox itself writes a stack as a thread of one sample: {"samples": {"data": [[5, …]]}}. Reads the rest of the object whose
 * last key was "samples". */
static void read_sampled_stack(struct firefox *f, int64_t *stack)
{
	uint32_t depth = f->p->depth; /* depth of the object that has the key */
	bool data = false;

	for (;;) {
		enum json_token token = json_pull_next(f->p);

		if (token == TOKEN_DAMAGE || token == TOKEN_END) {
			fx_cut(f);
			return;
		}
		if (token == TOKEN_KEY)
			data = f->p->depth == depth + 1 && json_key_is(f->p->text, "data");
		else if (token == TOKEN_NUMBER && data && *stack == FX_NONE)
			(void)json_decimal(f->p->text, 0, stack);
		if (f->p->depth <= depth)
			return;
	}
}

/* Reads the stack of a marker: the value of "cause", or of "stack" if that is an object. */
static void read_cause(struct firefox *f, struct fx_payload *to)
{
	enum json_token token = json_pull_next(f->p);

	if (token != TOKEN_OBJECT) {
		if (token == TOKEN_ARRAY)
			(void)fx_skip(f);
		return;
	}
	while (!f->truncated && (token = json_pull_next(f->p)) == TOKEN_KEY) {
		if (json_key_is(f->p->text, "stack"))
			(void)json_text_number(f->p, 0, &to->stack);
		else if (json_key_is(f->p->text, "samples"))
			read_sampled_stack(f, &to->stack);
		else
			(void)fx_skip(f);
	}
	if (!f->truncated && token != TOKEN_CLOSE)
		fx_cut(f);
}

static void read_type(struct firefox *f, struct fx_payload *to)
{
	enum json_token token = json_pull_next(f->p);

	if (token == TOKEN_OBJECT || token == TOKEN_ARRAY)
		(void)fx_skip(f);
	if (token != TOKEN_STRING)
		return;
	to->tracing = json_key_is(f->p->text, "tracing");
	to->request = json_key_is(f->p->text, "Network") || json_key_is(f->p->text, "IPC");
}

static void read_interval(struct firefox *f, struct fx_payload *to)
{
	enum json_token token = json_pull_next(f->p);

	if (token == TOKEN_OBJECT || token == TOKEN_ARRAY)
		(void)fx_skip(f);
	if (token != TOKEN_STRING)
		return;
	to->interval = json_key_is(f->p->text, "start") ? 's' : 0;
	if (json_key_is(f->p->text, "end"))
		to->interval = 'e';
}

/* Reads an object whose bracket was the last token. Returns its index in f->payloads, or -1 without memory. */
static int64_t read_payload(struct firefox *f)
{
	struct fx_payload to = {
		.offset = f->p->offset, .stack = FX_NONE, .start = FX_NONE, .end = FX_NONE
	};
	enum json_token token = TOKEN_CLOSE;

	while (!f->truncated && (token = json_pull_next(f->p)) == TOKEN_KEY) {
		struct str key = f->p->text;

		if (json_key_is(key, "type"))
			read_type(f, &to);
		else if (json_key_is(key, "cause") || json_key_is(key, "stack"))
			read_cause(f, &to);
		else if (json_key_is(key, "startTime"))
			(void)json_text_number(f->p, 6, &to.start);
		else if (json_key_is(key, "endTime"))
			(void)json_text_number(f->p, 6, &to.end);
		else if (json_key_is(key, "interval"))
			read_interval(f, &to);
		else
			(void)fx_skip(f);
	}
	if (!f->truncated && token != TOKEN_CLOSE)
		fx_cut(f);
	if (!f->truncated && f->p->offset + 1 - to.offset <= UINT32_MAX)
		to.size = (uint32_t)(f->p->offset + 1 - to.offset);
	if (!vec_reserve(f->mem, f->payloads, f->payload_cap, f->payload_count + 1))
		return -1;
	f->payloads[f->payload_count] = to;
	return (int64_t)f->payload_count++;
}

/* Adds one value, whose token has been read, to a column. */
static ow_status read_value(struct firefox *f, struct fx_column *c, enum json_token token,
			    bool payload)
{
	int64_t value = FX_NONE;

	if (token == TOKEN_NUMBER) {
		if (json_decimal(f->p->text, c->scale, &value) == JSON_NOT_A_NUMBER)
			value = FX_NONE;
	} else if (token == TOKEN_WORD) {
		if (str_eq(f->p->text, STR("true")) || str_eq(f->p->text, STR("false")))
			value = f->p->text.len == 4 ? (c->scale ? FX_MILLION : 1) : 0;
	} else if (token == TOKEN_OBJECT && payload) {
		value = read_payload(f);
		if (value < 0)
			return builder_no_memory(f->b);
		value *= c->scale ? FX_MILLION : 1;
	} else if (token == TOKEN_OBJECT || token == TOKEN_ARRAY) {
		(void)fx_skip(f);
	}
	return push_value(f, c, value) ? OW_OK : builder_no_memory(f->b);
}

static bool is_end(enum json_token token)
{
	return token == TOKEN_CLOSE || token == TOKEN_DAMAGE || token == TOKEN_END;
}

/* Reads a list whose first token has been read. */
static ow_status read_column(struct firefox *f, struct fx_column *c, enum json_token token,
			     bool payload)
{
	for (; !f->truncated && !is_end(token); token = json_pull_next(f->p))
		OW_TRY(read_value(f, c, token, payload));
	if (!f->truncated && token != TOKEN_CLOSE)
		fx_cut(f);
	return OW_OK;
}

struct rows {
	struct fx_column position[POSITIONS];
	int8_t place[FX_WIDTH]; /* column number of each field + 1; 0 = missing */
	size_t count;
	bool used;
};

/* Reads a schema such as {"name": 0, "time": 1}. */
static void read_schema(struct firefox *f, enum fx_table_kind kind, struct rows *r)
{
	enum json_token token = json_pull_next(f->p);

	if (token != TOKEN_OBJECT) {
		if (token == TOKEN_ARRAY)
			(void)fx_skip(f);
		return;
	}
	r->used = true;
	while (!f->truncated && (token = json_pull_next(f->p)) == TOKEN_KEY) {
		int64_t position = -1;
		size_t i = 0;

		while (i < FX_WIDTH && !(specs[kind].column[i].name &&
					 json_key_is(f->p->text, specs[kind].column[i].name)))
			i++;
		(void)json_text_number(f->p, 0, &position);
		if (i < FX_WIDTH && position >= 0 && position < POSITIONS)
			r->place[i] = (int8_t)(position + 1);
	}
	if (!f->truncated && token != TOKEN_CLOSE)
		fx_cut(f);
}

/* Fills up short rows, whose trailing nulls are left out. */
static bool fill_up(struct firefox *f, struct fx_column *c, size_t count)
{
	while (c->count < count)
		if (!push_value(f, c, FX_NONE))
			return false;
	return true;
}

/* Reads a row whose bracket was the last token. */
static ow_status read_row(struct firefox *f, struct rows *r, bool payload)
{
	enum json_token token;
	size_t at = 0;

	for (; !is_end(token = json_pull_next(f->p)); at++) {
		if (at < POSITIONS && !fill_up(f, &r->position[at], r->count))
			return builder_no_memory(f->b);
		if (at < POSITIONS)
			OW_TRY(read_value(f, &r->position[at], token, payload));
		else if (token == TOKEN_OBJECT || token == TOKEN_ARRAY)
			(void)fx_skip(f);
		if (f->truncated)
			return OW_OK;
	}
	if (token != TOKEN_CLOSE) {
		fx_cut(f);
		return OW_OK;
	}
	r->count++;
	return OW_OK;
}

static ow_status read_rows(struct firefox *f, struct rows *r, enum json_token token, bool payload)
{
	r->used = true;
	for (size_t i = 0; i < POSITIONS; i++)
		r->position[i].scale = 6;
	for (; !f->truncated && !is_end(token); token = json_pull_next(f->p)) {
		if (token == TOKEN_ARRAY)
			OW_TRY(read_row(f, r, payload));
		else if (token == TOKEN_OBJECT)
			(void)fx_skip(f);
	}
	if (!f->truncated && token != TOKEN_CLOSE)
		fx_cut(f);
	return OW_OK;
}

static ow_status place_rows(struct firefox *f, struct rows *r, struct fx_table *to)
{
	for (size_t i = 0; r->used && i < FX_WIDTH; i++) {
		struct fx_column *from = r->place[i] ? &r->position[r->place[i] - 1] : NULL;

		if (!from || !from->cap)
			continue;
		if (!fill_up(f, from, r->count))
			return builder_no_memory(f->b);
		column_release(f, &to->column[i]);
		to->column[i] = *from;
		*from = (struct fx_column){ 0 };
	}
	return OW_OK;
}

static void read_weight_type(struct firefox *f, struct fx_table *to)
{
	enum json_token token = json_pull_next(f->p);

	if (token == TOKEN_OBJECT || token == TOKEN_ARRAY)
		(void)fx_skip(f);
	if (token == TOKEN_STRING && json_key_is(f->p->text, "tracing-ms"))
		to->weight = WEIGHT_MS;
	else if (token == TOKEN_STRING && json_key_is(f->p->text, "bytes"))
		to->weight = WEIGHT_BYTES;
}

/* Reads "data": a column of markers in one form of tables, the rows in the other. */
static ow_status read_data(struct firefox *f, enum fx_table_kind kind, struct fx_table *to,
			   struct rows *r)
{
	enum json_token token = json_pull_next(f->p);

	if (token == TOKEN_OBJECT)
		(void)fx_skip(f);
	if (token != TOKEN_ARRAY)
		return OW_OK;
	token = json_pull_next(f->p);
	if (kind != FX_MARKERS || r->used || token == TOKEN_ARRAY)
		return read_rows(f, r, token, kind == FX_MARKERS);
	to->column[MARKER_DATA].count = 0;
	to->column[MARKER_DATA].scale = 0;
	return read_column(f, &to->column[MARKER_DATA], token, true);
}

static ow_status read_member(struct firefox *f, enum fx_table_kind kind, struct fx_table *to,
			     struct rows *r)
{
	struct str key = f->p->text;
	enum json_token token;

	if (json_key_is(key, "schema")) {
		read_schema(f, kind, r);
		return OW_OK;
	}
	if (json_key_is(key, "data"))
		return read_data(f, kind, to, r);
	if (json_key_is(key, "weightType")) {
		read_weight_type(f, to);
		return OW_OK;
	}
	for (size_t i = 0; i < FX_WIDTH; i++) {
		if (!specs[kind].column[i].name || !json_key_is(key, specs[kind].column[i].name))
			continue;
		token = json_pull_next(f->p);
		if (token == TOKEN_OBJECT)
			(void)fx_skip(f);
		if (token != TOKEN_ARRAY)
			return OW_OK;
		to->column[i].count = 0;
		to->column[i].scale = specs[kind].column[i].scale;
		return read_column(f, &to->column[i], json_pull_next(f->p), false);
	}
	(void)fx_skip(f);
	return OW_OK;
}

ow_status fx_read_columns(struct firefox *f, enum fx_table_kind kind, struct fx_table *to)
{
	enum json_token token = json_pull_next(f->p);
	struct rows r = { 0 };
	ow_status status = OW_OK;

	if (token == TOKEN_ARRAY)
		(void)fx_skip(f);
	if (token != TOKEN_OBJECT)
		return OW_OK;
	to->there = true;
	while (status == OW_OK && !f->truncated && (token = json_pull_next(f->p)) == TOKEN_KEY)
		status = read_member(f, kind, to, &r);
	if (status == OW_OK && !f->truncated && token != TOKEN_CLOSE)
		fx_cut(f);
	if (status == OW_OK)
		status = place_rows(f, &r, to);
	for (size_t i = 0; i < POSITIONS; i++)
		column_release(f, &r.position[i]);
	return status;
}

static ow_status read_strings(struct firefox *f, struct fx_tables *to)
{
	enum json_token token = json_pull_next(f->p);

	if (token == TOKEN_OBJECT)
		(void)fx_skip(f);
	if (token != TOKEN_ARRAY)
		return OW_OK;
	to->has_strings = true;
	while (!is_end(token = json_pull_next(f->p))) {
		if (!vec_push(f->mem, to->strings, to->string_count, to->string_cap,
			      token == TOKEN_STRING ? json_text_id(f->b, f->p->text, &f->text)
						    : (str_id){ 0 }))
			return builder_no_memory(f->b);
		if ((token == TOKEN_OBJECT || token == TOKEN_ARRAY) && !fx_skip(f))
			return f->b->status;
	}
	if (token != TOKEN_CLOSE)
		fx_cut(f);
	return f->b->status;
}

ow_status fx_read_table(struct firefox *f, struct fx_tables *to, bool *taken)
{
	struct str key = f->p->text;

	*taken = true;
	if (json_key_is(key, "stringArray") || json_key_is(key, "stringTable"))
		return read_strings(f, to);
	for (size_t k = 0; k < FX_TABLES; k++)
		if (json_key_is(key, specs[k].name))
			return fx_read_columns(f, (enum fx_table_kind)k, &to->table[k]);
	*taken = false;
	return OW_OK;
}

/* Frames since version 71 and functions since version 75 have flags. Without its flag a value is meaningless. */
enum {
	FLAG_INLINED = 1 << 0,
	FLAG_ADDRESS = 1 << 1,
	FLAG_CATEGORY = 1 << 2,
	FLAG_FRAME_LINE = 1 << 4
};
enum { FLAG_RESOURCE = 1 << 2, FLAG_SOURCE = 1 << 3, FLAG_FUNC_LINE = 1 << 4 };

static int64_t flagged_value(const struct fx_column *c, const struct fx_column *flags, size_t row,
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

/* Sets the name. An address is looked up, because samply saves profiles before it looks names up. */
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

/* Returns the number behind the last colon of the first *len bytes, or -1. Shortens *len. */
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

/* Splits "name (file:line:column)". The last number may be missing. */
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
	len = place.len - 1; /* cuts off the bracket */
	first = take_number(place, &len);
	second = first >= 0 ? take_number(place, &len) : -1;
	if (first < 0 || !len)
		return;
	row->line = line_of(second >= 0 ? second : first);
	row->file = builder_str(f->b, str_first(place, len));
	row->function = builder_str(f->b, str_first(text, open));
}

/* Splits "name (in library)", from `perf script gecko`. */
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

static int64_t lib_of(const struct firefox *f, size_t frame, int64_t func)
{
	const struct fx_table *frames = fx_table(f, FX_FRAMES), *funcs = fx_table(f, FX_FUNCS);
	const struct fx_column *flags = &frames->column[FX_FRAME_FLAGS];
	int64_t resource;

	if (frames->column[FX_FRAME_LIB].count)
		return flagged_value(&frames->column[FX_FRAME_LIB], flags, frame, FLAG_ADDRESS);
	if (func < 0)
		return -1;
	resource = flagged_value(&funcs->column[FUNC_RESOURCE], &funcs->column[FUNC_FLAGS],
				 (size_t)func, FLAG_RESOURCE);
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
	source = flagged_value(&funcs->column[FUNC_SOURCE], &funcs->column[FUNC_FLAGS], func,
			       FLAG_SOURCE);
	if (source < 0)
		return (str_id){ 0 };
	return fx_string(f,
			 fx_index(&fx_table(f, FX_SOURCES)->column[SOURCE_FILE], (size_t)source));
}

static frame_id make_frame(struct firefox *f, size_t i)
{
	const struct fx_table *frames = fx_table(f, FX_FRAMES), *funcs = fx_table(f, FX_FUNCS);
	const struct fx_column *flags = &frames->column[FX_FRAME_FLAGS];
	int64_t line = flagged_value(&frames->column[FX_FRAME_LINE], flags, i, FLAG_FRAME_LINE);
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
	start = flagged_value(&funcs->column[FUNC_LINE], &funcs->column[FUNC_FLAGS], (size_t)func,
			      FLAG_FUNC_LINE);
	row.module = lib_name(f, lib_of(f, i, func));
	if (is_kernel(model_str(f->b->m, row.module)))
		row.flags |= FRAME_KERNEL;
	row.file = file_of(f, (size_t)func);
	row.function_line = line_of(start);
	row.line = line_of(line > 0 ? line : start);
	name_frame(f, &row, fx_string(f, fx_index(&funcs->column[FUNC_NAME], (size_t)func)),
		   flagged_value(&frames->column[FX_FRAME_ADDRESS], flags, i, FLAG_ADDRESS));
	return builder_frame(f->b, &row);
}

static size_t frame_count(const struct fx_table *frames)
{
	return frames->column[FX_FRAME_FUNC].count ? frames->column[FX_FRAME_FUNC].count
						   : frames->column[FX_FRAME_LOCATION].count;
}

/* Returns the caller of the stack in row i, which is in an earlier row; -1 for the outermost. */
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
	int64_t category = flagged_value(&frames->column[FX_FRAME_CATEGORY],
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
		builder_no_memory(f->b);
		return NULL;
	}
	return s;
}
