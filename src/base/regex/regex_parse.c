/*
 * regex_parse.c: a pattern in RE2's syntax becomes a program, in one pass and with a stack of open
 * groups instead of recursion. Only whether a whole text matches is asked, so captures and greediness
 * are checked but leave no trace. Called by regex.c.
 */
#include "base/regex/regex_int.h"
#include "base/vec.h"

#include <stdarg.h>

/* State of the parser within a part of a pattern, and the position of a syntax error. */
struct regex_reader {
	bool fold; /* the flag (?i) is on */
	char *why;
	size_t why_size;
};

static struct str regex_between(struct str from, struct str to)
{
	return str_make(from.ptr, (size_t)(to.ptr - from.ptr));
}

/* Takes one code point of the pattern, which is valid UTF-8 and not at its end. */
static uint32_t regex_rune(struct str *rest)
{
	uint32_t rune = 0;

	*rest = str_skip(*rest, utf8_decode(*rest, &rune));
	return rune;
}

/* Writes "what: where" to r->why and returns false. */
static bool regex_bad(const struct regex_reader *r, const char *what, struct str where)
{
	snprintf(r->why, r->why_size, "%s: %.*s", what, STR_ARG(where));
	return false;
}

static int hex_value(uint32_t c)
{
	if (c >= '0' && c <= '9')
		return (int)(c - '0');
	if (c >= 'a' && c <= 'f')
		return (int)(c - 'a') + 10;
	if (c >= 'A' && c <= 'F')
		return (int)(c - 'A') + 10;
	return -1;
}

static bool hex_escape(struct str *rest, uint32_t *rune)
{
	uint32_t first, second, code = 0;
	int digits = 0;

	if (!rest->len)
		return false;
	first = regex_rune(rest);
	if (!rest->len)
		return false;
	if (first != '{') {
		second = regex_rune(rest);
		*rune = (uint32_t)(hex_value(first) * 16 + hex_value(second));
		return hex_value(first) >= 0 && hex_value(second) >= 0;
	}
	for (first = regex_rune(rest); hex_value(first) >= 0; first = regex_rune(rest)) {
		code = code * 16 + (uint32_t)hex_value(first);
		digits++;
		if (code > RUNE_MAX || !rest->len)
			return false;
	}
	*rune = code;
	return first == '}' && digits;
}

static uint32_t octal_escape(struct str *rest, uint32_t first)
{
	uint32_t code = first - '0';

	for (int i = 0; i < 2 && rest->len && rest->ptr[0] >= '0' && rest->ptr[0] <= '7'; i++) {
		code = code * 8 + (uint32_t)(rest->ptr[0] - '0');
		*rest = str_skip(*rest, 1);
	}
	return code;
}

/* Returns the code point that an escape stands for; the text begins with the backslash. */
static bool regex_read_escape(const struct regex_reader *r, struct str *rest, uint32_t *rune)
{
	static const char letters[] = "afnrtv", meaning[] = "\a\f\n\r\t\v";
	struct str begin = *rest;
	const char *known;
	uint32_t c;
	bool ok = true;

	*rest = str_skip(*rest, 1);
	if (!rest->len) {
		snprintf(r->why, r->why_size, "trailing \\");
		return false;
	}
	c = regex_rune(rest);
	known = c < 0x80 ? strchr(letters, (int)c) : NULL;
	if (c == '0' ||
	    (c >= '1' && c <= '7' && rest->len && rest->ptr[0] >= '0' && rest->ptr[0] <= '7'))
		*rune = octal_escape(rest, c);
	else if (c == 'x')
		ok = hex_escape(rest, rune);
	else if (c && known)
		*rune = (uint32_t)meaning[known - letters];
	else if (c < 0x80 && (c == '_' || !regex_is_word((unsigned char)c)))
		*rune = c;
	else
		ok = false;
	return ok || regex_bad(r, "invalid escape sequence", regex_between(begin, *rest));
}

/* Reads \pL, \p{Greek}, \p{^Greek} or \P…; *rest begins with the backslash. */
static bool regex_read_unicode(const struct regex_reader *r, struct str *rest, struct ranges *set)
{
	struct str begin = *rest, name;
	bool negated = rest->ptr[1] == 'P';

	*rest = str_skip(*rest, 2);
	if (!rest->len)
		return regex_bad(r, "invalid character class range", begin);
	if (rest->ptr[0] == '{') {
		size_t end = str_find_char(*rest, '}');

		if (end == STR_NONE)
			return regex_bad(r, "invalid character class range", begin);
		name = str_skip(str_first(*rest, end), 1);
		*rest = str_skip(*rest, end + 1);
	} else {
		name = *rest;
		(void)regex_rune(rest);
		name = regex_between(name, *rest);
	}
	if (name.len && name.ptr[0] == '^') {
		negated = !negated;
		name = str_skip(name, 1);
	}
	if (ranges_add_unicode(set, name, negated, r->fold))
		return true;
	return regex_bad(r, "invalid character class range", regex_between(begin, *rest));
}

/* Reads a class such as [:alpha:]. Returns 1 = read, 0 = not a class, -1 = invalid. */
static int posix_class(const struct regex_reader *r, struct str *rest, struct ranges *set)
{
	struct str name;
	size_t end;
	bool negated;

	if (!str_starts(*rest, STR("[:")))
		return 0;
	end = str_find(str_skip(*rest, 2), STR(":]"));
	if (end == STR_NONE)
		return 0;
	name = str_first(str_skip(*rest, 2), end);
	negated = name.len && name.ptr[0] == '^';
	if (!ranges_add_posix(set, str_skip(name, negated), negated, r->fold)) {
		regex_bad(r, "invalid character class range", str_first(*rest, end + 4));
		return -1;
	}
	*rest = str_skip(*rest, end + 4);
	return 1;
}

static bool class_character(const struct regex_reader *r, struct str *rest, uint32_t *rune)
{
	if (!rest->len)
		return regex_bad(r, "missing ]", *rest);
	if (rest->ptr[0] == '\\')
		return regex_read_escape(r, rest, rune);
	*rune = regex_rune(rest);
	return true;
}

static bool class_range(const struct regex_reader *r, struct str *rest, struct ranges *set)
{
	struct str begin = *rest;
	uint32_t lo = 0, hi;

	if (!class_character(r, rest, &lo))
		return false;
	hi = lo;
	if (rest->len >= 2 && rest->ptr[0] == '-' && rest->ptr[1] != ']') {
		*rest = str_skip(*rest, 1);
		if (!class_character(r, rest, &hi))
			return false;
		if (hi < lo)
			return regex_bad(r, "invalid character class range",
					 regex_between(begin, *rest));
	}
	if (r->fold)
		ranges_add_folded(set, lo, hi);
	else
		ranges_add(set, lo, hi);
	return true;
}

/* Reads one member of a class: a named class, an escape class, or a range. */
static bool class_member(const struct regex_reader *r, struct str *rest, struct ranges *set)
{
	int posix = posix_class(r, rest, set);

	if (posix)
		return posix > 0;
	if (rest->len > 2 && rest->ptr[0] == '\\' && (rest->ptr[1] == 'p' || rest->ptr[1] == 'P'))
		return regex_read_unicode(r, rest, set);
	if (rest->len > 1 && rest->ptr[0] == '\\' && ranges_add_perl(set, rest->ptr[1], r->fold)) {
		*rest = str_skip(*rest, 2);
		return true;
	}
	return class_range(r, rest, set);
}

static bool regex_read_class(const struct regex_reader *r, struct str *rest, struct ranges *set)
{
	struct str at = str_skip(*rest, 1);
	bool negated = at.len && at.ptr[0] == '^';

	at = str_skip(at, negated);
	for (bool first = true; at.len && (first || at.ptr[0] != ']'); first = false)
		if (!class_member(r, &at, set))
			return false;
	if (!at.len)
		return regex_bad(r, "missing ]", *rest);
	*rest = str_skip(at, 1);
	if (negated)
		ranges_negate(set);
	return true;
}

#define REPEAT_MAX 1000 /* RE2's limit for repetitions, also for the product of nested ones */
#define NONE SIZE_MAX

enum flag { FLAG_FOLD = 1, FLAG_MULTI_LINE = 2, FLAG_DOT_NL = 4, FLAG_UNGREEDY = 8 };

struct group {
	size_t begin;  /* first instruction of the group */
	size_t branch; /* first instruction of the current alternative */
	/* chain of unresolved jumps to the end of the group, the last one first; or NONE */
	size_t jumps;
	/* first instruction of the part that a quantifier would repeat, or NONE */
	size_t atom;
	uint32_t repeats; /* product of the quantifiers inside that part */
	uint32_t inside;  /* largest of these products in the group */
	unsigned flags;	  /* flags before the group, restored after it */
	struct str open;  /* the pattern from the group's parenthesis on */
};

struct parser {
	struct program *p;
	struct str rest;
	struct str whole;
	unsigned flags;
	struct group *groups;
	size_t depth, cap; /* number of open groups; groups[depth - 1] is the current one */
	struct str unary;  /* quantifier that was just read, if the last token was one */
	char *why;
	size_t why_size;
};

static struct regex_reader reader_of(const struct parser *s)
{
	return (struct regex_reader){ s->flags & FLAG_FOLD, s->why, s->why_size };
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
	if (!vec_reserve(s->p->mem, s->groups, s->cap, s->depth + 1)) {
		s->p->no_memory = true;
		return false;
	}
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

/* Ends the current alternative: adds a SPLIT before it and a jump to the end of the group after
 * it. */
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

/* Reads a group with flags: "(?i)", "(?i-s:", "(?:". */
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
			negative = true; /* a flag must follow the minus sign */
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

/* Turns the part X at `at` into X{min,max}; max < 0 means no limit. */
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
	/* the copies are made from the first part, so it gets its SPLIT last */
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
	/* RE2's limit does not count *, + and ? as repetitions */
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

/* Skips "?" after a quantifier, which makes it lazy and does not change whether a whole text
 * matches. */
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

/* Reads a number without leading zeros; a very long number becomes one beyond the limit. */
static bool number(struct str *rest, int *value)
{
	if (!is_digit(*rest) || (rest->ptr[0] == '0' && is_digit(str_skip(*rest, 1))))
		return false;
	for (*value = 0; is_digit(*rest); *rest = str_skip(*rest, 1))
		*value = MIN(*value * 10 + (rest->ptr[0] - '0'), 100000);
	return true;
}

/* Reads "{2}", "{2,}" or "{2,5}"; anything else is a literal brace. */
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
	if (c == 'C') { /* \C matches any byte */
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
