/*
 * address.c: parses the addresses of servers, and the HOST:PORT of nodes. The rules are in address.h. Used by
 * ow_remote_open and nodes.c. It does not resolve names.
 */
#include "push/address.h"

#include "base/str.h"

static const struct scheme {
	struct str name;
	bool tls;
	uint16_t port;
} schemes[] = {
	{ STR("clickhouse://"), false, 8123 },
	{ STR("clickhouses://"), true, 8443 },
	{ STR("http://"), false, 8123 },
	{ STR("https://"), true, 8443 },
};

static ow_status malformed(struct ow_error *err, const char *what)
{
	return error_set(err, OW_E_USAGE,
			 "%s; a server is named clickhouse://USER@HOST:8123/DATABASE "
			 "(clickhouses:// with TLS)",
			 what);
}

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 32;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* A copy with percent escapes decoded (%41 is A); NULL when the text is not valid, or when memory runs out. */
static char *decode(struct arena *arena, struct str text)
{
	char *copy = arena_cstr(arena, text), *to = copy;

	for (size_t i = 0; copy && i < text.len; i++) {
		char c = text.ptr[i];

		if (c == '%') {
			int high = text.len - i < 3 ? -1 : hex_value(text.ptr[i + 1]);
			int low = text.len - i < 3 ? -1 : hex_value(text.ptr[i + 2]);

			if (high < 0 || low < 0)
				return NULL;
			c = (char)(high * 16 + low);
			i += 2;
		}
		if ((unsigned char)c < 32 || c == 127)
			return NULL;
		*to++ = c;
	}
	if (copy)
		*to = 0;
	return copy;
}

static bool parse_port(struct str text, uint16_t *port)
{
	int64_t number;

	if (!str_to_i64(text, &number) || number < 1 || number > UINT16_MAX)
		return false;
	*port = (uint16_t)number;
	return true;
}

static bool is_host_char(char c)
{
	return (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z') || c == '.' ||
	       c == '-' || c == '_';
}

static bool is_host(struct str host, bool bracketed)
{
	for (size_t i = 0; i < host.len; i++)
		if (!is_host_char(host.ptr[i]) &&
		    !(bracketed && (host.ptr[i] == ':' || host.ptr[i] == '%')))
			return false;
	return host.len > 0 && host.len < 256;
}

bool address_split(struct str text, struct str *host, uint16_t *port)
{
	bool bracketed = text.len && text.ptr[0] == '[';
	size_t end = bracketed ? str_find_char(text, ']') : str_find_char(text, ':');
	struct str rest;

	if (bracketed) {
		if (end == STR_NONE)
			return false;
		*host = str_first(str_skip(text, 1), end - 1);
		rest = str_skip(text, end + 1);
	} else {
		*host = end == STR_NONE ? text : str_first(text, end);
		rest = str_skip(text, host->len);
	}
	if (!is_host(*host, bracketed))
		return false;
	return !rest.len || (rest.ptr[0] == ':' && parse_port(str_skip(rest, 1), port));
}

static const struct scheme *find_scheme(struct str text)
{
	for (size_t i = 0; i < ARRAY_COUNT(schemes); i++)
		if (str_starts(text, schemes[i].name))
			return &schemes[i];
	return NULL;
}

ow_status address_parse(struct address *address, struct arena *arena, struct str text,
			struct ow_error *err)
{
	const struct scheme *scheme = find_scheme(text);
	struct str user = { 0 }, database = { 0 }, host;
	size_t at, slash;

	if (!scheme)
		return malformed(err, "this is not the address of a server");
	text = str_skip(text, scheme->name.len);
	*address = (struct address){ .tls = scheme->tls, .port = scheme->port };
	at = str_rfind_char(text, '@');
	if (at != STR_NONE) {
		user = str_first(text, at);
		text = str_skip(text, at + 1);
	}
	if (user.len && str_find_char(user, ':') != STR_NONE)
		return error_set(err, OW_E_USAGE,
				 "a password does not belong in the address, where others can see "
				 "it: put it in the "
				 "environment variable OPWATCH_CLICKHOUSE_PASSWORD or in a file "
				 "(--password-file)");
	slash = str_find_char(text, '/');
	if (slash != STR_NONE) {
		database = str_skip(text, slash + 1);
		text = str_first(text, slash);
	}
	if (database.len &&
	    (str_find_char(database, '/') != STR_NONE || str_find_char(database, '?') != STR_NONE))
		return malformed(err, "the address has more than a database after its host");
	if (!address_split(text, &host, &address->port))
		return malformed(err, "the host or port in the address cannot be read");
	address->host = arena_cstr(arena, host);
	address->user = decode(arena, user.len ? user : STR("default"));
	address->database = decode(arena, database.len ? database : STR("default"));
	if (!address->host)
		return error_no_memory(err);
	if (!address->user || !address->database)
		return malformed(err, "the user or database in the address cannot be read");
	return OW_OK;
}

char *address_place(const struct address *address, struct arena *arena)
{
	bool v6 = strchr(address->host, ':') != NULL;

	return arena_printf(arena, "%s%s%s:%u", v6 ? "[" : "", address->host, v6 ? "]" : "",
			    (unsigned)address->port);
}

struct address address_at(const struct address *address, const char *host, uint16_t port)
{
	struct address other = *address;

	other.host = host;
	if (port)
		other.port = port;
	return other;
}

bool address_is_loopback(const struct address *address)
{
	return strcmp(address->host, "localhost") == 0 || strcmp(address->host, "::1") == 0 ||
	       strncmp(address->host, "127.", 4) == 0;
}
