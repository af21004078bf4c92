/*
 * pseudonym.h: words that stand for names: n4f2a91c instead of "secret_layer". The same word gets the same pseudonym
 * within a run, and different words get different ones. Without the run's random key it is impossible to try names
 * until one fits. Used by model/redact.c, merge/redact_text.c and fleet/rollup.c.
 *
 * Words that frameworks make up (gradients, BatchNorm, read, …) stay as they are, as do the words passed to
 * pseudonym_keep: they reveal nothing about the user, and views and rules depend on them.
 */
#ifndef BASE_PSEUDONYM_H
#define BASE_PSEUDONYM_H

#include "base/arena.h"
#include "base/buf.h"
#include "base/error.h"
#include "base/map.h"
#include "base/str.h"

struct pseudonym_word {
	/* a word and its pseudonym; both are the same pointer if the word is kept */
	struct str word, stands_for_it;
};

struct pseudonyms {
	struct arena arena;
	uint64_t key[2];
	struct map words;	      /* pseudonyms by word */
	struct map given;	      /* words by pseudonym, to detect the rare collision */
	struct pseudonym_word *items; /* all words; item 0 is unused */
	size_t count, cap;
	bool failed; /* an allocation failed */
};

/* Draws a random key. Paired with pseudonyms_release, also after a failure. */
ow_status pseudonyms_init(struct pseudonyms *p, struct mem *mem, struct ow_error *err);
/* Uses one key for all tables of this process that call this function, so that profiles can be compared.
 * Call it before the first word. */
ow_status pseudonyms_share(struct pseudonyms *p, struct ow_error *err);
void pseudonyms_release(struct pseudonyms *p);

/* Keeps the word as it is: from now on it is its own pseudonym. */
void pseudonym_keep(struct pseudonyms *p, struct str word);
/* Returns whether the word was replaced before. */
bool pseudonym_known(const struct pseudonyms *p, struct str word);

/* Each of these functions appends to `out`. On failure `failed` is set and the appended text
 * must not be used. */
/* Appends the pseudonym of one whole word. */
void pseudonym_word(struct pseudonyms *p, struct str word, struct buf *out);
/* Appends a name with scopes (a/b_1/c_grad), component by component. Numbers, _grad and gradients stay, so
 * scopes, repeated layers and gradients remain visible. */
void pseudonym_name(struct pseudonyms *p, struct str name, struct buf *out);
/* Appends a path with every component replaced; usual file extensions stay. */
void pseudonym_path(struct pseudonyms *p, struct str path, struct buf *out);
/* Appends the last component of a path, replaced. */
void pseudonym_file(struct pseudonyms *p, struct str path, struct buf *out);

/* Returns whether a name of an event comes from a library or framework (aten::mm, cudaLaunchKernel), or is defined by the
 * format of Chrome traces. It reveals nothing about the user. */
bool pseudonym_is_library_name(struct str name);

#endif
