/* tf_stacks.c: see tf_stacks.h. */
#include "import/tf_stacks.h"

/* Traces that have come to the same stack, within one level. */
struct group {
	uint64_t key; /* caller's stack and frame */
	uint32_t stack;
	uint32_t count;
};

struct level {
	struct map map;
	struct group *groups; /* [0] is unused */
	size_t count, cap;
	uint32_t *of; /* group of each active trace */
	size_t of_cap;
	uint32_t last;
};

void tf_stacks_init(struct tf_stacks *s, struct builder *b, const struct code_traces *from)
{
	*s = (struct tf_stacks){ .b = b, .from = from };
}

void tf_stacks_release(struct tf_stacks *s)
{
	mem_free(s->b->m->mem, s->traces, s->trace_cap * sizeof(*s->traces));
	*s = (struct tf_stacks){ .b = s->b };
}

void tf_stacks_add(struct tf_stacks *s, op_id op)
{
	uint32_t first = s->from->first[op.v];
	void *traces = s->traces;

	if (!mem_grow(s->b->m->mem, &traces, &s->trace_cap, s->trace_count + 1,
		      sizeof(*s->traces))) {
		builder_no_memory(s->b);
		return;
	}
	s->traces = traces;
	s->traces[s->trace_count++] =
		(struct tf_trace){ .op = op, .next = first, .end = first + s->from->len[op.v] };
}

static uint32_t find_group(struct tf_stacks *s, struct level *l, uint64_t key)
{
	uint64_t hash = map_hash_u64(key, 12);
	void *groups = l->groups;

	if (l->groups[l->last].key == key && l->last)
		return l->last; /* neighbours often were made by the same code */
	for (struct map_iter it = map_find(&l->map, hash); it.value; it = map_next(&l->map, it))
		if (l->groups[it.value].key == key)
			return l->last = it.value;
	if (!mem_grow(s->b->m->mem, &groups, &l->cap, l->count + 1, sizeof(*l->groups))) {
		builder_no_memory(s->b);
		return 0;
	}
	l->groups = groups;
	if (!map_add(&l->map, hash, (uint32_t)l->count)) {
		builder_no_memory(s->b);
		return 0;
	}
	l->groups[l->count] = (struct group){ .key = key };
	return l->last = (uint32_t)l->count++;
}

/* Rows of other sources may be there; then each pair is looked up among them. */
static uint32_t add_stack(struct tf_stacks *s, bool alone, uint32_t parent, frame_id frame)
{
	stack_id caller = { parent };

	if (alone)
		return builder_add_stack(s->b,
					 &(struct stack_row){ .parent = caller, .frame = frame })
			.v;
	return builder_stack(s->b, caller, frame).v;
}

/* The next frame of every trace, by caller and frame. Traces without one are done. */
static size_t group_traces(struct tf_stacks *s, struct level *l, bool alone)
{
	size_t active = 0;

	for (size_t i = 0; i < s->trace_count && s->b->status == OW_OK; i++) {
		struct tf_trace trace = s->traces[i];
		struct group *group;
		uint32_t g;

		if (trace.next == trace.end) {
			if (trace.parent)
				BUILDER_SET(s->b, op, stack, trace.op, (stack_id){ trace.parent });
			continue;
		}
		g = find_group(s, l, (uint64_t)trace.parent << 32 | s->from->frames[trace.next].v);
		group = &l->groups[g];
		if (!group->count++)
			group->stack =
				add_stack(s, alone, trace.parent, s->from->frames[trace.next]);
		trace.parent = group->stack;
		trace.next++;
		s->traces[active] = trace;
		l->of[active++] = g;
	}
	return active;
}

/* The rest of a trace that shares no more callers with others. */
static void finish_trace(struct tf_stacks *s, const struct tf_trace *trace)
{
	uint32_t stack = trace->parent;

	for (uint32_t i = trace->next; i < trace->end; i++)
		stack = add_stack(s, true, stack, s->from->frames[i]);
	BUILDER_SET(s->b, op, stack, trace->op, (stack_id){ stack });
}

static size_t finish_lonely(struct tf_stacks *s, const struct level *l, size_t active)
{
	size_t left = 0;

	for (size_t i = 0; i < active && s->b->status == OW_OK; i++)
		if (l->groups[l->of[i]].count == 1)
			finish_trace(s, &s->traces[i]);
		else
			s->traces[left++] = s->traces[i];
	return left;
}

static bool begin_levels(struct tf_stacks *s, struct level *l)
{
	struct mem *mem = s->b->m->mem;
	void *groups = NULL;

	*l = (struct level){ .count = 1 };
	map_init(&l->map, mem);
	l->of_cap = s->trace_count;
	l->of = mem_alloc(mem, l->of_cap * sizeof(*l->of));
	if (!l->of || !mem_grow(mem, &groups, &l->cap, 8, sizeof(*l->groups))) {
		builder_no_memory(s->b);
		return false;
	}
	l->groups = groups;
	l->groups[0] = (struct group){ 0 };
	return true;
}

/* After stacks were added without looking any up, so that the next source finds them. */
static void index_stacks(struct tf_stacks *s)
{
	struct model *m = s->b->m;

	map_release(&m->stack_map);
	map_init(&m->stack_map, m->mem);
	for (uint32_t i = 1; i < m->stack.count; i++)
		if (!map_add(&m->stack_map, map_hash_u64(m->stack.parent[i].v, m->stack.frame[i].v),
			     i)) {
			builder_no_memory(s->b);
			return;
		}
}

ow_status tf_stacks_build(struct tf_stacks *s)
{
	struct model *m = s->b->m;
	bool alone = m->stack.count <= 1;
	struct level l;

	if (!s->trace_count || s->b->status != OW_OK)
		return s->b->status;
	if (!alone && m->stack_map.count != m->stack.count - 1)
		index_stacks(s);
	if (begin_levels(s, &l))
		while (s->trace_count && s->b->status == OW_OK) {
			size_t active = group_traces(s, &l, alone);

			s->trace_count = alone ? finish_lonely(s, &l, active) : active;
			map_release(&l.map);
			map_init(&l.map, m->mem);
			l.count = 1;
			l.last = 0;
		}
	map_release(&l.map);
	mem_free(m->mem, l.of, l.of_cap * sizeof(*l.of));
	mem_free(m->mem, l.groups, l.cap * sizeof(*l.groups));
	return s->b->status;
}
