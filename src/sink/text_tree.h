/*
 * text_tree.h: the table of sink_text.c for a tree of numbers, straight from the tree and without fitting:
 * what goes into a pipe or a file has millions of rows often enough. The text is the same.
 */
#ifndef SINK_TEXT_TREE_H
#define SINK_TEXT_TREE_H

#include "sink/sink.h"

#define TEXT_GAP 2    /* blanks between columns */
#define TEXT_INDENT 2 /* per level of a tree */
/* Deeper rows are not indented further: a chain of ops would need gigabytes of blanks. */
#define TEXT_LEVELS_MAX 100

bool text_tree_can(const struct result *result, const struct sink_options *options);
ow_status text_tree_write(struct result *result, const struct sink_options *options,
			  const struct out *out, struct error *err);

#endif
