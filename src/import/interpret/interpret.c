/*
 * interpret.c: runs the passes of the interpretation over the rows of one source: surveys tracks, categories and names, finds
 * the producer, and calls the passes in order. Importers call interpret_trace. What an event means is decided in the passes
 * and producers.
 *
 * Also here: reading the arguments of events in the order of the file, so that each byte is read once; and the pass that
 * makes ops of the names in drafts of events. Producers change these names; then the names that are left become ops, with
 * short types for kernels and paths for tf.data. Only work of a host or a device makes an op; frames, bookkeeping and points
 * in time keep their own name.
 */
#include "import/interpret/interpret_int.h"

#include "base/demangle/demangle.h"
#include "base/prefault.h"
#include "base/vec.h"

#define ARGS_MAX ((uint32_t)16 << 20) /* larger arguments are not read */

ow_status interpret_rows_add(struct interpret *x, struct interpret_rows *rows, uint32_t event)
{
	if (!vec_push(x->mem, rows->list, rows->count, rows->cap, event))
		return interpret_no_memory(x);
	return OW_OK;
}

void interpret_rows_release(struct interpret *x, struct interpret_rows *rows)
{
	mem_free(x->mem, rows->list, rows->cap * sizeof(*rows->list));
	*rows = (struct interpret_rows){ 0 };
}

static int by_offset(const void *a, const void *b, void *arg)
{
	const uint64_t *offset = arg;
	uint64_t x = offset[*(const uint32_t *)a], y = offset[*(const uint32_t *)b];

	return (x > y) - (x < y);
}

static bool is_sorted(const struct interpret_rows *rows, const uint64_t *offset)
{
	for (size_t i = 1; i < rows->count; i++)
		if (offset[rows->list[i]] < offset[rows->list[i - 1]])
			return false;
	return true;
}

static const struct input *input_of(const struct interpret *x)
{
	return x->in->input;
}

/* Returns whether events are few and far apart, so that they are read one by one and not through
 * a window. */
static bool is_sparse(const struct interpret_rows *rows, const struct event_table *e)
{
	uint64_t bytes = 0;

	for (size_t i = 0; i < rows->count; i++)
		bytes += e->args_size[rows->list[i]];
	return e->args_offset[rows->list[rows->count - 1]] - e->args_offset[rows->list[0]] >
	       16 * bytes + ((uint64_t)1 << 20);
}

static ow_status read_one_by_one(struct interpret *x, const struct interpret_rows *rows,
				 interpret_args_fn take, void *arg)
{
	ow_status status = OW_OK;
	struct buf text;

	buf_init(&text, x->mem);
	for (size_t i = 0; i < rows->count && status == OW_OK; i++) {
		status = interpret_args_of(x, rows->list[i], &text);
		if (status == OW_OK && text.len)
			take(x, rows->list[i], buf_str(&text), arg);
	}
	buf_release(&text);
	return status;
}

static ow_status read_in_a_row(struct interpret *x, const struct interpret_rows *rows,
			       interpret_args_fn take, void *arg)
{
	const struct event_table *e = &x->m->event;
	struct input in = *input_of(x);
	struct window window;
	ow_status status = OW_OK;

	in.progress = NULL; /* no progress is reported: the input was already read once */
	window_init(&window, &in, x->err);
	for (size_t i = 0; i < rows->count && status == OW_OK; i++) {
		uint32_t row = rows->list[i], size = e->args_size[row];
		const unsigned char *text;

		if (!size || size > ARGS_MAX)
			continue;
		text = window_at(&window, e->args_offset[row], size);
		if (!text)
			status = window.status;
		else
			take(x, row, str_make(text, size), arg);
	}
	window_release(&window);
	return status;
}

ow_status interpret_read_args(struct interpret *x, struct interpret_rows *rows,
			      interpret_args_fn take, void *arg)
{
	const struct event_table *e = &x->m->event;
	ow_status status;

	if (!rows->count || !e->args_size)
		return OW_OK;
	if (!is_sorted(rows, e->args_offset))
		qsort_r(rows->list, rows->count, sizeof(*rows->list), by_offset, e->args_offset);
	status = is_sparse(rows, e) ? read_one_by_one(x, rows, take, arg)
				    : read_in_a_row(x, rows, take, arg);
	return status == OW_OK ? builder_status(x->b) : builder_fail(x->b, status);
}

ow_status interpret_args_of(struct interpret *x, uint32_t event, struct buf *text)
{
	uint32_t size = COLUMN_GET(x->m->event.args_size, event);
	ow_status status;

	buf_clear(text);
	if (!size || size > ARGS_MAX)
		return OW_OK;
	if (!buf_reserve(text, size))
		return interpret_no_memory(x);
	status =
		input_read_at(input_of(x), x->m->event.args_offset[event], text->ptr, size, x->err);
	if (status != OW_OK)
		return builder_fail(x->b, status);
	text->len = size;
	return OW_OK;
}

bool interpret_number(struct json_value value, int64_t *number)
{
	return (value.kind == JSON_NUMBER || value.kind == JSON_STRING) &&
	       json_decimal(json_text(value), 0, number) == JSON_EXACT;
}

str_id interpret_string(struct interpret *x, struct json_value value)
{
	struct buf decoded;
	str_id id;

	if (value.kind != JSON_STRING)
		return (str_id){ 0 };
	if (json_is_plain(json_text(value)))
		return builder_str(x->b, json_text(value));
	buf_init(&decoded, x->mem);
	json_decode(json_text(value), &decoded);
	if (decoded.failed)
		interpret_no_memory(x);
	id = builder_str(x->b, buf_str(&decoded));
	buf_release(&decoded);
	return id;
}

str_id iterator_path(struct builder *b, struct str name)
{
	struct buf path;
	str_id id;

	if (!str_starts(name, STR("Iterator::")))
		return (str_id){ 0 };
	buf_init(&path, b->m->mem);
	for (size_t i = 0; i < name.len; i++) {
		bool separator = name.ptr[i] == ':' && i + 1 < name.len && name.ptr[i + 1] == ':';

		buf_add_char(&path, separator ? '/' : name.ptr[i]);
		i += separator;
	}
	if (path.failed)
		builder_no_memory(b);
	id = builder_str(b, buf_str(&path));
	buf_release(&path);
	return id;
}

str_id iterator_stage(struct builder *b, struct str name)
{
	struct str last = name;
	struct buf text;
	size_t at;
	str_id id;

	while ((at = str_find(last, STR("::"))) != STR_NONE)
		last = str_skip(last, at + 2);
	buf_init(&text, b->m->mem);
	buf_puts(&text, "Iterator::");
	buf_add_str(&text, last);
	if (text.failed)
		builder_no_memory(b);
	id = builder_str(b, buf_str(&text));
	buf_release(&text);
	return id;
}

void event_draft_init(struct event_draft *d, const struct builder *b)
{
	*d = (struct event_draft){ .mem = b->m->mem, .first = b->m->event.count };
}

void event_draft_release(struct event_draft *d)
{
	mem_free(d->mem, d->op_name, d->cap * sizeof(*d->op_name));
	if (d->sequence)
		mem_free(d->mem, d->sequence, d->cap * sizeof(*d->sequence));
	*d = (struct event_draft){ .mem = d->mem, .first = d->first };
}

bool event_draft_reserve(struct event_draft *d, size_t events, bool sequences)
{
	OW_ASSERT(!d->sequence);
	if (!vec_reserve(d->mem, d->op_name, d->cap, MAX(events, (size_t)1)))
		return false;
	if (sequences)
		d->sequence = mem_alloc(d->mem, d->cap * sizeof(*d->sequence));
	return d->sequence || !sequences;
}

event_id event_draft_add(struct event_draft *d, struct builder *b, const struct event_row *row,
			 str_id op_name)
{
	event_id event = builder_add_event(b, row);

	if (!event.v)
		return event;
	if (event.v - d->first >= d->cap &&
	    !event_draft_reserve(d, event.v - d->first + 1, false)) {
		builder_no_memory(b);
		return (event_id){ 0 };
	}
	d->op_name[event.v - d->first] = op_name;
	return event;
}

bool event_draft_permute(struct event_draft *d, const uint32_t *order, uint32_t last)
{
	str_id *names = mem_alloc(d->mem, d->cap * sizeof(*names));

	if (!names)
		return false;
	for (uint32_t i = d->first; i < last; i++)
		names[i - d->first] = d->op_name[order[i] - d->first];
	mem_free(d->mem, d->op_name, d->cap * sizeof(*names));
	d->op_name = names;
	return true;
}

ow_status interpret_rename(struct interpret *x, uint32_t event, str_id name)
{
	str_id *op_name = &x->in->draft->op_name[event - x->first_event];

	if (!name.v || op_name->v == name.v)
		return builder_status(x->b);
	if (!COLUMN_GET(x->m->event.name, event).v)
		BUILDER_SET(x->b, event, name, (event_id){ event }, *op_name);
	*op_name = name;
	return builder_status(x->b);
}

ow_status interpret_rename_all(struct interpret *x, const str_id *to)
{
	const str_id *op_name = x->in->draft->op_name;

	for (uint32_t i = x->first_event; i < x->last_event; i++) {
		uint32_t name = op_name[i - x->first_event].v;

		if (name < x->string_count && to[name].v)
			OW_TRY(interpret_rename(x, i, to[name]));
	}
	return OW_OK;
}

struct op_draft *interpret_draft(struct interpret *x, str_id name)
{
	size_t old = x->draft_cap;

	if (name.v >= x->draft_cap) {
		if (!vec_reserve(x->mem, x->drafts, x->draft_cap,
				 MAX((size_t)name.v + 1, (size_t)x->m->strings.count))) {
			interpret_no_memory(x);
			return NULL;
		}
		memset(x->drafts + old, 0, (x->draft_cap - old) * sizeof(*x->drafts));
	}
	return &x->drafts[name.v];
}

static ow_status shorten(struct interpret *x, str_id name, struct buf *text)
{
	struct op_draft *draft = interpret_draft(x, name);

	if (!draft)
		return builder_status(x->b);
	if (draft->type.v)
		return OW_OK;
	buf_clear(text);
	kernel_short_name(model_str(x->m, name), text);
	if (text->failed)
		return interpret_no_memory(x);
	draft->type = name;
	if (str_eq(buf_str(text), model_str(x->m, name)))
		return OW_OK;
	draft->type = builder_str(x->b, buf_str(text));
	draft->flags |= OP_SHORT_TYPE;
	return builder_status(x->b);
}

ow_status interpret_shorten_kernels(struct interpret *x)
{
	ow_status status = OW_OK;
	struct buf text;

	buf_init(&text, x->mem);
	for (uint32_t t = x->first_track; t < x->last_track; t++) {
		const struct interpret_track *track = interpret_track(x, t);
		uint32_t last = 0;

		if (!interpret_on_device(x, t))
			continue;
		for (uint32_t e = track->first; e < track->last && status == OW_OK; e++) {
			enum category_class category = interpret_category(x, e);
			str_id name = interpret_op_name(x, e);

			if (name.v == last ||
			    (category != CATEGORY_KERNEL && category != CATEGORY_NONE))
				continue;
			last = name.v;
			status = shorten(x, name, &text);
		}
	}
	buf_release(&text);
	return status;
}

static bool makes_ops(const struct interpret *x, uint32_t track)
{
	return interpret_on_host(x, track) || interpret_on_device(x, track) ||
	       x->m->track.kind[track] == TRACK_DEVICE;
}

struct making {
	struct interpret *x;
	uint32_t *op_of; /* op of each string */
};

/* Returns the role of a name between the ops that do the work. `event` is the first with that
 * name. */
static uint32_t role_of(struct interpret *x, uint32_t track, uint32_t event, str_id name)
{
	struct name_class class = interpret_name_class(x, name);

	if (interpret_on_device(x, track))
		return class.device == DEVICE_WAIT || interpret_category(x, event) == CATEGORY_SYNC
			       ? OP_WAITS
			       : 0;
	if (class.host == HOST_SYNC || class.host == HOST_SLEEP)
		return OP_WAITS;
	if (class.host == HOST_MARKER)
		return OP_WRAPS | OP_STEP_MARK;
	if (class.host == HOST_WRAPPER || interpret_category(x, event) == CATEGORY_ORT_SESSION)
		return OP_WRAPS;
	return class.host == HOST_PLAIN && interpret_is_annotation(x, event, name) ? OP_WRAPS : 0;
}

/* Returns the name of an op; stages of tf.data are named by their path. */
static str_id op_name(struct interpret *x, str_id name)
{
	str_id path = iterator_path(x->b, model_str(x->m, name));

	return path.v && model_str(x->m, name).len > strlen("Iterator::") ? path : name;
}

static op_id new_op(struct making *k, str_id name, str_id own, uint32_t role)
{
	struct interpret *x = k->x;
	struct op_draft draft = name.v < x->draft_cap ? x->drafts[name.v] : (struct op_draft){ 0 };
	str_id called = op_name(x, name);
	op_id op = builder_find_op(x->b, called);

	if (op.v)
		return op;
	if (name.v < x->in->hint_count) {
		if (x->in->hints[name.v].type.v) {
			draft.type = x->in->hints[name.v].type;
			draft.flags &= ~(uint32_t)OP_SHORT_TYPE;
		}
		draft.flags |= x->in->hints[name.v].flags;
	}
	if (!draft.type.v && name.v < x->in->type_count)
		draft.type.v = x->in->types[name.v];
	if (!draft.type.v)
		draft.type = own.v ? own : name;
	return builder_new_op(x->b, &(struct op_row){ .name = called,
						      .type = draft.type,
						      .device = draft.device,
						      .flags = draft.flags | role | OP_FROM_RUN });
}

static ow_status make_of_track(struct making *k, uint32_t t)
{
	struct interpret *x = k->x;
	const struct interpret_track *track = interpret_track(x, t);
	const struct event_table *e = &x->m->event;
	const str_id *names = x->in->draft->op_name;
	const uint32_t *op_of = k->op_of;

	for (uint32_t i = track->first; i < track->last; i++) {
		str_id name = names[i - x->first_event];

		if (OW_LIKELY(op_of[name.v]) || !interpret_is_slice(x, i))
			continue;
		k->op_of[name.v] = new_op(k, name, COLUMN_GET(e->name, i),
					  role_of(x, t, i, interpret_name(x, i)))
					   .v;
		OW_TRY(builder_status(x->b));
	}
	return OW_OK;
}

/* Makes events runs of their ops; an event whose name differs from its op keeps its own name. */
static ow_status use_ops(struct making *k)
{
	struct interpret *x = k->x;
	const struct event_table *e = &x->m->event;
	const uint32_t *op_of = k->op_of;
	const str_id *op_names = x->m->op.name, *names = x->in->draft->op_name;
	op_id *ops = e->op;

	prefault(ops, x->first_event * sizeof(*ops), x->last_event * sizeof(*ops));
	for (uint32_t t = x->first_track; t < x->last_track; t++) {
		const struct interpret_track *track = interpret_track(x, t);
		bool named =
			x->m->track.kind[t] == TRACK_FRAMES || x->m->track.kind[t] == TRACK_SPAN;

		for (uint32_t i = track->first; i < track->last; i++) {
			uint32_t name = names[i - x->first_event].v, op = op_of[name];
			bool none = named || !op || !interpret_is_slice(x, i);

			if (OW_UNLIKELY(none || op_names[op].v != name) &&
			    !COLUMN_GET(e->name, i).v)
				BUILDER_SET(x->b, event, name, (event_id){ i }, (str_id){ name });
			ops[i].v = none ? 0 : op;
		}
		OW_TRY(builder_status(x->b));
	}
	return OW_OK;
}

/* Frees the names: from here on event.op is valid. Sequence numbers are kept until links are made. */
static void release_names(struct event_draft *d)
{
	mem_free(d->mem, d->op_name, d->cap * sizeof(*d->op_name));
	d->op_name = NULL;
}

ow_status interpret_make_ops(struct interpret *x)
{
	struct making k = { .x = x,
			    .op_of = ARENA_ARRAY(&x->scratch, uint32_t, x->m->strings.count) };
	ow_status status = OW_OK;

	if (!k.op_of)
		return interpret_no_memory(x);
	for (uint32_t t = x->first_track; t < x->last_track && status == OW_OK; t++)
		if (makes_ops(x, t))
			status = make_of_track(&k, t);
	if (status == OW_OK)
		status = use_ops(&k);
	if (status == OW_OK)
		release_names(x->in->draft);
	return status;
}

#define PRODUCER(name) &producer_##name,
static const struct producer *const producers[] = {
#include "import/interpret/producers.def"
};
#undef PRODUCER

bool interpret_writes_steps(struct str title)
{
	for (size_t i = 0; i < ARRAY_COUNT(producers); i++)
		if (producers[i]->file_is_step && str_eq(title, str_from(producers[i]->title)))
			return true;
	return false;
}

bool interpret_on_device(const struct interpret *x, uint32_t track)
{
	switch ((enum track_kind)x->m->track.kind[track]) {
	case TRACK_STREAM:
	case TRACK_COPY:
	case TRACK_ACCELERATOR:
	case TRACK_COMMUNICATION:
		return true;
	default:
		return false;
	}
}

bool interpret_on_host(const struct interpret *x, uint32_t track)
{
	return x->m->track.kind[track] == TRACK_HOST || x->m->track.kind[track] == TRACK_LOADER;
}

bool interpret_has_process(const struct interpret *x, bool (*test)(struct str process))
{
	for (uint32_t t = x->first_track; t < x->last_track; t++)
		if (test(interpret_process(x, t)))
			return true;
	return false;
}

bool interpret_has_name(const struct interpret *x, bool (*test)(struct str name))
{
	for (size_t i = 0; i < x->names.count; i++)
		if (test(model_str(x->m, (str_id){ x->names.list[i] })))
			return true;
	return false;
}

struct name_class interpret_new_name_class(struct interpret *x, str_id name)
{
	struct name_class class = classify_name(model_str(x->m, name));

	if (name.v < x->string_count && !x->shared) {
		x->name_of[name.v] = class;
		x->name_known[name.v] = 1;
	}
	return class;
}

static ow_status make_arrays(struct interpret *x)
{
	x->string_count = x->m->strings.count;
	x->tracks = ARENA_ARRAY(&x->scratch, struct interpret_track,
				(size_t)(x->last_track - x->first_track) + 1);
	x->category_of = ARENA_ARRAY(&x->scratch, uint8_t, x->string_count);
	x->name_of = ARENA_ARRAY(&x->scratch, struct name_class, x->string_count);
	x->name_known = ARENA_ARRAY(&x->scratch, uint8_t, x->string_count);
	x->first_of = ARENA_ARRAY(&x->scratch, uint32_t, x->string_count);
	if (!x->tracks || !x->category_of || !x->name_of || !x->name_known || !x->first_of)
		return interpret_no_memory(x);
	return OW_OK;
}

/* Returns the class of a category; CATEGORY_NONE, which is 0, means here that the text was not
 * examined yet. */
static enum category_class class_of(struct interpret *x, str_id category)
{
	struct category_meaning meaning;

	if (!category.v)
		return CATEGORY_NONE;
	if (!x->category_of[category.v]) {
		meaning = category_meaning(model_str(x->m, category));
		x->category_of[category.v] = meaning.class;
		x->kineto_categories |= meaning.kineto;
	}
	return (enum category_class)x->category_of[category.v];
}

static void survey_categories(struct interpret *x, struct interpret_track *track)
{
	const str_id *category = x->m->event.category;
	str_id last = { UINT32_MAX };

	for (uint32_t i = track->first; category && i < track->last; i++) {
		if (category[i].v == last.v)
			continue;
		track->categories |= 1u << class_of(x, category[i]);
		last = category[i];
	}
	if (!category)
		track->categories = 1u << CATEGORY_NONE;
	x->categories |= track->categories;
}

static ow_status survey_names(struct interpret *x, const struct interpret_track *track)
{
	const str_id *op_name = x->in->draft->op_name;
	const str_id *own = x->m->event.name;
	uint32_t *first_of = x->first_of;

	for (uint32_t i = track->first; i < track->last; i++) {
		uint32_t name = own && own[i].v ? own[i].v : op_name[i - x->first_event].v;

		if (OW_LIKELY(first_of[name]))
			continue;
		first_of[name] = i;
		if (name)
			OW_TRY(interpret_rows_add(x, &x->names, name));
	}
	return OW_OK;
}

static ow_status survey(struct interpret *x)
{
	const track_id *track = x->m->event.track;
	uint32_t last;

	for (uint32_t i = x->first_event; i < x->last_event; i = last) {
		struct interpret_track *t;

		for (last = i + 1; last < x->last_event && track[last].v == track[i].v; last++)
			;
		if (track[i].v < x->first_track) {
			memset(x->m->event.op + i, 0, (last - i) * sizeof(*x->m->event.op));
			continue;
		}
		t = interpret_track(x, track[i].v);
		*t = (struct interpret_track){ .first = i, .last = last };
		survey_categories(x, t);
		OW_TRY(survey_names(x, t));
	}
	return OW_OK;
}

static ow_status find_producer(struct interpret *x)
{
	const char *known = x->in->producer;

	for (size_t i = 0; i < ARRAY_COUNT(producers) && !x->producer; i++)
		if (known ? strcmp(producers[i]->name, known) == 0 : producers[i]->recognise(x))
			x->producer = producers[i];
	OW_ASSERT(x->producer);
	snprintf(x->title, sizeof(x->title), "%s",
		 x->in->title ? x->in->title : x->producer->title);
	return OW_OK;
}

static void report_producer(struct interpret *x)
{
	source_id kept = x->b->source;

	x->b->source = x->source;
	x->m->source.producer[x->source.v] = builder_cstr(x->b, x->title);
	fact_text(x->b, (fact_id){ 0 }, "producer", str_from(x->title));
	x->b->source = kept;
}

/* Sets impossible durations to 0, because one of them would hide everything else. Very many of the others can still
 * overflow a sum. */
static void set_aside_durations(struct interpret *x)
{
	int64_t *dur = x->m->event.dur_ns;
	uint32_t absurd = 0;
	double sum = 0;

	for (uint32_t e = x->first_event; e < x->last_event; e++) {
		if (OW_UNLIKELY(dur[e] > DURATION_MAX_NS)) {
			dur[e] = 0;
			absurd++;
		}
		sum += dur[e] > 0 ? (double)dur[e] : 0;
	}
	if (absurd)
		builder_note_many(x->b, NOTE_DAMAGED, OW_NO_OFFSET, absurd,
				  "durations of more than a year are ignored: they count as 0");
	if (sum >= (double)INT64_MAX)
		builder_note(x->b, NOTE_DAMAGED, OW_NO_OFFSET,
			     "the durations add up to more than 292 years: sums stop there");
}

static void find_devices(struct interpret *x)
{
	for (uint32_t t = x->first_track; t < x->last_track; t++) {
		const struct interpret_track *track = interpret_track(x, t);

		if (!interpret_on_device(x, t))
			continue;
		for (uint32_t e = track->first; e < track->last && !x->has_device; e++)
			x->has_device = interpret_is_slice(x, e);
	}
}

static ow_status run_passes(struct interpret *x)
{
	set_aside_durations(x);
	OW_TRY(make_arrays(x));
	OW_TRY(survey(x));
	OW_TRY(find_producer(x));
	if (x->producer->tracks)
		OW_TRY(x->producer->tracks(x));
	if (x->producer->ops)
		OW_TRY(x->producer->ops(x));
	OW_TRY(interpret_make_ops(x));
	find_devices(x);
	if (x->producer->links)
		OW_TRY(x->producer->links(x));
	OW_TRY(interpret_link_flows(x));
	OW_TRY(interpret_steps(x));
	OW_TRY(interpret_phases(x));
	OW_TRY(interpret_stacks(x));
	if (x->producer->memory)
		OW_TRY(x->producer->memory(x));
	if (x->producer->costs)
		OW_TRY(x->producer->costs(x));
	report_producer(x);
	return builder_status(x->b);
}

ow_status interpret_trace(struct builder *b, const struct interpret_input *in)
{
	struct model *m = b->m;
	struct interpret x = { .b = b,
			       .m = m,
			       .mem = m->mem,
			       .err = b->err,
			       .in = in,
			       .source = in->source,
			       .first_event = in->draft->first,
			       .last_event = m->event.count,
			       .first_track = in->first_track,
			       .last_track = m->track.count,
			       .first_flow = in->first_flow,
			       .last_flow = m->flow.count,
			       .first_link = in->first_link ? in->first_link : m->link.count };
	ow_status status;

	arena_init(&x.scratch, m->mem);
	status = run_passes(&x);
	mem_free(m->mem, x.markers.list, x.markers.cap * sizeof(*x.markers.list));
	mem_free(m->mem, x.drafts, x.draft_cap * sizeof(*x.drafts));
	interpret_rows_release(&x, &x.names);
	event_draft_release(in->draft);
	arena_release(&x.scratch);
	return status;
}
