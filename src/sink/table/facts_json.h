/*
 * facts_json.h: the facts about the inputs as JSON, for `opwatch info --json`. Not a sink: it writes the model's
 * sources, facts and notes, not a result.
 */
#ifndef SINK_FACTS_JSON_H
#define SINK_FACTS_JSON_H

#include "model/model.h"
#include "sink/sink.h"

/* Writes {"sources": […], "model": {…}, "loss": […]}; if there is exactly one source its members are repeated at the
 * top level. docs/info-json.md describes all members. */
ow_status facts_write_json(struct model *m, const struct out *out, struct ow_error *err);

#endif
