/*
 * merge_top_level.c: writes the text after the events of a merged trace: names of processes that have none, and the
 * members of the top-level object. Frames and samples of all files are joined; members that are the same in all files
 * stay where they were; the others go to metadata, file by file. Values whose keys look like environment variables are
 * left out, because traces are passed on to other people.
 */
#include "merge/merge_int.h"

#define FLUSH_BYTES ((size_t)256 << 10)
#define SHARED_MAX ((uint64_t)1 << 20) /* larger members are not compared */
#define CANDIDATES_MAX 256
#define OWN_KEY "opwatch-merge"

struct top_level {
	struct merge *m;
	struct merge_worker w; /* w.out holds the text to write */
	struct buf text, frame;
	struct candidate {
		const struct merge_member *member; /* the member as the first file has it */
		uint64_t hash;
		bool shared;
	} candidates[CANDIDATES_MAX];
	size_t candidate_count;
};

static ow_status flush(struct top_level *t, bool all)
{
	struct buf *out = &t->w.out;
	ow_status status;

	if (out->failed || t->text.failed || t->frame.failed)
		return error_no_memory(t->m->err);
	if (t->w.status != OW_OK) {
		if (t->m->err)
			*t->m->err = t->w.err;
		return t->w.status;
	}
	if (out->len < FLUSH_BYTES && !all)
		return OW_OK;
	if (!merge_poll(t->m))
		return error_set(t->m->err, OW_E_INTERRUPTED, "interrupted");
	status = merged_write(t->m, buf_str(out), t->m->err);
	buf_clear(out);
	return status;
}

static bool add_pid(struct buf *out, const struct process *process)
{
	if (process->changed)
		buf_add(out, process->written, process->written_len);
	else if (process->kind == PID_INT)
		buf_printf(out, "%" PRId64, process->value);
	else if (process->kind == PID_TEXT && process->quoted)
		json_quote_raw(out, process->text);
	else
		return false;
	return true;
}

static void add_name(struct top_level *t, const struct process *process)
{
	struct str label = t->m->files[process->file]->label;
	struct buf *out = &t->w.out;
	size_t start = out->len;

	buf_puts(out, t->m->any_event ? ",\n" : "\n");
	buf_puts(out, "{\"name\":\"process_name\",\"ph\":\"M\",\"pid\":");
	if (!add_pid(out, process)) {
		out->len = start;
		return;
	}
	buf_puts(out, ",\"tid\":0,\"args\":{\"name\":\"");
	json_escape(out, label);
	if (process->kind == PID_TEXT && process->text.len) {
		buf_puts(out, LABEL_SEPARATOR);
		json_escape_raw(out, process->text);
	}
	buf_puts(out, "\"}}");
	t->m->any_event = true;
	t->m->counts->added++;
}

static ow_status write_names(struct top_level *t)
{
	const struct processes *p = &t->m->processes;

	for (size_t i = 0; i < p->count; i++) {
		const struct process *process = p->list[i];

		if (process->used && !process->named && t->m->files[process->file]->label.len)
			add_name(t, process);
		OW_TRY(flush(t, false));
	}
	return OW_OK;
}

static bool same_key(struct str key, const char *const *list, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (json_key_is(key, list[i]))
			return true;
	return false;
}

/* Whether a member is joined from all files. */
static bool is_joined(struct str key)
{
	static const char *const keys[] = { "traceEvents", "stackFrames", "samples" };

	return same_key(key, keys, ARRAY_COUNT(keys));
}

/* Whether a member is valid only if times are not changed. */
static bool is_clock(struct str key)
{
	static const char *const keys[] = { "baseTimeNanoseconds", "beginningOfTime" };

	return same_key(key, keys, ARRAY_COUNT(keys));
}

static bool contains_word(struct str key, const char *word)
{
	size_t len = strlen(word);

	for (size_t i = 0; i + len <= key.len; i++) {
		size_t k = 0;

		while (k < len && (key.ptr[i + k] | 0x20) == word[k])
			k++;
		if (k == len)
			return true;
	}
	return false;
}

/* Whether a key looks like an environment variable (LD_LIBRARY_PATH, HOME, env) or a secret. */
static bool looks_secret(struct str key)
{
	static const char *const names[] = { "PATH",	 "HOME",
					     "USER",	 "PWD",
					     "HOSTNAME", "SHELL",
					     "LOGNAME",	 "MAIL",
					     "env",	 "ENV",
					     "environ",	 "environment",
					     "env_vars", "environment_variables" };
	static const char *const words[] = { "secret", "passw",	     "credential", "api_key",
					     "apikey", "access_key", "auth_token", "access_token" };
	bool underscore = false;

	if (same_key(key, names, ARRAY_COUNT(names)))
		return true;
	for (size_t i = 0; i < ARRAY_COUNT(words); i++)
		if (contains_word(key, words[i]))
			return true;
	for (size_t i = 0; i < key.len; i++) {
		char c = key.ptr[i];

		if (c == '_')
			underscore = true;
		else if (!(c >= 'A' && c <= 'Z') && !(c >= '0' && c <= '9'))
			return false;
	}
	return underscore && key.len > 2;
}

/* Adds one stack frame; its key and its parent's key get the number of the file. */
static ow_status add_frame(struct top_level *t, struct merge_file *file,
			   const struct json_item *item, bool *first)
{
	struct merge_member member = { .kind = item->value,
				       .offset = item->offset,
				       .size = item->size };
	struct json_value key = { item->key.at, item->key.len, JSON_STRING }, parent;
	struct buf *out = &t->w.out;

	OW_TRY(member_read(file, &member, VALUE_MAX, &t->text, t->m->err));
	if (!t->text.len)
		return OW_OK;
	buf_puts(out, *first ? "\n" : ",\n");
	*first = false;
	if (!frame_id_move(file->number, &key, out))
		json_quote_raw(out, json_text(key));
	buf_add_char(out, ':');
	parent = json_find(buf_str(&t->text), "parent");
	buf_clear(&t->frame);
	if (parent.kind == JSON_STRING || parent.kind == JSON_NUMBER) {
		bool quoted = parent.kind == JSON_STRING;
		const char *from = parent.at - quoted, *to = parent.at + parent.len + quoted;

		buf_add(&t->frame, t->text.ptr, (size_t)(from - t->text.ptr));
		if (!frame_id_move(file->number, &parent, &t->frame))
			buf_add(&t->frame, from, (size_t)(to - from));
		buf_add(&t->frame, to, (size_t)(t->text.ptr + t->text.len - to));
	} else {
		buf_add_str(&t->frame, buf_str(&t->text));
	}
	json_repair(buf_str(&t->frame), NULL, out);
	return flush(t, false);
}

static ow_status add_frames(struct top_level *t, struct merge_file *file,
			    const struct merge_member *member, bool *first)
{
	struct json_scan *scan = &t->w.scan;
	struct json_doc doc = { 0 };
	struct json_item item;

	json_scan_seek(scan, member->offset);
	for (;;) {
		switch (json_scan_document(scan, &doc, &item)) {
		case ITEM_MEMBER:
			OW_TRY(add_frame(t, file, &item, first));
			break;
		case ITEM_DAMAGE:
			break;
		case ITEM_FAILED:
			if (t->m->err)
				*t->m->err = t->w.err;
			return scan->status;
		default:
			return OW_OK;
		}
	}
}

static ow_status add_samples(struct top_level *t, struct merge_file *file,
			     const struct merge_member *member, bool *first)
{
	struct json_scan *scan = &t->w.scan;
	struct json_event ev;

	(void)first; /* unused: every event brings its own separator */
	json_scan_seek(scan, member->offset + 1);
	for (;;) {
		switch (json_scan_event(scan, UINT64_MAX, &ev)) {
		case SCAN_EVENT:
			if (filter_time(file, &ev))
				rewrite_sample(&t->w, &ev);
			OW_TRY(flush(t, false));
			break;
		case SCAN_OTHER:
		case SCAN_DAMAGE:
			break;
		case SCAN_FAILED:
			if (t->m->err)
				*t->m->err = t->w.err;
			return scan->status;
		default:
			return OW_OK;
		}
	}
}

typedef ow_status (*add_fn)(struct top_level *t, struct merge_file *file,
			    const struct merge_member *member, bool *first);

static ow_status enter(struct top_level *t, struct merge_file *file)
{
	OW_TRY(file_enter(file, t->m->err));
	worker_aim(&t->w, file);
	return OW_OK;
}

static void leave(struct top_level *t, struct merge_file *file)
{
	t->w.file = NULL;
	file_leave(file);
}

/* Writes a table or list of which each file may have a part. */
static ow_status write_joined(struct top_level *t, const char *key, enum json_kind kind, add_fn add)
{
	bool any = false, first = true;

	for (size_t i = 0; i < t->m->file_count; i++) {
		struct merge_file *file = t->m->files[i];
		const struct merge_member *member = member_find(file, key);
		ow_status status;

		if (!member || member->kind != kind)
			continue;
		if (!any)
			buf_printf(&t->w.out, ",\n\"%s\":%c", key, kind == JSON_OBJECT ? '{' : '[');
		any = true;
		OW_TRY(flush(t, true));
		OW_TRY(enter(t, file));
		status = add(t, file, member, &first);
		leave(t, file);
		OW_TRY(status);
		/* no comma before the first element */
		if (kind == JSON_ARRAY && first && t->w.out.len) {
			first = false;
			memmove(t->w.out.ptr, t->w.out.ptr + 1, --t->w.out.len);
		}
	}
	if (any)
		buf_puts(&t->w.out, kind == JSON_OBJECT ? "}" : "]");
	return flush(t, false);
}

static ow_status hash_member(struct top_level *t, struct merge_file *file,
			     const struct merge_member *member, uint64_t *hash)
{
	OW_TRY(member_read(file, member, SHARED_MAX, &t->text, t->m->err));
	*hash = map_hash_u64(str_hash(buf_str(&t->text)), (uint64_t)member->kind + 1);
	return OW_OK;
}

static bool may_be_shared(const struct top_level *t, const struct merge_file *file, size_t i)
{
	const struct merge_member *member = &file->members[i];

	if (is_joined(member->key) || json_key_is(member->key, "displayTimeUnit") ||
	    member->size > (t->m->several ? SHARED_MAX : VALUE_MAX))
		return false;
	if (is_clock(member->key) && (t->m->several || t->m->options->align != ALIGN_KEEP))
		return false;
	/* if a name occurs twice, the last member counts */
	for (size_t k = i + 1; k < file->member_count; k++)
		if (str_eq(file->members[k].key, member->key))
			return false;
	return true;
}

static ow_status find_candidates(struct top_level *t)
{
	struct merge_file *file = t->m->files[0];

	for (size_t i = 0; i < file->member_count && t->candidate_count < CANDIDATES_MAX; i++) {
		struct candidate *c = &t->candidates[t->candidate_count];

		if (!may_be_shared(t, file, i))
			continue;
		*c = (struct candidate){ .member = &file->members[i], .shared = true };
		if (t->m->several)
			OW_TRY(hash_member(t, file, c->member, &c->hash));
		/* metadata of an earlier merge belongs to the file, not to this merge */
		if (json_key_is(c->member->key, "metadata")) {
			OW_TRY(member_read(file, c->member, SHARED_MAX, &t->text, t->m->err));
			c->shared = c->member->kind == JSON_OBJECT && t->text.len &&
				    json_find(buf_str(&t->text), OWN_KEY).kind == JSON_NONE;
		}
		t->candidate_count++;
	}
	return OW_OK;
}

static ow_status compare_candidates(struct top_level *t, struct merge_file *file)
{
	for (size_t i = 0; i < t->candidate_count; i++) {
		struct candidate *c = &t->candidates[i];
		const struct merge_member *member = NULL;
		uint64_t hash;

		for (size_t k = 0; k < file->member_count && c->shared; k++)
			if (str_eq(file->members[k].key, c->member->key))
				member = &file->members[k];
		if (c->shared && member && member->size == c->member->size) {
			OW_TRY(hash_member(t, file, member, &hash));
			c->shared = hash == c->hash;
		} else {
			c->shared = false;
		}
	}
	return OW_OK;
}

static ow_status find_shared(struct top_level *t)
{
	for (size_t i = 0; i < t->m->file_count; i++) {
		struct merge_file *file = t->m->files[i];
		ow_status status;

		OW_TRY(enter(t, file));
		status = i ? compare_candidates(t, file) : find_candidates(t);
		leave(t, file);
		OW_TRY(status);
	}
	return OW_OK;
}

static bool is_shared(const struct top_level *t, struct str key)
{
	for (size_t i = 0; i < t->candidate_count; i++)
		if (t->candidates[i].shared && str_eq(t->candidates[i].member->key, key))
			return true;
	return false;
}

/* Adds a value without parts that look secret; the value's own key is checked, too. */
static ow_status add_value(struct top_level *t, struct merge_file *file,
			   const struct merge_member *member)
{
	struct buf *out = &t->w.out;

	OW_TRY(member_read(file, member, VALUE_MAX, &t->text, t->m->err));
	if (looks_secret(member->key)) {
		buf_puts(out, "\"(hidden)\"");
		t->m->counts->hidden++;
	} else {
		t->m->counts->hidden += json_repair(buf_str(&t->text), looks_secret, out);
	}
	return flush(t, false);
}

static ow_status write_shared(struct top_level *t)
{
	struct merge_file *file = t->m->files[0];
	ow_status status = enter(t, file);

	if (status != OW_OK)
		return status;
	for (size_t i = 0; i < t->candidate_count && status == OW_OK; i++) {
		const struct merge_member *member = t->candidates[i].member;

		if (!t->candidates[i].shared || json_key_is(member->key, "metadata"))
			continue;
		buf_puts(&t->w.out, ",\n");
		json_quote_raw(&t->w.out, member->key);
		buf_add_char(&t->w.out, ':');
		status = add_value(t, file, member);
	}
	leave(t, file);
	return status;
}

static const char *align_name(enum merge_align align)
{
	static const char *const names[] = { "keep", "start", "sequence", "clocks" };

	return names[align];
}

static ow_status add_pids(struct top_level *t, const struct merge_file *file)
{
	const struct processes *p = &t->m->processes;
	struct buf *out = &t->w.out;
	bool first = true;

	for (size_t i = 0; i < p->count; i++) {
		const struct process *process = p->list[i];

		if (process->file != file->number || !process->changed)
			continue;
		buf_printf(out, "%s\"%s\":", first ? ",\"pids\":{" : ",", process->written);
		if (process->kind == PID_INT)
			buf_printf(out, "%" PRId64, process->value);
		else if (process->kind == PID_TEXT)
			json_quote_raw(out, process->text);
		else
			buf_puts(out, "null");
		first = false;
		OW_TRY(flush(t, false));
	}
	if (!first)
		buf_add_char(out, '}');
	return OW_OK;
}

static ow_status add_members(struct top_level *t, struct merge_file *file)
{
	struct buf *out = &t->w.out;
	bool first = true;

	for (size_t i = 0; i < file->member_count; i++) {
		const struct merge_member *member = &file->members[i];

		if (is_joined(member->key) || is_shared(t, member->key))
			continue;
		if (member->size > VALUE_MAX) {
			merge_note(t->m, "%s: \"%.*s\" is too large to be kept", file->path,
				   STR_ARG(member->key));
			file->faults.lost_members++;
			continue;
		}
		buf_puts(out, first ? ",\"members\":{" : ",");
		json_quote_raw(out, member->key);
		buf_add_char(out, ':');
		first = false;
		OW_TRY(add_value(t, file, member));
	}
	if (!first)
		buf_add_char(out, '}');
	return OW_OK;
}

static ow_status add_file(struct top_level *t, struct merge_file *file)
{
	struct buf *out = &t->w.out;
	ow_status status;

	buf_puts(out, file->number ? ",\n{\"file\":" : "\n{\"file\":");
	json_quote(out, file->name);
	if (file->label.len) {
		buf_puts(out, ",\"label\":");
		json_quote(out, file->label);
	}
	buf_printf(out, ",\"events\":%" PRIu64 ",\"shift_ns\":%" PRId64, file->events_out,
		   file->shift_ns);
	if (file->clock)
		buf_printf(out, ",\"clock_drift_ppm\":%.6f,\"clock_pieces\":%zu",
			   file->clock->pieces[0].drift * 1e6, file->clock->piece_count);
	OW_TRY(add_pids(t, file));
	OW_TRY(enter(t, file));
	status = add_members(t, file);
	leave(t, file);
	buf_add_char(out, '}');
	OW_TRY(status);
	return flush(t, false);
}

/* Adds the members of metadata that all files share, after our own. */
static ow_status add_shared_metadata(struct top_level *t)
{
	struct merge_file *file = t->m->files[0];
	struct buf *out = &t->w.out;
	ow_status status = OW_OK;

	for (size_t i = 0; i < t->candidate_count; i++) {
		const struct merge_member *member = t->candidates[i].member;

		if (!t->candidates[i].shared || !json_key_is(member->key, "metadata"))
			continue;
		OW_TRY(enter(t, file));
		status = member_read(file, member, VALUE_MAX, &t->text, t->m->err);
		leave(t, file);
		OW_TRY(status);
		buf_clear(&t->frame);
		t->m->counts->hidden += json_repair(buf_str(&t->text), looks_secret, &t->frame);
		if (t->frame.len > 2) { /* the frame's text without its brackets is not empty */
			buf_puts(out, ",\n");
			buf_add(out, t->frame.ptr + 1, t->frame.len - 2);
		}
	}
	return flush(t, false);
}

static ow_status write_metadata(struct top_level *t)
{
	struct buf *out = &t->w.out;

	buf_puts(out, ",\n\"metadata\":{\"" OWN_KEY "\":{\"writer\":");
	json_quote(out, str_from(t->m->options->writer));
	buf_printf(out, ",\"align\":\"%s\",\"files\":[", align_name(t->m->options->align));
	for (size_t i = 0; i < t->m->file_count; i++)
		OW_TRY(add_file(t, t->m->files[i]));
	buf_puts(out, "]}");
	OW_TRY(add_shared_metadata(t));
	buf_puts(out, "}");
	return OW_OK;
}

/* Writes displayTimeUnit, which only affects how viewers show times: the finest unit of any file. */
static ow_status write_unit(struct top_level *t)
{
	const char *unit = NULL;

	for (size_t i = 0; i < t->m->file_count; i++) {
		struct merge_file *file = t->m->files[i];
		const struct merge_member *member = member_find(file, "displayTimeUnit");
		ow_status status;

		if (!member || member->kind != JSON_STRING)
			continue;
		OW_TRY(enter(t, file));
		status = member_read(file, member, SHARED_MAX, &t->text, t->m->err);
		leave(t, file);
		OW_TRY(status);
		if (str_eq(buf_str(&t->text), STR("\"ns\"")))
			unit = "ns";
		else if (!unit)
			unit = "ms";
	}
	if (unit)
		buf_printf(&t->w.out, ",\n\"displayTimeUnit\":\"%s\"", unit);
	return OW_OK;
}

static ow_status write_all(struct top_level *t)
{
	struct merge *m = t->m;

	OW_TRY(write_names(t));
	buf_puts(&t->w.out, "\n]");
	OW_TRY(write_unit(t));
	if (m->several && m->base_ns)
		buf_printf(&t->w.out, ",\n\"baseTimeNanoseconds\":%" PRId64, m->base_ns);
	OW_TRY(write_joined(t, "stackFrames", JSON_OBJECT, add_frames));
	OW_TRY(write_joined(t, "samples", JSON_ARRAY, add_samples));
	OW_TRY(find_shared(t));
	OW_TRY(write_shared(t));
	OW_TRY(write_metadata(t));
	buf_puts(&t->w.out, "}\n");
	return flush(t, true);
}

ow_status top_level_write(struct merge *m)
{
	struct top_level *t = mem_zalloc(m->mem, sizeof(*t));
	ow_status status;

	if (!t)
		return error_no_memory(m->err);
	t->m = m;
	worker_init(&t->w, m, NULL);
	buf_init(&t->text, m->mem);
	buf_init(&t->frame, m->mem);
	status = write_all(t);
	buf_release(&t->frame);
	buf_release(&t->text);
	worker_release(&t->w);
	mem_free(m->mem, t, sizeof(*t));
	return status;
}
