/*
 * sources.c: the files of a merge. Compressed ones are unpacked first, on all processors, into temporary files unless they are
 * small; members of archives are files of their own. Plain files are open only while they are read, so that there may be any
 * number of them. Also what stands around the events of a file: members of the top-level object are remembered by their place,
 * those that matter for the events are read; and a first sample of its pids.
 */
#include "merge/merge_int.h"
#include "base/temp_file.h"
#include "base/vec.h"

#include <unistd.h>

#define SMALL_VALUE ((uint64_t)256 << 10)
#define FIRST_EVENTS 1000 /* one of the first this many elements must look like an event */

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

ow_status member_read(struct merge_file *file, const struct merge_member *member, uint64_t max,
		      struct buf *text, struct ow_error *err)
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
			    struct ow_error *err)
{
	struct merge *m = file->m;
	struct merge_member member = { .kind = item->value,
				       .offset = item->offset,
				       .size = item->size,
				       .complete = item->complete };
	ow_status status = OW_OK;
	struct buf text;

	if (file->member_count == MEMBERS_MAX) {
		file->faults.lost_members++;
		return OW_OK;
	}
	pthread_mutex_lock(&m->files_lock); /* all threads share the arena */
	member.key = arena_str(&m->arena, json_text(item->key));
	pthread_mutex_unlock(&m->files_lock);
	if (!member.key.ptr ||
	    !vec_push(m->mem, file->members, file->member_count, file->member_cap, member))
		return error_no_memory(err);
	buf_init(&text, m->mem);
	status = member_read(file, &member, SMALL_VALUE, &text, err);
	if (status == OW_OK && text.len)
		use_value(&file->facts, member.key, without_quotes(&member, &text));
	buf_release(&text);
	return status;
}

ow_status outline_walk(struct merge_file *file, struct json_scan *scan, struct ow_error *err)
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

/* Whether the list at the scanner's position contains events; an empty list is accepted, too. */
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

static ow_status read_outline(struct merge_file *file, struct json_scan *scan, struct ow_error *err)
{
	bool good;

	file->faults = file->header_faults; /* faults of the surrounding object */
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

/* Reads the top-level members up to the first event list; OW_E_FORMAT when the file is not a trace. */
static ow_status outline_file(struct merge_file *file, struct ow_error *err)
{
	struct json_scan scan;
	ow_status status;

	OW_TRY(file_enter(file, err));
	json_scan_init(&scan, &file->in, err);
	status = read_outline(file, &scan, err);
	json_scan_release(&scan);
	file_leave(file);
	if (status == OW_OK)
		label_numbers(file);
	return status;
}

static ow_status sample(struct merge_file *file, struct json_scan *scan, struct ow_error *err)
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

#define UNPACK_MEMORY ((size_t)1 << 20) /* larger uncompressed content goes to a temporary file */
/* if small contents add up to more than this, they go to temporary files, too */
#define HELD_MAX ((size_t)64 << 20)
#define OPEN_INPUTS 64 /* this many inputs keep a descriptor; the others share one */

/* One path of the command line, opened. */
struct source {
	const char *path;
	struct input in;
	struct unpack_result unpacked;
	bool plain; /* a plain file, which was closed again */
	bool found; /* found in a directory, so it need not be a trace */
	uint64_t size;
	struct timespec mtime;
	struct ow_error err;
	ow_status status;
};

struct opening {
	struct merge *m;
	struct source *sources;
	size_t count;
	atomic_size_t next;
};

/* Whether a file that begins with `head` may be a trace; the rest of the file is not known yet. */
static ow_status judge(const char *name, struct str head, struct ow_error *err)
{
	size_t at = str_starts(head, str_from("\xef\xbb\xbf")) ? 3 : 0;

	if (unpack_container(head) || archive_starts(head))
		return OW_OK;
	while (at < head.len && head.ptr[at] && strchr(" \t\r\n", head.ptr[at]))
		at++;
	if (at < head.len && (head.ptr[at] == '{' || head.ptr[at] == '['))
		return OW_OK;
	return error_set(err, OW_E_FORMAT, "%s: not a Chrome trace", name);
}

static void open_source(struct merge *m, struct source *s)
{
	const struct input_options reading = { .judge = judge, .progress = &m->poll };
	const struct unpack_options options = { .memory_max = UNPACK_MEMORY, .judge = judge };

	s->status = input_open_with(&s->in, m->mem, s->path, &reading, &s->err);
	if (s->status != OW_OK)
		return;
	s->in.progress = &m->poll;
	s->size = s->in.size;
	s->mtime = s->in.mtime;
	s->status = unpack_input_with(&s->in, &options, &s->unpacked, &s->err);
	if (s->status != OW_OK) {
		input_close(&s->in);
		return;
	}
	/* a regular file has a time of change; pipes and standard input do not */
	s->plain = !s->unpacked.container && s->mtime.tv_sec && !archive_kind(&s->in);
	if (s->plain)
		input_close(&s->in);
}

static void open_some(void *arg, unsigned thread)
{
	struct opening *o = arg;

	(void)thread;
	for (;;) {
		size_t i = atomic_fetch_add(&o->next, 1);

		if (i >= o->count)
			return;
		open_source(o->m, &o->sources[i]);
	}
}

static struct merge_file *new_file(struct merge *m, const char *path)
{
	struct merge_file *file;

	if (!vec_reserve(m->mem, m->files, m->file_cap, m->file_count + 1))
		return NULL;
	file = ARENA_NEW(&m->arena, struct merge_file);
	if (!file)
		return NULL;
	*file = (struct merge_file){ .m = m,
				     .path = arena_cstr(&m->arena, str_from(path)),
				     .in = { .mem = m->mem, .fd = -1 },
				     .events_offset = UINT64_MAX,
				     .facts = { .rank = NO_NUMBER },
				     .name_rank = NO_NUMBER,
				     .step = NO_NUMBER,
				     .min_ns = NO_TIME,
				     .min_positive_ns = NO_TIME,
				     .max_ns = NO_TIME };
	buf_init(&file->opener_kept, m->mem);
	return file->path ? file : NULL;
}

static void release_file(struct merge_file *file)
{
	struct mem *mem = file->m->mem;

	input_close(&file->in);
	mem_free(mem, file->members, file->member_cap * sizeof(*file->members));
	mem_free(mem, file->steps, file->step_cap * sizeof(*file->steps));
	buf_release(&file->opener_kept);
}

/* Moves content from memory to a temporary file if there is much of it. */
static ow_status spill(struct merge *m, struct input *in, struct ow_error *err)
{
	struct input moved;
	ow_status status;
	int fd;

	if (!in->data || in->borrowed)
		return OW_OK;
	m->held += (size_t)in->size;
	if (m->held <= HELD_MAX)
		return OW_OK;
	m->held -= (size_t)in->size;
	fd = temp_file_open(err);
	if (fd < 0)
		return OW_E_IO;
	status = temp_file_write(fd, 0, in->data, (size_t)in->size, err);
	if (status == OW_OK)
		status = input_adopt_fd(&moved, in->mem, in->name, fd, err);
	if (status != OW_OK) {
		close(fd);
		return status;
	}
	moved.progress = in->progress;
	input_close(in);
	*in = moved;
	return OW_OK;
}

/* Takes over an input that cannot be opened again. */
static ow_status add_open_input(struct merge *m, struct input *in,
				const struct unpack_result *unpacked, bool found,
				struct ow_error *err)
{
	struct merge_file *file;

	OW_TRY(spill(m, in, err));
	if (m->file_count >= OPEN_INPUTS)
		OW_TRY(input_share_fd(in, &m->pool, err));
	file = new_file(m, in->name);
	if (!file)
		return error_no_memory(err);
	file->in = *in;
	file->in.progress = &m->poll;
	file->size = in->size;
	file->opened = true;
	file->found = found;
	in->fd = -1;
	*in = (struct input){ .mem = m->mem, .fd = -1 };
	if (unpacked->truncated) {
		file->header_faults.truncated = true;
		file->header_faults.truncated_at = unpacked->unpacked_size;
		merge_note(m,
			   "%s: the %s data is truncated or damaged (at byte %" PRIu64
			   "): %s; the part before it is merged",
			   file->path, unpacked->container, unpacked->damage_offset,
			   unpacked->message);
	}
	m->files[m->file_count++] = file;
	return OW_OK;
}

/* Keeps the first reason why a file is skipped: it becomes the error if no file is left, else a note at the end. */
static void note_skipped(struct merge *m, const struct ow_error *why, bool expected)
{
	bool report = !expected || (why->status != OW_E_FORMAT && why->status != OW_E_EMPTY);

	m->counts->skipped_files += report;
	if (m->err && m->err->status == OW_OK) {
		*m->err = *why;
		m->first_unreported = report;
	} else if (report) {
		merge_note(m, "%s; not merged", why->text);
	}
}

/* Whether a failure ends the whole merge; any other failure only skips the file. */
static bool fatal(ow_status status)
{
	return status == OW_E_NO_MEMORY || status == OW_E_INTERRUPTED || status == OW_E_INTERNAL;
}

static ow_status add_archive_member(struct merge *m, const struct archive *a,
				    const struct input *in, size_t index, struct ow_error *err)
{
	const struct unpack_options options = { .memory_max = UNPACK_MEMORY };
	struct unpack_result taken, unpacked;
	struct input member;
	ow_status status;

	OW_TRY(archive_take(a, in, index, &taken, &member, err));
	member.progress = &m->poll;
	status = unpack_input_with(&member, &options, &unpacked, err);
	if (status == OW_OK && !unpacked.truncated && taken.truncated)
		unpacked = taken;
	if (status == OW_OK && !unpacked.container)
		unpacked.container = a->kind;
	if (status == OW_OK)
		status = add_open_input(m, &member, &unpacked, true, err);
	if (status != OW_OK)
		input_close(&member);
	return status;
}

static ow_status add_archive(struct merge *m, struct source *s)
{
	struct archive a;
	ow_status status = archive_open(&a, &s->in, &s->err);

	if (status != OW_OK)
		return status;
	if (a.damaged)
		merge_note(m, "%s: the %s archive is damaged: %s", s->path, a.kind, a.message);
	for (size_t i = 0; i < a.count; i++) {
		struct ow_error why = { 0 };

		status = add_archive_member(m, &a, &s->in, i, &why);
		if (status == OW_OK)
			continue;
		if (fatal(status)) {
			s->err = why;
			archive_close(&a);
			return status;
		}
		note_skipped(m, &why, true);
	}
	archive_close(&a);
	return OW_OK;
}

static ow_status add_plain(struct merge *m, struct source *s)
{
	struct merge_file *file = new_file(m, s->path);

	if (!file)
		return error_no_memory(&s->err);
	file->reopen = true;
	file->found = s->found;
	file->size = s->size;
	file->mtime = s->mtime;
	m->files[m->file_count++] = file;
	return OW_OK;
}

static ow_status add_source(struct merge *m, struct source *s)
{
	if (s->status != OW_OK)
		return s->status;
	if (s->plain)
		return add_plain(m, s);
	if (archive_kind(&s->in))
		return add_archive(m, s);
	return add_open_input(m, &s->in, &s->unpacked, s->found, &s->err);
}

static ow_status add_sources(struct merge *m, struct source *sources, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		ow_status status = add_source(m, &sources[i]);

		input_close(&sources[i].in);
		if (status == OW_OK)
			continue;
		if (fatal(status)) {
			if (m->err)
				*m->err = sources[i].err;
			return status;
		}
		note_skipped(m, &sources[i].err, sources[i].found);
	}
	return OW_OK;
}

/* Drops files without events; the first reason why a file has none is reported if no file is left. */
static ow_status drop_others(struct merge *m)
{
	size_t kept = 0, count = m->file_count;
	ow_status status = OW_OK;

	for (size_t i = 0; i < count; i++) {
		struct merge_file *file = m->files[i];
		struct ow_error why = { 0 };

		if (status == OW_OK)
			status = outline_file(file, &why);
		if (status == OW_OK) {
			file->number = (uint32_t)kept;
			m->files[kept++] = file;
			continue;
		}
		release_file(file);
		if (fatal(status)) {
			if (m->err && why.status != OW_OK)
				*m->err = why;
			continue;
		}
		note_skipped(m, &why, file->found);
		status = OW_OK;
	}
	m->file_count = kept;
	return status;
}

ow_status sources_open(struct merge *m, const struct merge_path *paths, size_t count)
{
	struct opening o = { .m = m, .count = count };
	ow_status status;

	o.sources = mem_zalloc(m->mem, MAX(count, (size_t)1) * sizeof(*o.sources));
	if (!o.sources)
		return error_no_memory(m->err);
	for (size_t i = 0; i < count; i++) {
		o.sources[i].path = paths[i].name;
		o.sources[i].found = paths[i].found;
		o.sources[i].in = (struct input){ .mem = m->mem, .fd = -1 };
	}
	parallel_run((unsigned)MIN((size_t)m->threads, count), open_some, &o);
	status = add_sources(m, o.sources, count);
	for (size_t i = 0; i < count; i++)
		input_close(&o.sources[i].in);
	mem_free(m->mem, o.sources, MAX(count, (size_t)1) * sizeof(*o.sources));
	OW_TRY(status);
	OW_TRY(drop_others(m));
	if (m->file_count) {
		if (m->first_unreported)
			merge_note(m, "%s; not merged", m->err->text);
		error_clear(m->err);
		return OW_OK;
	}
	if (m->err && m->err->status != OW_OK)
		return m->err->status;
	return error_set(m->err, OW_E_FORMAT, "none of the files is a Chrome trace");
}

void sources_release(struct merge *m)
{
	for (size_t i = 0; i < m->file_count; i++)
		release_file(m->files[i]);
	mem_free(m->mem, m->files, m->file_cap * sizeof(*m->files));
	input_pool_release(m->pool);
}

static ow_status reopen(struct merge_file *file, struct ow_error *err)
{
	OW_TRY(input_open(&file->in, file->m->mem, file->path, err));
	if (file->in.size != file->size || file->in.mtime.tv_sec != file->mtime.tv_sec ||
	    file->in.mtime.tv_nsec != file->mtime.tv_nsec) {
		input_close(&file->in);
		return error_set(
			err, OW_E_IO,
			"%s: the file was changed while it was merged; merge again when its "
			"writer is done",
			file->path);
	}
	file->in.progress = &file->m->poll;
	file->opened = true;
	return OW_OK;
}

ow_status file_enter(struct merge_file *file, struct ow_error *err)
{
	ow_status status = OW_OK;

	pthread_mutex_lock(&file->m->files_lock);
	if (!file->opened)
		status = reopen(file, err);
	if (status == OW_OK)
		file->users++;
	pthread_mutex_unlock(&file->m->files_lock);
	return status;
}

void file_leave(struct merge_file *file)
{
	pthread_mutex_lock(&file->m->files_lock);
	if (!--file->users && file->reopen) {
		input_close(&file->in);
		file->opened = false;
	}
	pthread_mutex_unlock(&file->m->files_lock);
}
