/*
 * builder.h: filling a model. One owner, append only, then model_freeze.
 *
 * Rows are added as structs: builder_add_event(b, &(struct event_row){ .ts_ns = … }). A failure
 * (memory limit) is remembered: the add returns the nil id, later adds do the same, and
 * builder_status says so; importers check it per record or batch, and at the end. Columns of rows
 * already added may be changed in place (b->m->op.float_ops[id.v] = …) until the freeze, but RARE
 * columns only through builder_set_… or by adding.
 */
#ifndef MODEL_BUILDER_H
#define MODEL_BUILDER_H

#include "base/buf.h"
#include "model/model.h"

struct builder {
	struct model *m;
	struct ow_error *err;
	ow_status status;
	source_id source; /* input that is being read; used for notes and facts */
};

/* Makes struct op_row { str_id name; … } and so on. */
#define BUILDER_FIELD(t, need, type, name, unit, doc) type name;
#define BUILDER_ROW(table, doc)                                                                    \
	struct table##_row {                                                                       \
		SCHEMA_##table(BUILDER_FIELD, table)                                               \
	};
SCHEMA_TABLES(BUILDER_ROW)
#undef BUILDER_ROW
#undef BUILDER_FIELD

void builder_init(struct builder *b, struct model *m, struct ow_error *err);
static inline ow_status builder_status(const struct builder *b)
{
	return b->status;
}
/* Records a failure and returns it. */
ow_status builder_fail(struct builder *b, ow_status status);
/* Records that memory ran out; returns the first failure. */
ow_status builder_no_memory(struct builder *b);

/* Makes room for one more row in a table; false if memory runs out (or when the table has 2^32-1 rows). */
bool builder_grow(struct builder *b, enum table_id table, uint32_t more);
/* Reserves room for expected rows; running out of memory is not a failure here. */
void builder_reserve(struct builder *b, enum table_id table, uint32_t more);
/* Allocates a RARE or DEFERRED column, zero-filled. */
bool builder_need_column(struct builder *b, enum table_id table, size_t column_offset);

/* Returns whether a value is zero; values are ids, numbers and reals of at most eight bytes. */
static inline bool builder_is_zero(const void *value, size_t size)
{
	return memcmp(value, &(uint64_t){ 0 }, size) == 0;
}
#define BUILDER_IS_ZERO(value) builder_is_zero(&(value), sizeof(value))
#define BUILDER_STORE_ALWAYS(table, name) b->m->table.name[at] = row->name;
#define BUILDER_STORE_RARE(table, name)                                                            \
	if (b->m->table.name)                                                                      \
		b->m->table.name[at] = row->name;                                                  \
	else if (!BUILDER_IS_ZERO(row->name) &&                                                    \
		 builder_need_column(b, TABLE_##table, offsetof(struct table##_table, name))) {    \
		OW_ASSERT(b->m->table.name);                                                       \
		b->m->table.name[at] = row->name;                                                  \
	}
#define BUILDER_STORE_DEFERRED(table, name) BUILDER_STORE_RARE(table, name)
#define BUILDER_STORE(t, need, type, name, unit, doc) BUILDER_STORE_##need(t, name)
#define BUILDER_ADD(table, doc)                                                                    \
	static inline table##_id builder_add_##table(struct builder *b,                            \
						     const struct table##_row *row)                \
	{                                                                                          \
		uint32_t at = b->m->table.count;                                                   \
		if (OW_UNLIKELY(at == b->m->table.cap) && !builder_grow(b, TABLE_##table, 1))      \
			return (table##_id){ 0 };                                                  \
		SCHEMA_##table(BUILDER_STORE, table);                                              \
		b->m->table.count = at + 1;                                                        \
		return (table##_id){ at };                                                         \
	}
SCHEMA_TABLES(BUILDER_ADD)
#undef BUILDER_ADD

/* Sets one value of a RARE column: BUILDER_SET(b, op, stack, id, value). */
#define BUILDER_SET(b, table_, column, id, value)                                                  \
	((b)->m->table_.column || builder_need_column(b, TABLE_##table_,                           \
						      offsetof(struct table_##_table, column))     \
		 ? (void)((b)->m->table_.column[(id).v] = (value))                                 \
		 : (void)0)

/* Functions that intern: they return the id of an equal row, or add one. */
str_id builder_str(struct builder *b, struct str text);
/* the argument `hash` is its str_hash */
str_id builder_str_hashed(struct builder *b, struct str text, uint64_t hash);
static inline str_id builder_cstr(struct builder *b, const char *text)
{
	return builder_str(b, str_from(text));
}
/* Interns a shape; rank -1 = unknown rank. */
shape_id builder_shape(struct builder *b, const int64_t *dims, int32_t rank);
/* Returns the set with one more member; the same set if it contains the member. */
strset_id builder_strset_add(struct builder *b, strset_id set, str_id member);
frame_id builder_frame(struct builder *b, const struct frame_row *row);
stack_id builder_stack(struct builder *b, stack_id parent, frame_id frame);
/* Returns whether the row behind a stack is this callee of it. */
static inline bool stack_is_next(const struct model *m, stack_id parent, frame_id frame)
{
	uint32_t next = parent.v + 1;

	return next < m->stack.count && m->stack.parent[next].v == parent.v &&
	       m->stack.frame[next].v == frame.v;
}
/* Finds or adds a device by name; its kind is derived from the naming of TensorFlow and CUDA. */
device_id builder_device(struct builder *b, struct str name);
/* Finds or adds a track by (name, kind, pid, tid, source). */
track_id builder_track(struct builder *b, const struct track_row *row);
/* Finds or adds a metric by (name, unit, source), for samples of b->source. */
metric_id builder_metric(struct builder *b, struct str name, struct str unit);
/* Finds or adds a step by its number. */
step_id builder_step(struct builder *b, int64_t number);
/* Adds a row for a recording without steps, with an unused number. It is never shared between
 * inputs. */
step_id builder_whole_step(struct builder *b);

/* Returns the op of that name, or nil. */
op_id builder_find_op(const struct builder *b, str_id name);
/* Adds an op and makes it findable by its name; the caller has looked for it first. Sets types to
 * {type} when the row has none. */
op_id builder_new_op(struct builder *b, const struct op_row *row);

source_id builder_new_source(struct builder *b, const struct source_row *row);
/* Facts about b->source form a tree: fact_object(b, nil, "devices"), then fact_int(b, that, "cpu", 3). */
fact_id fact_object(struct builder *b, fact_id parent, const char *key);
fact_id fact_list(struct builder *b, fact_id parent, const char *key);
void fact_int(struct builder *b, fact_id parent, const char *key, int64_t value);
void fact_real(struct builder *b, fact_id parent, const char *key, double value);
void fact_text(struct builder *b, fact_id parent, const char *key, struct str value);
void fact_bool(struct builder *b, fact_id parent, const char *key, bool value);
/* Adds an exact time; TIME_UNKNOWN becomes null. */
void fact_micros(struct builder *b, fact_id parent, const char *key, int64_t ns);
/* Adds a note about b->source. Notes of the same kind and text are counted together. */
void builder_note(struct builder *b, enum note_kind kind, uint64_t offset, const char *format, ...)
	OW_PRINTF(4, 5);
void builder_note_many(struct builder *b, enum note_kind kind, uint64_t offset, uint64_t count,
		       const char *format, ...) OW_PRINTF(5, 6);

/* Defers work until a reader needs stacks: run, release and state of `work`, and trace if it has one. Takes over
 * state, also on failure. */
ow_status builder_defer_stacks(struct builder *b, const struct deferred *work);

/* Defers making rows of these tables (TABLE_BIT each) until a reader needs one of them (model_require_rows). `run`
 * only adds rows to these tables, and no other code adds any before it; `release` frees the state. Takes over state,
 * also on failure. */
ow_status builder_defer_rows(struct builder *b, uint64_t tables, const struct deferred *work);

/* Widens a step to at least [start, end], because the freeze sees only recorded events. */
void builder_widen_step(struct builder *b, step_id step, int64_t start, int64_t end);

/* Moves the rows of a table: the new row i is the old row order[i]. For freeze and importers, which renumber the ids
 * that they keep. */
ow_status builder_permute(struct builder *b, enum table_id table, const uint32_t *order);

/* Sorts, indexes and checks; after this the model is read-only. Resolves op_input.src by name where it
 * is nil, sorts op_step/memory/alloc/heap, sets op.step_first…, step.start_ns/end_ns. */
ow_status model_freeze(struct builder *b);

#endif
