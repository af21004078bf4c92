/*
 * interpret.h: what the events of a trace mean. Importers of traces put events, tracks and flows into the model as the file
 * has them; interpret_trace finds out which program wrote the file and fills in the rest: kinds of tracks, devices, ops and
 * their types, steps, launches and other links, call stacks, phases, rank. docs/producers.md says what is known of each
 * producer.
 *
 * Also here: what a category of events says. The importer asks while it reads, because slices of one thread that do not nest
 * are kept apart from the beginning, and because the one argument that some categories need is best read with the event.
 */
#ifndef IMPORT_INTERPRET_H
#define IMPORT_INTERPRET_H

#include "import/importer.h"

/* Layers of one (pid, tid), whose slices must not be nested into each other. */
enum trace_layer {
	LAYER_THREAD,  /* slices of a thread's activity */
	LAYER_FRAMES,  /* slices of a thread's call stack */
	LAYER_DEVICE,  /* slices of work on a device */
	LAYER_DERIVED, /* the slice repeats other slices of the device */
	LAYER_SPAN,    /* slices of the profiler's own bookkeeping */
	LAYER_ASYNC    /* slices that are not bound to a thread */
};

/* Arguments of a slice that are wanted while reading. Others are read on demand. */
enum trace_wanted {
	WANT_NOTHING,
	WANT_LABEL,	  /* name and op in TensorFlow's timelines: the op that ran, and its type */
	WANT_CORRELATION, /* in PyTorch's traces: number that joins a launch and a kernel */
	WANT_SEQUENCE	  /* in PyTorch's operators: number that joins forward and backward */
};

/* The sequence number of an operator of PyTorch, with its direction, as one number. 0 = none. */
#define TRACE_SEQUENCE_MAX ((int64_t)1 << 30)
static inline uint32_t trace_sequence(int64_t number, bool backward)
{
	return (uint32_t)(number + 1) << 1 | backward;
}

/* Data of events that the model has no column for, used before there are ops. Entry i belongs to event first + i. The
 * importer fills it together with the rows that it adds; interpret_trace makes the ops, writes event.op and empties the
 * draft. Until then event.op of these rows has no meaning.
 */
struct event_draft {
	struct mem *mem;
	uint32_t first;
	size_t cap;
	str_id *op_name;    /* name of the event's op */
	uint32_t *sequence; /* trace_sequence of each event; NULL: no event has one */
};

/* Prepares a draft for the events that are added to b from now on. */
void event_draft_init(struct event_draft *d, const struct builder *b);
void event_draft_release(struct event_draft *d);
/* Makes room for this many events in all; with `sequences` also for their sequence numbers. */
bool event_draft_reserve(struct event_draft *d, size_t events, bool sequences) OW_MUST_CHECK;
/* Adds an event, and the name of its op to the draft. */
event_id event_draft_add(struct event_draft *d, struct builder *b, const struct event_row *row,
			 str_id op_name);
/* Permutes events up to `last` as builder_permute does: event i becomes the former event
 * order[i]. */
bool event_draft_permute(struct event_draft *d, const uint32_t *order, uint32_t last) OW_MUST_CHECK;

enum category_class {
	CATEGORY_NONE, /* the event has no category */
	CATEGORY_OTHER,
	CATEGORY_TF_OP, /* an op of TensorFlow 1 */
	CATEGORY_OPERATOR,
	CATEGORY_ANNOTATION,
	CATEGORY_RUNTIME, /* a call of a device's library */
	CATEGORY_KERNEL,
	CATEGORY_COPY,
	CATEGORY_MEMSET,
	CATEGORY_COLLECTIVE,
	CATEGORY_DEVICE_RANGE,
	CATEGORY_SYNC, /* a wait of a device */
	CATEGORY_FRAME,
	CATEGORY_MEMORY,
	CATEGORY_SPAN,
	CATEGORY_ORT_SESSION,
	CATEGORY_ORT_NODE,
	CATEGORY_V8,
	CATEGORY_CHROME
};

struct category_meaning {
	uint8_t class, layer, wanted;
	bool kineto; /* only Kineto writes this category */
};

struct category_meaning category_meaning(struct str category);
/* Returns the layer of a slice without a category, by its name. */
enum trace_layer layer_without_category(struct str name);

/* Turns a tf.data name such as Iterator::Model::Map into a path: Iterator/Model/Map. Nil for any
 * other name. */
str_id iterator_path(struct builder *b, struct str name);
/* Returns the stage of such a name: Iterator::Map. */
str_id iterator_stage(struct builder *b, struct str name);

/* Keys of the top-level object that identify producers. */
enum trace_member_bit {
	MEMBER_SCHEMA_VERSION = 1 << 0,
	/* the member deviceProperties, computeProperties or distributedInfo */
	MEMBER_DEVICE_PROPERTIES = 1 << 1,
	MEMBER_BASE_TIME = 1 << 2,
	MEMBER_HIGHRES_TICKS = 1 << 3,
	MEMBER_BEGINNING_OF_TIME = 1 << 4,
	MEMBER_CLIENT_INFO = 1 << 5
};
uint32_t interpret_member(struct str key, struct str value);
/* The number after "rank" in a file name; -1 if there is none. It is a guess: import/jobs.c decides whether it
 * counts. */
int32_t interpret_file_rank(struct str path);
/* Whether the program with this title (source.producer) writes files of single steps, whose pids are rows of a
 * picture, not processes. */
bool interpret_writes_steps(struct str title);

/* Name of PyTorch's memory events. They are many and spread over the file, so their arguments are read together with
 * the event. */
#define MEMORY_EVENT "[memory]"
struct memory_change {
	int64_t bytes, allocated, reserved, type, number;
	uint64_t address;
	uint32_t event;
	bool good; /* the number of bytes is known */
};
/* Reads a change of memory from the text of its arguments. */
void memory_change_read(struct str args, struct memory_change *c);

/* A step as a recorder marks it. */
struct recorded_step {
	int64_t start_ns, end_ns, number; /* times and number; number INT64_MIN: in order */
	str_id name;			  /* name of the marker, or nil */
};

/* Properties of the op of some name that an importer knows. */
struct op_hint {
	str_id type;
	uint32_t flags; /* enum op_flags */
};

struct interpret_input {
	source_id source;
	const struct input *input; /* input from which arguments are read */
	const struct import_options *options;
	struct event_draft *draft;	  /* draft of all events of the source */
	uint32_t first_track, first_flow; /* first rows of the source */
	const uint32_t *types; /* for each string: type of the op of that name, 0 = unknown */
	uint32_t type_count;   /* number of entries in `types` */
	uint32_t members;      /* enum trace_member_bit */
	bool array_form;       /* the file is a list, not an object */
	bool only_slices;      /* all events are complete slices (X) */
	/* written by our own recorder (journal_rows.c), which knows its steps */
	bool recorded;
	/* the source is an XSpace, whose importer has already read what a trace has in arguments */
	bool xspace;
	const struct op_hint *hints; /* indexed by string */
	uint32_t hint_count;	     /* number of entries in `hints` */
	uint32_t first_link;	     /* first link of the source; 0 = none */
	bool live;		     /* a recording of running programs (import_live.c) */
	str_id step_begin; /* for such a recording: the function whose calls begin steps; or nil */
	const struct recorded_step *steps;
	size_t step_count;
	const char *producer; /* name in producers.def, if the importer knows it; or NULL */
	const char *title;    /* title for people, instead of the producer's; or NULL */
	bool stacks;	      /* some events already have their stack */
	/* changes of memory by event; those of other [memory] events are read */
	const struct memory_change *changes;
	size_t change_count;
};

/* Interprets the rows of a source. Called after all its rows are in the builder, before the freeze. Events must be
 * sorted by track, and by time in each. Makes the ops that the draft names. */
ow_status interpret_trace(struct builder *b, const struct interpret_input *in);

/* Names of TensorFlow and JAX: the kind of op that the text of an event stands for, if any. The rules are those of
 * XProf, so that sums over "ops" are sums over the same events. Also used by the importer of XSpace. */

enum tf_op_kind {
	TF_OP_NONE, /* an annotation or a call of the runtime */
	TF_OP_TENSORFLOW,
	TF_OP_JAX,
	TF_OP_DATA, /* a stage of tf.data: Iterator::Batch::Map */
	TF_OP_COPY, /* a copy, such as MemcpyHToD */
};

struct tf_op_name {
	enum tf_op_kind kind;
	struct str name, type; /* parts of the text, or constants */
};

/* Parses a name; `hyphen`: names may contain one, as in newer versions. */
struct tf_op_name tf_op_name_parse(struct str text, bool hyphen);

/* Removes metadata that is encoded in the text: "name#key=value,…#" becomes "name". */
struct str tf_op_name_strip(struct str text);

/* The bytes that a copy moved or a memset set, from its details: "kind:… size:123 dest:0 async:1", or num_bytes:123;
 * 0 when they are not given. */
int64_t tf_copy_bytes(struct str details);

#endif
