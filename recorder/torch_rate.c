/*
 * torch_rate.c: operators of PyTorch that come too fast to record each. With a callback, PyTorch itself takes 140 ns per operator, beside
 * the record: too much for one of a microsecond. So the question that it asks before each operator, which callbacks there are
 * (at::getStepCallbacksUnlessEmpty), goes through a wrapper: it counts the operator by the place of the call, and for most
 * asks for a scope that has none. Called by hook_torch.c; patch.c redirects the calls.
 *
 * One operator in some is timed. Which one is random, so that operators that alternate are not mistaken. Those that it calls
 * are timed, too, but only subtracted: its record has its own time, and says how many calls from the same place it stands
 * for. Counts stay exact. With callbacks of others, a profiler's for example, all operators are recorded.
 */
#include "recorder.h"

#include <dlfcn.h>

#define OP_RATE_NS 16000u    /* operators with a larger distance are all recorded */
#define OP_RECORD_NS 100000u /* time between records of more frequent operators */
#define OP_WINDOW 256u	     /* number of records from which the rate is determined */
#define OP_RECORDS 32u	     /* number of records while operators are sampled */
#define OP_MOST 256u
#define MISSES 4u

#define SCOPE_FUNCTION 0u
#define SCOPE_NONE 5u /* scope of parts of the build, which has only callbacks of others */

enum part { PART_NONE, PART_TIMED, PART_INSIDE };

/* Replaces the function; its result is larger than a register, so its address is the first
 * argument and the return value. */
static void *my_step_callbacks(void *result, uint8_t scope);
struct added {
	uint64_t words[5]; /* layout as at::RecordFunctionCallback, see hook_torch.c */
};
static uint64_t my_add_thread_callback(struct added callback);
static uint64_t my_add_global_callback(struct added callback);
static void my_remove_callback(uint64_t handle);

enum patch_index { P_step, P_add_thread, P_add_global, P_remove, PATCHES };

static struct patch patches[] = {
	[P_step] = { "_ZN2at27getStepCallbacksUnlessEmptyENS_11RecordScopeE",
		     (void *)my_step_callbacks, NULL },
	[P_add_thread] = { "_ZN2at22addThreadLocalCallbackENS_22RecordFunctionCallbackE",
			   (void *)my_add_thread_callback, NULL },
	[P_add_global] = { "_ZN2at17addGlobalCallbackENS_22RecordFunctionCallbackE",
			   (void *)my_add_global_callback, NULL },
	[P_remove] = { "_ZN2at14removeCallbackEm", (void *)my_remove_callback, NULL },
	[PATCHES] = { NULL, NULL, NULL },
};

#define REAL(name) ((__typeof__(&my_##name))real_##name)
static void *real_step_callbacks, *real_add_thread_callback, *real_add_global_callback,
	*real_remove_callback;
static bool (*has_thread_callbacks)(void);
static _Atomic uint32_t asks;	 /* calls come through the wrapper */
static _Atomic uint32_t foreign; /* other callbacks are installed */

static uint64_t my_add_thread_callback(struct added callback)
{
	atomic_fetch_add(&foreign, 1);
	return REAL(add_thread_callback)(callback);
}

static uint64_t my_add_global_callback(struct added callback)
{
	atomic_fetch_add(&foreign, 1);
	return REAL(add_global_callback)(callback);
}

static void my_remove_callback(uint64_t handle)
{
	uint32_t before = atomic_load(&foreign);

	REAL(remove_callback)(handle);
	while (before && !atomic_compare_exchange_weak(&foreign, &before, before - 1))
		;
}

static struct ring_sampled *counts_of(struct thread *t, uint32_t site)
{
	return &t->ring->sampled[RING_SAMPLED + site];
}

static inline void set_calls(struct ring_sampled *s, uint64_t calls)
{
	atomic_store_explicit(&s->count.calls, calls, memory_order_relaxed);
}

/* Returns the place of an address; place 0 is shared by addresses that find no other place. */
static uint32_t site_of(struct op_rate *o, uintptr_t address)
{
	uint32_t at = (uint32_t)((address * 0x9e3779b97f4a7c15u) >> 40);

	for (uint32_t i = 0; i < 8; i++) {
		uint32_t site = 1 + (at + i) % (RING_OPS - 1);

		if (LIKELY(o->sites[site].address == address))
			return site;
		if (!o->sites[site].address) {
			o->sites[site].address = address;
			return site;
		}
	}
	return 0;
}

/* Notes that the operator to be timed did not begin: it is not observed, or not now. */
static void note_miss(struct thread *t)
{
	struct op_rate *o = &t->ops;
	uint32_t site = o->announced - 1;
	struct ring_sampled *s = counts_of(t, site);
	uint64_t calls = atomic_load_explicit(&s->count.calls, memory_order_relaxed);

	o->announced = 0;
	if (!site)
		return;
	o->sites[site].misses++;
	set_calls(s, o->sites[site].misses >= MISSES || !calls ? 0 : calls - 1);
}

/* Chooses the scope to ask for. */
static inline uint8_t choose_scope(struct thread *t, uintptr_t address)
{
	struct op_rate *o = &t->ops;
	struct ring_sampled *s;
	uint32_t site;

	if (UNLIKELY(atomic_load_explicit(&foreign, memory_order_relaxed)))
		return SCOPE_FUNCTION;
	if (UNLIKELY(o->announced))
		note_miss(t);
	site = site_of(o, address);
	if (UNLIKELY(o->sites[site].misses >= MISSES))
		return SCOPE_NONE;
	s = counts_of(t, site);
	set_calls(s, atomic_load_explicit(&s->count.calls, memory_order_relaxed) + 1);
	if (UNLIKELY(o->depth)) /* inside an operator that is timed */
		return SCOPE_FUNCTION;
	if (LIKELY(o->left > 1 && o->sites[site].known)) {
		o->left--;
		return SCOPE_NONE;
	}
	o->announced = site + 1;
	return SCOPE_FUNCTION;
}

static void *my_step_callbacks(void *result, uint8_t scope)
{
	struct thread *t = recorder_thread;

	if (scope == SCOPE_FUNCTION && t && t->ops.every > 1 && !recorder_busy &&
	    t->generation == *recorder_generation)
		scope = choose_scope(t, (uintptr_t)__builtin_return_address(0));
	else if (UNLIKELY(!atomic_load_explicit(&asks, memory_order_relaxed)))
		atomic_store_explicit(&asks, 1, memory_order_relaxed);
	return REAL(step_callbacks)(result, scope);
}

static bool may_sample(void)
{
	return atomic_load(&asks) && !atomic_load(&foreign) && has_thread_callbacks &&
	       !has_thread_callbacks();
}

/* Adjusts the sampling rate after a record; `calls` operators began since the last one. Single long gaps do not count. */
static void adjust_op_rate(struct thread *t, uint64_t end, uint32_t calls)
{
	struct op_rate *o = &t->ops;
	uint64_t gap = ns_since(o->last_ns, end) / calls, mean;

	o->last_ns = end;
	o->seen++;
	if (gap < OP_RATE_NS) {
		o->fast++;
		o->fast_ns += gap;
	}
	if (o->seen >= (o->every > 1 ? OP_RECORDS : OP_WINDOW)) {
		mean = o->fast ? o->fast_ns / o->fast : OP_RATE_NS;
		o->every = o->fast * 4 >= o->seen * 3 && may_sample()
				   ? (uint32_t)(OP_RECORD_NS / (mean ? mean : 1))
				   : 1;
		o->every = o->every < OP_MOST ? o->every : OP_MOST;
		o->seen = o->fast = 0;
		o->fast_ns = 0;
	}
	o->drawn = o->left = o->every > 1 ? 1 + roll_dice(t) % (2 * o->every - 1) : 0;
}

void op_begins(struct thread *t, struct open_slice *slice)
{
	struct op_rate *o = &t->ops;

	slice->part = PART_NONE;
	if (o->announced) {
		slice->part = PART_TIMED;
		slice->site = (uint16_t)(o->announced - 1);
		o->announced = 0;
		o->depth = 1;
		o->children_ns = 0;
	} else if (o->depth) {
		slice->part = PART_INSIDE;
		o->depth++;
	}
}

static void push_timed(struct thread *t, const struct open_slice *slice, uint64_t now,
		       const char *name)
{
	struct ring_sampled *s = counts_of(t, slice->site);
	uint64_t calls = atomic_load_explicit(&s->count.calls, memory_order_relaxed),
		 head = t->head;
	uint64_t own = ns_since(slice->start_ns, now);
	uint32_t text = name ? text_number_cached(t, name) : 0;

	own -= t->ops.children_ns < own ? t->ops.children_ns : own;
	t->ops.sites[slice->site].known = slice->site != 0;
	t->ops.sites[slice->site].misses = 0;
	atomic_store_explicit(&s->name, text, memory_order_relaxed);
	atomic_store_explicit(&s->taken, (uint32_t)head + 1, memory_order_relaxed);
	push(t, &(struct ring_record){ .start_ns = now - own,
				       .dur_ns = own,
				       .kind = RING_SLICE,
				       .category = RING_OPERATOR,
				       .name = text,
				       .calls = calls > 1 ? (uint32_t)calls : 0 });
	if (t->head !=
	    head) /* otherwise the record was dropped, and the next one includes its calls */
		atomic_store_explicit(&s->count.calls, 0, memory_order_release);
	atomic_store_explicit(&s->taken, 0, memory_order_release);
}

bool op_ends(struct thread *t, const struct open_slice *slice, uint64_t now, const char *name)
{
	struct op_rate *o = &slice->thread->ops;
	uint32_t depth = o->depth;

	if (slice->part == PART_NONE) {
		if (t && t == slice->thread)
			adjust_op_rate(t, now, 1);
		return false;
	}
	o->depth = slice->part == PART_TIMED ? 0 : depth > 1 ? depth - 1 : 0;
	if (!t || t != slice->thread)
		return false;
	if (slice->part == PART_INSIDE) {
		if (depth == 2)
			o->children_ns += ns_since(slice->start_ns, now);
		return true;
	}
	push_timed(t, slice, now, name);
	adjust_op_rate(t, now, o->drawn >= o->left ? o->drawn - o->left + 1 : 1);
	return true;
}

void op_rate_arm(void *library)
{
	void **const real[] = { &real_step_callbacks, &real_add_thread_callback,
				&real_add_global_callback, &real_remove_callback };
	bool (*has_global)(void);

	*(void **)&has_global = dlsym(library, "_ZN2at18hasGlobalCallbacksEv");
	*(void **)&has_thread_callbacks = dlsym(library, "_ZN2at23hasThreadLocalCallbacksEv");
	for (size_t i = 0; i < PATCHES; i++) {
		patches[i].real = *real[i] = dlsym(library, patches[i].name);
		if (!patches[i].real)
			return;
	}
	if (!has_global || !has_thread_callbacks || has_global())
		return; /* all operators are recorded */
	patches_redirect(patches, false);
}

/* Removes the wrappers; calls that are inside them still find what they need. */
void op_rate_remove(void)
{
	atomic_store(&asks, 0);
	if (real_step_callbacks)
		patches_redirect(patches, true);
}
