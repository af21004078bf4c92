/*
 * import_perf_script.c: the text that `perf script` prints: a head per sample, below it its frames, the leaf
 * first, and an empty line. Also one line per sample, as perf prints it without call graphs. Nothing is
 * resolved here: names are those that perf found.
 */
#include "import/importer.h"
#include "import/perf_line.h"
#include "import/stack_facts.h"
#include "import/text_lines.h"

#define FRAMES_MAX 4096
#define TOP 5
#define SNIFF_LINES 80

struct script {
	struct import_ctx *ctx;
	struct builder *b;
	struct text_lines lines;
	struct name_sums events, commands;
	bool open; /* a sample's head was read */
	struct perf_head head;
	metric_id metric;
	track_id track;
	struct frame_row frames[FRAMES_MAX]; /* leaf first */
	uint32_t frame_count;
	metric_id default_metric;
	uint64_t comments, heads, frame_lines, text_lines, others, strange, cut;
	uint64_t first_strange;
};

/* ---- recognition ---- */

static bool is_frame_line(struct str line)
{
	struct perf_frame frame;

	if (!line.len || (line.ptr[0] != ' ' && line.ptr[0] != '\t'))
		return perf_frame_is(line);
	return perf_frame_parse(line, &frame) && str_find_char(line, '(') != STR_NONE;
}

static int sniff(const struct sniff *sniff)
{
	char converted[16384];
	struct str head = text_head(sniff->head, converted, sizeof(converted)), line;
	unsigned heads = 0, frames = 0, all = 0;

	if (!head.len || memchr(head.ptr, 0, head.len) || strchr("<{[", head.ptr[0]) ||
	    str_starts(head, STR("heap profile:")) || str_starts(head, STR("--- ")))
		return 0; /* old texts of pprof look alike */
	while (all < SNIFF_LINES && str_split(&head, '\n', &line)) {
		struct perf_head parsed;

		if (line.len && line.ptr[line.len - 1] == '\r')
			line.len--;
		if (!line.len || line.ptr[0] == '#')
			continue;
		all++;
		if (is_frame_line(line) && heads)
			frames++;
		else
			heads += perf_head_parse(line, &parsed) &&
				 (parsed.ts_ns != INT64_MIN || parsed.event.len);
	}
	if (!heads || (heads + frames) * 10 < all * 8)
		return 0;
	return frames ? 85 : 70;
}

/* ---- frames ---- */

static bool is_kernel(struct str module)
{
	size_t slash = str_rfind_char(module, '/');
	struct str file = slash == STR_NONE ? module : str_skip(module, slash + 1);

	return str_starts(module, STR("[kernel")) || str_starts(module, STR("[guest.kernel")) ||
	       str_ends(module, STR("vmlinux")) || str_starts(file, STR("vmlinux-"));
}

/* Maps and dumps of code that was compiled at run time. */
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
	row = &s->frames[s->frame_count++];
	*row = (struct frame_row){ .function = builder_str(s->b, symbol),
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

/* "outer->inner": what some maps of compiled code give for inlined calls. The leaf comes first. */
static void add_inlined(struct script *s, const struct perf_frame *frame, struct str symbol)
{
	for (;;) {
		size_t at = STR_NONE;

		for (size_t i = 0; i + 2 < symbol.len; i++)
			if (symbol.ptr[i] == '-' && symbol.ptr[i + 1] == '>' &&
			    symbol.ptr[i + 2] != '(') /* operator-> */
				at = i;
		if (at == STR_NONE || !at)
			break;
		add_frame(s, frame, str_skip(symbol, at + 2), true);
		symbol = str_first(symbol, at);
	}
	add_frame(s, frame, symbol, false);
}

/* file.c:12 behind a frame, by -F +srcline. */
static bool add_source_line(struct script *s, struct str line)
{
	size_t colon = str_rfind_char(line, ':');
	struct str file = str_trim(str_first(line, MIN(colon, line.len)));
	int64_t number;

	if (colon == STR_NONE || !s->frame_count || !file.len ||
	    !str_to_i64(str_skip(line, colon + 1), &number) || number < 0 || number > INT32_MAX)
		return false;
	s->frames[s->frame_count - 1].file = builder_str(s->b, file);
	s->frames[s->frame_count - 1].line = (int32_t)number;
	return true;
}

static void read_frame(struct script *s, struct str line)
{
	struct perf_frame frame;

	if (perf_frame_parse(line, &frame)) {
		s->frame_lines++;
		add_inlined(s, &frame, frame.symbol);
	} else if (!add_source_line(s, line)) {
		s->first_strange = s->strange++ ? s->first_strange : s->lines.offset;
	}
}

/* ---- samples ---- */

static ow_status end_block(struct script *s, bool ended)
{
	struct builder *b = s->b;
	stack_id stack = { 0 };

	if (!s->open)
		return OW_OK;
	s->open = false;
	for (uint32_t i = s->frame_count; i-- > 0;)
		stack = builder_stack(b, stack, builder_frame(b, &s->frames[i]));
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

/* Periods of the two clocks are nanoseconds, where perf prints them. */
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

	if (!perf_head_parse(line, &head)) {
		s->first_strange = s->strange++ ? s->first_strange : s->lines.offset;
		return OW_OK;
	}
	OW_TRY(end_block(s, true));
	if (str_starts(head.event, STR("PERF_RECORD_")) ||
	    str_starts(head.rest, STR("PERF_RECORD_"))) {
		s->others++;
		return OW_OK;
	}
	OW_TRY(begin_block(s, &head));
	/* without call graphs the only frame is on the same line */
	if (perf_frame_parse(head.rest, &frame) && str_find_char(head.rest, '(') != STR_NONE)
		add_inlined(s, &frame, frame.symbol);
	return s->b->status;
}

/* A head that is indented, as perf does without call graphs, has a time; a frame has none. */
static bool is_frame(const struct script *s, struct str line)
{
	struct perf_head head;

	if (!s->open)
		return false;
	if (line.ptr[0] != ' ' && line.ptr[0] != '\t')
		return perf_frame_is(line);
	return line.ptr[0] == '\t' || !perf_head_parse(line, &head) || head.ts_ns == INT64_MIN;
}

static ow_status read_lines(struct script *s)
{
	struct str line;

	while (text_lines_next(&s->lines, &line)) {
		if (!str_trim(line).len) {
			OW_TRY(end_block(s, true));
			continue;
		}
		s->text_lines++;
		if (line.ptr[0] == '#')
			s->comments++;
		else if (is_frame(s, line))
			read_frame(s, line);
		else
			OW_TRY(read_head(s, line));
	}
	OW_TRY(text_lines_status(&s->lines));
	return end_block(s, false);
}

static void tell(struct script *s)
{
	struct builder *b = s->b;
	const fact_id top = { 0 };

	if (s->strange)
		builder_note_many(b, NOTE_DROPPED, s->first_strange, s->strange,
				  "a line that is neither a sample nor a frame");
	if (s->others)
		builder_note_many(b, NOTE_INFO, OW_NO_OFFSET, s->others,
				  "a record that is no sample, left out");
	if (s->cut)
		builder_note_many(b, NOTE_DROPPED, OW_NO_OFFSET, s->cut,
				  "a frame beyond the %dth of its stack", FRAMES_MAX);
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
		return error_at(s->ctx->err, OW_E_FORMAT, s->first_strange,
				"%s: no sample of 'perf script' in here", s->ctx->in->name);
	s->b->m->metric.is_default[s->default_metric.v] = 1;
	tell(s);
	return s->b->status;
}

static ow_status load(struct import_ctx *ctx)
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
	mem_free(mem, s, sizeof(*s));
	return status;
}

const struct importer import_perf_script = {
	.name = "perf_script",
	.summary = "text of perf script: samples with their call stacks",
	.extensions = "*.perf *.txt",
	.role = ROLE_TRACE,
	.sniff = sniff,
	.load = load,
};
