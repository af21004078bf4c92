/*
 * mean_ops.c: from names to ops. While producers are at work an op is just a name (see struct meaning);
 * here the names that are left become ops: short types for kernels, paths for tf.data. Only what ran as
 * host or device work makes an op; frames, bookkeeping and points in time are known by their own name.
 */
#include "import/mean_int.h"

#include "base/demangle.h"

/* ---- names ---- */

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

ow_status mean_rename(struct meaning *x, uint32_t event, str_id name)
{
	struct event_table *e = &x->m->event;

	OW_ASSERT(!x->made_ops);
	if (!name.v || e->op[event].v == name.v)
		return builder_status(x->b);
	if (!COLUMN_GET(e->name, event).v)
		BUILDER_SET(x->b, event, name, (event_id){ event }, (str_id){ e->op[event].v });
	e->op[event].v = name.v;
	return builder_status(x->b);
}

ow_status mean_rename_all(struct meaning *x, const str_id *to)
{
	for (uint32_t i = x->first_event; i < x->last_event; i++) {
		uint32_t name = x->m->event.op[i].v;

		if (name < x->string_count && to[name].v)
			OW_TRY(mean_rename(x, i, to[name]));
	}
	return OW_OK;
}

struct op_draft *mean_draft(struct meaning *x, str_id name)
{
	size_t old = x->draft_cap;
	void *drafts = x->drafts;

	if (name.v >= x->draft_cap) {
		if (!mem_grow(x->mem, &drafts, &x->draft_cap,
			      MAX((size_t)name.v + 1, (size_t)x->m->strings.count),
			      sizeof(*x->drafts))) {
			mean_no_memory(x);
			return NULL;
		}
		x->drafts = drafts;
		memset(x->drafts + old, 0, (x->draft_cap - old) * sizeof(*x->drafts));
	}
	return &x->drafts[name.v];
}

/* ---- kernels ---- */

static ow_status shorten(struct meaning *x, str_id name, struct buf *text)
{
	struct op_draft *draft = mean_draft(x, name);

	if (!draft)
		return builder_status(x->b);
	if (draft->type.v)
		return OW_OK;
	buf_clear(text);
	kernel_short_name(model_str(x->m, name), text);
	if (text->failed)
		return mean_no_memory(x);
	draft->type = name;
	if (str_eq(buf_str(text), model_str(x->m, name)))
		return OW_OK;
	draft->type = builder_str(x->b, buf_str(text));
	draft->flags |= OP_SHORT_TYPE;
	return builder_status(x->b);
}

ow_status mean_shorten_kernels(struct meaning *x)
{
	ow_status status = OW_OK;
	struct buf text;

	buf_init(&text, x->mem);
	for (uint32_t t = x->first_track; t < x->last_track; t++) {
		const struct mean_track *track = mean_track(x, t);
		uint32_t last = 0;

		if (!mean_on_device(x, t))
			continue;
		for (uint32_t e = track->first; e < track->last && status == OW_OK; e++) {
			enum category_class category = mean_category(x, e);
			str_id name = mean_op_name(x, e);

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

/* ---- ops ---- */

static bool makes_ops(const struct meaning *x, uint32_t track)
{
	return mean_on_host(x, track) || mean_on_device(x, track) ||
	       x->m->track.kind[track] == TRACK_DEVICE;
}

struct making {
	struct meaning *x;
	uint32_t *op_of; /* string → op */
};

/* What stands between the ops that do the work. `event` is the first of its name. */
static uint32_t role_of(struct meaning *x, uint32_t track, uint32_t event, str_id name)
{
	struct name_class class = mean_name_class(x, name);

	if (mean_on_device(x, track))
		return class.device == DEVICE_WAIT || mean_category(x, event) == CATEGORY_SYNC
			       ? OP_WAITS
			       : 0;
	if (class.host == HOST_SYNC)
		return OP_WAITS;
	if (class.host == HOST_MARKER)
		return OP_WRAPS | OP_STEP_MARK;
	if (class.host == HOST_WRAPPER || mean_category(x, event) == CATEGORY_ORT_SESSION)
		return OP_WRAPS;
	return class.host == HOST_PLAIN && mean_is_annotation(x, event, name) ? OP_WRAPS : 0;
}

/* Stages of tf.data are called by their path. */
static str_id op_name(struct meaning *x, str_id name)
{
	str_id path = iterator_path(x->b, model_str(x->m, name));

	return path.v && model_str(x->m, name).len > strlen("Iterator::") ? path : name;
}

static op_id new_op(struct making *k, str_id name, str_id own, uint32_t role)
{
	struct meaning *x = k->x;
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
	struct meaning *x = k->x;
	const struct mean_track *track = mean_track(x, t);
	const struct event_table *e = &x->m->event;
	const op_id *names = e->op; /* still */
	const uint32_t *op_of = k->op_of;

	for (uint32_t i = track->first; i < track->last; i++) {
		str_id name = { names[i].v };

		if (OW_LIKELY(op_of[name.v]) || !mean_is_slice(x, i))
			continue;
		k->op_of[name.v] =
			new_op(k, name, COLUMN_GET(e->name, i), role_of(x, t, i, mean_name(x, i)))
				.v;
		OW_TRY(builder_status(x->b));
	}
	return OW_OK;
}

/* An event without an op of its name keeps the name itself. */
static ow_status use_ops(struct making *k)
{
	struct meaning *x = k->x;
	const struct event_table *e = &x->m->event;
	const uint32_t *op_of = k->op_of;
	const str_id *op_names = x->m->op.name;
	op_id *ops = e->op;

	for (uint32_t t = x->first_track; t < x->last_track; t++) {
		const struct mean_track *track = mean_track(x, t);
		bool named =
			x->m->track.kind[t] == TRACK_FRAMES || x->m->track.kind[t] == TRACK_SPAN;

		for (uint32_t i = track->first; i < track->last; i++) {
			uint32_t name = ops[i].v, op = op_of[name];
			bool none = named || !op || !mean_is_slice(x, i);

			if (OW_UNLIKELY(none || op_names[op].v != name) &&
			    !COLUMN_GET(e->name, i).v)
				BUILDER_SET(x->b, event, name, (event_id){ i }, (str_id){ name });
			ops[i].v = none ? 0 : op;
		}
		OW_TRY(builder_status(x->b));
	}
	return OW_OK;
}

ow_status mean_make_ops(struct meaning *x)
{
	struct making k = { .x = x,
			    .op_of = ARENA_ARRAY(&x->scratch, uint32_t, x->m->strings.count) };
	ow_status status = OW_OK;

	if (!k.op_of)
		return mean_no_memory(x);
	for (uint32_t t = x->first_track; t < x->last_track && status == OW_OK; t++)
		if (makes_ops(x, t))
			status = make_of_track(&k, t);
	if (status == OW_OK)
		status = use_ops(&k);
	x->made_ops = true;
	return status;
}
