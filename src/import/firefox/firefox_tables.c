/* firefox_tables.c: reads tables of a Firefox profile, of either form, into lists of numbers; see firefox_int.h. */
#include "import/firefox_int.h"

#define POSITIONS 16 /* columns of a table of rows; no version has more */

static const struct {
	const char *name;
	struct {
		const char *name;
		int scale; /* milliseconds become nanoseconds, or picoseconds, which are summed up */
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

/* ---- memory ---- */

static bool push(struct firefox *f, struct fx_column *c, int64_t value)
{
	void *values = c->values;

	if (OW_UNLIKELY(c->count == c->cap) &&
	    !mem_grow(f->mem, &values, &c->cap, c->count + 1, sizeof(*c->values)))
		return false;
	c->values = values;
	c->values[c->count++] = value;
	return true;
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

/* What one thread used is used again by the next. */
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

/* ---- what markers carry ---- */

/* {"samples": {"data": [[5, …]]}}: what Firefox writes has a thread of one sample for a stack. Reads the rest of the object
 * whose key "samples" came last. */
static void read_sampled_stack(struct firefox *f, int64_t *stack)
{
	uint32_t depth = f->p->depth; /* of the object that has the key */
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

/* The value of "cause", or of "stack" where that is an object: where the marker was set. */
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

/* An object whose bracket was the last token. Its number in the list, or -1 without memory. */
static int64_t read_payload(struct firefox *f)
{
	struct fx_payload to = {
		.offset = f->p->offset, .stack = FX_NONE, .start = FX_NONE, .end = FX_NONE
	};
	enum json_token token = TOKEN_CLOSE;
	void *payloads = f->payloads;

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
	if (!mem_grow(f->mem, &payloads, &f->payload_cap, f->payload_count + 1,
		      sizeof(*f->payloads)))
		return -1;
	f->payloads = payloads;
	f->payloads[f->payload_count] = to;
	return (int64_t)f->payload_count++;
}

/* ---- values ---- */

/* One value, whose token has been read, at the end of a column. */
static ow_status take_value(struct firefox *f, struct fx_column *c, enum json_token token,
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
			return fx_no_memory(f);
		value *= c->scale ? FX_MILLION : 1;
	} else if (token == TOKEN_OBJECT || token == TOKEN_ARRAY) {
		(void)fx_skip(f);
	}
	return push(f, c, value) ? OW_OK : fx_no_memory(f);
}

static bool ends(enum json_token token)
{
	return token == TOKEN_CLOSE || token == TOKEN_DAMAGE || token == TOKEN_END;
}

/* A list whose bracket was the last token, or that is entered at its first value. */
static ow_status read_column(struct firefox *f, struct fx_column *c, enum json_token token,
			     bool payload)
{
	for (; !f->truncated && !ends(token); token = json_pull_next(f->p))
		OW_TRY(take_value(f, c, token, payload));
	if (!f->truncated && token != TOKEN_CLOSE)
		fx_cut(f);
	return OW_OK;
}

/* ---- tables of rows ---- */

struct rows {
	struct fx_column position[POSITIONS];
	int8_t place[FX_WIDTH]; /* of each column, + 1; 0 = not there */
	size_t count;
	bool used;
};

/* {"name": 0, "time": 1} */
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

/* Rows end where nothing but null would follow. */
static bool fill_up(struct firefox *f, struct fx_column *c, size_t count)
{
	while (c->count < count)
		if (!push(f, c, FX_NONE))
			return false;
	return true;
}

/* One row, whose bracket was the last token. */
static ow_status read_row(struct firefox *f, struct rows *r, bool payload)
{
	enum json_token token;
	size_t at = 0;

	for (; !ends(token = json_pull_next(f->p)); at++) {
		if (at < POSITIONS && !fill_up(f, &r->position[at], r->count))
			return fx_no_memory(f);
		if (at < POSITIONS)
			OW_TRY(take_value(f, &r->position[at], token, payload));
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
	for (; !f->truncated && !ends(token); token = json_pull_next(f->p)) {
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
			return fx_no_memory(f);
		column_release(f, &to->column[i]);
		to->column[i] = *from;
		*from = (struct fx_column){ 0 };
	}
	return OW_OK;
}

/* ---- tables ---- */

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

/* "data" of markers is a column in one form and the rows in the other. */
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
	void *strings;

	if (token == TOKEN_OBJECT)
		(void)fx_skip(f);
	if (token != TOKEN_ARRAY)
		return OW_OK;
	to->has_strings = true;
	while (!ends(token = json_pull_next(f->p))) {
		strings = to->strings;
		if (!mem_grow(f->mem, &strings, &to->string_cap, to->string_count + 1,
			      sizeof(*to->strings)))
			return fx_no_memory(f);
		to->strings = strings;
		to->strings[to->string_count++] = token == TOKEN_STRING
							  ? json_text_id(f->b, f->p->text, &f->text)
							  : (str_id){ 0 };
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
