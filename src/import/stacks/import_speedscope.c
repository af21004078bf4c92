/*
 * import_speedscope.c: the importer of speedscope's JSON (speedscope.app/file-format-schema.json), which many samplers
 * write. A file has several profiles over one list of frames: sampled ones (stacks with weights) and evented ones
 * (frames that open and close). Both become samples: the time between two events of an evented profile belongs to the
 * open frames. Keys may come in any order, so the lists of a profile are read when everything else about it is known.
 */
#include "import/importer.h"

#include "base/vec.h"
#include "import/common/function_name.h"
#include "import/common/model_text.h"

enum unit { UNIT_IS_NONE, UNIT_IS_BYTES, UNIT_IS_NS, UNIT_IS_US, UNIT_IS_MS, UNIT_IS_S };

static const struct {
	const char *name;
	int scale; /* power of ten that converts the unit to nanoseconds */
} units[] = {
	[UNIT_IS_NONE] = { "none", 0 },	      [UNIT_IS_BYTES] = { "bytes", 0 },
	[UNIT_IS_NS] = { "nanoseconds", 0 },  [UNIT_IS_US] = { "microseconds", 3 },
	[UNIT_IS_MS] = { "milliseconds", 6 }, [UNIT_IS_S] = { "seconds", 9 },
};

struct scope_profile {
	str_id type, name, unit;
	uint64_t start_at, end_at;	   /* offsets of the numbers; 0 = absent */
	uint64_t samples, weights, events; /* offsets of the lists; 0 = absent */
};

struct open_frame {
	uint32_t frame;
	stack_id stack;
};

struct speedscope {
	struct import_ctx *ctx;
	struct builder *b;
	struct mem *mem;
	struct buf text;
	struct json_pull *p;
	frame_id *frames;
	size_t frame_count, frame_cap;
	struct scope_profile *profiles;
	size_t profile_count, profile_cap;
	uint64_t profiles_at; /* offset of the list */
	stack_id *stacks;     /* stacks of the samples of one profile */
	size_t stack_count, stack_cap;
	struct open_frame *open;
	size_t open_count, open_cap;
	fact_id keys;
	int64_t active;
	uint64_t rounded, bad_frames, unmatched, left_open, backwards, unequal;
	uint64_t rounded_at, bad_frame_at, unmatched_at, backwards_at, truncated_at;
	bool truncated;
	/* State of the current profile. */
	int scale;
	bool timed;
	metric_id metric;
	track_id track;
	int64_t last;
};

static int sniff_speedscope(const struct sniff *sniff)
{
	struct str head = sniff->head;

	if (str_starts(head, STR("\xef\xbb\xbf")))
		head = str_skip(head, 3);
	head = str_trim(head);
	if (!str_starts(head, STR("{")))
		return 0;
	if (str_has(head, STR("speedscope.app")))
		return 97;
	if (!str_has(head, STR("\"frames\"")))
		return 0;
	if (str_has(head, STR("\"shared\"")))
		return str_has(head, STR("\"profiles\"")) ? 90 : 60;
	return 0;
}

static void cut_here(struct speedscope *s)
{
	if (!s->truncated)
		s->truncated_at = s->p->offset;
	s->truncated = true;
}

static ow_status read_frame(struct speedscope *s)
{
	struct frame_row row = { 0 };
	enum json_token token;
	int64_t line = 0;

	while ((token = json_pull_next(s->p)) == TOKEN_KEY) {
		if (json_key_is(s->p->text, "name"))
			row.function = json_text_value(s->p, s->b, &s->text);
		else if (json_key_is(s->p->text, "file"))
			row.file = json_text_value(s->p, s->b, &s->text);
		else if (json_key_is(s->p->text, "line"))
			(void)json_text_number(s->p, 0, &line);
		else if (!json_pull_skip(s->p))
			break;
	}
	if (token != TOKEN_CLOSE)
		cut_here(s);
	row.line = line > 0 && line <= INT32_MAX ? (int32_t)line : 0;
	row.function = function_name(s->b, model_str(s->b->m, row.function));
	if (!vec_push(s->mem, s->frames, s->frame_count, s->frame_cap, builder_frame(s->b, &row)))
		return import_no_memory(s->ctx);
	return s->b->status;
}

static ow_status read_frames(struct speedscope *s)
{
	enum json_token token;

	if (json_pull_next(s->p) != TOKEN_ARRAY) {
		cut_here(s);
		return OW_OK;
	}
	while (!s->truncated && (token = json_pull_next(s->p)) != TOKEN_CLOSE) {
		if (token == TOKEN_OBJECT)
			OW_TRY(read_frame(s));
		else if (token == TOKEN_DAMAGE || token == TOKEN_END)
			cut_here(s);
		else if (token == TOKEN_ARRAY && !json_pull_skip(s->p))
			cut_here(s);
	}
	return OW_OK;
}

static ow_status read_shared(struct speedscope *s)
{
	enum json_token token;

	if (json_pull_next(s->p) != TOKEN_OBJECT)
		return OW_OK;
	while (!s->truncated && (token = json_pull_next(s->p)) != TOKEN_CLOSE) {
		if (token == TOKEN_KEY && json_key_is(s->p->text, "frames"))
			OW_TRY(read_frames(s));
		else if (token != TOKEN_KEY || !json_pull_skip(s->p))
			cut_here(s);
	}
	return OW_OK;
}

static ow_status read_member(struct speedscope *s)
{
	struct json_pull *p = s->p;
	str_id text;

	text = json_text_id(s->b, p->text, &s->text);
	fact_text(s->b, s->keys, NULL, model_str(s->b->m, text));
	if (json_key_is(p->text, "shared"))
		return read_shared(s);
	if (json_key_is(p->text, "exporter")) {
		s->b->m->source.producer[s->b->source.v] = json_text_value(p, s->b, &s->text);
	} else if (json_key_is(p->text, "activeProfileIndex")) {
		(void)json_text_number(p, 0, &s->active);
	} else if (json_key_is(p->text, "profiles")) {
		if (json_pull_next(p) == TOKEN_ARRAY) {
			s->profiles_at = p->offset;
			if (!json_pull_skip(p))
				cut_here(s);
		}
	} else if (!json_pull_skip(p)) {
		cut_here(s);
	}
	return s->b->status;
}

static ow_status read_top(struct speedscope *s)
{
	enum json_token token;

	if (json_pull_next(s->p) != TOKEN_OBJECT)
		return error_at(s->ctx->err, OW_E_FORMAT, s->p->offset,
				"%s: not a speedscope file, which is a JSON object",
				s->ctx->in->name);
	s->keys = fact_list(s->b, (fact_id){ 0 }, "toplevel_keys");
	while (!s->truncated && (token = json_pull_next(s->p)) != TOKEN_CLOSE) {
		if (token == TOKEN_KEY)
			OW_TRY(read_member(s));
		else
			cut_here(s);
	}
	return s->b->status;
}

/* Skips a value and returns its offset; 0 if it has another kind. */
static uint64_t skip_value(struct speedscope *s, enum json_token wanted)
{
	enum json_token token = json_pull_next(s->p);
	uint64_t at = s->p->offset;

	if ((token == TOKEN_OBJECT || token == TOKEN_ARRAY) && !json_pull_skip(s->p))
		cut_here(s);
	return token == wanted ? at : 0;
}

static ow_status read_profile(struct speedscope *s)
{
	struct scope_profile profile = { 0 };
	enum json_token token = TOKEN_CLOSE;
	struct json_pull *p = s->p;
	bool cut = s->truncated;

	s->truncated = false;
	while (!s->truncated && (token = json_pull_next(p)) == TOKEN_KEY) {
		if (json_key_is(p->text, "type"))
			profile.type = json_text_value(p, s->b, &s->text);
		else if (json_key_is(p->text, "name"))
			profile.name = json_text_value(p, s->b, &s->text);
		else if (json_key_is(p->text, "unit"))
			profile.unit = json_text_value(p, s->b, &s->text);
		else if (json_key_is(p->text, "startValue"))
			profile.start_at = skip_value(s, TOKEN_NUMBER);
		else if (json_key_is(p->text, "endValue"))
			profile.end_at = skip_value(s, TOKEN_NUMBER);
		else if (json_key_is(p->text, "samples"))
			profile.samples = skip_value(s, TOKEN_ARRAY);
		else if (json_key_is(p->text, "weights"))
			profile.weights = skip_value(s, TOKEN_ARRAY);
		else if (json_key_is(p->text, "events"))
			profile.events = skip_value(s, TOKEN_ARRAY);
		else if (!json_pull_skip(p))
			cut_here(s);
	}
	if (token != TOKEN_CLOSE && !s->truncated)
		cut_here(s);
	s->truncated |= cut;
	if (!vec_push(s->mem, s->profiles, s->profile_count, s->profile_cap, profile))
		return import_no_memory(s->ctx);
	return s->b->status;
}

static ow_status read_profiles(struct speedscope *s)
{
	json_pull_seek(s->p, s->profiles_at);
	if (json_pull_next(s->p) != TOKEN_ARRAY)
		return OW_OK;
	while (json_pull_next(s->p) == TOKEN_OBJECT)
		OW_TRY(read_profile(s));
	return s->b->status;
}

static int64_t to_value(struct speedscope *s, struct str text)
{
	int64_t value = 0;

	if (json_decimal(text, s->scale, &value) != JSON_EXACT && !s->rounded++)
		s->rounded_at = s->p->offset;
	return value;
}

static int64_t value_at(struct speedscope *s, uint64_t offset)
{
	json_pull_seek(s->p, offset);
	return json_pull_next(s->p) == TOKEN_NUMBER ? to_value(s, s->p->text) : 0;
}

static frame_id frame_at(struct speedscope *s, struct str text, uint32_t *index)
{
	int64_t number = -1;

	if (json_decimal(text, 0, &number) == JSON_EXACT && number >= 0 &&
	    (uint64_t)number < s->frame_count) {
		*index = (uint32_t)number;
		return s->frames[number];
	}
	if (!s->bad_frames++)
		s->bad_frame_at = s->p->offset;
	*index = UINT32_MAX;
	return (frame_id){ 0 };
}

static void add_sample(struct speedscope *s, int64_t at, int64_t weight, stack_id stack)
{
	builder_add_sample(s->b, &(struct sample_row){ .ts_ns = s->timed ? at : TIME_UNKNOWN,
						       .weight = weight,
						       .metric = s->metric,
						       .stack = stack,
						       .track = s->track });
}

/* Reads one stack, the root first. */
static ow_status read_stack(struct speedscope *s)
{
	stack_id stack = { 0 };
	enum json_token token;
	uint32_t index;

	while ((token = json_pull_next(s->p)) == TOKEN_NUMBER) {
		frame_id frame = frame_at(s, s->p->text, &index);

		if (frame.v)
			stack = builder_stack(s->b, stack, frame);
	}
	if (token != TOKEN_CLOSE)
		return OW_E_CORRUPT;
	if (!vec_push(s->mem, s->stacks, s->stack_count, s->stack_cap, stack))
		return import_no_memory(s->ctx);
	return s->b->status;
}

static ow_status read_stacks(struct speedscope *s, uint64_t offset)
{
	ow_status status = OW_OK;

	s->stack_count = 0;
	json_pull_seek(s->p, offset);
	if (json_pull_next(s->p) != TOKEN_ARRAY)
		return OW_OK;
	while (status == OW_OK && json_pull_next(s->p) == TOKEN_ARRAY)
		status = read_stack(s);
	return status == OW_E_CORRUPT ? OW_OK : status;
}

static ow_status read_sampled(struct speedscope *s, const struct scope_profile *profile)
{
	int64_t at = s->last;
	size_t i = 0;

	OW_TRY(read_stacks(s, profile->samples));
	if (profile->weights) {
		json_pull_seek(s->p, profile->weights);
		if (json_pull_next(s->p) != TOKEN_ARRAY)
			return OW_OK;
		for (; json_pull_next(s->p) == TOKEN_NUMBER; i++) {
			int64_t weight = to_value(s, s->p->text);

			if (i >= s->stack_count)
				break;
			add_sample(s, at, weight, s->stacks[i]);
			/* weights that count as 0 take no time */
			if (weight > 0 && weight <= WEIGHT_MAX)
				at = wrap_add(at, weight);
		}
	}
	s->unequal += i != s->stack_count;
	return s->b->status;
}

/* Adds the time since the last event to the open frames. */
static void pass_time(struct speedscope *s, int64_t at)
{
	int64_t passed;

	if (at < s->last) {
		if (!s->backwards++)
			s->backwards_at = s->p->offset;
		return;
	}
	if (s->open_count && at > s->last && !__builtin_sub_overflow(at, s->last, &passed))
		add_sample(s, s->last, passed, s->open[s->open_count - 1].stack);
	s->last = at;
}

static ow_status open_frame(struct speedscope *s, frame_id frame, uint32_t index)
{
	stack_id parent = { 0 };

	if (s->open_count)
		parent = s->open[s->open_count - 1].stack;
	if (!vec_push(s->mem, s->open, s->open_count, s->open_cap,
		      (struct open_frame){ index,
					   frame.v ? builder_stack(s->b, parent, frame) : parent }))
		return import_no_memory(s->ctx);
	return s->b->status;
}

static void close_frame(struct speedscope *s, uint32_t index)
{
	size_t i = s->open_count;

	while (i && s->open[i - 1].frame != index)
		i--;
	if (i != s->open_count && !s->unmatched++)
		s->unmatched_at = s->p->offset;
	if (i)
		s->open_count = i - 1;
}

/* Reads one event; false when the list ends. */
static bool read_event(struct speedscope *s, ow_status *status)
{
	char kind = 0, at_text[64] = "";
	uint32_t index = UINT32_MAX;
	frame_id frame = { 0 };
	enum json_token token;
	size_t at_len = 0;

	while ((token = json_pull_next(s->p)) == TOKEN_KEY) {
		bool is_type = json_key_is(s->p->text, "type");
		bool is_frame = json_key_is(s->p->text, "frame");
		bool is_at = json_key_is(s->p->text, "at");

		if (!is_type && !is_frame && !is_at) {
			if (!json_pull_skip(s->p))
				return false;
			continue;
		}
		token = json_pull_next(s->p);
		if (token != (is_type ? TOKEN_STRING : TOKEN_NUMBER))
			return false;
		if (is_type) {
			kind = s->p->text.len ? s->p->text.ptr[0] : 0;
		} else if (is_frame) {
			frame = frame_at(s, s->p->text, &index);
		} else {
			at_len = MIN(s->p->text.len, sizeof(at_text));
			memcpy(at_text, s->p->text.ptr, at_len);
		}
	}
	if (token != TOKEN_CLOSE)
		return false;
	pass_time(s, to_value(s, str_make(at_text, at_len)));
	if (kind == 'O')
		*status = open_frame(s, frame, index);
	else if (kind == 'C')
		close_frame(s, index);
	return *status == OW_OK;
}

static ow_status read_evented(struct speedscope *s, const struct scope_profile *profile)
{
	ow_status status = OW_OK;
	int64_t end = profile->end_at ? value_at(s, profile->end_at) : s->last;

	s->open_count = 0;
	json_pull_seek(s->p, profile->events);
	if (json_pull_next(s->p) != TOKEN_ARRAY)
		return OW_OK;
	while (json_pull_next(s->p) == TOKEN_OBJECT && read_event(s, &status))
		;
	OW_TRY(status);
	s->left_open += s->open_count;
	if (s->open_count && end > s->last)
		pass_time(s, end);
	return s->b->status;
}

static enum unit unit_of(struct str name)
{
	for (size_t i = 0; i < ARRAY_COUNT(units); i++)
		if (str_eq(name, str_from(units[i].name)))
			return (enum unit)i;
	return UNIT_IS_NONE;
}

static ow_status add_profile(struct speedscope *s, size_t number)
{
	const struct scope_profile *profile = &s->profiles[number];
	enum unit unit = unit_of(model_str(s->b->m, profile->unit));
	struct builder *b = s->b;

	s->scale = units[unit].scale;
	s->timed = unit >= UNIT_IS_NS;
	s->metric = builder_metric(b,
				   s->timed		   ? STR("time")
				   : unit == UNIT_IS_BYTES ? STR("bytes")
							   : STR("samples"),
				   s->timed		   ? STR("ns")
				   : unit == UNIT_IS_BYTES ? STR("bytes")
							   : STR("count"));
	s->track = builder_track(b, &(struct track_row){ .name = profile->name,
							 .tid = (int64_t)number + 1,
							 .kind = TRACK_HOST,
							 .source = b->source });
	OW_TRY(b->status);
	if ((int64_t)number == s->active || s->profile_count == 1)
		b->m->metric.is_default[s->metric.v] = 1;
	s->last = profile->start_at ? value_at(s, profile->start_at) : 0;
	if (profile->events)
		return read_evented(s, profile);
	if (profile->samples)
		return read_sampled(s, profile);
	return OW_OK;
}

static void add_notes_and_facts(struct speedscope *s)
{
	struct builder *b = s->b;

	if (s->truncated)
		builder_note(b, NOTE_TRUNCATED, s->truncated_at,
			     "the document ends or is damaged here; what comes before is used");
	if (s->bad_frames)
		builder_note_many(b, NOTE_DAMAGED, s->bad_frame_at, s->bad_frames,
				  "frames that are not in the list of frames are left out");
	if (s->unmatched)
		builder_note_many(
			b, NOTE_REPAIRED, s->unmatched_at, s->unmatched,
			"ends of frames that are not the innermost: the frames inside end, too; "
			"ends of frames that are not open are left out");
	if (s->left_open)
		builder_note_many(b, NOTE_REPAIRED, OW_NO_OFFSET, s->left_open,
				  "frames without an end: they end with their profile");
	if (s->backwards)
		builder_note_many(b, NOTE_REPAIRED, s->backwards_at, s->backwards,
				  "events that are earlier than the event before get its time");
	if (s->unequal)
		builder_note_many(b, NOTE_DAMAGED, OW_NO_OFFSET, s->unequal,
				  "profiles whose samples and weights differ in number: those "
				  "without a partner are left out");
	if (s->rounded)
		builder_note_many(b, NOTE_INFO, s->rounded_at, s->rounded,
				  "numbers with more digits than can be kept are rounded");
	fact_text(b, (fact_id){ 0 }, "kind", STR("speedscope"));
	fact_text(b, (fact_id){ 0 }, "toplevel", STR("dict"));
	fact_int(b, (fact_id){ 0 }, "len_profiles", (int64_t)s->profile_count);
	fact_int(b, (fact_id){ 0 }, "frames", (int64_t)s->frame_count);
}

static ow_status read_file(struct speedscope *s)
{
	uint32_t before = s->b->m->sample.count;

	OW_TRY(read_top(s));
	if (s->profiles_at)
		OW_TRY(read_profiles(s));
	if (s->active < 0 || (uint64_t)s->active >= s->profile_count)
		s->active = 0;
	for (size_t i = 0; i < s->profile_count; i++)
		OW_TRY(add_profile(s, i));
	if (s->p->window.status != OW_OK)
		return s->p->window.status;
	if (s->b->m->sample.count == before)
		return error_at(s->ctx->err, OW_E_FORMAT,
				s->truncated ? s->truncated_at : OW_NO_OFFSET,
				"%s: this speedscope file has no samples", s->ctx->in->name);
	add_notes_and_facts(s);
	return s->b->status;
}

static ow_status load_speedscope(struct import_ctx *ctx)
{
	struct speedscope s = { .ctx = ctx, .b = ctx->b, .mem = ctx->b->m->mem };
	ow_status status;

	s.p = mem_alloc(s.mem, sizeof(*s.p));
	if (!s.p)
		return import_no_memory(ctx);
	buf_init(&s.text, s.mem);
	json_pull_init(s.p, ctx->in, ctx->err);
	status = read_file(&s);
	json_pull_release(s.p);
	mem_free(s.mem, s.p, sizeof(*s.p));
	buf_release(&s.text);
	mem_free(s.mem, s.frames, s.frame_cap * sizeof(*s.frames));
	mem_free(s.mem, s.profiles, s.profile_cap * sizeof(*s.profiles));
	mem_free(s.mem, s.stacks, s.stack_cap * sizeof(*s.stacks));
	mem_free(s.mem, s.open, s.open_cap * sizeof(*s.open));
	return status;
}

const struct importer import_speedscope = {
	.name = "speedscope",
	.summary = "speedscope's JSON, sampled and evented profiles",
	.extensions = "*.speedscope.json",
	.role = ROLE_TRACE,
	.sniff = sniff_speedscope,
	.load = load_speedscope,
};
