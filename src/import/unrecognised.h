/*
 * stranger.h: what to tell about a file that no importer takes. Called by import.c when recognition
 * failed; never decides what a file is. And of a file that is not there.
 */
#ifndef IMPORT_STRANGER_H
#define IMPORT_STRANGER_H

#include "base/error.h"
#include "base/str.h"

/* Sets an error that says what the file is, if that is known, and what to open instead. `head` are its
 * first bytes. */
void stranger_tell(const char *name, struct str head, struct error *err);
/* Whether bytes of a binary file went through something that takes them for text: git, FTP, an editor.
 * What it changed cannot be undone. */
bool stranger_converted(struct str head);

/* Adds to the error of a file that is not there what the name stands for, if that is known. */
void stranger_missing(const char *name, struct error *err);
/* Whether the file is part of another one that lies beside it: values of a checkpoint beside their index. */
bool stranger_is_part(const char *name);

#endif
