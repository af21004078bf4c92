/*
 * nsys_marks.c: reads NVTX ranges of PyTorch and its profilers, for the importer and the producer of Nsight Systems
 * exports. The texts of PyProf are Python's repr of a dictionary; this file extracts single values and does not parse
 * Python.
 */
#include "import/nsys/nsys_marks.h"

/* The end of the name in a text, where values begin that change from run to run: ", seq = 7, op_id = 3, sizes = [[1,
 * 2]]". */
static size_t end_of_name(struct str text)
{
	static const char *const parts[] = { ", seq = ", ", op_id = ", ", sizes = ",
					     ", input_op_ids = ", ", stashed seq = " };
	size_t end = text.len, at;

	for (size_t i = 0; i < ARRAY_COUNT(parts); i++) {
		at = str_find(str_first(text, end), str_from(parts[i]));
		if (at != STR_NONE)
			end = at;
	}
	return end;
}

/* The text after a key: for mod in {'mod': 'Tensor'} it is 'Tensor'}. Empty if the key is missing. */
static struct str value_of(struct str text, const char *key)
{
	size_t at = str_find(text, str_from(key));
	struct str none = { 0 };

	if (at == STR_NONE)
		return none;
	return str_trim(str_skip(text, at + strlen(key)));
}

/* Moves the next quoted text from the front of *rest into *value. */
static bool next_quoted(struct str *rest, struct str *value)
{
	size_t end;

	*rest = str_trim(*rest);
	if (!rest->len || (rest->ptr[0] != '\'' && rest->ptr[0] != '"'))
		return false;
	end = str_find_char(str_skip(*rest, 1), rest->ptr[0]);
	if (end == STR_NONE)
		return false;
	*value = str_first(str_skip(*rest, 1), end);
	*rest = str_skip(*rest, end + 2);
	return true;
}

static struct str text_of(struct str text, const char *key)
{
	struct str rest = value_of(text, key), value, none = { 0 };

	if (!rest.ptr || !next_quoted(&rest, &value))
		return none;
	return value;
}

enum nsys_mark nsys_mark_of(struct str text)
{
	if (str_starts(text, STR("{'mod':")))
		return MARK_OPERATOR;
	if (str_starts(text, STR("{'traceMarker':")))
		return MARK_STACK;
	if (str_starts(text, STR("aten::")) || str_starts(text, STR("autograd::engine::")))
		return MARK_OPERATOR;
	return end_of_name(text) < text.len ? MARK_OPERATOR : MARK_PLAIN;
}

static str_id join(struct builder *b, struct str first, char between, struct str second)
{
	struct buf text;
	str_id id;

	buf_init(&text, b->m->mem);
	buf_add_str(&text, first);
	if (first.len && second.len)
		buf_add_char(&text, between);
	buf_add_str(&text, second);
	if (text.failed)
		builder_no_memory(b);
	id = builder_str(b, buf_str(&text));
	buf_release(&text);
	return id;
}

str_id nsys_mark_name(struct builder *b, struct str text)
{
	size_t end;

	if (str_starts(text, STR("{'mod':")))
		return join(b, text_of(text, "'mod':"), '.', text_of(text, "'op':"));
	if (str_starts(text, STR("{'traceMarker':"))) {
		struct str path = text_of(text, "'funcStack':");

		return builder_str(b, path.len > 1 && path.ptr[0] == '/' ? str_skip(path, 1)
									 : STR("traceMarker"));
	}
	if (str_starts(text, STR("{\"model_config")))
		return builder_cstr(b, "model_config");
	end = end_of_name(text);
	return end < text.len && end ? builder_str(b, str_first(text, end)) : (str_id){ 0 };
}

/* Makes a frame from 'train.py:12'. */
static frame_id frame_of(struct builder *b, struct str place)
{
	size_t colon = str_rfind_char(place, ':');
	struct frame_row row = { 0 };
	int64_t line = 0;

	if (colon == STR_NONE || !str_to_i64(str_skip(place, colon + 1), &line) || line < 0 ||
	    line > INT32_MAX) {
		colon = place.len;
		line = 0;
	}
	row.file = builder_str(b, str_first(place, colon));
	row.line = (int32_t)line;
	return builder_frame(b, &row);
}

/* Makes the stack of a MARK_STACK range; its text lists the outermost frame first. */
stack_id nsys_mark_stack(struct builder *b, struct str text)
{
	struct str rest = value_of(text, "'traceMarker':"), place;
	stack_id stack = { 0 };

	if (!rest.len || rest.ptr[0] != '[')
		return stack;
	rest = str_skip(rest, 1);
	while (builder_status(b) == OW_OK && next_quoted(&rest, &place)) {
		stack = builder_stack(b, stack, frame_of(b, place));
		rest = str_trim(rest);
		if (!rest.len || rest.ptr[0] != ',')
			break;
		rest = str_skip(rest, 1);
	}
	return stack;
}
