/*
 * xspace_int.h: declarations that the files of the XSpace importer share (import_xspace.c, xspace_*.c); no other file
 * includes it.
 */
#ifndef IMPORT_XSPACE_INT_H
#define IMPORT_XSPACE_INT_H

#include "import/importer.h"
#include "import/interpret/interpret.h"
#include "wire/protobuf/pb_stream.h"

/* Stats whose value is used, in the order of the table in xspace_plane.c. */
enum xstat {
	XSTAT_OTHER,
	XSTAT_TF_OP,
	XSTAT_HLO_OP,
	XSTAT_HLO_MODULE,
	XSTAT_PROGRAM_ID,
	XSTAT_SYMBOL_ID,
	XSTAT_HLO_CATEGORY,
	XSTAT_FLOPS,
	XSTAT_MODEL_FLOPS,
	XSTAT_BYTES_ACCESSED,
	XSTAT_SOURCE,
	XSTAT_GROUP_ID,
	XSTAT_STEP_NAME,
	XSTAT_STEP_NUM,
	XSTAT_CORRELATION_ID,
	XSTAT_DETAILS, /* memcpy_details, Memset_details and similar stats: bytes */
	XSTAT_PRODUCER_TYPE,
	XSTAT_PRODUCER_ID,
	XSTAT_CONSUMER_TYPE,
	XSTAT_CONSUMER_ID,
	XSTAT_ROOT,
	XSTAT_ANNOTATION,
	XSTAT_IS_EAGER,
	XSTAT_ALLOCATOR,
	XSTAT_BYTES_RESERVED,
	XSTAT_BYTES_ALLOCATED,
	XSTAT_BYTES_AVAILABLE,
	XSTAT_FRAGMENTATION,
	XSTAT_PEAK_BYTES,
	XSTAT_REQUESTED_BYTES,
	XSTAT_ALLOCATION_BYTES,
	XSTAT_ADDRESS,
	XSTAT_INDEX_ON_HOST,
	XSTAT_DEVICE_ORDINAL,
	XSTAT_DATA_TYPE,
	XSTAT_SHAPE,
	XSTAT_REGION_TYPE,
	XSTAT_START_TIME,
	XSTAT_STOP_TIME,
	XSTAT_HLO_PROTO,
	XSTAT_ID,
	XSTAT_ITER_NUM,
	XSTAT_COUNT
};

#define XSTAT_BIT(stat) ((uint64_t)1 << (stat))

/* The expected kind of a stat's value: a number, or a reference to a text. */
enum xkind { XKIND_NUMBER = 1, XKIND_REF = 2 };

/* How the importer uses a stat of an event; XSTAT_OTHER and no kind: the stat is not read. */
struct xwanted {
	uint8_t stat, kinds;
};

/* A value as it is in the file; the functions below convert numbers of any kind. */
struct xvalue {
	uint64_t stat; /* id of the stat's name */
	uint64_t bits; /* the number, or the id of the text (ref) */
	struct str text;
	/* field of the oneof: 2 double, 3 uint64, 4 int64, 5 text, 6 bytes, 7 ref; 0 = none */
	uint8_t field;
};

/* Decodes a value; false when the message is damaged. */
bool xvalue_read(struct pb message, struct xvalue *value);
int64_t xvalue_int(const struct xvalue *value);
double xvalue_real(const struct xvalue *value);

/* Maps ids to rows, from 1; 0 = unknown id. Small ids use an array, others a hash table. */
struct xids {
	struct mem *mem;
	uint32_t *dense;
	size_t dense_cap;
	struct map map;
	uint64_t *ids; /* id of each row */
	size_t id_cap;
	uint32_t count; /* number of rows, row 0 included */
};

uint32_t xids_find_far(const struct xids *ids, uint64_t id);
static inline uint32_t xids_find(const struct xids *ids, uint64_t id)
{
	if (OW_LIKELY(id < ids->dense_cap))
		return ids->dense[id];
	return xids_find_far(ids, id);
}

struct xstat_entry {
	struct str name;
	uint8_t stat; /* enum xstat */
};

enum xevent_kind {
	XEVENT_PLAIN,
	XEVENT_FRAME,  /* a Python frame */
	XEVENT_MEMORY, /* MemoryAllocation or MemoryDeallocation */
	/* a possible root of a step; handled like plain events, and passed to xspace_steps.c */
	XEVENT_ROOT,
	XEVENT_INTERNAL /* an internal event of the runtime's threads, which is ignored */
};

struct xevent_text {
	struct str name, display;
	struct str stats; /* encoded stats, each with its tag, as in the file */
};

/* The fields of an entry that every event reads; two entries fit into a cache line. */
struct xevent_entry {
	int64_t sum_ps; /* sum of durations, for the facts */
	uint64_t runs;
	str_id op;    /* name of the entry's op */
	str_id label; /* the entry's own name; nil when it equals that of the op */
	bool resolved;
	uint8_t kind; /* enum xevent_kind */
	bool release; /* for XEVENT_MEMORY: a release */
};

struct xline {
	uint64_t offset, size;
	int64_t id, timestamp_ns;
	struct str name, display;
	uint32_t next; /* next line with the same id, 0 = none: these lines are one track */
	bool joined;   /* an earlier line has the same id */
};

enum xplane_kind {
	XPLANE_HOST,
	XPLANE_GPU,
	XPLANE_TPU,
	XPLANE_DEVICE,
	XPLANE_METADATA,
	XPLANE_OTHER
};

struct xplane {
	uint64_t offset, size;
	int64_t id;
	struct str name;
	enum xplane_kind kind;
	struct xids event_ids, stat_ids;
	struct xevent_entry *events; /* one for each row of the dictionary */
	struct xevent_text *texts;   /* one for each row of the dictionary */
	size_t event_cap, text_cap;
	struct xstat_entry *stats;
	size_t stat_cap;
	bool device;
	struct xwanted *wanted; /* indexed by small ids of stats; at least 128 entries */
	size_t wanted_count;
	/* ref_ops: for each small id of a text, 1 + the op that the text stands for as a tf_op; 0 = not looked up */
	uint32_t *ref_ops;
	struct xshapes *shapes; /* layouts of the plane's events: xspace_line.c */
	struct xline *lines;
	size_t line_count, line_cap;
	struct xvalue *values; /* the plane's own stats */
	size_t value_count, value_cap;
	uint64_t event_count, event_stats;
	int64_t min_start_ps, max_end_ps; /* INT64_MAX and INT64_MIN when there are no events */
	int64_t number;			  /* index among the planes, from 1 */
	int64_t entries;		  /* number of entries in the dictionary of events */
};

/* An instruction of a program, which describes the kernels with its name. Texts are in the file's arena. */
struct hlo_op {
	uint64_t program;
	struct str name, scope, category, file;
	int32_t line;
	int64_t flops, accessed; /* cost of one run; 0 = unknown */
	str_id op;		 /* the name of the op; nil until needed */
};

struct hlo {
	struct hlo_op *ops; /* row 0 is nil */
	uint32_t count;
	size_t cap;
	struct map map; /* (program, name) → row */
	struct hlo_module {
		uint64_t program;
		str_id name;
	} * modules;
	size_t module_count, module_cap;
};

/* An instruction that can become a kernel, and the cost of one run in float operations and in bytes read and
 * written. Layouts, caches and the number of iterations of a loop are not known. Texts are in the message or
 * constant. */
struct hlo_instruction {
	struct str name, category;
	struct str scope; /* op_name: the position in the framework's scopes */
	struct str file;
	int32_t line;
	int64_t flops, accessed; /* cost of one run; 0 = none or unknown */
};

typedef ow_status (*hlo_fn)(void *arg, const struct hlo_instruction *instruction);

/* Reads an HloProto, a program as XLA compiled it. Returns OW_E_NO_MEMORY, or what `take` returned. *damaged: a part
 * could not be read. */
ow_status hlo_read(struct str proto, struct arena *scratch, hlo_fn take, void *arg, bool *damaged);

enum xstep_source { XSTEP_NONE, XSTEP_ROOT, XSTEP_GROUP, XSTEP_NAME, XSTEP_NUMBER };

/* One end of a link: a producer and a consumer with the same type and id belong together. */
struct xend {
	uint64_t id;
	int64_t type;
	uint32_t event;
	bool consumer;
};

/* Events without a time, which are only summed. */
struct xsum {
	str_id op;
	int64_t runs, sum_ps;
	bool device;
};

/* Properties of ops besides their names, indexed by string. */
struct xop {
	uint32_t type;	/* string id */
	uint32_t flags; /* enum op_flags */
	uint32_t hlo;	/* row of hlo.ops */
};

/* A row of the table heap whose op is only known by name. */
struct xheap {
	struct heap_row row;
	str_id op;
	uint32_t latest; /* in the first row of an address: 1 + the last allocation there */
};

/* A piece of a line, and the rows that its events became: `count` of them, from `first` on. */
struct xpiece {
	uint64_t offset;
	int64_t base_ns; /* base time of the event offsets */
	uint32_t size, first, count, plane;
	bool frames; /* the rows are Python frames only (true), or all other events */
};

struct xspace {
	struct import_ctx *ctx;
	struct builder *b;
	struct mem *mem;
	struct window window;
	struct arena arena; /* memory for the whole file */
	struct arena shelf; /* memory for the current plane */
	struct xplane *planes;
	size_t plane_count, plane_cap;
	int64_t start_ns; /* start of the profile; 0 when the file does not contain it */
	int64_t stop_ns;
	bool hyphen; /* op names may contain a hyphen: newer files */
	struct hlo hlo;
	struct xop *ops;
	size_t op_cap;
	str_id *hostnames;
	size_t hostname_count, hostname_cap;

	struct event_draft draft;
	uint32_t first_track, first_flow, first_link;
	bool unsorted;

	enum xstep_source step_source;
	struct recorded_step *steps;
	size_t step_count, step_cap;
	struct map groups; /* number of a group → its step */
	struct xend *ends;
	size_t end_count, end_cap, producer_count;
	struct xsum *sums;
	size_t sum_count, sum_cap;
	struct xheap *heaps;
	size_t heap_count, heap_cap;
	struct xroot *roots;
	size_t root_count, root_cap;
	struct xiteration *iterations;
	size_t iteration_count, iteration_cap;
	struct map iteration_map; /* (call, number) → iteration */
	bool ungrouped;		  /* roots do not mark the steps of this runtime */
	struct xpiece *pieces;
	size_t piece_count, piece_cap;
	uint32_t *order; /* row → the row it had when it was read; NULL when both are the same */
	uint32_t order_rows;
	uint32_t populated; /* number of event rows whose memory was prefaulted */

	fact_id plane_list;
	uint64_t event_total, line_total;
	uint64_t others[16];		/* count of top-level fields by number; [0]: any other */
	uint64_t damaged, first_damage; /* events, lines and entries that could not be read */
	uint64_t unnamed;		/* events whose entry is missing */
	uint64_t clamped;		/* times that were out of range */
	uint64_t bad_text;
	bool truncated;
	uint64_t truncated_at;
};

/* Interns a text of the file; bytes that are not UTF-8 are replaced. */
str_id xspace_text(struct xspace *x, struct str text);
ow_status xspace_no_memory(struct xspace *x);
void xspace_damage(struct xspace *x, uint64_t offset);
/* The text of a value of any kind; empty for numbers. */
struct str xvalue_text(const struct xplane *plane, const struct xvalue *value);
enum xstat xvalue_stat(const struct xplane *plane, const struct xvalue *value);
/* The properties of the op with this name, added if necessary; NULL if memory runs out. */
struct xop *xspace_op(struct xspace *x, str_id name);

/* xspace_plane.c: finds the planes, and reads the dictionaries of one. */
/* Adds an entry for events; missing texts are empty. Returns its row, or 0 if memory runs out. */
uint32_t xspace_add_entry(struct xspace *x, struct xplane *plane, uint64_t id,
			  const struct xevent_text *text);
ow_status xspace_find_planes(struct xspace *x);
ow_status xspace_read_plane(struct xspace *x, struct xplane *plane);
/* Stops reading groups of steps, when step numbers are available. */
void xspace_forget_groups(const struct xspace *x, struct xplane *plane);
void xspace_release_plane(struct xspace *x, struct xplane *plane);

/* xspace_plane.c: finds the op, type and kind of an entry. */
ow_status xspace_resolve(struct xspace *x, struct xplane *plane, uint32_t row);
/* The enum xevent_kind for the name of an entry; *release: the event releases memory. */
uint8_t xspace_kind_of(struct str name, bool *release);
/* Whether a name is a function that tf.data runs. */
bool xspace_is_captured(struct str name);
/* The op that a kernel's tf_op names; nil for none. */
str_id xspace_op_of_text(struct xspace *x, struct str text);

/* How a stat is read from events of the plane. */
struct xwanted xspace_wanted(const struct xplane *plane, enum xstat stat);

/* xspace_line.c: makes rows from the events of the lines. */
ow_status xspace_read_lines(struct xspace *x, struct xplane *plane);

/* in xspace_steps.c */
ow_status xspace_mark(struct xspace *x, enum xstep_source source, int64_t start, int64_t end,
		      int64_t number, str_id name);
void xspace_finish_steps(struct xspace *x);
/* Adds an event that produces, or consumes, an item with this type and id. */
ow_status xspace_add_end(struct xspace *x, int64_t type, uint64_t id, uint32_t event,
			 bool consumer);
ow_status xspace_link_ends(struct xspace *x);

/* xspace_steps.c: adds an event that may be the root of a group, with its row; below: makes steps from the roots. */
ow_status xspace_take_root(struct xspace *x, const struct xplane *plane, struct str name,
			   struct pb message, uint32_t event);
ow_status xspace_steps_of_roots(struct xspace *x);
void xspace_release_roots(struct xspace *x);

/* xspace_memory.c: whether the events of a line are counter values; below: adds one of them. */
bool xspace_has_counters(const struct xplane *plane, const struct xline *line);
ow_status xspace_take_counter(struct xspace *x, const struct xplane *plane, str_id name,
			      struct pb message, track_id track, int64_t ts_ns);

/* xspace_memory.c: adds an event about memory; below: makes rows from all of them, once ops exist. */
ow_status xspace_take_memory(struct xspace *x, const struct xplane *plane, struct pb message,
			     int64_t ts_ns, bool release);
ow_status xspace_add_memory(struct xspace *x);

/* xspace_args.c: stores a piece of a line when it is read; below: creates the reader of arguments that the model
 * calls. */
ow_status xspace_add_piece(struct xspace *x, const struct xpiece *piece);
ow_status xspace_offer_args(struct xspace *x);

/* in xspace_hlo.c */
ow_status xspace_read_hlo(struct xspace *x, const struct xplane *plane);
/* The instruction that a kernel names; 0 for none. In "a::b" the last part counts. */
uint32_t xspace_hlo_find(const struct xspace *x, uint64_t program, struct str name);
/* Adds an instruction; its texts are copied. */
ow_status xspace_hlo_add(struct xspace *x, const struct hlo_op *op, uint32_t *row);
/* The name of an instruction's op: by its scope in the framework, else by its module. Nil for row 0. */
str_id xspace_hlo_op(struct xspace *x, uint32_t row);

/* import_xspace.c: adds facts */
void xspace_plane_facts(struct xspace *x, struct xplane *plane, fact_id fact);
void xspace_line_facts(struct xspace *x, const struct xline *line, fact_id list, uint64_t events,
		       int64_t sum_ps);

#endif
