/*
 * tfprof_numbers.c: prints numbers as tfprof does (tfprof_numbers.h), for sink_tfprof.c.
 */
#include "sink/tfprof/tfprof_numbers.h"

static size_t put_int(char *to, int64_t value)
{
	char digits[24];
	size_t at = sizeof(digits);
	uint64_t rest = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;

	if (value >= 0 && value < 10) {
		*to = (char)('0' + value);
		return 1;
	}
	do
		digits[--at] = (char)('0' + rest % 10);
	while (rest /= 10);
	if (value < 0)
		digits[--at] = '-';
	memcpy(to, digits + at, sizeof(digits) - at);
	return sizeof(digits) - at;
}

/* Writes n / scale with two decimals. As a double the quotient is off by far less than a unit of n (below 10^14), so
 * rounding matters only for a tie in the third decimal: then printf is used. */
static size_t put_scaled(char *to, int64_t n, int64_t scale)
{
	int64_t unit = scale / 100; /* one hundredth of the scale */
	int64_t hundredths;
	size_t len;

	if (n % unit == unit / 2 || n >= 100000000000000)
		return (size_t)snprintf(to, TFPROF_NUMBER_BYTES - 4, "%.2f",
					(double)n / (double)scale);
	hundredths = (n + unit / 2) / unit;
	len = put_int(to, hundredths / 100);
	to[len++] = '.';
	to[len++] = (char)('0' + hundredths / 10 % 10);
	to[len++] = (char)('0' + hundredths % 10);
	return len;
}

static size_t put_suffix(char *to, size_t len, const char *suffix)
{
	while (*suffix)
		to[len++] = *suffix++;
	return len;
}

size_t tfprof_count(char *to, int64_t n)
{
	if (n < 1000)
		return put_int(to, n);
	if (n < 1000000)
		return put_suffix(to, put_scaled(to, n, 1000), "k");
	if (n < 1000000000)
		return put_suffix(to, put_scaled(to, n, 1000000), "m");
	return put_suffix(to, put_scaled(to, n, 1000000000), "b");
}

size_t tfprof_micros(char *to, int64_t micros)
{
	if (micros < 1000)
		return put_suffix(to, put_int(to, micros), "us");
	if (micros < 1000000)
		return put_suffix(to, put_scaled(to, micros, 1000), "ms");
	return put_suffix(to, put_scaled(to, micros, 1000000), "sec");
}

size_t tfprof_memory(char *to, int64_t bytes)
{
	if (bytes < 1000)
		return put_suffix(to, put_int(to, bytes), "B");
	if (bytes < 1000000)
		return put_suffix(to, put_scaled(to, bytes, 1000), "KB");
	return put_suffix(to, put_scaled(to, bytes, 1000000), "MB");
}
