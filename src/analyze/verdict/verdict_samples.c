/*
 * verdict_samples.c: writes the sentence for a profile that has sampled stacks only: the function that takes most, and the caller below which
 * most happens. Where most samples have no function name, it says that and how to supply the names, since "[unknown]" is not an answer.
 * verdict.c calls it.
 */
#include "analyze/verdict/verdict.h"

#include "analyze/samples/samples.h"
#include "base/human.h"

#define MOST 50.0 /* a caller with at least this percentage is mentioned */
/* a caller with more than this percentage calls everything and is not mentioned */
#define ALL 99.5
#define MISSING 50.0 /* if more than this percentage has no names, the verdict begins with that */
#define NAME_COLUMNS 60

static void add_name(struct buf *text, struct str name)
{
	struct str shown = utf8_fit(name, NAME_COLUMNS);

	buf_add_str(text, shown);
	buf_puts(text, shown.len < name.len ? "…" : "");
}

static struct str module_name(const struct functions *f, size_t item)
{
	struct str module = model_str(f->m, COLUMN_GET(f->m->frame.module, f->items[item].frame));
	size_t slash = str_rfind_char(module, '/');

	return slash == STR_NONE ? module : str_skip(module, slash + 1);
}

static void add_function(struct buf *text, const struct functions *f, size_t item)
{
	struct str module = module_name(f, item);

	add_name(text, f->items[item].name);
	if (!module.len || str_eq(module, f->items[item].name))
		return;
	buf_puts(text, " (");
	add_name(text, module);
	buf_add_char(text, ')');
}

/* Adds the line of the costliest function, " (train.py:12)", for a recorded program. In other profiles
 * lines may be those of calls. */
static void add_line(struct buf *text, const struct functions *f, size_t item)
{
	const struct model *m = f->m;
	struct str name = f->items[item].name, file;
	int64_t *by_stack = samples_by_stack(&f->choice, f->scratch);
	int64_t *by_frame = ARENA_ARRAY(f->scratch, int64_t, m->frame.count);
	uint32_t best = 0;
	size_t slash;

	if (!by_stack || !by_frame || !verdict_is_live(m) || module_name(f, item).len)
		return;
	for (uint32_t i = 1; i < m->stack.count; i++) {
		uint32_t frame = m->stack.frame[i].v;

		if (!by_stack[i] || !str_eq(model_str(m, m->frame.function[frame]), name))
			continue;
		by_frame[frame] += by_stack[i];
		if (by_frame[frame] > by_frame[best])
			best = frame;
	}
	file = model_str(m, m->frame.file[best]);
	slash = str_rfind_char(file, '/');
	if (!best || !file.len || m->frame.line[best] <= 0)
		return;
	buf_puts(text, " (");
	add_name(text, slash == STR_NONE ? file : str_skip(file, slash + 1));
	buf_printf(text, ":%lld)", (long long)m->frame.line[best]);
}

/* Returns whether a function has an address, a module or [unknown] in place of a name. */
static bool is_nameless(const struct functions *f, size_t item)
{
	struct str name = f->items[item].name;

	if (str_starts(name, STR("0x")) && name.len > 2) {
		for (size_t i = 2; i < name.len; i++)
			if (!strchr("0123456789abcdefABCDEF", name.ptr[i]) || !name.ptr[i])
				return false;
		return true;
	}
	if (str_eq(name, STR("[unknown]")) || str_eq(name, STR("[kernel.kallsyms]")))
		return true;
	return !f->m->frame.function[f->items[item].frame].v &&
	       !f->m->frame.file[f->items[item].frame].v;
}

/* Returns the function with the largest total that does not include (almost) everything. */
static size_t largest_caller(struct functions *f)
{
	sample_functions_sort(f, true);
	for (size_t i = 1; i < f->count; i++)
		if (samples_percent(f->items[i].total, f->all) < ALL && !is_nameless(f, i))
			return samples_percent(f->items[i].total, f->all) >= MOST ? i : 0;
	return 0;
}

/* Adds "82 % of cycles" or "93 % of the 7.20MB of inuse_space". */
static void add_share(const struct functions *f, int64_t part, struct buf *text)
{
	struct str name = model_str(f->m, f->choice.name);
	double share = samples_percent(part, f->all);
	char size[HUMAN_SIZE];

	if (share > 0 && share < 0.5)
		buf_puts(text, text->len ? "under 1 % of " : "Under 1 % of ");
	else
		buf_printf(text, "%.0f %% of ", share);
	if (f->choice.shown_as == UNIT_BYTES) {
		human_int(size, f->all, HUMAN_UNIT_BYTES, false);
		buf_printf(text, "the %s", size);
		if (!str_eq(name, STR("bytes"))) {
			buf_puts(text, " of ");
			add_name(text, name);
		}
		return;
	}
	add_name(text, name);
}

static const char *spent(const struct functions *f)
{
	if (f->choice.shown_as == UNIT_BYTES)
		return " was allocated in ";
	return str_eq(model_str(f->m, f->choice.name), STR("samples")) ? " are in "
								       : " is spent in ";
}

/* Returns advice on how to get function names, by the format of the first input. */
static const char *naming_advice(const struct model *m, bool kernel)
{
	struct str format = m->source.count > 1 ? model_str(m, m->source.format[1]) : STR("");

	if (str_eq(format, STR("perf_data")))
		return kernel ? "To see names of kernel functions, open the file as root on the "
				"machine that recorded it."
			      : "To see function names, open the file on the machine that recorded "
				"it, or put the files of 'perf archive' into ~/.debug.";
	if (str_eq(format, STR("perf_script")))
		return kernel ? "To see names of kernel functions, run 'perf script' as root on "
				"the machine that recorded it."
			      : "To see function names, run 'perf script' on the machine that "
				"recorded it, with debug symbols installed.";
	if (str_eq(format, STR("pprof")) || str_eq(format, STR("pprof_legacy")))
		return "To see function names, give pprof the program: 'pprof -proto PROGRAM FILE "
		       "> named.pb.gz', and open that file.";
	return "To see function names, record with debug symbols installed.";
}

/* Returns the costliest function without a name; 0 if there is none. Functions are sorted by own cost. */
static size_t first_with(const struct functions *f, bool nameless)
{
	for (size_t i = 1; i < f->count; i++)
		if (is_nameless(f, i) == nameless && f->items[i].self > 0)
			return i;
	return 0;
}

/* Writes "97 % of cpu-clock has no function names, most of it in libc.so. To see function names
 * …". */
static void write_missing_names(const struct functions *f, int64_t missing, struct buf *text)
{
	size_t worst = first_with(f, true), named = first_with(f, false);
	struct str module = module_name(f, worst);
	bool all = f->items[worst].self == missing;

	if (!module.len && f->items[worst].name.ptr[0] == '[' &&
	    !str_eq(f->items[worst].name, STR("[unknown]")))
		module = f->items[worst].name;
	add_share(f, missing, text);
	buf_printf(text, " %s no function names",
		   str_ends(model_str(f->m, f->choice.name), STR("s")) ? "have" : "has");
	if (module.len) {
		buf_puts(text, all ? ", all of it in " : ", the largest part in ");
		add_name(text, module);
	}
	if (named) {
		buf_puts(text, "; of the named functions ");
		add_function(text, f, named);
		buf_printf(text, " takes most (%.0f %%)",
			   samples_percent(f->items[named].self, f->all));
	}
	buf_puts(text, ". ");
	buf_puts(text, naming_advice(f->m, str_starts(module, STR("[kernel"))));
}

/* How many functions have the same own cost as the first. Sorted by own cost. */
static size_t count_equal(const struct functions *f)
{
	size_t equal = 0;

	while (equal + 2 < f->count && f->items[equal + 2].self == f->items[1].self)
		equal++;
	return equal;
}

static void write_sentence(struct functions *f, struct buf *text)
{
	int64_t missing = 0;
	uint32_t top_frame;
	struct str top_name;
	size_t caller, equal;

	if (f->count < 2 || f->all <= 0) {
		buf_puts(text, "No samples are in this part.");
		return;
	}
	sample_functions_sort(f, false);
	for (size_t i = 1; i < f->count; i++)
		missing += is_nameless(f, i) ? f->items[i].self : 0;
	if (samples_percent(missing, f->all) >= MISSING) {
		write_missing_names(f, missing, text);
		return;
	}
	top_frame = f->items[1].frame;
	top_name = f->items[1].name;
	add_share(f, f->items[1].self, text);
	buf_puts(text, spent(f));
	add_function(text, f, 1);
	add_line(text, f, 1);
	buf_puts(text, " itself");
	equal = count_equal(f);
	if (equal == 1) {
		buf_puts(text, "; as much in ");
		add_function(text, f, 2);
	} else if (equal) {
		buf_printf(text, "; as much in each of %zu others", equal);
	}
	caller = largest_caller(f);
	if (caller && f->items[caller].self != f->items[caller].total) {
		buf_printf(text, "; %.0f %% ", samples_percent(f->items[caller].total, f->all));
		if (f->items[caller].frame == top_frame &&
		    str_eq(f->items[caller].name, top_name)) {
			buf_puts(text, "with what it calls");
		} else {
			buf_puts(text, "below ");
			add_function(text, f, caller);
		}
	}
	buf_add_char(text, '.');
	if (samples_percent(missing, f->all) >= MISSING / 5) {
		buf_printf(text, " %.0f %% has no function names. ",
			   samples_percent(missing, f->all));
		buf_puts(text, naming_advice(f->m, false));
	}
}

ow_status verdict_samples(struct model *m, const struct event_filter *filter, const char *metric,
			  struct buf *text, struct ow_error *err)
{
	struct view_options options;
	struct arena scratch;
	struct functions f = { .m = m, .scratch = &scratch };
	ow_status status;

	OW_TRY(model_require_stacks(m, err));
	view_options_init(&options);
	options.metric = metric;
	arena_init(&scratch, m->mem);
	status = samples_choose(m, &options, &scratch, &f.choice, err);
	if (status == OW_OK) {
		f.choice.filter = *filter;
		status = sample_functions_make(&f, err);
		if (status == OW_OK)
			write_sentence(&f, text);
		sample_functions_release(&f);
	}
	arena_release(&scratch);
	return status;
}
