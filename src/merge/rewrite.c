/*
 * rewrite.c: the write pass. An event is copied unchanged except for the values that must change; text that is not
 * strict JSON is rewritten. Ids of flows, asynchronous events and frames must not collide with those of other files:
 * ids of file k are increased by k times a power of two, so that no list of ids is needed and numbers stay numbers.
 */
#include "merge/merge_int.h"

#include "base/vec.h"

enum id_form { ID_DECIMAL, ID_HEX, ID_BARE_HEX, ID_OTHER };

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool parse_id(struct str text, unsigned base, uint64_t *value)
{
	uint64_t sum = 0;

	if (!text.len)
		return false;
	for (size_t i = 0; i < text.len; i++) {
		int digit = hex_value(text.ptr[i]);

		if (digit < 0 || (unsigned)digit >= base ||
		    sum > (UINT64_MAX - (unsigned)digit) / base)
			return false;
		sum = sum * base + (unsigned)digit;
	}
	*value = sum;
	return true;
}

static enum id_form form_of(const struct json_value *id, bool *negative, uint64_t *value)
{
	struct str text = json_text(*id);

	*negative = text.len > 1 && *text.ptr == '-';
	if (parse_id(str_skip(text, *negative), 10, value))
		return ID_DECIMAL;
	if (*negative || id->kind != JSON_STRING)
		return ID_OTHER;
	if (text.len > 2 && text.ptr[0] == '0' && (text.ptr[1] | 0x20) == 'x')
		return parse_id(str_skip(text, 2), 16, value) ? ID_HEX : ID_OTHER;
	return parse_id(text, 16, value) ? ID_BARE_HEX : ID_OTHER;
}

/* Moves an id. Large ids are hashes or random numbers; a large odd step makes collisions unlikely. */
static uint64_t move_value(const struct merge *m, uint32_t file, uint64_t value)
{
	if (value >> m->id_bits == 0)
		return value + ((uint64_t)file << m->id_bits);
	do
		value += file * 0x9e3779b97f4a7c15ull;
	while (value >> m->id_bits < m->file_count);
	return value;
}

static void add_prefixed(struct buf *out, uint32_t file, struct str raw)
{
	buf_printf(out, "\"%" PRIu32 ":", file + 1);
	json_escape_raw(out, raw);
	buf_add_char(out, '"');
}

bool id_move(const struct merge *m, uint32_t file, const struct json_value *id, struct buf *out)
{
	const char *quote = id->kind == JSON_STRING ? "\"" : "";
	uint64_t value = 0;
	bool negative;

	if (!file || (id->kind != JSON_STRING && id->kind != JSON_NUMBER))
		return false;
	switch (form_of(id, &negative, &value)) {
	case ID_DECIMAL:
		buf_printf(out, "%s%s%" PRIu64 "%s", quote, negative ? "-" : "",
			   move_value(m, file, value), quote);
		break;
	case ID_HEX:
		buf_printf(out, "\"0x%0*" PRIx64 "\"", (int)MIN(id->len - 2, 16u),
			   move_value(m, file, value));
		break;
	case ID_BARE_HEX:
		buf_printf(out, "\"%0*" PRIx64 "\"", (int)MIN(id->len, 16u),
			   move_value(m, file, value));
		break;
	case ID_OTHER:
		add_prefixed(out, file, json_text(*id));
		break;
	}
	return true;
}

/* Moves a frame id. Frames are keys of a JSON object, so the result is always text. */
bool frame_id_move(uint32_t file, const struct json_value *id, struct buf *out)
{
	if (!file || (id->kind != JSON_STRING && id->kind != JSON_NUMBER))
		return false;
	add_prefixed(out, file, json_text(*id));
	return true;
}

/* written before every event; the first event of the output loses the comma */
#define SEPARATOR ",\n"

/* Records an edit: the text in scratch from `from` on replaces these bytes of the event. */
static void add_edit(struct merge_worker *w, const struct json_event *ev, const char *at,
		     size_t len, size_t from)
{
	struct edit edit = { (uint32_t)(at - ev->text), (uint32_t)len, (uint32_t)from,
			     (uint32_t)(w->scratch.len - from) };
	size_t k;

	if (!vec_reserve(w->m->mem, w->edits, w->edit_cap, w->edit_count + 1)) {
		worker_fail(w, error_no_memory(&w->err));
		return;
	}
	for (k = w->edit_count++; k > 0 && w->edits[k - 1].at > edit.at; k--)
		w->edits[k] = w->edits[k - 1];
	w->edits[k] = edit;
}

/* Replaces a whole value with its quotes. */
static void replace_value(struct merge_worker *w, const struct json_event *ev,
			  const struct json_value *value, size_t from)
{
	bool quoted = value->kind == JSON_STRING;

	add_edit(w, ev, value->at - quoted, value->len + 2u * quoted, from);
}

static struct process *find_process(struct merge_worker *w, const struct json_value *pid)
{
	struct process *process = process_of(w->m, w->file->number, pid, false);

	if (process)
		return process;
	/* The number of a new process depends on the processes met before, so wait for this part's turn. */
	if (!worker_take_turn(w))
		return NULL;
	process = process_of(w->m, w->file->number, pid, true);
	if (!process)
		worker_fail(w, error_no_memory(&w->err));
	return process;
}

/* Like find_process, with a cache for short pids. */
static struct process *worker_process(struct merge_worker *w, const struct json_value *pid)
{
	struct process *process;
	uint64_t word;
	size_t slot;

	if (pid->len > 8 || !pid->len)
		return find_process(w, pid);
	memcpy(&word, pid->at, 8); /* reading 8 bytes is safe: there is room after the window */
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
	word = __builtin_bswap64(word);
#endif
	if (pid->len < 8)
		word &= ((uint64_t)1 << 8 * pid->len) - 1;
	slot = (size_t)(word * 0x9e3779b97f4a7c15ull >> 58) % PID_CACHE;
	if (w->cache[slot].process && w->cache[slot].word == word &&
	    w->cache[slot].len == pid->len && w->cache[slot].kind == pid->kind)
		return w->cache[slot].process;
	process = find_process(w, pid);
	w->cache[slot].word = word;
	w->cache[slot].len = (uint8_t)pid->len;
	w->cache[slot].kind = (uint8_t)pid->kind;
	w->cache[slot].process = process;
	return process;
}

static void mark(struct merge_worker *w, const struct process *process, enum process_mark mark)
{
	struct mem *mem = w->m->mem;
	void *marks = w->marks;
	size_t old = w->marks_cap;

	if (process->id < w->marks_cap && w->marks[process->id] & mark)
		return;
	if (!mem_grow(mem, &marks, &w->marks_cap, (size_t)process->id + 1, 1) ||
	    !vec_reserve(mem, w->marked, w->marked_cap, w->marked_count + 1)) {
		w->marks = marks;
		worker_fail(w, error_no_memory(&w->err));
		return;
	}
	w->marks = marks;
	if (w->marks_cap > old)
		memset(w->marks + old, 0, w->marks_cap - old);
	if (!w->marks[process->id])
		w->marked[w->marked_count++] = process->id;
	w->marks[process->id] |= (uint8_t)mark;
}

/* Replaces the pid; false when the part is invalid. */
static bool edit_pid(struct merge_worker *w, const struct json_event *ev, char ph)
{
	static const struct json_value none = { .at = "" };
	bool has = json_event_has(ev, FIELD_PID);
	const struct json_value *pid = has ? &ev->value[FIELD_PID] : &none;
	struct process *process = worker_process(w, pid);
	size_t from = w->scratch.len;

	if (!process)
		return false;
	if (ph != 'M')
		mark(w, process, MARK_USED);
	else if (json_event_has(ev, FIELD_NAME) &&
		 str_eq(json_text(ev->value[FIELD_NAME]), STR("process_name")))
		mark(w, process, MARK_NAMED);
	if (!process->changed)
		return true;
	if (has) {
		buf_add(&w->scratch, process->written, process->written_len);
		replace_value(w, ev, pid, from);
	} else {
		buf_printf(&w->scratch, "\"pid\":%s,", process->written);
		add_edit(w, ev, ev->text + 1, 0, from);
	}
	return true;
}

static void edit_label(struct merge_worker *w, const struct json_event *ev)
{
	struct json_value name;
	size_t from = w->scratch.len;

	if (!json_event_has(ev, FIELD_ARGS) || ev->value[FIELD_ARGS].kind != JSON_OBJECT ||
	    !json_event_has(ev, FIELD_NAME) ||
	    !str_eq(json_text(ev->value[FIELD_NAME]), STR("process_name")))
		return;
	name = json_find(json_text(ev->value[FIELD_ARGS]), "name");
	if (name.kind != JSON_STRING)
		return;
	json_escape(&w->scratch, w->file->label);
	if (name.len)
		buf_puts(&w->scratch, LABEL_SEPARATOR);
	add_edit(w, ev, name.at, 0, from);
}

/* Whether ids of this event phase are global. Ids of objects, counters and contexts belong to their process, whose
 * pid makes them distinct. */
static bool has_global_id(char ph)
{
	return ph && strchr("stfbenSTpFvV", ph);
}

static void edit_id(struct merge_worker *w, const struct json_event *ev,
		    const struct json_value *id)
{
	size_t from = w->scratch.len;

	if (id_move(w->m, w->file->number, id, &w->scratch))
		replace_value(w, ev, id, from);
}

static void edit_frame(struct merge_worker *w, const struct json_event *ev,
		       const struct json_value *id)
{
	size_t from = w->scratch.len;

	if (frame_id_move(w->file->number, id, &w->scratch))
		replace_value(w, ev, id, from);
}

static void edit_ids(struct merge_worker *w, const struct json_event *ev, char ph)
{
	if (json_event_has(ev, FIELD_ID) && has_global_id(ph))
		edit_id(w, ev, &ev->value[FIELD_ID]);
	if (json_event_has(ev, FIELD_BIND_ID))
		edit_id(w, ev, &ev->value[FIELD_BIND_ID]);
	if (json_event_has(ev, FIELD_ID2)) {
		struct json_value id = json_find(json_text(ev->value[FIELD_ID2]), "global");

		if (id.kind != JSON_NONE)
			edit_id(w, ev, &id);
	}
	if (json_event_has(ev, FIELD_SF))
		edit_frame(w, ev, &ev->value[FIELD_SF]);
}

static bool is_zero(struct str text)
{
	int64_t ns;

	return json_decimal(text, 3, &ns) == JSON_EXACT && ns == 0;
}

/* Shifts a time, which is a number, or a number in a string. */
static void edit_time(struct merge_worker *w, const struct json_event *ev,
		      const struct json_value *value)
{
	const struct merge_file *file = w->file;
	struct str text = json_text(*value);
	size_t from = w->scratch.len;
	bool moved = false;

	if (value->kind == JSON_NUMBER || value->kind == JSON_STRING) {
		int64_t ns;

		if (file->zeros_apart && is_zero(text))
			moved = decimal_shift(STR("0"), file->start_ns, &w->scratch);
		else if (file->clock && json_decimal(text, 3, &ns) <= JSON_ROUNDED)
			moved = decimal_shift(text, clock_shift(file, ns), &w->scratch);
		else
			moved = decimal_shift(text, file->shift_ns, &w->scratch);
	}
	if (moved)
		add_edit(w, ev, value->at, value->len, from);
	else
		w->n.untimed++;
}

static void edit_ts(struct merge_worker *w, const struct json_event *ev, char ph)
{
	const struct json_value *ts = &ev->value[FIELD_TS];

	if (!json_event_has(ev, FIELD_TS) || (ph == 'M' && is_zero(json_text(*ts))))
		return;
	edit_time(w, ev, ts);
}

/* Shifts the times of a counter event with many values: "entries":[[ts, value, …], …]. */
static void edit_entries(struct merge_worker *w, const struct json_event *ev, struct str list)
{
	struct json_reader entries = json_over(list);
	struct json_value entry, ts;

	while (json_next_element(&entries, &entry)) {
		struct json_reader r = json_over(json_text(entry));

		if (entry.kind == JSON_ARRAY && json_next_element(&r, &ts))
			edit_time(w, ev, &ts);
	}
}

static void edit_others(struct merge_worker *w, const struct json_event *ev)
{
	struct json_reader r = json_over(str_make(ev->text, ev->len));
	struct json_value value;
	struct str key;

	while (json_next_member(&r, &key, &value)) {
		if (w->file->number && json_key_is(key, "esf"))
			edit_frame(w, ev, &value);
		else if (file_moves(w->file) && value.kind == JSON_ARRAY &&
			 json_key_is(key, "entries"))
			edit_entries(w, ev, json_text(value));
	}
}

static void add_edited(const struct merge_worker *w, const struct json_event *ev, struct buf *out)
{
	const char *text = ev->text;
	size_t at = 0;

	for (size_t i = 0; i < w->edit_count; i++) {
		const struct edit *edit = &w->edits[i];

		if (edit->at < at)
			continue;
		buf_add(out, text + at, edit->at - at);
		buf_add(out, w->scratch.ptr + edit->from, edit->size);
		at = edit->at + edit->len;
	}
	buf_add(out, text + at, ev->len - at);
}

static void emit(struct merge_worker *w, const struct json_event *ev)
{
	struct buf *out = &w->out;

	if (!buf_reserve(out, ev->len + w->scratch.len + sizeof(SEPARATOR)))
		goto failed;
	buf_add(out, SEPARATOR, sizeof(SEPARATOR) - 1);
	if (OW_LIKELY(json_strict(str_make(ev->text, ev->len)))) {
		add_edited(w, ev, out);
	} else {
		buf_clear(&w->edited);
		add_edited(w, ev, &w->edited);
		if (w->edited.failed)
			goto failed;
		json_repair(buf_str(&w->edited), NULL, out);
		w->n.repaired++;
	}
	w->n.written++;
	if (!out->failed && !w->scratch.failed)
		return;
failed:
	worker_fail(w, error_no_memory(&w->err));
}

#define RARE_FIELDS                                                                                \
	(1u << FIELD_ID | 1u << FIELD_ID2 | 1u << FIELD_BIND_ID | 1u << FIELD_SF |                 \
	 1u << FIELD_OTHER)

static void write_event(struct merge_worker *w, const struct json_event *ev)
{
	struct merge_file *file = w->file;
	char ph = event_ph(ev);

	if (w->m->filter.active && !filter_keep(w, ev)) {
		w->n.filtered++;
		return;
	}
	w->edit_count = 0;
	buf_clear(&w->scratch);
	if (w->m->several && json_event_has(ev, FIELD_PH)) {
		if (!edit_pid(w, ev, ph))
			return;
		if (ph == 'M' && file->label.len)
			edit_label(w, ev);
	}
	if (OW_UNLIKELY(ev->have & RARE_FIELDS) && (file->number || file_moves(file))) {
		if (file->number)
			edit_ids(w, ev, ph);
		if (json_event_has(ev, FIELD_OTHER))
			edit_others(w, ev);
	}
	if (file_moves(file))
		edit_ts(w, ev, ph);
	if (w->first_ns == NO_TIME && ph != 'M') {
		struct time_range span;

		if (event_span(ev, &span) && span.from)
			w->first_ns = span.from;
	}
	emit(w, ev);
}

void rewrite_sample(struct merge_worker *w, const struct json_event *ev)
{
	w->edit_count = 0;
	buf_clear(&w->scratch);
	if (w->file->number && json_event_has(ev, FIELD_SF))
		edit_frame(w, ev, &ev->value[FIELD_SF]);
	if (file_moves(w->file))
		edit_ts(w, ev, 'P');
	emit(w, ev);
}

static void begin(struct merge_worker *w)
{
	w->first_ns = NO_TIME;
}

static void prepare(struct merge_worker *w)
{
	ow_status status;

	if (w->m->out->pack != PACK_GZIP || !w->out.len)
		return;
	buf_clear(&w->packed);
	w->crc = gzip_crc(0, buf_str(&w->out));
	status = gzip_pack(&w->gzip, buf_str(&w->out), &w->packed, &w->err);
	if (status != OW_OK)
		worker_fail(w, status);
	w->is_packed = true;
}

static ow_status commit(struct merge_worker *w)
{
	struct merge_file *file = w->file;
	struct merge *m = w->m;
	struct str bytes = buf_str(&w->out);

	for (size_t i = 0; i < w->marked_count; i++) {
		struct process *process = m->processes.list[w->marked[i]];

		process->used |= (w->marks[process->id] & MARK_USED) != 0;
		process->named |= (w->marks[process->id] & MARK_NAMED) != 0;
	}
	/* an estimate, because times were not measured */
	if (w->first_ns != NO_TIME && !m->measured) {
		file->min_ns =
			file->min_ns == NO_TIME ? w->first_ns : MIN(file->min_ns, w->first_ns);
		file->max_ns = MAX(file->max_ns, w->first_ns);
	}
	if (!bytes.len)
		return OW_OK;
	if (!m->any_event) {
		m->any_event = true;
		return merged_write(m, str_skip(bytes, 1), &w->err);
	}
	if (w->is_packed)
		return merged_piece(m, bytes.len, w->crc, buf_str(&w->packed), &w->err);
	return merged_write(m, bytes, &w->err);
}

static ow_status file_end(struct merge_worker *w)
{
	filter_begin_file(w->m);
	return OW_OK;
}

void write_pass(struct pass *pass)
{
	*pass = (struct pass){ .m = pass->m,
			       .event = write_event,
			       .begin = begin,
			       .prepare = prepare,
			       .commit = commit,
			       .file_end = file_end,
			       .threads = pass->m->filter.active ? 1 : pass->m->threads };
}
