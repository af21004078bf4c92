/*
 * gap.c: answers two questions about a place in the timeline. First, why a device was idle in a gap: its next work was
 * launched too late, and this is what the launching thread did meanwhile; or it was launched in time and waited, and
 * this is what other tracks of the device did. Second, which events a chain of links (launches, flows, messages)
 * connects with one event. Each takes one pass over the events or a few over the links.
 */
#include "page/page_int.h"

#include "base/json_escape.h"
#include "base/u64set.h"
#include "base/vec.h"
#include "model/event_filter.h"

#define DEPTH_MOST 256u
#define NAMES_MOST 4096u
#define NAMES_SHOWN 5u
#define CHAIN_MOST 400u
#define CHAIN_PASSES 32

struct gap {
	int64_t from, to;	/* absolute times */
	uint32_t before, after; /* neighbouring events; 0 = none */
	uint32_t launch;	/* launch of the event after the gap; 0 = unknown */
};

struct doing {
	uint32_t name;
	uint8_t phase;
	uint32_t track;
	int64_t ns;
};

static bool is_device(const struct model *m, uint32_t track)
{
	switch (m->track.kind[track]) {
	case TRACK_ACCELERATOR:
	case TRACK_STREAM:
	case TRACK_COPY:
	case TRACK_COMMUNICATION:
		return true;
	default:
		return false;
	}
}

static int64_t end_of(const struct model *m, uint32_t event)
{
	int64_t end;

	if (__builtin_add_overflow(m->event.ts_ns[event], MAX(m->event.dur_ns[event], 0), &end))
		return INT64_MAX;
	return end;
}

/* Finds the gap of a track at a time; false inside an event or beyond both ends. */
static bool find_gap(const struct ow_ui *ui, uint32_t track, int64_t at, struct gap *gap)
{
	const struct model *m = ui->profile->m;

	*gap = (struct gap){ .from = INT64_MIN, .to = INT64_MAX };
	for (uint32_t i = 0; i < tiles_row_count(ui->tiles); i++) {
		const struct tile_row *row = tiles_row(ui->tiles, i);
		uint32_t before, after;

		if (row->kind != TILE_EVENTS || row->track.v != track || row->depth)
			continue;
		if (tile_item_at(ui->tiles, i, at, 0))
			return false;
		before = tile_item_at(ui->tiles, i, at, -1);
		after = tile_item_at(ui->tiles, i, at, 1);
		if (before && end_of(m, before) > gap->from) {
			gap->from = end_of(m, before);
			gap->before = before;
		}
		if (after && m->event.ts_ns[after] < gap->to) {
			gap->to = m->event.ts_ns[after];
			gap->after = after;
		}
	}
	return gap->before && gap->after && gap->from < gap->to;
}

static uint32_t find_launch(const struct model *m, uint32_t event)
{
	for (uint32_t i = 1; i < m->link.count; i++)
		if (m->link.dst[i].v == event && m->link.kind[i] == LINK_LAUNCH)
			return m->link.src[i].v;
	return 0;
}

static void add_doing(struct doing *all, uint32_t *count, const struct model *m, uint32_t event,
		      int64_t ns)
{
	uint32_t name = page_event_name(m, event).v, i = 0;

	while (i < *count && all[i].name != name)
		i++;
	if (i == NAMES_MOST)
		return;
	if (i == *count)
		all[(*count)++] = (struct doing){ name, COLUMN_GET(m->event.phase, event),
						  m->event.track[event].v, 0 };
	all[i].ns += ns;
}

/* Whether events on this track can explain the gap. */
static bool concerns(const struct model *m, const struct gap *gap, uint32_t own, uint32_t track)
{
	if (track == own)
		return false;
	if (gap->launch)
		return m->event.ts_ns[gap->launch] > gap->from
			       ? track == m->event.track[gap->launch].v
			       : is_device(m, track) &&
					 m->track.source[track].v == m->track.source[own].v;
	return m->track.kind[track] == TRACK_HOST &&
	       m->track.source[track].v == m->track.source[own].v;
}

/* Sums the self time of events in the gap, by name. */
static uint32_t find_doing(const struct model *m, const struct gap *gap, uint32_t own,
			   struct doing *all)
{
	uint32_t stack[DEPTH_MOST] = { 0 }, track = 0, count = 0;
	bool wanted = false;

	for (uint32_t i = 1; i < m->event.count; i++) {
		uint32_t depth = COLUMN_GET(m->event.depth, i);
		int64_t ns;

		if (m->event.track[i].v != track) {
			track = m->event.track[i].v;
			wanted = concerns(m, gap, own, track);
		}
		if (!wanted || depth >= DEPTH_MOST || !event_is_slice(m, i))
			continue;
		stack[depth] = i;
		if (m->event.ts_ns[i] >= gap->to || end_of(m, i) <= gap->from)
			continue;
		ns = MIN(end_of(m, i), gap->to) - MAX(m->event.ts_ns[i], gap->from);
		add_doing(all, &count, m, i, ns);
		if (depth)
			add_doing(all, &count, m, stack[depth - 1], -ns);
	}
	return count;
}

static int by_ns(const void *a, const void *b)
{
	const struct doing *x = a, *y = b;

	return (x->ns < y->ns) - (x->ns > y->ns);
}

static void add_named(struct buf *to, const struct model *m, const char *key, uint32_t event)
{
	if (!event)
		return;
	buf_printf(to, ", \"%s\": {\"event\": %u, \"name\": ", key, event);
	json_quote(to, model_str(m, page_event_name(m, event)));
	buf_puts(to, "}");
}

static void add_gap(struct buf *to, const struct ow_ui *ui, const struct gap *gap,
		    struct doing *all, uint32_t count)
{
	const struct model *m = ui->profile->m;

	buf_printf(to, "{\"gap\": true, \"from\": %lld, \"to\": %lld",
		   (long long)wrap_sub(gap->from, ui->zero_ns),
		   (long long)wrap_sub(gap->to, ui->zero_ns));
	add_named(to, m, "before", gap->before);
	add_named(to, m, "after", gap->after);
	add_named(to, m, "launch", gap->launch);
	if (gap->launch)
		buf_printf(to, ", \"launched\": %lld",
			   (long long)wrap_sub(m->event.ts_ns[gap->launch], ui->zero_ns));
	buf_puts(to, ", \"during\": [");
	qsort(all, count, sizeof(*all), by_ns);
	for (uint32_t i = 0; i < count && i < NAMES_SHOWN && all[i].ns > 0; i++) {
		buf_printf(to, "%s{\"ns\": %lld, \"phase\": \"%.*s\", \"name\": ", i ? ", " : "",
			   (long long)all[i].ns,
			   STR_ARG(page_word(&words_event_phase, all[i].phase)));
		json_quote(to, model_str(m, (str_id){ all[i].name }));
		buf_puts(to, ", \"track\": ");
		json_quote(to, model_str(m, m->track.name[all[i].track]));
		buf_puts(to, "}");
	}
	buf_puts(to, "]}\n");
}

static ow_status answer_gap(struct ow_ui *ui, uint32_t row, int64_t at, struct buf *to,
			    struct ow_error *err)
{
	struct model *m = ui->profile->m;
	const struct tile_row *info = tiles_row(ui->tiles, row);
	struct doing *all;
	struct gap gap;

	OW_TRY(model_require_nesting(m, err));
	if (info->kind != TILE_EVENTS || !is_device(m, info->track.v) ||
	    !find_gap(ui, info->track.v, at, &gap)) {
		buf_puts(to, "{\"gap\": false}\n");
		return OW_OK;
	}
	all = mem_alloc(&ui->mem, NAMES_MOST * sizeof(*all));
	if (!all)
		return error_no_memory(err);
	gap.launch = find_launch(m, gap.after);
	add_gap(to, ui, &gap, all, find_doing(m, &gap, info->track.v, all));
	mem_free(&ui->mem, all, NAMES_MOST * sizeof(*all));
	return OW_OK;
}

PAGE_HANDLER(gap)
{
	struct ow_ui *u = ui;
	int64_t row = server_param_int(request, "row", -1);
	int64_t at = wrap_add(u->zero_ns, server_param_int(request, "at", 0));
	struct reading reading;
	struct ow_error err = { 0 };
	ow_status status;

	if (!page_ready(u, reply))
		return;
	if (row < 0 || row >= tiles_row_count(u->tiles)) {
		server_fail(reply, 404, "there is no row %lld", (long long)row);
		return;
	}
	status = api_read_begin(u->profile, TABLES_ALL, &reading, &err);
	if (status == OW_OK) {
		status = answer_gap(u, (uint32_t)row, at, &reply->body, &err);
		status = api_read_end(u->profile, &reading, status, &err);
	}
	if (status != OW_OK)
		page_fail(reply, status, &err);
}

struct chain {
	struct u64set seen;
	struct buf *to;
	uint32_t events, links;
	bool failed;
};

static void add_end(struct buf *to, const struct ow_ui *ui, const char *key, uint32_t event)
{
	const struct model *m = ui->profile->m;

	buf_printf(to,
		   "\"%s\": {\"event\": %u, \"row\": %lld, \"ts\": %lld, \"end\": %lld, \"name\": ",
		   key, event,
		   (long long)(int32_t)tiles_row_of_event(ui->tiles, (event_id){ event }),
		   (long long)wrap_sub(m->event.ts_ns[event], ui->zero_ns),
		   (long long)wrap_sub(end_of(m, event), ui->zero_ns));
	json_quote(to, model_str(m, page_event_name(m, event)));
	buf_puts(to, "}");
}

/* Adds an event to the chain; true when it is new. */
static bool reach(struct chain *c, uint32_t event)
{
	enum u64set_added added = u64set_add(&c->seen, event);

	c->failed |= added == U64SET_NO_MEMORY;
	c->events += added == U64SET_NEW;
	return added == U64SET_NEW;
}

/* Follows links that touch the chain; a link is added once, when both of its ends are in the chain. */
static bool follow_links(struct chain *c, const struct ow_ui *ui, uint8_t *done, const bool *in)
{
	const struct model *m = ui->profile->m;
	bool grew = false;

	for (uint32_t i = 1; i < m->link.count && c->events < CHAIN_MOST; i++) {
		uint32_t src = m->link.src[i].v, dst = m->link.dst[i].v;

		if (done[i] || m->link.kind[i] == LINK_WAIT || (!in[src] && !in[dst]))
			continue;
		done[i] = 1;
		reach(c, src);
		reach(c, dst);
		buf_puts(c->to, c->links++ ? ",\n{" : "\n{");
		add_end(c->to, ui, "from", src);
		buf_puts(c->to, ", ");
		add_end(c->to, ui, "to", dst);
		buf_puts(c->to, "}");
		grew = true;
	}
	return grew;
}

static void mark_reached(const struct chain *c, bool *in)
{
	for (size_t i = 0; c->seen.slots && i <= c->seen.mask; i++)
		in[c->seen.slots[i]] = c->seen.slots[i] != 0;
}

static ow_status answer_chain(struct ow_ui *ui, uint32_t event, struct buf *to,
			      struct ow_error *err)
{
	const struct model *m = ui->profile->m;
	struct chain c = { .to = to };
	uint8_t *done = mem_zalloc(&ui->mem, m->link.count + 1);
	bool *in = mem_zalloc(&ui->mem, (size_t)m->event.count + 1);

	u64set_init(&c.seen, &ui->mem);
	c.failed = !done || !in;
	if (!c.failed) {
		reach(&c, event);
		buf_printf(to, "{\"event\": %u, \"links\": [", event);
		for (int pass = 0; pass < CHAIN_PASSES && !c.failed; pass++) {
			mark_reached(&c, in);
			if (!follow_links(&c, ui, done, in))
				break;
		}
		buf_printf(to, "], \"events\": %u, \"more\": %s}\n", c.events,
			   c.events >= CHAIN_MOST ? "true" : "false");
	}
	u64set_release(&c.seen);
	mem_free(&ui->mem, done, m->link.count + 1);
	mem_free(&ui->mem, in, (size_t)m->event.count + 1);
	return c.failed ? error_no_memory(err) : OW_OK;
}

PAGE_HANDLER(chain)
{
	struct ow_ui *u = ui;
	int64_t event = server_param_int(request, "id", 0);
	struct reading reading;
	struct ow_error err = { 0 };
	ow_status status;

	if (!page_ready(u, reply))
		return;
	if (event <= 0 || event >= u->profile->m->event.count) {
		server_fail(reply, 404, "there is no event %lld", (long long)event);
		return;
	}
	status = api_read_begin(u->profile, TABLES_ALL, &reading, &err);
	if (status == OW_OK) {
		status = answer_chain(u, (uint32_t)event, &reply->body, &err);
		status = api_read_end(u->profile, &reading, status, &err);
	}
	if (status != OW_OK)
		page_fail(reply, status, &err);
}
