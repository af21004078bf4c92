/*
 * answer_table.c: the answer about a job as a table (answer.h): a row for each rank, and the extra values that
 * docs/hang.md lists. Called by answer.c.
 */
#include "hang/answer.h"

#include "base/error.h"
#include "base/json_escape.h"

static const char *const conclusion_words[] = { "hang",	 "deadlock", "mismatch",
						"crash", "none",     "cannot_tell" };

enum {
	COLUMN_RANK,
	COLUMN_STATE,
	COLUMN_GROUP,
	COLUMN_LAST,
	COLUMN_FIRST,
	COLUMN_COLLECTIVE,
	COLUMN_STACK,
	COLUMN_FRAMES,
	COLUMN_FILE,
	COLUMN_RANK_FROM
};

void answer_columns(struct table *t)
{
	static const char *const sentences[] = {
		"rank of the process",
		"state of the rank: waits, runs, ended, unknown, …",
		"process group of the collective",
		"sequence number of the last collective that the rank completed",
		"sequence number of the first collective that the rank did not complete",
		"that collective",
		"innermost line of the rank's stack",
		"whole stack of the rank, innermost frame first",
		"file that shows the state of the rank",
		"source of the rank's number: content of the file, or its name",
	};

	table_add_column(t, "rank", "rank", TYPE_INT, UNIT_NONE);
	table_add_column(t, "state", "state", TYPE_TEXT, UNIT_NONE);
	table_add_column(t, "group", "group", TYPE_TEXT, UNIT_NONE);
	table_add_column(t, "last_completed", "last completed", TYPE_INT, UNIT_NONE);
	table_add_column(t, "first_missing", "first missing", TYPE_INT, UNIT_NONE);
	table_add_column(t, "collective", "collective", TYPE_TEXT, UNIT_NONE);
	table_add_column(t, "stack", "stack", TYPE_TEXT, UNIT_NONE);
	table_add_column(t, "frames", "frames", TYPE_TEXT, UNIT_NONE);
	table_add_column(t, "file", "file", TYPE_TEXT, UNIT_NONE);
	table_add_column(t, "rank_from", "rank from", TYPE_TEXT, UNIT_NONE);
	table_document(t, sentences, ARRAY_COUNT(sentences));
	for (unsigned i = COLUMN_FRAMES; i <= COLUMN_RANK_FROM; i++)
		t->columns[i].for_programs = true;
}

static void set_number(struct table *t, uint32_t row, uint32_t column, int64_t value)
{
	if (value >= 0)
		table_set_int(t, row, column, value);
	else
		table_set_unknown(t, row, column);
}

/* The meeting that a row describes: the one that the rank waits in, else the answer's. */
static ssize_t row_meeting(const struct answer *a, int32_t rank)
{
	const struct wait_rank *r = &a->w->ranks[rank];

	if (a->meeting >= 0 && a->states[rank] && strcmp(a->states[rank], "waiting") != 0)
		return a->meeting;
	if (!r->pending_count)
		return a->meeting;
	for (size_t i = 0; i < r->pending_count; i++)
		if ((ssize_t)a->w->pending[r->first_pending + i].meeting == a->meeting)
			return a->meeting;
	return (ssize_t)a->w->pending[r->first_pending].meeting;
}

static const char *row_state(const struct answer *a, int32_t rank)
{
	const struct wait_rank *r = &a->w->ranks[rank];

	if (a->states[rank])
		return a->states[rank];
	if (r->dump == UINT32_MAX)
		return r->about == UINT32_MAX ? "no_dump" : "unknown";
	if (a->job->processes[r->dump].torn)
		return "torn";
	for (size_t i = 0; i < r->pending_count; i++)
		if (meeting_is_blocked(
			    &a->w->meetings[a->w->pending[r->first_pending + i].meeting]))
			return "waiting";
	return r->pending_count ? "running" : "completed";
}

static struct str row_stack(const struct answer *a, int32_t rank)
{
	const struct wait_rank *r = &a->w->ranks[rank];
	const struct hang_op *last;

	if (answer_stack(a, rank).len)
		return answer_stack(a, rank);
	if (r->pending_count)
		return a->job->ops[a->w->pending[r->first_pending].op].stack;
	last = answer_last_op(a, rank);
	return last ? last->stack : STR("");
}

void answer_row(struct answer *a, struct table *t, int32_t rank)
{
	static const char *const from[] = { "content", "groups", "groups", "command line",
					    "file name" };
	const struct wait_rank *r = &a->w->ranks[rank];
	uint32_t at = table_add_row(t, 0), process = r->dump != UINT32_MAX ? r->dump : r->about;
	ssize_t which = row_meeting(a, rank);
	const struct hang_meeting *m = which < 0 ? NULL : &a->w->meetings[which];
	const struct own_group *own = m && !m->message ? waits_own(a->w, rank, m->group)
				      : r->own_count   ? &a->w->own[r->first_own]
						       : NULL;
	struct buf place;

	table_set_int(t, at, COLUMN_RANK, rank);
	table_set_known_text(t, at, COLUMN_STATE, str_from(row_state(a, rank)));
	table_set_known_text(t, at, COLUMN_GROUP,
			     m	   ? words_group(&a->job->groups[m->group])
			     : own ? words_group(&a->job->groups[own->group])
				   : STR(""));
	set_number(t, at, COLUMN_LAST, own ? own->completed : -1);
	set_number(t, at, COLUMN_FIRST,
		   !own				      ? -1
		   : own->pending != HANG_NO_SEQUENCE ? own->pending
		   : m && own->entered >= 0	      ? own->entered + 1
						      : -1);
	table_set_known_text(t, at, COLUMN_COLLECTIVE, m ? m->name : a->collective);
	buf_init(&place, a->mem);
	words_place(&place, row_stack(a, rank));
	table_set_known_text(t, at, COLUMN_STACK, buf_str(&place));
	buf_release(&place);
	table_set_known_text(t, at, COLUMN_FRAMES, row_stack(a, rank));
	table_set_known_text(t, at, COLUMN_FILE,
			     process == UINT32_MAX
				     ? STR("")
				     : hang_shown_file(a->job, a->job->processes[process].file));
	table_set_known_text(t, at, COLUMN_RANK_FROM,
			     process == UINT32_MAX
				     ? STR("")
				     : str_from(from[a->job->processes[process].rank_from]));
}

static bool add_rank_list(struct answer *a, struct table *out, const char *name, bool missing)
{
	struct buf text;
	bool any = false;

	buf_init(&text, a->mem);
	buf_puts(&text, "[");
	for (size_t i = 0; !missing && i < a->rank_count; i++)
		buf_printf(&text, "%s%d", i ? ", " : "", (int)a->ranks[i]);
	for (int32_t r = 0; missing && a->w->dumps && r < a->w->world; r++)
		if (a->w->ranks[r].dump == UINT32_MAX) {
			buf_printf(&text, "%s%d", any ? ", " : "", (int)r);
			any = true;
		}
	buf_puts(&text, "]");
	if (buf_cstr(&text))
		table_add_extra(out, name, "%s", text.ptr);
	any = !text.failed;
	buf_release(&text);
	return any;
}

static bool add_notes(struct answer *a, struct table *out)
{
	struct buf text, note;
	bool good;

	buf_init(&text, a->mem);
	buf_init(&note, a->mem);
	buf_puts(&text, "[");
	for (size_t i = 0; i < a->job->note_count; i++) {
		buf_puts(&text, i ? ", " : "");
		buf_clear(&note);
		hang_shown_note(a->job, a->job->notes[i], &note);
		json_quote(&text, buf_str(&note));
	}
	buf_puts(&text, "]");
	if (buf_cstr(&text))
		table_add_extra(out, "notes", "%s", text.ptr);
	good = !text.failed && !note.failed;
	buf_release(&note);
	buf_release(&text);
	return good;
}

static void add_extra_str(struct table *out, struct arena *arena, const char *name, struct str text)
{
	table_add_extra_text(out, name, text.len ? arena_cstr(arena, text) : NULL);
}

ow_status answer_extras(struct answer *a, struct table *out, struct ow_error *err)
{
	const struct hang_meeting *m = a->meeting < 0 ? NULL : &a->w->meetings[a->meeting];
	int64_t sequence = m && !m->message ? m->sequence : a->sequence;

	table_add_extra(out, "schema_version", "1");
	table_add_extra_text(out, "conclusion", conclusion_words[a->conclusion]);
	table_add_extra(out, "certain", "%s", a->certain ? "true" : "false");
	if (!add_rank_list(a, out, "ranks", false))
		return error_no_memory(err);
	add_extra_str(out, &a->w->arena, "collective", m ? m->name : a->collective);
	add_extra_str(out, &a->w->arena, "group",
		      m ? words_group(&a->job->groups[m->group]) : STR(""));
	if (sequence == HANG_NO_SEQUENCE)
		table_add_extra(out, "sequence", "null");
	else
		table_add_extra(out, "sequence", "%lld", (long long)sequence);
	table_add_extra_text(out, "why", buf_cstr(&a->why));
	table_add_extra_text(out, "sentence", buf_cstr(&a->sentence));
	if (a->w->world_known)
		table_add_extra(out, "world_size", "%d", (int)a->w->world);
	else
		table_add_extra(out, "world_size", "null");
	if (!add_rank_list(a, out, "missing_ranks", true) || !add_notes(a, out))
		return error_no_memory(err);
	table_add_extra(out, "files_read", "%zu", a->job->files_read);
	table_add_extra(out, "files_unreadable", "%zu", a->job->files_unreadable);
	table_add_extra(out, "files_torn", "%zu", a->job->files_torn);
	table_add_extra(out, "duplicates", "%zu", a->job->duplicates);
	table_add_extra(out, "other_jobs", "%zu", a->job->other_jobs);
	return a->why.failed || a->sentence.failed ? error_no_memory(err) : OW_OK;
}
