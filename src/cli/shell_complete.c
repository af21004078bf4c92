/* shell_complete.c: see shell_complete.h. */
#include "cli/shell_complete.h"

#include "cli/args.h"
#include "cli/shell_words.h"

#include <dirent.h>
#include <sys/stat.h>

static void add_options(bool tfprof, struct str prefix, struct completions *out)
{
	bool longer = prefix.len > 1 && prefix.ptr[1] == '-';
	char name[64];

	for (size_t i = 0; i < OPTION_COUNT; i++) {
		if (longer && !tfprof)
			option_spell(name, sizeof(name), option_table[i].name);
		else
			snprintf(name, sizeof(name), "-%s", option_table[i].name);
		completion_add(out, arena_cstr(out->arena, str_from(name)), prefix);
	}
	for (size_t i = 0; !tfprof && i < SHELL_OPTIONS; i++)
		completion_add(out, shell_options[i].longer, prefix);
}

/* Values of lists are completed piece by piece, and more may follow. */
static void add_values(const struct option *option, bool tfprof, struct str value,
		       struct completions *out)
{
	bool list = option->kind == OPTION_SELECT;
	size_t comma = list ? str_rfind_char(value, ',') : STR_NONE;
	const char *candidate;

	if (comma != STR_NONE) {
		out->word += comma + 1;
		value = str_skip(value, comma + 1);
	}
	out->goes_on = list && !tfprof;
	for (size_t i = 0; (candidate = option_value(option, !tfprof, i)); i++)
		completion_add(out, candidate, value);
}

/* Names with blanks would need quotes around what is typed already: they are left out. */
static void add_file(const char *folder, const char *name, struct str prefix,
		     struct completions *out)
{
	const char *path = arena_printf(out->arena, "%s%s", folder, name);
	struct stat st;

	if (!path || strchr(name, ' ') || (name[0] == '.' && !prefix.len) ||
	    strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return;
	if (stat(path, &st) == 0 && S_ISDIR(st.st_mode))
		completion_add(out, arena_printf(out->arena, "%s/", name), prefix);
	else
		completion_add(out, arena_cstr(out->arena, str_from(name)), prefix);
}

static void add_files(struct str typed, struct completions *out)
{
	size_t slash = str_rfind_char(typed, '/') + 1; /* STR_NONE + 1 is 0 */
	const char *folder = arena_cstr(out->arena, str_first(typed, slash));
	struct dirent *entry;
	DIR *dir;

	dir = folder ? opendir(*folder ? folder : ".") : NULL;
	if (!dir)
		return;
	out->word += slash;
	while ((entry = readdir(dir)))
		add_file(folder, entry->d_name, str_skip(typed, slash), out);
	closedir(dir);
	completions_sort(out);
}

/* The value of an option that was typed whole; false when it has none. */
static bool add_value(bool tfprof, struct str name, struct str value, struct completions *out)
{
	static const struct str outfile = STR("outfile=");
	const struct option *option = shell_option_named(name, tfprof);
	size_t at;

	if (!tfprof && shell_option_is(name, SHELL_OUT)) {
		add_files(value, out);
		return true;
	}
	if (!tfprof && shell_option_is(name, SHELL_TO))
		option = option_find(STR("output"));
	if (!option)
		return false;
	at = option->kind == OPTION_OUTPUT ? str_find(value, outfile) : STR_NONE;
	if (at != STR_NONE) {
		out->word += at + outfile.len;
		add_files(str_skip(value, at + outfile.len), out);
	} else {
		add_values(option, tfprof, value, out);
	}
	return true;
}

/* The last word between blanks. */
static struct str last_word(struct str text)
{
	while (text.len && text.ptr[text.len - 1] == ' ')
		text.len--;
	return str_skip(text, str_rfind_char(text, ' ') + 1);
}

void shell_complete_option(bool tfprof, struct str before, struct completions *out)
{
	size_t blank = str_rfind_char(before, ' ');
	struct str word = str_skip(before, blank + 1),
		   previous = last_word(str_first(before, blank));
	size_t equals = str_find_char(word, '=');

	out->word = blank + 1;
	if (!tfprof && word.len && word.ptr[0] == '-' && equals != STR_NONE) {
		out->word += equals + 1;
		(void)add_value(tfprof, str_first(word, equals), str_skip(word, equals + 1), out);
		return;
	}
	if (word.len && word.ptr[0] == '-')
		add_options(tfprof, word, out);
	else if (!add_value(tfprof, previous, word, out) || (tfprof && !out->count))
		add_options(tfprof, word, out);
}
