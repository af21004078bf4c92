/*
 * pbtxt_sniff.c: is this text format of a certain message type? Looks at the names at the head of a
 * file and follows them into messages, without reading values closely. See pbtxt.h.
 */
#include "wire/pbtxt.h"

#define NAMES_MAX 16 /* enough to be sure */
#define LEVELS 8

static bool is_blank(char c)
{
	return c == ' ' || (c >= '\t' && c <= '\r');
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

static struct str skip_blanks(struct str s)
{
	size_t i = 0;

	while (i < s.len && (is_blank(s.ptr[i]) || s.ptr[i] == '#')) {
		if (s.ptr[i] == '#')
			while (i < s.len && s.ptr[i] != '\n')
				i++;
		else
			i++;
	}
	return str_skip(s, i);
}

static struct str take_word(struct str *s)
{
	size_t len = 0;
	struct str word;

	while (len < s->len && is_word(s->ptr[len]))
		len++;
	word = str_first(*s, len);
	*s = skip_blanks(str_skip(*s, len));
	return word;
}

static const struct pb_field_desc *find_field(const struct pb_message *type, struct str name)
{
	for (size_t i = 0; i < type->count; i++)
		if (str_eq(name, str_make(type->fields[i].name, type->fields[i].name_len)))
			return &type->fields[i];
	return NULL;
}

/* Whether a value of this type may begin with c. */
static bool may_begin(const struct pb_field_desc *field, char c)
{
	if (c == '[')
		return field->flags & PBF_REPEATED;
	switch ((enum pb_type)field->type) {
	case PBT_STRING:
	case PBT_BYTES:
		return c == '"' || c == '\'';
	case PBT_MESSAGE:
		return c == '{' || c == '<';
	case PBT_BOOL:
		return c && strchr("tTfF01", c);
	case PBT_ENUM:
		return is_word(c) || c == '-';
	case PBT_FLOAT:
	case PBT_DOUBLE:
		return (c >= '0' && c <= '9') || (c && strchr("-.iInN", c));
	default:
		return (c >= '0' && c <= '9') || c == '-';
	}
}

static struct str skip_quoted(struct str s)
{
	char quote = s.ptr[0];
	size_t i = 1;

	while (i < s.len && s.ptr[i] != quote && s.ptr[i] != '\n')
		i += s.ptr[i] == '\\' ? 2 : 1;
	return str_skip(s, i + 1);
}

/* Past a scalar; lists end the look. */
static struct str skip_scalar(struct str s)
{
	size_t i = 0;

	if (s.ptr[0] == '[')
		return STR("");
	if (s.ptr[0] == '"' || s.ptr[0] == '\'') {
		while (s.len && (s.ptr[0] == '"' || s.ptr[0] == '\''))
			s = skip_blanks(skip_quoted(s));
		return s;
	}
	while (i < s.len && (is_word(s.ptr[i]) || (s.ptr[i] && strchr("+-.", s.ptr[i]))))
		i++;
	return str_skip(s, i);
}

static int score(unsigned names)
{
	return names == 0 ? 0 : names == 1 ? 75 : names == 2 ? 85 : 95;
}

int pbtxt_sniff(struct str head, const struct pb_message *type)
{
	const struct pb_message *open[LEVELS] = { type };
	const struct pb_field_desc *field;
	unsigned names = 0;
	size_t depth = 0;
	struct str name;

	if (str_starts(head, STR("\xef\xbb\xbf")))
		head = str_skip(head, 3);
	for (head = skip_blanks(head); head.len && names < NAMES_MAX; head = skip_blanks(head)) {
		if (names && (head.ptr[0] == '}' || head.ptr[0] == '>') && depth) {
			depth--;
			head = str_skip(head, 1);
			continue;
		}
		if (names && (head.ptr[0] == ',' || head.ptr[0] == ';')) {
			head = str_skip(head, 1);
			continue;
		}
		name = take_word(&head);
		field = find_field(open[depth], name);
		if (!field && !head.len && names) /* a name cut off by the end of the head */
			break;
		if (!field)
			return names > 1 ? 40 : 0;
		if (head.len && head.ptr[0] == ':')
			head = skip_blanks(str_skip(head, 1));
		else if (head.len && field->type != PBT_MESSAGE)
			return 0;
		if (!head.len)
			return names ? score(names) : 50;
		if (!may_begin(field, head.ptr[0]))
			return 0;
		names++;
		if (field->type != PBT_MESSAGE) {
			head = skip_scalar(head);
		} else if (head.ptr[0] == '[' || depth + 1 == LEVELS) {
			break;
		} else {
			open[++depth] = field->message;
			head = str_skip(head, 1);
		}
	}
	return score(names);
}
