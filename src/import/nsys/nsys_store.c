/*
 * nsys_store.c: stores what the readers of a Nsight Systems export find: names, lanes, processes, domains, slices,
 * samples and call chains. nsys_host.c and nsys_device.c call it for each row; nsys_rows.c reads the result. This file
 * knows no table of the export but StringIds and the three tables of call chains.
 */
#include "import/nsys/nsys_store.h"

#include "import/common/model_text.h"

ow_status nsys_init(struct nsys *n)
{
	OW_TRY(NSYS_GROW(n, names, name_cap, 1));
	OW_TRY(NSYS_GROW(n, lanes, lane_cap, 1));
	OW_TRY(NSYS_GROW(n, processes, process_cap, 1));
	OW_TRY(NSYS_GROW(n, domains, domain_cap, 1));
	OW_TRY(NSYS_GROW(n, extras, extra_cap, 1));
	n->names[0] = (struct nsys_name){ 0 };
	n->lanes[0] = (struct nsys_lane){ 0 };
	n->processes[0] = (struct nsys_process){ 0 };
	n->domains[0] = (struct nsys_domain){ 0 };
	n->extras[0] = (struct nsys_extra){ 0 };
	n->name_count = n->lane_count = n->process_count = n->domain_count = n->extra_count = 1;
	return OW_OK;
}

void nsys_release(struct nsys *n)
{
	mem_free(n->mem, n->names, n->name_cap * sizeof(*n->names));
	for (size_t i = 0; i < n->lane_count; i++)
		mem_free(n->mem, n->lanes[i].list, n->lanes[i].cap * sizeof(*n->lanes[i].list));
	mem_free(n->mem, n->lanes, n->lane_cap * sizeof(*n->lanes));
	mem_free(n->mem, n->processes, n->process_cap * sizeof(*n->processes));
	mem_free(n->mem, n->domains, n->domain_cap * sizeof(*n->domains));
	mem_free(n->mem, n->extras, n->extra_cap * sizeof(*n->extras));
	mem_free(n->mem, n->backtraces, n->backtrace_cap * sizeof(*n->backtraces));
	mem_free(n->mem, n->gpus, n->gpu_cap * sizeof(*n->gpus));
	mem_free(n->mem, n->samples, n->sample_cap * sizeof(*n->samples));
	mem_free(n->mem, n->readings, n->reading_cap * sizeof(*n->readings));
	for (int kind = 0; kind < CHAINS_KINDS; kind++) {
		struct nsys_chains *c = &n->chains[kind];

		mem_free(n->mem, c->rows, c->row_cap * sizeof(*c->rows));
		mem_free(n->mem, c->ids, c->ids ? c->count * sizeof(*c->ids) : 0);
		mem_free(n->mem, c->stacks, c->stacks ? c->count * sizeof(*c->stacks) : 0);
	}
	map_release(&n->name_map);
	map_release(&n->lane_map);
	map_release(&n->process_map);
	map_release(&n->domain_map);
}

static uint32_t find_name(const struct nsys *n, int64_t id, uint64_t hash)
{
	for (struct map_iter it = map_find(&n->name_map, hash); it.value;
	     it = map_next(&n->name_map, it))
		if (n->names[it.value].id == id)
			return it.value;
	return 0;
}

uint32_t nsys_name(struct nsys *n, int64_t id)
{
	uint32_t *recent = &n->recent_names[(uint64_t)id % ARRAY_COUNT(n->recent_names)], place;
	uint64_t hash;

	if (OW_LIKELY(*recent && n->names[*recent].id == id))
		return *recent;
	hash = map_hash_u64((uint64_t)id, 1);
	place = find_name(n, id, hash);
	if (place)
		return *recent = place;
	if (n->name_count >= NSYS_TEXT - 1 ||
	    NSYS_GROW(n, names, name_cap, n->name_count + 1) != OW_OK)
		return 0;
	n->names[n->name_count] = (struct nsys_name){ .id = id };
	if (!map_add(&n->name_map, hash, (uint32_t)n->name_count)) {
		import_no_memory(n->ctx);
		return 0;
	}
	*recent = (uint32_t)n->name_count;
	return (uint32_t)n->name_count++;
}

str_id nsys_utf8(struct nsys *n, struct str text)
{
	return OW_LIKELY(utf8_valid(text)) ? builder_str(n->b, text) : utf8_repair(n->b, text);
}

uint32_t nsys_text(struct nsys *n, struct str text)
{
	return nsys_utf8(n, text).v | NSYS_TEXT;
}

/* Reads the text of a row of StringIds, if some slice refers to its number. */
static ow_status fetch_name(struct nsys *n, const struct sqlite_rows *rows)
{
	int64_t id = sqlite_int(rows, 0);
	uint32_t name = find_name(n, id, map_hash_u64((uint64_t)id, 1));

	if (!name)
		return OW_OK;
	n->names[name].text = nsys_utf8(n, sqlite_text(rows, 1));
	return builder_status(n->b);
}

ow_status nsys_fetch_names(struct nsys *n)
{
	static const char *const columns[] = { "id", "value" };

	return nsys_each_row(n, "StringIds", columns, 2, fetch_name);
}

str_id nsys_string(const struct nsys *n, uint32_t name)
{
	if (name & NSYS_TEXT)
		return (str_id){ name & ~NSYS_TEXT };
	return n->names[name].text;
}

static uint64_t hash_process(int64_t global_pid)
{
	return map_hash_u64((uint64_t)global_pid, 2);
}

struct nsys_process *nsys_find_process(const struct nsys *n, int64_t global_pid)
{
	for (struct map_iter it = map_find(&n->process_map, hash_process(global_pid)); it.value;
	     it = map_next(&n->process_map, it))
		if (n->processes[it.value].id == global_pid)
			return &n->processes[it.value];
	return NULL;
}

static struct nsys_process *need_process(struct nsys *n, int64_t global_pid)
{
	struct nsys_process *found;

	if (OW_LIKELY(n->last_process && n->processes[n->last_process].id == global_pid))
		return &n->processes[n->last_process];
	found = nsys_find_process(n, global_pid);
	if (found) {
		n->last_process = (uint32_t)(found - n->processes);
		return found;
	}
	if (NSYS_GROW(n, processes, process_cap, n->process_count + 1) != OW_OK)
		return NULL;
	n->processes[n->process_count] =
		(struct nsys_process){ .id = global_pid, .lowest = UINT32_MAX };
	if (!map_add(&n->process_map, hash_process(global_pid), (uint32_t)n->process_count)) {
		import_no_memory(n->ctx);
		return NULL;
	}
	n->last_process = (uint32_t)n->process_count++;
	return &n->processes[n->last_process];
}

static bool same_lane(const struct nsys_lane *a, const struct nsys_lane *b)
{
	return a->number == b->number && a->process == b->process && a->device == b->device &&
	       a->context == b->context && a->kind == b->kind;
}

static uint64_t hash_lane(const struct nsys_lane *key)
{
	return map_hash_u64((uint64_t)key->process ^ (uint64_t)key->number << 8 ^ key->kind,
			    (uint64_t)key->device << 32 ^ (uint64_t)key->context);
}

static uint32_t find_lane(const struct nsys *n, const struct nsys_lane *key, uint64_t hash)
{
	for (struct map_iter it = map_find(&n->lane_map, hash); it.value;
	     it = map_next(&n->lane_map, it))
		if (same_lane(&n->lanes[it.value], key))
			return it.value;
	return 0;
}

uint32_t nsys_lane(struct nsys *n, const struct nsys_lane *key)
{
	uint32_t *last = &n->last_lane[key->kind], found;
	uint64_t hash;

	if (OW_LIKELY(*last && same_lane(&n->lanes[*last], key)))
		return *last;
	hash = hash_lane(key);
	found = find_lane(n, key, hash);
	if (found)
		return *last = found;
	if (!need_process(n, key->process) ||
	    NSYS_GROW(n, lanes, lane_cap, n->lane_count + 1) != OW_OK)
		return 0;
	n->lanes[n->lane_count] = *key;
	n->lanes[n->lane_count].rank = INT64_MAX;
	if (!map_add(&n->lane_map, hash, (uint32_t)n->lane_count)) {
		import_no_memory(n->ctx);
		return 0;
	}
	*last = (uint32_t)n->lane_count++;
	return *last;
}

static struct nsys_lane thread_key(enum nsys_lane_kind kind, int64_t global_tid)
{
	return (struct nsys_lane){ .kind = (uint8_t)kind,
				   .process = nsys_process_of(global_tid),
				   .number = global_tid & 0xffffff };
}

uint32_t nsys_thread_lane(struct nsys *n, enum nsys_lane_kind kind, int64_t global_tid)
{
	struct nsys_lane key = thread_key(kind, global_tid);

	return nsys_lane(n, &key);
}

uint32_t nsys_find_thread(const struct nsys *n, enum nsys_lane_kind kind, int64_t global_tid)
{
	struct nsys_lane key = thread_key(kind, global_tid);

	return find_lane(n, &key, hash_lane(&key));
}

/* Names a lane; the program's name of a thread has a lower rank than the system's name, and so wins. */
ow_status nsys_name_lane(struct nsys *n, uint32_t lane, uint32_t name, int64_t rank)
{
	if (!lane || !name)
		return builder_status(n->b);
	if (rank < n->lanes[lane].rank) {
		n->lanes[lane].rank = rank;
		n->lanes[lane].name = name;
	}
	return OW_OK;
}

/* Domains beyond the 65,535th count as the default domain. */
uint16_t nsys_domain(struct nsys *n, int64_t process, int64_t id)
{
	uint64_t hash = map_hash_u64((uint64_t)process, (uint64_t)id);

	if (!id)
		return 0;
	for (struct map_iter it = map_find(&n->domain_map, hash); it.value;
	     it = map_next(&n->domain_map, it))
		if (n->domains[it.value].id == id && n->domains[it.value].process == process)
			return (uint16_t)it.value;
	if (n->domain_count > UINT16_MAX ||
	    NSYS_GROW(n, domains, domain_cap, n->domain_count + 1) != OW_OK)
		return 0;
	n->domains[n->domain_count] = (struct nsys_domain){ .process = process, .id = id };
	if (!map_add(&n->domain_map, hash, (uint32_t)n->domain_count)) {
		import_no_memory(n->ctx);
		return 0;
	}
	return (uint16_t)n->domain_count++;
}

static int64_t add_clamped(struct nsys *n, int64_t a, int64_t b)
{
	int64_t sum;

	if (OW_LIKELY(!__builtin_add_overflow(a, b, &sum) && sum != TIME_UNKNOWN))
		return sum;
	nsys_problem(n, NSYS_CLAMPED);
	return a < 0 ? INT64_MIN + 1 : INT64_MAX;
}

bool nsys_interval(struct nsys *n, const struct sqlite_rows *rows, int start, int end,
		   struct nsys_slice *slice)
{
	int64_t from, to;

	if (OW_UNLIKELY(!sqlite_get_int(rows, start, &from))) {
		nsys_problem(n, NSYS_NO_TIME);
		return false;
	}
	slice->ts = add_clamped(n, from, n->epoch_ns);
	if (end < 0 || !sqlite_get_int(rows, end, &to)) {
		slice->dur = TIME_UNKNOWN;
		return true;
	}
	if (__builtin_sub_overflow(to, from, &slice->dur)) {
		nsys_problem(n, NSYS_CLAMPED);
		slice->dur = to > from ? INT64_MAX : 0;
	}
	if (slice->dur < 0) {
		nsys_problem(n, NSYS_NEGATIVE);
		slice->dur = 0;
	}
	if (__builtin_add_overflow(slice->ts, slice->dur, &to)) {
		nsys_problem(n, NSYS_CLAMPED);
		slice->dur = INT64_MAX - MAX(slice->ts, 0);
		to = INT64_MAX;
	}
	n->last_ns = MAX(n->last_ns, to);
	return true;
}

/* Stores bytes and call chains separately, because few rows have them. */
static uint32_t add_extra(struct nsys *n, const struct nsys_slice *slice)
{
	if (n->extra_count >= UINT32_MAX ||
	    NSYS_GROW(n, extras, extra_cap, n->extra_count + 1) != OW_OK)
		return 0;
	n->extras[n->extra_count] =
		(struct nsys_extra){ .bytes = slice->bytes, .chain = slice->chain };
	return (uint32_t)n->extra_count++;
}

static ow_status grow_lane(struct nsys *n, struct nsys_lane *lane)
{
	if (n->slice_count >= UINT32_MAX - 1)
		return builder_fail(n->b, error_set(n->ctx->err, OW_E_LIMIT,
						    "%s: more than 2^32 events", n->ctx->in->name));
	if (!vec_reserve(n->mem, lane->list, lane->cap, (size_t)lane->count + 1))
		return import_no_memory(n->ctx);
	return OW_OK;
}

ow_status nsys_add_slice(struct nsys *n, const struct nsys_slice *slice)
{
	struct nsys_lane *lane = &n->lanes[slice->lane];
	struct nsys_kept *kept;

	if (OW_UNLIKELY(!slice->lane || !slice->name))
		return builder_status(n->b); /* there is no memory for the slice's lane or name */
	if (OW_UNLIKELY(lane->count == lane->cap))
		OW_TRY(grow_lane(n, lane));
	kept = &lane->list[lane->count];
	*kept = (struct nsys_kept){ .ts = slice->ts,
				    .dur = slice->dur,
				    .name = slice->name,
				    .correlation = slice->correlation,
				    .domain = slice->domain,
				    .category = slice->category,
				    .open = slice->open };
	if (slice->bytes || slice->chain)
		kept->extra = add_extra(n, slice);
	if (lane->count &&
	    (kept[-1].ts > kept->ts || (kept[-1].ts == kept->ts && kept[-1].dur < kept->dur)))
		lane->unsorted = true;
	lane->count++;
	n->slice_count++;
	return OW_OK;
}

void nsys_correlate(struct nsys *n, struct nsys_slice *slice, int64_t process, int64_t id)
{
	struct nsys_process *p;

	if (!id)
		return;
	p = need_process(n, process);
	if (!p || id < 0 || id > UINT32_MAX) {
		nsys_problem(n, NSYS_BIG_NUMBER);
		return;
	}
	slice->correlation = (uint32_t)id;
	p->lowest = MIN(p->lowest, slice->correlation);
	p->highest = MAX(p->highest, slice->correlation);
	p->correlated = true;
}

static void add_to_tally(struct nsys_tally *t, const struct nsys_slice *slice, int64_t epoch_ns)
{
	int64_t dur = slice->dur == TIME_UNKNOWN ? 0 : slice->dur;
	int64_t start = wrap_add(slice->ts, -epoch_ns);

	if (!t->rows++) {
		t->first_ns = start;
		t->last_ns = wrap_add(start, dur);
	}
	t->first_ns = MIN(t->first_ns, start);
	t->last_ns = MAX(t->last_ns, wrap_add(start, dur));
	t->total_ns = wrap_add(t->total_ns, dur);
}

void nsys_tally_kernel(struct nsys *n, const struct nsys_slice *slice, uint32_t short_name)
{
	struct nsys_name *name = &n->names[short_name];

	add_to_tally(&n->kernels, slice, n->epoch_ns);
	if (!short_name)
		return;
	name->kernel_ns = wrap_add(name->kernel_ns, slice->dur);
	name->kernel_count++;
}

void nsys_tally_call(struct nsys *n, const struct nsys_slice *slice)
{
	struct nsys_name *name = &n->names[slice->name];

	add_to_tally(&n->calls, slice, n->epoch_ns);
	name->call_ns = wrap_add(name->call_ns, slice->dur == TIME_UNKNOWN ? 0 : slice->dur);
	name->call_count++;
}

ow_status nsys_add_sample(struct nsys *n, const struct nsys_sample *sample)
{
	if (!sample->lane)
		return builder_status(n->b);
	OW_TRY(NSYS_GROW(n, samples, sample_cap, n->sample_count + 1));
	n->lanes[sample->lane].used = true;
	n->samples[n->sample_count++] = *sample;
	return OW_OK;
}

ow_status nsys_add_reading(struct nsys *n, const struct nsys_reading *reading)
{
	if (!reading->lane || !reading->name)
		return builder_status(n->b);
	OW_TRY(NSYS_GROW(n, readings, reading_cap, n->reading_count + 1));
	n->lanes[reading->lane].used = true;
	n->readings[n->reading_count++] = *reading;
	return OW_OK;
}

ow_status nsys_add_backtrace(struct nsys *n, const struct nsys_slice *slice)
{
	if (!slice->chain || !slice->lane)
		return builder_status(n->b);
	OW_TRY(NSYS_GROW(n, backtraces, backtrace_cap, n->backtrace_count + 1));
	n->backtraces[n->backtrace_count++] =
		(struct nsys_backtrace){ slice->lane, slice->correlation, slice->chain };
	return OW_OK;
}

static ow_status add_chain_row(struct nsys *n, struct nsys_chains *c,
			       const struct sqlite_rows *rows)
{
	int64_t id = sqlite_int(rows, 0), depth = sqlite_int(rows, 3);

	if (id <= 0 || id > UINT32_MAX || depth < 0 || depth > UINT16_MAX) {
		nsys_problem(n, NSYS_BROKEN_CHAIN);
		return OW_OK;
	}
	if (!vec_push(n->mem, c->rows, c->row_count, c->row_cap,
		      (struct nsys_chain_row){
			      .id = id,
			      .depth = (uint16_t)depth,
			      .symbol = nsys_name(n, sqlite_int(rows, 1)),
			      .module = sqlite_is_null(rows, 2) ? 0
								: nsys_name(n, sqlite_int(rows, 2)),
			      .kernel = sqlite_int(rows, 4) != 0,
		      }))
		return import_no_memory(n->ctx);
	return builder_status(n->b);
}

/* Reads the tables of call chains; a chain is several rows with one id. */
ow_status nsys_read_chains(struct nsys *n)
{
	static const char *const tables[CHAINS_KINDS] = {
		[CHAINS_CUDA] = "CUDA_CALLCHAINS",
		[CHAINS_OSRT] = "OSRT_CALLCHAINS",
		[CHAINS_SAMPLES] = "SAMPLING_CALLCHAINS",
	};
	static const char *const columns[] = { "id", "symbol", "module", "stackDepth",
					       "kernelMode" };
	ow_status status = OW_OK;

	for (int kind = 0; kind < CHAINS_KINDS && status == OW_OK; kind++) {
		struct sqlite_rows rows;

		status = sqlite_rows_open(&rows, &n->db, tables[kind], columns, 5);
		while (status == OW_OK && sqlite_rows_next(&rows, &status))
			status = add_chain_row(n, &n->chains[kind], &rows);
		sqlite_rows_close(&rows);
	}
	return status;
}

/* Sorts by chain, the innermost frame first. */
static int by_chain(const void *a, const void *b)
{
	const struct nsys_chain_row *x = a, *y = b;

	if (x->id != y->id)
		return x->id < y->id ? -1 : 1;
	return (x->depth > y->depth) - (x->depth < y->depth);
}

static stack_id make_stack(struct nsys *n, const struct nsys_chain_row *rows, size_t count)
{
	stack_id stack = { 0 };

	while (count--) {
		struct frame_row frame = { .module = nsys_string(n, rows[count].module),
					   .function = nsys_string(n, rows[count].symbol),
					   .flags = rows[count].kernel ? FRAME_KERNEL : 0 };

		stack = builder_stack(n->b, stack, builder_frame(n->b, &frame));
	}
	return stack;
}

static ow_status make_stacks_of(struct nsys *n, struct nsys_chains *c)
{
	size_t chains = 0;
	bool sorted = true;

	for (size_t i = 1; i < c->row_count && sorted; i++)
		sorted = by_chain(&c->rows[i - 1], &c->rows[i]) <= 0;
	if (!sorted)
		qsort(c->rows, c->row_count, sizeof(*c->rows), by_chain);
	for (size_t i = 0; i < c->row_count; i++)
		chains += !i || c->rows[i].id != c->rows[i - 1].id;
	if (!chains)
		return OW_OK;
	c->ids = mem_alloc(n->mem, chains * sizeof(*c->ids));
	c->stacks = mem_alloc(n->mem, chains * sizeof(*c->stacks));
	c->count = chains;
	if (!c->ids || !c->stacks)
		return import_no_memory(n->ctx);
	chains = 0;
	for (size_t i = 0, end; i < c->row_count && builder_status(n->b) == OW_OK; i = end) {
		for (end = i + 1; end < c->row_count && c->rows[end].id == c->rows[i].id; end++)
			;
		c->ids[chains] = (uint32_t)c->rows[i].id;
		c->stacks[chains++] = make_stack(n, c->rows + i, end - i);
	}
	return builder_status(n->b);
}

ow_status nsys_make_stacks(struct nsys *n)
{
	for (int kind = 0; kind < CHAINS_KINDS; kind++)
		OW_TRY(make_stacks_of(n, &n->chains[kind]));
	return OW_OK;
}

stack_id nsys_stack(const struct nsys *n, int kind, uint32_t chain)
{
	const struct nsys_chains *c = &n->chains[kind];
	size_t low = 0, high = c->count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (c->ids[middle] < chain)
			low = middle + 1;
		else
			high = middle;
	}
	return low < c->count && c->ids[low] == chain ? c->stacks[low] : (stack_id){ 0 };
}
