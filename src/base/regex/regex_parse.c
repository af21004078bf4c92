/*
 * regex_parse.c: a pattern in RE2's syntax becomes a program, in one pass and with a stack of open
 * groups instead of recursion. Only whether a whole text matches is asked, so captures and greediness
 * are checked but leave no trace. Called by regex.c.
 */
#include "base/regex_int.h"

#include <stdarg.h>

#define REPEAT_MAX 1000 /* RE2's limit, also for the product of nested ones */
#define NONE SIZE_MAX

enum flag { FLAG_FOLD = 1, FLAG_MULTI_LINE = 2, FLAG_DOT_NL = 4, FLAG_UNGREEDY = 8 };

struct group {
	size_t begin;	  /* where the group starts */
	size_t branch;	  /* where the current alternative starts */
	size_t jumps;	  /* last jump to the group's end that is not resolved, a chain; or NONE */
	size_t atom;	  /* what a quantifier would repeat, or NONE */
	uint32_t repeats; /* product of the quantifiers inside the atom */
	uint32_t inside;  /* the largest such product in the group */
	unsigned flags;	  /* to be restored after it */
	struct str open;  /* the pattern from its parenthesis on */
};

struct parser {
	struct program *p;
	struct str rest;
	struct str whole;
	unsigned flags;
	struct group *groups;
	size_t depth, cap; /* groups[depth - 1] is the current one */
	struct str unary;  /* the quantifier just read, if the last token was one */
	char *why;
	size_t why_size;
};

static struct regex_reader reader_of(const struct parser *s)
{
	return (struct regex_reader){ s->flags & FLAG_FOLD, s->why, s->why_size };
}

bool regex_bad(const struct regex_reader *r, const char *what, struct str where)
{
	snprintf(r->why, r->why_size, "%s: %.*s", what, STR_ARG(where));
	return false;
}

static bool bad(struct parser *s, const char *what, struct str where)
{
	struct regex_reader reader = reader_of(s);

	return regex_bad(&reader, what, where);
}

static struct group *top(struct parser *s)
{
	return &s->groups[s->depth - 1];
}

static bool push_group(struct parser *s, struct str open)
{
	void *grown = s->groups;

	if (!mem_grow(s->p->mem, &grown, &s->cap, s->depth + 1, sizeof(*s->groups))) {
		s->p->no_memory = true;
		return false;
	}
	s->groups = grown;
	s->groups[s->depth++] = (struct group){ .begin = s->p->count,
						.branch = s->p->count,
						.jumps = NONE,
						.atom = NONE,
						.repeats = 1,
						.inside = 1,
						.flags = s->flags,
						.open = open };
	return true;
}

/* ---- atoms ---- */

static void begin_atom(struct parser *s)
{
	struct group *g = top(s);

	g->atom = s->p->count;
	g->repeats = 1;
}

static void emit_range(struct parser *s, uint32_t lo, uint32_t hi)
{
	struct ranges r = { .mem = s->p->mem };

	if (s->flags & FLAG_FOLD)
		ranges_add_folded(&r, lo, hi);
	else
		ranges_add(&r, lo, hi);
	ranges_normalize(&r);
	ranges_emit(&r, s->p);
	mem_free(r.mem, r.items, r.cap * sizeof(*r.items));
}

static bool emit_literal(struct parser *s, uint32_t rune)
{
	begin_atom(s);
	emit_range(s, rune, rune);
	return true;
}

static bool emit_set(struct parser *s, struct ranges *r)
{
	begin_atom(s);
	ranges_normalize(r);
	ranges_emit(r, s->p);
	mem_free(r->mem, r->items, r->cap * sizeof(*r->items));
	return true;
}

static bool emit_assert(struct parser *s, enum assertion kind)
{
	begin_atom(s);
	program_emit(s->p, (struct inst){ .op = INST_ASSERT, .lo = (uint8_t)kind });
	return true;
}

static bool emit_dot(struct parser *s)
{
	struct ranges r = { .mem = s->p->mem };

	if (s->flags & FLAG_DOT_NL) {
		ranges_add(&r, 0, RUNE_MAX);
	} else {
		ranges_add(&r, 0, '\n' - 1);
		ranges_add(&r, '\n' + 1, RUNE_MAX);
	}
	return emit_set(s, &r);
}

/* ---- groups ---- */

/* Ends the current alternative: SPLIT in front of it, a jump to the group's end behind it. */
static bool alternative(struct parser *s)
{
	struct group *g = top(s);
	size_t len = s->p->count - g->branch;

	program_insert(s->p, g->branch,
		       (struct inst){ .op = INST_SPLIT, .jump = (int32_t)len + 2 });
	program_emit(s->p, (struct inst){ .op = INST_JUMP, .jump = (int32_t)g->jumps });
	if (program_failed(s->p))
		return false;
	g->jumps = s->p->count - 1;
	g->branch = s->p->count;
	g->atom = NONE;
	return true;
}

static void resolve_jumps(struct parser *s, struct group *g)
{
	for (size_t at = g->jumps; at != NONE;) {
		struct inst *inst = &s->p->insts[at];
		size_t previous = inst->jump < 0 ? NONE : (size_t)inst->jump;

		inst->jump = (int32_t)(s->p->count - at);
		at = previous;
	}
}

static bool close_group(struct parser *s)
{
	struct group done;

	if (s->depth == 1)
		return bad(s, "unexpected )", s->whole);
	done = *top(s);
	resolve_jumps(s, &done);
	s->depth--;
	s->flags = done.flags;
	top(s)->atom = done.begin;
	top(s)->repeats = done.inside;
	top(s)->inside = MAX(top(s)->inside, done.inside);
	s->rest = str_skip(s->rest, 1);
	return true;
}

static bool named_group(struct parser *s, struct str open)
{
	size_t end = str_find_char(s->rest, '>');
	struct str name;

	if (end == STR_NONE)
		return bad(s, "invalid named capture group", s->rest);
	name = str_skip(str_first(s->rest, end), 4);
	for (size_t i = 0; i < name.len; i++)
		if (!regex_is_word((unsigned char)name.ptr[i]))
			return bad(s, "invalid named capture group", str_first(s->rest, end + 1));
	if (!name.len)
		return bad(s, "invalid named capture group", str_first(s->rest, end + 1));
	s->rest = str_skip(s->rest, end + 1);
	return push_group(s, open);
}

static unsigned flag_of(char c)
{
	switch (c) {
	case 'i':
		return FLAG_FOLD;
	case 'm':
		return FLAG_MULTI_LINE;
	case 's':
		return FLAG_DOT_NL;
	case 'U':
		return FLAG_UNGREEDY;
	default:
		return 0;
	}
}

/* "(?i)", "(?i-s:", "(?:" */
static bool flag_group(struct parser *s, struct str open)
{
	struct str rest = str_skip(s->rest, 2);
	unsigned flags = s->flags;
	bool negative = false, seen = false;

	for (; rest.len; rest = str_skip(rest, 1)) {
		char c = rest.ptr[0];
		unsigned flag = flag_of(c);

		if (flag) {
			flags = negative ? flags & ~flag : flags | flag;
			seen = true;
		} else if (c == '-' && !negative) {
			negative = true; /* and some flag must follow */
			seen = false;
		} else if ((c == ':' || c == ')') && (!negative || seen)) {
			s->rest = str_skip(rest, 1);
			if (c == ':' && !push_group(s, open))
				return false;
			s->flags = flags;
			return true;
		} else {
			return bad(s, "invalid perl operator",
				   regex_between(s->rest, str_skip(rest, 1)));
		}
	}
	return bad(s, "missing closing )", s->whole);
}

static bool open_group(struct parser *s)
{
	struct str open = s->rest;

	if (!str_starts(s->rest, STR("(?"))) {
		s->rest = str_skip(s->rest, 1);
		return push_group(s, open);
	}
	if (str_starts(s->rest, STR("(?P<")))
		return named_group(s, open);
	return flag_group(s, open);
}

/* ---- quantifiers ---- */

/* Turns the piece X at `at` into X{min,max}; max < 0 means no limit. */
static void repeat(struct parser *s, size_t at, int min, int max)
{
	struct program *p = s->p;
	size_t len = p->count - at;
	int32_t jump = (int32_t)len;

	if (max == 0) {
		p->count = at;
		return;
	}
	if (min == 0 && max < 0) {
		program_insert(p, at, (struct inst){ .op = INST_SPLIT, .jump = jump + 2 });
		program_emit(p, (struct inst){ .op = INST_JUMP, .jump = -jump - 1 });
		return;
	}
	/* copies are made from the first, so it gets its SPLIT last */
	for (int i = 1; i < min && !program_failed(p); i++)
		program_copy(p, at, len);
	if (max < 0)
		program_emit(p, (struct inst){ .op = INST_SPLIT, .jump = -jump });
	for (int i = MAX(min, 1); i < max && !program_failed(p); i++) {
		int32_t end = (max - i) * (jump + 1);

		program_emit(p, (struct inst){ .op = INST_SPLIT, .jump = end });
		program_copy(p, at, len);
	}
	if (min == 0)
		program_insert(
			p, at,
			(struct inst){ .op = INST_SPLIT, .jump = (int32_t)(p->count - at) + 1 });
}

static bool quantifier(struct parser *s, struct str op, int min, int max)
{
	struct group *g = top(s);
	uint32_t times = (uint32_t)(max < 0 ? min : max);

	if (s->unary.len)
		return bad(s, "bad repetition operator", regex_between(s->unary, s->rest));
	if (g->atom == NONE)
		return bad(s, "no argument for repetition operator", op);
	/* * + ? do not count as repetitions in RE2's limit */
	if (op.ptr[0] == '{' && times > 1) {
		if ((uint64_t)g->repeats * times > REPEAT_MAX)
			return bad(s, "invalid repetition size", op);
		g->repeats *= times;
		g->inside = MAX(g->inside, g->repeats);
	}
	repeat(s, g->atom, min, max);
	s->unary = op;
	return true;
}

/* "?" behind a quantifier makes it lazy, which does not matter here. */
static struct str skip_lazy(struct str rest)
{
	return rest.len && rest.ptr[0] == '?' ? str_skip(rest, 1) : rest;
}

static bool simple_quantifier(struct parser *s)
{
	char c = s->rest.ptr[0];
	struct str op = s->rest;

	s->rest = skip_lazy(str_skip(s->rest, 1));
	return quantifier(s, regex_between(op, s->rest), c == '+', c == '?' ? 1 : -1);
}

static bool is_digit(struct str s)
{
	return s.len && s.ptr[0] >= '0' && s.ptr[0] <= '9';
}

/* A number without leading zeros; a very long one becomes something beyond the limit. */
static bool number(struct str *rest, int *value)
{
	if (!is_digit(*rest) || (rest->ptr[0] == '0' && is_digit(str_skip(*rest, 1))))
		return false;
	for (*value = 0; is_digit(*rest); *rest = str_skip(*rest, 1))
		*value = MIN(*value * 10 + (rest->ptr[0] - '0'), 100000);
	return true;
}

/* "{2}", "{2,}", "{2,5}"; anything else is a literal brace. */
static bool braces(struct parser *s)
{
	struct str op = s->rest, rest = str_skip(s->rest, 1);
	int min, max;

	if (!number(&rest, &min))
		goto literal;
	max = min;
	if (rest.len && rest.ptr[0] == ',') {
		rest = str_skip(rest, 1);
		max = -1;
		if (rest.len && rest.ptr[0] != '}' && !number(&rest, &max))
			goto literal;
	}
	if (!rest.len || rest.ptr[0] != '}')
		goto literal;
	s->rest = skip_lazy(str_skip(rest, 1));
	op = regex_between(op, s->rest);
	if (min > REPEAT_MAX || max > REPEAT_MAX || (max >= 0 && min > max))
		return bad(s, "invalid repetition size", op);
	return quantifier(s, op, min, max);
literal:
	s->rest = str_skip(s->rest, 1);
	s->unary = (struct str){ 0 };
	return emit_literal(s, '{');
}

static bool quoted(struct parser *s)
{
	s->rest = str_skip(s->rest, 2);
	while (s->rest.len) {
		if (str_starts(s->rest, STR("\\E"))) {
			s->rest = str_skip(s->rest, 2);
			break;
		}
		emit_literal(s, regex_rune(&s->rest));
	}
	return true;
}

static bool backslash(struct parser *s)
{
	static const char letters[] = "bBAz";
	static const enum assertion kinds[] = { ASSERT_WORD, ASSERT_NOT_WORD, ASSERT_BEGIN_TEXT,
						ASSERT_END_TEXT };
	char c = s->rest.len > 1 ? s->rest.ptr[1] : '\0';
	const char *known = c ? strchr(letters, c) : NULL;
	struct ranges r = { .mem = s->p->mem };
	struct regex_reader reader = reader_of(s);
	uint32_t rune = 0;

	if (known) {
		s->rest = str_skip(s->rest, 2);
		return emit_assert(s, kinds[known - letters]);
	}
	if (c == 'Q')
		return quoted(s);
	if (c == 'C') { /* any byte */
		s->rest = str_skip(s->rest, 2);
		begin_atom(s);
		program_emit(s->p, (struct inst){ .op = INST_RANGE, .hi = 0xff });
		return true;
	}
	if (c == 'p' || c == 'P') {
		if (regex_read_unicode(&reader, &s->rest, &r))
			return emit_set(s, &r);
		mem_free(r.mem, r.items, r.cap * sizeof(*r.items));
		return false;
	}
	if (c && ranges_add_perl(&r, c, s->flags & FLAG_FOLD)) {
		s->rest = str_skip(s->rest, 2);
		return emit_set(s, &r);
	}
	return regex_read_escape(&reader, &s->rest, &rune) && emit_literal(s, rune);
}

static bool class(struct parser *s)
{
	struct ranges r = { .mem = s->p->mem };
	struct regex_reader reader = reader_of(s);

	if (regex_read_class(&reader, &s->rest, &r))
		return emit_set(s, &r);
	mem_free(r.mem, r.items, r.cap * sizeof(*r.items));
	return false;
}

/* ---- the whole ---- */

static bool token(struct parser *s)
{
	switch (s->rest.ptr[0]) {
	case '*':
	case '+':
	case '?':
		return simple_quantifier(s);
	case '{':
		return braces(s);
	default:
		break;
	}
	s->unary = (struct str){ 0 };
	switch (s->rest.ptr[0]) {
	case '(':
		return open_group(s);
	case ')':
		return close_group(s);
	case '|':
		s->rest = str_skip(s->rest, 1);
		return alternative(s);
	case '[':
		return class(s);
	case '\\':
		return backslash(s);
	case '.':
		s->rest = str_skip(s->rest, 1);
		return emit_dot(s);
	case '^':
		s->rest = str_skip(s->rest, 1);
		return emit_assert(s, s->flags & FLAG_MULTI_LINE ? ASSERT_BEGIN_LINE
								 : ASSERT_BEGIN_TEXT);
	case '$':
		s->rest = str_skip(s->rest, 1);
		return emit_assert(s,
				   s->flags & FLAG_MULTI_LINE ? ASSERT_END_LINE : ASSERT_END_TEXT);
	default:
		return emit_literal(s, regex_rune(&s->rest));
	}
}

bool regex_parse(struct program *p, struct str pattern, char *why, size_t why_size)
{
	struct parser s = {
		.p = p, .rest = pattern, .whole = pattern, .why = why, .why_size = why_size
	};
	size_t begin = p->count;
	bool ok;

	why[0] = '\0';
	if (!utf8_valid(pattern)) {
		snprintf(why, why_size, "invalid UTF-8");
		return false;
	}
	ok = push_group(&s, pattern);
	while (ok && s.rest.len)
		ok = token(&s) && !program_failed(p);
	if (ok && s.depth > 1)
		ok = bad(&s, "missing closing )", pattern);
	if (ok)
		resolve_jumps(&s, top(&s));
	if (p->too_large)
		snprintf(why, why_size, "pattern too large - compile failed");
	mem_free(p->mem, s.groups, s.cap * sizeof(*s.groups));
	if (ok && !program_failed(p))
		return true;
	p->count = begin;
	p->too_large = false;
	return false;
}
