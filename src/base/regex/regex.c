/*
 * regex.c: compiles a list of patterns into one program and runs it as a lazy automaton; regex_parse.c has the
 * syntax. The tfprof views and options, merge and two importers call it. States are made when first reached and
 * dropped when there are too many, so a text of n bytes costs n look-ups, and never more than n times the size of
 * the program. Work beyond a fixed budget ends in OW_E_LIMIT: no pattern can hang a command. Captures are not
 * supported, and a match always covers the whole text.
 */
#include "base/regex/regex_int.h"

#include "base/arena.h"
#include "base/map.h"
#include "base/vec.h"

/* largest number of instructions of one pattern; about RE2's limit */
#define PATTERN_LIMIT ((size_t)87381)
/* largest number of instructions of all patterns of a list */
#define LIST_LIMIT ((size_t)1 << 21)
/* number of bytes of states after which all states are dropped */
#define CACHE_LIMIT ((size_t)4 << 20)
/* largest number of instructions that are visited to make states */
#define WORK_LIMIT ((uint64_t)2 << 30)
#define WHY_BYTES 256

/* The kind of byte before the current place; determined only if the program needs it. */
enum before { BEFORE_NOTHING, BEFORE_WORD, BEFORE_NEWLINE, BEFORE_OTHER };

/* Special values of the transition table; 0 means that the transition is not known yet. */
enum { NEXT_UNKNOWN, NEXT_DEAD, NEXT_FIRST };

struct state {
	/* instructions of the state in ascending order: RANGE, ASSERT and MATCH only */
	const uint32_t *insts;
	uint32_t count;
	enum before before;
};

struct regex {
	struct mem *mem;
	struct program p;
	bool asserts;
	uint8_t class_of[256];
	uint8_t byte_of[257]; /* one example byte of each class */
	/* number of classes without the end of the text, which is class number `classes` */
	uint32_t classes;

	struct arena arena; /* memory of the states' sets */
	struct map map;
	struct state *states; /* states, numbered from NEXT_FIRST */
	size_t state_count, state_cap;
	uint32_t *next; /* transition table: [state][class] */
	size_t next_cap, cache_bytes;

	uint32_t *mark; /* for each instruction: the last pass that visited it */
	uint32_t now;
	uint32_t *stack, *found; /* scratch memory, as long as the program */
	uint64_t work;
	uint32_t start;
};

static bool room(struct program *p, size_t more)
{
	if (program_failed(p))
		return false;
	if (p->count + more > p->limit) {
		p->too_large = true;
		return false;
	}
	if (!vec_reserve(p->mem, p->insts, p->cap, p->count + more)) {
		p->no_memory = true;
		return false;
	}
	return true;
}

void program_emit(struct program *p, struct inst inst)
{
	if (room(p, 1))
		p->insts[p->count++] = inst;
}

void program_insert(struct program *p, size_t at, struct inst inst)
{
	if (!room(p, 1))
		return;
	memmove(p->insts + at + 1, p->insts + at, (p->count - at) * sizeof(inst));
	p->insts[at] = inst;
	p->count++;
}

void program_copy(struct program *p, size_t from, size_t count)
{
	if (!count || !room(p, count))
		return;
	memcpy(p->insts + p->count, p->insts + from, count * sizeof(*p->insts));
	p->count += count;
}

/* Returns whether an assertion holds between `before` and the byte c (-1 = end of text). */
static bool holds(uint8_t kind, enum before before, int c)
{
	bool boundary = (before == BEFORE_WORD) != regex_is_word(c);

	switch ((enum assertion)kind) {
	case ASSERT_BEGIN_TEXT:
		return before == BEFORE_NOTHING;
	case ASSERT_END_TEXT:
		return c < 0;
	case ASSERT_BEGIN_LINE:
		return before == BEFORE_NOTHING || before == BEFORE_NEWLINE;
	case ASSERT_END_LINE:
		return c < 0 || c == '\n';
	case ASSERT_WORD:
		return boundary;
	case ASSERT_NOT_WORD:
		return !boundary;
	}
	return false;
}

static enum before before_of(const struct regex *re, int c)
{
	if (!re->asserts)
		return BEFORE_NOTHING;
	return regex_is_word(c) ? BEFORE_WORD : c == '\n' ? BEFORE_NEWLINE : BEFORE_OTHER;
}

static void new_pass(struct regex *re)
{
	if (++re->now == 0) {
		memset(re->mark, 0, re->p.count * sizeof(*re->mark));
		re->now = 1;
	}
}

static void push(struct regex *re, uint32_t *top, uint32_t inst)
{
	if (re->mark[inst] == re->now)
		return;
	re->mark[inst] = re->now;
	re->stack[(*top)++] = inst;
}

/* Follows jumps and splits from the stack into found[]. With a character c (not INT_MIN) assertions that hold are
 * followed as well, else they are kept. Returns how many were found. */
#define KEEP_ASSERTS (-2)
static uint32_t follow(struct regex *re, uint32_t top, uint32_t count, enum before before, int c)
{
	while (top) {
		uint32_t at = re->stack[--top];
		const struct inst *inst = &re->p.insts[at];

		re->work++;
		switch ((enum inst_op)inst->op) {
		case INST_SPLIT:
			push(re, &top, at + (uint32_t)inst->jump);
			push(re, &top, at + 1);
			break;
		case INST_JUMP:
			push(re, &top, at + (uint32_t)inst->jump);
			break;
		case INST_ASSERT:
			if (c == KEEP_ASSERTS)
				re->found[count++] = at;
			else if (holds(inst->lo, before, c))
				push(re, &top, at + 1);
			break;
		case INST_RANGE:
		case INST_MATCH:
			re->found[count++] = at;
			break;
		case INST_FAIL:
			break;
		}
	}
	return count;
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

	return (x > y) - (x < y);
}

static void drop_states(struct regex *re)
{
	arena_clear(&re->arena);
	map_release(&re->map);
	map_init(&re->map, re->mem);
	re->state_count = 0;
	re->cache_bytes = 0;
	re->start = 0;
}

static bool grow_tables(struct regex *re)
{
	size_t stride = re->classes + 1, used = re->state_count * stride;

	if (!vec_reserve(re->mem, re->states, re->state_cap, re->state_count + 1))
		return false;
	if (!vec_reserve(re->mem, re->next, re->next_cap, used + stride))
		return false;
	memset(re->next + used, 0, stride * sizeof(*re->next));
	return true;
}

static uint32_t find_state(const struct regex *re, uint64_t hash, uint32_t count,
			   enum before before)
{
	for (struct map_iter it = map_find(&re->map, hash); it.value; it = map_next(&re->map, it)) {
		const struct state *s = &re->states[it.value - NEXT_FIRST];

		if (s->count == count && s->before == before &&
		    memcmp(s->insts, re->found, count * sizeof(*s->insts)) == 0)
			return it.value;
	}
	return 0;
}

/* Returns the state of the set found[0..count); 0 if memory runs out. */
static uint32_t intern(struct regex *re, uint32_t count, enum before before)
{
	uint64_t hash = map_hash_u64(before, count);
	uint32_t *insts, id;

	if (!count)
		return NEXT_DEAD;
	qsort(re->found, count, sizeof(*re->found), by_value);
	for (uint32_t i = 0; i < count; i++)
		hash = map_hash_u64(hash, re->found[i]);
	id = find_state(re, hash, count, before);
	if (id)
		return id;
	insts = arena_push_aligned(&re->arena, count * sizeof(*insts), sizeof(*insts));
	if (!insts || !grow_tables(re))
		return 0;
	id = (uint32_t)re->state_count + NEXT_FIRST;
	if (!map_add(&re->map, hash, id))
		return 0;
	memcpy(insts, re->found, count * sizeof(*insts));
	re->states[re->state_count++] = (struct state){ insts, count, before };
	re->cache_bytes += count * sizeof(*insts) + (re->classes + 1) * sizeof(*re->next) +
			   sizeof(struct state) + 2 * sizeof(struct map_slot);
	return id;
}

/* Fills found[] with the instructions of `s` that can run when c is the next byte. */
static uint32_t ready(struct regex *re, const struct state *s, int c)
{
	uint32_t top = 0;

	new_pass(re);
	for (uint32_t i = s->count; i-- > 0;)
		push(re, &top, s->insts[i]);
	return follow(re, top, 0, s->before, c);
}

/* Returns the result at the end of the text: NEXT_FIRST for a match, NEXT_DEAD for none. */
static uint32_t step_end(struct regex *re, const struct state *s)
{
	uint32_t count = ready(re, s, -1);

	for (uint32_t i = 0; i < count; i++)
		if (re->p.insts[re->found[i]].op == INST_MATCH)
			return NEXT_FIRST;
	return NEXT_DEAD;
}

static uint32_t step_byte(struct regex *re, const struct state *s, int c)
{
	uint32_t count = ready(re, s, c), top = 0;

	new_pass(re);
	for (uint32_t i = 0; i < count; i++) {
		const struct inst *inst = &re->p.insts[re->found[i]];

		if (inst->op == INST_RANGE && inst->lo <= c && c <= inst->hi)
			push(re, &top, re->found[i] + 1);
	}
	count = follow(re, top, 0, BEFORE_NOTHING, KEEP_ASSERTS);
	return intern(re, count, before_of(re, c));
}

static uint32_t first_state(struct regex *re)
{
	uint32_t top = 0, count;

	if (re->start)
		return re->start;
	new_pass(re);
	push(re, &top, 0);
	count = follow(re, top, 0, BEFORE_NOTHING, KEEP_ASSERTS);
	re->start = intern(re, count, BEFORE_NOTHING);
	return re->start;
}

/* Makes the next state. If there are too many states, all are dropped and the new one becomes
 * the first. */
static uint32_t make_next(struct regex *re, uint32_t from, uint32_t class)
{
	struct state s = re->states[from - NEXT_FIRST];
	uint32_t to =
		class == re->classes ? step_end(re, &s) : step_byte(re, &s, re->byte_of[class]);

	if (!to)
		return 0;
	re->next[(from - NEXT_FIRST) * (size_t)(re->classes + 1) + class] = to;
	if (re->cache_bytes > CACHE_LIMIT && class != re->classes && to >= NEXT_FIRST) {
		uint32_t count = re->states[to - NEXT_FIRST].count;
		enum before before = re->states[to - NEXT_FIRST].before;

		memcpy(re->found, re->states[to - NEXT_FIRST].insts, count * sizeof(*re->found));
		drop_states(re);
		to = intern(re, count, before);
	}
	return to;
}

static bool fail(struct regex_list *list, ow_status status)
{
	list->status = status;
	return false;
}

bool regex_run(struct regex_list *list, struct str text)
{
	struct regex *re = list->regex;
	uint32_t at;

	if (list->status != OW_OK)
		return false;
	at = first_state(re);
	for (size_t i = 0; i <= text.len; i++) {
		uint32_t class =
			i < text.len ? re->class_of[(unsigned char)text.ptr[i]] : re->classes;
		uint32_t to;

		if (at < NEXT_FIRST)
			break;
		to = re->next[(at - NEXT_FIRST) * (size_t)(re->classes + 1) + class];
		if (OW_UNLIKELY(to == NEXT_UNKNOWN)) {
			to = make_next(re, at, class);
			if (re->work > WORK_LIMIT)
				return fail(list, OW_E_LIMIT);
		}
		at = to;
	}
	return at ? at >= NEXT_FIRST : fail(list, OW_E_NO_MEMORY);
}

static void find_classes(struct regex *re)
{
	bool begins[257] = { [0] = true };
	uint32_t class = 0;

	for (size_t i = 0; i < re->p.count; i++) {
		if (re->p.insts[i].op == INST_RANGE) {
			begins[re->p.insts[i].lo] = true;
			begins[re->p.insts[i].hi + 1] = true;
		}
		re->asserts |= re->p.insts[i].op == INST_ASSERT;
	}
	for (int c = 1; c < 256 && re->asserts; c++)
		begins[c] |= regex_is_word(c) != regex_is_word(c - 1) || c == '\n' || c == '\n' + 1;
	for (int c = 0; c < 256; c++) {
		class += c && begins[c];
		if (begins[c])
			re->byte_of[class] = (uint8_t)c;
		re->class_of[c] = (uint8_t) class;
	}
	re->classes = class + 1;
}

/* Adds one pattern: a SPLIT to the next pattern, the program of this one, and MATCH. */
static bool add_pattern(struct program *p, struct str pattern, char *why)
{
	size_t begin = p->count;

	p->limit = MIN(p->count + PATTERN_LIMIT, LIST_LIMIT);
	program_emit(p, (struct inst){ .op = INST_SPLIT });
	if (!program_failed(p) && regex_parse(p, pattern, why, WHY_BYTES)) {
		program_emit(p, (struct inst){ .op = INST_MATCH });
		if (!program_failed(p)) {
			p->insts[begin].jump = (int32_t)(p->count - begin);
			return true;
		}
	}
	if (p->too_large)
		snprintf(why, WHY_BYTES, "pattern too large - compile failed");
	p->too_large = false;
	p->count = begin;
	return false;
}

static bool prepare(struct regex *re)
{
	size_t count = re->p.count;

	re->mark = mem_zalloc(re->mem, count * sizeof(*re->mark));
	re->stack = mem_alloc(re->mem, (count + 1) * sizeof(*re->stack));
	re->found = mem_alloc(re->mem, count * sizeof(*re->found));
	find_classes(re);
	return re->mark && re->stack && re->found;
}

static void regex_free(struct regex *re)
{
	struct mem *mem = re->mem;

	mem_free(mem, re->mark, re->p.count * sizeof(*re->mark));
	mem_free(mem, re->stack, (re->p.count + 1) * sizeof(*re->stack));
	mem_free(mem, re->found, re->p.count * sizeof(*re->found));
	mem_free(mem, re->p.insts, re->p.cap * sizeof(*re->p.insts));
	mem_free(mem, re->states, re->state_cap * sizeof(*re->states));
	mem_free(mem, re->next, re->next_cap * sizeof(*re->next));
	arena_release(&re->arena);
	map_release(&re->map);
	mem_free(mem, re, sizeof(*re));
}

static ow_status compile(struct regex_list *list, const char *const *patterns, size_t count,
			 regex_invalid_fn invalid, void *arg, struct ow_error *err)
{
	struct regex *re = list->regex;
	char why[WHY_BYTES];

	for (size_t i = 0; i < count; i++) {
		struct str pattern = str_from(patterns[i]);

		if (add_pattern(&re->p, pattern, why))
			continue;
		if (re->p.no_memory)
			return error_no_memory(err);
		if (invalid)
			invalid(arg, pattern, why);
	}
	if (!re->p.count) { /* without a valid pattern the list never matches */
		regex_free(re);
		list->regex = NULL;
		return OW_OK;
	}
	/* target of the last pattern's SPLIT */
	re->p.limit = SIZE_MAX;
	program_emit(&re->p, (struct inst){ .op = INST_FAIL });
	if (re->p.no_memory || !prepare(re))
		return error_no_memory(err);
	return OW_OK;
}

ow_status regex_list_init(struct regex_list *list, struct mem *mem, const char *const *patterns,
			  size_t count, regex_invalid_fn invalid, void *arg, struct ow_error *err)
{
	ow_status status;

	*list = (struct regex_list){ .mem = mem };
	if (!count)
		return OW_OK;
	list->regex = mem_zalloc(mem, sizeof(*list->regex));
	if (!list->regex)
		return error_no_memory(err);
	list->regex->mem = mem;
	list->regex->p.mem = mem;
	arena_init(&list->regex->arena, mem);
	map_init(&list->regex->map, mem);
	status = compile(list, patterns, count, invalid, arg, err);
	if (status != OW_OK)
		regex_list_release(list);
	return status;
}

ow_status regex_list_init_all(struct regex_list *list, struct mem *mem, const char *const *patterns,
			      size_t count, regex_invalid_fn invalid, void *arg,
			      struct ow_error *err)
{
	if (count != 1 || strcmp(patterns[0], ".*") != 0)
		return regex_list_init(list, mem, patterns, count, invalid, arg, err);
	*list = (struct regex_list){ .mem = mem, .everything = true };
	return OW_OK;
}

void regex_list_release(struct regex_list *list)
{
	if (list->regex)
		regex_free(list->regex);
	list->regex = NULL;
}

ow_status regex_list_status(const struct regex_list *list, struct ow_error *err)
{
	if (list->status == OW_E_LIMIT)
		return error_set(err, OW_E_LIMIT,
				 "the regular expressions take too long to match: "
				 "simplify them");
	return list->status == OW_OK ? OW_OK : error_no_memory(err);
}
