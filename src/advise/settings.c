/*
 * settings.c: reads the part [advise] of opwatch.toml (settings.h). Called by the library when a profile gets its settings. It reads the part of TOML
 * that such files need: comments, one level of tables, strings, numbers, and lists of strings over one or more lines.
 *
 *	[advise]
 *	mute = ["precision", "roof"]
 *	medium = "5%"
 */
#include "advise/settings.h"

#include "advise/rule.h"
#include "base/nearest.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

struct reader {
	struct str rest;
	const char *name;
	unsigned line;
	struct ow_error *err;
};

static ow_status fail(struct reader *r, const char *what, struct str word, const char *nearest)
{
	return error_set(r->err, OW_E_USAGE, "%s:%u: '%.*s' %s%s%s%s", r->name, r->line,
			 STR_ARG(word), what, nearest ? "; did you mean '" : "",
			 nearest ? nearest : "", nearest ? "'?" : "");
}

static const char *find_rule(struct str name, const char **nearest)
{
	size_t least = nearest_limit(name);

	*nearest = NULL;
	for (size_t i = 0; i < rule_count; i++) {
		if (str_eq(name, str_from(rules[i]->name)))
			return rules[i]->name;
		nearest_try(name, rules[i]->name, nearest, &least);
	}
	return NULL;
}

static bool is_muted(const struct advice_settings *s, const char *rule)
{
	for (size_t i = 0; i < s->muted_count; i++)
		if (s->muted[i] == rule)
			return true;
	return false;
}

ow_status settings_mute(struct advice_settings *s, struct str rule, struct ow_error *err)
{
	const char *nearest, *found = find_rule(rule, &nearest);

	if (!found)
		return error_set(err, OW_E_USAGE, "no rule is called '%.*s'%s%s%s", STR_ARG(rule),
				 nearest ? "; did you mean '" : "", nearest ? nearest : "",
				 nearest ? "'?" : "");
	if (!is_muted(s, found) && s->muted_count < SETTINGS_RULES_MOST)
		s->muted[s->muted_count++] = found;
	return OW_OK;
}

static void skip_blanks(struct reader *r, bool lines)
{
	while (r->rest.len) {
		char c = r->rest.ptr[0];

		if (c == '#') {
			size_t end = str_find_char(r->rest, '\n');

			r->rest = str_skip(r->rest, end == STR_NONE ? r->rest.len : end);
			continue;
		}
		if (c == '\n' && !lines)
			return;
		if (c != ' ' && c != '\t' && c != '\r' && c != '\n')
			return;
		r->line += c == '\n';
		r->rest = str_skip(r->rest, 1);
	}
}

static bool take(struct reader *r, char c)
{
	if (!r->rest.len || r->rest.ptr[0] != c)
		return false;
	r->rest = str_skip(r->rest, 1);
	return true;
}

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-' || c == '.' || c == '+';
}

static struct str take_word(struct reader *r)
{
	size_t len = 0;
	struct str word;

	while (len < r->rest.len && is_word(r->rest.ptr[len]))
		len++;
	word = str_first(r->rest, len);
	r->rest = str_skip(r->rest, len);
	return word;
}

/* Reads a string in quotes on one line. Escapes are not supported, because names and numbers do
 * not need them. */
static ow_status take_string(struct reader *r, struct str *out)
{
	char quote = r->rest.len ? r->rest.ptr[0] : ' ';
	size_t end, line;

	if (quote != '"' && quote != '\'')
		return fail(r, "is not a text in quotes", str_first(r->rest, MIN(r->rest.len, 20)),
			    NULL);
	r->rest = str_skip(r->rest, 1);
	end = str_find_char(r->rest, quote);
	line = str_find_char(r->rest, '\n');
	if (end == STR_NONE || line < end)
		return fail(r, "has no closing quote",
			    str_first(r->rest, MIN(line, MIN(r->rest.len, 20))), NULL);
	*out = str_first(r->rest, end);
	r->rest = str_skip(r->rest, end + 1);
	return OW_OK;
}

static ow_status read_mute(struct reader *r, struct advice_settings *s)
{
	if (!take(r, '['))
		return fail(r, "wants a list of rules: mute = [\"precision\"]", STR("mute"), NULL);
	for (;;) {
		const char *nearest;
		struct str rule = { 0 };

		skip_blanks(r, true);
		if (take(r, ']'))
			return OW_OK;
		OW_TRY(take_string(r, &rule));
		if (!find_rule(rule, &nearest))
			return fail(r, "is not a rule", rule, nearest);
		OW_TRY(settings_mute(s, rule, r->err));
		skip_blanks(r, true);
		if (take(r, ',') || (r->rest.len && r->rest.ptr[0] == ']'))
			continue;
		return fail(r, "is not followed by ',' or ']'", rule, NULL);
	}
}

/* Reads a part of a step: 0.03, "0.03" or "3%". */
static ow_status read_part(struct reader *r, double *out)
{
	bool quoted = r->rest.len && (r->rest.ptr[0] == '"' || r->rest.ptr[0] == '\'');
	char number[40], *end;
	struct str text = { 0 };

	if (quoted)
		OW_TRY(take_string(r, &text));
	else
		text = take_word(r);
	snprintf(number, sizeof(number), "%.*s", STR_ARG(text));
	errno = 0;
	*out = strtod(number, &end);
	if (*end == '%') {
		*out /= 100;
		end++;
	}
	if (end == number || *end || errno || !isfinite(*out) || *out < 0 || *out > 1)
		return fail(r, "is not a part of a step, such as 0.03 or \"3%\"", text, NULL);
	return OW_OK;
}

static ow_status read_key(struct reader *r, struct advice_settings *s)
{
	static const char *const keys[] = { "mute", "remark", "medium", "high" };
	double *const parts[] = { NULL, &s->remark, &s->medium, &s->high };
	struct str key = take_word(r);
	size_t least = nearest_limit(key);
	const char *nearest = NULL;

	if (!key.len)
		return fail(r, "is not a key", str_first(r->rest, MIN(r->rest.len, 20)), NULL);
	for (size_t i = 0; i < ARRAY_COUNT(keys); i++) {
		nearest_try(key, keys[i], &nearest, &least);
		if (!str_eq(key, str_from(keys[i])))
			continue;
		skip_blanks(r, false);
		if (!take(r, '='))
			return fail(r, "has no value", key, NULL);
		skip_blanks(r, false);
		return parts[i] ? read_part(r, parts[i]) : read_mute(r, s);
	}
	return fail(r, "is not a setting of [advise]", key, nearest);
}

static ow_status read_heading(struct reader *r)
{
	struct str word;
	const char *nearest = NULL;
	size_t least;

	skip_blanks(r, false);
	word = take_word(r);
	skip_blanks(r, false);
	if (!take(r, ']'))
		return fail(r, "is a heading without ']'", word, NULL);
	if (str_eq(word, STR("advise")))
		return OW_OK;
	least = nearest_limit(word);
	nearest_try(word, "advise", &nearest, &least);
	return fail(r, "is not a part of the settings", word, nearest);
}

ow_status settings_check(const struct advice_settings *s, struct ow_error *err)
{
	if (s->remark >= 0 && s->remark <= s->medium && s->medium <= s->high && s->high <= 1)
		return OW_OK;
	return error_set(err, OW_E_USAGE,
			 "the limits remark (%g), medium (%g) and high (%g) must ascend and lie "
			 "between 0 and 1",
			 s->remark, s->medium, s->high);
}

ow_status settings_parse(struct advice_settings *s, struct str text, const char *name,
			 struct ow_error *err)
{
	struct reader r = { text, name, 1, err };
	bool inside = false;

	for (;;) {
		skip_blanks(&r, true);
		if (!r.rest.len)
			return settings_check(s, err);
		if (take(&r, '[')) {
			OW_TRY(read_heading(&r));
			inside = true;
		} else if (inside) {
			OW_TRY(read_key(&r, s));
		} else {
			return fail(&r, "must come after the heading [advise]", take_word(&r),
				    NULL);
		}
		skip_blanks(&r, false);
		if (r.rest.len && r.rest.ptr[0] != '\n')
			return fail(&r, "is unexpected at the end of this line",
				    str_first(r.rest, MIN(r.rest.len, 20)), NULL);
	}
}
