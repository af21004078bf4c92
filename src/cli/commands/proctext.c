/*
 * proctext.c: processes, functions and the host as text for `opwatch top`. cmd_top.c and top_draw.c call it with what the
 * library read; it neither reads /proc nor draws.
 */
#include "cli/commands/proctext.h"

#include "base/human.h"
#include "base/json_escape.h"
#include "cli/terminal/screen.h"

#include <ctype.h>
#include <math.h>

const char *const process_order_names[PROCESS_ORDERS] = { "cpu",     "wait", "memory", "read",
							  "written", "pid",  "user",   "name" };

static const char *style(const struct jobtext *t, unsigned number)
{
	return screen_style(t->colour, number);
}

static double key_of(const struct ow_process *p, enum process_order order)
{
	switch (order) {
	case PROCESS_BY_CPU:
		return p->cpu;
	case PROCESS_BY_WAIT:
		return p->wait;
	case PROCESS_BY_MEMORY:
		return (double)p->memory;
	case PROCESS_BY_READ:
		return p->read_rate;
	case PROCESS_BY_WRITTEN:
		return p->write_rate;
	default:
		return 0;
	}
}

static int compare(const struct ow_process *a, const struct ow_process *b, enum process_order order)
{
	double x = key_of(a, order), y = key_of(b, order);
	int text = 0;

	if (x != y)
		return x < y ? 1 : -1;
	if (order == PROCESS_BY_USER)
		text = strcmp(a->user, b->user);
	else if (order == PROCESS_BY_NAME)
		text = strcmp(a->name, b->name);
	return text ? text : (a->pid > b->pid) - (a->pid < b->pid);
}

#define COMPARE(name, order)                                                                       \
	static int name(const void *a, const void *b)                                              \
	{                                                                                          \
		return compare(a, b, order);                                                       \
	}
COMPARE(by_cpu, PROCESS_BY_CPU)
COMPARE(by_wait, PROCESS_BY_WAIT)
COMPARE(by_memory, PROCESS_BY_MEMORY)
COMPARE(by_read, PROCESS_BY_READ)
COMPARE(by_written, PROCESS_BY_WRITTEN)
COMPARE(by_pid, PROCESS_BY_PID)
COMPARE(by_user, PROCESS_BY_USER)
COMPARE(by_name, PROCESS_BY_NAME)

void proctext_sort(struct ow_process *processes, size_t count, enum process_order order,
		   bool reverse)
{
	static int (*const compares[PROCESS_ORDERS])(const void *, const void *) = {
		by_cpu, by_wait, by_memory, by_read, by_written, by_pid, by_user, by_name
	};

	if (count && order < PROCESS_ORDERS)
		qsort(processes, count, sizeof(*processes), compares[order]);
	for (size_t i = 0; reverse && i < count / 2; i++) {
		struct ow_process other = processes[i];

		processes[i] = processes[count - 1 - i];
		processes[count - 1 - i] = other;
	}
}

static bool contains(const char *text, const char *part)
{
	size_t len = strlen(part);

	for (; *text; text++)
		if (strncasecmp(text, part, len) == 0)
			return true;
	return len == 0;
}

bool proctext_matches(const struct ow_process *p, const char *part)
{
	char number[24];

	snprintf(number, sizeof(number), "%" PRId64, p->pid);
	return contains(p->name, part) || contains(p->arguments, part) || contains(p->user, part) ||
	       strcmp(number, part) == 0;
}

/* Writes a size such as "12.3MB"; "-" if unknown. */
static void add_bytes(struct buf *to, double bytes, size_t columns)
{
	char text[HUMAN_SIZE] = "-";

	if (bytes >= 0)
		human_int(text, (int64_t)bytes, HUMAN_UNIT_BYTES, false);
	jobtext_right(to, text, columns);
}

static void add_number(struct buf *to, double value, size_t columns)
{
	char text[32] = "-";

	if (value >= 0)
		snprintf(text, sizeof(text), value >= 99.95 ? "%.0f" : "%.2f", value);
	jobtext_right(to, text, columns);
}

/* Writes the waiting threads: blue if threads wait for a processor, red if many do. */
static void add_wait(const struct jobtext *t, double wait, size_t columns)
{
	bool much = wait >= 0.1;

	buf_puts(t->to, much ? style(t, wait >= 0.5 ? 31 : 33) : "");
	add_number(t->to, wait, columns);
	buf_puts(t->to, much ? style(t, 0) : "");
}

struct layout {
	bool threads, wait, io, steps;
	size_t user, history, command;
};

static struct layout layout_of(uint32_t width, bool steps)
{
	struct layout l = { .wait = width >= 48,
			    .threads = width >= (steps ? 90 : 70),
			    .io = width >= 64,
			    .steps = steps && width >= 72 };
	size_t fixed = 1 + 7 + 2 + 6 + 7, left;

	l.user = width >= 100 ? 12 : width >= 40 ? 9 : 0;
	fixed += l.user + 6 * (size_t)l.wait + 16 * (size_t)l.io + 5 * (size_t)l.threads +
		 8 * (size_t)l.steps + 1;
	left = width > fixed ? width - fixed : 4;
	l.history = width >= 100 ? MIN(left / 2, (size_t)80) : 0;
	l.command = left - l.history - (l.history ? 1 : 0);
	return l;
}

static void add_head(const struct jobtext *t, const char *text, size_t columns, bool sorted)
{
	char word[32];

	snprintf(word, sizeof(word), "%s%s", text, sorted ? "↓" : "");
	jobtext_right(t->to, word, columns);
}

void proctext_head(const struct jobtext *t, enum process_order order, bool steps)
{
	struct layout l = layout_of(t->width, steps);

	buf_printf(t->to, "%s ", style(t, 1));
	add_head(t, "PID", 7, order == PROCESS_BY_PID);
	if (l.user) {
		buf_add_char(t->to, ' ');
		jobtext_add(t->to, order == PROCESS_BY_USER ? STR("USER↓") : STR("USER"),
			    l.user - 1, true);
	}
	buf_puts(t->to, " S");
	add_head(t, "CPU", 6, order == PROCESS_BY_CPU);
	if (l.wait)
		add_head(t, "WAIT", 6, order == PROCESS_BY_WAIT);
	add_head(t, "MEM", 7, order == PROCESS_BY_MEMORY);
	if (l.io) {
		add_head(t, "READ/S", 8, order == PROCESS_BY_READ);
		add_head(t, "WRITE/S", 8, order == PROCESS_BY_WRITTEN);
	}
	if (l.threads)
		add_head(t, "THR", 5, false);
	if (l.steps)
		add_head(t, "STEP/S", 8, false);
	buf_add_char(t->to, ' ');
	if (l.history) {
		jobtext_add(t->to, STR("CPU OF THE LAST MINUTES"), l.history, true);
		buf_add_char(t->to, ' ');
	}
	jobtext_add(t->to, order == PROCESS_BY_NAME ? STR("COMMAND↓") : STR("COMMAND"), l.command,
		    false);
	buf_printf(t->to, "%s\n", style(t, 0));
}

/* Returns the command line without the program's folder, so that the distinguishing part is
 * visible. */
static const char *command_of(const struct ow_process *p)
{
	size_t word = strcspn(p->arguments, " "), at = word;

	while (at > 0 && p->arguments[at - 1] != '/')
		at--;
	return !p->arguments[0] ? p->name : at < word ? p->arguments + at : p->arguments;
}

void proctext_row(const struct jobtext *t, const struct ow_process *p, bool selected, bool steps,
		  const struct ow_job_rank *of)
{
	struct layout l = layout_of(t->width, steps);
	char text[32];

	buf_printf(t->to, "%s%c", selected ? style(t, 1) : "", selected ? '>' : ' ');
	snprintf(text, sizeof(text), "%" PRId64, p->pid);
	jobtext_right(t->to, text, 7);
	if (l.user) {
		buf_add_char(t->to, ' ');
		jobtext_add(t->to, str_from(p->user), l.user - 1, true);
	}
	buf_printf(t->to, " %c", p->state >= 'A' && p->state <= 'z' ? p->state : '?');
	add_number(t->to, p->cpu, 6);
	if (l.wait)
		add_wait(t, p->wait, 6);
	add_bytes(t->to, (double)p->memory, 7);
	if (l.io) {
		add_bytes(t->to, p->read_rate, 8);
		add_bytes(t->to, p->write_rate, 8);
	}
	if (l.threads) {
		snprintf(text, sizeof(text), "%u", p->threads);
		jobtext_right(t->to, text, 5);
	}
	if (l.steps && of && of->steps_per_s >= 0)
		add_number(t->to, of->steps_per_s, 8);
	else if (l.steps)
		buf_add_repeat(t->to, ' ', 8);
	buf_add_char(t->to, ' ');
	if (l.history) {
		jobtext_spark(t, p->history, p->history_count, 0, l.history);
		buf_add_char(t->to, ' ');
	}
	jobtext_add(t->to, str_from(command_of(p)), l.command, false);
	buf_printf(t->to, "%s\n", style(t, 0));
}

void proctext_detail(const struct jobtext *t, const struct ow_process *p, uint32_t lines)
{
	static const struct {
		char letter;
		const char *word;
	} states[] = { { 'R', "runs" },
		       { 'S', "sleeps" },
		       { 'D', "waits for a disk or a device" },
		       { 'T', "is stopped" },
		       { 't', "is traced" },
		       { 'I', "is idle" } };
	const char *word = "";

	for (size_t i = 0; i < ARRAY_COUNT(states); i++)
		if (states[i].letter == p->state)
			word = states[i].word;
	if (lines-- < 1)
		return;
	buf_puts(t->to, style(t, 1));
	jobtext_add(t->to, str_from(p->name), 32, false);
	buf_printf(t->to, "%s  pid %" PRId64 " of ", style(t, 0), p->pid);
	jobtext_add(t->to, str_from(p->user), 24, false);
	buf_printf(t->to, "  %s  %u thread%s  parent %" PRId64 "\n", word, p->threads,
		   p->threads == 1 ? "" : "s", p->parent);
	if (lines-- < 1)
		return;
	jobtext_add(t->to, str_from(p->arguments), t->width, false);
	buf_add_char(t->to, '\n');
	if (lines < 1)
		return;
	buf_puts(t->to, "cpu    ");
	jobtext_spark(t, p->history, p->history_count, 0, t->width > 24 ? t->width - 16 : 8);
	add_number(t->to, p->cpu, 7);
	buf_add_char(t->to, '\n');
}

void proctext_host(const struct jobtext *t, const struct ow_host *h)
{
	size_t picture = t->width >= 150 ? 60 : t->width >= 110 ? 30 : t->width >= 80 ? 10 : 0;
	char used[HUMAN_SIZE], total[HUMAN_SIZE];

	human_int(used, h->memory_used, HUMAN_UNIT_BYTES, false);
	human_int(total, h->memory_total, HUMAN_UNIT_BYTES, false);
	buf_puts(t->to, " cpu ");
	if (picture)
		jobtext_spark(t, h->history, h->history_count, h->cpus, picture);
	add_number(t->to, h->cpu, 5);
	buf_printf(t->to, " of %u", h->cpus);
	if (h->load >= 0)
		buf_printf(t->to, "  %sload %.1f%s", h->load > h->cpus * 1.5 ? style(t, 31) : "",
			   h->load, h->load > h->cpus * 1.5 ? style(t, 0) : "");
	buf_printf(t->to, "  mem %s of %s", used, total);
	buf_puts(t->to, "  disk");
	add_bytes(t->to, h->disk_read, 7);
	add_bytes(t->to, h->disk_written, 7);
	if (t->width >= 110) {
		buf_puts(t->to, "  net in");
		add_bytes(t->to, h->received, 7);
		buf_puts(t->to, " out");
		add_bytes(t->to, h->sent, 7);
	}
	buf_add_char(t->to, '\n');
}

static void add_share(struct buf *to, double share, size_t columns)
{
	char text[32];

	snprintf(text, sizeof(text), share >= 0.0995 ? "%.0f %%" : "%.1f %%", share * 100);
	jobtext_right(to, text, columns);
}

void proctext_functions(const struct jobtext *t, ow_processes *from, size_t count, const char *why,
			uint32_t lines)
{
	size_t left = t->width > 26 ? t->width - 26 : 10, place = left >= 30 ? left * 2 / 5 : 0;
	struct ow_function f = { .size = sizeof(f) };

	if (lines < 2)
		return;
	buf_puts(t->to, style(t, 1));
	jobtext_add(t->to, STR("FUNCTION"), left - place, true);
	if (place) {
		buf_add_char(t->to, ' ');
		jobtext_add(t->to, STR("WHERE"), place - 1, true);
	}
	jobtext_right(t->to, "OWN", 8);
	jobtext_right(t->to, "TOTAL", 8);
	jobtext_right(t->to, "ON CPU", 8);
	buf_printf(t->to, "%s\n", style(t, 0));
	lines--;
	if (why[0] || !count) {
		buf_puts(t->to, style(t, 2));
		jobtext_add(t->to, str_from(why[0] ? why : "sampling …"), t->width, false);
		buf_printf(t->to, "%s\n", style(t, 0));
		lines--;
	}
	for (size_t i = 0; lines && i < count && ow_processes_function(from, i, &f); i++, lines--) {
		jobtext_add(t->to, str_from(f.name), left - place, true);
		if (place) {
			buf_add_char(t->to, ' ');
			jobtext_add(t->to, human_fit_end(str_from(f.place), place - 1), place - 1,
				    true);
		}
		add_share(t->to, f.own, 8);
		add_share(t->to, f.total, 8);
		add_share(t->to, f.cpu, 8);
		buf_add_char(t->to, '\n');
	}
}

void proctext_threads(const struct jobtext *t, const ow_processes *from, size_t count,
		      uint32_t lines)
{
	struct ow_thread thread = { .size = sizeof(thread) };
	size_t name = t->width > 24 ? t->width - 24 : 8;
	char text[32];

	if (lines < 2)
		return;
	buf_printf(t->to, "%s    TID S   CPU  WAIT ", style(t, 1));
	jobtext_add(t->to, STR("THREAD"), name, false);
	buf_printf(t->to, "%s\n", style(t, 0));
	for (size_t i = 0; i < count && i + 1 < lines && ow_processes_thread(from, i, &thread);
	     i++) {
		bool ended = thread.state == 'X';

		snprintf(text, sizeof(text), "%" PRId64, thread.tid);
		buf_puts(t->to, ended ? style(t, 2) : "");
		jobtext_right(t->to, text, 7);
		buf_printf(t->to, " %c",
			   thread.state >= 'A' && thread.state <= 'z' ? thread.state : '?');
		add_number(t->to, thread.cpu, 6);
		add_wait(t, thread.wait, 6);
		buf_add_char(t->to, ' ');
		jobtext_add(t->to, str_from(thread.name), ended ? MIN(name, (size_t)16) : name,
			    false);
		buf_printf(t->to, "%s%s\n", ended && name > 24 ? "  ended" : "", style(t, 0));
	}
}

static void json_real(struct buf *to, const char *key, double value)
{
	if (value >= 0 && isfinite(value))
		buf_printf(to, ", \"%s\": %.6g", key, value);
	else
		buf_printf(to, ", \"%s\": null", key);
}

void proctext_json(struct buf *to, const struct ow_process *p)
{
	buf_printf(to, "{\"pid\": %" PRId64 ", \"parent\": %" PRId64 ", \"user\": ", p->pid,
		   p->parent);
	json_quote(to, str_from(p->user));
	buf_puts(to, ", \"name\": ");
	json_quote(to, str_from(p->name));
	buf_puts(to, ", \"arguments\": ");
	json_quote(to, str_from(p->arguments));
	buf_puts(to, ", \"state\": ");
	json_quote(to, str_make(&p->state, 1));
	buf_printf(to, ", \"threads\": %u", p->threads);
	json_real(to, "cpu", p->cpu);
	json_real(to, "run_wait", p->wait);
	json_real(to, "memory_bytes", (double)p->memory);
	json_real(to, "read_bytes_per_s", p->read_rate);
	json_real(to, "written_bytes_per_s", p->write_rate);
	buf_add_char(to, '}');
}

void proctext_functions_json(struct buf *to, const ow_processes *from)
{
	struct ow_function f = { .size = sizeof(f) };

	buf_add_char(to, '[');
	for (size_t i = 0; ow_processes_function(from, i, &f); i++) {
		buf_puts(to, i ? ", {\"name\": " : "{\"name\": ");
		json_quote(to, str_from(f.name));
		buf_puts(to, ", \"place\": ");
		json_quote(to, str_from(f.place));
		json_real(to, "own", f.own);
		json_real(to, "total", f.total);
		json_real(to, "cpu", f.cpu);
		buf_add_char(to, '}');
	}
	buf_add_char(to, ']');
}

void proctext_host_json(struct buf *to, const struct ow_host *h)
{
	buf_printf(to, "{\"cpus\": %u", h->cpus);
	json_real(to, "cpu", h->cpu);
	json_real(to, "load", h->load);
	json_real(to, "memory_total_bytes", (double)h->memory_total);
	json_real(to, "memory_used_bytes", (double)h->memory_used);
	json_real(to, "disk_read_bytes_per_s", h->disk_read);
	json_real(to, "disk_written_bytes_per_s", h->disk_written);
	json_real(to, "received_bytes_per_s", h->received);
	json_real(to, "sent_bytes_per_s", h->sent);
	buf_add_char(to, '}');
}
