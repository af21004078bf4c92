/*
 * tf_schema.h: tables of the TensorFlow message types whose text form is read (pbtxt.h), from the
 * first releases to today's. Everything below the named types is in them, too.
 */
#ifndef WIRE_TF_SCHEMA_H
#define WIRE_TF_SCHEMA_H

#include "wire/protobuf/pb_schema.h"

extern const struct pb_message tf_graph_def;
extern const struct pb_message tf_meta_graph_def;
extern const struct pb_message tf_saved_model;
extern const struct pb_message tf_run_metadata;
extern const struct pb_message tf_step_stats;
extern const struct pb_message tf_tensor_description;
extern const struct pb_message tf_op_log;
extern const struct pb_message tf_profile;

#endif
