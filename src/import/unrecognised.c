/*
 * stranger.c: see stranger.h. Files that people take for profiles, known by how they begin; files that
 * belong to a profile, known by their names; and files that were damaged on their way. Names are used
 * for advice only, never to decide how a file is read.
 */
#include "import/stranger.h"

#include "import/importer.h" /* V8_SNAPSHOT */

#include <unistd.h>

#define REPLACED "\xef\xbf\xbd" /* U+FFFD, what decoders put where bytes are no text */
#define FEW 3			/* that many may be in any file */
#define MANY 64

/* What people take for a profile, and what it is. */
static const struct {
	size_t at;
	const char *start, *what;
} strangers[] = {
	{ 0, "version https://git-lfs",
	  "a git-LFS pointer, not the file itself; fetch that with 'git lfs pull'" },
	{ 0, "<?xml", "XML, maybe an SVG picture; open the stacks that it was made from" },
	{ 0, "<svg", "an SVG picture; open the stacks that it was made from" },
	{ 0, "<!DOCTYPE", "a web page; save the file behind it" },
	{ 0, "PERFFILE",
	  "a perf.data file of version 1, which perf has not written since 2009; read it with the "
	  "perf that wrote it, and open the output of 'perf script'" },
	{ 0, V8_SNAPSHOT,
	  "a heap snapshot of V8, which has objects and no calls; record who allocates with 'node "
	  "--heap-prof' and open the .heapprofile" },
	{ 0, "SIMPLEPERF",
	  "the output of 'simpleperf report-sample'; open the perf.data that it was made from" },
	{ 0, "model_checkpoint_path:",
	  "TensorFlow's list of checkpoints, not one itself; open the .index or .meta file of the "
	  "one that it names" },
	{ 0, "\x89HDF\r\n",
	  "an HDF5 file, as Keras saves weights; open a SavedModel, a checkpoint or a profile" },
	{ 4, "TFL3",
	  "a TensorFlow Lite model; open the graph or SavedModel that it was made from" },
};

static const char *known(struct str head)
{
	for (size_t i = 0; i < ARRAY_COUNT(strangers); i++)
		if (head.len > strangers[i].at &&
		    str_starts(str_skip(head, strangers[i].at), str_from(strangers[i].start)))
			return strangers[i].what;
	return NULL;
}

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

bool stranger_converted(struct str head)
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

void stranger_tell(const char *name, struct str head, struct error *err)
{
	struct str prefix = prefix_of_data(str_from(name));
	const char *what = known(head);
	char seen[128] = "";

	if (what) {
		error_at(err, OW_E_FORMAT, 0, "%s: this is %s", name, what);
		return;
	}
	if (prefix.len) {
		error_at(err, OW_E_FORMAT, 0,
			 "%s: the values of a checkpoint, which its index tells apart; open "
			 "%.*s.index",
			 name, STR_ARG(prefix));
		return;
	}
	if (begins_as_index(str_from(name), head)) {
		error_at(err, OW_E_CORRUPT, 0,
			 "%s: the index of a checkpoint without its end: it was cut, or something "
			 "follows it; copy it again",
			 name);
		return;
	}
	describe_head(head, seen, sizeof(seen));
	error_at(err, OW_E_FORMAT, 0, "%s: not a format that opwatch knows; it starts with %s; %s",
		 name, seen,
		 stranger_converted(head) ? "it looks like a binary file that was converted as if "
					    "it were text, by git, "
					    "FTP or an editor: copy the original again, as binary"
					  : "'opwatch formats' lists what can be opened");
}

static bool has_index(struct str prefix)
{
	char path[4096];
	int len = snprintf(path, sizeof(path), "%.*s.index", STR_ARG(prefix));

	return len > 0 && (size_t)len < sizeof(path) && access(path, F_OK) == 0;
}

void stranger_missing(const char *name, struct error *err)
{
	if (has_index(str_from(name)))
		error_set(err, OW_E_NOT_FOUND,
			  "%s: no such file, but the name of a checkpoint; open %s.index", name,
			  name);
}

bool stranger_is_part(const char *name)
{
	struct str prefix = prefix_of_data(str_from(name));

	return prefix.len && has_index(prefix);
}
