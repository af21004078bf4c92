/*
 * demangle_rust.c: Rust's names, both kinds. Names of today (v0, "_R…") are written while they are read: the grammar of
 * RFC 2603 is a prefix code, and references lead back to bytes that were read before. Legacy names ("_ZN…17h<hash>E")
 * are paths with a hash at their end, which is left out. Called by demangle_name only.
 *
 * Spelled as c++filt does: no hashes of crates, no types of constants. Constants of other types than numbers, bool and
 * char are not read; a name that has one stays mangled.
 */
#include "base/demangle/demangle_int.h"

#define RUST_DEPTH 200
#define RUST_TEXT_MAX 65536
/* largest number of types and paths; back references could repeat each other endlessly */
#define RUST_STEPS_MAX 65536

struct rust {
	struct str name; /* the mangled name after "_R" */
	size_t at;
	struct buf *out;
	size_t begin; /* offset in `out` at which the demangled text begins */
	unsigned depth, steps;
	uint64_t lifetimes; /* number of lifetimes that the surrounding binders bind */
	/* parse without writing: for the path of an impl block and the crate at the end */
	bool silent;
	bool bad;
};

static void rust_path(struct rust *r, bool value);
static void rust_type(struct rust *r);

static char rust_peek(const struct rust *r)
{
	return r->at < r->name.len ? r->name.ptr[r->at] : '\0';
}

static char rust_next(struct rust *r)
{
	char c = rust_peek(r);

	r->bad |= !c;
	r->at += c != '\0';
	return c;
}

static bool rust_eat(struct rust *r, char c)
{
	if (r->bad || rust_peek(r) != c)
		return false;
	r->at++;
	return true;
}

static void rust_put(struct rust *r, struct str text)
{
	if (r->silent || r->bad)
		return;
	buf_add_str(r->out, text);
	r->bad |= r->out->failed || r->out->len - r->begin > RUST_TEXT_MAX;
}

static void rust_puts(struct rust *r, const char *text)
{
	rust_put(r, str_from(text));
}

static void rust_put_number(struct rust *r, uint64_t value)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, value);
	rust_puts(r, text);
}

/* Counts a path or a type. Returns false and sets `bad` if there are too many. */
static bool rust_enter(struct rust *r)
{
	r->bad |= ++r->depth > RUST_DEPTH || ++r->steps > RUST_STEPS_MAX;
	return !r->bad;
}

/* Parses a base-62 number: "_" is 0, "0_" is 1, "Z_" is 62. */
static uint64_t rust_base62(struct rust *r)
{
	uint64_t value = 0;

	if (rust_eat(r, '_'))
		return 0;
	while (!r->bad && !rust_eat(r, '_')) {
		char c = rust_next(r);
		unsigned digit = c >= '0' && c <= '9'	? (unsigned)(c - '0')
				 : c >= 'a' && c <= 'z' ? (unsigned)(c - 'a') + 10
				 : c >= 'A' && c <= 'Z' ? (unsigned)(c - 'A') + 36
							: 62;

		r->bad |= digit == 62 || value > (UINT64_MAX - digit) / 62;
		value = value * 62 + digit;
	}
	r->bad |= value == UINT64_MAX;
	return value + 1;
}

/* Parses an optional number: 0 without its letter, else the number plus one. */
static uint64_t rust_optional(struct rust *r, char letter)
{
	return rust_eat(r, letter) ? rust_base62(r) + 1 : 0;
}

#define CODE_POINTS 128 /* largest number of code points in an identifier that is not ASCII */

/* Decodes Punycode (RFC 3492) with an underscore in place of the hyphen. */
static void rust_punycode(struct rust *r, struct str text)
{
	uint32_t points[CODE_POINTS], code = 128, bias = 72, i = 0;
	size_t count = 0, cut = str_rfind_char(text, '_');
	bool first = true;

	for (size_t k = 0; text.ptr && cut != STR_NONE && k < cut && count < CODE_POINTS; k++)
		points[count++] = (unsigned char)text.ptr[k];
	text = str_skip(text, cut == STR_NONE ? 0 : cut + 1);
	while (text.len && !r->bad) {
		uint32_t old = i, weight = 1, delta;

		for (uint32_t k = 36;; k += 36) {
			uint32_t limit = k <= bias ? 1 : k >= bias + 26 ? 26 : k - bias, digit;
			char c = text.len ? text.ptr[0] : '\0';

			digit = c >= 'a' && c <= 'z'   ? (uint32_t)(c - 'a')
				: c >= '0' && c <= '9' ? (uint32_t)(c - '0') + 26
						       : 36;
			text = str_skip(text, 1);
			if (digit == 36 || digit > (UINT32_MAX - i) / weight) {
				r->bad = true;
				return;
			}
			i += digit * weight;
			if (digit < limit)
				break;
			if (weight > UINT32_MAX / (36 - limit)) {
				r->bad = true;
				return;
			}
			weight *= 36 - limit;
		}
		delta = (i - old) / (first ? 700 : 2);
		delta += delta / (uint32_t)(count + 1);
		for (bias = 0; delta > 455; bias += 36)
			delta /= 35;
		bias += 36 * delta / (delta + 38);
		first = false;
		code += i / (uint32_t)(count + 1);
		i %= (uint32_t)(count + 1);
		if (count == CODE_POINTS || code > 0x10ffff) {
			r->bad = true;
			return;
		}
		memmove(points + i + 1, points + i, (count - i) * sizeof(*points));
		points[i++] = code;
		count++;
	}
	for (size_t k = 0; k < count; k++) {
		char utf8[4];

		rust_put(r, str_make(utf8, utf8_encode(points[k], utf8)));
	}
}

struct rust_ident {
	struct str text;
	bool punycode;
};

static struct rust_ident rust_ident(struct rust *r)
{
	struct rust_ident ident = { .punycode = rust_eat(r, 'u') };
	size_t len = 0;

	r->bad |= !is_digit(rust_peek(r));
	if (!rust_eat(r, '0'))
		while (is_digit(rust_peek(r)) && !r->bad) {
			len = len * 10 + (size_t)(rust_next(r) - '0');
			r->bad |= len > MANGLED_MAX;
		}
	/* separates the length from a name that begins with a digit or an underscore */
	rust_eat(r, '_');
	r->bad |= len > r->name.len - r->at;
	if (!r->bad) {
		ident.text = str_make(r->name.ptr + r->at, len);
		r->at += len;
	}
	return ident;
}

static void rust_put_ident(struct rust *r, struct rust_ident ident)
{
	if (ident.punycode)
		rust_punycode(r, ident.text);
	else
		rust_put(r, ident.text);
}

/* Writes a lifetime. Number 0 is an erased lifetime; others count from the innermost binder. */
static void rust_put_lifetime(struct rust *r, uint64_t index)
{
	uint64_t depth = r->lifetimes - index;
	char letter = (char)('a' + depth);

	rust_puts(r, "'");
	if (!index) {
		rust_puts(r, "_");
	} else if (index > r->lifetimes) {
		r->bad = true;
	} else if (depth < 26) {
		rust_put(r, str_make(&letter, 1));
	} else {
		rust_puts(r, "_");
		rust_put_number(r, depth);
	}
}

/* Writes a binder such as "for<'a, 'b> " and returns how many lifetimes it binds; the caller
 * unbinds them. */
static uint64_t rust_binder(struct rust *r)
{
	uint64_t count = rust_optional(r, 'G');

	r->bad |= count > MANGLED_MAX;
	if (!count || r->bad)
		return 0;
	rust_puts(r, "for<");
	for (uint64_t i = 0; i < count && !r->bad; i++) {
		rust_puts(r, i ? ", " : "");
		r->lifetimes++;
		rust_put_lifetime(r, 1);
	}
	rust_puts(r, "> ");
	return count;
}

/* Moves to the target of a back reference; false if it is not followed. *back becomes the position to
 * continue at. */
static bool rust_reference(struct rust *r, size_t *back)
{
	size_t here = r->at - 1; /* position of the letter B */
	uint64_t to = rust_base62(r);

	r->bad |= to >= here;
	*back = r->at;
	if (r->bad || r->silent)
		return false;
	r->at = (size_t)to;
	return true;
}

static void rust_put_char(struct rust *r, uint64_t code)
{
	char text[24], utf8[4];

	r->bad |= code > 0x10ffff || (code >= 0xd800 && code < 0xe000);
	if (code == '\t' || code == '\r' || code == '\n')
		snprintf(text, sizeof(text), "'\\%c'",
			 code == '\t'	? 't'
			 : code == '\r' ? 'r'
					: 'n');
	else if (code == '\'' || code == '\\')
		snprintf(text, sizeof(text), "'\\%c'", (char)code);
	else if (code < ' ' || code == 0x7f)
		snprintf(text, sizeof(text), "'\\u{%x}'", (unsigned)code);
	else
		snprintf(text, sizeof(text), "'%.*s'", (int)utf8_encode((uint32_t)code, utf8),
			 utf8);
	rust_puts(r, text);
}

static void rust_const(struct rust *r)
{
	char type;
	size_t digits, back;
	uint64_t value = 0;

	if (rust_eat(r, 'B')) {
		if (rust_reference(r, &back) && rust_enter(r)) {
			rust_const(r);
			r->depth--;
		}
		r->at = back;
		return;
	}
	type = rust_next(r);
	if (type == 'p') {
		rust_puts(r, "_");
		return;
	}
	r->bad |= !type || !strchr("abchijlmnostxy", type);
	if (strchr("ailnsx", type) && rust_eat(r, 'n'))
		rust_puts(r, "-");
	for (digits = 0; !r->bad && !rust_eat(r, '_'); digits++) {
		char c = rust_next(r);

		r->bad |= !is_digit(c) && !(c >= 'a' && c <= 'f');
		value = value << 4 | (unsigned)(is_digit(c) ? c - '0' : c - 'a' + 10);
	}
	if (r->bad)
		return;
	if (type == 'b') {
		r->bad |= value > 1 || digits != 1;
		rust_puts(r, value ? "true" : "false");
	} else if (type == 'c') {
		rust_put_char(r, digits > 6 ? UINT64_MAX : value);
	} else if (digits > 16) {
		rust_puts(r, "0x");
		rust_put(r, str_make(r->name.ptr + r->at - 1 - digits, digits));
	} else {
		rust_put_number(r, value);
	}
}

static const char *rust_basic_type(char c)
{
	static const char *const names[] = {
		"i8",	 "bool", "char", "f64", "str",	"f32",	NULL,  "u8", "isize",
		"usize", NULL,	 "i32",	 "u32", "i128", "u128", "_",   NULL, NULL,
		"i16",	 "u16",	 "()",	 "...", NULL,	"i64",	"u64", "!",
	};

	return c >= 'a' && c <= 'z' ? names[c - 'a'] : NULL;
}

static void rust_generic_arg(struct rust *r)
{
	if (rust_eat(r, 'L'))
		rust_put_lifetime(r, rust_base62(r));
	else if (rust_eat(r, 'K'))
		rust_const(r);
	else
		rust_type(r);
}

/* Parses items up to the letter E and returns their number. */
static size_t rust_list(struct rust *r, void (*item)(struct rust *))
{
	size_t count = 0;

	for (; !r->bad && !rust_eat(r, 'E'); count++) {
		rust_puts(r, count ? ", " : "");
		item(r);
	}
	return count;
}

static void rust_put_abi(struct rust *r)
{
	struct rust_ident abi = { .text = STR("C") };

	if (!rust_eat(r, 'C'))
		abi = rust_ident(r);
	r->bad |= abi.punycode || !abi.text.len;
	rust_puts(r, "extern \"");
	for (size_t i = 0; i < abi.text.len && !r->bad; i++)
		rust_put(r, abi.text.ptr[i] == '_' ? STR("-") : str_make(abi.text.ptr + i, 1));
	rust_puts(r, "\" ");
}

static void rust_function_type(struct rust *r)
{
	uint64_t bound = rust_binder(r);

	if (rust_eat(r, 'U'))
		rust_puts(r, "unsafe ");
	if (rust_eat(r, 'K'))
		rust_put_abi(r);
	rust_puts(r, "fn(");
	rust_list(r, rust_type);
	rust_puts(r, ")");
	if (!rust_eat(r, 'u')) {
		rust_puts(r, " -> ");
		rust_type(r);
	}
	r->lifetimes -= bound;
}

/* Parses a path and leaves its list of generic arguments open: associated types are added to it. */
static bool rust_open_path(struct rust *r)
{
	bool open = false;
	size_t back;

	if (rust_eat(r, 'B')) {
		if (rust_reference(r, &back) && rust_enter(r)) {
			open = rust_open_path(r);
			r->depth--;
		}
		r->at = back;
	} else if (rust_eat(r, 'I')) {
		rust_path(r, false);
		rust_puts(r, "<");
		rust_list(r, rust_generic_arg);
		open = true;
	} else {
		rust_path(r, false);
	}
	return open;
}

static void rust_dyn(struct rust *r)
{
	uint64_t bound, lifetime;

	rust_puts(r, "dyn ");
	bound = rust_binder(r);
	for (bool first = true; !r->bad && !rust_eat(r, 'E'); first = false) {
		bool open;

		rust_puts(r, first ? "" : " + ");
		open = rust_open_path(r);
		while (rust_eat(r, 'p')) {
			rust_puts(r, open ? ", " : "<");
			open = true;
			rust_put_ident(r, rust_ident(r));
			rust_puts(r, " = ");
			rust_type(r);
		}
		rust_puts(r, open ? ">" : "");
	}
	r->lifetimes -= bound;
	r->bad |= !rust_eat(r, 'L');
	lifetime = r->bad ? 0 : rust_base62(r);
	if (lifetime) {
		rust_puts(r, " + ");
		rust_put_lifetime(r, lifetime);
	}
}

static void rust_pointer(struct rust *r, char kind)
{
	uint64_t lifetime;

	rust_puts(r, kind == 'P' ? "*const " : kind == 'O' ? "*mut " : "&");
	if ((kind == 'R' || kind == 'Q') && rust_eat(r, 'L')) {
		lifetime = rust_base62(r);
		if (lifetime) {
			rust_put_lifetime(r, lifetime);
			rust_puts(r, " ");
		}
	}
	rust_puts(r, kind == 'Q' ? "mut " : "");
	rust_type(r);
}

static void rust_type_of(struct rust *r, char kind)
{
	size_t back;

	switch (kind) {
	case 'R':
	case 'Q':
	case 'P':
	case 'O':
		rust_pointer(r, kind);
		break;
	case 'A':
	case 'S':
		rust_puts(r, "[");
		rust_type(r);
		if (kind == 'A') {
			rust_puts(r, "; ");
			rust_const(r);
		}
		rust_puts(r, "]");
		break;
	case 'T':
		rust_puts(r, "(");
		rust_puts(r, rust_list(r, rust_type) == 1 ? ",)" : ")");
		break;
	case 'F':
		rust_function_type(r);
		break;
	case 'D':
		rust_dyn(r);
		break;
	case 'B':
		if (rust_reference(r, &back))
			rust_type(r);
		r->at = back;
		break;
	default: /* all other letters begin a path */
		r->at--;
		rust_path(r, false);
	}
}

static void rust_type(struct rust *r)
{
	const char *basic;
	char kind;

	if (!rust_enter(r))
		return;
	kind = rust_next(r);
	basic = rust_basic_type(kind);
	if (basic)
		rust_puts(r, basic);
	else if (!r->bad)
		rust_type_of(r, kind);
	r->depth--;
}

static void rust_nested(struct rust *r, bool value)
{
	char space = rust_next(r);
	bool special = space >= 'A' && space <= 'Z';
	struct rust_ident name;
	uint64_t number;

	r->bad |= !special && !(space >= 'a' && space <= 'z');
	rust_path(r, value);
	number = rust_optional(r, 's');
	name = rust_ident(r);
	if (!special) {
		rust_puts(r, name.text.len ? "::" : "");
		rust_put_ident(r, name);
		return;
	}
	rust_puts(r, "::{");
	rust_put(r, space == 'C'   ? STR("closure")
		    : space == 'S' ? STR("shim")
				   : str_make(&space, 1));
	rust_puts(r, name.text.len ? ":" : "");
	rust_put_ident(r, name);
	rust_puts(r, "#");
	rust_put_number(r, number);
	rust_puts(r, "}");
}

static void rust_impl(struct rust *r, char kind)
{
	bool was = r->silent;

	if (kind != 'Y') { /* the location of the impl block is not shown */
		rust_optional(r, 's');
		r->silent = true;
		rust_path(r, false);
		r->silent = was;
	}
	rust_puts(r, "<");
	rust_type(r);
	if (kind != 'M') {
		rust_puts(r, " as ");
		rust_path(r, false);
	}
	rust_puts(r, ">");
}

/* Parses a path. `value`: the path names a function or variable, whose generic arguments are
 * written ::<T>. */
static void rust_path(struct rust *r, bool value)
{
	size_t back;
	char kind;

	if (!rust_enter(r))
		return;
	kind = rust_next(r);
	switch (kind) {
	case 'C':
		rust_optional(r, 's');
		rust_put_ident(r, rust_ident(r));
		break;
	case 'N':
		rust_nested(r, value);
		break;
	case 'M':
	case 'X':
	case 'Y':
		rust_impl(r, kind);
		break;
	case 'I':
		rust_path(r, value);
		rust_puts(r, value ? "::<" : "<");
		rust_list(r, rust_generic_arg);
		rust_puts(r, ">");
		break;
	case 'B':
		if (rust_reference(r, &back))
			rust_path(r, value);
		r->at = back;
		break;
	default:
		r->bad = true;
	}
	r->depth--;
}

bool demangle_rust_v0(struct str name, struct buf *out)
{
	struct rust r = { .name = name, .out = out, .begin = out->len };

	if (!name.len || name.ptr[0] < 'A' || name.ptr[0] > 'Z')
		return false;
	rust_path(&r, true);
	/* skips the crate that instantiated the function */
	if (rust_peek(&r) >= 'A' && rust_peek(&r) <= 'Z') {
		r.silent = true;
		rust_path(&r, false);
	}
	/* text after a dot was added by the compiler: .llvm.123 */
	r.bad |= r.at < name.len && name.ptr[r.at] != '.' && name.ptr[r.at] != '$';
	if (r.bad)
		out->len = r.begin;
	return !r.bad;
}

static bool is_hash(struct str part)
{
	uint32_t seen = 0;

	if (part.len != 17 || part.ptr[0] != 'h')
		return false;
	for (size_t i = 1; i < part.len; i++) {
		char c = part.ptr[i];

		if (!is_digit(c) && !(c >= 'a' && c <= 'f'))
			return false;
		seen |= 1u << (is_digit(c) ? c - '0' : c - 'a' + 10);
	}
	/* enough different digits for a hash; a name could look like one by chance */
	return __builtin_popcount(seen) >= 5;
}

/* Writes the character of a legacy escape such as "$LT$". Returns the length of the escape, or 0
 * if there is none. */
static size_t put_legacy_escape(struct buf *out, struct str s)
{
	static const struct {
		const char *code, *text;
	} known[] = { { "$SP$", "@" }, { "$BP$", "*" }, { "$RF$", "&" }, { "$LT$", "<" },
		      { "$GT$", ">" }, { "$LP$", "(" }, { "$RP$", ")" }, { "$C$", "," } };
	uint32_t code = 0;
	size_t i = 2;
	char utf8[4];

	for (size_t k = 0; k < ARRAY_COUNT(known); k++)
		if (str_starts(s, str_from(known[k].code))) {
			buf_puts(out, known[k].text);
			return strlen(known[k].code);
		}
	if (!str_starts(s, STR("$u")))
		return 0;
	for (; i < s.len && i < 8 && s.ptr[i] != '$'; i++) {
		char c = s.ptr[i];

		if (!is_digit(c) && !(c >= 'a' && c <= 'f'))
			return 0;
		code = code << 4 | (uint32_t)(is_digit(c) ? c - '0' : c - 'a' + 10);
	}
	if (i == 2 || i >= s.len || s.ptr[i] != '$')
		return 0;
	buf_add(out, utf8, utf8_encode(code, utf8));
	return i + 1;
}

static bool put_legacy_part(struct buf *out, struct str part)
{
	if (str_starts(part, STR("_$")))
		part = str_skip(part, 1);
	while (part.len) {
		size_t used = 1;

		if (part.ptr[0] == '$') {
			used = put_legacy_escape(out, part);
			if (!used)
				return false;
		} else if (str_starts(part, STR(".."))) {
			buf_puts(out, "::");
			used = 2;
		} else {
			buf_add_char(out, part.ptr[0]);
		}
		part = str_skip(part, used);
	}
	return true;
}

bool demangle_rust_legacy(struct str name, struct buf *out)
{
	size_t begin = out->len, end = str_rfind_char(name, 'E'), parts = 0;
	struct str rest;

	if (end == STR_NONE || end < 21 || name.ptr[0] != 'N' ||
	    (end + 1 < name.len && name.ptr[end + 1] != '.') ||
	    !is_hash(str_make(name.ptr + end - 17, 17)))
		return false;
	rest = str_make(name.ptr + 1, end - 1);
	for (;; parts++) {
		size_t len = 0, digits = 0;

		while (digits < rest.len && digits < 5 && is_digit(rest.ptr[digits]))
			len = len * 10 + (size_t)(rest.ptr[digits++] - '0');
		if (!len || len > rest.len - digits)
			break;
		rest = str_skip(rest, digits);
		if (len == 17 && rest.len == 17 && parts)
			return true; /* the last part was the hash */
		if (parts)
			buf_puts(out, "::");
		if (!put_legacy_part(out, str_first(rest, len)))
			break;
		rest = str_skip(rest, len);
	}
	out->len = begin;
	return false;
}
