/*
 * unrecognised.h: error messages for a file that no importer recognises, or that is not there: what it is, if that is known,
 * and what to open instead. Called when recognition has failed; it never decides what a file is.
 */
#ifndef IMPORT_UNRECOGNISED_H
#define IMPORT_UNRECOGNISED_H

#include "base/error.h"
#include "base/str.h"

/* Sets an error that names the kind of the file, if it is known, and what to open instead. `head` has its first
 * bytes. */
void unrecognised_explain(const char *name, struct str head, struct ow_error *err);
/* Whether a binary file was converted as if it were text: by git, FTP or an editor. The conversion cannot be undone. */
bool unrecognised_converted(struct str head);

/* Adds to the error of a missing file what its name stands for, if that is known. */
void unrecognised_missing(const char *name, struct ow_error *err);
/* Whether the file is part of another one that lies beside it: values of a checkpoint beside their index. */
bool unrecognised_is_part(const char *name);

/* unreadable.c: the kind of a file whose format is known but not read, and what to do instead: "a Go execution
 * trace; convert it with …". Recognised by its first bytes, or by its name; NULL when unknown. */
const char *unreadable_content(struct str head);
const char *unreadable_name(const char *name);
/* The kind of an archive that has a member of this name. */
const char *unreadable_member(const char *name);

#endif
