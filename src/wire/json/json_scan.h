/*
 * json_scan.h: reads Chrome-trace JSON as a run of events, straight down a file of any size, without
 * building a document. The trace importer (several threads, one scanner each) and merge share it.
 *
 *	json_scan_init(&scan, in, err);
 *	while (json_scan_document(&scan, &doc, &item) …)	what stands beside the events
 *		on ITEM_EVENTS:
 *			json_scan_seek(&scan, item.offset);
 *			while ((what = json_scan_event(&scan, UINT64_MAX, &ev)) == SCAN_EVENT) …
 *
 * An event is a set of raw values: places in the scanner's buffer, valid until the next call. Nothing
 * is decoded here; wire/json/json.h does that. Lenient as people's files need: truncation at any byte,
 * missing or extra commas, comments, several documents. Damage is skipped and reported as SCAN_DAMAGE.
 *
 * The scan from a given offset depends on nothing but the bytes that follow, so a part that was read on
 * a guess (json_scan_guess) is right exactly if the part before ends where it began.
 */
#ifndef WIRE_JSON_SCAN_H
#define WIRE_JSON_SCAN_H

#include "base/input.h"

/* json_classify.c: finds where the quotes and brackets are, 64 bytes at a time.
 * One bit per byte: unescaped quotes, and opening and closing brackets outside strings. With these bits the scanner
 * passes over a string or a whole nested value by counting. Comments (// and slash-star) are not JSON but occur in
 * traces: their content gets no bits. AVX2 is used when the machine has it; the portable way finds the same bits. */

#define JSON_BLOCK 64

struct json_block {
	uint64_t quote; /* positions of unescaped " */
	uint64_t open;	/* positions of { and [ outside strings */
	uint64_t close; /* positions of } and ] outside strings */
};

/* State that earlier bytes pass on to the next block; all zero outside strings. */
struct json_carry {
	uint64_t in_string; /* all ones inside a string, else zero */
	uint64_t escaped;   /* 1: the next byte follows a backslash */
	uint32_t comment;   /* enum json_comment, for the slow way only */
};

enum json_path { JSON_BEST, JSON_PORTABLE };

/* Classifies len bytes, of which the last block may be partial. `bytes` need no padding. Returns the
 * number of blocks written: (len + 63) / 64. */
size_t json_classify(enum json_path path, const unsigned char *bytes, size_t len,
		     struct json_block *blocks, struct json_carry *carry);

/* Returns the classifier to use: JSON_PORTABLE if the environment has OPWATCH_PORTABLE set (for
 * tests), or without AVX2. */
enum json_path json_best_path(void);

/* Events of a trace: */

/* A larger event counts as damage: no program writes one, but a lost quote makes one. */
#define JSON_EVENT_MAX ((size_t)64 << 20)

enum json_kind {
	JSON_NONE,
	JSON_STRING,  /* at and len cover the text between the quotes, still escaped */
	JSON_NUMBER,  /* a number, or a word in its place: -1.5e3, NaN, Infinity */
	JSON_LITERAL, /* true, false, null or any other word */
	JSON_OBJECT,  /* the raw value begins and ends with a bracket */
	JSON_ARRAY
};

struct json_value {
	const char *at;
	uint32_t len;
	enum json_kind kind;
};

enum json_field {
	FIELD_OTHER,
	FIELD_PH,
	FIELD_NAME,
	FIELD_CAT,
	FIELD_PID,
	FIELD_TID,
	FIELD_TS,
	FIELD_DUR,
	FIELD_ARGS,
	FIELD_ID,
	FIELD_ID2,
	FIELD_SCOPE,
	FIELD_BP,
	FIELD_S,
	FIELD_SF,
	FIELD_BIND_ID,
	FIELD_FLOW_IN,
	FIELD_FLOW_OUT,
	FIELD_TTS,
	FIELD_TDUR,
	FIELD_STACK,
	FIELD_COUNT
};

struct json_event {
	uint64_t offset; /* offset of its { in the input */
	const char *text;
	uint32_t len;  /* length from { to } */
	uint32_t have; /* bits 1 << enum json_field of the values that are set */
	struct json_value value[FIELD_COUNT];
};

static inline bool json_event_has(const struct json_event *ev, enum json_field field)
{
	return ev->have >> field & 1;
}

enum json_scan_result {
	SCAN_EVENT,
	SCAN_STOP,	/* the next event is at or after the given offset: scan.offset */
	SCAN_END,	/* the list ended; scan.offset is after its ] */
	SCAN_OTHER,	/* an element that is not an object was skipped */
	SCAN_DAMAGE,	/* unreadable bytes [ev.offset, scan.offset) were skipped */
	SCAN_TRUNCATED, /* the input ends; ev.offset is the begin of the unfinished event */
	SCAN_FAILED	/* reading failed: scan.status */
};

struct json_scan {
	const struct input *in;
	struct ow_error *err;
	ow_status status;
	enum json_path path;
	uint64_t offset; /* offset of the next byte to examine */
	/* The window: buf[0] is at `base`, outside strings; it is classified up to len. */
	unsigned char *buf;
	struct json_block *blocks;
	size_t cap, len;
	uint64_t base;
	size_t window; /* number of bytes to read next; 0 = the default */
	/* number of bytes that may still be tried in search of a place to continue */
	uint64_t guesses_left;
	/* number of bytes read by all scanners of this input, for progress; or NULL */
	atomic_uint_fast64_t *done;
	char key[256]; /* key of the last ITEM_MEMBER, cut to this size */
};

void json_scan_init(struct json_scan *scan, const struct input *in, struct ow_error *err);
void json_scan_release(struct json_scan *scan);

/* Continues at an offset that is outside strings. */
void json_scan_seek(struct json_scan *scan, uint64_t offset);

/* Reads the next event of a list, if it starts before `stop`. */
enum json_scan_result json_scan_event(struct json_scan *scan, uint64_t stop,
				      struct json_event *ev) OW_MUST_CHECK;

/* A key to find in an object of the window. */
struct json_pick {
	const char *key;
	uint32_t len;
	uint64_t head; /* first eight bytes of the key, zero-filled; JSON_PICK makes both */
};
#define JSON_PICK_BYTE(key, i)                                                                     \
	((uint64_t)(unsigned char)(key)[(i) < sizeof(key) ? (i) : sizeof(key) - 1] << 8 * (i))
#define JSON_PICK(key)                                                                             \
	{                                                                                          \
		key, sizeof(key) - 1,                                                              \
			JSON_PICK_BYTE(key, 0) | JSON_PICK_BYTE(key, 1) | JSON_PICK_BYTE(key, 2) | \
				JSON_PICK_BYTE(key, 3) | JSON_PICK_BYTE(key, 4) |                  \
				JSON_PICK_BYTE(key, 5) | JSON_PICK_BYTE(key, 6) |                  \
				JSON_PICK_BYTE(key, 7)                                             \
	}

/* Finds the values of the wanted keys of an object that is part of the last event (its arguments), with the window's
 * marks; kind JSON_NONE for keys that are missing. Keys written with escapes are not recognised. It ends when all are
 * found: of doubled keys the first counts.
 */
void json_scan_pick(const struct json_scan *scan, const struct json_value *object,
		    const struct json_pick *picks, size_t count, struct json_value *found);

/* The first place in [from, to) that looks like the start of an event: an object after a comma or a
 * bracket, complete, with a "ph". True when there is one. On failure scan.status is set. */
bool json_scan_guess(struct json_scan *scan, uint64_t from, uint64_t to, uint64_t *found);

/* Parts of a document around the events. */

enum json_item_kind {
	ITEM_EVENTS,	/* a list of events starts at item.offset */
	ITEM_MEMBER,	/* another key of the top-level object */
	ITEM_DOCUMENT,	/* a document ended */
	ITEM_DAMAGE,	/* the bytes [item.offset, item.offset + item.size) are not JSON */
	ITEM_TRUNCATED, /* the input ends inside a document */
	ITEM_EOF,
	ITEM_FAILED /* reading failed: scan.status */
};

struct json_item {
	enum json_item_kind kind;
	/* for ITEM_MEMBER and ITEM_EVENTS: the key, valid until the next call */
	struct json_value key;
	enum json_kind value;  /* for ITEM_MEMBER: kind of the value */
	uint64_t offset, size; /* for ITEM_MEMBER: the value, brackets and quotes included */
	bool complete;	       /* for ITEM_MEMBER: the value ends before the input does */
	/* for ITEM_EVENTS: events follow each other without brackets around them */
	bool bare;
};

struct json_doc {
	bool in_object; /* the position is between the members of a top-level object */
	uint64_t documents;
};

/* Reads the next part of the document at scan->offset. After ITEM_EVENTS the caller reads the
 * events and calls again. */
enum json_item_kind json_scan_document(struct json_scan *scan, struct json_doc *doc,
				       struct json_item *item) OW_MUST_CHECK;

#endif
