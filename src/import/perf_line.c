/* perf_line.c: see perf_line.h. Times are decimals, never doubles. */
#include "import/perf_line.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t';
}

static int hex_value(char c)
{
	if (is_digit(c))
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Takes the next word; false at the end of the line. */
static bool next_word(struct str *rest, struct str *word)
{
	size_t start = 0, end;

	while (start < rest->len && is_blank(rest->ptr[start]))
		start++;
	for (end = start; end < rest->len && !is_blank(rest->ptr[end]);)
		end++;
	*word = str_first(str_skip(*rest, start), end - start);
	*rest = str_skip(*rest, end);
	return word->len > 0;
}

/* 123 or 45/123 */
static bool parse_ids(struct str word, struct perf_head *head)
{
	size_t slash = str_find_char(word, '/');
	struct str tid = slash == STR_NONE ? word : str_skip(word, slash + 1);

	if (!word.len || !is_digit(word.ptr[0]) || !tid.len || !is_digit(tid.ptr[0]) ||
	    !str_to_i64(tid, &head->tid))
		return false;
	head->pid = -1;
	return slash == STR_NONE || str_to_i64(str_first(word, slash), &head->pid);
}

/* The command may have blanks: it ends where the first number stands alone. */
static bool parse_command(struct str *rest, struct perf_head *head)
{
	struct str line = *rest, word;
	const char *begin = NULL, *end = NULL;

	while (next_word(&line, &word)) {
		if (begin && parse_ids(word, head)) {
			head->comm = str_make(begin, (size_t)(end - begin));
			*rest = line;
			return true;
		}
		begin = begin ? begin : word.ptr;
		end = word.ptr + word.len;
	}
	return false;
}

static bool parse_cpu(struct str word, int32_t *cpu)
{
	int64_t number;

	if (word.len < 3 || word.ptr[0] != '[' || word.ptr[word.len - 1] != ']' ||
	    !str_to_i64(str_make(word.ptr + 1, word.len - 2), &number) || number > INT32_MAX)
		return false;
	*cpu = (int32_t)number;
	return true;
}

/* 12.345678: or 12.345678901: */
static bool parse_time(struct str word, int64_t *ns)
{
	size_t dot = str_find_char(word, '.');
	int64_t seconds, scale = 100000000, part = 0;

	if (dot == STR_NONE || !dot || word.len < dot + 3 || word.ptr[word.len - 1] != ':' ||
	    !is_digit(word.ptr[0]) || !str_to_i64(str_first(word, dot), &seconds) ||
	    seconds > INT64_MAX / 1000000000 - 1)
		return false;
	for (size_t i = dot + 1; i + 1 < word.len; i++) {
		if (!is_digit(word.ptr[i]))
			return false;
		part += (word.ptr[i] - '0') * scale;
		scale /= 10;
	}
	*ns = seconds * 1000000000 + part;
	return true;
}

static bool parse_period(struct str word, int64_t *period)
{
	for (size_t i = 0; i < word.len; i++)
		if (!is_digit(word.ptr[i]))
			return false;
	return str_to_i64(word, period);
}

bool perf_head_parse(struct str line, struct perf_head *head)
{
	struct str rest = line, word;
	bool more;

	*head = (struct perf_head){ .ts_ns = INT64_MIN, .cpu = -1 };
	if (!parse_command(&rest, head))
		return false;
	more = next_word(&rest, &word);
	if (more && parse_cpu(word, &head->cpu))
		more = next_word(&rest, &word);
	if (more && parse_time(word, &head->ts_ns))
		more = next_word(&rest, &word);
	if (more && parse_period(word, &head->period))
		more = next_word(&rest, &word);
	if (more && word.len > 1 && word.ptr[word.len - 1] == ':') {
		head->event = str_first(word, word.len - 1);
		head->rest = str_trim(rest);
	}
	/* something of it must be there, or any sentence with a number is a sample */
	return head->ts_ns != INT64_MIN || head->event.len || head->cpu >= 0;
}

/* The last " (", unless that says "(deleted)": then the one before. */
static size_t module_start(struct str text)
{
	static const char deleted[] = " (deleted)";
	size_t end = text.len;

	if (str_ends(text, STR(" (deleted))")))
		end -= sizeof(deleted);
	for (size_t i = end; i-- > 1;)
		if (text.ptr[i] == '(' && text.ptr[i - 1] == ' ')
			return i;
	return STR_NONE;
}

/* func+0x12 */
static struct str without_offset(struct str symbol)
{
	size_t plus = str_rfind_char(symbol, '+');

	if (plus == STR_NONE || symbol.len < plus + 4 ||
	    !str_starts(str_skip(symbol, plus), STR("+0x")))
		return symbol;
	for (size_t i = plus + 3; i < symbol.len; i++)
		if (hex_value(symbol.ptr[i]) < 0)
			return symbol;
	return str_first(symbol, plus);
}

static struct str unless_unknown(struct str text)
{
	return str_eq(text, STR("[unknown]")) ? STR("") : text;
}

bool perf_frame_parse(struct str line, struct perf_frame *frame)
{
	struct str rest = line, word, text;
	size_t open;

	*frame = (struct perf_frame){ 0 };
	if (!next_word(&rest, &word) || word.len > 16)
		return false;
	for (size_t i = 0; i < word.len; i++) {
		int digit = hex_value(word.ptr[i]);

		if (digit < 0)
			return false;
		frame->address = frame->address << 4 | (uint64_t)digit;
	}
	text = str_trim(rest);
	open = module_start(text);
	if (open != STR_NONE && text.ptr[text.len - 1] == ')') {
		frame->module = unless_unknown(str_make(text.ptr + open + 1, text.len - open - 2));
		text = str_trim(str_first(text, open));
	} else if (text.len && text.ptr[0] == '(' && text.ptr[text.len - 1] == ')') {
		frame->module = unless_unknown(str_make(text.ptr + 1, text.len - 2));
		frame->nameless = str_starts(rest, STR("  ("));
		text.len = 0;
	}
	frame->symbol = unless_unknown(without_offset(text));
	return true;
}

bool perf_frame_is(struct str line)
{
	struct str text = str_trim(line);
	struct perf_frame frame;
	struct perf_head head;

	return text.len && text.ptr[text.len - 1] == ')' && str_has(text, STR(" (")) &&
	       perf_frame_parse(line, &frame) && !perf_head_parse(line, &head);
}
