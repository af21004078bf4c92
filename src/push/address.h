/*
 * address.h: where a server is: clickhouse://USER@HOST:PORT/DATABASE, clickhouses:// with TLS; http:// and
 * https:// mean the same. A password in the address is refused: addresses are seen in process lists, logs
 * and histories.
 */
#ifndef PUSH_ADDRESS_H
#define PUSH_ADDRESS_H

#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"

struct address {
	bool tls;
	const char *host; /* without the brackets of IPv6 */
	uint16_t port;
	const char *user, *database; /* "default" when not given */
};

/* The texts are put in the arena. */
ow_status address_parse(struct address *address, struct arena *arena, struct str text,
			struct ow_error *err);

/* "10.1.2.3:8123" or "[::1]:8123", for messages and URLs. */
char *address_place(const struct address *address, struct arena *arena);

/* The same server and user at another host; a port of 0 keeps the port. */
struct address address_at(const struct address *address, const char *host, uint16_t port);

/* This machine itself, where no proxy is asked. */
bool address_is_loopback(const struct address *address);

/* HOST, HOST:PORT, [V6] or [V6]:PORT; *port stays when none is given. */
bool address_split(struct str text, struct str *host, uint16_t *port);

#endif
