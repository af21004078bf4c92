/*
 * tf_rows.h: events and tensors of run metadata, which are made when somebody asks for them (model_require_rows). The
 * views of tfprof never do, and these rows are half of what a run takes in memory and a third of its time.
 *
 * While a run is read and accounted (tf_account.c), the op of each record is listed here. Making the rows reads the
 * records again, at their place in the input, and looks nothing up. Everything that rows refer to (tracks, texts, shapes)
 * is in the model by then: making them adds rows to the tables event and tensor, and to no other.
 */
#ifndef IMPORT_TF_ROWS_H
#define IMPORT_TF_ROWS_H

#include "import/importer.h"
#include "import/tf_record.h"

#define TF_ROWS_TABLES (TABLE_BIT(event) | TABLE_BIT(tensor))

/* The records of one device. */
struct tf_rows_list {
	uint64_t begin, end;	 /* its message in the input */
	size_t first, count;	 /* its records in ops */
	str_id device;		 /* canonical, lower case */
	bool canonical, streams; /* as in tf_device.h */
	track_id counted, other; /* of events whose time is in a total, and of the others */
};

struct tf_rows {
	struct mem *mem;
	source_id source;
	step_id step;
	struct tf_rows_list *lists;
	size_t list_count, list_cap;
	op_id *ops; /* per record that could be read; nil when it belongs to no op */
	size_t op_count, op_cap;
	uint32_t events, tensors; /* how many rows there will be */
};

/* NULL without memory. Released by tf_rows_defer, or when there is nothing to defer, tf_rows_free. */
struct tf_rows *tf_rows_new(struct builder *b);
void tf_rows_free(struct tf_rows *rows);

/* Begins the list of a device. Valid until the next call. NULL without memory. */
struct tf_rows_list *tf_rows_list(struct tf_rows *rows);
/* The next record of the last list. False without memory. */
static inline bool tf_rows_add(struct tf_rows *rows, op_id op)
{
	void *ops = rows->ops;

	if (OW_UNLIKELY(rows->op_count == rows->op_cap)) {
		if (!mem_grow(rows->mem, &ops, &rows->op_cap, rows->op_count + 1,
			      sizeof(*rows->ops)))
			return false;
		rows->ops = ops;
	}
	rows->ops[rows->op_count++] = op;
	rows->lists[rows->list_count - 1].count++;
	return true;
}

/* Puts the rows off, or makes them at once when `forget` or when the tables have others, so that rows are always in the
 * order of the inputs. Takes them over. */
ow_status tf_rows_defer(struct builder *b, struct tf_rows *rows, bool forget);

/* The list of that device in the run that was read last, or NULL. *rows is what it is part of. */
const struct tf_rows_list *tf_rows_before(const struct model *m, str_id device,
					  const struct tf_rows **rows);

#endif
