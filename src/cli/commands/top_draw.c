/*
 * top_draw.c: the screen of `opwatch top`: the title, the host, the table of jobs or processes, and below it the selected one
 * with its processes, operations and functions, side by side where the screen is wide. Lines come from jobtext.c and
 * proctext.c; keys are in cmd_top.c.
 */
#include "cli/commands/top.h"

#include "base/vec.h"

#include <time.h>

#define WIDE 140u   /* screen width from which on two panels stand side by side */
#define PRINTED 40u /* number of processes that are printed once as text */

static const char *const help_lines[] = {
	"up, down, j, k   select a job or process",
	"s, S, r          sort by the next column, by the one before; reverse the order",
	"/                show only rows with a text; Enter: done, Esc: show all",
	"a                all processes of this host, or the jobs",
	"t                threads of a process, or its functions",
	"K                end the selected job or process; asks first",
	"space            freeze or continue",
	"w                write the records of the last minute to a file",
	"f                write a flame graph: of recorded stacks of the last minute,",
	"                 or else sampled for three seconds, or of operations",
	"h, ?             this help",
	"q                quit",
	"",
	"STEP   median time of a step of the last ten seconds; STEP/S steps per second",
	"TREND  the last eight steps, compared with the steps before",
	"INPUT  share of a step waiting for data; COMM: waiting for other ranks",
	"CPU    processors kept busy; DEV: share of time that a device works",
	"WAIT   threads that want to run and have no processor, on average",
	"MEM    resident memory; READ/S, WRITE/S: bytes by calls, from a disk or not",
	"OWN    share of the last seconds in the function itself; TOTAL: with what it",
	"       calls; ON CPU: part of OWN on a processor. 100 % is one thread.",
};

/* Draws the lines of the buffer, as long as there are rows. */
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
	bool jobs = t->mode == TOP_JOBS;
	char left[256], clock[16];
	const char *right = s->width >= 60 ? "h help  q quit" : "h q";
	size_t count = top_rows(t), used;
	time_t now = time(NULL);
	struct tm tm;

	if (!localtime_r(&now, &tm) || !strftime(clock, sizeof(clock), "%H:%M:%S", &tm))
		clock[0] = '\0';
	snprintf(left, sizeof(left), "opwatch top  %zu %s%s  by %s  %s%s%s", count,
		 jobs ? "job" : "process",
		 count == 1 ? ""
		 : jobs	    ? "s"
			    : "es",
		 jobs ? job_order_names[t->order] : process_order_names[t->process_order], clock,
		 t->frozen ? "  FROZEN" : "",
		 t->alone && jobs ? "  NO DAEMON"
		 : t->more	  ? "  reading…"
				  : "");
	if (t->filter[0])
		snprintf(left + strlen(left), sizeof(left) - strlen(left), "  /%s", t->filter);
	used = utf8_width(str_from(left));
	buf_printf(&t->text, "%s%s", screen_style(s->colour, 7), left);
	if (used + strlen(right) + 1 < s->width) {
		buf_add_repeat(&t->text, ' ', s->width - used - strlen(right));
		buf_puts(&t->text, right);
	}
	draw_text(t);
}

static void add_row(struct top *t, const struct jobtext *text, size_t i)
{
	if (t->mode == TOP_JOBS)
		jobtext_row(text, &t->jobs[i], &t->uses[i], i == t->selected);
	else
		proctext_row(text, &t->rows[i], i == t->selected, t->watch != NULL,
			     top_steps_of(t, t->rows[i].pid));
}

/* Returns the number of table rows: two thirds of the screen for processes, because they are
 * many and each has few details. */
static uint32_t table_rows(const struct top *t, uint32_t room)
{
	uint32_t below = 5 + MAX(room / 3, 7u);

	if (t->mode == TOP_PROCESSES && room > below + 6)
		return room - below;
	return room > 12 ? (room - 8) / 2 : room > 4 ? room - 4 : 1;
}

/* Draws as many rows as fit above the details of the selected row. */
static void draw_table(struct top *t, const struct jobtext *text)
{
	uint32_t room = screen_left(&t->screen), rows;
	size_t count = top_rows(t);

	if (t->mode == TOP_JOBS)
		jobtext_head(text, t->order);
	else
		proctext_head(text, t->process_order, t->watch != NULL);
	draw_text(t);
	rows = table_rows(t, room);
	rows = (uint32_t)MIN((size_t)MAX(rows, 1u), MAX(count, (size_t)1));
	rows -= count > rows && rows > 2; /* one row for the line that counts the hidden rows */
	if (t->selected < t->first)
		t->first = t->selected;
	if (t->selected >= t->first + rows)
		t->first = t->selected - rows + 1;
	t->first = count > rows ? MIN(t->first, count - rows) : 0;
	for (size_t i = t->first; i < MIN(count, t->first + rows); i++)
		add_row(t, text, i);
	if (count > rows && rows > 1)
		buf_printf(&t->text, "  %zu more above, %zu below\n", t->first,
			   count - t->first - rows);
	draw_text(t);
}

enum panel { PANEL_PROCESSES, PANEL_OPS, PANEL_THREADS, PANEL_FUNCTIONS, PANELS };

/* The data that the panels show in this picture. */
struct shown {
	size_t functions, threads;
	const char *why; /* functions could not be sampled */
};

/* Returns the number of lines that a panel fills, with its head; 0: it has nothing to show. */
static uint32_t panel_need(const struct top *t, enum panel panel, const struct shown *shown)
{
	const struct ow_job *job = t->mode == TOP_JOBS ? &t->jobs[t->selected] : NULL;

	switch (panel) {
	case PANEL_PROCESSES:
		return job && job->pid_count ? (uint32_t)MIN(job->pid_count, (size_t)64) + 1 : 0;
	case PANEL_OPS:
		return job && job->op_count ? (uint32_t)job->op_count + 1 : 0;
	case PANEL_THREADS:
		return shown->threads ? (uint32_t)shown->threads + 1 : 0;
	default:
		if (job && !job->pid_count)
			return 0;
		return (uint32_t)MAX(shown->functions, (size_t)1) + (shown->why[0] != '\0') + 1;
	}
}

/* Adds the processes of this job, ordered by CPU. */
static void add_processes(struct top *t, const struct jobtext *text, uint32_t lines)
{
	const struct ow_job *job = &t->jobs[t->selected];
	struct ow_process rows[64] = { 0 };
	size_t count = 0;

	for (size_t i = 0; i < job->pid_count && count < ARRAY_COUNT(rows); i++) {
		rows[count].size = sizeof(rows[count]);
		count += ow_processes_find(t->processes, job->pids[i], &rows[count]);
	}
	proctext_sort(rows, count, PROCESS_BY_CPU, false);
	proctext_head(text, PROCESS_ORDERS, job->has_steps);
	for (size_t i = 0; i < count && i + 1 < lines; i++)
		proctext_row(text, &rows[i], false, job->has_steps, top_steps_of(t, rows[i].pid));
}

static void add_panel(struct top *t, const struct jobtext *text, enum panel panel, uint32_t lines,
		      const struct shown *shown)
{
	if (lines < 2)
		return;
	if (panel == PANEL_PROCESSES)
		add_processes(t, text, lines);
	else if (panel == PANEL_OPS)
		jobtext_ops(text, &t->jobs[t->selected], lines);
	else if (panel == PANEL_THREADS)
		proctext_threads(text, t->processes, shown->threads, lines);
	else
		proctext_functions(text, t->processes, shown->functions, shown->why, lines);
}

/* Gives each panel the lines that it needs. If there are too few, the panels get one line each
 * in turn. */
static void share_lines(const uint32_t need[PANELS], uint32_t left, uint32_t got[PANELS])
{
	bool any = true;

	memset(got, 0, sizeof(*got) * PANELS);
	for (unsigned i = 0; i < PANELS; i++) /* a panel gets at least two lines, or none */
		if (need[i] && left >= 2) {
			got[i] = 2;
			left -= 2;
		}
	while (any && left) {
		any = false;
		for (unsigned i = 0; i < PANELS && left; i++)
			if (got[i] && got[i] < need[i]) {
				got[i]++;
				left--;
				any = true;
			}
	}
}

/* Draws two texts side by side; the left one takes `columns`. */
static void draw_beside(struct top *t, struct str left, struct str right, size_t columns)
{
	while (left.len || right.len) {
		struct str a = { 0 }, b = { 0 };
		size_t used = 0;

		if (left.len)
			str_split(&left, '\n', &a);
		if (right.len)
			str_split(&right, '\n', &b);
		a = screen_fit(a, columns, &used);
		buf_add_str(&t->text, a);
		buf_puts(&t->text, screen_style(t->screen.colour, 0));
		buf_add_repeat(&t->text, ' ', columns - used + 2);
		buf_add_str(&t->text, b);
		draw_text(t);
		if (!screen_left(&t->screen))
			return;
	}
}

static void draw_two(struct top *t, enum panel panel, uint32_t lines, const struct shown *shown)
{
	uint32_t half = (t->screen.width - 2) / (panel == PANEL_THREADS ? 3 : 2);
	struct buf left, right;
	struct jobtext a = { &left, half, t->screen.colour },
		       b = { &right, t->screen.width - 2 - half, t->screen.colour };

	buf_init(&left, &t->mem);
	buf_init(&right, &t->mem);
	add_panel(t, &a, panel, lines, shown);
	add_panel(t, &b, PANEL_FUNCTIONS, lines, shown);
	draw_beside(t, buf_str(&left), buf_str(&right), half);
	buf_release(&left);
	buf_release(&right);
}

/* Reads the threads of the selected process: always on a wide screen; on a narrow one they
 * replace the functions. */
static size_t read_threads(struct top *t)
{
	if (t->mode != TOP_PROCESSES || (!t->threads && t->screen.width < WIDE))
		return 0;
	return ow_processes_threads(t->processes, t->rows[t->selected].pid);
}

static void draw_panels(struct top *t, const struct jobtext *text)
{
	uint32_t left = screen_left(&t->screen), need[PANELS], got[PANELS];
	struct shown shown = { .why = "" };
	enum panel beside = PANELS; /* panel that stands beside the functions */

	shown.functions = ow_processes_functions(t->processes, &shown.why);
	shown.threads = read_threads(t);
	left -= left > 0; /* one line for the message */
	for (unsigned i = 0; i < PANELS; i++)
		need[i] = panel_need(t, (enum panel)i, &shown);
	if (t->screen.width < WIDE && shown.threads)
		need[PANEL_FUNCTIONS] = 0;
	if (t->screen.width >= WIDE && need[PANEL_FUNCTIONS])
		beside = need[PANEL_THREADS] ? PANEL_THREADS : need[PANEL_OPS] ? PANEL_OPS : PANELS;
	if (beside != PANELS) { /* both panels share the same lines */
		need[beside] = MAX(need[beside], need[PANEL_FUNCTIONS]);
		need[PANEL_FUNCTIONS] = 0;
	}
	share_lines(need, left, got);
	for (unsigned i = 0; i < PANELS; i++) {
		if (i == beside && got[i] >= 2)
			draw_two(t, beside, got[i], &shown);
		else
			add_panel(t, text, (enum panel)i, got[i], &shown);
		draw_text(t);
	}
}

static void draw_nothing(struct top *t)
{
	if (t->hidden)
		buf_printf(&t->text, "Nothing has '%s' in it. Esc shows all.\n", t->filter);
	else if (t->mode == TOP_JOBS)
		buf_puts(&t->text,
			 "No job reports to the daemon. Key a: processes of this host.\n");
	else
		buf_puts(&t->text, "The process has ended.\n");
	draw_text(t);
}

static void draw_selected(struct top *t, const struct jobtext *text)
{
	uint32_t left;

	if (t->mode == TOP_JOBS && screen_left(&t->screen) > 8) {
		jobtext_legend(text);
		draw_text(t);
		if (screen_left(&t->screen) > 12)
			screen_line(&t->screen, STR(""));
	} else if (screen_left(&t->screen) > 8) {
		screen_line(&t->screen, STR(""));
	}
	left = screen_left(&t->screen);
	if (left <= 1)
		return;
	if (t->selected >= top_rows(t)) {
		draw_nothing(t);
		return;
	}
	if (t->mode == TOP_JOBS)
		jobtext_detail(text, &t->jobs[t->selected], left - 1);
	else
		proctext_detail(text, &t->rows[t->selected], left - 1);
	draw_text(t);
	draw_panels(t, text);
}

static void draw_host(struct top *t, const struct jobtext *text)
{
	struct ow_host host = { .size = sizeof(host) };

	if (t->screen.height < 12 || t->screen.width < 60)
		return;
	ow_processes_host(t->processes, &host);
	proctext_host(text, &host);
	draw_text(t);
}

void top_draw(struct top *t)
{
	struct screen *s = &t->screen;
	struct jobtext text = { &t->text, s->width, s->colour };
	char asked[80];

	screen_begin(s);
	draw_title(t);
	if (t->help) {
		for (size_t i = 0; i < ARRAY_COUNT(help_lines); i++)
			screen_line(s, str_from(help_lines[i]));
	} else {
		draw_host(t, &text);
		draw_table(t, &text);
		draw_selected(t, &text);
	}
	while (screen_left(s) > 1)
		screen_line(s, STR(""));
	snprintf(asked, sizeof(asked), "/%s_", t->filter);
	screen_line(s, str_from(t->typing ? asked : t->message));
	screen_end(s);
}

static void print_functions(struct top *t, const struct jobtext *text)
{
	const char *why = "";
	size_t count = ow_processes_functions(t->processes, &why);

	if (!count && !why[0])
		return;
	buf_add_char(&t->text, '\n');
	proctext_functions(text, t->processes, count, why, 24);
}

void top_print(struct top *t)
{
	struct jobtext text = { &t->text, t->args->terminal.width, t->args->terminal.colour };

	if (t->mode == TOP_JOBS) {
		jobtext_head(&text, t->order);
		for (size_t i = 0; i < t->count; i++)
			jobtext_row(&text, &t->jobs[i], &t->uses[i], false);
		jobtext_legend(&text);
		for (t->selected = 0; t->selected < t->count; t->selected++) {
			buf_add_char(&t->text, '\n');
			jobtext_detail(&text, &t->jobs[t->selected], 4);
			if (t->jobs[t->selected].pid_count)
				add_processes(t, &text, 16);
			jobtext_ops(&text, &t->jobs[t->selected], 13);
		}
	} else {
		struct ow_host host = { .size = sizeof(host) };

		ow_processes_host(t->processes, &host);
		proctext_host(&text, &host);
		proctext_head(&text, t->process_order, false);
		for (size_t i = 0; i < MIN(t->row_count, (size_t)PRINTED); i++)
			proctext_row(&text, &t->rows[i], false, false, NULL);
		if (t->row_count > PRINTED)
			buf_printf(&t->text, "  %zu more\n", t->row_count - PRINTED);
	}
	print_functions(t, &text);
}

static void job_json(struct top *t, size_t i)
{
	const struct ow_job *job = &t->jobs[i];
	struct ow_process p = { .size = sizeof(p) };
	bool any = false;

	buf_add_char(&t->text, '{');
	jobtext_json(&t->text, job, &t->uses[i]);
	buf_puts(&t->text, ", \"process_list\": [");
	for (size_t k = 0; k < job->pid_count; k++)
		if (ow_processes_find(t->processes, job->pids[k], &p)) {
			buf_puts(&t->text, any ? ", " : "");
			proctext_json(&t->text, &p);
			any = true;
		}
	buf_puts(&t->text, "]}");
}

void top_print_json(struct top *t)
{
	struct ow_host host = { .size = sizeof(host) };
	const char *why = "";

	if (t->mode == TOP_JOBS) {
		buf_add_char(&t->text, '[');
		for (size_t i = 0; i < t->count; i++) {
			buf_puts(&t->text, i ? ",\n " : "");
			job_json(t, i);
		}
		buf_puts(&t->text, "]\n");
		return;
	}
	ow_processes_host(t->processes, &host);
	buf_puts(&t->text, "{\"host\": ");
	proctext_host_json(&t->text, &host);
	buf_puts(&t->text, ",\n \"processes\": [");
	for (size_t i = 0; i < t->row_count; i++) {
		buf_puts(&t->text, i ? ",\n  " : "");
		proctext_json(&t->text, &t->rows[i]);
	}
	buf_puts(&t->text, "],\n \"functions\": ");
	ow_processes_functions(t->processes, &why);
	proctext_functions_json(&t->text, t->processes);
	buf_puts(&t->text, "}\n");
}
