/*
 * cmd_baseline.c: `opwatch baseline add|list|check PLACE`: keeps runs of a job in a folder or on a ClickHouse server (baseline_place.h) and compares new
 * runs with the last comparable ones, for nightly jobs.
 */
#include "cli/baseline/baseline_place.h"

#include "base/json_escape.h"

#include <time.h>
#include <unistd.h>

#define LAST_USUAL 8u

struct baseline_args {
	struct ow_list fail_if;
	const char *commit;
	uint32_t last;
};

static void init(void *own)
{
	((struct baseline_args *)own)->last = LAST_USUAL;
}

bool baseline_open(struct args *args, const char *name, struct baseline *place, int *code)
{
	*place = (struct baseline){ .name = name, .lock = -1 };
	if (strstr(name, "://"))
		return baseline_use_server(args, place, code);
	baseline_use_folder(place);
	return true;
}

void baseline_close(struct baseline *place)
{
	ow_remote_free(place->remote);
	if (*place->temp)
		(void)rmdir(place->temp);
}

static const char *commit_of(const struct baseline_args *own)
{
	static const char *const variables[] = { "GITHUB_SHA", "CI_COMMIT_SHA", "GIT_COMMIT" };

	if (own->commit)
		return own->commit;
	for (size_t i = 0; i < ARRAY_COUNT(variables); i++) {
		const char *value = getenv(variables[i]);

		if (value && *value)
			return value;
	}
	return "";
}

/* Returns the configuration of the job that the files describe, as a JSON object. */
static struct str configuration_of(struct args *args, ow_profile *profile)
{
	struct ow_error err = { 0 };
	ow_result *r;
	struct str text;
	struct mem mem;
	struct buf json;

	if (ow_configuration(profile, &r, &err) != OW_OK)
		return STR("");
	mem_init(&mem, 0);
	buf_init(&json, &mem);
	for (uint32_t i = 0; i < ow_result_rows(r); i++)
		for (uint32_t k = 0; k < 2; k++) {
			size_t len = 0;
			const char *part = ow_result_text(r, i, k, &len);

			buf_puts(&json, k ? ": " : i ? ", " : "{");
			json_quote(&json, str_make(part ? part : "", part ? len : 0));
		}
	buf_puts(&json, json.len ? "}" : "{}");
	text = arena_str(args->arena, json.failed ? STR("") : buf_str(&json));
	buf_release(&json);
	ow_result_free(r);
	return text;
}

static int add_run(struct args *args, struct baseline *place, const char *file)
{
	char host[256] = "", when[64] = "";
	time_t now = time(NULL);
	struct kept_run run;
	struct ow_error err = { 0 };
	int code = EXIT_GOOD;
	ow_profile *profile = diff_load(args, file, &code);
	ow_status status;
	struct tm tm;

	if (!profile)
		return code;
	if (gethostname(host, sizeof(host) - 1) != 0)
		host[0] = '\0';
	if (gmtime_r(&now, &tm))
		strftime(when, sizeof(when), "%Y-%m-%dT%H:%M:%SZ", &tm);
	/* With --redact a run is known by its number. */
	run = (struct kept_run){ .added = str_from(when),
				 .commit = str_from(commit_of(args->own)),
				 .host = args->input.open.redact ? STR("") : str_from(host),
				 .file = args->input.open.redact ? STR("") : str_from(file),
				 .configuration = configuration_of(args, profile) };
	status = place->add(args, place, profile, &run, &err);
	ow_profile_free(profile);
	if (status != OW_OK) {
		complain("opwatch: %s\n", err.text);
		return EXIT_FAILED;
	}
	if (run.id)
		printf("%s: kept as %s\n", file, run.id);
	else
		printf("%s: kept as run %u\n", file, run.number);
	return EXIT_GOOD;
}

static int add(struct args *args, struct baseline *place)
{
	int code = place->begin(args, place);

	for (size_t i = 2; i < args->file_count && code == EXIT_GOOD; i++)
		code = add_run(args, place, args->files[i]);
	place->end(place);
	return code;
}

static void put_known(struct buf *to, const char *name, struct str value)
{
	buf_printf(to, ", \"%s\": ", name);
	if (value.len)
		json_quote(to, value);
	else
		buf_puts(to, "null");
}

/* Returns the end of the JSON string that begins at `at`; 0 if it does not end or is not as
 * `add` writes it. */
static size_t text_end(struct str json, size_t at)
{
	if (at >= json.len || json.ptr[at] != '"')
		return 0;
	for (size_t i = at + 1; i < json.len; i++) {
		if ((unsigned char)json.ptr[i] < ' ')
			return 0;
		if (json.ptr[i] == '\\')
			i++;
		else if (json.ptr[i] == '"')
			return i + 1;
	}
	return 0;
}

/* Checks for an object such as {"device": "A100", "world_size": "8"}: files and rows may have been changed
 * since `add` wrote them. */
static bool is_object_of_texts(struct str json)
{
	size_t at = 1;

	if (str_eq(json, STR("{}")))
		return true;
	if (json.len < 2 || json.ptr[0] != '{' || !utf8_valid(json))
		return false;
	while ((at = text_end(json, at)) && str_starts(str_skip(json, at), STR(": ")) &&
	       (at = text_end(json, at + 2))) {
		if (at + 1 == json.len)
			return json.ptr[at] == '}';
		if (!str_starts(str_skip(json, at), STR(", ")))
			return false;
		at += 2;
	}
	return false;
}

static void print_json(const struct kept_runs *runs)
{
	struct mem mem;
	struct buf text;

	mem_init(&mem, 0);
	buf_init(&text, &mem);
	buf_puts(&text, "{\"schema_version\": 1, \"rows\": [");
	for (size_t i = 0; i < runs->count; i++) {
		const struct kept_run *run = &runs->items[i];

		buf_printf(&text, "%s\n  {\"run\": %u", i ? "," : "", run->number);
		put_known(&text, "added", run->added);
		put_known(&text, "commit", run->commit);
		put_known(&text, "host", run->host);
		put_known(&text, "file", run->file);
		/* the check above passed; the configuration of older runs and of foreign rows is
		 * unknown */
		buf_puts(&text, ", \"configuration\": ");
		if (is_object_of_texts(run->configuration))
			buf_add_str(&text, run->configuration);
		else
			buf_puts(&text, "null");
		if (run->id)
			put_known(&text, "id", str_from(run->id));
		buf_add_char(&text, '}');
	}
	buf_puts(&text, "\n]}\n");
	printf("%.*s", STR_ARG(buf_str(&text)));
	buf_release(&text);
}

static int list(struct args *args, struct baseline *place)
{
	struct kept_runs runs = { 0 };

	if (!place->list(args, place, &runs))
		return EXIT_FAILED;
	if (strcmp(args->output.sink, "json") == 0) {
		print_json(&runs);
		return EXIT_GOOD;
	}
	if (!runs.count)
		printf("%s: no runs yet\n", place->name);
	for (size_t i = 0; i < runs.count; i++) {
		const struct kept_run *run = &runs.items[i];

		printf("%6u  %.*s  %-12.*s  %.*s  %.*s\n", run->number, STR_ARG(run->added),
		       (int)MIN(run->commit.len, 12u), run->commit.ptr, STR_ARG(run->host),
		       STR_ARG(run->file));
	}
	return EXIT_GOOD;
}

/* Loads the last runs that can be compared with the new one, newest first. */
static size_t load_base(struct args *args, struct baseline *place, const struct kept_runs *runs,
			ow_profile *other, ow_profile **base)
{
	const struct baseline_args *own = args->own;
	size_t count = 0;

	for (size_t i = runs->count; i-- && count < own->last && !interrupted;) {
		int code = EXIT_GOOD;
		ow_profile *profile = place->load(args, place, &runs->items[i], &code);

		if (profile && diff_is_comparable(profile, other))
			base[count++] = profile;
		else
			ow_profile_free(profile);
	}
	return count;
}

static int compare(struct args *args, struct baseline *place, const struct kept_runs *runs,
		   ow_profile **profiles)
{
	const struct baseline_args *own = args->own;
	size_t others = args->file_count - 2, count;
	ow_profile **base = profiles + others;
	struct ow_diff_options options;
	int code = EXIT_GOOD;

	for (size_t i = 0; i < others && code == EXIT_GOOD; i++)
		profiles[i] = diff_load(args, args->files[i + 2], &code);
	if (code != EXIT_GOOD)
		return code;
	count = load_base(args, place, runs, profiles[0], base);
	if (!count) {
		complain("opwatch: %s: none of its %zu runs can be compared with %s\n", place->name,
			 runs->count, args->files[2]);
		return runs->count ? EXIT_NOT_COMPARABLE : EXIT_INCONCLUSIVE;
	}
	ow_diff_options_init(&options);
	options.fail_if = own->fail_if;
	return diff_show(args, base, count, profiles, others, &options);
}

static int check(struct args *args, struct baseline *place)
{
	const struct baseline_args *own = args->own;
	size_t most = args->file_count + own->last;
	ow_profile **profiles = ARENA_ARRAY(args->arena, ow_profile *, most);
	struct kept_runs runs = { 0 };
	int code;

	if (!profiles || !output_choose(args) || !place->list(args, place, &runs))
		return EXIT_FAILED;
	code = compare(args, place, &runs, profiles);
	for (size_t i = 0; i < most; i++)
		ow_profile_free(profiles[i]);
	return code;
}

static int run_baseline(struct args *args)
{
	const char *word = args->file_count ? args->files[0] : "";
	bool is_list = strcmp(word, "list") == 0;
	int code = EXIT_FAILED;
	struct baseline place;

	if (!is_list && strcmp(word, "add") != 0 && strcmp(word, "check") != 0) {
		(void)usage_error("baseline needs an action: add, list or check");
		return EXIT_USAGE;
	}
	if (args->file_count < 2 || (is_list ? args->file_count > 2 : args->file_count < 3)) {
		(void)usage_error("baseline %s takes a folder or a server%s", word,
				  is_list ? "" : ", and at least one file");
		return EXIT_USAGE;
	}
	if (!baseline_open(args, args->files[1], &place, &code))
		return code;
	if (is_list)
		code = list(args, &place);
	else
		code = strcmp(word, "add") == 0 ? add(args, &place) : check(args, &place);
	baseline_close(&place);
	return code;
}

static const struct option options[] = {
	{ "commit", STORE_TEXT(struct baseline_args, commit), .argument = "ID",
	  .help = "with add: the commit of the runs (default: $GITHUB_SHA or $CI_COMMIT_SHA)" },
	{ "last", STORE_UINT32(struct baseline_args, last, 1, 1000), .argument = "N",
	  .help = "with check: compare with the last N comparable runs", .usual = "8" },
	{ "fail-if", STORE_REPEAT(struct baseline_args, fail_if), .argument = "LIMIT",
	  .help = "with check: exit codes by this limit, as for 'opwatch diff'" },
	{ "password-file", STORE_TEXT(struct args, run.password_file), .argument = "FILE",
	  .help = "read the password of the server from this file" },
};

const struct command cmd_baseline = {
	.name = "baseline",
	.usage = "add|check PLACE FILE… | list PLACE [--fail-if LIMIT]",
	.summary = "keep runs in a folder or on a server, to compare new ones",
	.help = "PLACE is a folder or clickhouse://USER@HOST:8123/DB. add keeps each file as\n"
		"a run, with the commit, the time, the host and the configuration. check\n"
		"compares the files with the last comparable runs (same devices, same world\n"
		"size) as 'opwatch diff' does, with the same outputs and exit codes; 6 if nothing\n"
		"was added yet, 4 if no run is comparable. The password of a server is read from\n"
		"OPWATCH_CLICKHOUSE_PASSWORD or --password-file.\n",
	.has_answer = true,
	.examples = { "opwatch baseline add runs before.json", "opwatch baseline list runs" },
	.own = OPTIONS(options),
	.groups = { &output_options, &input_options },
	.own_size = sizeof(struct baseline_args),
	.init = init,
	.run = run_baseline,
};
