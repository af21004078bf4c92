/*
 * cmd_top.c: `opwatch top`: running jobs and processes on a terminal, drawn twice a second, or once as text or JSON. Here are
 * the command, the loop and the keys; the screen is in top_draw.c, what keys write and end in top_actions.c.
 */
#include "cli/commands/top.h"

#include "base/clock.h"
#include "base/vec.h"

#include <errno.h>
#include <unistd.h>

#define TURN_NS (500 * 1000000LL)
#define ALL_TURN_NS (1000 * 1000000LL) /* time between two readings of all processes of the host */
#define ASK_NS (2 * 1000000000LL)      /* time between two requests to the daemon for new jobs */
#define SETTLE_US 250000  /* between two readings of CPU time, to compute how busy the CPUs are */
#define SAMPLE_US 1000000 /* how long functions are sampled for one print */
#define PIDS_MAX 1024u

struct top_args {
	struct live_args live;
	bool once;
	const char *on, *password_file;
};

/* Keeps the selected row selected when it moves. */
static void keep_selection(struct top *t)
{
	size_t count = top_rows(t);

	if (t->mode == TOP_JOBS ? !t->chosen[0] : !t->chosen_pid)
		t->selected = 0;
	for (size_t i = 0; i < count; i++)
		if (t->mode == TOP_JOBS ? strcmp(t->jobs[i].path, t->chosen) == 0
					: t->rows[i].pid == t->chosen_pid)
			t->selected = i;
	t->selected = count ? MIN(t->selected, count - 1) : 0;
}

static bool contains(const char *text, const char *part)
{
	size_t len = strlen(part);

	for (; *text; text++)
		if (strncasecmp(text, part, len) == 0)
			return true;
	return len == 0;
}

/* Returns whether the filter matches a job's name, or one of its processes as read last. */
static bool job_matches(const struct top *t, const struct ow_job *job)
{
	struct ow_process p = { .size = sizeof(p) };

	for (size_t i = 0; i < job->pid_count; i++)
		if (ow_processes_find(t->processes, job->pids[i], &p) &&
		    proctext_matches(&p, t->filter))
			return true;
	return contains(job->name, t->filter);
}

const struct ow_job_rank *top_steps_of(const struct top *t, int64_t pid)
{
	size_t count = t->watch ? ow_watch_count(t->watch) : 0;
	struct ow_job job = { .size = sizeof(job) };

	for (size_t i = 0; i < count && ow_watch_job(t->watch, i, &job); i++) {
		/* the ranks belong to the watch, not to `job` */
		const struct ow_job_rank *rank = job.ranks;

		for (size_t k = 0; k < job.rank_count; k++, rank++)
			if (rank->pid == pid && rank->steps)
				return rank;
	}
	return NULL;
}

static ow_status no_memory(struct ow_error *err)
{
	snprintf(err->text, sizeof(err->text), "out of memory");
	return OW_E_NO_MEMORY;
}

static ow_status read_jobs(struct top *t, struct ow_error *err)
{
	size_t count = ow_watch_count(t->watch);

	if (!vec_reserve(&t->mem, t->jobs, t->cap, count + 1))
		return no_memory(err);
	t->count = t->hidden = 0;
	for (size_t i = 0; i < count; i++) {
		struct ow_job *job = &t->jobs[t->count];

		job->size = sizeof(*job);
		ow_watch_job(t->watch, i, job);
		if (t->filter[0] && !job_matches(t, job))
			t->hidden++;
		else
			t->count++;
	}
	return OW_OK;
}

/* Reads the resources that the processes of each job use. */
static ow_status read_uses(struct top *t, struct ow_error *err)
{
	struct ow_process p = { .size = sizeof(p) };

	if (!vec_reserve(&t->mem, t->uses, t->use_cap, t->count + 1))
		return no_memory(err);
	for (size_t i = 0; i < t->count; i++) {
		t->uses[i] = JOB_USE_NONE;
		for (size_t k = 0; k < t->jobs[i].pid_count; k++)
			if (ow_processes_find(t->processes, t->jobs[i].pids[k], &p))
				job_use_add(&t->uses[i], &p);
	}
	jobtext_sort(t->jobs, t->uses, t->count, t->order, t->reverse);
	return OW_OK;
}

/* Adds new jobs. Continues if the daemon has ended, because it may be restarted. */
static ow_status add_new_jobs(struct top *t, struct ow_error *err)
{
	struct ow_error silent = { 0 };
	int64_t now = steady_ns();
	ow_status status;

	if (t->args->file_count || t->live->job || now - t->asked_ns < ASK_NS)
		return OW_OK;
	t->asked_ns = now;
	status = ow_watch_add_jobs(t->watch, t->live->socket, NULL, &silent);
	t->alone = status != OW_OK;
	if (status == OW_E_NO_MEMORY)
		*err = silent;
	return status == OW_E_NO_MEMORY ? status : OW_OK;
}

/* Reads the processes of all jobs. */
static ow_status read_job_processes(struct top *t, struct ow_error *err)
{
	int64_t pids[PIDS_MAX];
	size_t count = 0;

	for (size_t i = 0; i < t->count; i++)
		for (size_t k = 0; k < t->jobs[i].pid_count && count < PIDS_MAX; k++)
			pids[count++] = t->jobs[i].pids[k];
	return ow_processes_turn(t->processes, pids, count, false, err);
}

static ow_status refresh_jobs(struct top *t, struct ow_error *err)
{
	ow_status status = add_new_jobs(t, err);

	if (status == OW_OK)
		status = ow_watch_turn(t->watch, &t->more, err);
	if (status == OW_OK)
		status = read_jobs(t, err);
	if (status == OW_OK)
		status = read_job_processes(t, err);
	return status == OW_OK ? read_uses(t, err) : status;
}

/* Returns whether a process is shown; kernel threads are shown only while they are active. */
static bool is_shown(const struct top *t, const struct ow_process *p)
{
	if (t->filter[0])
		return proctext_matches(p, t->filter);
	return p->arguments[0] || p->cpu >= 0.005;
}

static ow_status read_rows(struct top *t, struct ow_error *err)
{
	size_t count = ow_processes_count(t->processes);

	if (!vec_reserve(&t->mem, t->rows, t->row_cap, count + 1))
		return no_memory(err);
	t->row_count = t->hidden = 0;
	for (size_t i = 0; i < count; i++) {
		struct ow_process *p = &t->rows[t->row_count];

		p->size = sizeof(*p);
		ow_processes_get(t->processes, i, p);
		if (is_shown(t, p))
			t->row_count++;
		else
			t->hidden += t->filter[0] != '\0';
	}
	proctext_sort(t->rows, t->row_count, t->process_order, t->reverse);
	return OW_OK;
}

/* Reads the processes. All processes of a large host are read less often, to limit the CPU time. */
static ow_status refresh_processes(struct top *t, struct ow_error *err)
{
	int64_t now = steady_ns(), cost;
	ow_status status = t->watch ? ow_watch_turn(t->watch, &t->more, err) : OW_OK;

	if (status != OW_OK)
		return status;
	if (t->roots || now >= t->processes_due_ns) {
		cost = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		status = ow_processes_turn(t->processes, t->roots, t->root_count, true, err);
		cost = clock_ns(CLOCK_THREAD_CPUTIME_ID) - cost;
		t->processes_due_ns = now + MAX(ALL_TURN_NS, cost * 25) - 50000000;
	}
	return status == OW_OK ? read_rows(t, err) : status;
}

static ow_status refresh(struct top *t, struct ow_error *err)
{
	int64_t pids[TOP_TARGETS];
	ow_status status = t->mode == TOP_JOBS ? refresh_jobs(t, err) : refresh_processes(t, err);

	if (status != OW_OK)
		return status;
	keep_selection(t);
	return ow_processes_sample(t->processes, pids, top_selected_pids(t, pids, TOP_TARGETS),
				   err);
}

/* Waits for a second reading, because rates need two, and for samples if the user gave a
 * process. */
static ow_status settle(struct top *t, struct ow_error *err)
{
	bool running = t->mode == TOP_PROCESSES;
	ow_status status;

	do
		status = refresh(t, err);
	while (status == OW_OK && t->more);
	for (size_t i = 0; i < t->count; i++)
		running |= t->jobs[i].pid_count > 0;
	if (status != OW_OK || !running)
		return status;
	usleep(t->roots ? SAMPLE_US : SETTLE_US);
	t->processes_due_ns = 0;
	return refresh(t, err);
}

static int run_once(struct top *t)
{
	struct ow_error err = { 0 };

	if (!output_redirect(t->args))
		return EXIT_FAILED;
	if (settle(t, &err) != OW_OK) {
		complain("opwatch: %s\n", err.text);
		return EXIT_FAILED;
	}
	if (strcmp(t->args->output.sink, "json") == 0)
		top_print_json(t);
	else
		top_print(t);
	if (t->text.failed || fwrite(t->text.ptr, 1, t->text.len, stdout) != t->text.len ||
	    fflush(stdout) != 0) {
		complain("opwatch: standard output: %s\n", strerror(errno));
		return EXIT_FAILED;
	}
	return EXIT_GOOD;
}

static void move_selection(struct top *t, int64_t by)
{
	size_t count = top_rows(t);
	int64_t to = (int64_t)t->selected + by;

	if (!count)
		return;
	t->selected = (size_t)MAX(MIN(to, (int64_t)count - 1), 0);
	if (t->mode == TOP_JOBS)
		snprintf(t->chosen, sizeof(t->chosen), "%s", t->jobs[t->selected].path);
	else
		t->chosen_pid = t->rows[t->selected].pid;
}

/* Handles keys while the user types the filter. */
static void type_filter(struct top *t, int key)
{
	size_t len = strlen(t->filter);

	if (key == '\r' || key == '\n')
		t->typing = false;
	else if (key == 27 || key == 3) {
		t->typing = false;
		t->filter[0] = '\0';
	} else if ((key == 127 || key == 8) && len)
		t->filter[len - 1] = '\0';
	else if (key >= ' ' && key < 127 && len + 1 < sizeof(t->filter)) {
		t->filter[len] = (char)key;
		t->filter[len + 1] = '\0';
	}
}

static void sort_rows(struct top *t)
{
	if (t->mode == TOP_JOBS)
		jobtext_sort(t->jobs, t->uses, t->count, t->order, t->reverse);
	else
		proctext_sort(t->rows, t->row_count, t->process_order, t->reverse);
	keep_selection(t);
}

/* Sorts by the next or the previous column. */
static void change_order(struct top *t, int by)
{
	if (t->mode == TOP_JOBS)
		t->order = (enum job_order)(((int)t->order + by + JOB_ORDERS) % JOB_ORDERS);
	else
		t->process_order = (enum process_order)(
			((int)t->process_order + by + PROCESS_ORDERS) % PROCESS_ORDERS);
	sort_rows(t);
}

static void change_mode(struct top *t)
{
	if (!t->watch) {
		snprintf(t->message, sizeof(t->message), "no daemon with jobs is running");
		return;
	}
	t->mode = t->mode == TOP_JOBS ? TOP_PROCESSES : TOP_JOBS;
	t->selected = t->first = 0;
	t->processes_due_ns = 0;
}

static bool on_moving_key(struct top *t, int key)
{
	static const struct {
		int key;
		int64_t by;
	} moves[] = { { 'j', 1 },
		      { KEY_DOWN, 1 },
		      { 'k', -1 },
		      { KEY_UP, -1 },
		      { KEY_PAGE_DOWN, 10 },
		      { KEY_PAGE_UP, -10 },
		      { KEY_HOME, -(1 << 30) },
		      { KEY_END, 1 << 30 } };

	for (size_t i = 0; i < ARRAY_COUNT(moves); i++)
		if (moves[i].key == key) {
			move_selection(t, moves[i].by);
			return true;
		}
	return false;
}

/* Handles keys that change the next picture, which is drawn at once. */
static void on_action_key(struct top *t, int key)
{
	switch (key) {
	case 'h':
	case '?':
		t->help = !t->help;
		break;
	case 27:
		t->help = false;
		t->filter[0] = '\0';
		break;
	case ' ':
	case 'p':
		t->frozen = !t->frozen;
		break;
	case 's':
	case 'S':
		change_order(t, key == 's' ? 1 : -1);
		break;
	case 'r':
		t->reverse = !t->reverse;
		sort_rows(t);
		break;
	case 't':
		t->threads = !t->threads;
		break;
	case '/':
		t->typing = true;
		break;
	case 'a':
		change_mode(t);
		break;
	case 'K':
		top_ask_end(t);
		break;
	case 'w':
		if (t->mode == TOP_JOBS && t->count)
			top_save_job(t);
		break;
	case 'f':
		if (top_rows(t))
			top_save_flame_graph(t);
		break;
	default:
		break;
	}
}

/* Handles a key; false: quit. */
static bool on_key(struct top *t, int key)
{
	if (key == KEY_NONE || key == KEY_RESIZE)
		return true;
	if (key == KEY_EOF)
		return false;
	if (t->typing) {
		type_filter(t, key);
		return true;
	}
	if (t->target_count) {
		top_answer_end(t, key);
		return true;
	}
	t->message[0] = '\0';
	if (t->help && key >= ' ' && key < 127 && !strchr("hqQ?", key))
		t->help = false; /* so that the effect of the key is visible */
	if (key == 'q' || key == 'Q' ||
	    key == 3) /* Ctrl-C, if the terminal does not turn it into a signal */
		return false;
	if (!on_moving_key(t, key))
		on_action_key(t, key);
	return true;
}

/* Returns whether a key changes the set of rows, so that they are read again at once. */
static bool changes_rows(const struct top *t, int key)
{
	return key != KEY_NONE && (t->typing || strchr("a/\r\n\033", key & 127) != NULL);
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
		int key;

		if (now >= due) {
			if (!t->frozen)
				status = refresh(t, &err);
			due = t->more ? now : now + TURN_NS;
		}
		top_draw(t);
		now = steady_ns();
		key = screen_key(&t->screen, due > now ? (int)((due - now) / 1000000) + 1 : 0);
		go = on_key(t, key);
		if (go && !t->frozen && changes_rows(t, key))
			due = 0;
	}
	screen_close(&t->screen);
	if (status == OW_OK)
		return EXIT_GOOD;
	complain("opwatch: %s\n", err.text);
	return EXIT_FAILED;
}

static bool is_pid(const char *word)
{
	size_t len = strlen(word);

	return len && strspn(word, "0123456789") == len && access(word, F_OK) != 0;
}

/* Reads process ids: all words must be numbers, or none. */
static bool read_roots(struct top *t, bool *good)
{
	size_t count = t->args->file_count, pids = 0;

	for (size_t i = 0; i < count; i++)
		pids += is_pid(t->args->files[i]);
	*good = !pids || pids == count;
	if (!*good)
		complain("opwatch top: give process ids or files, not both\n");
	if (!pids || !*good)
		return false;
	t->roots = ARENA_ARRAY(t->args->arena, int64_t, count);
	*good = t->roots && live_pids(t->args, t->roots);
	t->root_count = count;
	return *good;
}

static ow_status open_watch(struct top *t, struct ow_error *err)
{
	struct ow_watch_options options;
	ow_status status;

	ow_watch_options_init(&options);
	options.memory_limit = t->args->input.open.memory_limit;
	options.step_marker = t->args->input.open.step_marker;
	status = ow_watch_new(&options, &t->watch, err);
	for (size_t i = 0; i < t->args->file_count && status == OW_OK; i++)
		status = ow_watch_add(t->watch, t->args->files[i], err);
	if (status == OW_OK && (!t->args->file_count || t->live->job))
		status = ow_watch_add_jobs(t->watch, t->live->socket, t->live->job, err);
	return status;
}

/* Checks that the given processes exist at the start; later they may end. */
static ow_status check_roots(struct top *t, struct ow_error *err)
{
	struct ow_process p = { .size = sizeof(p) };
	ow_status status = ow_processes_turn(t->processes, t->roots, t->root_count, false, err);

	for (size_t i = 0; status == OW_OK && i < t->root_count; i++)
		if (!ow_processes_find(t->processes, t->roots[i], &p)) {
			snprintf(err->text, sizeof(err->text), "no process has the id %" PRId64,
				 t->roots[i]);
			return OW_E_NOT_FOUND;
		}
	return status;
}

/* Shows the processes of this host if there is no daemon and the user did not ask for one. */
static ow_status open_all(struct top *t, struct ow_error *err)
{
	bool any = !t->args->file_count && !t->live->job && !t->live->socket &&
		   !getenv("OPWATCH_SOCKET");
	ow_status status = ow_processes_new(&t->processes, err);

	if (status != OW_OK)
		return status;
	if (t->roots) {
		t->mode = TOP_PROCESSES;
		return check_roots(t, err);
	}
	status = open_watch(t, err);
	if (status != OW_E_NOT_FOUND || !any)
		return status;
	ow_watch_free(t->watch);
	t->watch = NULL;
	t->mode = TOP_PROCESSES;
	snprintf(t->message, sizeof(t->message),
		 "no daemon: these are the processes of this host ('opwatch daemon' records jobs)");
	return OW_OK;
}

static int run_top(struct args *args)
{
	const struct top_args *own = args->own;
	struct top t = { .args = args, .live = &own->live };
	bool once = own->once || !args->terminal.out || !args->terminal.in || args->output.file ||
		    !output_is_text(args);
	struct ow_error err = { 0 };
	bool good;
	int code;

	if (!output_is_text(args) && strcmp(args->output.sink, "json") != 0) {
		complain("opwatch top: cannot print %s; the formats are text and json\n",
			 args->output.sink);
		return EXIT_USAGE;
	}
	if (own->on && (args->file_count || own->live.job)) {
		complain("opwatch top: --on shows the jobs of a server: no files, processes or "
			 "--job\n");
		return EXIT_USAGE;
	}
	if (own->on)
		return top_fleet(args, own->on, own->password_file, once);
	read_roots(&t, &good);
	if (!good)
		return EXIT_USAGE;
	mem_init(&t.mem, 0);
	buf_init(&t.text, &t.mem);
	if (open_all(&t, &err) != OW_OK) {
		complain("opwatch: %s\n", err.text);
		if (!args->file_count && !own->live.job)
			complain("opwatch: without the daemon, watch a recording: 'opwatch top "
				 "x.opw' while 'opwatch record -o x.opw -- PROGRAM' runs\n");
		code = EXIT_FAILED;
	} else {
		code = once ? run_once(&t) : run_screen(&t);
	}
	ow_processes_free(t.processes);
	ow_watch_free(t.watch);
	buf_release(&t.text);
	vec_free(&t.mem, t.jobs, t.cap);
	vec_free(&t.mem, t.uses, t.use_cap);
	vec_free(&t.mem, t.rows, t.row_cap);
	return code;
}

static const struct option options[] = {
	OPTION_JSON,
	OPTION_OUT("print once, to FILE"),
	{ "once", STORE_FLAG(struct top_args, once), .help = "print once, as text" },
	LIVE_JOB("show only this job of the daemon"),
	{ "on", STORE_TEXT(struct top_args, on), .argument = "ADDRESS",
	  .help = "show the jobs of all hosts that push to clickhouse://USER@HOST:PORT/DB" },
	{ "password-file", STORE_TEXT(struct top_args, password_file), .argument = "FILE",
	  .help = "read that server's password from this file, not from "
		  "OPWATCH_CLICKHOUSE_PASSWORD" },
	LIVE_SOCKET,
	OPTION_STEP_MARKER,
	OPTION_MEMORY_LIMIT,
};

const struct command cmd_top = {
	.name = "top",
	.usage = "[PID… | FILE.opw… | --job NAME | --on ADDRESS] [--once] [--json]",
	.summary = "watch running jobs and processes: steps, phases, functions",
	.help = "Shows the jobs of the daemon, recordings while they are written (opwatch record,\n"
		"attach, opwatch.steps of Python), or processes by their ids with their children,\n"
		"drawn twice a second: the time of a step and its trend, where the time goes,\n"
		"processors, waiting for a processor, memory, reading and writing, operations,\n"
		"and the functions that run now. Without a daemon: all processes of this host.\n"
		"Keys: up and down select, s and S sort, r reverses, / filters, a shows all\n"
		"processes, t threads, K ends a process after a question, space freezes, w writes\n"
		"the last minute to a file, f a flame graph, h shows help, q quits. Without a\n"
		"terminal, and with --once or --json, it prints once.\n",
	.examples = { "opwatch top x.opw --once", "opwatch top --job train --json" },
	.own = OPTIONS(options),
	.own_size = sizeof(struct top_args),
	.run = run_top,
};
