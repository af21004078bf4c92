/*
 * import_torch_timeline.c: the importer of the raw memory timeline of PyTorch's profiler (export_memory_timeline to a file that ends in
 * .raw.json.gz): a list of [time in ns, action, bytes, category]. It reads number by number, because nothing else can be in there;
 * other entries are counted and left out.
 */
#include "import/importer.h"

#define CHUNK ((size_t)64 << 10)
#define FIELDS 4
#define SIZE_MAX_BYTES (INT64_C(1) << 50)	 /* more is damage */
#define TIME_MAX_NS INT64_C(4000000000000000000) /* in the year 2096; later is damage */

enum { FIELD_TIME, FIELD_ACTION, FIELD_BYTES, FIELD_CATEGORY };

/* Torch's numbers of actions. */
enum { ACTION_PREEXISTING = 1, ACTION_CREATE, ACTION_INCREMENT_VERSION, ACTION_DESTROY };

static const char *const categories[] = { "parameter",	    "optimizer state", "input",
					  "temporary",	    "activation",      "gradient",
					  "autograd detail" };

struct timeline {
	struct builder *b;
	struct window window;
	struct str chunk; /* rest of the current chunk */
	uint64_t at, size;
	int64_t fields[FIELDS];
	uint32_t field_count;
	uint64_t entries, odd;
	uint64_t first_odd;
	str_id purposes[ARRAY_COUNT(categories)];
	device_id device;
	bool plain; /* the entry contains only whole numbers */
};

static bool is_blank(char c)
{
	return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

static bool is_number(char c)
{
	return (c >= '0' && c <= '9') || c == '-';
}

static struct str skip_blanks(struct str s)
{
	while (s.len && is_blank(s.ptr[0]))
		s = str_skip(s, 1);
	return s;
}

/* Recognises [[number, number, number, number]. */
static int sniff_torch_timeline(const struct sniff *sniff)
{
	struct str s = skip_blanks(sniff->head);

	for (int i = 0; i < 2; i++) {
		if (!s.len || s.ptr[0] != '[')
			return 0;
		s = skip_blanks(str_skip(s, 1));
	}
	for (int i = 0; i < FIELDS; i++) {
		char after = i + 1 < FIELDS ? ',' : ']';

		if (!s.len || !is_number(s.ptr[0]))
			return 0;
		while (s.len && is_number(s.ptr[0]))
			s = str_skip(s, 1);
		s = skip_blanks(s);
		if (!s.len || s.ptr[0] != after)
			return 0;
		s = skip_blanks(str_skip(s, 1));
	}
	return 90;
}

/* The next byte; -1 at the end and at a failure (window.status). */
static int peek_byte(struct timeline *t)
{
	if (OW_LIKELY(t->chunk.len))
		return (unsigned char)t->chunk.ptr[0];
	if (t->at >= t->size)
		return -1;
	t->chunk = window_peek(&t->window, t->at, (size_t)MIN(t->size - t->at, (uint64_t)CHUNK));
	return t->chunk.ptr && t->chunk.len ? (unsigned char)t->chunk.ptr[0] : -1;
}

static void skip_byte(struct timeline *t)
{
	t->chunk.ptr++;
	t->chunk.len--;
	t->at++;
}

static str_id purpose_of(const struct timeline *t, int64_t category)
{
	if (category < 0 || category >= (int64_t)ARRAY_COUNT(categories))
		return (str_id){ 0 };
	return t->purposes[category];
}

/* The kind of a heap change. A new version of a tensor is a pair of entries: removed from one category, added to
 * another. */
static bool kind_of(const struct timeline *t, enum heap_kind *kind)
{
	int64_t bytes = t->fields[FIELD_BYTES];

	if (bytes > SIZE_MAX_BYTES || bytes < -SIZE_MAX_BYTES ||
	    t->fields[FIELD_TIME] > TIME_MAX_NS)
		return false;
	switch (t->fields[FIELD_ACTION]) {
	case ACTION_PREEXISTING:
		*kind = HEAP_EXISTING;
		return bytes >= 0;
	case ACTION_CREATE:
		*kind = HEAP_ALLOC;
		return bytes >= 0;
	case ACTION_INCREMENT_VERSION:
		*kind = bytes < 0 ? HEAP_FREE : HEAP_ALLOC;
		return true;
	case ACTION_DESTROY:
		*kind = HEAP_FREE;
		return bytes <= 0;
	default:
		return false;
	}
}

static void add_entry(struct timeline *t)
{
	enum heap_kind kind;

	if (!t->plain || t->field_count != FIELDS || !kind_of(t, &kind)) {
		t->first_odd = t->odd++ ? t->first_odd : t->at;
		return;
	}
	t->entries++;
	builder_add_heap(t->b, &(struct heap_row){
				       .ts_ns = t->fields[FIELD_TIME] < 0 ? TIME_UNKNOWN
									  : t->fields[FIELD_TIME],
				       .size = t->fields[FIELD_BYTES],
				       .kind = (uint8_t)kind,
				       .device = t->device,
				       .source = t->b->source,
				       .purpose = purpose_of(t, t->fields[FIELD_CATEGORY]) });
}

/* Reads digits with an optional sign. Anything else makes the entry invalid. */
static void read_number(struct timeline *t)
{
	uint64_t value = 0;
	bool negative = peek_byte(t) == '-', good = true;
	int c;

	if (negative)
		skip_byte(t);
	while ((c = peek_byte(t)) >= '0' && c <= '9') {
		good = good && !__builtin_mul_overflow(value, 10, &value) &&
		       !__builtin_add_overflow(value, (uint64_t)(c - '0'), &value) &&
		       value <= INT64_MAX;
		skip_byte(t);
	}
	t->plain = t->plain && good;
	if (t->field_count < FIELDS)
		t->fields[t->field_count] =
			negative ? -(int64_t)(good ? value : 0) : (int64_t)(good ? value : 0);
	t->field_count++;
}

/* Reads a list; returns whether it was closed. */
static bool read_list(struct timeline *t)
{
	uint32_t depth = 0;

	for (int c; (c = peek_byte(t)) >= 0 && t->b->status == OW_OK;) {
		if (is_number((char)c) && depth == 2) {
			read_number(t);
			continue;
		}
		skip_byte(t);
		if (c == '[' && depth < 3)
			depth++;
		else if (c == ']' && depth)
			depth--;
		else if (!is_blank((char)c) && c != ',')
			t->plain = false;
		if (c == '[' && depth == 2) {
			t->field_count = 0;
			t->plain = true;
		}
		if (c == '[' && depth == 3)
			t->plain = false;
		if (c == ']' && depth == 1)
			add_entry(t);
		if (c == ']' && !depth)
			return true;
	}
	return false;
}

static ow_status finish(struct timeline *t, bool closed)
{
	struct builder *b = t->b;

	if (t->window.status != OW_OK)
		return builder_fail(b, t->window.status);
	fact_text(b, (fact_id){ 0 }, "toplevel", STR("list"));
	fact_int(b, (fact_id){ 0 }, "len", (int64_t)(t->entries + t->odd));
	if (t->odd)
		builder_note_many(b, NOTE_DAMAGED, t->first_odd, t->odd,
				  "entries of the memory timeline that are not [time, action, "
				  "bytes, category] are left out");
	if (!closed)
		builder_note(
			b, NOTE_TRUNCATED, t->at,
			"the file ends inside the memory timeline; the entries before that are "
			"used");
	return builder_status(b);
}

static ow_status load_torch_timeline(struct import_ctx *ctx)
{
	struct timeline t = { .b = ctx->b, .size = ctx->in->size };
	ow_status status;

	for (size_t i = 0; i < ARRAY_COUNT(categories); i++)
		t.purposes[i] = builder_cstr(ctx->b, categories[i]);
	t.device = builder_device(ctx->b, STR("device"));
	window_init(&t.window, ctx->in, ctx->err);
	status = finish(&t, read_list(&t));
	window_release(&t.window);
	if (status == OW_OK && !t.entries)
		return error_set(ctx->err, OW_E_FORMAT,
				 "%s: this is not a memory timeline: no entry can be read",
				 ctx->in->name);
	return status;
}

const struct importer import_torch_timeline = {
	.name = "torch_timeline",
	.summary = "PyTorch memory timeline (raw JSON): allocations by category",
	.extensions = ".raw.json.gz",
	.role = ROLE_TRACE,
	.sniff = sniff_torch_timeline,
	.load = load_torch_timeline,
};
