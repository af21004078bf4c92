/* click_error.c: see click_error.h. */
#include "push/click_error.h"

/* Exceptions that mean something to us, by their numbers in ClickHouse's ErrorCodes. */
static const struct meaning {
	int code;
	ow_status status;
	bool transient;
	const char *advice; /* what to try, or NULL */
} meanings[] = {
	{ 192, OW_E_PERMISSION, false, "is the user in the address right?" },
	{ 193, OW_E_PERMISSION, false, "set OPWATCH_CLICKHOUSE_PASSWORD or give --password-file" },
	{ 194, OW_E_PERMISSION, false, "set OPWATCH_CLICKHOUSE_PASSWORD or give --password-file" },
	{ 195, OW_E_PERMISSION, false, "the user may not connect from this machine" },
	{ 516, OW_E_PERMISSION, false,
	  "check the user in the address, and set OPWATCH_CLICKHOUSE_PASSWORD or give "
	  "--password-file" },
	{ 497, OW_E_PERMISSION, false, "the user lacks a right on the server" },
	{ 164, OW_E_PERMISSION, false, "the user may only read" },
	{ 291, OW_E_PERMISSION, false, "the user may not use this database" },
	{ 81, OW_E_NOT_FOUND, false,
	  "create it on the server with CREATE DATABASE, or name another" },
	{ 60, OW_E_NOT_FOUND, false, NULL },
	{ 46, OW_E_USAGE, false, NULL },
	{ 47, OW_E_USAGE, false, NULL },
	{ 62, OW_E_USAGE, false, NULL },
	{ 243, OW_E_IO, false, "the disk of the server is full; free some space and push again" },
	{ 158, OW_E_LIMIT, false, NULL },
	{ 307, OW_E_LIMIT, false, NULL },
	{ 241, OW_E_LIMIT, true, "the server's memory limit was reached" },
	{ 159, OW_E_LIMIT, true, NULL },
	{ 202, OW_E_LIMIT, true, "the server is busy" },
	{ 252, OW_E_LIMIT, true, "the server merges more slowly than it is fed" },
	{ 209, OW_E_IO, true, NULL },
	{ 210, OW_E_IO, true, NULL },
	{ 279, OW_E_IO, true, "a node of the cluster cannot be reached" },
	{ 242, OW_E_IO, true, "the table is read-only at the moment" },
	{ 999, OW_E_IO, true, NULL },
};

static const struct meaning *find_meaning(int code)
{
	for (size_t i = 0; i < ARRAY_COUNT(meanings); i++)
		if (meanings[i].code == code)
			return &meanings[i];
	return NULL;
}

static void cut_before(struct str *text, struct str what)
{
	size_t at = str_find(*text, what);

	if (at != STR_NONE)
		*text = str_first(*text, at);
}

int click_exception(struct str answer, struct str *text)
{
	size_t at = str_find(answer, STR("Code: "));
	int code = 0;

	*text = answer;
	if (at == STR_NONE)
		return 0;
	answer = str_skip(answer, at + 6);
	while (answer.len && answer.ptr[0] >= '0' && answer.ptr[0] <= '9' && code < 1000000) {
		code = code * 10 + (answer.ptr[0] - '0');
		answer = str_skip(answer, 1);
	}
	at = str_find(answer, STR("DB::"));
	if (at != STR_NONE && str_find(str_skip(answer, at), STR(": ")) != STR_NONE) {
		answer = str_skip(answer, at);
		answer = str_skip(answer, str_find(answer, STR(": ")) + 2);
	}
	cut_before(&answer, STR(", e.what() ="));
	cut_before(&answer, STR(" (version "));
	cut_before(&answer, STR(", Stack trace"));
	*text = str_trim(answer);
	return code;
}

/* Older servers have no number of their own for a full disk. */
static bool disk_full(struct str text)
{
	return str_has(text, STR("No space left on device"));
}

static ow_status refused(struct click *click, const struct http_answer *answer, struct error *err)
{
	const struct meaning *meaning;
	struct str text;

	click->code = click_exception(str_from(answer->text), &text);
	if (answer->exception_code)
		click->code = answer->exception_code;
	meaning = find_meaning(disk_full(text) ? 243 : click->code);
	click->transient =
		meaning ? meaning->transient
			: !click->code && (answer->status == 429 || answer->status == 502 ||
					   answer->status == 503 || answer->status == 504);
	if (!click->code && answer->status == 401)
		return error_set(err, OW_E_PERMISSION,
				 "%s refuses the user '%s'; set OPWATCH_CLICKHOUSE_PASSWORD or "
				 "give --password-file",
				 click->place, click->address.user);
	if (!click->code)
		return error_set(err, OW_E_IO,
				 "%s answers with HTTP status %ld: %.*s; is it a "
				 "ClickHouse server, and this its HTTP port?",
				 click->place, answer->status, STR_ARG(str_first(text, 200)));
	return error_set(err, meaning ? meaning->status : OW_E_IO, "%s: %.*s%s%s (code %d)",
			 click->place, STR_ARG(str_first(text, 700)),
			 meaning && meaning->advice ? "; " : "",
			 meaning && meaning->advice ? meaning->advice : "", click->code);
}

ow_status click_failure(struct click *click, const struct http_answer *answer, struct error *err)
{
	click->code = 0;
	click->transient = false;
	switch (answer->outcome) {
	case HTTP_ANSWERED:
		return refused(click, answer, err);
	case HTTP_NOT_REACHED:
		click->transient = click->proven;
		return error_set(err, OW_E_IO,
				 "%s cannot be reached: %s; is the server running, and is this "
				 "its %s port?",
				 click->place, answer->text, click->address.tls ? "HTTPS" : "HTTP");
	case HTTP_BROKEN:
		click->transient = true;
		return error_set(err, OW_E_IO, "the connection to %s broke: %s", click->place,
				 answer->text);
	case HTTP_CANCELLED:
		return error_set(err, OW_E_INTERRUPTED, "interrupted");
	case HTTP_TOO_LONG:
		return error_set(err, OW_E_LIMIT,
				 "the answer of %s is too long for the memory it may take; ask for "
				 "less (LIMIT)",
				 click->place);
	case HTTP_NO_MEMORY:
		return error_no_memory(err);
	case HTTP_REFUSED_TLS:
		return error_set(err, OW_E_PERMISSION,
				 "%s is not trusted: %s; name its authority's certificate in "
				 "SSL_CERT_FILE",
				 click->place, answer->text);
	case HTTP_MAKE_FAILED:
		break; /* the maker has set the error */
	}
	return err && err->status != OW_OK ? err->status : OW_E_INTERNAL;
}
