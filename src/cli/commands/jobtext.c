/*
 * jobtext.c: a running job as text: rows and details for `opwatch top`, and the same as JSON. cmd_top.c calls it with jobs
 * from the library; it does not draw on the terminal.
 */
#include "cli/commands/jobtext.h"

#include "base/human.h"
#include "base/json_escape.h"

#include "cli/terminal/screen.h"

#include <math.h>

/* Phases in the order of ow_phase_name. */
static const struct {
	const char *name, *shown;
	char letter; /* letter as in the view `steps` */
	unsigned style;
} phases[] = {
	{ "input", "input", 'I', 31 },	       { "host", "host", 'H', 34 },
	{ "initialisation", "init", 'B', 95 }, { "allocation", "mem", 'A', 91 },
	{ "launch", "launch", 'L', 94 },       { "host_to_device", "h2d", 'U', 36 },
	{ "compute", "compute", 'C', 32 },     { "communication", "comm", 'N', 33 },
	{ "device_to_host", "d2h", 'D', 36 },  { "synchronisation", "sync", 'S', 35 },
	{ "run_queue", "queue", 'Q', 93 },     { "idle", "idle", '.', 90 },
};

const char *const job_order_names[JOB_ORDERS] = { "job",    "step", "steps/s", "trend",
						  "input",  "comm", "cpu",     "wait",
						  "memory", "read", "written" };

void jobtext_time(char *to, size_t size, int64_t ns)
{
	char text[HUMAN_SIZE] = "-";

	if (ns >= 0)
		human_int(text, ns, HUMAN_UNIT_NS_APART, false);
	snprintf(to, size, "%s", text);
}

static void percent(char *to, size_t size, double part, bool sign)
{
	if (isnan(part) || (!sign && part < 0))
		snprintf(to, size, "-");
	else
		snprintf(to, size, sign ? "%+.0f %%" : "%.0f %%", part * 100 + (sign ? 0.0 : 0));
}

static int64_t total_of(const struct ow_job *job)
{
	int64_t total = 0;

	for (size_t i = 0; i < OW_PHASES; i++)
		total += job->phase_ns[i];
	return total;
}

double job_share(const struct ow_job *job, const char *phase)
{
	int64_t total = total_of(job);

	for (size_t i = 0; i < OW_PHASES && total > 0; i++)
		if (strcmp(ow_phase_name(i), phase) == 0)
			return (double)job->phase_ns[i] / (double)total;
	return -1;
}

static double key_of(const struct ow_job *job, const struct job_use *use, enum job_order order)
{
	switch (order) {
	case ORDER_STEP:
		return (double)job->step_ns;
	case ORDER_TREND:
		return isnan(job->trend) ? -2 : job->trend;
	case ORDER_INPUT:
		return job_share(job, "input");
	case ORDER_WAIT:
		return job_share(job, "communication");
	case ORDER_CPU:
		return job->cpu;
	case ORDER_THROUGHPUT:
		return job_throughput(job);
	case ORDER_QUEUE:
		return use->wait;
	case ORDER_MEMORY:
		return (double)use->memory;
	case ORDER_READ:
		return use->read_rate;
	case ORDER_WRITTEN:
		return use->write_rate;
	default:
		return 0;
	}
}

/* Sorts by insertion, because jobs are few and mostly in order; equal jobs keep their order. */
void jobtext_sort(struct ow_job *jobs, struct job_use *uses, size_t count, enum job_order order,
		  bool reverse)
{
	for (size_t i = 1; i < count; i++)
		for (size_t k = i; k > 0; k--) {
			double a = key_of(&jobs[k - 1], &uses[k - 1], order);
			double b = key_of(&jobs[k], &uses[k], order);
			int names = strcmp(jobs[k - 1].name, jobs[k].name);
			struct ow_job other = jobs[k];
			struct job_use other_use = uses[k];

			if (order == ORDER_NAME ? (reverse ? names >= 0 : names <= 0)
						: (reverse ? a <= b : a >= b))
				break;
			jobs[k] = jobs[k - 1];
			jobs[k - 1] = other;
			uses[k] = uses[k - 1];
			uses[k - 1] = other_use;
		}
}

static const char *style(const struct jobtext *t, unsigned number)
{
	return screen_style(t->colour, number);
}

/* Adds a bar in which each phase gets columns in proportion to its time; all columns are used. */
static void add_bar(const struct jobtext *t, const int64_t *parts, size_t columns)
{
	double total = 0, done = 0;
	size_t at = 0;

	for (size_t i = 0; i < OW_PHASES; i++)
		total += (double)MAX(parts[i], 0);
	for (size_t i = 0; i < OW_PHASES && total > 0; i++) {
		size_t end, phase = ARRAY_COUNT(phases) - 1;

		done += (double)MAX(parts[i], 0);
		end = (size_t)(done / total * (double)columns + 0.5);
		for (size_t k = 0; k < ARRAY_COUNT(phases); k++)
			if (strcmp(phases[k].name, ow_phase_name(i)) == 0)
				phase = k;
		if (end > at) {
			buf_puts(t->to, style(t, phases[phase].style));
			buf_add_repeat(t->to, phases[phase].letter, end - at);
		}
		at = MAX(at, end);
	}
	buf_puts(t->to, style(t, 0));
	buf_add_repeat(t->to, ' ', columns - MIN(at, columns));
}

/* Adds a name with control characters replaced: names come from other programs and must not move the
 * cursor or change the direction of text. */
static void escape(struct buf *to, struct str text)
{
	while (text.len) {
		uint32_t c = 0;
		size_t len = utf8_decode(text, &c);

		if (len == 1 && c == 0xfffd) { /* the byte is not valid UTF-8 */
			buf_printf(to, "\\x%02x", (unsigned)(unsigned char)text.ptr[0]);
		} else if (c < ' ' || (c >= 127 && c < 160)) {
			buf_printf(to, "\\x%02x", c);
		} else if (utf8_turns_text(c) || c == 0x2028 || c == 0x2029) {
			buf_printf(to, "\\u%04x", c);
		} else {
			buf_add(to, text.ptr, len);
		}
		text = str_skip(text, len);
	}
}

static bool is_plain(struct str text)
{
	for (size_t i = 0; i < text.len; i++)
		if ((unsigned char)text.ptr[i] < ' ' || (unsigned char)text.ptr[i] >= 127)
			return false;
	return true;
}

void jobtext_add(struct buf *to, struct str text, size_t columns, bool pad)
{
	struct str fits;
	struct buf escaped;
	size_t width;
	bool cut;

	buf_init(&escaped, to->mem);
	if (!is_plain(text)) {
		escape(&escaped, text);
		text = buf_str(&escaped);
	}
	fits = utf8_fit(text, columns);
	cut = fits.len < text.len && columns > 1;
	if (cut)
		fits = utf8_fit(text, columns - 1);
	width = utf8_width(fits) + cut;
	buf_add_str(to, fits);
	if (cut)
		buf_puts(to, "…");
	if (pad && width < columns)
		buf_add_repeat(to, ' ', columns - width);
	buf_release(&escaped);
}

void jobtext_right(struct buf *to, const char *text, size_t columns)
{
	size_t width = utf8_width(str_from(text));

	if (width < columns)
		buf_add_repeat(to, ' ', columns - width);
	buf_puts(to, text);
}

static const char *const marks[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };

void jobtext_spark(const struct jobtext *t, const double *values, size_t count, double most,
		   size_t columns)
{
	size_t shown = MIN(count, columns), first = count - shown;
	double full = most > 0 ? most : 1;

	for (size_t i = first; most <= 0 && i < count; i++)
		full = MAX(full, values[i]);
	buf_add_repeat(t->to, ' ', columns - shown);
	buf_puts(t->to, style(t, 32));
	for (size_t i = first; i < count; i++) {
		double part = values[i] > 0 ? values[i] / full : 0;

		buf_puts(t->to, marks[(size_t)MIN(part * 8, 7.0)]);
	}
	buf_puts(t->to, style(t, 0));
}

static void add_known(double *sum, double value)
{
	if (value >= 0)
		*sum = MAX(*sum, 0.0) + value;
}

void job_use_add(struct job_use *use, const struct ow_process *p)
{
	size_t len = strlen(use->user);

	if (!len)
		snprintf(use->user, sizeof(use->user), "%.31s", p->user);
	else if (use->user[len - 1] != '+' && strncmp(use->user, p->user, len) != 0)
		snprintf(use->user + MIN(len, sizeof(use->user) - 2), 2, "+");
	add_known(&use->wait, p->wait);
	if (p->memory >= 0)
		use->memory = MAX(use->memory, (int64_t)0) + p->memory;
	add_known(&use->read_rate, p->read_rate);
	add_known(&use->write_rate, p->write_rate);
}

double job_throughput(const struct ow_job *job)
{
	for (size_t i = 0; i < job->rank_count; i++)
		if (job->ranks[i].steps)
			return job->ranks[i].steps_per_s;
	return -1;
}

#define STEP_COLUMNS 9
#define SMALL_COLUMNS 6
#define TREND_COLUMNS 7 /* room for a trend such as "+144 %" and a blank before it */

#define THROUGHPUT_COLUMNS 8
#define MEMORY_COLUMNS 8
#define IO_COLUMNS 9
#define USER_COLUMNS 10

/* Number of columns of each part of a row; 0 leaves it out. */
struct layout {
	size_t name, bar, history;
	bool trend, waits, cpu, device;
	bool throughput, use, io, user; /* columns on wider screens only */
};

static struct layout layout_of(uint32_t width)
{
	struct layout l = { .trend = width >= 40,
			    .waits = width >= 56,
			    .cpu = width >= 62,
			    .device = width >= 76,
			    .throughput = width >= 80,
			    .use = width >= 112,
			    .io = width >= 130,
			    .user = width >= 140 };
	size_t fixed = 1 + STEP_COLUMNS + TREND_COLUMNS * (size_t)l.trend +
		       SMALL_COLUMNS * (2 * (size_t)l.waits + l.cpu + l.device);
	size_t left;

	fixed += THROUGHPUT_COLUMNS * (size_t)l.throughput +
		 (SMALL_COLUMNS + MEMORY_COLUMNS) * (size_t)l.use + 2 * IO_COLUMNS * (size_t)l.io +
		 USER_COLUMNS * (size_t)l.user;
	left = width > fixed + 2 ? width - fixed - 2 : 8;
	l.bar = width >= 48 ? (left + 1) / 2 : 0;
	l.bar = MIN(l.bar, (size_t)40);
	l.history = width >= 150 && left > l.bar + 40 ? MIN(left - l.bar - 24, (size_t)60) : 0;
	l.name = left - l.bar - (l.bar ? 1 : 0) - l.history - (l.history ? 1 : 0);
	return l;
}

static void add_head(const struct jobtext *t, const char *text, size_t columns, bool sorted)
{
	char word[32];

	snprintf(word, sizeof(word), "%s%s", text, sorted ? "↓" : "");
	jobtext_right(t->to, word, columns);
}

void jobtext_head(const struct jobtext *t, enum job_order order)
{
	struct layout l = layout_of(t->width);

	buf_printf(t->to, "%s ", style(t, 1));
	jobtext_add(t->to, STR("JOB"), l.name, true);
	if (l.user) {
		buf_add_char(t->to, ' ');
		jobtext_add(t->to, STR("USER"), USER_COLUMNS - 1, true);
	}
	add_head(t, "STEP", STEP_COLUMNS, order == ORDER_STEP);
	if (l.throughput)
		add_head(t, "STEP/S", THROUGHPUT_COLUMNS, order == ORDER_THROUGHPUT);
	if (l.trend)
		add_head(t, "TREND", TREND_COLUMNS, order == ORDER_TREND);
	if (l.history) {
		buf_add_char(t->to, ' ');
		jobtext_add(t->to, STR("LAST STEPS"), l.history, true);
	}
	if (l.bar) {
		buf_add_char(t->to, ' ');
		jobtext_add(t->to, STR("WHERE THE TIME GOES"), l.bar, true);
	}
	if (l.waits) {
		add_head(t, "INPUT", SMALL_COLUMNS, order == ORDER_INPUT);
		add_head(t, "COMM", SMALL_COLUMNS, order == ORDER_WAIT);
	}
	if (l.cpu)
		add_head(t, "CPU", SMALL_COLUMNS, order == ORDER_CPU);
	if (l.use) {
		add_head(t, "WAIT", SMALL_COLUMNS, order == ORDER_QUEUE);
		add_head(t, "MEM", MEMORY_COLUMNS, order == ORDER_MEMORY);
	}
	if (l.io) {
		add_head(t, "READ/S", IO_COLUMNS, order == ORDER_READ);
		add_head(t, "WRITE/S", IO_COLUMNS, order == ORDER_WRITTEN);
	}
	if (l.device)
		add_head(t, "DEV", SMALL_COLUMNS, false);
	buf_printf(t->to, "%s\n", style(t, 0));
}

static void add_real(const struct jobtext *t, double value, int digits, size_t columns)
{
	char text[32] = "-";

	if (value >= 0)
		snprintf(text, sizeof(text), "%.*f", value >= 99.5 ? 0 : digits, value);
	jobtext_right(t->to, text, columns);
}

static void add_bytes(const struct jobtext *t, double bytes, size_t columns)
{
	char text[HUMAN_SIZE] = "-";

	if (bytes >= 0)
		human_int(text, (int64_t)bytes, HUMAN_UNIT_BYTES, false);
	jobtext_right(t->to, text, columns);
}

/* Adds a picture of steps: twice the usual duration is a full block; longer steps are red. */
static void add_steps(const struct jobtext *t, const struct ow_job *job, size_t columns)
{
	size_t count = MIN(job->recent_count, columns);
	double most = (double)job->step_ns * 2;

	for (size_t i = job->recent_count - count; i < job->recent_count; i++) {
		double part = most > 0 ? (double)job->recent[i] / most : 0;
		size_t mark = (size_t)MIN(part * 8, 7.0);

		buf_printf(t->to, "%s%s%s", part > 0.75 ? style(t, 31) : "", marks[mark],
			   part > 0.75 ? style(t, 0) : "");
	}
}

static void add_use(const struct jobtext *t, const struct layout *l, const struct ow_job *job,
		    const struct job_use *use)
{
	if (l->cpu)
		add_real(t, job->cpu, 1, SMALL_COLUMNS);
	if (l->use) {
		buf_puts(t->to, style(t, use->wait >= 0.5 ? 31 : 0));
		add_real(t, use->wait, 2, SMALL_COLUMNS);
		buf_puts(t->to, style(t, 0));
		add_bytes(t, (double)use->memory, MEMORY_COLUMNS);
	}
	if (l->io) {
		add_bytes(t, use->read_rate, IO_COLUMNS);
		add_bytes(t, use->write_rate, IO_COLUMNS);
	}
}

static void add_step_parts(const struct jobtext *t, const struct layout *l,
			   const struct ow_job *job)
{
	char text[32];

	jobtext_time(text, sizeof(text), job->step_ns);
	jobtext_right(t->to, text, STEP_COLUMNS);
	if (l->throughput)
		add_real(t, job_throughput(job), 2, THROUGHPUT_COLUMNS);
	if (l->trend) {
		percent(text, sizeof(text), job->trend, true);
		buf_puts(t->to, style(t, job->trend > 0.1 ? 31 : job->trend < -0.1 ? 32 : 0));
		jobtext_right(t->to, text, TREND_COLUMNS);
		buf_puts(t->to, style(t, 0));
	}
	if (l->history) {
		buf_add_repeat(t->to, ' ', l->history + 1 - MIN(job->recent_count, l->history));
		add_steps(t, job, l->history);
	}
	if (l->bar) {
		buf_add_char(t->to, ' ');
		add_bar(t, job->phase_ns, l->bar);
	}
}

void jobtext_row(const struct jobtext *t, const struct ow_job *job, const struct job_use *use,
		 bool selected)
{
	struct layout l = layout_of(t->width);
	double device = job->device >= 0 ? job->device : job->gpu;
	char text[32];

	buf_printf(t->to, "%s%c", selected ? style(t, 1) : "", selected ? '>' : ' ');
	jobtext_add(t->to, str_from(job->name), l.name, true);
	buf_puts(t->to, style(t, 0));
	if (l.user) {
		buf_add_char(t->to, ' ');
		jobtext_add(t->to, str_from(use->user[0] ? use->user : "-"), USER_COLUMNS - 1,
			    true);
	}
	add_step_parts(t, &l, job);
	if (l.waits) {
		percent(text, sizeof(text), job_share(job, "input"), false);
		jobtext_right(t->to, text, SMALL_COLUMNS);
		percent(text, sizeof(text), job_share(job, "communication"), false);
		jobtext_right(t->to, text, SMALL_COLUMNS);
	}
	add_use(t, &l, job, use);
	if (l.device) {
		percent(text, sizeof(text), device, false);
		jobtext_right(t->to, text, SMALL_COLUMNS);
	}
	buf_add_char(t->to, '\n');
}

void jobtext_legend(const struct jobtext *t)
{
	size_t width = 0;

	for (size_t k = 0; k < ARRAY_COUNT(phases); k++)
		width += strlen(phases[k].shown) + 3;
	for (size_t k = 0; k < ARRAY_COUNT(phases); k++) {
		/* on a narrow terminal rare phases are left out */
		if (width > t->width && (phases[k].letter == 'A' || phases[k].letter == 'B'))
			continue;
		buf_printf(t->to, " %s%c%s %s", style(t, phases[k].style), phases[k].letter,
			   style(t, 0), phases[k].shown);
	}
	buf_add_char(t->to, '\n');
}

static void add_state(const struct jobtext *t, const struct ow_job *job)
{
	static const char *const states[] = {
		[OW_JOB_RUNS] = "runs", [OW_JOB_ENDED] = "ended", [OW_JOB_LOST] = "file removed"
	};
	char text[32];

	buf_puts(t->to, style(t, 1));
	jobtext_add(t->to, str_from(job->name), t->width / 2, false);
	buf_printf(t->to, "%s  %s", style(t, 0), states[job->state]);
	if (job->rank_count > 1)
		buf_printf(t->to, "  %zu %s", job->rank_count,
			   job->ranks[0].rank < 0 ? "processes with steps" : "ranks");
	if (job->has_steps) {
		buf_printf(t->to, "  %" PRIu64 " steps seen", job->steps);
		jobtext_time(text, sizeof(text), job->last_ns);
		buf_printf(t->to, "  last %s", text);
	} else {
		buf_puts(t->to, "  no steps seen");
	}
	if (job->dropped)
		buf_printf(t->to, "  %s%" PRIu64 " dropped%s", style(t, 31), job->dropped,
			   style(t, 0));
	if (job->damaged)
		buf_printf(t->to, "  %s%" PRIu64 " damaged%s", style(t, 31), job->damaged,
			   style(t, 0));
	buf_add_char(t->to, '\n');
}

/* Adds as many of the last steps as the screen is wide. */
static void add_step_line(const struct jobtext *t, const struct ow_job *job)
{
	char text[32];

	buf_puts(t->to, "steps  ");
	add_steps(t, job, t->width > 36 ? t->width - 36 : 8);
	jobtext_time(text, sizeof(text), job->step_ns);
	buf_printf(t->to, "  ~%s", text);
	if (job_throughput(job) >= 0)
		buf_printf(t->to, "  %.3g/s", job_throughput(job));
	buf_add_char(t->to, '\n');
}

static void add_phases(const struct jobtext *t, const struct ow_job *job)
{
	int64_t total = total_of(job);
	size_t used = strlen("phases ");
	char text[96], time[32];
	bool done[OW_PHASES] = { false }, any = false;

	buf_puts(t->to, "phases ");
	while (total > 0) { /* the longest phases first, as many as fit */
		size_t at = OW_PHASES, len;
		double part;

		for (size_t i = 0; i < OW_PHASES; i++)
			if (!done[i] && (at == OW_PHASES || job->phase_ns[i] > job->phase_ns[at]))
				at = i;
		part = at < OW_PHASES ? (double)job->phase_ns[at] / (double)total : 0;
		if (part < 0.005)
			break;
		done[at] = true;
		jobtext_time(time, sizeof(time), job->phase_ns[at]);
		snprintf(text, sizeof(text), "%s%s%s%s %.0f %%", any ? "  " : "", ow_phase_name(at),
			 job->has_steps ? " " : "", job->has_steps ? time : "", part * 100);
		len = utf8_width(str_from(text));
		if (any && used + len > t->width)
			break;
		buf_puts(t->to, text);
		used += len;
		any = true;
	}
	buf_puts(t->to, any ? "\n" : "nothing recorded yet\n");
}

static void add_ranks(const struct jobtext *t, const struct ow_job *job)
{
	char text[32];

	if (job->ranks[0].rank < 0) { /* the processes train independently of each other */
		buf_puts(t->to, "steps of ");
		for (size_t i = 0; i < job->rank_count; i++) {
			jobtext_time(text, sizeof(text), job->ranks[i].step_ns);
			buf_printf(t->to, "%sprocess %" PRId64 ": %s", i ? "  " : "",
				   job->ranks[i].pid, text);
		}
		buf_add_char(t->to, '\n');
		return;
	}
	buf_puts(t->to, "ranks  ");
	if (job->slowest_rank >= 0)
		buf_printf(t->to, "%sslowest: rank %d, %.0f %% more work than the median%s",
			   style(t, 31), (int)job->slowest_rank, job->slowest_by * 100,
			   style(t, 0));
	else
		buf_puts(t->to, "none stands out");
	buf_puts(t->to, ";");
	for (size_t i = 0; i < job->rank_count; i++) {
		jobtext_time(text, sizeof(text), job->ranks[i].own_ns);
		buf_printf(t->to, " %d: %s", (int)job->ranks[i].rank, text);
	}
	buf_add_char(t->to, '\n');
}

void jobtext_ops(const struct jobtext *t, const struct ow_job *job, uint32_t lines)
{
	size_t name = t->width > 34 ? t->width - 34 : 10;
	char text[32];

	if (lines < 2)
		return;
	buf_puts(t->to, style(t, 1));
	jobtext_add(t->to, STR("OPERATION"), name, true);
	jobtext_right(t->to, job->has_steps ? "PER STEP" : "PER SECOND", 12);
	jobtext_right(t->to, "PART", 8);
	jobtext_right(t->to, "RUNS", 9);
	buf_printf(t->to, "%s\n", style(t, 0));
	for (size_t i = 0; i < MIN(job->op_count, (size_t)lines - 1); i++) {
		const struct ow_job_op *op = &job->ops[i];

		jobtext_add(t->to, str_from(op->name), name, true);
		jobtext_time(text, sizeof(text), op->self_ns);
		jobtext_right(t->to, text, 12);
		percent(text, sizeof(text), op->share, false);
		jobtext_right(t->to, text, 8);
		snprintf(text, sizeof(text), op->runs < 10 ? "%.1f" : "%.0f", op->runs);
		jobtext_right(t->to, text, 9);
		buf_add_char(t->to, '\n');
	}
}

uint32_t jobtext_detail(const struct jobtext *t, const struct ow_job *job, uint32_t lines)
{
	uint32_t used = 0;

	if (used < lines && ++used)
		add_state(t, job);
	if (used < lines && ++used)
		add_phases(t, job);
	if (job->rank_count > 1 && used < lines && ++used)
		add_ranks(t, job);
	if (job->has_steps && used < lines && ++used)
		add_step_line(t, job);
	return used;
}

static void json_int(struct buf *to, const char *key, int64_t value)
{
	if (value < 0)
		buf_printf(to, ", \"%s\": null", key);
	else
		buf_printf(to, ", \"%s\": %" PRId64, key, value);
}

static void json_real(struct buf *to, const char *key, double value, bool known)
{
	if (known && isfinite(value))
		buf_printf(to, ", \"%s\": %.6g", key, value);
	else
		buf_printf(to, ", \"%s\": null", key);
}

static void json_phases(struct buf *to, const int64_t *ns)
{
	buf_puts(to, ", \"phase_ns\": {");
	for (size_t i = 0; i < OW_PHASES; i++)
		buf_printf(to, "%s\"%s\": %" PRId64, i ? ", " : "", ow_phase_name(i), ns[i]);
	buf_add_char(to, '}');
}

static void json_lists(struct buf *to, const struct ow_job *job)
{
	buf_puts(to, ", \"ranks\": [");
	for (size_t i = 0; i < job->rank_count; i++) {
		const struct ow_job_rank *r = &job->ranks[i];

		buf_printf(to, "%s{\"steps\": %" PRIu64, i ? ", " : "", r->steps);
		json_int(to, "rank", r->rank);
		json_int(to, "pid", r->pid > 0 ? r->pid : -1);
		json_real(to, "steps_per_s", r->steps_per_s, r->steps_per_s >= 0);
		json_int(to, "step_ns", r->step_ns);
		json_int(to, "last_ns", r->last_ns);
		json_int(to, "own_ns", r->own_ns);
		json_phases(to, r->phase_ns);
		buf_add_char(to, '}');
	}
	buf_puts(to, "], \"ops\": [");
	for (size_t i = 0; i < job->op_count; i++) {
		buf_puts(to, i ? ", {\"name\": " : "{\"name\": ");
		json_quote(to, str_from(job->ops[i].name));
		json_int(to, "self_ns", job->ops[i].self_ns);
		json_real(to, "runs", job->ops[i].runs, true);
		json_real(to, "share", job->ops[i].share, true);
		buf_add_char(to, '}');
	}
	buf_puts(to, "], \"recent_ns\": [");
	for (size_t i = 0; i < job->recent_count; i++)
		buf_printf(to, "%s%" PRId64, i ? ", " : "", job->recent[i]);
	buf_puts(to, "]");
}

void jobtext_json(struct buf *to, const struct ow_job *job, const struct job_use *use)
{
	static const char *const states[] = {
		[OW_JOB_RUNS] = "runs", [OW_JOB_ENDED] = "ended", [OW_JOB_LOST] = "lost"
	};
	double throughput = job_throughput(job);

	buf_puts(to, "\"job\": ");
	json_quote(to, str_from(job->name));
	buf_puts(to, ", \"path\": ");
	json_quote(to, str_from(job->path));
	buf_printf(to, ", \"state\": \"%s\", \"recordings\": %u, \"processes\": %u",
		   states[job->state], job->recordings, job->processes);
	buf_printf(to, ", \"steps\": %" PRIu64, job->steps);
	json_int(to, "step_ns", job->step_ns);
	json_int(to, "last_ns", job->last_ns);
	json_real(to, "steps_per_s", throughput, throughput >= 0);
	json_real(to, "trend", job->trend, true);
	json_phases(to, job->phase_ns);
	json_real(to, "data_wait", job_share(job, "input"), total_of(job) > 0);
	json_real(to, "communication_wait", job_share(job, "communication"), total_of(job) > 0);
	json_real(to, "cpu", job->cpu, job->cpu >= 0);
	json_real(to, "device", job->device, job->device >= 0);
	json_real(to, "gpu", job->gpu, job->gpu >= 0);
	json_int(to, "slowest_rank", job->slowest_rank);
	json_real(to, "slowest_by", job->slowest_by, job->slowest_rank >= 0);
	json_lists(to, job);
	buf_printf(to,
		   ", \"records\": %" PRIu64 ", \"dropped\": %" PRIu64 ", \"damaged\": %" PRIu64,
		   job->records, job->dropped, job->damaged);
	buf_puts(to, ", \"user\": ");
	if (use->user[0])
		json_quote(to, str_from(use->user));
	else
		buf_puts(to, "null");
	json_real(to, "run_wait", use->wait, use->wait >= 0);
	json_int(to, "memory_bytes", use->memory);
	json_real(to, "read_bytes_per_s", use->read_rate, use->read_rate >= 0);
	json_real(to, "written_bytes_per_s", use->write_rate, use->write_rate >= 0);
}
