/*
 * hooks.h: two destinations of messages: a web address that receives them as JSON by POST, and a program that receives
 * one on its standard input. No shell is involved: the program is started with fixed arguments, and all data from a job
 * is in the JSON.
 */
#ifndef FLEET_HOOKS_H
#define FLEET_HOOKS_H

#include "fleet/outbox.h"
#include "push/http.h"

struct web_hook {
	struct mem *mem;
	struct arena arena;
	struct http *http;
	const char *target; /* path and query of the address */
	const volatile bool *stop;
};

/* Opens http://HOST:PORT/PATH or https://…; `token` is sent as a bearer token, and may be NULL. */
ow_status web_hook_open(struct web_hook *h, struct mem *mem, const char *address, const char *token,
			struct ow_error *err);
void web_hook_close(struct web_hook *h);
/* An outbox_send_fn: any 2xx status is a success; 408, 429 and 5xx are tried again. */
enum outbox_result web_hook_send(void *hook, uint32_t kind, struct str text,
				 const volatile bool *stop, char why[512]);

#define COMMAND_LIMIT_NS 30000000000LL

struct command_hook {
	const char *program; /* a path, or a name that is searched in PATH */
	int64_t limit_ns;    /* the program is killed after this time */
};
/* Fails when the program does not exist. */
ow_status command_hook_check(const char *program, struct ow_error *err);
/* An outbox_send_fn that never asks for another attempt. */
enum outbox_result command_hook_send(void *hook, uint32_t kind, struct str text,
				     const volatile bool *stop, char why[512]);

#endif
