/*
 * pseudonym.h: words that stand for names: n4f2a91c instead of "secret_layer". The same word gets the
 * same pseudonym within a run, different words get different ones, and without the run's random key
 * nobody can try names until one fits. Used by redact.c only.
 *
 * Words that frameworks make up (gradients, BatchNorm, read, …) stay as they are, as do those given to
 * pseudonym_keep: they tell nothing about the user and views and rules depend on them.
 */
#ifndef MODEL_PSEUDONYM_H
#define MODEL_PSEUDONYM_H

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
ow_status pseudonyms_init(struct pseudonyms *p, struct mem *mem, struct error *err);
void pseudonyms_release(struct pseudonyms *p);

/* The word itself stands for it from now on. */
void pseudonym_keep(struct pseudonyms *p, struct str word);
/* Whether the word was replaced before. */
bool pseudonym_known(const struct pseudonyms *p, struct str word);

/* Each appends to `out`; on failure `failed` is set and nothing sensible is appended. */
/* One word as a whole. */
void pseudonym_word(struct pseudonyms *p, struct str word, struct buf *out);
/* A name with scopes: a/b_1/c_grad, component by component; numbers, _grad and gradients stay, so that
 * scopes, repeated layers and gradients can still be told. */
void pseudonym_name(struct pseudonyms *p, struct str name, struct buf *out);
/* A file's path: every component, with the usual extensions kept. */
void pseudonym_path(struct pseudonyms *p, struct str path, struct buf *out);
/* The last component of a path only. */
void pseudonym_file(struct pseudonyms *p, struct str path, struct buf *out);

#endif
