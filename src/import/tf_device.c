/* tf_device.c: see tf_device.h. */
#include "import/tf_device.h"

void tf_device_lower(struct buf *to, struct str name)
{
	for (size_t i = 0; i < name.len; i++) {
		char c = name.ptr[i];

		buf_add_char(to, c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c);
	}
}

static size_t count_digits(struct str s)
{
	size_t n = 0;

	while (n < s.len && s.ptr[n] >= '0' && s.ptr[n] <= '9')
		n++;
	return n;
}

bool tf_device_is_canonical(struct str lower)
{
	static const struct str kinds[] = { STR("/device:gpu"), STR("/gpu"), STR("/device:cpu"),
					    STR("/cpu"), STR("/device:sycl") };
	size_t colon = str_rfind_char(lower, ':');
	struct str digits;

	if (colon == STR_NONE || str_find_char(str_first(lower, colon), '\n') != STR_NONE)
		return false;
	digits = str_skip(lower, colon + 1);
	if (!digits.len || count_digits(digits) != digits.len)
		return false;
	for (size_t i = 0; i < ARRAY_COUNT(kinds); i++)
		if (str_ends(str_first(lower, colon), kinds[i]))
			return true;
	return false;
}

bool tf_device_is_accelerator(struct str lower)
{
	return str_has(lower, STR("gpu")) || str_has(lower, STR("sycl"));
}

bool tf_device_is_all_streams(struct str lower)
{
	return str_has(lower, STR("stream:all"));
}

void tf_device_host(struct buf *to, struct str lower)
{
	struct str kind = str_has(lower, STR("sycl")) ? STR("device:sycl:") : STR("gpu:");

	while (lower.len) {
		size_t at = str_find(lower, kind);
		size_t digits = at == STR_NONE ? 0 : count_digits(str_skip(lower, at + kind.len));

		if (at == STR_NONE) {
			buf_add_str(to, lower);
			return;
		}
		buf_add(to, lower.ptr, at);
		if (digits)
			buf_puts(to, "cpu:0");
		else
			buf_add_str(to, kind);
		lower = str_skip(lower, at + kind.len + digits);
	}
}
