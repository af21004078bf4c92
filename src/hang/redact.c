/*
 * redact.c: removes the user's names from the evidence about a job (hang.h): files, hosts in their paths, functions and
 * groups are replaced by hashes, and messages of exceptions are cut. It runs after reading, when formats were
 * recognised, and before the answer, which uses these texts. Names of libraries that wait (torch, NCCL, Python's own)
 * are kept: the answer depends on them, and they reveal nothing about the user.
 */
#include "hang/answer.h"
#include "hang/hang.h"

#include "base/pseudonym.h"

struct hiding {
	struct hang_job *job;
	struct pseudonyms names;
	struct buf text;
};

/* The part of a library's path that is kept: "all_reduce (torch/distributed/distributed_c10d.py:1534)". */
static struct str library_path(struct str file)
{
	static const char *const marks[] = { "site-packages/", "dist-packages/", "/lib/python" };

	for (size_t i = 0; i < ARRAY_COUNT(marks); i++) {
		size_t at = str_find(file, str_from(marks[i]));

		if (at != STR_NONE)
			return str_skip(file, at + strlen(marks[i]));
	}
	if (str_has(file, STR("torch/")))
		return str_skip(file, str_find(file, STR("torch/")));
	return str_has(file, STR("<frozen")) || str_has(file, STR("<string>")) ? file : STR("");
}

static void hide_frame(struct hiding *h, struct str line)
{
	struct str name, file, number, library;

	if (!words_frame(line, &name, &file, &number)) {
		pseudonym_word(&h->names, line, &h->text);
		return;
	}
	library = library_path(file);
	if (library.len || hang_is_collective_call(name, file) || hang_is_waiting_call(name, file))
		buf_add_str(&h->text, name);
	else
		pseudonym_word(&h->names, name, &h->text);
	buf_puts(&h->text, " (");
	if (library.len)
		buf_add_str(&h->text, library);
	else
		pseudonym_path(&h->names, file, &h->text);
	if (number.len)
		buf_printf(&h->text, ":%.*s", STR_ARG(number));
	buf_puts(&h->text, ")");
}

static void hide_stack(struct hiding *h, struct str *stack)
{
	struct str rest = *stack, line;

	if (!stack->len)
		return;
	buf_clear(&h->text);
	while (str_split(&rest, '\n', &line)) {
		if (h->text.len)
			buf_add_char(&h->text, '\n');
		if (line.len)
			hide_frame(h, line);
	}
	*stack = hang_text(h->job, buf_str(&h->text));
}

/* Cuts an exception's message to its first word: "ValueError: /home/me/secret". */
static void cut_message(struct hiding *h, struct str *text)
{
	static const char *const ends[] = { "Error: ", "Exception: ", "Interrupt: ", "Exit: " };

	for (size_t i = 0; i < ARRAY_COUNT(ends); i++) {
		size_t at = str_find(*text, str_from(ends[i]));

		if (at != STR_NONE)
			*text = hang_text(h->job, str_first(*text, at + strlen(ends[i]) - 2));
	}
}

static void hide_group(struct hiding *h, struct str *name)
{
	int64_t number;

	if (!name->len || str_to_i64(*name, &number) || str_eq(*name, STR("default_pg")) ||
	    str_eq(*name, STR("undefined")) || str_eq(*name, STR("world")))
		return;
	buf_clear(&h->text);
	pseudonym_word(&h->names, *name, &h->text);
	*name = hang_text(h->job, buf_str(&h->text));
}

static void hide_file(struct hiding *h, struct str name)
{
	struct hang_hidden one = { .name = name };

	for (size_t i = 0; i < h->job->hidden_count; i++)
		if (str_eq(h->job->hidden[i].name, name))
			return;
	buf_clear(&h->text);
	pseudonym_file(&h->names, name, &h->text);
	one.shown = hang_text(h->job, buf_str(&h->text));
	if (!vec_push(h->job->mem, h->job->hidden, h->job->hidden_count, h->job->hidden_cap, one))
		h->job->no_memory = true;
}

static void hide_all(struct hiding *h)
{
	struct hang_job *job = h->job;

	for (size_t i = 0; i < job->unread_count; i++)
		hide_file(h, job->unread[i]);
	for (size_t i = 0; i < job->process_count; i++) {
		hide_file(h, job->processes[i].file);
		hide_stack(h, &job->processes[i].stack);
		cut_message(h, &job->processes[i].ended_why);
	}
	for (size_t i = 0; i < job->op_count; i++)
		hide_stack(h, &job->ops[i].stack);
	for (size_t i = 0; i < job->group_count; i++) {
		hide_group(h, &job->groups[i].name);
		hide_group(h, &job->groups[i].about);
	}
}

ow_status hang_redact(struct hang_job *job, struct ow_error *err)
{
	struct hiding h = { .job = job };
	ow_status status = pseudonyms_init(&h.names, job->mem, err);

	buf_init(&h.text, job->mem);
	if (status == OW_OK) {
		hide_all(&h);
		if (h.names.failed || h.text.failed || job->no_memory)
			status = error_no_memory(err);
	}
	buf_release(&h.text);
	pseudonyms_release(&h.names);
	return status;
}

struct str hang_shown_file(const struct hang_job *job, struct str file)
{
	for (size_t i = 0; i < job->hidden_count; i++)
		if (str_eq(job->hidden[i].name, file))
			return job->hidden[i].shown;
	return file;
}

/* The longest hidden file name at the beginning of a text; NULL if there is none. Notes contain at most
 * NOTE_FILE_MOST bytes of a name. */
static const struct hang_hidden *hidden_at(const struct hang_job *job, struct str text)
{
	const struct hang_hidden *found = NULL;

	for (size_t i = 0; i < job->hidden_count; i++) {
		struct str name = str_first(job->hidden[i].name,
					    MIN(job->hidden[i].name.len, NOTE_FILE_MOST));

		if (name.len && str_starts(text, name) &&
		    (!found || found->name.len < job->hidden[i].name.len))
			found = &job->hidden[i];
	}
	return found;
}

void hang_shown_note(const struct hang_job *job, struct str note, struct buf *to)
{
	for (size_t at = 0; at < note.len;) {
		const struct hang_hidden *hidden = hidden_at(job, str_skip(note, at));

		if (hidden) {
			buf_add_str(to, hidden->shown);
			at += MIN(hidden->name.len, NOTE_FILE_MOST);
		} else {
			buf_add_char(to, note.ptr[at++]);
		}
	}
}
