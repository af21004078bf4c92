/*
 * redact.h: hides the names that the user chose, for a profile that is shown to others. Called once, between the freeze
 * and the first use of the model.
 */
#ifndef MODEL_REDACT_H
#define MODEL_REDACT_H

#include "model/model.h"

/* alike: models of this process that have it get the same pseudonyms.
 * Names of ops, tensors, steps, threads, counters and files, source paths, functions and source lines become
 * pseudonyms (pseudonym.h), also inside facts and notes. Op types, devices, numbers, shapes and the structure of
 * scopes stay. Undecoded parts of the inputs are dropped. After a failure the model must not be used. */
ow_status model_redact(struct model *m, bool alike, struct ow_error *err);

#endif
