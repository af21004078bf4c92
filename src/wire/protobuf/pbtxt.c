/*
 * pbtxt.c: converts the text format to binary, and recognises texts (pbtxt.h). A loop over fields with a stack of open
 * messages; the tokens come from pbtxt_lex.c.
 *
 * A message's length stands before its content and is known only behind it. In the buffer one byte is
 * left for it, and the content moved if that is too little. When the buffer must be emptied with
 * messages open, their lengths are given PATCH_BYTES instead (a varint may be longer than it needs to
 * be), which are overwritten in the file later.
 */
#include "wire/protobuf/pbtxt.h"
#include "wire/protobuf/pb_write.h"
#include "wire/protobuf/pbtxt_lex.h"
#include "wire/container/spool.h"

#define PATCH_BYTES 5 /* longest length prefix, as in other readers */

/* A field whose length is not known yet. */
struct mark {
	size_t content;	  /* position of the content in the buffer; unused if in_file */
	uint64_t file_at; /* position of the content in the file */
	bool in_file;
	size_t tag_bytes; /* length of the tag before it */
};

struct frame {
	const struct pb_message *type;
	/* field that the message is the value of; NULL for the whole text */
	const struct pb_field_desc *field;
	struct mark mark;
	/* offset of the message in the text, for error messages */
	uint64_t start;
	uint64_t seen;			     /* singular fields seen so far, by their index */
	uint8_t oneof[PB_SCHEMA_ONEOFS + 1]; /* for each oneof: index + 1 of the member seen */
	uint8_t next;			     /* index of the field that is likely to follow */
	char close;			     /* bracket that ends the message */
	bool in_list;			     /* the message is one of a list [ {…}, {…} ] */
};

struct parser {
	struct text text;
	struct spool out;
	const struct pbtxt_options *options;
	struct ow_error *err;
	uint64_t skipped;
	size_t depth; /* depth of the innermost open message; frames[0] is the whole text */
	struct frame frames[PBTXT_DEPTH_MAX + 1];
	struct mark string; /* string that is being read, if string_open */
	bool string_open;
};

static bool no_memory(struct parser *p)
{
	p->text.status = error_no_memory(p->err);
	return false;
}

/* Gives a length that is still in the buffer its final width; returns the number of added bytes. */
static size_t widen(struct parser *p, struct mark *mark, size_t moved)
{
	static const uint8_t blank[PATCH_BYTES] = { 0x80, 0x80, 0x80, 0x80, 0x00 };
	struct buf *buf = &p->out.buf;

	if (mark->in_file)
		return 0;
	mark->content += moved;
	memmove(buf->ptr + mark->content + PATCH_BYTES - 1, buf->ptr + mark->content,
		buf->len - mark->content);
	memcpy(buf->ptr + mark->content - 1, blank, PATCH_BYTES);
	buf->len += PATCH_BYTES - 1;
	mark->content += PATCH_BYTES - 1;
	mark->file_at = p->out.in_file + mark->content;
	mark->in_file = true;
	return PATCH_BYTES - 1;
}

/* Writes the buffer to the file and empties it. */
static bool spill(struct parser *p)
{
	size_t moved = 0;
	ow_status status;

	if (!buf_reserve(&p->out.buf, (p->depth + 1) * PATCH_BYTES))
		return no_memory(p);
	for (size_t i = 1; i <= p->depth; i++)
		moved += widen(p, &p->frames[i].mark, moved);
	if (p->string_open)
		widen(p, &p->string, moved);
	status = spool_flush(&p->out, p->err);
	if (status != OW_OK)
		p->text.status = status;
	return status == OW_OK;
}

static inline bool make_room(struct parser *p)
{
	if (OW_LIKELY(p->out.buf.len <= spool_piece(&p->out)))
		return true;
	return spill(p);
}

static inline void open_mark(struct parser *p, uint32_t number, struct mark *mark)
{
	size_t before = p->out.buf.len;

	*mark = (struct mark){ .content = pb_begin(&p->out.buf, number) };
	mark->tag_bytes = mark->content - 1 - before;
}

static bool close_mark(struct parser *p, const struct mark *mark)
{
	uint64_t len = spool_size(&p->out) - mark->file_at;
	uint8_t bytes[PATCH_BYTES];
	ow_status status;

	if (!mark->in_file) {
		pb_end(&p->out.buf, mark->content);
		return !p->out.buf.failed || no_memory(p);
	}
	if (len >> (7 * PATCH_BYTES))
		return text_fail(&p->text, "a message of more than 32 GiB");
	for (size_t i = 0; i < PATCH_BYTES; i++)
		bytes[i] = (uint8_t)(len >> (7 * i) & 0x7f) | (i + 1 < PATCH_BYTES ? 0x80 : 0);
	status = spool_patch(&p->out, mark->file_at - PATCH_BYTES, bytes, sizeof(bytes), p->err);
	if (status != OW_OK)
		p->text.status = status;
	return status == OW_OK;
}

/* Removes everything from the field's tag on. */
static bool drop_mark(struct parser *p, const struct mark *mark)
{
	ow_status status;

	if (!mark->in_file) {
		p->out.buf.len = mark->content - 1 - mark->tag_bytes;
		return true;
	}
	status = spool_truncate(&p->out, mark->file_at - PATCH_BYTES - mark->tag_bytes, p->err);
	if (status != OW_OK)
		p->text.status = status;
	return status == OW_OK;
}

/* Returns whether a value is written: proto3 omits zeros, except in repeated fields and oneofs. */
static inline bool wanted(const struct pb_field_desc *field, uint64_t bits)
{
	return bits || (field->flags & PBF_REPEATED) || field->oneof;
}

/* Reads a string; adjacent quoted strings are one value. */
static bool read_string(struct parser *p, const struct pb_field_desc *field)
{
	struct text *t = &p->text;
	bool good = true, done;
	uint64_t start, before;
	int quote;

	if (!text_quote(t, &quote, &start))
		return false;
	open_mark(p, field->number, &p->string);
	before = spool_size(&p->out);
	p->string_open = true;
	for (done = false; good;) {
		good = text_string(t, quote, start, &p->out.buf, &done) && make_room(p);
		if (!good || !done)
			continue;
		good = text_blanks(t);
		if (text_peek(t) != '"' && text_peek(t) != '\'')
			break;
		good = good && text_quote(t, &quote, &start);
	}
	p->string_open = false;
	if (!good) { /* if the rest is salvaged, no incomplete value remains */
		if (t->status == OW_E_CORRUPT && !p->out.buf.failed)
			(void)drop_mark(p, &p->string);
		return false;
	}
	if (!p->string.in_file && spool_size(&p->out) == before && !wanted(field, 0))
		return drop_mark(p, &p->string);
	return close_mark(p, &p->string);
}

static void put_scalar(struct buf *out, const struct pb_field_desc *field, uint64_t bits)
{
	if (!wanted(field, bits))
		return;
	switch ((enum pb_type)field->type) {
	case PBT_FLOAT:
	case PBT_FIXED32:
		pb_put_fixed32(out, field->number, (uint32_t)bits);
		break;
	case PBT_DOUBLE:
	case PBT_FIXED64:
		pb_put_fixed64(out, field->number, bits);
		break;
	case PBT_SINT64:
		pb_put_varint(out, field->number, bits << 1 ^ (0 - (bits >> 63)));
		break;
	default:
		pb_put_varint(out, field->number, bits);
		break;
	}
}

static bool read_scalar(struct parser *p, const struct pb_field_desc *field)
{
	uint64_t bits;

	if (field->type == PBT_STRING || field->type == PBT_BYTES)
		return read_string(p, field);
	if (!text_bits(&p->text, field, p->options->allow_unknown, &p->skipped, &bits))
		return false;
	put_scalar(&p->out.buf, field, bits);
	return make_room(p);
}

/* Skips the value of an unknown field, with its colon. */
static bool skip_value(struct parser *p)
{
	if (!text_skip_value(&p->text, &p->out.buf))
		return false;
	p->skipped++;
	return true;
}

/* Skips [type.url/of.Any] { … }: the content stays unread, because its type is unknown. */
static bool skip_bracketed(struct parser *p)
{
	const struct pb_message *type = p->frames[p->depth].type;
	struct text *t = &p->text;
	const unsigned char *end = memchr(t->at, ']', MIN((size_t)(t->end - t->at), TEXT_MARGIN));
	struct str url;

	if (!type->any && !p->options->allow_unknown)
		return text_fail(t, "%s has no extensions", type->name);
	if (!end)
		return text_fail(t, "a ']' expected after the name of an extension");
	url = str_trim(str_make(t->at + 1, (size_t)(end - t->at) - 1));
	for (size_t i = 0; i < url.len; i++)
		if (!text_is_name((unsigned char)url.ptr[i]) &&
		    !text_is_digit((unsigned char)url.ptr[i]) && !strchr("./-", url.ptr[i]))
			return text_fail(t, "'%.*s' is not the name of an extension",
					 STR_ARG(str_first(url, 60)));
	if (type->any)
		pb_put_str(&p->out.buf, 1, url);
	t->at = end + 1;
	return skip_value(p);
}

static inline bool is_field(const struct pb_field_desc *field, struct str name)
{
	return field->name_len == name.len && memcmp(field->name, name.ptr, name.len) == 0;
}

/* Finds a field. Writers keep an order, so it is usually the same field as before or the next
 * one. */
static const struct pb_field_desc *find_field(struct frame *frame, struct str name)
{
	const struct pb_message *type = frame->type;

	for (size_t i = frame->next; i < type->count; i++)
		if (is_field(&type->fields[i], name)) {
			frame->next = (uint8_t)i;
			return &type->fields[i];
		}
	for (size_t i = 0; i < frame->next; i++)
		if (is_field(&type->fields[i], name)) {
			frame->next = (uint8_t)i;
			return &type->fields[i];
		}
	return NULL;
}

/* Checks that a singular field occurs once, and only one member of a oneof. */
static bool note_seen(struct parser *p, struct frame *frame, const struct pb_field_desc *field,
		      uint64_t start)
{
	size_t index = (size_t)(field - frame->type->fields);
	uint8_t *other = &frame->oneof[field->oneof];

	if (field->flags & PBF_REPEATED)
		return true;
	if (frame->seen >> index & 1)
		return text_fail_at(&p->text, start, "%s appears twice in the same %s", field->name,
				    frame->type->name);
	frame->seen |= (uint64_t)1 << index;
	if (!field->oneof)
		return true;
	if (*other)
		return text_fail_at(
			&p->text, start, "%s and %s are both set, but %s can have only one of them",
			field->name, frame->type->fields[*other - 1].name, frame->type->name);
	*other = (uint8_t)(index + 1);
	return true;
}

static bool open_message(struct parser *p, const struct pb_field_desc *field, bool in_list)
{
	struct text *t = &p->text;
	int c = text_peek(t);
	struct frame *frame;

	if (c != '{' && c != '<')
		return text_expected(t, "'{'");
	if (p->depth == PBTXT_DEPTH_MAX)
		return text_fail(t, "messages nested more than %d deep", PBTXT_DEPTH_MAX);
	frame = &p->frames[++p->depth];
	*frame = (struct frame){ .type = field->message,
				 .field = field,
				 .start = text_offset(t),
				 .close = text_closing(c),
				 .in_list = in_list };
	open_mark(p, field->number, &frame->mark);
	t->at++;
	return true;
}

/* Accepts one comma or semicolon after a field. */
static bool end_of_field(struct text *t)
{
	if (!text_blanks(t))
		return false;
	if (text_peek(t) == ',' || text_peek(t) == ';')
		t->at++;
	return true;
}

/* Moves between the elements of a list; returns true with *more unset behind the closing
 * bracket. */
static bool next_of_list(struct text *t, bool *more)
{
	if (!text_blanks(t))
		return false;
	*more = text_peek(t) == ',';
	if (!*more && text_peek(t) != ']')
		return text_expected(t, "',' or ']'");
	t->at++;
	return text_blanks(t);
}

/* Returns true with *empty set if the list has no element. */
static bool open_list(struct text *t, bool *empty)
{
	t->at++;
	if (!text_blanks(t))
		return false;
	*empty = text_peek(t) == ']';
	t->at += *empty;
	return true;
}

static bool read_list(struct parser *p, const struct pb_field_desc *field)
{
	bool empty, more = true;

	if (!open_list(&p->text, &empty))
		return false;
	while (!empty && more)
		if (!read_scalar(p, field) || !next_of_list(&p->text, &more))
			return false;
	return end_of_field(&p->text);
}

static bool read_messages(struct parser *p, const struct pb_field_desc *field)
{
	bool empty;

	if (text_peek(&p->text) != '[' || !(field->flags & PBF_REPEATED))
		return open_message(p, field, false);
	if (!open_list(&p->text, &empty))
		return false;
	return empty ? end_of_field(&p->text) : open_message(p, field, true);
}

static bool close_message(struct parser *p)
{
	struct frame *frame = &p->frames[p->depth];
	bool more;

	p->text.at++;
	if (!close_mark(p, &frame->mark))
		return false;
	p->depth--;
	if (!frame->in_list)
		return end_of_field(&p->text);
	if (!next_of_list(&p->text, &more))
		return false;
	return more ? open_message(p, frame->field, true) : end_of_field(&p->text);
}

static bool unknown_field(struct parser *p, struct str name, uint64_t start)
{
	if (!p->options->allow_unknown)
		return text_fail_at(&p->text, start, "%s has no field '%.*s'",
				    p->frames[p->depth].type->name, STR_ARG(str_first(name, 60)));
	return skip_value(p) && end_of_field(&p->text);
}

static bool read_field(struct parser *p)
{
	struct frame *frame = &p->frames[p->depth];
	const struct pb_field_desc *field;
	struct text *t = &p->text;
	uint64_t start = text_offset(t);
	struct str name;

	if (text_peek(t) == '[')
		return skip_bracketed(p) && end_of_field(t);
	if (!text_is_name(text_peek(t)))
		return text_expected(t, p->depth ? "a field or the end of the message" : "a field");
	if (!text_name(t, &name))
		return false;
	field = find_field(frame, name);
	if (!field)
		return unknown_field(p, name, start);
	if (!note_seen(p, frame, field, start) || !text_blanks(t))
		return false;
	if (text_peek(t) == ':') {
		t->at++;
		if (!text_blanks(t))
			return false;
	} else if (field->type != PBT_MESSAGE) {
		return text_expected(t, "':'");
	}
	if (field->type == PBT_MESSAGE)
		return read_messages(p, field);
	if (text_peek(t) == '[' && (field->flags & PBF_REPEATED))
		return read_list(p, field);
	return read_scalar(p, field) && end_of_field(t);
}

static bool convert(struct parser *p)
{
	struct text *t = &p->text;

	if (!text_blanks(t))
		return false;
	/* skips a byte order mark */
	if (t->end - t->at >= 3 && memcmp(t->at, "\xef\xbb\xbf", 3) == 0)
		t->at += 3;
	while (text_blanks(t) && make_room(p)) {
		struct frame *frame = &p->frames[p->depth];
		bool good;

		if (t->at == t->end && !p->depth)
			return !p->out.buf.failed || no_memory(p);
		if (t->at == t->end)
			return text_fail(t,
					 "the text ends inside a %s that begins at byte %" PRIu64,
					 frame->type->name, frame->start);
		good = p->depth && text_peek(t) == frame->close ? close_message(p) : read_field(p);
		if (!good)
			return false;
	}
	return false;
}

/* Closes the open messages at the damage, except the innermost record, which is incomplete. */
static bool salvage(struct parser *p)
{
	size_t keep = p->depth;

	if (p->out.buf.failed)
		return no_memory(p);
	for (size_t i = 1; i <= p->depth; i++)
		if (p->frames[i].field->flags & PBF_RECORD)
			keep = i - 1;
	if (keep < p->depth && !drop_mark(p, &p->frames[keep + 1].mark))
		return false;
	for (p->depth = keep; p->depth; p->depth--)
		if (!close_mark(p, &p->frames[p->depth].mark))
			return false;
	return spool_size(&p->out) > 0;
}

/* Finds line and column, both from 1, for an error message. */
static ow_status find_line(const struct input *in, uint64_t offset, uint64_t *line,
			   uint64_t *column, struct ow_error *err)
{
	uint64_t at = 0, line_start = 0;
	ow_status status = OW_OK;
	struct window w;

	*line = 1;
	window_init(&w, in, err);
	while (at < offset) {
		struct str piece = str_first(window_peek(&w, at, 1), (size_t)(offset - at));

		if (!piece.ptr) {
			status = w.status;
			break;
		}
		for (size_t i = 0, found; i < piece.len; i += found + 1) {
			found = str_find_char(str_skip(piece, i), '\n');
			if (found == STR_NONE)
				break;
			(*line)++;
			line_start = at + i + found + 1;
		}
		at += piece.len;
	}
	*column = offset - line_start + 1;
	window_release(&w);
	return status;
}

static ow_status report_problem(struct parser *p, const struct input *in,
				struct pbtxt_result *result)
{
	struct text *t = &p->text;
	uint64_t line, column;

	if (t->status == OW_E_NO_MEMORY) /* the lexer does not set this error */
		return error_no_memory(p->err);
	if (t->status != OW_E_CORRUPT || !t->problem[0])
		return t->status;
	OW_TRY(find_line(in, t->problem_offset, &line, &column, p->err));
	result->damage_offset = t->problem_offset;
	snprintf(result->message, sizeof(result->message), "%" PRIu64 ":%" PRIu64 ": %s", line,
		 column, t->problem);
	return error_at(p->err, OW_E_CORRUPT, t->problem_offset, "%s:%s", in->name,
			result->message);
}

static ow_status convert_text(struct parser *p, const struct input *in, struct pbtxt_result *result)
{
	ow_status status;

	if (convert(p)) {
		result->skipped = p->skipped;
		return OW_OK;
	}
	status = report_problem(p, in, result);
	if (status != OW_E_CORRUPT || !p->options->salvage)
		return status;
	p->text.status = OW_OK;
	if (!salvage(p))
		return p->text.status == OW_OK ? status : p->text.status;
	result->skipped = p->skipped;
	result->damaged = true;
	error_clear(p->err);
	return OW_OK;
}

ow_status pbtxt_to_input(const struct input *text, const struct pb_message *type,
			 const struct pbtxt_options *options, struct input *binary,
			 struct pbtxt_result *result, struct ow_error *err)
{
	static const struct pbtxt_options defaults;
	struct pbtxt_result unused;
	struct parser *p = mem_zalloc(text->mem, sizeof(*p));
	ow_status status;

	if (!p)
		return error_no_memory(err);
	if (!result)
		result = &unused;
	*result = (struct pbtxt_result){ 0 };
	p->options = options ? options : &defaults;
	p->err = err;
	p->frames[0].type = type;
	text_init(&p->text, text, err);
	spool_init(&p->out, text->mem, text->name, p->options->memory_max);
	status = convert_text(p, text, result);
	if (status == OW_OK)
		status = spool_to_input(&p->out, text->name, binary, err);
	if (status == OW_OK)
		binary->progress = text->progress;
	spool_release(&p->out);
	text_release(&p->text);
	mem_free(text->mem, p, sizeof(*p));
	return status;
}

ow_status pbtxt_to_buf(struct str text, const struct pb_message *type, struct buf *out,
		       struct ow_error *err)
{
	struct input in, binary = { .fd = -1 };
	ow_status status;

	OW_TRY(input_from_memory(&in, out->mem, "text", text.ptr, text.len, err));
	status = pbtxt_to_input(&in, type, NULL, &binary, NULL, err);
	input_close(&in);
	if (status != OW_OK)
		return status;
	if (binary.size > SIZE_MAX || !buf_reserve(out, (size_t)binary.size))
		status = error_no_memory(err);
	else if (binary.size)
		status = input_read_at(&binary, 0, out->ptr + out->len, (size_t)binary.size, err);
	if (status == OW_OK)
		out->len += (size_t)binary.size;
	input_close(&binary);
	return status;
}

/* Recognising a text.
 * Reads the names at the head of a file and follows them into messages, without reading values closely.
 */

#define NAMES_MAX 16 /* number of names that is enough to be sure */
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

static const struct pb_field_desc *field_by_name(const struct pb_message *type, struct str name)
{
	for (size_t i = 0; i < type->count; i++)
		if (str_eq(name, str_make(type->fields[i].name, type->fields[i].name_len)))
			return &type->fields[i];
	return NULL;
}

/* Returns whether a value of this type may begin with c. */
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

/* Skips a scalar; a list ends the examination. */
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
		field = field_by_name(open[depth], name);
		if (!field && !head.len && names) /* a name that the end of the head cuts off */
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
