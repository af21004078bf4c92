/*
 * pseudonym.h: words that stand for names: n4f2a91c instead of "secret_layer". The same word gets the same pseudonym
 * within a run, and different words get different ones. Without the run's random key it is impossible to try names
 * until one fits. Used by model/redact.c and merge/redact_text.c.
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
	struct str word, stands_for_it; /* the same pointer when the word is kept */
};

struct pseudonyms {
	struct arena arena;
	uint64_t key[2];
	struct map words;	      /* by word */
	struct map given;	      /* by pseudonym: to notice the rare collision */
	struct pseudonym_word *items; /* [0] is unused */
	size_t count, cap;
	bool failed; /* no memory */
};

/* Draws a key. Paired with pseudonyms_release, also after a failure. */
ow_status pseudonyms_init(struct pseudonyms *p, struct mem *mem, struct ow_error *err);
/* Uses the key that all such tables of this process share, so that profiles can be compared. Call it before the first word. */
ow_status pseudonyms_share(struct pseudonyms *p, struct ow_error *err);
void pseudonyms_release(struct pseudonyms *p);

/* The word itself stands for it from now on. */
void pseudonym_keep(struct pseudonyms *p, struct str word);
/* Whether the word was replaced before. */
bool pseudonym_known(const struct pseudonyms *p, struct str word);

/* Each appends to `out`; on failure `failed` is set and the appended text is not usable. */
/* One word as a whole. */
void pseudonym_word(struct pseudonyms *p, struct str word, struct buf *out);
/* A name with scopes: a/b_1/c_grad, component by component. Numbers, _grad and gradients stay, so scopes, repeated
 * layers and gradients remain visible. */
void pseudonym_name(struct pseudonyms *p, struct str name, struct buf *out);
/* A file's path: every component, with the usual extensions kept. */
void pseudonym_path(struct pseudonyms *p, struct str path, struct buf *out);
/* The last component of a path only. */
void pseudonym_file(struct pseudonyms *p, struct str path, struct buf *out);

#endif
