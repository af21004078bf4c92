/* sample_rows.c: see sample_rows.h. */
#include "live/sample_rows.h"

#define MAX_PERIODS 5 /* a machine that stood still says nothing about where the job was */

struct sample_row_thread {
	track_id track;
	stack_id stack;
	int64_t last_ns;
	bool is_loader;
};

void sample_rows_init(struct sample_rows *rows, struct builder *b, const struct sampler *sampler,
		      int64_t period_ns)
{
	*rows = (struct sample_rows){ .b = b, .sampler = sampler, .period_ns = period_ns };
	rows->wall = builder_metric(b, STR("wall"), STR("ns"));
	rows->cpu = builder_metric(b, STR("cpu"), STR("ns"));
	if (rows->wall.v)
		b->m->metric.is_default[rows->wall.v] = 1;
}

/* At the end, since the native stacks of a thread find its track by what it was made of. */
static void mark_loaders(struct sample_rows *rows)
{
	for (size_t i = 1; i <= rows->count; i++)
		if (rows->threads[i].is_loader && rows->threads[i].track.v)
			rows->b->m->track.kind[rows->threads[i].track.v] = TRACK_LOADER;
}

void sample_rows_release(struct sample_rows *rows)
{
	mark_loaders(rows);
	mem_free(rows->b->m->mem, rows->threads, rows->cap * sizeof(*rows->threads));
	rows->threads = NULL;
	rows->count = rows->cap = 0;
}

/* Workers of PyTorch's DataLoader. */
static bool is_loader(const struct py_thread *thread)
{
	for (size_t i = 0; i < thread->frame_count; i++) {
		const struct py_code *code = thread->frames[i].code;

		if (str_eq(code->name, STR("_worker_loop")) &&
		    str_ends(code->file, STR("torch/utils/data/_utils/worker.py")))
			return true;
	}
	return false;
}

static track_id make_track(struct sample_rows *rows, const struct py_process *p,
			   const struct py_thread *thread)
{
	struct builder *b = rows->b;

	return builder_track(
		b, &(struct track_row){
			   .name = builder_cstr(b, thread->name[0] ? thread->name : "thread"),
			   .process = builder_cstr(b, p->name),
			   .pid = p->pid,
			   .tid = thread->tid ? thread->tid : (int64_t)thread->number,
			   .kind = TRACK_HOST,
			   .source = b->source,
		   });
}

static struct sample_row_thread *find_thread(struct sample_rows *rows, const struct py_process *p,
					     struct py_thread *thread)
{
	void *threads = rows->threads;

	if (thread->user)
		return &rows->threads[thread->user];
	if (!mem_grow(rows->b->m->mem, &threads, &rows->cap, rows->count + 2,
		      sizeof(*rows->threads))) {
		error_set_no_memory(rows->b->err);
		builder_fail(rows->b, OW_E_NO_MEMORY);
		return NULL;
	}
	rows->threads = threads;
	thread->user = ++rows->count;
	rows->threads[thread->user] = (struct sample_row_thread){
		.track = make_track(rows, p, thread),
		.last_ns = rows->now_ns - rows->period_ns,
	};
	return &rows->threads[thread->user];
}

static stack_id make_stack(struct builder *b, const struct py_thread *thread)
{
	stack_id stack = { 0 };

	for (size_t i = thread->frame_count; i-- > 0;) {
		const struct py_code *code = thread->frames[i].code;
		frame_id frame = builder_frame(
			b, &(struct frame_row){ .file = builder_str(b, code->file),
						.function = builder_str(b, code->name),
						.line = thread->frames[i].line,
						.function_line = code->first });

		stack = builder_stack(b, stack, frame);
	}
	return stack;
}

void sample_rows_take(void *arg, struct py_process *p, struct py_thread *thread)
{
	struct sample_rows *rows = arg;
	struct builder *b = rows->b;
	struct sample_row_thread *row = find_thread(rows, p, thread);
	struct sample_row sample = { .ts_ns = rows->now_ns, .metric = rows->wall };

	if (!row)
		return;
	if (!thread->same || !row->stack.v) {
		row->stack = make_stack(b, thread);
		row->is_loader = row->is_loader || is_loader(thread); /* it may just begin */
	}
	sample.stack = row->stack;
	sample.track = row->track;
	sample.weight = rows->now_ns - row->last_ns;
	sample.weight = MIN(sample.weight,
			    (MAX_PERIODS + rows->sampler->left_out_in_row) * rows->period_ns);
	row->last_ns = rows->now_ns;
	builder_add_sample(b, &sample);
	if (!thread->cpu_ns)
		return;
	sample.metric = rows->cpu;
	sample.weight = thread->cpu_ns;
	builder_add_sample(b, &sample);
}
