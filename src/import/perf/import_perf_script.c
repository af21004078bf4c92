/*
 * import_perf_script.c: the importer of the text that `perf script` prints: a line per sample, below it its frames, the
 * leaf first, and an empty line. It also reads one line per sample, which perf prints without call graphs. Names are
 * those that perf found. Times are decimal numbers and are never converted to doubles.
 */
#include "import/importer.h"

#include "import/common/function_name.h"
#include "import/common/stack_cache.h"
#include "import/common/stack_facts.h"
#include "import/common/text_lines.h"

/* The first line of a sample. */
struct perf_head {
	struct str comm, event; /* event: without its last colon; empty when there is none */
	struct str rest;	/* text after the event: a frame, or the text of a record */
	int64_t pid, tid;	/* pid: -1 when the line has only one number */
	int64_t ts_ns;		/* INT64_MIN when there is no time */
	int64_t period;		/* period of the event; 0 when it is not printed */
	int32_t cpu;		/* -1 when it is not printed */
};

struct perf_frame {
	uint64_t address;
	struct str symbol, module; /* empty when unknown */
	bool nameless;		   /* the frame has no symbol at all, not even [unknown] */
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static int hex_value(char c)
{
	if (is_digit(c))
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Takes the next word; false at the end of the line. */
static bool next_word(struct str *rest, struct str *word)
{
	size_t start = 0, end;

	while (start < rest->len && is_blank(rest->ptr[start]))
		start++;
	for (end = start; end < rest->len && !is_blank(rest->ptr[end]);)
		end++;
	*word = str_first(str_skip(*rest, start), end - start);
	*rest = str_skip(*rest, end);
	return word->len > 0;
}

/* Parses thread and process ids: 123 or 45/123. */
static bool parse_ids(struct str word, struct perf_head *head)
{
	size_t slash = str_find_char(word, '/');
	struct str tid = slash == STR_NONE ? word : str_skip(word, slash + 1);

	if (!word.len || !is_digit(word.ptr[0]) || !tid.len || !is_digit(tid.ptr[0]) ||
	    !str_to_i64(tid, &head->tid))
		return false;
	head->pid = -1;
	return slash == STR_NONE || str_to_i64(str_first(word, slash), &head->pid);
}

/* Parses the command, which may contain blanks: it ends before the first word that is a number. */
static bool parse_command(struct str *rest, struct perf_head *head)
{
	struct str line = *rest, word;
	const char *begin = NULL, *end = NULL;

	while (next_word(&line, &word)) {
		if (begin && parse_ids(word, head)) {
			head->comm = str_make(begin, (size_t)(end - begin));
			*rest = line;
			return true;
		}
		begin = begin ? begin : word.ptr;
		end = word.ptr + word.len;
	}
	return false;
}

static bool parse_cpu(struct str word, int32_t *cpu)
{
	int64_t number;

	if (word.len < 3 || word.ptr[0] != '[' || word.ptr[word.len - 1] != ']' ||
	    !str_to_i64(str_make(word.ptr + 1, word.len - 2), &number) || number > INT32_MAX)
		return false;
	*cpu = (int32_t)number;
	return true;
}

/* Parses a time: 12.345678: or 12.345678901: */
static bool parse_time(struct str word, int64_t *ns)
{
	size_t dot = str_find_char(word, '.');
	int64_t seconds, scale = 100000000, part = 0;

	if (dot == STR_NONE || !dot || word.len < dot + 3 || word.ptr[word.len - 1] != ':' ||
	    !is_digit(word.ptr[0]) || !str_to_i64(str_first(word, dot), &seconds) ||
	    seconds > INT64_MAX / 1000000000 - 1)
		return false;
	for (size_t i = dot + 1; i + 1 < word.len; i++) {
		if (!is_digit(word.ptr[i]))
			return false;
		part += (word.ptr[i] - '0') * scale;
		scale /= 10;
	}
	*ns = seconds * 1000000000 + part;
	return true;
}

static bool parse_period(struct str word, int64_t *period)
{
	for (size_t i = 0; i < word.len; i++)
		if (!is_digit(word.ptr[i]))
			return false;
	return str_to_i64(word, period);
}

/* Parses the first line of a sample: comm [pid/]tid [[cpu]] [time:] [period] event: … */
static bool parse_head(struct str line, struct perf_head *head)
{
	struct str rest = line, word;
	bool more;

	*head = (struct perf_head){ .ts_ns = INT64_MIN, .cpu = -1 };
	if (!parse_command(&rest, head))
		return false;
	more = next_word(&rest, &word);
	if (more && parse_cpu(word, &head->cpu))
		more = next_word(&rest, &word);
	if (more && parse_time(word, &head->ts_ns))
		more = next_word(&rest, &word);
	if (more && parse_period(word, &head->period))
		more = next_word(&rest, &word);
	if (more && word.len > 1 && word.ptr[word.len - 1] == ':') {
		head->event = str_first(word, word.len - 1);
		head->rest = str_trim(rest);
	}
	/* if none of these is present, any sentence with a number would be a sample */
	return head->ts_ns != INT64_MIN || head->event.len || head->cpu >= 0;
}

/* Position of the last " (". If that begins "(deleted)", the position of the one before it. */
static size_t module_start(struct str text)
{
	static const char deleted[] = " (deleted)";
	size_t end = text.len;

	if (str_ends(text, STR(" (deleted))")))
		end -= sizeof(deleted);
	for (size_t i = end; i-- > 1;)
		if (text.ptr[i] == '(' && text.ptr[i - 1] == ' ')
			return i;
	return STR_NONE;
}

/* The symbol without its offset: func+0x12 becomes func. */
static struct str without_offset(struct str symbol)
{
	size_t plus = str_rfind_char(symbol, '+');

	if (plus == STR_NONE || symbol.len < plus + 4 ||
	    !str_starts(str_skip(symbol, plus), STR("+0x")))
		return symbol;
	for (size_t i = plus + 3; i < symbol.len; i++)
		if (hex_value(symbol.ptr[i]) < 0)
			return symbol;
	return str_first(symbol, plus);
}

static struct str unless_unknown(struct str text)
{
	return str_eq(text, STR("[unknown]")) ? STR("") : text;
}

/* Parses a frame: ip symbol (module). */
static bool parse_frame(struct str line, struct perf_frame *frame)
{
	struct str rest = line, word, text;
	size_t open;

	*frame = (struct perf_frame){ 0 };
	if (!next_word(&rest, &word) || word.len > 16)
		return false;
	for (size_t i = 0; i < word.len; i++) {
		int digit = hex_value(word.ptr[i]);

		if (digit < 0)
			return false;
		frame->address = frame->address << 4 | (uint64_t)digit;
	}
	text = str_trim(rest);
	open = module_start(text);
	if (open != STR_NONE && text.ptr[text.len - 1] == ')') {
		frame->module = unless_unknown(str_make(text.ptr + open + 1, text.len - open - 2));
		text = str_trim(str_first(text, open));
	} else if (text.len && text.ptr[0] == '(' && text.ptr[text.len - 1] == ')') {
		frame->module = unless_unknown(str_make(text.ptr + 1, text.len - 2));
		frame->nameless = str_starts(rest, STR("  ("));
		text.len = 0;
	}
	frame->symbol = unless_unknown(without_offset(text));
	return true;
}

/* Whether a line without indentation is a frame, judged by its form. */
static bool is_bare_frame(struct str line)
{
	struct str text = str_trim(line);
	struct perf_frame frame;
	struct perf_head head;

	return text.len && text.ptr[text.len - 1] == ')' && str_has(text, STR(" (")) &&
	       parse_frame(line, &frame) && !parse_head(line, &head);
}

#define FRAMES_MAX 4096
#define TOP 5
#define SNIFF_LINES 80
#define MESSAGES 12 /* lines before the first sample that may be something else */

#define MEMO_SLOTS 16384u
#define MEMO_LINE_MAX 1024

/* A line that was parsed as one frame. The same lines occur in most samples. */
struct memo {
	char *text;
	size_t len, cap;
	uint64_t hash;
	struct frame_row row;
	frame_id frame;	 /* 0 = not added to the model yet */
	uint64_t serial; /* increases when the slot is reused for another line */
};

struct script_frame {
	struct frame_row row;
	frame_id id;	   /* frame in the model; 0 = not added yet */
	struct memo *memo; /* cache entry in which the frame's id is stored, too; may be NULL */
	/* serial number of the cache entry when it was read; the entry may be reused since */
	uint64_t serial;
};

struct script {
	struct import_ctx *ctx;
	struct builder *b;
	struct text_lines lines;
	struct name_sums events, commands;
	bool open; /* the first line of a sample was read */
	struct perf_head head;
	metric_id metric;
	track_id track;
	struct script_frame frames[FRAMES_MAX]; /* leaf first */
	uint32_t frame_count;
	struct memo memos[MEMO_SLOTS];
	struct stack_cache recent;
	metric_id default_metric;
	uint64_t comments, heads, frame_lines, text_lines, others, unread, cut;
	uint64_t first_unread;
};

static bool is_frame_line(struct str line)
{
	struct perf_frame frame;

	if (!line.len || (line.ptr[0] != ' ' && line.ptr[0] != '\t'))
		return is_bare_frame(line);
	return parse_frame(line, &frame) && str_find_char(line, '(') != STR_NONE;
}

static int sniff_script(const struct sniff *sniff)
{
	char converted[16384];
	struct str head = text_head(sniff->head, converted, sizeof(converted)), line;
	unsigned heads = 0, frames = 0, all = 0, messages = 0;
	bool message = str_starts(head, STR("[ perf "));

	if (!head.len || memchr(head.ptr, 0, head.len) ||
	    (strchr("<{[", head.ptr[0]) && !message) || str_starts(head, STR("heap profile:")) ||
	    str_starts(head, STR("--- ")))
		return 0; /* legacy texts of pprof look similar */
	while (all < SNIFF_LINES && str_split(&head, '\n', &line)) {
		struct perf_head parsed;

		if (line.len && line.ptr[line.len - 1] == '\r')
			line.len--;
		if (!line.len || line.ptr[0] == '#')
			continue;
		all++;
		if (is_frame_line(line) && heads) {
			frames++;
		} else if (parse_head(line, &parsed) &&
			   (parsed.ts_ns != INT64_MIN || parsed.event.len)) {
			heads++;
		} else if (
			!heads &&
			messages <
				MESSAGES) { /* warnings of perf may be at the beginning of the file */
			messages++;
			all--;
		}
	}
	if (!heads || (heads + frames) * 10 < all * 8 || (messages && !frames))
		return 0;
	return frames ? 85 : 70;
}

static bool is_kernel(struct str module)
{
	size_t slash = str_rfind_char(module, '/');
	struct str file = slash == STR_NONE ? module : str_skip(module, slash + 1);

	return str_starts(module, STR("[kernel")) || str_starts(module, STR("[guest.kernel")) ||
	       str_ends(module, STR("vmlinux")) || str_starts(file, STR("vmlinux-"));
}

/* Whether a module is a file for code that was compiled at run time. */
static bool is_jit(struct str module)
{
	return (str_has(module, STR("/perf-")) && str_ends(module, STR(".map"))) ||
	       (str_has(module, STR("/jitted-")) && str_ends(module, STR(".so")));
}

static void add_frame(struct script *s, const struct perf_frame *frame, struct str symbol,
		      bool inlined)
{
	struct frame_row *row;

	if (s->frame_count == FRAMES_MAX) {
		s->cut++;
		return;
	}
	s->frames[s->frame_count].id.v = 0;
	s->frames[s->frame_count].memo = NULL;
	row = &s->frames[s->frame_count++].row;
	*row = (struct frame_row){ .function = function_name(s->b, symbol),
				   .module = builder_str(s->b, frame->module),
				   .address = frame->address };
	if (inlined)
		row->flags = FRAME_INLINED;
	else if (is_kernel(frame->module))
		row->flags = FRAME_KERNEL;
	else if (is_jit(frame->module))
		row->flags = FRAME_JIT;
	if (frame->nameless)
		row->flags |= FRAME_NAMELESS;
}

/* Adds the frames of "outer->inner", the form in which some maps of compiled code write inlined calls. The leaf
 * comes first. */
static void add_inlined(struct script *s, const struct perf_frame *frame, struct str symbol)
{
	for (;;) {
		size_t at = STR_NONE;

		for (size_t i = 0; i + 2 < symbol.len; i++)
			if (symbol.ptr[i] == '-' && symbol.ptr[i + 1] == '>' &&
			    symbol.ptr[i + 2] != '(') /* part of the name "operator->" */
				at = i;
		if (at == STR_NONE || !at)
			break;
		add_frame(s, frame, str_skip(symbol, at + 2), true);
		symbol = str_first(symbol, at);
	}
	add_frame(s, frame, symbol, false);
}

/* Reads a source line, file.c:12, after a frame; from -F +srcline. */
static bool add_source_line(struct script *s, struct str line)
{
	size_t colon = str_rfind_char(line, ':');
	struct str file = str_trim(str_first(line, MIN(colon, line.len)));
	struct script_frame *last;
	int64_t number;

	if (colon == STR_NONE || !s->frame_count || !file.len ||
	    !str_to_i64(str_skip(line, colon + 1), &number) || number < 0 || number > INT32_MAX)
		return false;
	last = &s->frames[s->frame_count - 1];
	last->row.file = builder_str(s->b, file);
	last->row.line = (int32_t)number;
	last->id.v = 0;
	last->memo = NULL;
	return true;
}

static struct memo *memo_of(struct script *s, uint64_t hash)
{
	return &s->memos[hash >> 32 & (MEMO_SLOTS - 1)];
}

/* Adds the frame of a line that was parsed before. Within a sample, only the text decides whether a line is a frame. */
static bool add_known_line(struct script *s, struct str line, uint64_t hash)
{
	struct memo *memo = memo_of(s, hash);

	if (memo->hash != hash || memo->len != line.len || !memo->text ||
	    memcmp(memo->text, line.ptr, line.len) != 0 || s->frame_count == FRAMES_MAX)
		return false;
	s->frames[s->frame_count++] =
		(struct script_frame){ memo->row, memo->frame, memo->frame.v ? NULL : memo,
				       memo->serial };
	s->frame_lines++;
	return true;
}

/* Remembers a line that became the last frame. */
static void remember_line(struct script *s, struct str line, uint64_t hash)
{
	struct script_frame *last = &s->frames[s->frame_count - 1];
	struct memo *memo = memo_of(s, hash);
	struct mem *mem = s->b->m->mem;

	if (line.len > MEMO_LINE_MAX)
		return;
	if (memo->cap < line.len) {
		mem_free(mem, memo->text, memo->cap);
		memo->text = mem_alloc(mem, line.len);
		memo->cap = memo->text ? line.len : 0;
	}
	if (!memo->text)
		return; /* if memory runs out, the line is parsed again */
	memcpy(memo->text, line.ptr, line.len);
	memo->len = line.len;
	memo->hash = hash;
	memo->row = last->row;
	memo->frame.v = 0;
	last->memo = memo;
	last->serial = ++memo->serial;
}

static void read_frame(struct script *s, struct str line, uint64_t hash)
{
	uint32_t had = s->frame_count;
	struct perf_frame frame;

	if (parse_frame(line, &frame)) {
		s->frame_lines++;
		add_inlined(s, &frame, frame.symbol);
		if (s->frame_count == had + 1)
			remember_line(s, line, hash);
	} else if (!add_source_line(s, line)) {
		s->first_unread = s->unread++ ? s->first_unread : s->lines.offset;
	}
}

static frame_id frame_id_of(struct script *s, const struct script_frame *frame)
{
	frame_id id = frame->id;

	if (id.v)
		return id;
	id = builder_frame(s->b, &frame->row);
	if (frame->memo && frame->memo->serial == frame->serial)
		frame->memo->frame = id;
	return id;
}

static ow_status end_block(struct script *s, bool ended)
{
	struct builder *b = s->b;
	stack_id stack = { 0 };

	if (!s->open)
		return OW_OK;
	s->open = false;
	for (uint32_t i = s->frame_count; i-- > 0;)
		stack = stack_cache_push(&s->recent, b, stack, frame_id_of(s, &s->frames[i]));
	builder_add_sample(b,
			   &(struct sample_row){
				   .ts_ns = s->head.ts_ns,
				   .weight = s->head.period ? s->head.period : 1,
				   .metric = s->metric,
				   .stack = stack,
				   .track = s->track,
				   .label = builder_str(b, ended ? STR("") : STR(SAMPLE_UNENDED)),
				   .cpu = s->head.cpu < INT32_MAX ? s->head.cpu + 1 : 0 });
	s->frame_count = 0;
	return b->status;
}

/* The unit of a period; for the two clock events it is nanoseconds, if perf prints periods. */
static struct str unit_of(const struct perf_head *head)
{
	bool clock = str_starts(head->event, STR("cpu-clock")) ||
		     str_starts(head->event, STR("task-clock"));

	return clock && head->period ? STR("ns") : STR("count");
}

static ow_status begin_block(struct script *s, const struct perf_head *head)
{
	struct builder *b = s->b;
	str_id comm = builder_str(b, head->comm);

	s->heads++;
	s->open = true;
	s->head = *head;
	s->metric =
		builder_metric(b, head->event.len ? head->event : STR("samples"), unit_of(head));
	if (!s->default_metric.v)
		s->default_metric = s->metric;
	s->track = builder_track(b, &(struct track_row){ .name = comm,
							 .process = comm,
							 .pid = head->pid,
							 .tid = head->tid,
							 .kind = TRACK_HOST,
							 .source = b->source });
	if (!name_sums_add(&s->events, builder_str(b, head->event.len ? head->event : STR("?")),
			   1) ||
	    !name_sums_add(&s->commands, comm, 1))
		return import_no_memory(s->ctx);
	return b->status;
}

static ow_status read_head(struct script *s, struct str line)
{
	struct perf_frame frame;
	struct perf_head head;

	if (!parse_head(line, &head)) {
		s->first_unread = s->unread++ ? s->first_unread : s->lines.offset;
		return OW_OK;
	}
	OW_TRY(end_block(s, true));
	if (str_starts(head.event, STR("PERF_RECORD_")) ||
	    str_starts(head.rest, STR("PERF_RECORD_"))) {
		s->others++;
		return OW_OK;
	}
	OW_TRY(begin_block(s, &head));
	/* without call graphs, the only frame is on the same line */
	if (parse_frame(head.rest, &frame) && str_find_char(head.rest, '(') != STR_NONE)
		add_inlined(s, &frame, frame.symbol);
	return s->b->status;
}

/* Whether a line is a frame. Without call graphs perf indents the first line, too; but that line has a time, and a
 * frame has none. */
static bool is_frame(const struct script *s, struct str line)
{
	struct perf_head head;

	if (!s->open)
		return false;
	if (line.ptr[0] != ' ' && line.ptr[0] != '\t')
		return is_bare_frame(line);
	return line.ptr[0] == '\t' || !parse_head(line, &head) || head.ts_ns == INT64_MIN;
}

static ow_status read_lines(struct script *s)
{
	struct str line;

	while (text_lines_next(&s->lines, &line)) {
		uint64_t hash;

		if (!str_trim(line).len) {
			OW_TRY(end_block(s, true));
			continue;
		}
		s->text_lines++;
		hash = s->open ? str_hash(line) : 0;
		if (s->open && add_known_line(s, line, hash))
			continue;
		if (line.ptr[0] == '#')
			s->comments++;
		else if (is_frame(s, line))
			read_frame(s, line, hash);
		else
			OW_TRY(read_head(s, line));
	}
	OW_TRY(text_lines_status(&s->lines));
	return end_block(s, false);
}

static void add_notes_and_facts(struct script *s)
{
	struct builder *b = s->b;
	const fact_id top = { 0 };

	if (s->unread)
		builder_note_many(b, NOTE_DROPPED, s->first_unread, s->unread,
				  "lines that are neither a sample nor a frame are left out");
	if (s->others)
		builder_note_many(b, NOTE_INFO, OW_NO_OFFSET, s->others,
				  "records that are not samples are left out");
	if (s->cut)
		builder_note_many(b, NOTE_DROPPED, OW_NO_OFFSET, s->cut,
				  "frames beyond the first %d of a stack are left out", FRAMES_MAX);
	fact_text(b, top, "kind", STR("perf script"));
	fact_int(b, top, "comment_lines", (int64_t)s->comments);
	fact_int(b, top, "frame_lines", (int64_t)s->frame_lines);
	fact_int(b, top, "lines_nonblank", (int64_t)s->text_lines);
	fact_int(b, top, "sample_headers", (int64_t)s->heads);
	fact_sums(b, top, "events", &s->events);
	fact_top(b, top, "top5_comm", &s->commands, TOP);
}

static ow_status load_lines(struct script *s)
{
	OW_TRY(text_lines_init(&s->lines, s->ctx->in, s->ctx->err));
	OW_TRY(read_lines(s));
	if (!s->heads)
		return error_at(s->ctx->err, OW_E_FORMAT, s->first_unread,
				"%s: this text has no samples of 'perf script'", s->ctx->in->name);
	s->b->m->metric.is_default[s->default_metric.v] = 1;
	add_notes_and_facts(s);
	return s->b->status;
}

static ow_status load_script(struct import_ctx *ctx)
{
	struct mem *mem = ctx->b->m->mem;
	struct script *s = mem_zalloc(mem, sizeof(*s));
	ow_status status;

	if (!s)
		return error_no_memory(ctx->err);
	s->ctx = ctx;
	s->b = ctx->b;
	name_sums_init(&s->events, mem);
	name_sums_init(&s->commands, mem);
	status = load_lines(s);
	text_lines_release(&s->lines);
	name_sums_release(&s->events);
	name_sums_release(&s->commands);
	for (uint32_t i = 0; i < MEMO_SLOTS; i++)
		mem_free(mem, s->memos[i].text, s->memos[i].cap);
	mem_free(mem, s, sizeof(*s));
	return status;
}

const struct importer import_perf_script = {
	.name = "perf_script",
	.summary = "text of perf script: samples with their call stacks",
	.extensions = "*.perf *.txt",
	.role = ROLE_TRACE,
	.sniff = sniff_script,
	.load = load_script,
};
