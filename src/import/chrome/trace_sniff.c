/*
 * trace_sniff.c: recognises a Chrome trace by the head of a file; the result is a score of 0 to 100 (importer.h).
 * import_trace.c registers it.
 */
#include "import/chrome/trace_int.h"

#include "import/unrecognised.h"

#define LONG_HEAD ((size_t)32 << 10) /* a head of this size is not the whole file */

/* Returns whether an object has keys that only events have together. */
static bool is_event(const struct json_event *ev)
{
	return json_event_has(ev, FIELD_PH) && ev->value[FIELD_PH].kind == JSON_STRING &&
	       ev->value[FIELD_PH].len == 1;
}

/* Examines the first events of a list, which the head may cut. */
static int sniff_events(struct json_scan *scan)
{
	struct json_event ev;

	for (int i = 0; i < 4; i++) {
		switch (json_scan_event(scan, UINT64_MAX, &ev)) {
		case SCAN_EVENT:
			if (is_event(&ev))
				return 95;
			break;
		case SCAN_OTHER:
			break;
		case SCAN_TRUNCATED:
			/* the head ends inside an event, or after an empty list's bracket */
			return json_event_has(&ev, FIELD_PH) ? 80 : 20;
		case SCAN_END:
			return 30;
		case SCAN_STOP:
		case SCAN_DAMAGE:
		case SCAN_FAILED:
			return 0;
		}
	}
	return 0;
}

/* Examines a document: a traceEvents key is proof; a bare list must begin with events. */
static int sniff_document(struct json_scan *scan)
{
	struct json_doc doc = { 0 };
	struct json_item item;
	bool members = false;

	for (;;) {
		switch (json_scan_document(scan, &doc, &item)) {
		case ITEM_EVENTS: {
			int score = sniff_events(scan);

			return doc.in_object ? MAX(score, 90) : score;
		}
		case ITEM_MEMBER:
			/* The head ends inside the value of another key, and traceEvents may
			 * follow. These keys exist in no other format. */
			if (json_key_is(json_text(item.key), "displayTimeUnit") ||
			    json_key_is(json_text(item.key), "stackFrames") ||
			    json_key_is(json_text(item.key), "systemTraceEvents") ||
			    json_key_is(json_text(item.key), "deviceProperties") ||
			    json_key_is(json_text(item.key), "traceAnnotations"))
				return 70;
			members = true;
			break;
		case ITEM_TRUNCATED:
			/* an object that continues behind the head may still contain anything */
			return members && scan->in->size >= LONG_HEAD ? 10 : 0;
		case ITEM_DOCUMENT:
		case ITEM_DAMAGE:
		case ITEM_EOF:
		case ITEM_FAILED:
			return 0;
		}
	}
}

int trace_sniff(const struct sniff *sniff)
{
	struct json_scan scan;
	struct ow_error err = { 0 };
	struct input in;
	struct mem mem;
	struct str head = sniff->head;
	int score = 0;

	if (str_starts(head, STR("\xef\xbb\xbf")))
		head = str_skip(head, 3);
	head = str_trim(head);
	if (!head.len || (head.ptr[0] != '{' && head.ptr[0] != '[' && head.ptr[0] != '/') ||
	    str_starts(head, STR(V8_SNAPSHOT)))
		return 0;
	mem_init(&mem, 0);
	if (input_from_memory(&in, &mem, "head", head.ptr, head.len, &err) != OW_OK)
		return 0;
	json_scan_init(&scan, &in, &err);
	score = sniff_document(&scan);
	json_scan_release(&scan);
	input_close(&in);
	return score;
}
