/*
 * trace_list.h: the rows of trace_events of one run: the sources one after the other, each in the order of its file. A
 * Chrome trace without odd elements (struct trace_listing) is listed from the model: a row is an event, a flow, or one
 * of the few elements that are read from the file again. Any other Chrome trace is read from the file as a whole. For
 * inputs that are not traces, and for our own files, the rows are the events, flows and counters of the model.
 */
#ifndef RELATION_TRACE_LIST_H
#define RELATION_TRACE_LIST_H

#include "relation/trace/trace_scan.h"

/* The table or list that a row of trace_events refers to. */
enum trace_ref_kind {
	REF_EVENT,
	REF_FLOW,
	REF_COUNTER,
	REF_ELEMENT, /* an index of trace_list.elements */
	REF_LISTED   /* an index of the listing's counters */
};

/* A ref has 31 bits for an event, or 29 for other kinds. */
#define TRACE_EVENTS_MAX (UINT32_C(1) << 31)
#define TRACE_OTHERS_MAX (UINT32_C(1) << 29)

static inline enum trace_ref_kind trace_ref_kind(uint32_t ref)
{
	return ref < UINT32_C(1) << 31 ? REF_EVENT
				       : (enum trace_ref_kind)(REF_FLOW + (ref >> 29 & 3));
}
static inline uint32_t trace_ref_row(uint32_t ref)
{
	return ref < UINT32_C(1) << 31 ? ref : ref & ((UINT32_C(1) << 29) - 1);
}

static inline uint32_t trace_make_ref(enum trace_ref_kind kind, uint64_t row)
{
	return kind == REF_EVENT
		       ? (uint32_t)row
		       : TRACE_EVENTS_MAX | (uint32_t)(kind - REF_FLOW) << 29 | (uint32_t)row;
}

/* Whether an event of a listed source was made from other elements, which are rows themselves. */
static inline bool trace_is_made(const struct model *m, uint32_t event)
{
	uint8_t ph = COLUMN_GET(m->event.ph, event);

	return ph && strchr("ETbneSpFstfCM", ph);
}

/* Whether an event is an object event (N, O, D), whose arguments never include "name". */
static inline bool trace_is_object(const struct model *m, uint32_t event)
{
	uint8_t ph = COLUMN_GET(m->event.ph, event);

	return ph == 'N' || ph == 'O' || ph == 'D';
}

/* Whether args.name of events equals the name of their ops: never, mostly, always. */
enum trace_labels { LABELS_NONE, LABELS_MOST, LABELS_ALL };

/* The rows of one source. */
struct trace_span {
	uint64_t first, count;
	uint32_t source;
	bool is_trace; /* events are named like their ops, not like types */
	bool listed;   /* rows have the order and units of the file */
	enum trace_labels labels;
	int64_t base_ns; /* base time, subtracted from all times */
	const struct trace_listing_counter *counters;
	const uint32_t *refs; /* NULL: the rows are the elements from first_element on */
	uint64_t first_element;
	/* For events, codes of their arguments name and op; NULL until read. With LABELS_ALL, arg_name is not used. */
	uint32_t *arg_name, *arg_op;
};

struct trace_list {
	struct mem *mem;
	const struct model *m;
	struct trace_rows elements;
	uint32_t *refs; /* refs of all sources */
	size_t ref_cap;
	struct trace_span *spans;
	uint32_t span_count, span_cap;
	uint64_t rows;
	/* for each op: the code of args.name of its events, see trace_list_is_label */
	uint32_t *labels;
	/* Dictionaries of arg_name and arg_op, which continue elements.texts. There are two, because a dictionary
	 * that is in use must not grow. */
	struct trace_texts args[2];
	bool args_read[2];
};

/* Lists the rows of all sources. `scan`: all traces are read from their files, for tests. The caller calls
 * trace_list_release, also after a failure. */
ow_status trace_list_init(struct trace_list *list, struct mem *mem, const struct model *m,
			  bool scan, struct ow_error *err);
#define TRACE_NO_LABEL UINT32_MAX
/* Finds the labels of ops; false if memory runs out. */
bool trace_list_find_labels(struct trace_list *list) OW_MUST_CHECK;
/* Whether args.name of an event follows from its op, in a listing with the flag `labelled`. */
static inline bool trace_list_is_label(const struct trace_list *list, uint32_t event)
{
	const struct event_table *e = &list->m->event;

	return !COLUMN_GET(e->args_size, event) || list->labels[e->op[event].v] != TRACE_NO_LABEL ||
	       trace_is_object(list->m, event);
}
enum trace_key { KEY_NAME, KEY_OP };
/* Reads args.name, or args.op, of the events that need it, once; later calls only set *dict. */
ow_status trace_list_read_args(struct trace_list *list, enum trace_key key, struct table_dict *dict,
			       struct ow_error *err);
/* Lists the rows of a listed source in the order of its file; *done is false when the order is unknown. Elements
 * that are still to be read get the next numbers. It also counts the events whose label does not follow from their
 * op. */
ow_status trace_list_order(const struct trace_list *list, uint32_t source, const uint32_t *flows,
			   uint32_t *refs, uint64_t *others, bool *done, struct ow_error *err);
void trace_list_release(struct trace_list *list);
const struct trace_span *trace_list_span(const struct trace_list *list, uint64_t row);

#endif
