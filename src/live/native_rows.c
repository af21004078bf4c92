/* native_rows.c: see native_rows.h. */
#include "live/native_rows.h"

#include "base/clock.h"
#include "base/demangle.h"
#include "base/map.h"
#include "live/proc.h"
#include "live/processes.h"

#define LOOK_NS (1000000000 / 4)

/* An address that was named. */
struct named_pc {
	uint64_t pc;
	frame_id frame;
};

struct native_process {
	struct native_rows *rows;
	pid_t pid;
	char name[PROC_NAME];
	struct native_events events;
	struct native_unwind *unwind;
	struct map map;
	struct named_pc *pcs; /* 0 is not used */
	size_t count, cap;
	bool no_memory;
};

void native_rows_init(struct native_rows *rows, struct builder *b, uint32_t hz, int64_t to_wall_ns)
{
	*rows = (struct native_rows){ .b = b, .hz = hz, .to_wall_ns = to_wall_ns };
	rows->metric = builder_metric(b, STR("native"), STR("ns"));
	buf_init(&rows->name, b->m->mem);
}

static void free_process(struct native_rows *rows, struct native_process *p)
{
	rows->lost += p->events.lost;
	native_events_close(&p->events);
	native_unwind_free(p->unwind);
	map_release(&p->map);
	mem_free(rows->b->m->mem, p->pcs, p->cap * sizeof(*p->pcs));
	mem_free(rows->b->m->mem, p, sizeof(*p));
}

void native_rows_release(struct native_rows *rows)
{
	for (size_t i = 0; i < rows->count; i++)
		free_process(rows, rows->items[i]);
	mem_free(rows->b->m->mem, rows->items, rows->cap * sizeof(struct native_process *));
	rows->items = NULL;
	rows->count = rows->cap = 0;
	buf_release(&rows->name);
}

ow_status native_rows_add(struct native_rows *rows, pid_t pid, struct error *err)
{
	struct mem *mem = rows->b->m->mem;
	struct native_process *p = mem_zalloc(mem, sizeof(*p));
	void *items = rows->items;
	struct proc_stat stat;
	ow_status status;

	if (!p || !mem_grow(mem, &items, &rows->cap, rows->count + 1, sizeof(p))) {
		mem_free(mem, p, p ? sizeof(*p) : 0);
		return error_no_memory(err);
	}
	rows->items = items;
	p->rows = rows;
	p->pid = pid;
	p->events.mem = mem;
	map_init(&p->map, mem);
	if (proc_stat_read(pid, 0, &stat))
		memcpy(p->name, stat.name, sizeof(p->name));
	status = native_events_open(&p->events, mem, pid, rows->hz, err);
	if (status == OW_OK)
		status = native_unwind_new(&p->unwind, mem, pid, err);
	if (status != OW_OK) {
		free_process(rows, p);
		return status;
	}
	rows->items[rows->count++] = p;
	return OW_OK;
}

/* ---- samples ---- */

static frame_id make_frame(struct native_process *p, uint64_t pc)
{
	struct builder *b = p->rows->b;
	struct native_name name = native_unwind_name(p->unwind, pc);
	struct buf *text = &p->rows->name;

	buf_clear(text);
	if (!name.function.len)
		buf_printf(text, "0x%" PRIx64, pc);
	else if (!demangle_name(name.function, text)) {
		buf_clear(text);
		buf_add(text, name.function.ptr, utf8_valid_prefix(name.function));
	}
	return builder_frame(b, &(struct frame_row){ .function = builder_str(b, buf_str(text)),
						     .module = builder_str(b, name.module),
						     .flags = name.is_jit ? FRAME_JIT : 0 });
}

static frame_id frame_at(struct native_process *p, uint64_t pc)
{
	uint64_t hash = map_hash_u64(pc, 0);
	void *pcs = p->pcs;
	frame_id frame;

	for (struct map_iter it = map_find(&p->map, hash); it.value; it = map_next(&p->map, it))
		if (p->pcs[it.value].pc == pc)
			return p->pcs[it.value].frame;
	frame = make_frame(p, pc);
	if (!mem_grow(p->rows->b->m->mem, &pcs, &p->cap, p->count + 2, sizeof(*p->pcs))) {
		p->no_memory = true;
		return frame;
	}
	p->pcs = pcs;
	if (map_add(&p->map, hash, (uint32_t)p->count + 1))
		p->pcs[++p->count] = (struct named_pc){ pc, frame };
	else
		p->no_memory = true;
	return frame;
}

/* Named as sample_rows.c does: the same thread has the same track. */
static track_id track_of(struct native_process *p, pid_t tid)
{
	struct builder *b = p->rows->b;
	char name[PROC_NAME] = "main";

	if (tid != p->pid && !proc_thread_name(p->pid, tid, name))
		snprintf(name, sizeof(name), "thread");
	return builder_track(b, &(struct track_row){ .name = builder_cstr(b, name),
						     .process = builder_cstr(b, p->name),
						     .pid = p->pid,
						     .tid = tid,
						     .kind = TRACK_HOST,
						     .source = b->source });
}

static void take(void *arg, const struct native_sample *sample)
{
	struct native_process *p = arg;
	struct builder *b = p->rows->b;
	uint64_t pcs[NATIVE_DEPTH];
	size_t count = native_unwind_walk(p->unwind, sample, pcs);
	stack_id stack = { 0 };

	while (count-- > 0)
		stack = builder_stack(b, stack, frame_at(p, pcs[count]));
	builder_add_sample(b, &(struct sample_row){ .ts_ns = sample->ts_ns + p->rows->to_wall_ns,
						    .stack = stack,
						    .track = track_of(p, sample->tid),
						    .metric = p->rows->metric,
						    .weight = 1000000000 / p->rows->hz });
	p->rows->samples++;
}

bool native_rows_read(struct native_rows *rows)
{
	int64_t now = steady_ns();
	bool look = now - rows->looked_ns >= LOOK_NS, good = true;

	for (size_t i = 0; i < rows->count; i++) {
		struct native_process *p = rows->items[i];

		native_events_read(&p->events, take, p);
		if (look)
			good &= native_events_look(&p->events);
		good &= !p->no_memory;
	}
	if (look)
		rows->looked_ns = now;
	return good;
}
