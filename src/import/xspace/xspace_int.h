/*
 * xspace_int.h: between the files of the XSpace importer (import_xspace.c, xspace_*.c); no other file includes it.
 */
#ifndef IMPORT_XSPACE_INT_H
#define IMPORT_XSPACE_INT_H

#include "import/importer.h"
#include "import/interpret/interpret.h"
#include "wire/protobuf/pb_stream.h"

/* ---- stats ---- */

/* Those whose value is used, in the order of the table in xspace_plane.c. */
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
	XSTAT_DETAILS, /* memcpy_details, Memset_details and the like: bytes */
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

/* Of which kind the value of a stat is expected to be: a number, or text by reference. */
enum xkind { XKIND_NUMBER = 1, XKIND_REF = 2 };

/* What a stat of an event is to the importer: XSTAT_OTHER and no kind when events are not asked for it. */
struct xwanted {
	uint8_t stat, kinds;
};

/* A value as it stands in the file; numbers of any kind are asked for by the functions below. */
struct xvalue {
	uint64_t stat; /* id of its name */
	uint64_t bits; /* number, or id of the text (ref) */
	struct str text;
	uint8_t field; /* of the oneof: 2 double, 3 uint64, 4 int64, 5 text, 6 bytes, 7 ref; 0 = none */
};

/* False when the message is damaged. */
bool xvalue_read(struct pb message, struct xvalue *value);
int64_t xvalue_int(const struct xvalue *value);
double xvalue_real(const struct xvalue *value);

/* ---- dictionaries of a plane ---- */

/* Ids to rows from 1 on; 0 = not there. Small ids by place, others by hash. */
struct xids {
	struct mem *mem;
	uint32_t *dense;
	size_t dense_cap;
	struct map map;
	uint64_t *ids; /* by row */
	size_t id_cap;
	uint32_t count; /* rows, 0 included */
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
	XEVENT_FRAME,	/* of Python */
	XEVENT_MEMORY,	/* MemoryAllocation, MemoryDeallocation */
	XEVENT_ROOT,	/* like plain ones; xspace_steps.c looks at them */
	XEVENT_INTERNAL /* of the runtime's threads: a point without interest */
};

struct xevent_text {
	struct str name, display;
	struct str stats; /* messages, each behind its tag, as in the file */
};

/* The fields that every event reads from its entry; two entries fit a cache line. */
struct xevent_entry {
	int64_t sum_ps; /* of durations, for the facts */
	uint64_t runs;
	str_id op;    /* name of its op */
	str_id label; /* its own name, nil when that of the op */
	bool resolved;
	uint8_t kind; /* enum xevent_kind */
	bool release; /* of memory */
};

struct xline {
	uint64_t offset, size;
	int64_t id, timestamp_ns;
	struct str name, display;
	uint32_t next; /* line of the same id, 0 = none: they are one track */
	bool joined;   /* with one before it */
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
	struct xevent_entry *events; /* by row */
	struct xevent_text *texts;   /* likewise */
	size_t event_cap, text_cap;
	struct xstat_entry *stats;
	size_t stat_cap;
	bool device;
	struct xwanted *wanted; /* by small id of a stat; at least 128 */
	size_t wanted_count;
	uint32_t *
		ref_ops; /* by small id of a text: the op that it is, as a tf_op, + 1; 0 = not looked up */
	struct xshapes *shapes; /* of its events: xspace_line.c */
	struct xline *lines;
	size_t line_count, line_cap;
	struct xvalue *values; /* the plane's own stats */
	size_t value_count, value_cap;
	uint64_t event_count, event_stats;
	int64_t min_start_ps, max_end_ps; /* INT64_MAX and INT64_MIN when none */
	int64_t number;			  /* among the planes, from 1 */
	int64_t entries;		  /* of the dictionary of events */
};

/* ---- HLO ---- */

/* An instruction of a program: what the kernels that carry its name do. Texts are in the file's arena. */
struct hlo_op {
	uint64_t program;
	struct str name, scope, category, file;
	int32_t line;
	int64_t flops, accessed; /* of one run; 0 = unknown */
	str_id op;		 /* the name of the op; nil until needed */
};

struct hlo {
	struct hlo_op *ops; /* 0 = nil */
	uint32_t count;
	size_t cap;
	struct map map; /* (program, name) */
	struct hlo_module {
		uint64_t program;
		str_id name;
	} * modules;
	size_t module_count, module_cap;
};

/* An instruction that can become a kernel: what it is, and what a run of it costs in float operations and in bytes
 * read and written. Layouts, caches and the number of rounds of a loop are not known. Texts are in the message or
 * constant. */
struct hlo_instruction {
	struct str name, category;
	struct str scope; /* op_name: where it is in the framework's scopes */
	struct str file;
	int32_t line;
	int64_t flops, accessed; /* of one run; 0 = none or unknown */
};

typedef ow_status (*hlo_fn)(void *arg, const struct hlo_instruction *instruction);

/* Reads an HloProto, a program as XLA compiled it. Returns OW_E_NO_MEMORY, or what `take` returned. *damaged: some
 * of it could not be read. */
ow_status hlo_read(struct str proto, struct arena *scratch, hlo_fn take, void *arg, bool *damaged);

/* ---- the whole ---- */

enum xstep_source { XSTEP_NONE, XSTEP_ROOT, XSTEP_GROUP, XSTEP_NAME, XSTEP_NUMBER };

/* One end of a link: producer and consumer of the same type and id belong together. */
struct xend {
	uint64_t id;
	int64_t type;
	uint32_t event;
	bool consumer;
};

/* Events that are only counted: they have no place in time. */
struct xsum {
	str_id op;
	int64_t runs, sum_ps;
	bool device;
};

/* Properties of ops beside their names, indexed by string. */
struct xop {
	uint32_t type;	/* string */
	uint32_t flags; /* enum op_flags */
	uint32_t hlo;	/* row of hlo.ops */
};

/* A row of the table heap whose op is still a name. */
struct xheap {
	struct heap_row row;
	str_id op;
	uint32_t latest; /* of the first row of a place: the last allocation there, + 1 */
};

/* A piece of a line, and the rows that its events became: count of them, from first. */
struct xpiece {
	uint64_t offset;
	int64_t base_ns; /* the time that its offsets count from */
	uint32_t size, first, count, plane;
	bool frames; /* only those, or all but those */
};

struct xspace {
	struct import_ctx *ctx;
	struct builder *b;
	struct mem *mem;
	struct window window;
	struct arena arena; /* of the file */
	struct arena shelf; /* of the plane */
	struct xplane *planes;
	size_t plane_count, plane_cap;
	int64_t start_ns; /* when the profile started, 0 when the file does not say */
	int64_t stop_ns;
	bool hyphen; /* names of ops may have one: newer files */
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
	struct map groups; /* of steps, by number */
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
	struct map iteration_map; /* by call and number */
	bool ungrouped;		  /* roots do not mark the steps of this runtime */
	struct xpiece *pieces;
	size_t piece_count, piece_cap;
	uint32_t *order; /* row → the row it was when it was read; NULL when that is the same */
	uint32_t order_rows;
	uint32_t populated; /* rows of events whose memory was asked for */

	fact_id plane_list;
	uint64_t event_total, line_total;
	uint64_t others[16];		/* top-level fields by number, [0]: any other */
	uint64_t damaged, first_damage; /* events, lines, entries that could not be read */
	uint64_t unnamed;		/* events whose entry is missing */
	uint64_t clamped;		/* times out of range */
	uint64_t bad_text;
	bool truncated;
	uint64_t truncated_at;
};

/* Text of a file as a string of the model: bytes that are not UTF-8 are replaced. */
str_id xspace_text(struct xspace *x, struct str text);
ow_status xspace_no_memory(struct xspace *x);
void xspace_damage(struct xspace *x, uint64_t offset);
/* The text of a value, of whatever kind; empty for numbers. */
struct str xvalue_text(const struct xplane *plane, const struct xvalue *value);
enum xstat xvalue_stat(const struct xplane *plane, const struct xvalue *value);
/* The properties of the op of that name, new if necessary; NULL without memory. */
struct xop *xspace_op(struct xspace *x, str_id name);

/* xspace_plane.c: the places of the planes, and the dictionaries of one. */
/* An entry for events; texts that it does not have yet are empty. Its row, or 0 without memory. */
uint32_t xspace_add_entry(struct xspace *x, struct xplane *plane, uint64_t id,
			  const struct xevent_text *text);
ow_status xspace_find_planes(struct xspace *x);
ow_status xspace_read_plane(struct xspace *x, struct xplane *plane);
/* Groups of steps are no longer asked for when there are numbers. */
void xspace_forget_groups(const struct xspace *x, struct xplane *plane);
void xspace_release_plane(struct xspace *x, struct xplane *plane);

/* xspace_plane.c: what an entry means. */
ow_status xspace_resolve(struct xspace *x, struct xplane *plane, uint32_t row);
/* enum xevent_kind, of the name of an entry; *release: of memory. */
uint8_t xspace_kind_of(struct str name, bool *release);
/* Whether it is a function that tf.data runs. */
bool xspace_is_captured(struct str name);
/* The op that a kernel's tf_op names; nil for none. */
str_id xspace_op_of_text(struct xspace *x, struct str text);

/* How events of the plane are asked for a stat. */
struct xwanted xspace_wanted(const struct xplane *plane, enum xstat stat);

/* xspace_line.c: the events of a line, as rows. */
ow_status xspace_read_lines(struct xspace *x, struct xplane *plane);

/* xspace_steps.c */
ow_status xspace_mark(struct xspace *x, enum xstep_source source, int64_t start, int64_t end,
		      int64_t number, str_id name);
void xspace_finish_steps(struct xspace *x);
/* An event that produces, or consumes, something of a type and an id. */
ow_status xspace_add_end(struct xspace *x, int64_t type, uint64_t id, uint32_t event,
			 bool consumer);
ow_status xspace_link_ends(struct xspace *x);

/* xspace_steps.c: an event that may be the root of a group, stored as that row; and the steps that roots are. */
ow_status xspace_take_root(struct xspace *x, const struct xplane *plane, struct str name,
			   struct pb message, uint32_t event);
ow_status xspace_steps_of_roots(struct xspace *x);
void xspace_release_roots(struct xspace *x);

/* xspace_memory.c: lines whose events are values of counters; and one of them. */
bool xspace_has_counters(const struct xplane *plane, const struct xline *line);
ow_status xspace_take_counter(struct xspace *x, const struct xplane *plane, str_id name,
			      struct pb message, track_id track, int64_t ts_ns);

/* xspace_memory.c: an event about memory; and all of them, once ops exist. */
ow_status xspace_take_memory(struct xspace *x, const struct xplane *plane, struct pb message,
			     int64_t ts_ns, bool release);
ow_status xspace_add_memory(struct xspace *x);

/* xspace_args.c: pieces of lines as they are read, and the reader of arguments that the model calls. */
ow_status xspace_add_piece(struct xspace *x, const struct xpiece *piece);
ow_status xspace_offer_args(struct xspace *x);

/* xspace_hlo.c */
ow_status xspace_read_hlo(struct xspace *x, const struct xplane *plane);
/* The instruction that a kernel names; 0 for none. Of "a::b" the last part counts. */
uint32_t xspace_hlo_find(const struct xspace *x, uint64_t program, struct str name);
/* Its texts are copied. */
ow_status xspace_hlo_add(struct xspace *x, const struct hlo_op *op, uint32_t *row);
/* The name of its op: by its scope in the framework, else by its module. Nil for row 0. */
str_id xspace_hlo_op(struct xspace *x, uint32_t row);

/* import_xspace.c: facts */
void xspace_plane_facts(struct xspace *x, struct xplane *plane, fact_id fact);
void xspace_line_facts(struct xspace *x, const struct xline *line, fact_id list, uint64_t events,
		       int64_t sum_ps);

#endif
