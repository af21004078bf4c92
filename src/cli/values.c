/* values.c: see values.h. */
#include "cli/values.h"

bool value_size(struct str text, uint64_t *size)
{
	static const char units[] = "KMGT";
	uint64_t factor = 1;
	int64_t number;

	if (text.len && (text.ptr[text.len - 1] | 32) == 'b')
		text.len--;
	if (text.len) {
		char last = text.ptr[text.len - 1] & (char)~32;
		const char *unit = last ? strchr(units, last) : NULL;

		if (unit) {
			factor = 1ull << (10 * (unit - units + 1));
			text.len--;
		}
	}
	if (!str_to_i64(text, &number) || number < 0 || (uint64_t)number > INT64_MAX / factor)
		return false;
	*size = (uint64_t)number * factor;
	return true;
}

/* A decimal number with ns, us, ms, s, m or h behind it; `unit` without. */
static bool value_time(struct str text, int64_t unit, int64_t *ns)
{
	static const struct {
		struct str name;
		int64_t ns;
	} units[] = { { STR("ns"), 1 },		 { STR("us"), 1000 },
		      { STR("ms"), 1000000 },	 { STR("s"), 1000000000 },
		      { STR("m"), 60000000000 }, { STR("h"), 3600000000000 } };
	int64_t whole = 0, part = 0;
	size_t point;

	for (size_t i = 0; i < ARRAY_COUNT(units); i++)
		if (str_ends(text, units[i].name)) {
			unit = units[i].ns;
			text = str_first(text, text.len - units[i].name.len);
			break;
		}
	point = str_find_char(text, '.');
	if (point != STR_NONE) {
		for (size_t i = point + 1, place = (size_t)unit; i < text.len; i++) {
			if (text.ptr[i] < '0' || text.ptr[i] > '9')
				return false;
			place /= 10;
			part += (text.ptr[i] - '0') * (int64_t)place;
		}
		text = str_first(text, point);
	}
	if (!str_to_i64(text, &whole) || whole < 0 || whole >= INT64_MAX / unit)
		return false;
	*ns = whole * unit + part;
	return true;
}

bool value_time_range(struct str text, int64_t *from_ns, int64_t *to_ns)
{
	size_t colon = str_find_char(text, ':');
	struct str from, to;

	if (colon == STR_NONE || text.len < 2)
		return false;
	from = str_first(text, colon);
	to = str_skip(text, colon + 1);
	return (!from.len || value_time(from, 1000000, from_ns)) &&
	       (!to.len || value_time(to, 1000000, to_ns)) && *from_ns < *to_ns;
}

bool value_duration(struct str text, int64_t *ns)
{
	return value_time(text, 1000000000, ns) && *ns > 0;
}

bool value_word(struct arena *arena, struct ow_list *list, const char *word)
{
	const char **items = ARENA_ARRAY(arena, const char *, list->count + 1);

	if (!items)
		return false;
	if (list->count)
		memcpy(items, list->items, list->count * sizeof(*items));
	items[list->count++] = word;
	list->items = items;
	return true;
}

bool value_words(struct arena *arena, struct ow_list *list, const char *words)
{
	struct str rest = str_from(words), word;

	while (str_split(&rest, ',', &word)) {
		const char *copy = arena_cstr(arena, str_trim(word));

		if (!copy || !value_word(arena, list, copy))
			return false;
	}
	return true;
}

bool value_part(struct str text, double *part)
{
	bool percent = text.len && text.ptr[text.len - 1] == '%';
	struct str number = percent ? str_first(text, text.len - 1) : text;
	char copy[32], *end;

	if (!number.len || number.len >= sizeof(copy))
		return false;
	memcpy(copy, number.ptr, number.len);
	copy[number.len] = '\0';
	*part = strtod(copy, &end) / (percent ? 100 : 1);
	return !*end && *part > 0 && *part <= 100;
}
