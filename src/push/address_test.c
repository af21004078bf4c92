/* address_test.c: addresses of servers that can be read, and those that cannot. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "push/address.h"

static void good(const char *text, bool tls, const char *user, const char *place,
		 const char *database)
{
	struct address address;
	struct ow_error err = { 0 };
	struct arena arena;
	struct mem mem;

	mem_init(&mem, 0);
	arena_init(&arena, &mem);
	if (address_parse(&address, &arena, str_from(text), &err) != OW_OK)
		fail_msg("%s: %s", text, err.text);
	assert_int_equal(address.tls, tls);
	assert_string_equal(address.user, user);
	assert_string_equal(address_place(&address, &arena), place);
	assert_string_equal(address.database, database);
	arena_release(&arena);
}

static void bad(const char *text, const char *why)
{
	struct address address;
	struct ow_error err = { 0 };
	struct arena arena;
	struct mem mem;

	mem_init(&mem, 0);
	arena_init(&arena, &mem);
	assert_int_equal(address_parse(&address, &arena, str_from(text), &err), OW_E_USAGE);
	if (!strstr(err.text, why))
		fail_msg("%s: %s", text, err.text);
	assert_null(strstr(err.text, "hunter2"));
	arena_release(&arena);
}

static void readable(void **state)
{
	(void)state;
	good("clickhouse://ann@db1:9123/runs", false, "ann", "db1:9123", "runs");
	good("clickhouse://db1", false, "default", "db1:8123", "default");
	good("clickhouse://db1/", false, "default", "db1:8123", "default");
	good("clickhouses://ann@db1.example/x", true, "ann", "db1.example:8443", "x");
	good("https://ann@10.0.0.1:443/x", true, "ann", "10.0.0.1:443", "x");
	good("http://[::1]:8124/x", false, "default", "[::1]:8124", "x");
	good("clickhouse://[fe80::1%25eth0]", false, "default", "[fe80::1%25eth0]:8123", "default");
	good("clickhouse://a%40b@db1/%64b", false, "a@b", "db1:8123", "db");
	good("clickhouse://a@b@db1/x", false, "a@b", "db1:8123", "x");
}

static void unreadable(void **state)
{
	(void)state;
	bad("", "not the address");
	bad("db1:8123", "not the address");
	bad("mysql://db1", "not the address");
	bad("clickhouse://ann:hunter2@db1/x", "OPWATCH_CLICKHOUSE_PASSWORD");
	bad("clickhouse://", "host or port");
	bad("clickhouse://ann@", "host or port");
	bad("clickhouse://db1:0/x", "host or port");
	bad("clickhouse://db1:65536/x", "host or port");
	bad("clickhouse://db1:port/x", "host or port");
	bad("clickhouse://db 1/x", "host or port");
	bad("clickhouse://[::1/x", "host or port");
	bad("clickhouse://[::1]8123/x", "host or port");
	bad("clickhouse://db1/x/y", "more than a database");
	bad("clickhouse://db1/x?password=hunter2", "more than a database");
	bad("clickhouse://a%4@db1", "user or database");
	bad("clickhouse://a%zz@db1", "user or database");
	bad("clickhouse://a%0a@db1", "user or database");
}

static void elsewhere(void **state)
{
	struct address address = {
		.host = "127.0.0.1", .port = 8123, .user = "u", .database = "d"
	};
	struct address other = address_at(&address, "db2", 0);
	struct str host;
	uint16_t port = 8123;

	(void)state;
	assert_true(address_is_loopback(&address));
	assert_false(address_is_loopback(&other));
	assert_int_equal(other.port, 8123);
	assert_int_equal(address_at(&address, "db2", 9).port, 9);
	assert_true(address_split(STR("db3:99"), &host, &port));
	assert_int_equal(port, 99);
	assert_true(str_eq(host, STR("db3")));
	assert_false(address_split(STR("db3:"), &host, &port));
	assert_false(address_split(STR(""), &host, &port));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(readable),
		cmocka_unit_test(unreadable),
		cmocka_unit_test(elsewhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
