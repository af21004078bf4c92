/*
 * address.h: the address of a server: clickhouse://USER@HOST:PORT/DATABASE, or clickhouses:// with TLS; http:// and
 * https:// mean the same. A password in the address is rejected, because addresses are visible in process lists, logs
 * and shell histories.
 */
#ifndef PUSH_ADDRESS_H
#define PUSH_ADDRESS_H

#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"

struct address {
	bool tls;
	const char *host; /* without the brackets of an IPv6 address */
	uint16_t port;
	const char *user, *database; /* "default" when not given */
};

/* Parses an address. The texts are allocated in the arena. */
ow_status address_parse(struct address *address, struct arena *arena, struct str text,
			struct ow_error *err);

/* The host and port as text, "10.1.2.3:8123" or "[::1]:8123", for messages and URLs. */
char *address_place(const struct address *address, struct arena *arena);

/* The same address with another host; a port of 0 keeps the port. */
struct address address_at(const struct address *address, const char *host, uint16_t port);

/* Whether the address is this machine itself; then no proxy is used. */
bool address_is_loopback(const struct address *address);

/* Splits HOST, HOST:PORT, [V6] or [V6]:PORT; *port is unchanged when the text has none. */
bool address_split(struct str text, struct str *host, uint16_t *port);

#endif
