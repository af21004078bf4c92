/*
 * trace_list.h: the rows of trace_events of one run: the sources one after the other, each in the order of its file. A
 * Chrome trace without odd elements (struct trace_listing) is listed from the model: a row is an event, a flow, or one
 * of the few elements that are read from the file again. Any other Chrome trace is read from the file as a whole. For
 * inputs that are not traces, and for our own files, the rows are the events, flows and counters of the model.
 */
#ifndef RELATION_TRACE_LIST_H
#define RELATION_TRACE_LIST_H

#include "relation/trace/trace_scan.h"

/* What a row is. */
enum trace_ref_kind {
	REF_EVENT,
	REF_FLOW,
	REF_COUNTER,
	REF_ELEMENT, /* of trace_list.elements */
	REF_LISTED   /* of the listing's counters */
};

/* 31 bits for events, 29 for the others. */
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

/* In a listed source: the event was made from other elements, which are listed themselves. */
static inline bool trace_is_made(const struct model *m, uint32_t event)
{
	uint8_t ph = COLUMN_GET(m->event.ph, event);

	return ph && strchr("ETbneSpFstfCM", ph);
}

/* N, O, D: they have arguments, none of which is called name. */
static inline bool trace_is_object(const struct model *m, uint32_t event)
{
	uint8_t ph = COLUMN_GET(m->event.ph, event);

	return ph == 'N' || ph == 'O' || ph == 'D';
}

/* Whether the arguments of events are called like their ops. */
enum trace_labels { LABELS_NONE, LABELS_MOST, LABELS_ALL };

/* Rows of one source. */
struct trace_span {
	uint64_t first, count;
	uint32_t source;
	bool is_trace; /* names of events are those of their ops, not types */
	bool listed;   /* order and units of the file */
	enum trace_labels labels;
	int64_t base_ns; /* to be taken off */
	const struct trace_listing_counter *counters;
	const uint32_t *refs; /* NULL: the elements from first_element on */
	uint64_t first_element;
	/* For events, from their arguments; NULL until read. With LABELS_ALL the first is not used. */
	uint32_t *arg_name, *arg_op;
};

struct trace_list {
	struct mem *mem;
	const struct model *m;
	struct trace_rows elements;
	uint32_t *refs; /* of all sources */
	size_t ref_cap;
	struct trace_span *spans;
	uint32_t span_count, span_cap;
	uint64_t rows;
	uint32_t *labels; /* by op: the code of args.name of its events, see trace_list_is_label */
	/* Dictionaries of arg_name and arg_op, which continue elements.texts; one each, because one that is in use
	 * must not grow. */
	struct trace_texts args[2];
	bool args_read[2];
};

/* `scan`: all traces are read from their files, for tests. Release it also after a failure. */
ow_status trace_list_init(struct trace_list *list, struct mem *mem, const struct model *m,
			  bool scan, struct ow_error *err);
/* ---- trace_args.c ---- */
#define TRACE_NO_LABEL UINT32_MAX
/* Finds the labels of ops. False without memory. */
bool trace_list_find_labels(struct trace_list *list) OW_MUST_CHECK;
/* Whether args.name of an event follows from its op, in a listing with the flag `labelled`. */
static inline bool trace_list_is_label(const struct trace_list *list, uint32_t event)
{
	const struct event_table *e = &list->m->event;

	return !COLUMN_GET(e->args_size, event) || list->labels[e->op[event].v] != TRACE_NO_LABEL ||
	       trace_is_object(list->m, event);
}
enum trace_key { KEY_NAME, KEY_OP };
/* Reads args.name, or args.op, of events that need it, once; later calls do nothing. Sets *dict. */
ow_status trace_list_read_args(struct trace_list *list, enum trace_key key, struct table_dict *dict,
			       struct ow_error *err);
/* ---- trace_sorted.c ---- */
/* Rows of a listed source in the order of its file; *done is false when the order is unknown. Elements that are
 * still to be read get the next numbers. Counts the events whose label does not follow from their op. */
ow_status trace_list_order(const struct trace_list *list, uint32_t source, const uint32_t *flows,
			   uint32_t *refs, uint64_t *others, bool *done, struct ow_error *err);
/* ---- trace_list.c ---- */
void trace_list_release(struct trace_list *list);
const struct trace_span *trace_list_span(const struct trace_list *list, uint64_t row);

#endif
