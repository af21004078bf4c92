/*
 * sources.c: the files of a merge. Compressed ones are unpacked first, on all processors, into temporary
 * files unless they are small; members of archives are files of their own. Plain files are open only while
 * they are read, so that there may be any number of them.
 */
#include "merge/merge_int.h"

#include "base/temp_file.h"

#include <unistd.h>

#define UNPACK_MEMORY ((size_t)1 << 20) /* larger content goes to a file */
#define HELD_MAX ((size_t)64 << 20)	/* and small content, too, beyond this sum */
#define OPEN_INPUTS 64			/* of these keep a descriptor; others share one */

/* One path of the command line, opened. */
struct source {
	const char *path;
	struct input in;
	struct unpack_result unpacked;
	bool plain; /* closed again */
	bool found; /* it need not be a trace */
	uint64_t size;
	struct timespec mtime;
	struct error err;
	ow_status status;
};

struct opening {
	struct merge *m;
	struct source *sources;
	size_t count;
	atomic_size_t next;
};

/* Whether this may become a trace; the rest of it is not known yet. */
static ow_status judge(const char *name, struct str head, struct error *err)
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

/* ---- files of the merge ---- */

static struct merge_file *new_file(struct merge *m, const char *path)
{
	void *files = m->files;
	struct merge_file *file;

	if (!mem_grow(m->mem, &files, &m->file_cap, m->file_count + 1, sizeof(*m->files)))
		return NULL;
	m->files = files;
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

/* Content in memory goes to a temporary file when there is much of it. */
static ow_status spill(struct merge *m, struct input *in, struct error *err)
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
				const struct unpack_result *unpacked, bool found, struct error *err)
{
	struct merge_file *file;

	OW_TRY(spill(m, in, err));
	if (m->file_count >= OPEN_INPUTS)
		OW_TRY(input_park(in, &m->pool, err));
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
			   "%s: the %s data ends early or is damaged (at byte %" PRIu64
			   "): %s; what could be unpacked is merged",
			   file->path, unpacked->container, unpacked->damage_offset,
			   unpacked->message);
	}
	m->files[m->file_count++] = file;
	return OW_OK;
}

/* The first reason is kept: it is the error if no file is left, and told at the end if one is. */
static void note_skipped(struct merge *m, const struct error *why, bool expected)
{
	bool tell = !expected || (why->status != OW_E_FORMAT && why->status != OW_E_EMPTY);

	m->counts->skipped_files += tell;
	if (m->err && m->err->status == OW_OK) {
		*m->err = *why;
		m->tell_first = tell;
	} else if (tell) {
		merge_note(m, "%s; not merged", why->text);
	}
}

/* These end everything; any other failure only loses the file. */
static bool fatal(ow_status status)
{
	return status == OW_E_NO_MEMORY || status == OW_E_INTERRUPTED || status == OW_E_INTERNAL;
}

static ow_status add_member(struct merge *m, const struct archive *a, const struct input *in,
			    size_t index, struct error *err)
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
		struct error why = { 0 };

		status = add_member(m, &a, &s->in, i, &why);
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

/* Only what has events is merged; the first reason why a file has none is told when there is no other. */
static ow_status drop_others(struct merge *m)
{
	size_t kept = 0, count = m->file_count;
	ow_status status = OW_OK;

	for (size_t i = 0; i < count; i++) {
		struct merge_file *file = m->files[i];
		struct error why = { 0 };

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
		if (m->tell_first)
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

/* ---- opening again ---- */

static ow_status reopen(struct merge_file *file, struct error *err)
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

ow_status file_enter(struct merge_file *file, struct error *err)
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
