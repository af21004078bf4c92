/*
 * advise.c: ow_advise: runs the rules and makes one table of their findings. The rules of tfprof are shown where no other rule found anything, or
 * when they are asked for by name. The work is in src/advise. The verdict begins with the first finding; its sentence is kept with
 * the profile, so that an overview with both runs the rules once.
 */
#include "api/api_int.h"

#include "advise/advice.h"

#include <errno.h>
#include <stdio.h>

/* Copies messages into the result's own arena, because the arena of the findings is freed. */
static ow_status keep_messages(ow_result *result, const struct findings *found,
			       struct ow_error *err)
{
	struct arena *arena = &result->r->arena;
	size_t old = result->message_count;
	struct str *all = ARENA_ARRAY(arena, struct str, old + found->message_count + 1);

	if (!all)
		return error_no_memory(err);
	if (old)
		memcpy(all, result->messages, old * sizeof(*all));
	for (size_t i = 0; i < found->message_count; i++) {
		all[old + i] = arena_str(arena, found->messages[i]);
		if (!all[old + i].ptr)
			return error_no_memory(err);
	}
	result->messages = all;
	result->message_count = old + found->message_count;
	return OW_OK;
}

#define SETTINGS_BYTES_MOST 65536

void ow_advice_options_init(struct ow_advice_options *options)
{
	*options = (struct ow_advice_options){ .size = sizeof(*options) };
}

static ow_status read_settings(struct advice_settings *s, const char *path, struct mem *mem,
			       struct ow_error *err)
{
	FILE *file = fopen(path, "re");
	struct arena arena;
	size_t len;
	char *text;
	ow_status status;

	if (!file)
		return error_set(err, OW_E_IO, "%s: %s", path, strerror(errno));
	arena_init(&arena, mem);
	text = arena_push_array(&arena, SETTINGS_BYTES_MOST + 1, 1);
	len = text ? fread(text, 1, SETTINGS_BYTES_MOST + 1, file) : 0;
	if (!text)
		status = error_no_memory(err);
	else if (ferror(file))
		status = error_set(err, OW_E_IO, "%s: cannot be read", path);
	else if (len > SETTINGS_BYTES_MOST)
		status = error_set(err, OW_E_USAGE, "%s: settings have at most %d bytes", path,
				   SETTINGS_BYTES_MOST);
	else
		status = settings_parse(s, str_make(text, len), path, err);
	fclose(file);
	arena_release(&arena);
	return status;
}

ow_status ow_profile_set_advice(ow_profile *p, const struct ow_advice_options *options,
				struct ow_error *err)
{
	struct advice_settings fresh = ADVICE_SETTINGS_DEFAULT;
	struct ow_advice_options full;

	error_clear(err);
	ow_advice_options_init(&full);
	SIZED_IN(&full, options);
	if (full.file)
		OW_TRY(read_settings(&fresh, full.file, &p->mem, err));
	for (size_t i = 0; i < full.mute.count; i++)
		OW_TRY(settings_mute(&fresh, str_from(full.mute.items[i]), err));
	if (full.medium > 0) {
		fresh.medium = full.medium;
		fresh.remark = MIN(fresh.remark, fresh.medium);
		fresh.high = MAX(fresh.high, fresh.medium);
	}
	OW_TRY(settings_check(&fresh, err));
	p->advice = fresh;
	p->m->advice = &p->advice;
	api_forget_headline(p);
	return OW_OK;
}

void api_forget_headline(ow_profile *p)
{
	struct headline *old = atomic_exchange(&p->headline, NULL);

	if (old)
		mem_free(&p->mem, old, sizeof(*old));
}

/* Another thread may have stored the same headline in the meantime. */
static ow_status keep_headline(ow_profile *p, struct advice *a, struct ow_error *err)
{
	struct headline *fresh, *none = NULL;

	if (atomic_load(&p->headline))
		return OW_OK;
	fresh = mem_alloc(&p->mem, sizeof(*fresh));
	if (!fresh)
		return error_no_memory(err);
	advice_headline(a, fresh->text, sizeof(fresh->text), &fresh->subject);
	fresh->covers_little = advice_covers_little(a);
	fresh->saves_little = advice_saves_little(a);
	if (!atomic_compare_exchange_strong(&p->headline, &none, fresh))
		mem_free(&p->mem, fresh, sizeof(*fresh));
	return OW_OK;
}

/* Files of several jobs are judged one by one. */
static bool is_one_job(const struct model *m)
{
	for (uint32_t i = 2; i < m->source.count; i++)
		if (m->source.run[i] != m->source.run[1])
			return false;
	return true;
}

static ow_status find_headline(ow_profile *p, struct ow_error *err)
{
	struct findings found = { 0 };
	struct arena arena;
	struct advice a;
	ow_status status;

	arena_init(&arena, &p->mem);
	found.arena = &arena;
	status = advice_make(p->m, NULL, &arena, &a, &found, err);
	if (status == OW_OK)
		status = keep_headline(p, &a, err);
	advice_close(&a);
	arena_release(&arena);
	return status;
}

ow_status api_add_headline(ow_profile *p, struct table *verdict, struct ow_error *err)
{
	const struct headline *headline;
	struct str found, where;
	struct buf rest;
	char *text;
	bool last;

	if (!verdict->row_count || p->m->event.count <= 1 || !is_one_job(p->m))
		return OW_OK;
	if (!atomic_load(&p->headline))
		OW_TRY(find_headline(p, err));
	headline = atomic_load(&p->headline);
	if (!headline || !*headline->text)
		return OW_OK;
	found = str_from(headline->text);
	where = verdict->columns[0].texts[0];
	last = headline->covers_little ||
	       (headline->saves_little && !verdict_leads_with(where, headline->subject));
	buf_init(&rest, &p->mem);
	if (!last)
		verdict_after(where, headline->subject, &rest);
	text = last ? arena_printf(&verdict->arena, "%.*s %.*s", STR_ARG(where), STR_ARG(found))
		    : arena_printf(&verdict->arena, "%.*s %.*s", STR_ARG(found),
				   STR_ARG(buf_str(&rest)));
	if (rest.failed)
		text = NULL;
	buf_release(&rest);
	if (!text)
		return error_no_memory(err);
	table_set_text(verdict, 0, 0, str_from(text));
	return OW_OK;
}

ow_status ow_advise(ow_profile *p, const struct ow_list *names, ow_result **out,
		    struct ow_error *err)
{
	struct findings found = { 0 };
	struct reading reading;
	struct arena arena;
	struct advice a;
	struct table *r;
	ow_status status;

	error_clear(err);
	*out = NULL;
	OW_TRY(api_check_frozen(p, err));
	r = table_new(&p->mem, "advise", err);
	if (!r)
		return OW_E_NO_MEMORY;
	OW_TRY(api_wrap_result(p, r, out, err));
	arena_init(&arena, &p->mem);
	found.arena = &arena;
	status = api_read_begin(p, TABLES_ALL, &reading, err);
	if (status == OW_OK) {
		status = advice_make(p->m, names, &arena, &a, &found, err);
		if (status == OW_OK)
			status = advice_table(&a, r, err);
		if (status == OW_OK && !names)
			status = keep_headline(p, &a, err);
		advice_close(&a);
		status = api_read_end(p, &reading, status, err);
	}
	if (status == OW_OK)
		status = keep_messages(*out, &found, err);
	arena_release(&arena);
	if (status == OW_OK && r->status != OW_OK)
		status = error_no_memory(err);
	if (status != OW_OK) {
		ow_result_free(*out);
		*out = NULL;
	}
	return status;
}
