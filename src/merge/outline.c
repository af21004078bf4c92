/*
 * outline.c: what stands around the events of a file, and a first look at its pids. The members of the
 * top-level object are remembered by their place; those that matter for the events are read.
 */
#include "merge/merge_int.h"

#define SMALL_VALUE ((uint64_t)256 << 10)
#define FIRST_EVENTS 1000 /* of which one must look like one */

void fault_damage(struct faults *faults, uint64_t offset, uint64_t size)
{
	if (!faults->damaged++)
		faults->first_damage = offset;
	faults->damaged_bytes += size;
}

void faults_add(struct faults *to, const struct faults *more)
{
	if (more->damaged && !to->damaged)
		to->first_damage = more->first_damage;
	to->damaged += more->damaged;
	to->damaged_bytes += more->damaged_bytes;
	to->others += more->others;
	to->lost_members += more->lost_members;
	if (more->truncated && !to->truncated) {
		to->truncated = true;
		to->truncated_at = more->truncated_at;
	}
}

/* ---- members ---- */

ow_status member_read(struct merge_file *file, const struct merge_member *member, uint64_t max,
		      struct buf *text, struct error *err)
{
	buf_clear(text);
	if (member->size > max)
		return OW_OK;
	if (!buf_reserve(text, (size_t)member->size + 16))
		return error_no_memory(err);
	OW_TRY(input_read_at(&file->in, member->offset, text->ptr, (size_t)member->size, err));
	memset(text->ptr + member->size, 0, 16);
	text->len = (size_t)member->size;
	return OW_OK;
}

const struct merge_member *member_find(const struct merge_file *file, const char *key)
{
	for (size_t i = file->member_count; i-- > 0;)
		if (json_key_is(file->members[i].key, key))
			return &file->members[i];
	return NULL;
}

static struct str without_quotes(const struct merge_member *member, const struct buf *text)
{
	struct str s = buf_str(text);

	if (member->kind == JSON_STRING && s.len >= 2)
		return str_make(s.ptr + 1, s.len - 2);
	return s;
}

static void use_value(struct facts *facts, struct str key, struct str value)
{
	int64_t number;

	if (json_key_is(key, "baseTimeNanoseconds")) {
		if (json_decimal(value, 0, &number) == JSON_EXACT) {
			facts->base_ns = number;
			facts->has_base = true;
		}
	} else if (json_key_is(key, "beginningOfTime")) {
		if (json_decimal(value, 3, &number) == JSON_EXACT) {
			facts->base_ns = number;
			facts->has_base = true;
		}
	} else if (json_key_is(key, "distributedInfo")) {
		struct json_value rank = json_find(value, "rank");

		if (rank.kind != JSON_NONE &&
		    json_decimal(json_text(rank), 0, &number) == JSON_EXACT && number >= 0)
			facts->rank = number;
	}
}

static ow_status add_member(struct merge_file *file, const struct json_item *item,
			    struct error *err)
{
	struct merge *m = file->m;
	struct merge_member member = { .kind = item->value,
				       .offset = item->offset,
				       .size = item->size,
				       .complete = item->complete };
	void *members = file->members;
	ow_status status = OW_OK;
	struct buf text;

	if (file->member_count == MEMBERS_MAX) {
		file->faults.lost_members++;
		return OW_OK;
	}
	pthread_mutex_lock(&m->files_lock); /* the arena is everybody's */
	member.key = arena_str(&m->arena, json_text(item->key));
	pthread_mutex_unlock(&m->files_lock);
	if (!member.key.ptr || !mem_grow(m->mem, &members, &file->member_cap,
					 file->member_count + 1, sizeof(*file->members)))
		return error_no_memory(err);
	file->members = members;
	file->members[file->member_count++] = member;
	buf_init(&text, m->mem);
	status = member_read(file, &member, SMALL_VALUE, &text, err);
	if (status == OW_OK && text.len)
		use_value(&file->facts, member.key, without_quotes(&member, &text));
	buf_release(&text);
	return status;
}

ow_status outline_walk(struct merge_file *file, struct json_scan *scan, struct error *err)
{
	struct json_item item;

	for (;;) {
		switch (json_scan_document(scan, &file->doc, &item)) {
		case ITEM_EVENTS:
			file->expected = item.offset;
			file->bare = item.bare;
			return OW_OK;
		case ITEM_MEMBER:
			OW_TRY(add_member(file, &item, err));
			break;
		case ITEM_DOCUMENT:
			break;
		case ITEM_DAMAGE:
			fault_damage(&file->faults, item.offset, item.size);
			break;
		case ITEM_TRUNCATED:
			if (!file->faults.truncated) {
				file->faults.truncated = true;
				file->faults.truncated_at = item.offset;
			}
			break;
		case ITEM_EOF:
			file->finished = true;
			file->expected = UINT64_MAX;
			return OW_OK;
		case ITEM_FAILED:
			return scan->status;
		}
	}
}

void outline_rewind(struct merge_file *file)
{
	file->member_count = file->header_members;
	file->doc = file->doc_at_events;
	file->expected = file->events_offset;
	file->bare = file->events_bare;
	file->finished = file->events_offset == UINT64_MAX;
	file->faults = file->header_faults;
	file->openers = 0;
	file->events_in = file->events_out = file->filtered = file->repaired = file->untimed = 0;
}

/* ---- the first look ---- */

/* Whether the list at the scanner's place has events. Empty lists are fine, too. */
static bool has_events(struct json_scan *scan)
{
	struct json_event ev;

	for (int i = 0; i < FIRST_EVENTS; i++) {
		switch (json_scan_event(scan, UINT64_MAX, &ev)) {
		case SCAN_EVENT:
			if (json_event_has(&ev, FIELD_PH) && ev.value[FIELD_PH].kind == JSON_STRING)
				return true;
			break;
		case SCAN_OTHER:
		case SCAN_DAMAGE:
			break;
		case SCAN_END:
		case SCAN_TRUNCATED:
			return i == 0;
		case SCAN_STOP:
		case SCAN_FAILED:
			return false;
		}
	}
	return false;
}

static ow_status look(struct merge_file *file, struct json_scan *scan, struct error *err)
{
	bool good;

	file->faults = file->header_faults; /* of the container */
	OW_TRY(outline_walk(file, scan, err));
	good = !file->finished && (file->member_count || !file->faults.damaged);
	file->events_offset = file->expected;
	file->events_bare = file->bare;
	file->doc_at_events = file->doc;
	file->header_members = file->member_count;
	file->header_faults = file->faults;
	if (good && !file->doc.in_object)
		good = has_events(scan);
	if (scan->status != OW_OK)
		return scan->status;
	if (!file->in.size)
		return error_set(err, OW_E_EMPTY,
				 "%s: the file is empty; was it written to the end?", file->path);
	if (!good)
		return error_set(err, OW_E_FORMAT, "%s: not a Chrome trace", file->path);
	return OW_OK;
}

ow_status outline_file(struct merge_file *file, struct error *err)
{
	struct json_scan scan;
	ow_status status;

	OW_TRY(file_enter(file, err));
	json_scan_init(&scan, &file->in, err);
	status = look(file, &scan, err);
	json_scan_release(&scan);
	file_leave(file);
	if (status == OW_OK)
		label_numbers(file);
	return status;
}

/* ---- pids ---- */

static ow_status sample(struct merge_file *file, struct json_scan *scan, struct error *err)
{
	static const struct json_value none;
	struct merge *m = file->m;
	size_t bytes = m->options->sample_bytes ? m->options->sample_bytes : SAMPLE_BYTES;
	struct json_event ev;

	json_scan_seek(scan, file->events_offset);
	for (;;) {
		bool has;

		switch (json_scan_event(scan, file->events_offset + bytes, &ev)) {
		case SCAN_EVENT:
			break;
		case SCAN_OTHER:
			continue;
		case SCAN_FAILED:
			return scan->status;
		default:
			return OW_OK;
		}
		has = json_event_has(&ev, FIELD_PID);
		if (!json_event_has(&ev, FIELD_PH))
			continue;
		if (!process_of(m, file->number, has ? &ev.value[FIELD_PID] : &none, true))
			return error_no_memory(err);
	}
}

ow_status outline_sample(struct merge *m)
{
	for (size_t i = 0; i < m->file_count; i++) {
		struct merge_file *file = m->files[i];
		struct json_scan scan;
		ow_status status;

		if (file->events_offset == UINT64_MAX)
			continue;
		OW_TRY(file_enter(file, m->err));
		json_scan_init(&scan, &file->in, m->err);
		status = sample(file, &scan, m->err);
		json_scan_release(&scan);
		file_leave(file);
		OW_TRY(status);
	}
	return OW_OK;
}
