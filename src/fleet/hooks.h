/*
 * hooks.h: two places that messages go to: an address that gets them as JSON by POST, and a program that gets one on its
 * standard input. No shell is involved: the program is started with fixed arguments, and everything that comes from a
 * job is in the JSON.
 */
#ifndef FLEET_HOOKS_H
#define FLEET_HOOKS_H

#include "fleet/outbox.h"
#include "push/http.h"

struct web_hook {
	struct mem *mem;
	struct arena arena;
	struct http *http;
	const char *target; /* path and query */
	const volatile bool *stop;
};

/* http://HOST:PORT/PATH or https://…; `token` is sent as a bearer, and may be NULL. */
ow_status web_hook_open(struct web_hook *h, struct mem *mem, const char *address, const char *token,
			struct ow_error *err);
void web_hook_close(struct web_hook *h);
/* An outbox_send_fn: any status of 2xx is fine; 408, 429 and 5xx are tried again. */
enum outbox_result web_hook_send(void *hook, uint32_t kind, struct str text,
				 const volatile bool *stop, char why[512]);

#define COMMAND_LIMIT_NS 30000000000LL

struct command_hook {
	const char *program; /* a path, or a name that is looked for in PATH */
	int64_t limit_ns;    /* the program is killed after this time */
};
/* Fails when there is no such program. */
ow_status command_hook_check(const char *program, struct ow_error *err);
/* An outbox_send_fn: never tried again. */
enum outbox_result command_hook_send(void *hook, uint32_t kind, struct str text,
				     const volatile bool *stop, char why[512]);

#endif
