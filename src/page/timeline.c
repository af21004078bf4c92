/*
 * timeline.c: the routes of the timeline: the list of rows, their tiles in a compact binary form, names by id, and the
 * item at a time. All times are nanoseconds since the first item (ow_ui.zero_ns), because a browser's numbers hold 53
 * bits.
 */
#include "page/page_int.h"

#include "base/json_escape.h"

#define TILES_MAX 512u	/* limit for each request */
#define NAMES_MAX 4096u /* limit for each request */

str_id page_event_name(const struct model *m, uint32_t event)
{
	str_id own = COLUMN_GET(m->event.name, event);

	return own.v ? own : m->op.name[m->event.op[event].v];
}

str_id page_sample_name(const struct model *m, uint32_t sample)
{
	return m->frame.function[m->stack.frame[m->sample.stack[sample].v].v];
}

struct str page_word(const struct table_dict *words, uint32_t number)
{
	return number && number < words->count ? words->texts[number] : STR("unknown");
}

/* The colour of an event: the phase in the upper four bits; below, a shade by the type of the op. */
static uint8_t event_tint(const struct model *m, uint32_t event)
{
	uint32_t op = m->event.op[event].v;
	str_id type = m->op.type[op].v ? m->op.type[op] : page_event_name(m, event);
	unsigned shade = (unsigned)(str_hash(model_str(m, type)) & 15);

	return (uint8_t)((unsigned)COLUMN_GET(m->event.phase, event) << 4 | shade);
}

static uint8_t sample_tint(const struct model *m, uint32_t sample)
{
	unsigned shade = (unsigned)(str_hash(model_str(m, page_sample_name(m, sample))) & 15);

	return (uint8_t)((unsigned)COLUMN_GET(m->sample.phase, sample) << 4 | shade);
}

static const char *const row_kinds[] = { "events", "samples", "counter", "series" };

static void add_text(struct buf *to, const char *key, struct str text)
{
	buf_printf(to, ", \"%s\": ", key);
	json_quote(to, text);
}

static void add_track(struct buf *to, const struct model *m, uint32_t track)
{
	uint32_t source = m->track.source[track].v;
	uint8_t kind = m->track.kind[track];

	buf_printf(to, "{\"id\": %u, \"kind\": \"%.*s\", \"rank\": %d", track,
		   STR_ARG(page_word(&words_track_kind, kind + 1u)),
		   source ? m->source.rank[source] : -1);
	if (m->track.pid[track] > MODEL_TEXT_NUMBER)
		buf_printf(to, ", \"pid\": %lld", (long long)m->track.pid[track]);
	if (m->track.tid[track] > MODEL_TEXT_NUMBER)
		buf_printf(to, ", \"tid\": %lld", (long long)m->track.tid[track]);
	buf_printf(to, ", \"sort\": %d, \"process_sort\": %d",
		   COLUMN_GET(m->track.sort_index, track),
		   COLUMN_GET(m->track.process_sort_index, track));
	add_text(to, "name", model_str(m, m->track.name[track]));
	add_text(to, "process", model_str(m, m->track.process[track]));
	add_text(to, "device", model_str(m, m->device.name[m->track.device[track].v]));
	add_text(to, "source", model_str(m, m->source.path[source]));
	buf_puts(to, "}");
}

static void add_row(struct buf *to, const struct ow_ui *ui, uint32_t number)
{
	const struct tile_row *row = tiles_row(ui->tiles, number);

	buf_printf(to,
		   "{\"row\": %u, \"kind\": \"%s\", \"track\": %u, \"depth\": %u, \"lane\": %u, "
		   "\"items\": %u, \"start\": %lld, \"end\": %lld, \"busy_ns\": %llu",
		   number, row_kinds[row->kind], row->track.v, row->depth, row->lane, row->items,
		   (long long)wrap_sub(row->start_ns, ui->zero_ns),
		   (long long)wrap_sub(row->end_ns, ui->zero_ns), (unsigned long long)row->busy_ns);
	if (row->name.len)
		add_text(to, "name", row->name);
	buf_puts(to, "}");
}

/* Adds the steps, for the ribbon above the rows. */
static void add_steps(struct buf *to, const struct ow_ui *ui)
{
	const struct model *m = ui->profile->m;
	bool first = true;

	for (uint32_t i = 1; i < m->step.count; i++) {
		if (m->step.start_ns[i] == TIME_UNKNOWN || m->step.end_ns[i] == TIME_UNKNOWN)
			continue;
		buf_printf(to, "%s[%lld, %lld, %lld]", first ? "" : ", ",
			   (long long)m->step.number[i],
			   (long long)wrap_sub(m->step.start_ns[i], ui->zero_ns),
			   (long long)wrap_sub(m->step.end_ns[i], ui->zero_ns));
		first = false;
	}
}

static void add_rows(const struct ow_ui *u, struct buf *to)
{
	uint32_t count, last = UINT32_MAX;
	bool first = true;

	count = tiles_row_count(u->tiles);
	buf_printf(to,
		   "{\"zero_ns\": \"%lld\", \"span_ns\": %lld, \"top_level\": %u, \"buckets\": "
		   "%u,\n\"rows\": [",
		   (long long)u->zero_ns, (long long)wrap_sub(tiles_end(u->tiles), u->zero_ns),
		   tiles_top_level(u->tiles), TILE_BUCKETS);
	for (uint32_t i = 0; i < count; i++) {
		if (u->shown_rows && !u->shown_rows[i])
			continue;
		buf_puts(to, first ? "\n" : ",\n");
		add_row(to, u, i);
		first = false;
	}
	buf_puts(to, "],\n\"tracks\": [");
	for (uint32_t i = 0; i < count; i++) {
		uint32_t track = tiles_row(u->tiles, i)->track.v;

		if (!track || track == last)
			continue;
		buf_puts(to, last == UINT32_MAX ? "\n" : ",\n");
		add_track(to, u->profile->m, track);
		last = track;
	}
	buf_puts(to, "],\n\"phases\": [\"unknown\"");
	for (uint32_t i = 1; i < words_event_phase.count; i++)
		buf_printf(to, ", \"%.*s\"", STR_ARG(page_word(&words_event_phase, i)));
	buf_puts(to, "],\n\"steps\": [");
	add_steps(to, u);
	buf_puts(to, "]}\n");
}

PAGE_HANDLER(rows)
{
	struct ow_ui *u = ui;
	struct reading reading;
	struct ow_error err = { 0 };
	ow_status status;

	(void)request;
	if (!page_ready(u, reply))
		return;
	status = api_read_begin(u->profile, TABLES_ALL, &reading, &err);
	if (status == OW_OK) {
		add_rows(u, &reply->body);
		status = api_read_end(u->profile, &reading, status, &err);
	}
	if (status != OW_OK)
		page_fail(reply, status, &err);
}

static void pad(struct buf *to, size_t align)
{
	static const char zero[8];

	if (to->len % align)
		buf_add(to, zero, align - to->len % align);
}

#define ADD_COLUMN(type, expression)                                                               \
	do {                                                                                       \
		pad(to, sizeof(type));                                                             \
		if (!buf_reserve(to, (size_t)n * sizeof(type) + 1))                                \
			return;                                                                    \
		for (uint32_t i = 0; i < n; i++) {                                                 \
			type value_ = (type)(expression);                                          \
                                                                                                   \
			memcpy(to->ptr + to->len, &value_, sizeof(value_));                        \
			to->len += sizeof(value_);                                                 \
		}                                                                                  \
	} while (0)

static void add_items(struct buf *to, const struct model *m, enum tile_kind kind,
		      const struct tile_cell *c, uint32_t n)
{
	bool events = kind == TILE_EVENTS;

	ADD_COLUMN(uint32_t, c[i].item);
	ADD_COLUMN(uint32_t,
		   events ? page_event_name(m, c[i].item).v : page_sample_name(m, c[i].item).v);
	ADD_COLUMN(uint32_t, c[i].count);
	ADD_COLUMN(uint16_t, c[i].x);
	ADD_COLUMN(uint16_t, c[i].width);
	ADD_COLUMN(uint8_t, c[i].busy);
	ADD_COLUMN(uint8_t, events ? event_tint(m, c[i].item) : sample_tint(m, c[i].item));
}

static void add_values(struct buf *to, const struct tile_cell *c, uint32_t n)
{
	ADD_COLUMN(double, c[i].min);
	ADD_COLUMN(double, c[i].max);
	ADD_COLUMN(double, c[i].last);
	ADD_COLUMN(uint16_t, c[i].x);
	ADD_COLUMN(uint16_t, c[i].width);
}

/* Adds a tile: row, level, index (a double), number of cells, kind; then its columns. Each begins at a multiple of
 * 8. */
ow_status page_add_tile(struct ow_ui *ui, struct buf *to, const uint64_t key[3],
			struct ow_error *err)
{
	struct tile_cell cells[TILE_BUCKETS];
	const struct tile_row *row;
	uint32_t n = 0, head[4];
	double index = (double)key[2];

	if (key[0] >= tiles_row_count(ui->tiles) || key[1] >= TILE_LEVELS)
		return error_set(err, OW_E_USAGE, "there is no row %llu or no level %llu",
				 (unsigned long long)key[0], (unsigned long long)key[1]);
	row = tiles_row(ui->tiles, (uint32_t)key[0]);
	OW_TRY(tile_read(ui->tiles, (uint32_t)key[0], (uint32_t)key[1], key[2], cells, &n, err));
	head[0] = (uint32_t)key[0];
	head[1] = (uint32_t)key[1];
	head[2] = n;
	head[3] = (uint32_t)row->kind;
	buf_add(to, &index, sizeof(index));
	buf_add(to, head, sizeof(head));
	if (row->kind >= TILE_COUNTER)
		add_values(to, cells, n);
	else
		add_items(to, ui->profile->m, row->kind, cells, n);
	pad(to, 8);
	return OW_OK;
}

/* Parses the key of a tile: "row level index". */
static bool parse_key(struct str line, uint64_t key[3])
{
	struct str word;
	int64_t number;

	for (int i = 0; i < 3; i++) {
		if (!str_split(&line, ' ', &word) || !str_to_i64(word, &number) || number < 0)
			return false;
		key[i] = (uint64_t)number;
	}
	return true;
}

/* Keys of a request, at most TILES_MAX. */
static ow_status parse_keys(struct str rest, uint64_t (*keys)[3], uint32_t *count,
			    struct ow_error *err)
{
	struct str line;

	*count = 0;
	while (str_split(&rest, '\n', &line)) {
		if (!line.len)
			continue;
		if (*count >= TILES_MAX || !parse_key(line, keys[*count]))
			return error_set(err, OW_E_USAGE,
					 "a request holds up to %u lines 'row level index'",
					 TILES_MAX);
		++*count;
	}
	return OW_OK;
}

static ow_status add_tiles(struct ow_ui *ui, uint64_t (*keys)[3], uint32_t count, struct buf *to,
			   struct ow_error *err)
{
	uint32_t rows = tiles_row_count(ui->tiles);

	/* From the last one: the thread that builds all rows comes from the first (ui.c). */
	for (uint32_t i = count; i-- > 0;)
		if (keys[i][0] < rows && keys[i][1] < TILE_LEVELS)
			OW_TRY(tile_prepare(ui->tiles, (uint32_t)keys[i][0], (uint32_t)keys[i][1],
					    keys[i][2], err));
	for (uint32_t i = 0; i < count; i++)
		OW_TRY(page_add_tile(ui, to, keys[i], err));
	return OW_OK;
}

PAGE_HANDLER(tiles)
{
	struct ow_ui *u = ui;
	struct reading reading;
	struct ow_error err = { 0 };
	uint64_t keys[TILES_MAX][3];
	uint32_t count;
	ow_status status;

	if (!page_ready(u, reply))
		return;
	status = parse_keys(request->body, keys, &count, &err);
	if (status == OW_OK)
		status = api_read_begin(u->profile, 0, &reading, &err);
	if (status == OW_OK) {
		status = add_tiles(u, keys, count, &reply->body, &err);
		status = api_read_end(u->profile, &reading, status, &err);
	}
	reply->type = "application/octet-stream";
	if (status != OW_OK)
		page_fail(reply, status, &err);
}

/* Adds the texts of string ids, which the request lists one per line, in the same order. */
static void add_names(const struct model *m, struct str rest, struct buf *to)
{
	struct str line;
	uint32_t count = 0;
	int64_t id;

	buf_puts(to, "[");
	while (str_split(&rest, '\n', &line) && count < NAMES_MAX) {
		if (!line.len)
			continue;
		buf_puts(to, count++ ? ",\n" : "");
		if (str_to_i64(line, &id) && id >= 0 && id < m->strings.count)
			json_quote(to, m->strings.text[id]);
		else
			buf_puts(to, "null");
	}
	buf_puts(to, "]\n");
}

PAGE_HANDLER(names)
{
	struct ow_ui *u = ui;
	struct reading reading;
	struct ow_error err = { 0 };
	ow_status status;

	if (!page_ready(u, reply))
		return;
	status = api_read_begin(u->profile, 0, &reading, &err);
	if (status == OW_OK) {
		add_names(u->profile->m, request->body, &reply->body);
		status = api_read_end(u->profile, &reading, status, &err);
	}
	if (status != OW_OK)
		page_fail(reply, status, &err);
}

/* Returns the item of a row at a time, or the next one in a direction. */
PAGE_HANDLER(near)
{
	struct ow_ui *u = ui;
	int64_t row = server_param_int(request, "row", -1);
	int64_t at = server_param_int(request, "at", 0);
	int64_t direction = server_param_int(request, "direction", 0);
	struct reading reading;
	struct ow_error err = { 0 };
	uint32_t item = 0;
	ow_status status;

	if (!page_ready(u, reply))
		return;
	if (row < 0 || row >= tiles_row_count(u->tiles) ||
	    tiles_row(u->tiles, (uint32_t)row)->kind == TILE_SERIES) {
		server_fail(reply, 404, "there is no row %lld with items", (long long)row);
		return;
	}
	status = api_read_begin(u->profile, 0, &reading, &err);
	if (status == OW_OK) {
		item = tile_item_at(u->tiles, (uint32_t)row, wrap_add(u->zero_ns, at),
				    direction < 0 ? -1 : direction > 0);
		status = api_read_end(u->profile, &reading, status, &err);
	}
	if (status != OW_OK)
		page_fail(reply, status, &err);
	else
		buf_printf(&reply->body, "{\"row\": %lld, \"item\": %u}\n", (long long)row, item);
}
