/*
 * unrecognised.c: error messages for a file that no importer recognises, or that is not there. It knows parts of a profile
 * by their names, and files that were converted as text; formats that opwatch does not read are in unreadable.c. import.c,
 * the importer of Chrome traces and api/profile.c call it. Names of files are used for advice only: they never decide how a file is read.
 */
#include "import/unrecognised.h"

#include <unistd.h>

#define REPLACED "\xef\xbf\xbd" /* U+FFFD, what decoders put where bytes are not text */
#define FEW 3			/* any file may contain this many by chance */
#define MANY 64

static struct str digits(struct str *s)
{
	size_t len = 0;

	while (len < s->len && s->ptr[len] >= '0' && s->ptr[len] <= '9')
		len++;
	*s = str_skip(*s, len);
	return str_make(s->ptr - len, len);
}

/* The prefix of "model.ckpt-100.data-00000-of-00001"; empty when the name is not such a one. */
static struct str prefix_of_data(struct str name)
{
	size_t at = str_find(name, STR(".data-"));
	struct str rest;

	if (at == STR_NONE)
		return (struct str){ 0 };
	rest = str_skip(name, at + 6);
	if (!digits(&rest).len || !str_starts(rest, STR("-of-")))
		return (struct str){ 0 };
	rest = str_skip(rest, 4);
	return digits(&rest).len && !rest.len ? str_first(name, at) : (struct str){ 0 };
}

/* The first entry of a bundle's index: an empty key, and a header that begins with num_shards. */
static bool begins_as_index(struct str name, struct str head)
{
	return head.len >= 4 && memcmp(head.ptr, "\0\0", 2) == 0 && head.ptr[2] > 0 &&
	       head.ptr[3] == 0x08 && str_ends(name, STR(".index"));
}

bool unrecognised_converted(struct str head)
{
	size_t feeds = 0, returns = 0, pairs = 0, controls = 0, replaced = 0;

	for (size_t i = 0; i < head.len; i++) {
		unsigned char c = (unsigned char)head.ptr[i];

		feeds += c == '\n';
		returns += c == '\r';
		pairs += c == '\n' && i && head.ptr[i - 1] == '\r';
		controls += c < '\t' || (c > '\r' && c < ' ');
		replaced += c == 0xef && str_starts(str_skip(head, i), STR(REPLACED));
	}
	if (controls <= FEW)
		return false; /* text: nothing is lost */
	return replaced > FEW || (feeds > FEW && pairs == feeds) ||
	       (feeds > MANY && controls > MANY && !returns);
}

/* "3c 3f 78 6d «<?xm»", so that a wrong file can be recognised by its owner. */
static void describe_head(struct str head, char *text, size_t size)
{
	size_t shown = MIN(head.len, (size_t)16), len = 0;

	for (size_t i = 0; i < shown && len + 4 < size; i++)
		len += (size_t)snprintf(text + len, size - len, "%02x ",
					(unsigned char)head.ptr[i]);
	if (len + shown + 4 >= size)
		return;
	text[len++] = '"';
	for (size_t i = 0; i < shown; i++)
		text[len++] = head.ptr[i] >= 0x20 && head.ptr[i] < 0x7f ? head.ptr[i] : '.';
	text[len++] = '"';
	text[len] = '\0';
}

void unrecognised_explain(const char *name, struct str head, struct ow_error *err)
{
	struct str prefix = prefix_of_data(str_from(name));
	const char *what = unreadable_content(head);
	char seen[128] = "";

	if (!what)
		what = unreadable_name(name);
	if (what) {
		error_at(err, OW_E_FORMAT, 0, "%s: this is %s", name, what);
		return;
	}
	if (prefix.len) {
		error_at(err, OW_E_FORMAT, 0,
			 "%s: this is the data of a checkpoint, which needs its index; open "
			 "%.*s.index",
			 name, STR_ARG(prefix));
		return;
	}
	if (begins_as_index(str_from(name), head)) {
		error_at(err, OW_E_CORRUPT, 0,
			 "%s: the index of this checkpoint is truncated, or other data follows it; "
			 "copy it again",
			 name);
		return;
	}
	describe_head(head, seen, sizeof(seen));
	/* model/redact.c cuts notes at "; it starts with" */
	error_at(err, OW_E_FORMAT, 0, "%s: unknown format; it starts with %s; %s", name, seen,
		 unrecognised_converted(head)
			 ? "it looks like a binary file that git, FTP or an editor converted as if "
			   "it were text: copy the original again, as binary"
			 : "'opwatch formats' lists the formats that opwatch reads");
}

static bool has_index(struct str prefix)
{
	char path[4096];
	int len = snprintf(path, sizeof(path), "%.*s.index", STR_ARG(prefix));

	return len > 0 && (size_t)len < sizeof(path) && access(path, F_OK) == 0;
}

void unrecognised_missing(const char *name, struct ow_error *err)
{
	if (has_index(str_from(name)))
		error_set(err, OW_E_NOT_FOUND,
			  "%s: no such file; this is the name of a checkpoint: open %s.index", name,
			  name);
}

bool unrecognised_is_part(const char *name)
{
	struct str prefix = prefix_of_data(str_from(name));

	return prefix.len && has_index(prefix);
}
