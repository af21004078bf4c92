/*
 * clock.c: moves the times of events, and decides how each file's clock is moved in the output. Times are decimal text
 * of microseconds. They are moved digit by digit, never through a double, so that nothing is rounded:
 * 1712195495406752.797 has more digits than a double holds. A fitted clock moves each time by a distance of its own, in
 * whole nanoseconds.
 */
#include "merge/merge_int.h"

#include <math.h>

#define EXPONENT_MAX 400 /* times with a larger exponent are refused */
#define DIGITS_MAX ((size_t)2048)
/* a time of 0 means "no time" if the other times are larger than this */
#define OUTLIER_NS ((int64_t)1000000000 * 1000)
#define YEAR_NS ((int64_t)365 * 86400 * 1000000000)

/* The number of decimal places that a shift in nanoseconds needs in microseconds. */
static unsigned places_of(int64_t shift_ns)
{
	if (shift_ns % 1000 == 0)
		return 0;
	if (shift_ns % 100 == 0)
		return 1;
	return shift_ns % 10 == 0 ? 2 : 3;
}

static const int64_t powers[] = { 1,	  10,	   100,	     1000,	10000,
				  100000, 1000000, 10000000, 100000000, 1000000000 };

static void add_decimal(struct buf *out, __int128 value, unsigned places)
{
	char text[48], *p = text + sizeof(text);
	bool negative = value < 0;
	unsigned __int128 rest = negative ? -(unsigned __int128)value : (unsigned __int128)value;
	uint64_t low;
	unsigned count = 0;

	while (rest > UINT64_MAX) {
		*--p = (char)('0' + (int)(rest % 10));
		rest /= 10;
		if (++count == places)
			*--p = '.';
	}
	for (low = (uint64_t)rest; low || count <= places; low /= 10) {
		*--p = (char)('0' + (int)(low % 10));
		if (++count == places)
			*--p = '.';
	}
	if (negative)
		*--p = '-';
	buf_add(out, p, (size_t)(text + sizeof(text) - p));
}

/* Shifts a decimal number of up to 18 digits, which may have a point. */
static bool shift_short(struct str text, int64_t shift_ns, struct buf *out)
{
	const char *p = text.ptr, *end = p + text.len, *point = NULL;
	bool negative = text.len && *p == '-';
	unsigned places, wanted = places_of(shift_ns);
	int64_t number = 0;
	__int128 sum;

	p += negative;
	if (end - p > 19 || p == end || *p == '.' || end[-1] == '.')
		return false;
	for (; p < end; p++) {
		if (*p == '.' && !point) {
			point = p;
			continue;
		}
		if (*p < '0' || *p > '9')
			return false;
		number = number * 10 + (*p - '0');
	}
	places = point ? (unsigned)(end - point - 1) : 0;
	if (places > 9 || (!point && end - text.ptr - negative > 18))
		return false;
	sum = negative ? -number : number;
	if (places < wanted) {
		sum *= powers[wanted - places];
		places = wanted;
	}
	if (places >= 3)
		sum += (__int128)shift_ns * powers[places - 3];
	else
		sum += shift_ns / powers[3 - places];
	add_decimal(out, sum, places);
	return true;
}

/* A number of any length without a sign: digits[0 … count), of which the last `places` are behind the point. */
struct digits {
	unsigned char digits[DIGITS_MAX];
	size_t count, places;
};

static bool read_exponent(const char *p, const char *end, int64_t *exponent)
{
	bool negative = p < end && *p == '-';
	int64_t value = 0;

	p += p < end && (*p == '-' || *p == '+');
	if (p == end)
		return false;
	for (; p < end; p++) {
		if (*p < '0' || *p > '9')
			return false;
		if (value <= EXPONENT_MAX)
			value = value * 10 + (*p - '0');
	}
	*exponent = negative ? -value : value;
	return value <= EXPONENT_MAX;
}

static bool read_digits(struct str text, struct digits *d)
{
	const char *p = text.ptr, *end = p + text.len;
	int64_t exponent = 0, places = 0;
	bool point = false;

	d->count = 0;
	for (; p < end && ((*p >= '0' && *p <= '9') || (*p == '.' && !point)); p++) {
		if (*p == '.') {
			point = true;
			continue;
		}
		if (d->count >= DIGITS_MAX - 2 * EXPONENT_MAX - 64)
			return false;
		d->digits[d->count++] = (unsigned char)(*p - '0');
		places += point;
	}
	if (!d->count)
		return false;
	if (p < end && ((*p | 0x20) != 'e' || !read_exponent(p + 1, end, &exponent)))
		return false;
	for (places -= exponent; places < 0; places++)
		d->digits[d->count++] = 0;
	while ((int64_t)d->count <= places) { /* at least one digit before the point */
		memmove(d->digits + 1, d->digits, d->count++);
		d->digits[0] = 0;
	}
	d->places = (size_t)places;
	return true;
}

static void from_shift(uint64_t shift_ns, struct digits *d)
{
	char text[32];
	int len = snprintf(text, sizeof(text), "%04" PRIu64, shift_ns);

	OW_ASSERT(len >= 4 && len < (int)sizeof(text));
	d->count = (size_t)len;
	d->places = 3;
	for (size_t i = 0; i < d->count; i++)
		d->digits[i] = (unsigned char)(text[i] - '0');
	while (d->places && !d->digits[d->count - 1]) {
		d->count--;
		d->places--;
	}
}

/* Pads both numbers with zeros at both ends until they are equally long. */
static void same_length(struct digits *a, struct digits *b)
{
	size_t whole = MAX(a->count - a->places, b->count - b->places) + 1;
	size_t places = MAX(a->places, b->places);

	for (int i = 0; i < 2; i++, a = b) {
		size_t front = whole - (a->count - a->places);

		memmove(a->digits + front, a->digits, a->count);
		memset(a->digits, 0, front);
		a->count += front;
		memset(a->digits + a->count, 0, places - a->places);
		a->count += places - a->places;
		a->places = places;
	}
}

static void add_digits(struct digits *to, const struct digits *d)
{
	unsigned carry = 0;

	for (size_t i = to->count; i-- > 0;) {
		unsigned sum = to->digits[i] + d->digits[i] + carry;

		to->digits[i] = (unsigned char)(sum % 10);
		carry = sum / 10;
	}
}

/* Computes the larger minus the smaller number. */
static void subtract_digits(struct digits *to, const struct digits *large,
			    const struct digits *small)
{
	int borrow = 0;

	for (size_t i = large->count; i-- > 0;) {
		int left = large->digits[i] - small->digits[i] - borrow;

		borrow = left < 0;
		to->digits[i] = (unsigned char)(left + 10 * borrow);
	}
}

static void write_digits(const struct digits *d, bool negative, struct buf *out)
{
	size_t at = 0;
	bool zero = true;

	for (size_t i = 0; i < d->count; i++)
		zero = zero && !d->digits[i];
	if (negative && !zero)
		buf_add_char(out, '-');
	while (at + 1 < d->count - d->places && !d->digits[at])
		at++;
	for (; at < d->count; at++) {
		if (at == d->count - d->places)
			buf_add_char(out, '.');
		buf_add_char(out, (char)('0' + d->digits[at]));
	}
}

static bool shift_long(struct str text, int64_t shift_ns, struct buf *out)
{
	bool negative = text.len && *text.ptr == '-', other = shift_ns < 0;
	uint64_t distance = other ? 0 - (uint64_t)shift_ns : (uint64_t)shift_ns;
	struct digits a, b;
	int order;

	if (text.len && (*text.ptr == '-' || *text.ptr == '+'))
		text = str_skip(text, 1);
	if (!read_digits(text, &a))
		return false;
	from_shift(distance, &b);
	same_length(&a, &b);
	if (negative == other) {
		add_digits(&a, &b);
	} else {
		order = memcmp(a.digits, b.digits, a.count);
		if (order < 0)
			negative = other;
		subtract_digits(&a, order < 0 ? &b : &a, order < 0 ? &a : &b);
	}
	write_digits(&a, negative, out);
	return true;
}

bool decimal_shift(struct str text, int64_t shift_ns, struct buf *out)
{
	return shift_short(text, shift_ns, out) || shift_long(text, shift_ns, out);
}

/* Keeps the clocks as they are; fails unless all files count their times from the same base. */
static ow_status keep_clocks(struct merge *m)
{
	bool all = true;

	m->base_ns = INT64_MAX;
	for (size_t i = 0; i < m->file_count; i++) {
		all = all && m->files[i]->facts.has_base;
		m->base_ns = MIN(m->base_ns, m->files[i]->facts.base_ns);
	}
	if (!all)
		m->base_ns = 0;
	for (size_t i = 0; i < m->file_count; i++) {
		struct merge_file *file = m->files[i];

		if (__builtin_sub_overflow(file->facts.has_base ? file->facts.base_ns : 0,
					   m->base_ns, &file->shift_ns))
			return error_set(
				m->err, OW_E_LIMIT,
				"%s: the clock of this file is too far from those of the others",
				file->path);
	}
	return OW_OK;
}

int64_t clock_shift(const struct merge_file *file, int64_t ns)
{
	const struct merge_clock *clock = file->clock;
	const struct merge_clock_piece *piece;
	int64_t own;
	double added;

	if (!clock || !clock->piece_count ||
	    __builtin_add_overflow(ns, file->facts.has_base ? file->facts.base_ns : 0, &own))
		return file->base_shift_ns;
	piece = clock->pieces;
	for (size_t i = 1; i < clock->piece_count && clock->pieces[i].from_ns <= own; i++)
		piece = &clock->pieces[i];
	added = piece->offset_ns + piece->drift * ((double)own - (double)piece->origin_ns);
	if (!(fabs(added) < 9e18) ||
	    __builtin_add_overflow(file->base_shift_ns, llround(added), &own))
		return file->base_shift_ns;
	return own;
}

static void fit_clocks(struct merge *m)
{
	for (size_t i = 0; i < m->file_count; i++) {
		struct merge_file *file = m->files[i];
		int64_t base = file->facts.has_base ? file->facts.base_ns : 0, at = 0;

		file->base_shift_ns = file->shift_ns;
		for (size_t k = 0; k < m->options->clock_count && !file->clock; k++)
			if (strcmp(m->options->clocks[k].path, file->path) == 0 &&
			    m->options->clocks[k].piece_count)
				file->clock = &m->options->clocks[k];
		if (file->clock &&
		    !__builtin_sub_overflow(file->clock->pieces[0].origin_ns, base, &at))
			file->shift_ns = clock_shift(file, at);
	}
}

static void find_start(struct merge_file *file)
{
	file->zeros_apart = file->min_ns == 0 && file->min_positive_ns != NO_TIME &&
			    file->min_positive_ns > OUTLIER_NS;
	if (file->zeros_apart)
		file->min_ns = file->min_positive_ns;
}

/* The gap after a file in a sequence: a hundredth of the file's duration, in whole microseconds. */
static int64_t gap_after(int64_t duration)
{
	return MAX(duration / 100 / 1000, 1) * 1000;
}

static ow_status move_clocks(struct merge *m)
{
	int64_t at = 0, duration;

	m->base_ns = 0;
	for (size_t i = 0; i < m->file_count; i++) {
		struct merge_file *file = m->files[i];

		file->start_ns = at;
		if (file->min_ns == NO_TIME)
			continue;
		if (__builtin_sub_overflow(at, file->min_ns, &file->shift_ns) ||
		    __builtin_sub_overflow(file->max_ns, file->min_ns, &duration))
			goto too_far;
		if (m->options->align != ALIGN_SEQUENCE)
			continue;
		if (__builtin_add_overflow(at, duration, &at) || at > INT64_MAX / 2)
			goto too_far;
		at = (at + 999) / 1000 * 1000 + gap_after(duration);
	}
	return OW_OK;
too_far:
	return error_set(m->err, OW_E_LIMIT,
			 "the times of the files are too far apart to merge them");
}

/* Finds the first time in the output, and whether the files' times are so far apart that their clocks are unrelated. */
void clocks_compare(struct merge *m)
{
	int64_t least = NO_TIME, last_start = NO_TIME, first_end = INT64_MAX;

	for (size_t i = 0; i < m->file_count; i++) {
		const struct merge_file *file = m->files[i];
		int64_t from, to;

		if (file->min_ns == NO_TIME ||
		    __builtin_add_overflow(file->min_ns, file->shift_ns, &from) ||
		    __builtin_add_overflow(file->max_ns, file->shift_ns, &to))
			continue;
		least = least == NO_TIME ? from : MIN(least, from);
		last_start = last_start == NO_TIME ? from : MAX(last_start, from);
		first_end = MIN(first_end, to);
	}
	m->zero_ns = least == NO_TIME ? 0 : least;
	m->counts->unrelated_clocks = least != NO_TIME && m->options->align == ALIGN_KEEP &&
				      first_end < last_start && last_start - first_end > YEAR_NS;
}

ow_status clocks_choose(struct merge *m)
{
	for (size_t i = 0; i < m->file_count; i++) {
		m->files[i]->shift_ns = 0;
		find_start(m->files[i]);
	}
	OW_TRY(m->options->align == ALIGN_KEEP || m->options->align == ALIGN_CLOCKS
		       ? keep_clocks(m)
		       : move_clocks(m));
	if (m->options->align == ALIGN_CLOCKS)
		fit_clocks(m);
	clocks_compare(m);
	return OW_OK;
}
