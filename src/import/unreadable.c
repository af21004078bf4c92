/*
 * unreadable.c: recognises formats that opwatch does not read and says what to do instead. The table is unreadable.def. import.c asks
 * it when no importer is certain about a file, unrecognised.c when none takes it. It looks at the first bytes only, and never decides
 * how a file is read.
 */
#include "import/unrecognised.h"

#include "import/importer.h" /* V8_SNAPSHOT */

#define TEXT_BYTES ((size_t)4 << 10)
#define MOST_KEYS 48

/* The head of a file and facts about it. */
struct head {
	struct str bytes;
	struct str keys[MOST_KEYS]; /* of a JSON object, or of the first object in a list */
	size_t key_count;
	bool list;
};

enum how { BY_BYTES, BY_TEXT, BY_KEYS, BY_ITEMS, BY_CHECK, BY_NAME, BY_MEMBER };

struct unreadable {
	enum how how;
	size_t at;
	struct str words;
	bool (*check)(struct str head);
	const char *what;
};

/* "go 1.22 trace" and zeros. */
static bool go_trace(struct str head)
{
	return str_starts(head, STR("go 1.")) &&
	       str_find(str_first(head, 16), STR(" trace\0")) != STR_NONE;
}

static bool massif(struct str head)
{
	return str_starts(head, STR("desc: ")) &&
	       str_find(str_first(head, TEXT_BYTES), STR("\ntime_unit: ")) != STR_NONE;
}

/* A marshalled dict whose first key is (file, line, function). */
static bool python_stats(struct str head)
{
	return head.len > 4 && ((unsigned char)head.ptr[0] & 0x7f) == '{' &&
	       ((((unsigned char)head.ptr[1] & 0x7f) == ')' && head.ptr[2] == 3) ||
		(((unsigned char)head.ptr[1] & 0x7f) == '(' && head.ptr[2] == 3 && !head.ptr[3]));
}

/* Messages with their lengths in front; the first is GlobalMetadata, which begins with a version. */
static bool chakra(struct str head)
{
	size_t len = head.len > 3 ? (unsigned char)head.ptr[2] : 0;

	return len >= 3 && len < 32 && head.ptr[1] == 0x0a && head.len > 3 + len &&
	       (unsigned char)head.ptr[0] >= len + 2 &&
	       str_find_char(str_first(str_skip(head, 3), len), '.') != STR_NONE &&
	       head.ptr[3] >= '0' && head.ptr[3] <= '9' && head.ptr[2 + len] >= '0' &&
	       head.ptr[2 + len] <= '9' &&
	       ((unsigned char)head.ptr[0] == len + 2 || head.ptr[3 + len] == 0x12);
}

/* Ruby's Marshal: a hash with symbols for keys. */
static bool stackprof_dump(struct str head)
{
	return str_starts(head, STR("\x04\x08{")) &&
	       str_find(str_first(head, TEXT_BYTES), STR("interval")) != STR_NONE;
}

/* Records { 1: rank, 2: "Host" or "Device", 3: op type } in a message that holds nothing else at its start. */
static bool tensorflow_stats(struct str head)
{
	size_t at = 1;

	if (head.len < 24 || (head.ptr[0] != 0x0a && head.ptr[0] != 0x12 && head.ptr[0] != 0x22))
		return false;
	while (at < 6 && head.ptr[at] & 0x80)
		at++;
	at++; /* behind the length of the database */
	if (head.ptr[at] != 0x0a)
		return false;
	for (at++; at < 12 && head.ptr[at] & 0x80;)
		at++;
	head = str_skip(head, at + 1);
	return str_starts(head, STR("\x08\x01\x12\x04Host\x1a")) ||
	       str_starts(head, STR("\x08\x01\x12\x06"
				    "Device\x1a"));
}

#define ELF_TYPE_AT 16
#define ELF_CORE 4

static bool elf(struct str head)
{
	return head.len > ELF_TYPE_AT + 1 && str_starts(head, STR("\x7f"
								  "ELF"));
}

static bool elf_core(struct str head)
{
	size_t low = elf(head) && head.ptr[5] == 2 ? ELF_TYPE_AT + 1 : ELF_TYPE_AT;

	return elf(head) && head.ptr[low] == ELF_CORE && !head.ptr[low ^ 1];
}

static bool webp(struct str head)
{
	return str_starts(head, STR("RIFF")) && str_starts(str_skip(head, 8), STR("WEBP"));
}

/* The length of a JSON object, and the object. */
static bool safetensors(struct str head)
{
	return head.len > 10 && !memcmp(head.ptr + 4, "\0\0\0\0", 4) &&
	       str_starts(str_skip(head, 8), STR("{\"")) &&
	       str_find(str_first(head, TEXT_BYTES), STR("\"dtype\"")) != STR_NONE;
}

#define ONNX_FIRST 3 /* IR versions; 1 begins a SavedModel */
#define ONNX_LAST 20

/* { 1: version of the IR, 2: name of the program that wrote it, 3: its version … } */
static bool onnx(struct str head)
{
	size_t len;

	if (head.len < 16 || head.ptr[0] != 0x08 || head.ptr[1] < ONNX_FIRST ||
	    head.ptr[1] > ONNX_LAST || head.ptr[2] != 0x12)
		return false;
	len = (unsigned char)head.ptr[3];
	if (!len || len > 64 || 4 + len >= head.len)
		return false;
	for (size_t i = 0; i < len; i++)
		if (head.ptr[4 + i] <= ' ' || head.ptr[4 + i] > '~')
			return false;
	return strchr("\x1a\x22\x28\x32\x3a\x42", head.ptr[4 + len]) && head.ptr[4 + len];
}

static bool script(struct str head)
{
	struct str line = str_first(head, 128);

	return str_starts(line, STR("#!/")) && str_find_char(line, '\n') != STR_NONE;
}

static bool cachegrind(struct str head)
{
	struct str text = str_first(head, TEXT_BYTES);

	return (str_starts(head, STR("desc: ")) || str_starts(head, STR("version: ")) ||
		str_starts(head, STR("events: "))) &&
	       str_find(text, STR("events: Ir")) != STR_NONE &&
	       str_find(text, STR("\nfl=")) != STR_NONE;
}

#define BYTES(offset, bytes)                                                                       \
	.how = BY_BYTES, .at = (offset), .words = { (bytes), sizeof(bytes) - 1 }
#define TEXT(text) .how = BY_TEXT, .words = { (text), sizeof(text) - 1 }
#define KEYS(names) .how = BY_KEYS, .words = { (names), sizeof(names) - 1 }
#define ITEMS(names) .how = BY_ITEMS, .words = { (names), sizeof(names) - 1 }
#define CHECK(function) .how = BY_CHECK, .check = (function)
#define NAMED(end) .how = BY_NAME, .words = { (end), sizeof(end) - 1 }
#define MEMBER(end) .how = BY_MEMBER, .words = { (end), sizeof(end) - 1 }
#define UNREADABLE(how, what_it_is) { how, .what = (what_it_is) },

static const struct unreadable unreadables[] = {
#include "import/unreadable.def"
};

static size_t skip_blank(struct str text, size_t at)
{
	while (at < text.len && strchr(" \t\r\n", text.ptr[at]) && text.ptr[at])
		at++;
	return at;
}

/* The keys on the first level of an object, or of the first object in a list. Text that is not JSON has none. */
static void collect_keys(struct head *h)
{
	struct str text = h->bytes;
	size_t depth = 0, wanted;

	if (str_starts(text, STR("\xef\xbb\xbf")))
		text = str_skip(text, 3);
	text = str_trim(text);
	if (!text.len || (text.ptr[0] != '{' && text.ptr[0] != '['))
		return;
	h->list = text.ptr[0] == '[';
	wanted = h->list ? 2 : 1;
	for (size_t i = 0; i < text.len; i++) {
		char c = text.ptr[i];

		if (c == '{' || c == '[') {
			depth++;
		} else if (c == '}' || c == ']') {
			if (--depth < wanted)
				return;
		} else if (c == '"') {
			size_t start = ++i, colon;

			while (i < text.len && text.ptr[i] != '"')
				i += text.ptr[i] == '\\' ? 2 : 1;
			colon = skip_blank(text, i + 1);
			if (depth == wanted && colon < text.len && text.ptr[colon] == ':' &&
			    h->key_count < MOST_KEYS)
				h->keys[h->key_count++] = str_make(text.ptr + start, i - start);
		}
	}
}

static bool has_keys(const struct head *h, struct str names)
{
	struct str name;

	while (str_split(&names, ' ', &name)) {
		bool found = false;

		for (size_t i = 0; i < h->key_count && !found; i++)
			found = str_eq(h->keys[i], name);
		if (!found)
			return false;
	}
	return true;
}

static bool is_one(const struct unreadable *u, const struct head *h)
{
	switch (u->how) {
	case BY_BYTES:
		return h->bytes.len > u->at && str_starts(str_skip(h->bytes, u->at), u->words);
	case BY_TEXT:
		return str_find(str_first(h->bytes, TEXT_BYTES), u->words) != STR_NONE;
	case BY_KEYS:
		return h->key_count && !h->list && has_keys(h, u->words);
	case BY_ITEMS:
		return h->key_count && h->list && has_keys(h, u->words);
	case BY_CHECK:
		return u->check(h->bytes);
	case BY_NAME:
	case BY_MEMBER:
		return false;
	}
	return false;
}

const char *unreadable_content(struct str bytes)
{
	struct head h = { .bytes = bytes };

	collect_keys(&h);
	for (size_t i = 0; i < ARRAY_COUNT(unreadables); i++)
		if (is_one(&unreadables[i], &h))
			return unreadables[i].what;
	return NULL;
}

static const char *find_end(enum how how, struct str name)
{
	for (size_t i = 0; i < ARRAY_COUNT(unreadables); i++)
		if (unreadables[i].how == how && str_ends(name, unreadables[i].words))
			return unreadables[i].what;
	return NULL;
}

/* The name without the ending that compression adds, such as .gz. */
const char *unreadable_name(const char *name)
{
	struct str text = str_from(name);

	if (str_ends(text, STR(".gz")))
		text = str_first(text, text.len - 3);
	return find_end(BY_NAME, text);
}

const char *unreadable_member(const char *name)
{
	return find_end(BY_MEMBER, str_from(name));
}
