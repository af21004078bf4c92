/*
 * redact.h: hides what the user named, so that a profile can be shown to others. Called once, between
 * the freeze and the first use of the model.
 */
#ifndef MODEL_REDACT_H
#define MODEL_REDACT_H

#include "model/model.h"

/* Names of ops, tensors, steps, threads, counters and files, source paths, functions and source lines
 * become pseudonyms (pseudonym.h); what facts and notes tell about them, too. Op types, devices,
 * numbers, shapes and the structure of scopes stay. Undecoded parts of the inputs are given up. After a
 * failure the model must not be used. */
ow_status model_redact(struct model *m, struct error *err);

#endif
