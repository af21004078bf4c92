/* crc32c_test.c: known answers (RFC 3720, appendix B.4), and that both implementations agree. */
#include "wire/container/crc32c.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

static void known_answers(void **state)
{
	unsigned char bytes[32];

	(void)state;
	assert_int_equal(crc32c("", 0), 0);
	assert_int_equal(crc32c("123456789", 9), 0xe3069283);
	memset(bytes, 0, sizeof(bytes));
	assert_int_equal(crc32c(bytes, sizeof(bytes)), 0x8a9136aa);
	memset(bytes, 0xff, sizeof(bytes));
	assert_int_equal(crc32c(bytes, sizeof(bytes)), 0x62a8ab43);
	for (int i = 0; i < 32; i++)
		bytes[i] = (unsigned char)i;
	assert_int_equal(crc32c(bytes, sizeof(bytes)), 0x46dd794e);
	assert_int_equal(crc32c_extend_portable(0, bytes, sizeof(bytes)), 0x46dd794e);
	for (int i = 0; i < 32; i++)
		bytes[i] = (unsigned char)(31 - i);
	assert_int_equal(crc32c(bytes, sizeof(bytes)), 0x113fdb5c);
}

/* The plainest possible implementation. */
static uint32_t bitwise(uint32_t crc, const unsigned char *at, size_t len)
{
	crc = ~crc;
	while (len--) {
		crc ^= *at++;
		for (int i = 0; i < 8; i++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
	}
	return ~crc;
}

static void all_ways_agree(void **state)
{
	unsigned char bytes[300];
	uint32_t seed = 1;

	(void)state;
	for (size_t i = 0; i < sizeof(bytes); i++) {
		seed = seed * 1664525u + 1013904223u;
		bytes[i] = (unsigned char)(seed >> 24);
	}
	for (size_t from = 0; from < 16; from++) {
		for (size_t len = 0; len + from < sizeof(bytes); len += 7) {
			uint32_t want = bitwise(seed, bytes + from, len);

			assert_int_equal(crc32c_extend_portable(seed, bytes + from, len), want);
			assert_int_equal(crc32c_extend(seed, bytes + from, len), want);
		}
	}
}

static void extends_in_pieces(void **state)
{
	const char text[] = "a CRC of the whole equals the CRC of its parts in order";
	uint32_t whole = crc32c(text, sizeof(text));

	(void)state;
	for (size_t cut = 0; cut <= sizeof(text); cut++)
		assert_int_equal(crc32c_extend(crc32c(text, cut), text + cut, sizeof(text) - cut),
				 whole);
}

static void mask_is_undone(void **state)
{
	(void)state;
	assert_int_equal(crc32c_mask(0), 0xa282ead8);
	assert_int_not_equal(crc32c_mask(0xe3069283), 0xe3069283);
	for (uint32_t crc = 1; crc; crc <<= 1)
		assert_int_equal(crc32c_unmask(crc32c_mask(crc)), crc);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(known_answers),
		cmocka_unit_test(all_ways_agree),
		cmocka_unit_test(extends_in_pieces),
		cmocka_unit_test(mask_is_undone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
