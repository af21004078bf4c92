/*
 * cmd_top.c: running jobs on a terminal, drawn twice a second, or once as text or JSON. What is shown comes from
 * ow_watch_…, how it looks from jobtext.c, the terminal is screen.c's; here are the loop and the keys.
 */
#include "cli/command.h"

#include "base/clock.h"
#include "cli/jobtext.h"
#include "cli/recording.h"
#include "cli/screen.h"
#include "cli/signals.h"

#include <errno.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TURN_NS (500 * 1000000LL)
#define SAVE_NS (60 * 1000000000LL)
#define FLAME_NS (3 * 1000000000LL)
#define WRITTEN_MOST ((uint64_t)1 << 30) /* bytes that the key w writes */
#define ASK_NS (2 * 1000000000LL)	 /* the daemon, for new jobs */
#define SETTLE_US 250000 /* between two looks at processors, to say how busy they are */

struct top {
	struct args *args;
	ow_watch *watch;
	struct mem mem;
	struct screen screen;
	struct buf text;
	struct ow_job *jobs; /* in the order that is shown */
	size_t count, cap;
	size_t selected, first; /* of what is shown */
	char chosen[4096];	/* the path of the selected one, which stays selected */
	enum job_order order;
	bool frozen, help, more;
	bool alone; /* the daemon does not answer */
	int64_t asked_ns;
	uint64_t written_bytes;
	char message[512];
};

/* ---- what is there ---- */

/* The selected one stays selected, wherever it is then. */
static void sort(struct top *t)
{
	if (!t->chosen[0] && t->count)
		t->selected = 0;
	jobtext_sort(t->jobs, t->count, t->order);
	for (size_t i = 0; i < t->count; i++)
		if (strcmp(t->jobs[i].path, t->chosen) == 0)
			t->selected = i;
	t->selected = t->count ? MIN(t->selected, t->count - 1) : 0;
}

static ow_status gather(struct top *t, struct ow_error *err)
{
	size_t count = ow_watch_count(t->watch);
	void *list = t->jobs;

	if (!mem_grow(&t->mem, &list, &t->cap, count + 1, sizeof(*t->jobs))) {
		snprintf(err->text, sizeof(err->text), "out of memory");
		return OW_E_NO_MEMORY;
	}
	t->jobs = list;
	for (t->count = 0; t->count < count; t->count++) {
		t->jobs[t->count].size = sizeof(*t->jobs);
		ow_watch_job(t->watch, t->count, &t->jobs[t->count]);
	}
	sort(t);
	return OW_OK;
}

/* Jobs that have come since. A daemon that is gone is no reason to end: it may come again. */
static ow_status look_for_jobs(struct top *t, struct ow_error *err)
{
	struct ow_error silent = { 0 };
	int64_t now = steady_ns();
	ow_status status;

	if (t->args->file_count || t->args->job || now - t->asked_ns < ASK_NS)
		return OW_OK;
	t->asked_ns = now;
	status = ow_watch_add_jobs(t->watch, t->args->socket, NULL, &silent);
	t->alone = status != OW_OK;
	if (status == OW_E_NO_MEMORY)
		*err = silent;
	return status == OW_E_NO_MEMORY ? status : OW_OK;
}

static ow_status turn(struct top *t, struct ow_error *err)
{
	ow_status status = look_for_jobs(t, err);

	if (status == OW_OK)
		status = ow_watch_turn(t->watch, &t->more, err);
	return status == OW_OK ? gather(t, err) : status;
}

/* Of the watch, whose order is another one. */
static size_t watch_index(const struct top *t)
{
	struct ow_job job = { .size = sizeof(job) };

	for (size_t i = 0; ow_watch_job(t->watch, i, &job); i++)
		if (strcmp(job.path, t->jobs[t->selected].path) == 0)
			return i;
	return SIZE_MAX;
}

/* ---- once ---- */

static void print_text(struct top *t)
{
	struct jobtext text = { &t->text, t->args->terminal.width, t->args->terminal.colour };

	jobtext_head(&text, t->order);
	for (size_t i = 0; i < t->count; i++)
		jobtext_row(&text, &t->jobs[i], false);
	jobtext_legend(&text);
	for (size_t i = 0; i < t->count; i++) {
		buf_add_char(&t->text, '\n');
		jobtext_detail(&text, &t->jobs[i], 16);
	}
}

static int run_once(struct top *t)
{
	struct ow_error err = { 0 };
	bool running = false;
	ow_status status;

	if (!args_redirect(t->args))
		return EXIT_FAILED;
	do
		status = turn(t, &err);
	while (status == OW_OK && t->more);
	for (size_t i = 0; i < t->count; i++)
		running |= t->jobs[i].pid_count > 0;
	if (status == OW_OK && running) {
		usleep(SETTLE_US);
		status = turn(t, &err);
	}
	if (status != OW_OK) {
		complain("opwatch: %s\n", err.text);
		return EXIT_FAILED;
	}
	if (strcmp(t->args->sink, "json") == 0)
		jobtext_json(&t->text, t->jobs, t->count);
	else
		print_text(t);
	if (t->text.failed || fwrite(t->text.ptr, 1, t->text.len, stdout) != t->text.len ||
	    fflush(stdout) != 0) {
		complain("opwatch: standard output: %s\n", strerror(errno));
		return EXIT_FAILED;
	}
	return EXIT_GOOD;
}

/* ---- drawing ---- */

static const char *const help_lines[] = {
	"up, down, j, k   select a job",
	"s                sort by another column (job, step, trend, input, comm, cpu)",
	"space            freeze, and go on",
	"w                write what was recorded in the last minute to a file",
	"f                write a flame graph: of the Python stacks of the last minute,",
	"                 where they are recorded, or of three seconds, or else of the",
	"                 operations",
	"h, ?             this help",
	"q                quit",
	"",
	"STEP   median time of a step of the last ten seconds",
	"TREND  the last eight steps against those before",
	"INPUT  part of a step that waits for data; COMM: for other ranks",
	"CPU    processors that the job keeps busy; DEV: part of the time a device works",
};

/* Lines of the buffer, as far as there are rows. */
static void draw_text(struct top *t)
{
	struct str rest = buf_str(&t->text), line;

	if (rest.len && rest.ptr[rest.len - 1] == '\n')
		rest.len--;
	while (rest.ptr && t->text.len && str_split(&rest, '\n', &line))
		screen_line(&t->screen, line);
	buf_clear(&t->text);
}

static void draw_title(struct top *t)
{
	const struct screen *s = &t->screen;
	char left[128], clock[16];
	const char *right = s->width >= 60 ? "h help  q quit" : "h q";
	time_t now = time(NULL);
	struct tm tm;
	size_t used;

	if (!localtime_r(&now, &tm) || !strftime(clock, sizeof(clock), "%H:%M:%S", &tm))
		clock[0] = '\0';
	snprintf(left, sizeof(left), "opwatch top  %zu job%s  by %s  %s%s%s", t->count,
		 t->count == 1 ? "" : "s", job_order_names[t->order], clock,
		 t->frozen ? "  FROZEN" : "",
		 t->alone  ? "  NO DAEMON"
		 : t->more ? "  reading…"
			   : "");
	used = utf8_width(str_from(left));
	buf_printf(&t->text, "%s%s", screen_style(s->colour, 7), left);
	if (used + strlen(right) + 1 < s->width) {
		buf_add_repeat(&t->text, ' ', s->width - used - strlen(right));
		buf_puts(&t->text, right);
	}
	draw_text(t);
}

/* As many jobs as fit above what is told of the selected one. */
static void draw_jobs(struct top *t, const struct jobtext *text)
{
	uint32_t room = screen_left(&t->screen), rows;

	jobtext_head(text, t->order);
	draw_text(t);
	rows = room > 12 ? (room - 8) / 2 : room > 4 ? room - 4 : 1;
	rows = (uint32_t)MIN((size_t)MAX(rows, 1u), MAX(t->count, (size_t)1));
	rows -= t->count > rows && rows > 2; /* for the line that says so */
	if (t->selected < t->first)
		t->first = t->selected;
	if (t->selected >= t->first + rows)
		t->first = t->selected - rows + 1;
	t->first = t->count > rows ? MIN(t->first, t->count - rows) : 0;
	for (size_t i = t->first; i < MIN(t->count, t->first + rows); i++)
		jobtext_row(text, &t->jobs[i], i == t->selected);
	if (t->count > rows && rows > 1)
		buf_printf(&t->text, "  %zu more above, %zu below\n", t->first,
			   t->count - t->first - rows);
	draw_text(t);
}

static void draw_selected(struct top *t, const struct jobtext *text)
{
	uint32_t left;

	if (screen_left(&t->screen) > 8) {
		jobtext_legend(text);
		buf_add_char(&t->text, '\n');
		draw_text(t);
		if (screen_left(&t->screen))
			screen_line(&t->screen, STR(""));
	}
	left = screen_left(&t->screen);
	if (left > 1 && t->count)
		jobtext_detail(text, &t->jobs[t->selected], left - 1);
	else if (left > 1)
		buf_puts(&t->text, "No job runs under the daemon.\n");
	draw_text(t);
}

static void draw(struct top *t)
{
	struct screen *s = &t->screen;
	struct jobtext text = { &t->text, s->width, s->colour };

	screen_begin(s);
	draw_title(t);
	if (t->help) {
		for (size_t i = 0; i < ARRAY_COUNT(help_lines); i++)
			screen_line(s, str_from(help_lines[i]));
	} else {
		draw_jobs(t, &text);
		draw_selected(t, &text);
	}
	while (screen_left(s) > 1)
		screen_line(s, STR(""));
	screen_line(s, str_from(t->message));
	screen_end(s);
}

/* ---- keys ---- */

/* A name that is free: opwatch-20261116-120304.opw, and with -2 and on. */
static bool free_name(struct top *t, const char *ending, char *to, size_t size)
{
	const char *name = recording_name(t->args->arena);
	int len = name ? (int)strlen(name) - 4 : 0;

	for (unsigned i = 1; len > 0 && i < 100; i++) {
		char number[8] = "";

		if (i > 1)
			snprintf(number, sizeof(number), "-%u", i);
		snprintf(to, size, "%.*s%s%s", len, name, number, ending);
		if (access(to, F_OK) != 0)
			return true;
	}
	return false;
}

/* What jobs do is nobody else's business. */
static void save(struct top *t)
{
	mode_t old = umask(077);
	struct ow_error err = { 0 };
	char path[256];
	struct stat st;
	bool full = t->written_bytes >= WRITTEN_MOST;
	bool good = !full && free_name(t, ".opw", path, sizeof(path)) &&
		    ow_watch_save(t->watch, watch_index(t), SAVE_NS, path, &err) == OW_OK;

	umask(old);
	if (good && stat(path, &st) == 0)
		t->written_bytes += (uint64_t)st.st_size;
	if (full)
		snprintf(t->message, sizeof(t->message),
			 "not written: what was written takes %.1f GB; start top anew for more",
			 (double)t->written_bytes / 1e9);
	else if (!good)
		snprintf(t->message, sizeof(t->message), "not written: %.400s", err.text);
	else
		snprintf(t->message, sizeof(t->message), "written: %s", path);
}

static ow_status write_flame(ow_profile *profile, const char *view, const char *path,
			     struct ow_error *err)
{
	static const char *const columns[] = { "micros" };
	struct ow_view_options options;
	ow_result *result;
	ow_status status;

	ow_view_options_init(&options);
	options.select = (struct ow_list){ columns, 1 };
	status = ow_view(profile, view, &options, &result, err);
	if (status != OW_OK)
		return status;
	status = ow_result_write_file(result, "flamegraph", NULL, path, err);
	ow_result_free(result);
	return status;
}

static bool go_on(void *arg, const struct ow_stacks_summary *so_far)
{
	(void)arg;
	(void)so_far;
	return !screen_ended();
}

/* Of the Python stacks of its processes; false when that cannot be done. */
static bool flame_of_processes(struct top *t, const struct ow_job *job, const char *path)
{
	struct ow_stacks_options options;
	struct ow_error err = { 0 };
	ow_profile *profile;
	bool good;

	ow_stacks_options_init(&options);
	options.for_ns = FLAME_NS;
	options.no_children = true; /* they are all named */
	options.progress = go_on;
	snprintf(t->message, sizeof(t->message), "sampling Python stacks for three seconds …");
	draw(t);
	if (!job->pid_count ||
	    ow_stacks_record(job->pids, job->pid_count, &options, &profile, NULL, &err) != OW_OK)
		return false;
	good = write_flame(profile, "code", path, &err) == OW_OK;
	ow_profile_free(profile);
	return good;
}

static bool has_stacks(ow_profile *profile)
{
	struct ow_error err = { 0 };
	ow_result *functions;
	bool any;

	if (ow_view(profile, "functions", NULL, &functions, &err) != OW_OK)
		return false;
	any = ow_result_rows(functions) > 0;
	ow_result_free(functions);
	return any;
}

/* Stacks that were recorded tell of a minute; else they are taken now, or else there are the operations. What it is of, or
 * NULL. */
static const char *write_any_flame(struct top *t, const char *path, struct ow_error *err)
{
	const char *what = "the Python stacks of the last minute";
	ow_profile *profile = NULL;
	bool good = ow_watch_profile(t->watch, watch_index(t), SAVE_NS, &profile, err) == OW_OK;

	if (good && has_stacks(profile)) {
		good = write_flame(profile, "code", path, err) == OW_OK;
	} else if (flame_of_processes(t, &t->jobs[t->selected], path)) {
		what = "Python stacks";
		good = true;
	} else if (good) {
		what = "operations";
		good = write_flame(profile, "scope", path, err) == OW_OK;
	}
	ow_profile_free(profile);
	return good ? what : NULL;
}

static void flame(struct top *t)
{
	struct ow_error err = { 0 };
	const char *what;
	char path[256];

	if (!free_name(t, ".svg", path, sizeof(path)))
		return;
	what = write_any_flame(t, path, &err);
	if (what)
		snprintf(t->message, sizeof(t->message), "written: %s, of %s", path, what);
	else
		snprintf(t->message, sizeof(t->message), "no flame graph: %.400s", err.text);
}

static void move(struct top *t, int64_t by)
{
	int64_t to = (int64_t)t->selected + by;

	if (!t->count)
		return;
	t->selected = (size_t)MAX(MIN(to, (int64_t)t->count - 1), 0);
	snprintf(t->chosen, sizeof(t->chosen), "%s", t->jobs[t->selected].path);
}

/* False: quit. */
static bool on_key(struct top *t, int key)
{
	if (key != KEY_NONE && key != KEY_RESIZE)
		t->message[0] = '\0';
	if (t->help && key >= ' ' && key < 127 && !strchr("hqQ?", key))
		t->help = false; /* what the key does is to be seen */
	switch (key) {
	case 'q':
	case 'Q':
	case 3: /* ctrl-C, where the terminal makes no signal of it */
	case KEY_EOF:
		return false;
	case 'h':
	case '?':
		t->help = !t->help;
		break;
	case 27:
		t->help = false;
		break;
	case ' ':
	case 'p':
		t->frozen = !t->frozen;
		break;
	case 's':
		t->order = (enum job_order)((t->order + 1) % JOB_ORDERS);
		sort(t);
		break;
	case 'j':
	case KEY_DOWN:
		move(t, 1);
		break;
	case 'k':
	case KEY_UP:
		move(t, -1);
		break;
	case KEY_PAGE_DOWN:
		move(t, 10);
		break;
	case KEY_PAGE_UP:
		move(t, -10);
		break;
	case KEY_HOME:
		move(t, -(int64_t)t->count);
		break;
	case KEY_END:
		move(t, (int64_t)t->count);
		break;
	case 'w':
		if (t->count)
			save(t);
		break;
	case 'f':
		if (t->count)
			flame(t);
		break;
	default:
		break;
	}
	return true;
}

static int run_screen(struct top *t)
{
	struct ow_error err = { 0 };
	ow_status status = OW_OK;
	int64_t due = 0;
	bool go = true;

	if (!screen_open(&t->screen, &t->mem, t->args->terminal.colour)) {
		complain("opwatch: the terminal: %s\n", strerror(errno));
		return EXIT_FAILED;
	}
	while (go && !screen_ended() && status == OW_OK) {
		int64_t now = steady_ns();

		if (now >= due) {
			if (!t->frozen)
				status = turn(t, &err);
			due = t->more ? now : now + TURN_NS;
		}
		draw(t);
		now = steady_ns();
		go = on_key(t, screen_key(&t->screen,
					  due > now ? (int)((due - now) / 1000000) + 1 : 0));
	}
	screen_close(&t->screen);
	if (status == OW_OK)
		return EXIT_GOOD;
	complain("opwatch: %s\n", err.text);
	return EXIT_FAILED;
}

/* ---- the command ---- */

static ow_status open_all(struct top *t, struct ow_error *err)
{
	struct ow_watch_options options;
	ow_status status;

	ow_watch_options_init(&options);
	options.memory_limit = t->args->open.memory_limit;
	options.step_marker = t->args->open.step_marker;
	status = ow_watch_new(&options, &t->watch, err);
	for (size_t i = 0; i < t->args->file_count && status == OW_OK; i++)
		status = ow_watch_add(t->watch, t->args->files[i], err);
	if (status == OW_OK && (!t->args->file_count || t->args->job))
		status = ow_watch_add_jobs(t->watch, t->args->socket, t->args->job, err);
	return status;
}

static int run(struct args *args)
{
	struct top t = { .args = args };
	bool once = args->once || !args->terminal.out || !args->terminal.in || args->out_file ||
		    strcmp(args->sink, "text") != 0;
	struct ow_error err = { 0 };
	int code;

	if (strcmp(args->sink, "text") != 0 && strcmp(args->sink, "json") != 0) {
		complain("opwatch top: prints text or --json\n");
		return EXIT_USAGE;
	}
	mem_init(&t.mem, 0);
	buf_init(&t.text, &t.mem);
	if (open_all(&t, &err) != OW_OK) {
		complain("opwatch: %s\n", err.text);
		if (!args->file_count && !args->job)
			complain("opwatch: a recording can be watched without it: opwatch top "
				 "x.opw, "
				 "while 'opwatch record -o x.opw -- PROGRAM' runs\n");
		code = EXIT_FAILED;
	} else {
		code = once ? run_once(&t) : run_screen(&t);
	}
	ow_watch_free(t.watch);
	buf_release(&t.text);
	mem_free(&t.mem, t.jobs, t.cap * sizeof(*t.jobs));
	return code;
}

const struct command cmd_top = {
	.name = "top",
	.usage = "[FILE.opw… | --job NAME] [--once] [--json]",
	.summary = "running jobs as they go: steps, phases, operations",
	.help = "Shows the jobs of the daemon, or recordings while they are written (opwatch\n"
		"record, attach), drawn twice a second: the time of a step and its trend, where\n"
		"it goes, processors and devices, operations, waits for data and other ranks.\n"
		"Keys: up and down select, s sorts, space freezes, w writes the last minute to a\n"
		"file, f a flame graph, h helps, q quits. Without a terminal, with --once or\n"
		"--json, it is printed once.\n",
	.flags = "json out job socket once step-marker memory-limit",
	.run = run,
	.takes_job = true,
};
