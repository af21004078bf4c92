/*
 * import_trace.c: Chrome-trace JSON, of whatever producer. This file recognises it and runs the steps;
 * the work is in trace_*.c, see trace_int.h. Who wrote a file, and what its events mean, is not decided
 * here.
 */
#include "import/trace_int.h"

#define PART_BYTES ((size_t)4 << 20)
#define LONG_HEAD ((size_t)32 << 10) /* a head of that size is not all of the file */

/* ---- recognition ---- */

/* Keys that only events have together. */
static bool is_event(const struct json_event *ev)
{
	return json_event_has(ev, FIELD_PH) && ev->value[FIELD_PH].kind == JSON_STRING &&
	       ev->value[FIELD_PH].len == 1;
}

/* The first events of a list, which the head may cut. */
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

/* A traceEvents key is proof; a bare list must begin with events. */
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
			/* The head ends inside the value of another key; traceEvents may follow. Keys
			 * that are found beside it in no other format. */
			if (json_key_is(json_text(item.key), "displayTimeUnit") ||
			    json_key_is(json_text(item.key), "stackFrames") ||
			    json_key_is(json_text(item.key), "systemTraceEvents") ||
			    json_key_is(json_text(item.key), "deviceProperties") ||
			    json_key_is(json_text(item.key), "traceAnnotations"))
				return 70;
			members = true;
			break;
		case ITEM_TRUNCATED:
			/* Of an object that goes on behind the head anything may still come. */
			return members && scan->in->size >= LONG_HEAD ? 10 : 0;
		case ITEM_DOCUMENT:
		case ITEM_DAMAGE:
		case ITEM_EOF:
		case ITEM_FAILED:
			return 0;
		}
	}
}

static int sniff_trace(const struct sniff *sniff)
{
	struct json_scan scan;
	struct error err = { 0 };
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

/* ---- loading ---- */

static void release(struct trace *t)
{
	for (unsigned i = 0; t->workers && i < t->worker_count; i++)
		trace_worker_release(&t->workers[i]);
	mem_free(t->mem, t->workers, t->worker_count * sizeof(*t->workers));
	mem_free(t->mem, t->parts, t->part_count * sizeof(*t->parts));
	mem_free(t->mem, t->accepted, t->accepted_cap * sizeof(*t->accepted));
	mem_free(t->mem, t->lane_order, t->ordered * sizeof(*t->lane_order));
	mem_free(t->mem, t->lanes, t->lane_cap * sizeof(*t->lanes));
	mem_free(t->mem, t->processes, t->process_cap * sizeof(*t->processes));
	mem_free(t->mem, t->type_of, ((size_t)t->string_count + 1) * sizeof(*t->type_of));
	mem_free(t->mem, t->changes, t->change_count * sizeof(*t->changes));
	trace_tallies_release(t);
	mem_free(t->mem, t->local_strings, t->local_cap * sizeof(*t->local_strings));
	trace_frames_release(t);
	map_release(&t->lane_map);
	map_release(&t->process_map);
}

static ow_status start(struct trace *t)
{
	t->worker_count = t->options.threads + 1;
	t->workers = mem_zalloc(t->mem, t->worker_count * sizeof(*t->workers));
	if (!t->workers)
		return error_no_memory(t->ctx->err);
	for (unsigned i = 0; i < t->worker_count; i++) {
		trace_worker_init(&t->workers[i], t->mem, t->ctx->in, t->options.path);
		t->workers[i].scan.done = &t->bytes_done;
	}
	return OW_OK;
}

static ow_status load(struct trace *t)
{
	OW_TRY(start(t));
	OW_TRY(trace_read(t));
	OW_TRY(trace_merge(t));
	OW_TRY(trace_read_frames(t));
	OW_TRY(trace_tally(t));
	if (!t->tallies[0].events)
		return error_set(t->ctx->err, OW_E_EMPTY, "%s: the trace has no events",
				 t->ctx->in->name);
	OW_TRY(trace_pair(t));
	return trace_place(t);
}

ow_status trace_load_with(struct import_ctx *ctx, const struct trace_options *options)
{
	struct trace t = { .ctx = ctx, .b = ctx->b, .mem = ctx->b->m->mem, .options = *options };
	ow_status status;

	map_init(&t.lane_map, t.mem);
	map_init(&t.process_map, t.mem);
	map_init(&t.frame_map, t.mem);
	status = load(&t);
	release(&t);
	if (status != OW_OK)
		builder_fail(ctx->b, status);
	return status;
}

static ow_status load_trace(struct import_ctx *ctx)
{
	struct trace_options options = { .part_bytes = PART_BYTES,
					 .threads = parallel_threads(),
					 .path = json_best_path() };

	if (ctx->in->size < 2 * options.part_bytes)
		options.threads = 1;
	return trace_load_with(ctx, &options);
}

const struct importer import_trace = {
	.name = "trace",
	.summary =
		"Chrome-trace JSON: TensorFlow timelines, PyTorch, ONNX Runtime, Chrome, any other",
	.extensions = ".json .json.gz .trace.json.gz .pt.trace.json",
	.role = ROLE_TRACE,
	.sniff = sniff_trace,
	.load = load_trace,
};
