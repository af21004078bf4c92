/*
 * tf_rows.h: events and tensors of run metadata, which are made on first use (model_require_rows). The views of tfprof
 * never read them, and these rows are half of the memory and a third of the time that a run costs.
 *
 * While a run is accounted (import_runmeta.c), the op of each record is listed here. Making the rows reads the records
 * again, at their place in the input, without looking names up. Everything that rows refer to (tracks, texts, shapes) is
 * in the model by then: making them adds rows to the tables event and tensor, and to no other.
 */
#ifndef IMPORT_TF_ROWS_H
#define IMPORT_TF_ROWS_H

#include "import/importer.h"
#include "base/vec.h"
#include "import/tensorflow/run/tf_node_stats.h"
#include "import/tensorflow/shapes/tf_shape.h"
#include "import/tensorflow/tf_read.h"

#define TF_ROWS_TABLES (TABLE_BIT(event) | TABLE_BIT(tensor))

/* The records of one device. */
struct tf_rows_list {
	uint64_t begin, end;	 /* range of the device's message in the input */
	size_t first, count;	 /* range of the device's records in `ops` */
	str_id device;		 /* canonical name in lower case */
	bool canonical, streams; /* canonical: an executor; streams: everything that ran on a GPU */
	track_id counted, other; /* tracks of events whose time is in a total, and of the others */
};

struct tf_rows {
	struct mem *mem;
	source_id source;
	step_id step;
	struct tf_rows_list *lists;
	size_t list_count, list_cap;
	op_id *ops; /* for each readable record: its op; nil when it does not belong to one */
	size_t op_count, op_cap;
	uint32_t events, tensors; /* number of rows that will be made */
	bool phases;		  /* the events get phases (tf_phases.h) */
};

/* NULL if memory runs out. Released by tf_rows_defer, or by tf_rows_free when there is nothing to defer. */
struct tf_rows *tf_rows_new(struct builder *b);
void tf_rows_free(struct tf_rows *rows);

/* Begins the list of a device; valid until the next call. NULL if memory runs out. */
struct tf_rows_list *tf_rows_list(struct tf_rows *rows);
/* Adds the next record to the last list; false if memory runs out. */
static inline bool tf_rows_add(struct tf_rows *rows, op_id op)
{
	if (!vec_reserve(rows->mem, rows->ops, rows->op_cap, rows->op_count + 1))
		return false;
	rows->ops[rows->op_count++] = op;
	rows->lists[rows->list_count - 1].count++;
	return true;
}

/* Makes the rows later, or at once when `forget` or when the tables have other rows: rows are always in the order of
 * the inputs. Takes ownership of `rows`. */
ow_status tf_rows_defer(struct builder *b, struct tf_rows *rows, bool forget);

/* The list of a device in the previous run, or NULL; *rows owns it. */
const struct tf_rows_list *tf_rows_of_previous_run(const struct model *m, str_id device,
						   const struct tf_rows **rows);

#endif
