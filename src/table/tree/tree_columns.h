/*
 * tree_columns.h: the number columns of a tree, and the value of each for a node. Used by tree_flatten, which makes
 * them columns of a result, and by the text sink, which writes trees of millions of rows without that. Texts (devices,
 * shapes) are in tree_text.h.
 */
#ifndef MODEL_TREE_COLUMNS_H
#define MODEL_TREE_COLUMNS_H

#include "table/tree/tree.h"

enum tree_value {
	TREE_OWN,   /* own value (tree_own); unknown unless the node is accounted */
	TREE_SHARE, /* for the op view: percentage of the root's total */
	TREE_TOTAL  /* total value (tree_total), with its own definition in the op view */
};

struct tree_column {
	const char *name, *title;
	enum metric metric;
	enum column_unit unit; /* UNIT_MICROS: the tree still holds nanoseconds */
	enum tree_value value;
	bool real; /* the value has decimals */
	bool for_programs;
};

#define TREE_COLUMNS_MAX 36

struct tree_columns {
	struct tree_column list[TREE_COLUMNS_MAX];
	uint32_t count;
	bool whole_micros; /* times are whole microseconds */
};

/* Lists the selected columns, in the order in which they are shown. */
void tree_columns(const struct tree *tree, struct tree_columns *to);
/* Returns whether text columns are selected, too. */
bool tree_has_texts(const struct tree *tree);

#endif
