/*
 * human.c: numbers with three significant digits and a unit, as tables, charts and the command line show them, and
 * names that are cut or cleaned for a terminal. Tables of a million rows are printed with these, so the usual
 * numbers avoid printf. tfprof's own spelling of numbers is in sink/tfprof and differs on purpose.
 */
#include "base/human.h"

#include <math.h>

struct scale {
	double from; /* smallest number that is shown with this suffix */
	double factor;
	const char *suffix;
};

/* The limits are 999.5, not 1000, so that no number is rounded to four digits before its suffix. */
static const struct scale scales_ns[] = { { 3599.5e9, 3600e9, "h" },
					  { 999.5e6, 1e9, "s" },
					  { 999.5e3, 1e6, "ms" },
					  { 999.5, 1e3, "us" },
					  { 0, 1, "ns" } };
static const struct scale scales_us[] = { { 999.5e3, 1e6, "s" },
					  { 999.5, 1e3, "ms" },
					  { 0, 1, "us" } };
static const struct scale scales_bytes[] = { { 999.5e12, 1e15, "PB" }, { 999.5e9, 1e12, "TB" },
					     { 999.5e6, 1e9, "GB" },   { 999.5e3, 1e6, "MB" },
					     { 999.5, 1e3, "kB" },     { 0, 1, "B" } };
static const struct scale scales_count[] = { { 999.5e12, 1e15, "P" }, { 999.5e9, 1e12, "T" },
					     { 999.5e6, 1e9, "G" },   { 999.5e3, 1e6, "M" },
					     { 999.5, 1e3, "k" },     { 0, 1, "" } };
/* Units for sentences, with a blank before the suffix. */
static const struct scale scales_apart[] = { { 120e9, 60e9, " min" },
					     { 999.5e6, 1e9, " s" },
					     { 999.5e3, 1e6, " ms" },
					     { 999.5, 1e3, " us" },
					     { 0, 1, " ns" } };

static const char *unit_suffix(enum human_unit unit)
{
	switch (unit) {
	case HUMAN_UNIT_NS:
		return "ns";
	case HUMAN_UNIT_US:
	case HUMAN_UNIT_US_TO_S:
		return "us";
	case HUMAN_UNIT_NS_APART:
		return " ns";
	case HUMAN_UNIT_BYTES:
		return "B";
	case HUMAN_UNIT_PERCENT:
		return "%";
	default:
		return "";
	}
}

#define FAST_MAX 1e9 /* below this limit a product is off by less than NEAR_TIE */
#define NEAR_TIE 1e-6
#define DIGITS_MAX 24 /* largest number of digits of a 64-bit number, with a point */

/* Writes the digits of n, the last `decimals` of them after a point; returns the number of
 * bytes. */
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

/* printf's "%.*f%s" for up to two decimals. printf itself is slow. It is called only for numbers that are negative,
 * huge, or so close to the middle between two results that rounding needs all their bits. */
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
	printed = snprintf(to, HUMAN_SIZE, "%.*f%s", decimals, value, suffix);
	return printed < 0 ? 0 : MIN((size_t)printed, (size_t)HUMAN_SIZE - 1);
}

static size_t print_number(char *to, double value, const char *suffix, bool whole)
{
	double size = fabs(value);

	return print_fixed(to, value, whole ? 0 : size < 9.995 ? 2 : size < 99.95 ? 1 : 0, suffix);
}

static size_t print_scaled(char *to, double value, const struct scale *scale)
{
	double size = fabs(value);

	while (size < scale->from)
		scale++;
	/* a number without scaling is printed whole, unless it was a fraction */
	return print_number(to, value / scale->factor, scale->suffix,
			    scale->factor == 1.0 && value == floor(value));
}

/* Whole microseconds are printed without decimals: 0us and 7us, not 0ns and 7.00us. */
static size_t print_micros(char *to, double value)
{
	if (fabs(value) < 999.5 && value == floor(value))
		return print_number(to, value, "us", true);
	return print_scaled(to, value * 1000, scales_ns);
}

static size_t print_unit(char *to, double value, enum human_unit unit)
{
	switch (unit) {
	case HUMAN_UNIT_NS:
		return print_scaled(to, value, scales_ns);
	case HUMAN_UNIT_US:
		return print_micros(to, value);
	case HUMAN_UNIT_BYTES:
		return print_scaled(to, value, scales_bytes);
	case HUMAN_UNIT_US_TO_S:
		return print_scaled(to, value, scales_us);
	case HUMAN_UNIT_NS_APART:
		return print_scaled(to, value, scales_apart);
	case HUMAN_UNIT_COUNT:
		return print_scaled(to, value, scales_count);
	case HUMAN_UNIT_PERCENT:
		return print_fixed(to, value, 1, "%");
	default: /* four digits, but never fewer than the whole number has */
		return (size_t)snprintf(to, HUMAN_SIZE, fabs(value) < 9999.5 ? "%.4g" : "%.0f",
					value);
	}
}

size_t human_int(char *to, int64_t value, enum human_unit unit, bool full)
{
	if (full || unit == HUMAN_UNIT_NONE)
		return print_int(to, value, unit_suffix(unit));
	return print_unit(to, (double)value, unit);
}

/* Writes the fewest digits that read back as the same number. */
static size_t print_exact(char *to, double value, const char *suffix)
{
	for (int digits = 15; digits < 17; digits++) {
		snprintf(to, HUMAN_SIZE, "%.*g", digits, value);
		if (strtod(to, NULL) == value)
			return (size_t)snprintf(to, HUMAN_SIZE, "%.*g%s", digits, value, suffix);
	}
	return (size_t)snprintf(to, HUMAN_SIZE, "%.17g%s", value, suffix);
}

size_t human_real(char *to, double value, enum human_unit unit, bool full)
{
	if (!isfinite(value))
		return (size_t)snprintf(to, HUMAN_SIZE, "%s",
					isnan(value) ? "nan"
					: value > 0  ? "inf"
						     : "-inf");
	if (full)
		return print_exact(to, value, unit_suffix(unit));
	if (fabs(value) >= 1e18) /* the value is too large for all units */
		return (size_t)snprintf(to, HUMAN_SIZE, "%.3g%s", value, unit_suffix(unit));
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
		if (code < 0x20 || (code >= 0x7f && code < 0xa0) || code == 0xfffd ||
		    utf8_turns_text(code))
			buf_puts(to, "\xef\xbf\xbd");
		else
			buf_add(to, s.ptr, used);
		s = str_skip(s, used);
	}
}
