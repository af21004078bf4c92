/*
 * alive.c: finds what was in use after a change of a heap, summed by operation, scope, line of code and purpose (heaps_alive in heaps.h).
 * Called by the memory views, the verdict and the rules about memory.
 *
 * It reads the changes backwards from there: if the last change of an address is an allocation, it was in use, and if it is a
 * release, it was not. So each address is remembered once and never removed. Without addresses there are two ways. Sources
 * that say whose memory is released (TensorFlow 1 the op, torch's timeline the purpose) are balanced: allocations and releases of one
 * owner cancel out. In all others a release belongs to the last allocation of the same size before it.
 */
#include "analyze/memory/heaps.h"

#include "base/u64set.h"
#include "base/vec.h"

/* Releases of one size for which no allocation was found yet. */
struct pending {
	int64_t size;
	uint64_t count;
};

/* Sums of one heap while its changes are read. */
struct sums {
	struct map by_size;	 /* maps a size to its item in `pending` */
	struct pending *pending; /* items, from index 1 */
	size_t pending_count, pending_cap;
	struct map map;		   /* maps a group's key to its item in `groups` */
	struct heap_group *groups; /* items, from index 1 */
	size_t count, cap;
	struct u64set seen;
	int64_t bytes;
	uint64_t blocks;
};

struct alive {
	struct heaps *h;
	const uint32_t *rows; /* for each heap: the last change that counts */
	struct sums *sums;    /* sums of each heap */
	/* for each stack: the frame that represents it + 1; 0 = not determined yet */
	uint32_t *line_of;
	struct str *line_names; /* for each frame: its text */
};

const char *heap_grouping_name(enum heap_grouping by)
{
	static const char *const names[] = { "op", "scope", "line", "purpose" };

	return names[by];
}

static ow_status add_to_group(struct alive *a, struct sums *s, enum heap_grouping by,
			      struct str name, int64_t bytes, int count)
{
	uint64_t hash = map_hash_u64(str_hash(name), by);

	for (struct map_iter it = map_find(&s->map, hash); it.value; it = map_next(&s->map, it)) {
		struct heap_group *g = &s->groups[it.value];

		if (g->by != by || !str_eq(g->name, name))
			continue;
		g->bytes = wrap_add(g->bytes, bytes);
		g->count += (uint64_t)count;
		return OW_OK;
	}
	s->count = MAX(s->count, (size_t)1);
	if (!vec_reserve(a->h->m->mem, s->groups, s->cap, s->count + 1))
		return error_no_memory(a->h->err);
	s->groups[s->count] = (struct heap_group){ by, name, bytes, (uint64_t)count };
	if (!map_add(&s->map, hash, (uint32_t)s->count))
		return error_no_memory(a->h->err);
	s->count++;
	return OW_OK;
}

/* Returns whether a file belongs to the user. For frames of the framework itself, the line of
 * their caller counts. */
static bool is_users(struct str file)
{
	static const char *const libraries[] = { "/site-packages/", "/dist-packages/", "/torch/",
						 "<frozen " };

	if (!str_ends(file, STR(".py")) && !str_has(file, STR("<ipython")))
		return false;
	for (size_t i = 0; i < ARRAY_COUNT(libraries); i++)
		if (str_has(file, str_from(libraries[i])))
			return false;
	return true;
}

/* Native frames between the code that asks for memory and the record of it: what unwinds the stack, the allocator, the dispatcher of
 * operators. They are in every stack and say nothing. */
static bool is_plumbing(struct str function)
{
	static const char *const parts[] = {
		"unwind",
		"CapturedTraceback",
		"gather_with_cpp",
		"::gather(",
		"CachingAllocator",
		"c10::Allocator",
		"c10::StorageImpl",
		"c10::Dispatcher",
		"c10::BoxedKernel",
		"c10::KernelFunction",
		"c10::impl::",
		"c10::detail::",
		"at::_ops::",
		"at::redispatch",
		"at::detail::",
		"at::meta::",
		"at::native::empty",
		"at::native::new_empty",
		"create_out(",
		"::set_output",
		"wrapper_CUDA",
		"wrapper_CPU",
		"wrapper_Composite",
		"operator new",
		"malloc",
		"torch::autograd::VariableType",
		"torch::ADInplaceOrView",
		"torch::TraceType",
	};

	if (!function.len || str_eq(function, STR("??")))
		return true;
	for (size_t i = 0; i < ARRAY_COUNT(parts); i++)
		if (str_has(function, str_from(parts[i])))
			return true;
	return false;
}

/* What computes a gradient. Its thread runs no Python code, and the operators that it calls are those of any other code. */
static bool is_gradient(struct str function)
{
	return str_starts(function, STR("torch::autograd::generated::"));
}

/* Returns the innermost frame of the user's code, else of any Python code, else of a gradient, else of native code that
 * allocates memory. */
static frame_id frame_for(const struct model *m, stack_id stack)
{
	frame_id innermost = m->stack.frame[stack.v], python = { 0 }, native = { 0 };
	frame_id gradient = { 0 };

	for (; stack.v; stack = m->stack.parent[stack.v]) {
		frame_id frame = m->stack.frame[stack.v];
		struct str file = model_str(m, m->frame.file[frame.v]);
		struct str function = model_str(m, m->frame.function[frame.v]);

		if (is_users(file))
			return frame;
		if (!python.v && str_ends(file, STR(".py")))
			python = frame;
		if (!gradient.v && is_gradient(function))
			gradient = frame;
		if (!native.v && !is_plumbing(function))
			native = frame;
	}
	if (python.v)
		return python;
	if (gradient.v)
		return gradient;
	return native.v ? native : innermost;
}

static struct str line_name(struct alive *a, frame_id frame)
{
	const struct model *m = a->h->m;
	struct str *name = &a->line_names[frame.v], file, function;
	char *text;

	if (name->ptr)
		return *name;
	file = model_str(m, m->frame.file[frame.v]);
	function = model_str(m, m->frame.function[frame.v]);
	if (is_gradient(function) && str_find_char(function, '(') != STR_NONE)
		function = str_first(function, str_find_char(function, '('));
	if (m->frame.line[frame.v] > 0)
		text = arena_printf(&a->h->arena, "%.*s:%d%s%.*s", STR_ARG(file),
				    m->frame.line[frame.v], function.len ? ":" : "",
				    STR_ARG(function));
	else
		text = arena_printf(&a->h->arena, "%.*s", STR_ARG(function.len ? function : file));
	*name = str_from(text);
	return *name;
}

static struct str scope_of(struct str op)
{
	size_t slash = str_rfind_char(op, '/');

	return slash == STR_NONE ? STR("") : str_first(op, slash);
}

static ow_status add_line(struct alive *a, struct sums *s, stack_id stack, int64_t bytes, int count)
{
	struct str name;

	if (!a->line_of[stack.v])
		a->line_of[stack.v] = frame_for(a->h->m, stack).v + 1;
	name = line_name(a, (frame_id){ a->line_of[stack.v] - 1 });
	if (!name.ptr)
		return error_no_memory(a->h->err);
	return add_to_group(a, s, GROUP_LINE, name, bytes, count);
}

static ow_status add_change(struct alive *a, struct sums *s, const struct heap_list *l,
			    uint32_t row, int count)
{
	const struct model *m = a->h->m;
	op_id op = l->op[row];
	stack_id stack = COLUMN_GET(l->stack, row);
	struct str purpose = model_str(m, COLUMN_GET(l->purpose, row));
	int64_t bytes = l->size[row];

	s->bytes = wrap_add(s->bytes, bytes);
	s->blocks += (uint64_t)count;
	if (!stack.v)
		stack = COLUMN_GET(m->op.stack, op.v);
	if (op.v) {
		struct str name = model_str(m, m->op.name[op.v]), scope = scope_of(name);

		OW_TRY(add_to_group(a, s, GROUP_OP, name, bytes, count));
		if (scope.len)
			OW_TRY(add_to_group(a, s, GROUP_SCOPE, scope, bytes, count));
	}
	if (purpose.len)
		OW_TRY(add_to_group(a, s, GROUP_PURPOSE, purpose, bytes, count));
	return stack.v ? add_line(a, s, stack, bytes, count) : OW_OK;
}

/* Returns the pending releases of that size; NULL if memory runs out. */
static struct pending *pending_of(struct alive *a, struct sums *s, int64_t size)
{
	uint64_t hash = map_hash_u64((uint64_t)size, 3);

	for (struct map_iter it = map_find(&s->by_size, hash); it.value;
	     it = map_next(&s->by_size, it))
		if (s->pending[it.value].size == size)
			return &s->pending[it.value];
	s->pending_count = MAX(s->pending_count, (size_t)1);
	if (!vec_reserve(a->h->m->mem, s->pending, s->pending_cap, s->pending_count + 1))
		return NULL;
	s->pending[s->pending_count] = (struct pending){ .size = size };
	if (!map_add(&s->by_size, hash, (uint32_t)s->pending_count))
		return NULL;
	return &s->pending[s->pending_count++];
}

static ow_status match_size(struct alive *a, struct sums *s, const struct heap_list *l,
			    uint32_t row)
{
	bool taken = l->kind[row] != HEAP_FREE;
	struct pending *p = pending_of(a, s, taken ? l->size[row] : wrap_sub(0, l->size[row]));

	if (!p)
		return error_no_memory(a->h->err);
	if (!taken)
		p->count++;
	else if (p->count)
		p->count--;
	else
		return add_change(a, s, l, row, 1);
	return OW_OK;
}

static bool is_balanced(const struct heap_list *l, uint32_t row)
{
	return !l->device || COLUMN_GET(l->purpose, row).v;
}

static ow_status read_change(struct alive *a, const struct heap_list *l, uint32_t row)
{
	struct sums *s = &a->sums[l->heap[row]];
	uint64_t address = COLUMN_GET(l->address, row);
	bool taken = l->kind[row] != HEAP_FREE;

	if (!address)
		return is_balanced(l, row) ? add_change(a, s, l, row, taken ? 1 : -1)
					   : match_size(a, s, l, row);
	switch (u64set_add(&s->seen, address)) {
	case U64SET_NO_MEMORY:
		return error_no_memory(a->h->err);
	case U64SET_NEW:
		return taken ? add_change(a, s, l, row, 1) : OW_OK;
	default:
		return OW_OK;
	}
}

static ow_status read_backwards(struct alive *a, uint32_t list)
{
	const struct heap_list *l = &a->h->lists[list];

	for (uint32_t row = l->count; row-- > l->first;) {
		uint32_t heap = l->heap[row];

		if (heap && row <= a->rows[heap] && heap_changes_use(l->kind[row]))
			OW_TRY(read_change(a, l, row));
	}
	return OW_OK;
}

static int by_size(const void *a, const void *b)
{
	const struct heap_group *x = a, *y = b;

	if (x->by != y->by)
		return x->by < y->by ? -1 : 1;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return str_cmp(x->name, y->name);
}

/* Copies the groups to the result. Groups whose allocations and releases cancel out were not in
 * use. */
static ow_status hand_over(struct alive *a, struct sums *s, struct heap_alive *to)
{
	uint32_t count = 0;

	to->bytes = s->bytes;
	to->blocks = s->blocks;
	if (s->count < 2)
		return OW_OK;
	to->groups = ARENA_ARRAY(&a->h->arena, struct heap_group, s->count);
	if (!to->groups)
		return error_no_memory(a->h->err);
	for (size_t i = 1; i < s->count; i++)
		if (s->groups[i].bytes)
			to->groups[count++] = s->groups[i];
	if (count)
		qsort(to->groups, count, sizeof(*to->groups), by_size);
	to->count = count;
	return OW_OK;
}

static ow_status find_alive(struct alive *a, struct heap_alive *to)
{
	struct heaps *h = a->h;

	for (uint32_t i = 0; i < HEAP_LISTS; i++)
		if (h->lists[i].heap)
			OW_TRY(read_backwards(a, i));
	for (uint32_t i = 1; i < h->count; i++)
		OW_TRY(hand_over(a, &a->sums[i], &to[i]));
	return OW_OK;
}

/* Returns the row of each heap's peak; NULL if memory runs out. */
static const uint32_t *peak_rows(struct heaps *h)
{
	uint32_t *rows = ARENA_ARRAY(&h->arena, uint32_t, h->count);

	for (uint32_t i = 0; rows && i < h->count; i++)
		rows[i] = h->items[i].peak_row;
	return rows;
}

ow_status heaps_alive(struct heaps *h, const uint32_t *rows, struct heap_alive **alive)
{
	struct alive a = { .h = h, .rows = rows ? rows : peak_rows(h) };
	struct mem *mem = h->m->mem;
	ow_status status;

	OW_TRY(model_require_stacks(h->m, h->err));
	*alive = ARENA_ARRAY(&h->arena, struct heap_alive, h->count);
	a.sums = ARENA_ARRAY(&h->arena, struct sums, h->count);
	a.line_of = ARENA_ARRAY(&h->arena, uint32_t, h->m->stack.count);
	a.line_names = ARENA_ARRAY(&h->arena, struct str, h->m->frame.count);
	if (!*alive || !a.rows || !a.sums || !a.line_of || !a.line_names)
		return error_no_memory(h->err);
	for (uint32_t i = 0; i < h->count; i++) {
		map_init(&a.sums[i].map, mem);
		map_init(&a.sums[i].by_size, mem);
		u64set_init(&a.sums[i].seen, mem);
	}
	status = find_alive(&a, *alive);
	for (uint32_t i = 0; i < h->count; i++) {
		map_release(&a.sums[i].map);
		map_release(&a.sums[i].by_size);
		mem_free(mem, a.sums[i].pending, a.sums[i].pending_cap * sizeof(struct pending));
		u64set_release(&a.sums[i].seen);
		mem_free(mem, a.sums[i].groups, a.sums[i].cap * sizeof(*a.sums[i].groups));
	}
	return status;
}
