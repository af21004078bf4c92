/*
 * unrecognised.h: error messages for a file that no importer recognises, or that is not there: what it is, if that is known,
 * and what to open instead. Called when recognition has failed; it never decides what a file is.
 */
#ifndef IMPORT_UNRECOGNISED_H
#define IMPORT_UNRECOGNISED_H

#include "base/error.h"
#include "base/str.h"

/* Sets an error that says what the file is, if that is known, and what to open instead. `head` are its
 * first bytes. */
void unrecognised_explain(const char *name, struct str head, struct ow_error *err);
/* Whether bytes of a binary file went through something that takes them for text: git, FTP, an editor.
 * What it changed cannot be undone. */
bool unrecognised_converted(struct str head);

/* Adds to the error of a file that is not there what the name stands for, if that is known. */
void unrecognised_missing(const char *name, struct ow_error *err);
/* Whether the file is part of another one that lies beside it: values of a checkpoint beside their index. */
bool unrecognised_is_part(const char *name);

/* unreadable.c: what a file is whose format is known but not read, and what to do instead: "a Go execution trace; convert it with …".
 * By its first bytes, or by its name; NULL when that is not known. */
const char *unreadable_content(struct str head);
const char *unreadable_name(const char *name);
/* Says what an archive is that has a member of this name. */
const char *unreadable_member(const char *name);

#endif
