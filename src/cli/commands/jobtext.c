/* jobtext.c: see jobtext.h. */
#include "cli/jobtext.h"

#include "cli/screen.h"

#include <math.h>

/* As ow_phase_name counts. */
static const struct {
	const char *name, *shown;
	char letter; /* as in the view `steps` */
	unsigned style;
} phases[] = {
	{ "input", "input", 'I', 31 },
	{ "host", "host", 'H', 34 },
	{ "launch", "launch", 'L', 94 },
	{ "host_to_device", "to dev", 'U', 36 },
	{ "compute", "compute", 'C', 32 },
	{ "communication", "comm", 'N', 33 },
	{ "device_to_host", "to host", 'D', 36 },
	{ "synchronisation", "sync", 'S', 35 },
	{ "idle", "idle", '.', 90 },
};

const char *const job_order_names[JOB_ORDERS] = { "job", "step", "trend", "input", "comm", "cpu" };

/* ---- numbers ---- */

void jobtext_time(char *to, size_t size, int64_t ns)
{
	static const struct {
		double ns;
		const char *unit;
	} units[] = { { 60e9, "min" }, { 1e9, "s" }, { 1e6, "ms" }, { 1e3, "us" } };
	double value = (double)ns;

	if (ns < 0) {
		snprintf(to, size, "-");
		return;
	}
	for (size_t i = 0; i < ARRAY_COUNT(units); i++) {
		double n = value / units[i].ns;

		if (n >= 0.9995 && (i || n >= 2)) {
			snprintf(to, size, "%.*f %s",
				 n < 9.995   ? 2
				 : n < 99.95 ? 1
					     : 0,
				 n, units[i].unit);
			return;
		}
	}
	snprintf(to, size, "%.0f ns", value);
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

/* ---- order ---- */

static double key_of(const struct ow_job *job, enum job_order order)
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
	default:
		return 0;
	}
}

/* Few, and mostly in order already: by insertion, so that equal ones stay. */
void jobtext_sort(struct ow_job *jobs, size_t count, enum job_order order)
{
	for (size_t i = 1; i < count; i++)
		for (size_t k = i; k > 0; k--) {
			double a = key_of(&jobs[k - 1], order), b = key_of(&jobs[k], order);
			int names = strcmp(jobs[k - 1].name, jobs[k].name);
			struct ow_job other = jobs[k];

			if (!(a < b || (order == ORDER_NAME && names > 0)))
				break;
			jobs[k] = jobs[k - 1];
			jobs[k - 1] = other;
		}
}

/* ---- parts of lines ---- */

static const char *style(const struct jobtext *t, unsigned number)
{
	return screen_style(t->colour, number);
}

/* As large as its part, by largest remainder, so that all columns are used. */
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

/* Names come from other people's programs: nothing in them may move the cursor. */
static void add_text(struct buf *to, struct str text, size_t columns, bool pad)
{
	struct str fits = utf8_fit(text, columns);
	bool cut = fits.len < text.len && columns > 1;
	size_t width;

	if (cut)
		fits = utf8_fit(text, columns - 1);
	width = utf8_width(fits) + cut;
	for (size_t i = 0; i < fits.len; i++)
		buf_add_char(to, (unsigned char)fits.ptr[i] < ' ' || fits.ptr[i] == 127
					 ? '?'
					 : fits.ptr[i]);
	if (cut)
		buf_puts(to, "…");
	if (pad && width < columns)
		buf_add_repeat(to, ' ', columns - width);
}

static void add_right(struct buf *to, const char *text, size_t columns)
{
	size_t width = utf8_width(str_from(text));

	if (width < columns)
		buf_add_repeat(to, ' ', columns - width);
	buf_puts(to, text);
}

/* ---- the table ---- */

#define STEP_COLUMNS 9
#define SMALL_COLUMNS 6
#define TREND_COLUMNS 7 /* steps may take several times as long: "+144 %", and a blank before it */

/* How the width is shared: what is not there has 0 columns. */
struct layout {
	size_t name, bar;
	bool trend, waits, cpu, device;
};

static struct layout layout_of(uint32_t width)
{
	struct layout l = { .trend = width >= 40,
			    .waits = width >= 56,
			    .cpu = width >= 62,
			    .device = width >= 76 };
	size_t fixed = 1 + STEP_COLUMNS + TREND_COLUMNS * (size_t)l.trend +
		       SMALL_COLUMNS * (2 * (size_t)l.waits + l.cpu + l.device);
	size_t left = width > fixed + 2 ? width - fixed - 2 : 8;

	l.bar = width >= 48 ? (left + 1) / 2 : 0;
	l.bar = MIN(l.bar, (size_t)40);
	l.name = left - l.bar - (l.bar ? 1 : 0);
	return l;
}

static void add_head(const struct jobtext *t, const char *text, size_t columns, bool sorted)
{
	char word[32];

	snprintf(word, sizeof(word), "%s%s", text, sorted ? "↓" : "");
	add_right(t->to, word, columns);
}

void jobtext_head(const struct jobtext *t, enum job_order order)
{
	struct layout l = layout_of(t->width);

	buf_printf(t->to, "%s ", style(t, 1));
	add_text(t->to, STR("JOB"), l.name, true);
	add_head(t, "STEP", STEP_COLUMNS, order == ORDER_STEP);
	if (l.trend)
		add_head(t, "TREND", TREND_COLUMNS, false);
	if (l.bar) {
		buf_add_char(t->to, ' ');
		add_text(t->to, STR("WHERE THE TIME GOES"), l.bar, true);
	}
	if (l.waits) {
		add_head(t, "INPUT", SMALL_COLUMNS, false);
		add_head(t, "COMM", SMALL_COLUMNS, order == ORDER_WAIT);
	}
	if (l.cpu)
		add_head(t, "CPU", SMALL_COLUMNS, order == ORDER_CPU);
	if (l.device)
		add_head(t, "DEV", SMALL_COLUMNS, false);
	buf_printf(t->to, "%s\n", style(t, 0));
}

void jobtext_row(const struct jobtext *t, const struct ow_job *job, bool selected)
{
	struct layout l = layout_of(t->width);
	double device = job->device >= 0 ? job->device : job->gpu;
	char text[32];

	buf_printf(t->to, "%s%c", selected ? style(t, 1) : "", selected ? '>' : ' ');
	add_text(t->to, str_from(job->name), l.name, true);
	buf_puts(t->to, style(t, 0));
	jobtext_time(text, sizeof(text), job->step_ns);
	add_right(t->to, text, STEP_COLUMNS);
	if (l.trend) {
		percent(text, sizeof(text), job->trend, true);
		buf_puts(t->to, style(t, job->trend > 0.1 ? 31 : job->trend < -0.1 ? 32 : 0));
		add_right(t->to, text, TREND_COLUMNS);
		buf_puts(t->to, style(t, 0));
	}
	if (l.bar) {
		buf_add_char(t->to, ' ');
		add_bar(t, job->phase_ns, l.bar);
	}
	if (l.waits) {
		percent(text, sizeof(text), job_share(job, "input"), false);
		add_right(t->to, text, SMALL_COLUMNS);
		percent(text, sizeof(text), job_share(job, "communication"), false);
		add_right(t->to, text, SMALL_COLUMNS);
	}
	if (l.cpu) {
		snprintf(text, sizeof(text), job->cpu < 0 ? "-" : "%.1f", job->cpu);
		add_right(t->to, text, SMALL_COLUMNS);
	}
	if (l.device) {
		percent(text, sizeof(text), device, false);
		add_right(t->to, text, SMALL_COLUMNS);
	}
	buf_add_char(t->to, '\n');
}

void jobtext_legend(const struct jobtext *t)
{
	for (size_t k = 0; k < ARRAY_COUNT(phases); k++)
		buf_printf(t->to, " %s%c%s %s", style(t, phases[k].style), phases[k].letter,
			   style(t, 0), phases[k].shown);
	buf_add_char(t->to, '\n');
}

/* ---- one job ---- */

static void add_state(const struct jobtext *t, const struct ow_job *job)
{
	static const char *const states[] = {
		[OW_JOB_RUNS] = "runs", [OW_JOB_ENDED] = "ended", [OW_JOB_LOST] = "file removed"
	};
	char text[32];

	buf_puts(t->to, style(t, 1));
	add_text(t->to, str_from(job->name), t->width / 2, false);
	buf_printf(t->to, "%s  %s", style(t, 0), states[job->state]);
	if (job->rank_count > 1)
		buf_printf(t->to, "  %zu ranks", job->rank_count);
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

/* The last steps, the longest as high as can be; a few that are far longer than the rest are cut. */
static void add_steps(const struct jobtext *t, const struct ow_job *job)
{
	static const char *const marks[] = { "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█" };
	size_t count = MIN(job->recent_count, (size_t)(t->width > 24 ? t->width - 24 : 8));
	const int64_t *recent = job->recent + (job->recent_count - count);
	double most = (double)job->step_ns * 2;
	char text[32];

	buf_puts(t->to, "steps  ");
	for (size_t i = 0; i < count; i++) {
		double part = most > 0 ? (double)recent[i] / most : 0;
		size_t mark = (size_t)MIN(part * 8, 7.0);

		buf_printf(t->to, "%s%s%s", part > 0.75 ? style(t, 31) : "", marks[mark],
			   part > 0.75 ? style(t, 0) : "");
	}
	jobtext_time(text, sizeof(text), job->step_ns);
	buf_printf(t->to, "  ~%s\n", text);
}

static void add_phases(const struct jobtext *t, const struct ow_job *job)
{
	int64_t total = total_of(job);
	bool any = false;

	buf_puts(t->to, "phases ");
	for (size_t i = 0; i < OW_PHASES && total > 0; i++) {
		double part = (double)job->phase_ns[i] / (double)total;
		char text[32];

		if (part < 0.005)
			continue;
		jobtext_time(text, sizeof(text), job->has_steps ? job->phase_ns[i] : -1);
		buf_printf(t->to, "%s%s", any ? "  " : "", ow_phase_name(i));
		if (job->has_steps)
			buf_printf(t->to, " %s", text);
		buf_printf(t->to, " %.0f %%", part * 100);
		any = true;
	}
	buf_puts(t->to, any ? "\n" : "nothing recorded yet\n");
}

static void add_ranks(const struct jobtext *t, const struct ow_job *job)
{
	char text[32];

	buf_puts(t->to, "ranks  ");
	if (job->slowest_rank >= 0)
		buf_printf(t->to, "%sslowest: rank %d, %.0f %% more work than the middle one%s",
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

static void add_ops(const struct jobtext *t, const struct ow_job *job, uint32_t lines)
{
	size_t name = t->width > 34 ? t->width - 34 : 10;
	char text[32];

	if (lines < 2)
		return;
	buf_puts(t->to, style(t, 1));
	add_text(t->to, STR("OPERATION"), name, true);
	add_right(t->to, job->has_steps ? "PER STEP" : "PER SECOND", 12);
	add_right(t->to, "PART", 8);
	add_right(t->to, "RUNS", 9);
	buf_printf(t->to, "%s\n", style(t, 0));
	for (size_t i = 0; i < MIN(job->op_count, (size_t)lines - 1); i++) {
		const struct ow_job_op *op = &job->ops[i];

		add_text(t->to, str_from(op->name), name, true);
		jobtext_time(text, sizeof(text), op->self_ns);
		add_right(t->to, text, 12);
		percent(text, sizeof(text), op->share, false);
		add_right(t->to, text, 8);
		snprintf(text, sizeof(text), op->runs < 10 ? "%.1f" : "%.0f", op->runs);
		add_right(t->to, text, 9);
		buf_add_char(t->to, '\n');
	}
}

void jobtext_detail(const struct jobtext *t, const struct ow_job *job, uint32_t lines)
{
	if (lines-- < 1)
		return;
	add_state(t, job);
	if (lines < 1)
		return;
	add_phases(t, job);
	lines--;
	if (job->rank_count > 1 && lines) {
		add_ranks(t, job);
		lines--;
	}
	if (job->has_steps && lines) {
		add_steps(t, job);
		lines--;
	}
	add_ops(t, job, lines);
}

/* ---- JSON ---- */

static void json_text(struct buf *to, const char *text)
{
	struct str s = str_from(text);

	buf_add_char(to, '"');
	while (s.len) {
		uint32_t code;
		size_t len = utf8_decode(s, &code);

		if (code == '"' || code == '\\')
			buf_printf(to, "\\%c", (char)code);
		else if (code < ' ')
			buf_printf(to, "\\u%04x", code);
		else if (code == 0xfffd && len == 1)
			buf_puts(to, "\xef\xbf\xbd");
		else
			buf_add(to, s.ptr, len);
		s = str_skip(s, len);
	}
	buf_add_char(to, '"');
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
		json_int(to, "step_ns", r->step_ns);
		json_int(to, "last_ns", r->last_ns);
		json_int(to, "own_ns", r->own_ns);
		json_phases(to, r->phase_ns);
		buf_add_char(to, '}');
	}
	buf_puts(to, "], \"ops\": [");
	for (size_t i = 0; i < job->op_count; i++) {
		buf_puts(to, i ? ", {\"name\": " : "{\"name\": ");
		json_text(to, job->ops[i].name);
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

void jobtext_json(struct buf *to, const struct ow_job *jobs, size_t count)
{
	static const char *const states[] = {
		[OW_JOB_RUNS] = "runs", [OW_JOB_ENDED] = "ended", [OW_JOB_LOST] = "lost"
	};

	buf_add_char(to, '[');
	for (size_t i = 0; i < count; i++) {
		const struct ow_job *job = &jobs[i];

		buf_puts(to, i ? ",\n {\"job\": " : "{\"job\": ");
		json_text(to, job->name);
		buf_puts(to, ", \"path\": ");
		json_text(to, job->path);
		buf_printf(to, ", \"state\": \"%s\", \"recordings\": %u, \"processes\": %u",
			   states[job->state], job->recordings, job->processes);
		buf_printf(to, ", \"steps\": %" PRIu64, job->steps);
		json_int(to, "step_ns", job->step_ns);
		json_int(to, "last_ns", job->last_ns);
		json_real(to, "trend", job->trend, true);
		json_phases(to, job->phase_ns);
		json_real(to, "data_wait", job_share(job, "input"), total_of(job) > 0);
		json_real(to, "communication_wait", job_share(job, "communication"),
			  total_of(job) > 0);
		json_real(to, "cpu", job->cpu, job->cpu >= 0);
		json_real(to, "device", job->device, job->device >= 0);
		json_real(to, "gpu", job->gpu, job->gpu >= 0);
		json_int(to, "slowest_rank", job->slowest_rank);
		json_real(to, "slowest_by", job->slowest_by, job->slowest_rank >= 0);
		json_lists(to, job);
		buf_printf(to,
			   ", \"records\": %" PRIu64 ", \"dropped\": %" PRIu64
			   ", \"damaged\": %" PRIu64 "}",
			   job->records, job->dropped, job->damaged);
	}
	buf_puts(to, "]\n");
}
