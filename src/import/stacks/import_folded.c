/*
 * import_folded.c: the importer of folded stacks, one line "frame;frame;leaf count" each, which the stackcollapse scripts, py-spy,
 * Austin, torch.profiler.export_stacks and many others write. Other lines are counted and left out. The file has no times: the order
 * of its lines means nothing, and views add up equal stacks.
 */
#include "import/importer.h"
#include "import/common/function_name.h"
#include "import/common/stack_cache.h"
#include "import/common/stack_facts.h"
#include "import/common/text_lines.h"

#include "base/vec.h"

#define FRAMES_MAX 4096 /* frames beyond this number are left out at the leaf's end */
#define TOP 5
#define SNIFF_LINES 60
#define LONG_FRAMES 16 /* frames that a line of 64 KiB needs to be recognised */

struct folded_line {
	struct str stack;
	int64_t value, before;
	bool differential; /* lines have two numbers */
	bool fraction;
};

/* Parses digits with an optional fraction, which is rounded. */
static bool parse_count(struct str text, int64_t *value, bool *fraction)
{
	size_t dot = str_find_char(text, '.');
	struct str whole = dot == STR_NONE ? text : str_first(text, dot);
	struct str rest = dot == STR_NONE ? STR("") : str_skip(text, dot + 1);

	if (!whole.len || whole.ptr[0] == '+' || !str_to_i64(whole, value))
		return false;
	for (size_t i = 0; i < rest.len; i++)
		if (rest.ptr[i] < '0' || rest.ptr[i] > '9')
			return false;
	*fraction = rest.len > 0;
	if (rest.len && rest.ptr[0] >= '5' && *value < INT64_MAX)
		(*value)++;
	return dot == STR_NONE || rest.len;
}

static bool parse_line(struct str line, struct folded_line *out)
{
	size_t space = str_rfind_char(line, ' '), tab = str_rfind_char(line, '\t');
	bool fraction = false;
	int64_t before;

	*out = (struct folded_line){ 0 };
	if (space == STR_NONE || (tab != STR_NONE && tab > space))
		space = tab;
	if (space == STR_NONE || !space)
		return false;
	if (!parse_count(str_skip(line, space + 1), &out->value, &out->fraction))
		return false;
	out->stack = str_trim(str_first(line, space));
	space = str_rfind_char(out->stack, ' ');
	if (space != STR_NONE && parse_count(str_skip(out->stack, space + 1), &before, &fraction)) {
		out->differential = true;
		out->before = before;
	}
	return out->stack.len > 0;
}

static bool is_comment(struct str line)
{
	return str_starts(line, STR("#")) || str_starts(line, STR("//"));
}

/* Whether a line looks like a folded stack; "size: 3" and "a = 3" are lines of other formats. */
static bool looks_folded(struct str line)
{
	struct folded_line f;

	if (!parse_line(line, &f))
		return false;
	return !strchr(":=,{[", f.stack.ptr[f.stack.len - 1]) && f.stack.ptr[0] != '<';
}

/* Whether a line is a sentence, "epoch 1 loss 0.25": several words before the number, outside of the brackets that
 * C++ and lambdas have. */
static bool is_sentence(struct str line)
{
	struct folded_line f;
	int depth = 0;

	if (!parse_line(line, &f))
		return false;
	for (size_t i = 0; i < f.stack.len; i++) {
		depth += strchr("<([{", f.stack.ptr[i]) && f.stack.ptr[i];
		depth -= depth && strchr(">)]}", f.stack.ptr[i]) && f.stack.ptr[i];
		if (!depth && f.stack.ptr[i] == ' ')
			return true;
	}
	return false;
}

/* Whether a text has control characters, which names do not have, except for tabs and terminal colours. */
static bool has_controls(struct str text)
{
	for (size_t i = 0; i < text.len; i++) {
		unsigned char c = (unsigned char)text.ptr[i];

		if (c < ' ' && (!c || !strchr("\t\n\r\f\x1b", c)))
			return true;
	}
	return false;
}

/* Whether a text begins with a frame in brackets, "[unknown];main 3", not with a JSON list. */
static bool is_bracketed_frame(struct str head)
{
	size_t i = 1;

	while (i < head.len && i < 256 && !strchr("[]{}\",;\n", head.ptr[i]))
		i++;
	return i > 1 && i + 1 < head.len && head.ptr[i] == ']' &&
	       (head.ptr[i + 1] == ';' || head.ptr[i + 1] == ' ' || head.ptr[i + 1] == '_');
}

/* Whether the last line of a file is "frame;frame 3"; *stack says whether it has a semicolon. */
static bool ends_in_count(struct str tail, bool *stack)
{
	size_t feed, space;
	bool fraction;
	int64_t value;

	tail = str_trim(tail);
	feed = str_rfind_char(tail, '\n');
	tail = feed == STR_NONE ? tail : str_skip(tail, feed + 1);
	space = str_rfind_char(tail, ' ');
	*stack = space != STR_NONE && str_find_char(str_first(tail, space), ';') != STR_NONE;
	return space != STR_NONE && parse_count(str_skip(tail, space + 1), &value, &fraction);
}

/* Whether a file begins with one very long stack: the first line is longer than the head, and the last line ends in a
 * count. Either the head has many frames, or it is part of a single frame: then it has no blank, unlike prose, or the
 * last line is a stack.
 */
static bool is_long_stack(struct str head, struct str tail)
{
	size_t frames = 0, blanks = 0;
	bool stack;

	for (size_t i = 0; i < head.len; i++) {
		frames += head.ptr[i] == ';';
		blanks += head.ptr[i] == ' ' || head.ptr[i] == '\t';
	}
	return str_find_char(head, '\n') == STR_NONE && ends_in_count(tail, &stack) &&
	       (frames >= LONG_FRAMES || !blanks || stack);
}

static int sniff_folded(const struct sniff *sniff)
{
	static const char refused[] = "<{[";
	char converted[4096];
	struct str head = text_head(sniff->head, converted, sizeof(converted)), line;
	unsigned good = 0, all = 0, stacks = 0, sentences = 0;
	bool cut = sniff->size > sniff->head.len ||
		   (head.ptr == converted && head.len + 4 > sizeof(converted));

	if (!head.len || (strchr(refused, head.ptr[0]) && !is_bracketed_frame(head)) ||
	    has_controls(head))
		return 0;
	if (cut && is_long_stack(head, sniff->tail))
		return 40;
	while (all < SNIFF_LINES && str_split(&head, '\n', &line)) {
		if (cut && !head.len)
			break; /* the last line of the head may be incomplete */
		line = str_trim(line);
		if (!line.len || is_comment(line))
			continue;
		all++;
		if (!looks_folded(line))
			continue;
		good++;
		if (str_find_char(line, ';') != STR_NONE)
			stacks++;
		else if (!stacks)
			sentences += is_sentence(line); /* used only if no line is a stack */
	}
	if (!good || good * 2 < all || (!stacks && sentences * 2 >= good))
		return 0;
	return stacks * 2 >= good ? 60 : stacks ? 40 : 15;
}

struct folding {
	struct import_ctx *ctx;
	struct builder *b;
	struct text_lines lines;
	struct name_sums leaves, roots;
	struct stack_cache *recent;
	frame_id *by_text; /* frame of each string; 0 = not parsed yet */
	size_t by_text_cap;
	struct buf last; /* the previous line's stack */
	struct {
		/* end of a frame in the text of `last`, and the stack up to that frame */
		uint32_t end;
		str_id text;
		stack_id stack;
	} frames[FRAMES_MAX];
	uint32_t depth;
	struct map stacks; /* the distinct stacks */
	metric_id metric, before;
	track_id track;
	int64_t sum, max_depth;
	uint64_t count, distinct, bad, comments, rounded, cut;
	uint64_t first_bad, first_rounded;
	bool differential, austin;
};

static bool to_line(struct str text, int32_t *line)
{
	int64_t number;

	if (!text.len || text.ptr[0] < '0' || text.ptr[0] > '9' || !str_to_i64(text, &number) ||
	    number > INT32_MAX)
		return false;
	*line = (int32_t)number;
	return true;
}

/* Parses a frame of py-spy: "func (file.py:12)". */
static bool py_spy_frame(struct str text, struct frame_row *row, struct builder *b)
{
	size_t open = str_find(text, STR(" (")), colon;
	struct str inside;

	if (open == STR_NONE || !open || !str_ends(text, STR(")")))
		return false;
	inside = str_skip(text, open + 2);
	inside.len--;
	colon = str_rfind_char(inside, ':');
	if (colon == STR_NONE || !to_line(str_skip(inside, colon + 1), &row->line))
		return false;
	row->file = builder_str(b, str_first(inside, colon));
	row->function = builder_str(b, str_first(text, open));
	return true;
}

/* Parses a frame of torch's export_stacks, "file.py(12):_func", in which underscores replace blanks. */
static bool torch_frame(struct str text, struct frame_row *row, struct builder *b)
{
	size_t close = str_find(text, STR("):")), open;
	struct str place, function;

	if (close == STR_NONE)
		return false;
	place = str_first(text, close);
	open = str_rfind_char(place, '(');
	if (open == STR_NONE || !open || !to_line(str_skip(place, open + 1), &row->line))
		return false;
	function = str_skip(text, close + 2);
	if (function.len && (function.ptr[0] == '_' || function.ptr[0] == ' '))
		function = str_skip(function, 1);
	row->file = builder_str(b, str_first(place, open));
	row->function = builder_str(b, function);
	return true;
}

/* Parses a frame of Austin: "file.py:func:12". */
static bool austin_frame(struct str text, struct frame_row *row, struct builder *b)
{
	size_t last = str_rfind_char(text, ':'), middle;

	if (last == STR_NONE || !to_line(str_skip(text, last + 1), &row->line))
		return false;
	middle = str_rfind_char(str_first(text, last), ':');
	if (middle == STR_NONE || !middle)
		return false;
	row->file = builder_str(b, str_first(text, middle));
	row->function = builder_str(b, str_skip(str_first(text, last), middle + 1));
	return true;
}

static frame_id read_frame(struct folding *f, struct str text)
{
	struct frame_row row = { 0 };

	if (str_ends(text, STR("_[k]")))
		row.flags = FRAME_KERNEL;
	else if (str_ends(text, STR("_[j]")))
		row.flags = FRAME_JIT;
	else if (str_ends(text, STR("_[i]")))
		row.flags = FRAME_INLINED;
	if (row.flags || !((f->austin && austin_frame(text, &row, f->b)) ||
			   py_spy_frame(text, &row, f->b) || torch_frame(text, &row, f->b)))
		row.function = function_name(f->b, text);
	return builder_frame(f->b, &row);
}

/* The frame of a text, which is parsed once. */
static frame_id frame_of(struct folding *f, struct str text, str_id id)
{
	if (!vec_reserve_zero(f->b->m->mem, f->by_text, f->by_text_cap, (size_t)id.v + 1)) {
		builder_no_memory(f->b);
		return (frame_id){ 0 };
	}
	if (!f->by_text[id.v].v)
		f->by_text[id.v] = read_frame(f, text);
	return f->by_text[id.v];
}

/* Switches to Austin's frame format and forgets the frames that were parsed in another format. */
static void begin_austin(struct folding *f)
{
	if (!f->austin && f->by_text_cap)
		memset(f->by_text, 0, f->by_text_cap * sizeof(*f->by_text));
	f->depth = f->austin ? f->depth : 0;
	f->austin = true;
}

/* Parses the process and the thread before Austin's frames: "P123;T0:456;". */
static bool austin_thread(struct folding *f, struct str *stack, track_id *track)
{
	struct str rest = *stack, process, thread;
	struct track_row row = { .kind = TRACK_HOST, .source = f->b->source };
	size_t colon;

	if (!str_split(&rest, ';', &process) || !str_split(&rest, ';', &thread) ||
	    process.len < 2 || process.ptr[0] != 'P' || thread.len < 2 || thread.ptr[0] != 'T')
		return false;
	colon = str_rfind_char(thread, ':');
	if (!str_to_i64(str_skip(process, 1), &row.pid) ||
	    !str_to_i64(str_skip(thread, colon == STR_NONE ? 1 : colon + 1), &row.tid))
		return false;
	row.name = builder_str(f->b, thread);
	row.process = builder_str(f->b, process);
	*track = builder_track(f->b, &row);
	*stack = rest;
	begin_austin(f);
	return true;
}

static bool count_stack(struct folding *f, stack_id stack)
{
	uint64_t hash = map_hash_u64(stack.v, 11);

	for (struct map_iter it = map_find(&f->stacks, hash); it.value;
	     it = map_next(&f->stacks, it))
		if (it.value == stack.v + 1)
			return true;
	f->distinct++;
	return map_add(&f->stacks, hash, stack.v + 1);
}

/* The number of equal bytes at the beginning of two texts. */
static size_t common_bytes(struct str a, struct str b)
{
	size_t most = MIN(a.len, b.len), at = 0;

	while (at + 8 <= most && memcmp(a.ptr + at, b.ptr + at, 8) == 0)
		at += 8;
	while (at < most && a.ptr[at] == b.ptr[at])
		at++;
	return at;
}

/* Keeps the frames that this stack shares with the previous one: sorted files repeat most of them. Returns where the
 * rest begins. */
static size_t keep_common(struct folding *f, struct str stack)
{
	size_t common = f->depth ? common_bytes(buf_str(&f->last), stack) : 0, end;

	while (f->depth) {
		end = f->frames[f->depth - 1].end;
		if (end <= common && (end == stack.len || stack.ptr[end] == ';'))
			return MIN(end + 1, stack.len);
		f->depth--;
	}
	return 0;
}

/* The stack of a text; its frames are in f->frames. */
static stack_id read_stack(struct folding *f, struct str text)
{
	size_t from = keep_common(f, text);
	struct str rest = str_skip(text, from), frame;
	stack_id stack = f->depth ? f->frames[f->depth - 1].stack : (stack_id){ 0 };

	while (str_split(&rest, ';', &frame)) {
		str_id id;

		if (!frame.len)
			continue;
		if (f->depth == FRAMES_MAX) {
			f->cut++;
			break;
		}
		id = builder_str(f->b, frame);
		stack = stack_cache_push(f->recent, f->b, stack, frame_of(f, frame, id));
		f->frames[f->depth].end = (uint32_t)(frame.ptr + frame.len - text.ptr);
		f->frames[f->depth].text = id;
		f->frames[f->depth++].stack = stack;
	}
	buf_clear(&f->last);
	buf_add_str(&f->last, text);
	return stack;
}

static ow_status add_stack(struct folding *f, const struct folded_line *line)
{
	struct builder *b = f->b;
	struct str text = line->stack;
	track_id track = f->track;
	str_id root = { 0 }, leaf = { 0 };
	stack_id stack;
	int64_t depth;

	(void)austin_thread(f, &text, &track);
	stack = read_stack(f, text);
	depth = (int64_t)f->depth;
	if (f->depth) {
		root = f->frames[0].text;
		leaf = f->frames[f->depth - 1].text;
	}
	f->max_depth = MAX(f->max_depth, depth);
	f->sum = wrap_add(f->sum, line->value);
	f->count++;
	builder_add_sample(b, &(struct sample_row){ .ts_ns = TIME_UNKNOWN,
						    .weight = line->value,
						    .metric = f->metric,
						    .stack = stack,
						    .track = track });
	if (f->differential)
		builder_add_sample(b, &(struct sample_row){ .ts_ns = TIME_UNKNOWN,
							    .weight = line->before,
							    .metric = f->before,
							    .stack = stack,
							    .track = track });
	if (f->last.failed || !count_stack(f, stack) ||
	    !name_sums_add(&f->leaves, leaf, line->value) ||
	    !name_sums_add(&f->roots, root, line->value))
		return import_no_memory(f->ctx);
	return b->status;
}

/* Finds out whether the file is differential: every line has two numbers. */
static ow_status find_differential(struct folding *f)
{
	unsigned two = 0, all = 0;
	struct folded_line parsed;
	struct str line;

	while (all < SNIFF_LINES && text_lines_next(&f->lines, &line))
		if (!is_comment(line) && parse_line(str_trim(line), &parsed)) {
			all++;
			two += parsed.differential;
		}
	f->differential = all && two == all;
	text_lines_release(&f->lines);
	return text_lines_init(&f->lines, f->ctx->in, f->ctx->err);
}

static ow_status read_lines(struct folding *f)
{
	struct str line;

	while (text_lines_next(&f->lines, &line)) {
		struct folded_line parsed;

		line = str_trim(line);
		if (!line.len)
			continue;
		if (is_comment(line)) {
			f->comments++;
			continue;
		}
		if (!parse_line(line, &parsed)) {
			f->first_bad = f->bad++ ? f->first_bad : f->lines.offset;
			continue;
		}
		if (parsed.fraction)
			f->first_rounded = f->rounded++ ? f->first_rounded : f->lines.offset;
		if (f->differential)
			parsed.stack = str_trim(
				str_first(parsed.stack, str_rfind_char(parsed.stack, ' ')));
		OW_TRY(add_stack(f, &parsed));
	}
	return text_lines_status(&f->lines);
}

static void add_notes_and_facts(struct folding *f)
{
	struct builder *b = f->b;
	const fact_id top = { 0 };

	if (f->bad)
		builder_note_many(b, NOTE_DROPPED, f->first_bad, f->bad,
				  "lines that are not folded stacks (frame;frame count) are left "
				  "out");
	if (f->rounded)
		builder_note_many(b, NOTE_INFO, f->first_rounded, f->rounded,
				  "counts with a fraction are rounded");
	if (f->cut)
		builder_note_many(b, NOTE_DROPPED, OW_NO_OFFSET, f->cut,
				  "stacks are cut after %d frames", FRAMES_MAX);
	if (f->lines.too_long)
		builder_note_many(b, NOTE_DROPPED, OW_NO_OFFSET, f->lines.too_long,
				  "lines are cut after one megabyte");
	fact_text(b, top, "kind", STR("folded"));
	fact_text(b, top, "encoding", f->lines.utf16 ? STR("utf-16") : STR("utf-8"));
	fact_bool(b, top, "crlf", f->lines.crlf && !f->lines.utf16); /* CR LF line ends */
	fact_int(b, top, "stacks", (int64_t)f->count);
	fact_int(b, top, "distinct_stacks", (int64_t)f->distinct);
	fact_int(b, top, "bad_lines",
		 (int64_t)(f->bad + f->comments)); /* lines that are not stacks */
	fact_int(b, top, "max_depth", f->max_depth);
	fact_int(b, top, "sum", f->sum);
	fact_top(b, top, "top5_leaf", &f->leaves, TOP);
	fact_top(b, top, "top5_root", &f->roots, TOP);
}

static ow_status load_lines(struct folding *f)
{
	struct builder *b = f->b;

	OW_TRY(find_differential(f));
	f->track = builder_track(b, &(struct track_row){ .kind = TRACK_HOST, .source = b->source });
	f->metric =
		builder_metric(b, f->differential ? STR("after") : STR("samples"), STR("count"));
	if (f->differential)
		f->before = builder_metric(b, STR("before"), STR("count"));
	b->m->metric.is_default[f->metric.v] = 1;
	OW_TRY(b->status);
	OW_TRY(read_lines(f));
	if (!f->count)
		return error_at(f->ctx->err, OW_E_FORMAT, f->first_bad,
				"%s: none of the lines is a folded stack (frame;frame count)",
				f->ctx->in->name);
	add_notes_and_facts(f);
	return b->status;
}

static void release(struct folding *f, struct mem *mem)
{
	text_lines_release(&f->lines);
	stack_cache_free(f->recent, mem);
	mem_free(mem, f->by_text, f->by_text_cap * sizeof(*f->by_text));
	buf_release(&f->last);
	name_sums_release(&f->leaves);
	name_sums_release(&f->roots);
	map_release(&f->stacks);
	mem_free(mem, f, sizeof(*f));
}

static ow_status load_folded(struct import_ctx *ctx)
{
	struct mem *mem = ctx->b->m->mem;
	struct folding *f = mem_zalloc(mem, sizeof(*f));
	ow_status status;

	if (!f)
		return import_no_memory(ctx);
	f->ctx = ctx;
	f->b = ctx->b;
	name_sums_init(&f->leaves, mem);
	name_sums_init(&f->roots, mem);
	map_init(&f->stacks, mem);
	buf_init(&f->last, mem);
	status = text_lines_init(&f->lines, ctx->in, ctx->err);
	f->recent = stack_cache_new(mem);
	if (!f->recent)
		status = import_no_memory(ctx);
	if (status == OW_OK)
		status = load_lines(f);
	release(f, mem);
	return status;
}

const struct importer import_folded = {
	.name = "folded",
	.summary = "folded stacks: frame;frame count (stackcollapse, py-spy, Austin, torch)",
	.extensions = "*.folded *.txt",
	.role = ROLE_TRACE,
	.sniff = sniff_folded,
	.load = load_folded,
};
