/*
 * human.c: numbers for people; see human.h.
 */
#include "sink/human.h"

#include <math.h>

struct scale {
	double from; /* the smallest number that is shown in it */
	const char *suffix;
};

/* 999.5 and not 1000, so that no number is rounded to four digits before its suffix. */
static const struct scale scales_ns[] = {
	{ 3599.5e9, "h" }, { 999.5e6, "s" }, { 999.5e3, "ms" }, { 999.5, "us" }, { 0, "ns" }
};
static const double factors_ns[] = { 3600e9, 1e9, 1e6, 1e3, 1 };
static const struct scale scales_bytes[] = { { 999.5e12, "PB" }, { 999.5e9, "TB" },
					     { 999.5e6, "GB" },	 { 999.5e3, "MB" },
					     { 999.5, "kB" },	 { 0, "B" } };
static const struct scale scales_count[] = { { 999.5e12, "P" }, { 999.5e9, "T" }, { 999.5e6, "G" },
					     { 999.5e3, "M" },	{ 999.5, "k" },	  { 0, "" } };
static const double factors_thousand[] = { 1e15, 1e12, 1e9, 1e6, 1e3, 1 };

static const char *unit_suffix(enum result_unit unit)
{
	switch (unit) {
	case RESULT_NS:
		return "ns";
	case RESULT_MICROS:
		return "us";
	case RESULT_BYTES:
		return "B";
	case RESULT_PERCENT:
		return "%";
	default:
		return "";
	}
}

#define FAST_MAX 1e9 /* a product below it is off by less than NEAR_TIE */
#define NEAR_TIE 1e-6
#define DIGITS_MAX 24 /* of any 64-bit number, with a point */

/* The digits of n, the last `decimals` of them behind a point; returns how many bytes. */
static size_t print_digits(char *to, uint64_t n, int decimals)
{
	char text[DIGITS_MAX];
	size_t at = sizeof(text);

	for (int i = 0; n || i <= decimals; i++) {
		text[--at] = (char)('0' + n % 10);
		n /= 10;
		if (i + 1 == decimals)
			text[--at] = '.';
	}
	memcpy(to, text + at, sizeof(text) - at);
	return sizeof(text) - at;
}

static size_t print_int(char *to, int64_t value, const char *suffix)
{
	bool negative = value < 0;
	size_t len, suffix_len = strlen(suffix);

	*to = '-';
	len = negative +
	      print_digits(to + negative, negative ? 0 - (uint64_t)value : (uint64_t)value, 0);
	memcpy(to + len, suffix, suffix_len + 1);
	return len + suffix_len;
}

/* printf's "%.*f%s" for up to two decimals. printf itself, which is slow, is asked only about numbers
 * that are negative, huge or so close to the middle between two that rounding needs all their bits. */
static size_t print_fixed(char *to, double value, int decimals, const char *suffix)
{
	static const double powers[] = { 1, 10, 100 };
	double scaled = value * powers[decimals], whole;
	size_t len, suffix_len = strlen(suffix);
	int printed;

	if (!signbit(value) && scaled < FAST_MAX) {
		whole = floor(scaled);
		if (fabs(scaled - whole - 0.5) > NEAR_TIE) {
			len = print_digits(to, (uint64_t)whole + (scaled - whole > 0.5), decimals);
			memcpy(to + len, suffix, suffix_len + 1);
			return len + suffix_len;
		}
	}
	printed = snprintf(to, HUMAN_BYTES, "%.*f%s", decimals, value, suffix);
	return printed < 0 ? 0 : MIN((size_t)printed, (size_t)HUMAN_BYTES - 1);
}

static size_t print_number(char *to, double value, const char *suffix, bool whole)
{
	double size = fabs(value);

	return print_fixed(to, value, whole ? 0 : size < 9.995 ? 2 : size < 99.95 ? 1 : 0, suffix);
}

static size_t print_scaled(char *to, double value, const struct scale *scales,
			   const double *factors)
{
	double size = fabs(value);

	while (size < scales->from) {
		scales++;
		factors++;
	}
	/* what needs no scaling is a whole number, unless it came as a fraction */
	return print_number(to, value / *factors, scales->suffix,
			    *factors == 1.0 && value == floor(value));
}

/* Whole microseconds have no more digits to show: 0us and 7us, not 0ns and 7.00us. */
static size_t print_micros(char *to, double value)
{
	if (fabs(value) < 999.5 && value == floor(value))
		return print_number(to, value, "us", true);
	return print_scaled(to, value * 1000, scales_ns, factors_ns);
}

static size_t print_unit(char *to, double value, enum result_unit unit)
{
	switch (unit) {
	case RESULT_NS:
		return print_scaled(to, value, scales_ns, factors_ns);
	case RESULT_MICROS:
		return print_micros(to, value);
	case RESULT_BYTES:
		return print_scaled(to, value, scales_bytes, factors_thousand);
	case RESULT_COUNT:
		return print_scaled(to, value, scales_count, factors_thousand);
	case RESULT_PERCENT:
		return print_fixed(to, value, 1, "%");
	default: /* four digits, but never fewer than the whole number has */
		return (size_t)snprintf(to, HUMAN_BYTES, fabs(value) < 9999.5 ? "%.4g" : "%.0f",
					value);
	}
}

size_t human_int(char *to, int64_t value, enum result_unit unit, bool full)
{
	if (full || unit == RESULT_PLAIN)
		return print_int(to, value, unit_suffix(unit));
	return print_unit(to, (double)value, unit);
}

/* As few digits as tell the number from all others. */
static size_t print_exact(char *to, double value, const char *suffix)
{
	for (int digits = 15; digits < 17; digits++) {
		snprintf(to, HUMAN_BYTES, "%.*g", digits, value);
		if (strtod(to, NULL) == value)
			return (size_t)snprintf(to, HUMAN_BYTES, "%.*g%s", digits, value, suffix);
	}
	return (size_t)snprintf(to, HUMAN_BYTES, "%.17g%s", value, suffix);
}

size_t human_real(char *to, double value, enum result_unit unit, bool full)
{
	if (!isfinite(value))
		return (size_t)snprintf(to, HUMAN_BYTES, "%s",
					isnan(value) ? "nan"
					: value > 0  ? "inf"
						     : "-inf");
	if (full)
		return print_exact(to, value, unit_suffix(unit));
	if (fabs(value) >= 1e18) /* no scale reaches that far */
		return (size_t)snprintf(to, HUMAN_BYTES, "%.3g%s", value, unit_suffix(unit));
	return print_unit(to, value, unit);
}

struct str human_fit_end(struct str s, size_t columns)
{
	size_t width = utf8_width(s);

	while (s.len && width > columns) {
		uint32_t code;
		size_t used = utf8_decode(s, &code);

		width -= utf8_width(str_first(s, used));
		s = str_skip(s, used);
	}
	return s;
}

void human_printable(struct buf *to, struct str s)
{
	while (s.len) {
		uint32_t code = 0;
		size_t plain = utf8_plain_prefix(s), used;

		buf_add(to, s.ptr, plain);
		s = str_skip(s, plain);
		if (!s.len)
			return;
		used = utf8_decode(s, &code);
		if (code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0xfffd)
			buf_puts(to, "\xef\xbf\xbd");
		else
			buf_add(to, s.ptr, used);
		s = str_skip(s, used);
	}
}

const struct metric_info metric_infos[METRIC_COUNT] = {
	[METRIC_BYTES] = { "bytes", "requested memory", RESULT_BYTES },
	[METRIC_PEAK_BYTES] = { "peak_bytes", "peak memory", RESULT_BYTES },
	[METRIC_RESIDUAL_BYTES] = { "residual_bytes", "memory not released", RESULT_BYTES },
	[METRIC_OUTPUT_BYTES] = { "output_bytes", "output memory", RESULT_BYTES },
	[METRIC_MICROS] = { "micros", "time", RESULT_NS },
	[METRIC_ACCELERATOR_MICROS] = { "accelerator_micros", "accelerator time", RESULT_NS },
	[METRIC_CPU_MICROS] = { "cpu_micros", "cpu time", RESULT_NS },
	[METRIC_PARAMS] = { "params", "parameters", RESULT_COUNT },
	[METRIC_FLOAT_OPS] = { "float_ops", "float operations", RESULT_COUNT },
	[METRIC_RUN_COUNT] = { "run_count", "runs", RESULT_COUNT },
	[METRIC_DEFINITION_COUNT] = { "definition_count", "definitions", RESULT_COUNT },
	[METRIC_WEIGHT] = { "weight", "weight", RESULT_COUNT }, /* the tree knows better */
};

enum metric metric_find(const char *name)
{
	if (!name || !*name)
		return METRIC_MICROS;
	if (!strcmp(name, "occurrence")) /* the column that shows both counts */
		return METRIC_RUN_COUNT;
	for (unsigned i = 0; i < METRIC_WEIGHT; i++)
		if (!strcmp(name, metric_infos[i].name))
			return (enum metric)i;
	return METRIC_COUNT;
}
