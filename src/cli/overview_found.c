/* overview_found.c: see overview.h. What is in the files: sources, counts, steps and devices. */
#include "cli/overview.h"
#include "cli/words.h"

#define SOURCES_SHOWN 6
#define DEVICES_SHOWN 4

void overview_print_sources(struct overview *o)
{
	ow_result *r = overview_view(o, "sources", NULL);
	uint32_t rows = r ? ow_result_rows(r) : 0;

	o->source_count = rows;
	for (uint32_t i = 0; i < rows && i < SOURCES_SHOWN; i++) {
		struct str format = overview_text(r, i, "format"),
			   path = overview_text(r, i, "path");
		char size[WORDS_NUMBER];

		words_name(o->to, path, SIZE_MAX);
		fprintf(o->to, ": %.*s, %s\n", STR_ARG(format),
			words_bytes(size, overview_real(r, i, "bytes")));
	}
	if (rows > SOURCES_SHOWN)
		fprintf(o->to, "… and %u more: opwatch sources\n", rows - SOURCES_SHOWN);
	ow_result_free(r);
}

static void print_sum(const struct overview *o, const char *metric, const char *what)
{
	double sum = overview_sum(o->types, metric);
	char text[WORDS_NUMBER];

	if (sum > 0)
		fprintf(o->to, ", %s %s", words_count(text, sum), what);
}

/* An optimizer has variables of its own: where the trainable ones are known, those count. */
static void print_parameters(const struct overview *o)
{
	static const char *const trainable = "_trainable_variables", *const metric = "params";
	struct ow_view_options options;
	char text[WORDS_NUMBER];
	ow_result *r;
	double sum;

	overview_part(o, &options);
	options.max_depth = INT32_MAX;
	options.select = (struct ow_list){ &metric, 1 };
	options.account_type_regexes = (struct ow_list){ &trainable, 1 };
	r = overview_view(o, "op", &options);
	sum = r ? overview_sum(r, metric) : 0;
	ow_result_free(r);
	if (sum > 0)
		fprintf(o->to, ", %s trainable parameters", words_count(text, sum));
	else
		print_sum(o, metric, "parameters");
}

void overview_print_counts(const struct overview *o)
{
	uint32_t types = o->types ? ow_result_rows(o->types) : 0;
	double defined = overview_sum(o->types, "definition_count");

	if (!types)
		return;
	fprintf(o->to, "%.0f op%s of %u type%s", defined, words_plural((uint64_t)defined), types,
		words_plural(types));
	print_sum(o, "float_ops", "float ops");
	print_parameters(o);
	fprintf(o->to, "%s\n", ow_profile_has_code(o->profile) ? ", source lines" : "");
}

static int by_value(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

/* "3 steps of 103ms (102ms to 199ms); slow: step 2" */
void overview_print_steps(const struct overview *o)
{
	ow_result *r = overview_plain(o, "steps");
	uint32_t rows = r ? ow_result_rows(r) : 0, slow = 0;
	double *times = rows ? calloc(rows, sizeof(*times)) : NULL;
	char middle[WORDS_NUMBER], low[WORDS_NUMBER], high[WORDS_NUMBER];

	for (uint32_t i = 0; times && i < rows; i++)
		times[i] = overview_real(r, i, "duration_ns") / 1e3;
	if (times) {
		qsort(times, rows, sizeof(*times), by_value);
		fprintf(o->to, "%u step%s of %s", rows, words_plural(rows),
			words_time(middle, times[rows / 2]));
		if (rows > 1)
			fprintf(o->to, " (%s to %s)", words_time(low, times[0]),
				words_time(high, times[rows - 1]));
		for (uint32_t i = 0; i < rows; i++)
			if (ow_result_int(r, i, ow_result_find(r, "outlier")) && slow++ < 3)
				fprintf(o->to, "%s%lld", slow == 1 ? ", slow: step " : ", ",
					(long long)ow_result_int(r, i, ow_result_find(r, "step")));
		fprintf(o->to, "%s\n", slow > 3 ? ", …" : "");
	}
	free(times);
	ow_result_free(r);
}

/* "/job:localhost/replica:0/task:0/device:gpu:0" is "gpu:0" to those who have one machine. */
static struct str short_device(struct str name)
{
	static const char *const before[] = { "/job:localhost/replica:0/task:0", "/device:", "/" };

	for (size_t i = 0; i < ARRAY_COUNT(before); i++)
		if (str_starts(name, str_from(before[i])))
			name = str_skip(name, strlen(before[i]));
	return name;
}

/* TensorFlow reports a GPU several times: what its streams did together, each of them, and the executor
 * that feeds them. The first says enough. */
static bool is_part(const ow_result *r, struct str whole)
{
	struct str streams = STR("/stream:all"), name = short_device(whole);

	for (uint32_t i = 0; i < ow_result_rows(r); i++) {
		struct str given = overview_text(r, i, "device"), other = short_device(given);

		if (given.len < whole.len && str_eq(other, name) &&
		    overview_real(r, i, "busy_step_ns") > 0)
			return true; /* /gpu:0 ran what /job:localhost/…/gpu:0 scheduled */
		if (!str_ends(other, streams) || str_eq(other, name))
			continue;
		other.len -= streams.len;
		if (str_starts(name, other) &&
		    (name.len == other.len || name.ptr[other.len] == '/'))
			return true;
	}
	return false;
}

/* The row of the busiest device that is less busy than `below`, or UINT32_MAX. */
static uint32_t next_device(const ow_result *r, double below, uint32_t after)
{
	uint32_t best = UINT32_MAX;

	for (uint32_t i = 0; i < ow_result_rows(r); i++) {
		double busy = overview_real(r, i, "busy_step_ns");

		if (busy <= 0 || busy > below || (busy == below && i <= after) ||
		    is_part(r, overview_text(r, i, "device")))
			continue;
		if (best == UINT32_MAX || busy > overview_real(r, best, "busy_step_ns"))
			best = i;
	}
	return best;
}

/* "busy per step: cpu:0 117ms, gpu:0 16.9ms" */
void overview_print_devices(const struct overview *o)
{
	ow_result *r = overview_plain(o, "devices");
	uint32_t row = r ? next_device(r, 1e300, 0) : UINT32_MAX, shown = 0;

	for (; row != UINT32_MAX;
	     row = next_device(r, overview_real(r, row, "busy_step_ns"), row)) {
		struct str name = short_device(overview_text(r, row, "device"));
		char time[WORDS_NUMBER];

		if (shown == DEVICES_SHOWN) {
			fputs(", …", o->to);
			break;
		}
		if (str_ends(name, STR("/stream:all")))
			name.len -= strlen("/stream:all");
		fputs(shown++ ? ", " : "busy per step: ", o->to);
		words_name(o->to, name, 50);
		fprintf(o->to, " %s",
			words_time(time, overview_real(r, row, "busy_step_ns") / 1e3));
	}
	if (shown)
		fputc('\n', o->to);
	ow_result_free(r);
}
