/*
 * tfprof_text.h: runs one of tfprof's views with options written as in its shell ("-select micros -step 0") and
 * compares the tfprof output after "Profile:". Numbers in options are used unchanged; lists have no quotes.
 */
#ifndef SUPPORT_TFPROF_TEXT_H
#define SUPPORT_TFPROF_TEXT_H

#include "analyze/view.h"
#include "support/small_tree.h"

#define TFPROF_WORDS 64

struct tfprof_options {
	struct view_options view;
	char text[512];
	const char *words[TFPROF_WORDS];
	size_t word_count;
};

/* Splits "a,b" into words; "" is an empty list. */
static inline struct view_list tfprof_list(struct tfprof_options *o, char *text)
{
	struct view_list list = { &o->words[o->word_count], 0 };

	for (char *end = text; *text; text = end) {
		end = text + strcspn(text, ",");
		if (*end)
			*end++ = '\0';
		if (!*text)
			continue;
		assert_true(o->word_count < TFPROF_WORDS);
		o->words[o->word_count++] = text;
		list.count++;
	}
	return list;
}

static inline bool tfprof_number(struct view_options *v, const char *name, int64_t value)
{
	struct {
		const char *name;
		int64_t *value;
	} numbers[] = {
		{ "-min_bytes", &v->min_bytes },
		{ "-min_peak_bytes", &v->min_peak_bytes },
		{ "-min_residual_bytes", &v->min_residual_bytes },
		{ "-min_output_bytes", &v->min_output_bytes },
		{ "-min_micros", &v->min_micros },
		{ "-min_accelerator_micros", &v->min_accelerator_micros },
		{ "-min_cpu_micros", &v->min_cpu_micros },
		{ "-min_params", &v->min_params },
		{ "-min_float_ops", &v->min_float_ops },
		{ "-min_occurrence", &v->min_occurrence },
		{ "-step", &v->step },
	};

	for (size_t i = 0; i < ARRAY_COUNT(numbers); i++)
		if (!strcmp(name, numbers[i].name)) {
			*numbers[i].value = value;
			return true;
		}
	return false;
}

static inline void tfprof_option(struct tfprof_options *o, const char *name, char *value)
{
	struct view_options *v = &o->view;

	if (!strcmp(name, "-max_depth"))
		v->max_depth = (int32_t)strtol(value, NULL, 10);
	else if (!strcmp(name, "-order_by"))
		v->order_by = value;
	else if (!strcmp(name, "-account_type_regexes"))
		v->account_type_regexes = tfprof_list(o, value);
	else if (!strcmp(name, "-start_name_regexes"))
		v->start_name_regexes = tfprof_list(o, value);
	else if (!strcmp(name, "-trim_name_regexes"))
		v->trim_name_regexes = tfprof_list(o, value);
	else if (!strcmp(name, "-show_name_regexes"))
		v->show_name_regexes = tfprof_list(o, value);
	else if (!strcmp(name, "-hide_name_regexes"))
		v->hide_name_regexes = tfprof_list(o, value);
	else if (!strcmp(name, "-select"))
		v->select = tfprof_list(o, value);
	else if (!strcmp(name, "-account_displayed_op_only"))
		v->account_displayed_op_only = !strcmp(value, "true");
	else
		assert_true(tfprof_number(v, name, strtoll(value, NULL, 10)));
}

/* Parses the options; an empty value is written ''. */
static inline void tfprof_parse(struct tfprof_options *o, const char *text)
{
	char *word[2] = { NULL, NULL }, *end;

	view_options_init(&o->view);
	o->word_count = 0;
	assert_true(strlen(text) < sizeof(o->text));
	memcpy(o->text, text, strlen(text) + 1);
	for (char *at = o->text; *at; at = end) {
		end = at + strcspn(at, " ");
		if (*end)
			*end++ = '\0';
		if (!word[0]) {
			word[0] = at;
			continue;
		}
		word[1] = strcmp(at, "''") != 0 ? at : at + strlen(at);
		tfprof_option(o, word[0], word[1]);
		word[0] = NULL;
	}
	assert_null(word[0]);
}

/* The result of a view that must succeed. */
static inline struct table *tfprof_run(struct small_model *s, const char *view, const char *options)
{
	struct tfprof_options o;
	struct table *r = table_new(&s->mem, view, &s->err);

	tfprof_parse(&o, options);
	assert_non_null(r);
	assert_non_null(view_find(view));
	if (view_find(view)->run(s->m, &o.view, r, &s->err) != OW_OK)
		fail_msg("%s %s: %s", view, options, s->err.text);
	return r;
}

static inline void tfprof_expect(struct small_model *s, const struct sink *sink, const char *view,
				 const char *options, const char *want)
{
	struct table *r = tfprof_run(s, view, options);
	struct buf text;
	const char *profile;

	small_write(sink, r, &(struct sink_options){ 0 }, &text);
	profile = strstr(text.ptr, "Profile:\n");
	assert_non_null(profile);
	profile += strlen("Profile:\n");
	if (strcmp(profile, want) != 0)
		fail_msg("%s %s\ngot:\n%s\nwant:\n%s", view, options, profile, want);
	buf_release(&text);
	table_free(r);
}

#endif
