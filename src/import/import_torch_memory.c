/*
 * import_torch_memory.c: torch's memory snapshots (torch.cuda.memory._dump_snapshot, or _snapshot and
 * memory_snapshot pickled): what the caching allocator did, per device, with the stacks of who asked, and
 * its segments and blocks at the end. The pickle is read without running anything (wire/pickle.h); entries
 * of traces become rows of `heap` while they are read, so that a long history needs little memory.
 *
 * The parts: torch_snapshot.c (records, frames, entries), torch_heap.c (what the whole tells).
 */
#include "import/torch_snapshot.h"

/* Opcodes that a pickle of a list or dictionary begins with, after PROTO and FRAME. */
static bool starts_container(struct str s)
{
	return s.len && (s.ptr[0] == '}' || s.ptr[0] == ']' ||
			 (s.ptr[0] == '(' && s.len > 1 && (s.ptr[1] == 'd' || s.ptr[1] == 'l')));
}

static int sniff(const struct sniff *s)
{
	struct str head = s->head;
	bool protocol = head.len > 2 && (unsigned char)head.ptr[0] == 0x80 && head.ptr[1] >= 2 &&
			head.ptr[1] <= 5;

	if (protocol)
		head = str_skip(head, 2);
	if (protocol && head.len && (unsigned char)head.ptr[0] == 0x95)
		head = str_skip(head, 9);
	if (!starts_container(head))
		return 0;
	if (str_has(s->head, STR("total_size")) || str_has(s->head, STR("device_traces")) ||
	    (str_has(s->head, STR("segments")) && str_has(s->head, STR("action"))))
		return protocol ? 95 : 60;
	return 0;
}

/* ---- facts ---- */

static const char *word_for_kind(uint32_t kind)
{
	static const char *const kinds[] = {
		"NoneType", "bool", "int",   "float", "int",  "str",
		"bytes",    "list", "tuple", "set",   "dict", "object"
	};

	return kind < ARRAY_COUNT(kinds) ? kinds[kind] : "object";
}

static void add_keys(struct snapshot *s, const char *name, struct pickle_value dict)
{
	const struct pickle_object *o = pickle_object(&s->p, dict);
	fact_id list = fact_list(s->b, (fact_id){ 0 }, name);

	for (uint32_t i = 0; i + 1 < o->count && i < 200; i += 2)
		if (o->items[i].kind == PICKLE_TEXT)
			fact_text(s->b, list, NULL,
				  model_str(s->b->m, snapshot_string(s, o->items[i])));
}

static void add_shape_of_root(struct snapshot *s)
{
	const struct pickle_object *o = pickle_object(&s->p, s->p.root);
	bool dict = s->p.root.kind == PICKLE_DICT;

	fact_text(s->b, (fact_id){ 0 }, "toplevel", str_from(word_for_kind(s->p.root.kind)));
	fact_int(s->b, (fact_id){ 0 }, "len", dict ? o->count / 2 : o->count);
	if (dict)
		add_keys(s, "keys", s->p.root);
	else if (o->count && s->p.root.kind == PICKLE_LIST && o->items[0].kind == PICKLE_DICT)
		add_keys(s, "first_item_keys", o->items[0]);
}

static void add_actions(struct snapshot *s)
{
	static const char *const names[] = { "alloc",	       "free",		"free_completed",
					     "free_requested", "segment_alloc", "segment_free",
					     "segment_map",    "segment_unmap", "oom",
					     "snapshot" };
	fact_id actions = fact_object(s->b, (fact_id){ 0 }, "actions");
	uint64_t all = 0;

	for (size_t i = 0; i < ARRAY_COUNT(names); i++) {
		uint64_t count = s->actions[WORD_ALLOC + i];

		all += count;
		if (count)
			fact_int(s->b, actions, names[i], (int64_t)count);
	}
	fact_int(s->b, (fact_id){ 0 }, "trace_entries", (int64_t)all);
}

/* ---- notes ---- */

static void note_damage(struct snapshot *s)
{
	struct pickle *p = &s->p;

	if (p->damage)
		builder_note(s->b, p->truncated ? NOTE_TRUNCATED : NOTE_DAMAGED, p->damage_offset,
			     "the pickle cannot be read to its end: %s; what is before is used",
			     p->damage);
	for (uint32_t i = 0; i < p->foreign_names; i++)
		builder_note(s->b, NOTE_DROPPED, OW_NO_OFFSET,
			     "the pickle names '%.*s', which is not run; what it would make is "
			     "left out",
			     STR_ARG(model_str(s->b->m, snapshot_string(s, p->foreign[i]))));
	if (s->odd)
		builder_note_many(s->b, NOTE_DAMAGED, OW_NO_OFFSET, s->odd,
				  "entries, segments or blocks are not as torch writes them and "
				  "were passed over");
	if (s->without_times)
		builder_note(s->b, NOTE_MISSING, OW_NO_OFFSET,
			     "the snapshot has no times: its entries are counted instead, a "
			     "nanosecond each");
	if (s->repaired)
		builder_note(s->b, NOTE_REPAIRED, OW_NO_OFFSET,
			     "texts that are not UTF-8 were repaired");
}

static ow_status read_all(struct snapshot *s, struct import_ctx *ctx)
{
	ow_status status = pickle_run(&s->p);

	if (status == OW_E_CORRUPT)
		return error_wrap(ctx->err, status, "%s", ctx->in->name);
	if (status != OW_OK)
		return builder_fail(s->b, status);
	add_shape_of_root(s);
	add_actions(s);
	OW_TRY(snapshot_finish(s));
	note_damage(s);
	if (s->b->m->heap.count == 1)
		builder_note(s->b, NOTE_MISSING, OW_NO_OFFSET,
			     "no segment and no trace is in the pickle: was recording switched on "
			     "(torch.cuda.memory._record_memory_history)?");
	return builder_status(s->b);
}

static ow_status load(struct import_ctx *ctx)
{
	struct snapshot s = { .b = ctx->b, .err = ctx->err, .most = ctx->in->size / 4 + 16 };
	ow_status status;

	pickle_init(&s.p, ctx->in, ctx->err);
	s.p.take = snapshot_take;
	s.p.arg = &s;
	if (!ctx->b->m->time_unit_ns || ctx->b->m->time_unit_ns > 1000)
		ctx->b->m->time_unit_ns = 1000;
	status = read_all(&s, ctx);
	mem_free(ctx->b->m->mem, s.spans, s.span_cap * sizeof(*s.spans));
	pickle_release(&s.p);
	return status;
}

const struct importer import_torch_memory = {
	.name = "torch_memory",
	.summary = "PyTorch memory snapshot (pickle): allocations, segments, stacks",
	.extensions = ".pickle .pkl",
	.role = ROLE_TRACE,
	.sniff = sniff,
	.load = load,
};
