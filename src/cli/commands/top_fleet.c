/*
 * top_fleet.c: `opwatch top --on clickhouse://…`: the jobs of all hosts whose daemons send roll-ups to that server, asked for
 * every two seconds: jobs, the ranks with the most work of their own, and the last anomalies. cmd_top.c calls it.
 */
#include "cli/commands/top.h"

#include "base/clock.h"

#include <opwatch/push.h>

#include <errno.h>

#define ASK_NS (2 * 1000000000LL)

/* SQL: selects the rows that daemons sent in the last minute. */
static const char jobs_text[] =
	"SELECT job, host, user, state, round(step_ns / 1e6, 2) AS step_ms,"
	" round(steps_per_s, 2) AS steps_per_s, round(trend * 100) AS trend_percent,"
	" round(if(arraySum(phase_ns) > 0, phase_ns[indexOf(phase, 'input')] /"
	" arraySum(phase_ns), 0) * 100) AS input_percent,"
	" round(if(arraySum(phase_ns) > 0, phase_ns[indexOf(phase, 'communication')] /"
	" arraySum(phase_ns), 0) * 100) AS comm_percent,"
	" round(cpu, 2) AS cpu, round(run_wait, 2) AS run_wait,"
	" round(memory_bytes / 1e6) AS memory_mb, steps, processes, dropped,"
	" toInt64(now()) - toInt64(time) AS age_s FROM opwatch_live_job"
	" WHERE day >= today() - 1 AND time > now() - 60"
	" ORDER BY job, host, time_ns DESC LIMIT 1 BY job, host";
static const char ranks_text[] =
	"SELECT job, rank, host, round(step_ns / 1e6, 2) AS step_ms,"
	" round(own_ns / 1e6, 2) AS own_ms, steps FROM (SELECT * FROM opwatch_live_rank"
	" WHERE day >= today() - 1 AND time > now() - 60"
	" ORDER BY job, host, rank, time_ns DESC LIMIT 1 BY job, host, rank)"
	" ORDER BY own_ms DESC LIMIT 10";
static const char anomalies_text[] =
	"SELECT time, host, job, kind, why FROM opwatch_live_anomaly"
	" WHERE day >= today() - 1 AND time > now() - 86400 ORDER BY time_ns DESC LIMIT 10";

struct question {
	const char *title, *text;
};

/* The questions in the order of the screen; with --once only the first one is printed. */
static const struct question questions[] = {
	{ "", jobs_text },
	{ "ranks with the most work of their own", ranks_text },
	{ "anomalies of the last day", anomalies_text },
};

struct fleet_screen {
	struct args *args;
	ow_remote *remote;
	struct mem mem;
	struct screen screen;
	struct buf tables[ARRAY_COUNT(questions)];
	char problem[512];
	int64_t asked_ns;
};

static bool add_bytes(void *to, const void *bytes, size_t len)
{
	buf_add(to, bytes, len);
	return true;
}

/* Replaces control characters, because names come from other programs. */
static void keep_printable(struct buf *text)
{
	struct buf safe;
	struct str rest = buf_str(text), line;

	buf_init(&safe, text->mem);
	while (rest.len && str_split(&rest, '\n', &line)) {
		jobtext_add(&safe, line, SIZE_MAX / 2, false);
		buf_add_char(&safe, '\n');
	}
	buf_release(text);
	*text = safe;
}

/* Asks a question. A table that no host has created yet counts as empty. */
static ow_status ask(struct fleet_screen *f, size_t i, const char *sink, struct buf *to,
		     struct ow_error *err)
{
	ow_result *result;
	ow_status status = ow_remote_query(f->remote, questions[i].text, &result, err);

	buf_clear(to);
	if (status != OW_OK)
		return status;
	status = ow_result_write(result, sink, NULL, add_bytes, to, err);
	ow_result_free(result);
	if (status == OW_OK && strcmp(sink, "text") == 0)
		keep_printable(to);
	return status;
}

static void refresh(struct fleet_screen *f)
{
	struct ow_error err = { 0 };
	ow_status status = OW_OK;

	for (size_t i = 0; i < ARRAY_COUNT(questions) && status == OW_OK; i++)
		status = ask(f, i, "text", &f->tables[i], &err);
	f->problem[0] = '\0';
	if (status == OW_E_NOT_FOUND)
		snprintf(f->problem, sizeof(f->problem),
			 "no host has sent anything yet: opwatch daemon --push …");
	else if (status != OW_OK)
		snprintf(f->problem, sizeof(f->problem), "%.500s", err.text);
}

static void draw(struct fleet_screen *f)
{
	struct screen *s = &f->screen;

	screen_begin(s);
	screen_line(s, STR("opwatch top  jobs of all hosts                    q quit"));
	for (size_t i = 0; i < ARRAY_COUNT(questions); i++) {
		struct str rest = buf_str(&f->tables[i]), line;

		if (!rest.len || screen_left(s) < 4)
			continue;
		if (questions[i].title[0]) {
			screen_line(s, STR(""));
			screen_line(s, str_from(questions[i].title));
		}
		while (rest.len && screen_left(s) > 1 && str_split(&rest, '\n', &line))
			screen_line(s, line);
	}
	while (screen_left(s) > 1)
		screen_line(s, STR(""));
	screen_line(s, str_from(f->problem));
	screen_end(s);
}

static int run_screen(struct fleet_screen *f)
{
	int key = KEY_NONE;

	if (!screen_open(&f->screen, &f->mem, f->args->terminal.colour)) {
		complain("opwatch: the terminal: %s\n", strerror(errno));
		return EXIT_FAILED;
	}
	while (!screen_ended() && key != 'q' && key != 'Q' && key != 3 && key != KEY_EOF) {
		if (!f->asked_ns || steady_ns() - f->asked_ns >= ASK_NS) {
			refresh(f);
			f->asked_ns = steady_ns();
		}
		draw(f);
		key = screen_key(&f->screen, 500);
	}
	screen_close(&f->screen);
	return EXIT_GOOD;
}

static int run_once(struct fleet_screen *f)
{
	struct ow_error err = { 0 };
	struct buf *to = &f->tables[0];
	ow_status status = ask(f, 0, f->args->output.sink, to, &err);

	if (status != OW_OK) {
		complain("opwatch: %s\n", err.text);
		return EXIT_FAILED;
	}
	if (!output_redirect(f->args))
		return EXIT_FAILED;
	return fwrite(to->ptr, 1, to->len, stdout) == to->len && fflush(stdout) == 0 ? EXIT_GOOD
										     : EXIT_FAILED;
}

static bool goes_on(void *arg)
{
	(void)arg;
	return !screen_ended();
}

int top_fleet(struct args *args, const char *address, const char *password_file, bool once)
{
	struct fleet_screen f = { .args = args };
	struct ow_remote_options options;
	struct ow_error err = { 0 };
	int code;

	ow_remote_options_init(&options);
	options.password_file = password_file;
	options.silence_ms = 30000;
	options.keep_going = goes_on;
	if (ow_remote_open(address, &options, &f.remote, &err) != OW_OK) {
		complain("opwatch: %s\n", err.text);
		return EXIT_FAILED;
	}
	mem_init(&f.mem, 0);
	for (size_t i = 0; i < ARRAY_COUNT(questions); i++)
		buf_init(&f.tables[i], &f.mem);
	code = once ? run_once(&f) : run_screen(&f);
	for (size_t i = 0; i < ARRAY_COUNT(questions); i++)
		buf_release(&f.tables[i]);
	ow_remote_free(f.remote);
	return code;
}
