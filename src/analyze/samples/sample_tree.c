/*
 * sample_tree.c: sampled call stacks as the tree of the code view; called by view_code.c. Below the root are processes, if the source has
 * them, then frames. Frames with equal labels under one caller are one node, whatever their addresses. Labels of native functions are
 * cut and marked like those of the stackcollapse scripts, so folded stacks can be compared with theirs: without parameters, with the
 * module for unknown functions, and marked as kernel or compiled code if the style asks for it. Samples are ordered by track, so those
 * of a process are added up per stack first, and each stack is looked up once.
 */
#include "analyze/samples/samples.h"

#include "analyze/tfprof/account.h"
#include "analyze/view.h"
#include "base/buf.h"
#include "base/map.h"
#include "base/vec.h"

enum sample_style {
	STYLE_PID = 1 << 0,    /* process label is comm-pid */
	STYLE_TID = 1 << 1,    /* process label is comm-pid/tid */
	STYLE_KERNEL = 1 << 2, /* kernel functions are shown as name_[k] */
	STYLE_JIT = 1 << 3,    /* JIT functions are shown as name_[j] */
	STYLE_ADDRESS = 1 << 4,
	/* frames are shown as file:line:function where lines are known */
	STYLE_LINES = 1 << 5,
	/* leaves out frames that the stackcollapse scripts leave out */
	STYLE_STACKCOLLAPSE = 1 << 6
};

#define LABEL_DROPPED UINT32_MAX /* label of a frame that is left out */

struct sample_labels {
	const struct model *m;
	struct mem *mem;
	struct arena *arena; /* memory of the label texts */
	unsigned style;
	struct str *texts; /* label texts, from index 1 */
	size_t count, cap;
	struct map map;
	uint32_t *of_frame[2]; /* label of each frame: [0] in any process, [1] in java */
	struct buf text;
};

/* Parses the style words. Unknown words are ignored because other readers of the option use
 * them. */
static unsigned sample_style_parse(const char *words)
{
	static const struct str_flag known[] = {
		{ "pid", STYLE_PID },	    { "tid", STYLE_TID | STYLE_PID },
		{ "kernel", STYLE_KERNEL }, { "jit", STYLE_JIT },
		{ "addrs", STYLE_ADDRESS }, { "all", STYLE_KERNEL | STYLE_JIT },
		{ "lines", STYLE_LINES },   { "stackcollapse", STYLE_STACKCOLLAPSE }
	};

	return str_flags(words, known, ARRAY_COUNT(known));
}

/* Prepares the labels. The caller calls sample_labels_release in any case. */
static bool sample_labels_init(struct sample_labels *l, const struct model *m, unsigned style,
			       struct arena *arena, struct arena *scratch)
{
	*l = (struct sample_labels){ .m = m, .mem = m->mem, .arena = arena, .style = style };
	map_init(&l->map, m->mem);
	buf_init(&l->text, m->mem);
	l->of_frame[0] = ARENA_ARRAY(scratch, uint32_t, m->frame.count);
	l->of_frame[1] = ARENA_ARRAY(scratch, uint32_t, m->frame.count);
	if (!l->of_frame[0] || !l->of_frame[1] || !vec_reserve(l->mem, l->texts, l->cap, 64))
		return false;
	l->texts[0] = STR("");
	l->count = 1;
	return true;
}

static void sample_labels_release(struct sample_labels *l)
{
	mem_free(l->mem, l->texts, l->cap * sizeof(*l->texts));
	map_release(&l->map);
	buf_release(&l->text);
}

/* Returns the label number of the text in l->text. */
static uint32_t intern(struct sample_labels *l)
{
	struct str text = buf_str(&l->text), copy;
	uint64_t hash = str_hash(text);

	if (l->text.failed)
		return 0;
	for (struct map_iter it = map_find(&l->map, hash); it.value; it = map_next(&l->map, it))
		if (str_eq(l->texts[it.value], text))
			return it.value;
	if (l->count > INT32_MAX || !vec_reserve(l->mem, l->texts, l->cap, l->count + 1))
		return 0;
	copy = arena_str(l->arena, text);
	if (!copy.ptr || !map_add(&l->map, hash, (uint32_t)l->count))
		return 0;
	l->texts[l->count] = copy;
	return (uint32_t)l->count++;
}

static bool is_unknown(struct str text)
{
	return !text.len || str_eq(text, STR("[unknown]"));
}

/* Detects a method of Go, whose receiver is in parentheses: net/http.(*Client).Do. */
static bool is_go_method(struct str name)
{
	for (size_t at = 0; at + 1 < name.len; at++) {
		if (name.ptr[at] != '.' || name.ptr[at + 1] != '(')
			continue;
		if (str_has(str_skip(name, at + 2), STR(").")))
			return true;
	}
	return false;
}

/* Returns whether the parenthesis at `at` begins the parameters, by the rules of the
 * stackcollapse scripts. */
static bool is_parenthesis(struct str name, size_t at)
{
	return name.ptr[at] == '(' && !str_starts(str_skip(name, at), STR("(anonymous namespace)"));
}

/* Returns the end of an operator name such as "a::operator(", whose parentheses or angle bracket
 * are part of the name. */
static size_t operator_end(struct str name, size_t at)
{
	static const char *const signs[] = { "()", "<<=", ">>=", "<=>", "<<", ">>",
					     "<=", ">=",  "->",	 "<",	">" };
	struct str rest = str_skip(name, at);

	if (at < 8 || !str_ends(str_first(name, at), STR("operator")))
		return at;
	for (size_t i = 0; i < ARRAY_COUNT(signs); i++)
		if (str_starts(rest, str_from(signs[i])))
			return at + strlen(signs[i]);
	return at;
}

/* Removes the parameters of a function, but not those in its template arguments: std::function<int
 * (int)>::operator()(int) const. */
static struct str without_own_parameters(struct str name)
{
	size_t depth = 0;

	for (size_t i = 0; i < name.len; i++) {
		size_t end = operator_end(name, i);

		if (end > i) {
			i = end - 1;
			continue;
		}
		if (is_parenthesis(name, i) && !depth)
			return i ? str_first(name, i) : name;
		if (name.ptr[i] == '<')
			depth++;
		else if (name.ptr[i] == '>' && depth && (!i || name.ptr[i - 1] != '-'))
			depth--;
	}
	return name;
}

/* Cuts a name at its first parenthesis, except in (anonymous namespace), as the stackcollapse
 * scripts do, which ignore templates. */
static struct str without_parameters(struct str name, bool as_scripts)
{
	if (is_go_method(name))
		return name;
	if (!as_scripts)
		return without_own_parameters(name);
	for (size_t i = 0; i < name.len; i++)
		if (is_parenthesis(name, i))
			return str_first(name, i);
	return name;
}

/* Adds a name without ';', which separates frames, and without quotes, which disturb shells. */
static void add_clean(struct buf *to, struct str name)
{
	for (size_t i = 0; i < name.len; i++) {
		char c = name.ptr[i];

		if (c != '"' && c != '\'')
			buf_add_char(to, c == ';' ? ':' : c);
	}
}

static struct str base_name(struct str path)
{
	size_t slash = str_rfind_char(path, '/');

	return slash == STR_NONE ? path : str_skip(path, slash + 1);
}

/* Detects a kernel module by its brackets; [vdso] and similar names have brackets, too. */
static bool is_kernel_module(struct str module)
{
	return !is_unknown(module) && (module.ptr[0] == '[' || str_ends(module, STR("vmlinux")));
}

/* Detects a map of JIT code: /tmp/perf-PID.map. */
static bool is_jit_module(struct str module)
{
	size_t at = str_find(module, STR("/tmp/perf-"));
	size_t digits;

	if (at == STR_NONE)
		return false;
	module = str_skip(module, at + strlen("/tmp/perf-"));
	for (digits = 0; digits < module.len; digits++)
		if (module.ptr[digits] < '0' || module.ptr[digits] > '9')
			break;
	return digits && str_starts(str_skip(module, digits), STR(".map"));
}

static void add_unknown(struct sample_labels *l, uint32_t frame, struct str module)
{
	buf_add_char(&l->text, '[');
	buf_add_str(&l->text, is_unknown(module) ? STR("unknown") : base_name(module));
	if (l->style & STYLE_ADDRESS)
		buf_printf(&l->text, " <%" PRIx64 ">", COLUMN_GET(l->m->frame.address, frame));
	buf_add_char(&l->text, ']');
}

static void add_mark(struct sample_labels *l, uint32_t frame, struct str module)
{
	uint8_t flags = COLUMN_GET(l->m->frame.flags, frame);

	if (flags & FRAME_INLINED)
		buf_puts(&l->text, "_[i]");
	else if (l->style & STYLE_KERNEL && (is_kernel_module(module) || flags & FRAME_KERNEL))
		buf_puts(&l->text, "_[k]");
	else if (l->style & STYLE_JIT && (is_jit_module(module) || flags & FRAME_JIT))
		buf_puts(&l->text, "_[j]");
}

static uint32_t native_label(struct sample_labels *l, uint32_t frame, bool java)
{
	const struct model *m = l->m;
	struct str name = model_str(m, m->frame.function[frame]);
	struct str module = model_str(m, COLUMN_GET(m->frame.module, frame));

	if (name.len && name.ptr[0] == '(')
		return LABEL_DROPPED;
	if (l->style & STYLE_STACKCOLLAPSE && COLUMN_GET(m->frame.flags, frame) & FRAME_NAMELESS) {
		/* the stackcollapse script takes this text for the name */
		buf_add_char(&l->text, ' ');
	} else if (is_unknown(name)) {
		add_unknown(l, frame, module);
	} else {
		name = without_parameters(name, l->style & STYLE_STACKCOLLAPSE);
		/* the stackcollapse script looks at the name after it has removed quotes */
		if (java && name.len > 1 && name.ptr[0] == 'L' && str_has(name, STR("/")))
			name = str_skip(name, 1);
		add_clean(&l->text, name);
	}
	add_mark(l, frame, module);
	return intern(l);
}

static uint32_t plain_label(struct sample_labels *l, uint32_t frame)
{
	const struct model *m = l->m;
	struct str file = model_str(m, m->frame.file[frame]);
	struct str name = model_str(m, m->frame.function[frame]);

	if (name.len && !(l->style & STYLE_LINES && file.len)) {
		buf_add_str(&l->text, name);
	} else if (file.len) {
		buf_add_str(&l->text, base_name(file));
		buf_printf(&l->text, ":%" PRId32, m->frame.line[frame]);
		if (name.len) {
			buf_add_char(&l->text, ':');
			buf_add_str(&l->text, name);
		}
	} else {
		buf_puts(&l->text, "[unknown]");
	}
	return intern(l);
}

/* Returns the label of a frame in a process; 0 if memory runs out. */
static uint32_t sample_label(struct sample_labels *l, frame_id frame, bool java)
{
	const struct frame_table *f = &l->m->frame;
	uint32_t *known = &l->of_frame[java][frame.v];
	/* the frame is shown as [unknown <0>] */
	bool nothing = !f->function[frame.v].v && !f->file[frame.v].v;
	bool native = COLUMN_GET(f->module, frame.v).v || COLUMN_GET(f->address, frame.v) ||
		      (nothing && l->style & STYLE_ADDRESS);
	bool lines = l->style & STYLE_LINES && f->file[frame.v].v;

	if (!*known) {
		buf_clear(&l->text);
		*known =
			native && !lines ? native_label(l, frame.v, java) : plain_label(l, frame.v);
	}
	return *known;
}

static void add_number(struct buf *to, int64_t number)
{
	if (number < 0)
		buf_add_char(to, '?');
	else
		buf_printf(to, "%" PRId64, number);
}

/* Makes the label of the process or thread of a track. *label is 0 if it needs no level of its own. False if memory
 * runs out. */
static bool sample_track_label(struct sample_labels *l, track_id track, bool several,
			       uint32_t *label)
{
	const struct track_table *t = &l->m->track;
	struct str name = model_str(l->m, t->name[track.v]);

	*label = 0;
	if (!t->process[track.v].v && !(several && name.len))
		return true;
	buf_clear(&l->text);
	for (size_t i = 0; i < name.len; i++)
		buf_add_char(&l->text, name.ptr[i] == ' ' ? '_' : name.ptr[i]);
	if (l->style & STYLE_PID && t->process[track.v].v) {
		buf_add_char(&l->text, '-');
		add_number(&l->text, t->pid[track.v]);
	}
	if (l->style & STYLE_TID && t->process[track.v].v) {
		buf_add_char(&l->text, '/');
		add_number(&l->text, t->tid[track.v]);
	}
	*label = intern(l);
	return *label != 0;
}

/* The root is named "all", because tfprof's name for a root would be misleading here. */
#define SAMPLES_ROOT STR("all")

struct sample_tree {
	struct account *a;
	struct model *m;
	struct sample_choice choice;
	struct sample_labels labels;
	struct code_node *nodes;
	int64_t *own; /* own weight of each node */
	size_t node_cap, own_cap;
	uint32_t count;
	struct map children;	/* maps (parent, label) to the node */
	uint32_t *of_stack;	/* for each stack: its node + 1 in the current process, or 0 */
	int64_t *weight;	/* for each stack: its weight in the current process */
	uint32_t *touched;	/* stacks of the current process */
	uint32_t *track_label;	/* label of each track */
	uint32_t *first, *last; /* range of samples of each track */
	uint32_t *label_rank;
};

static ow_status no_memory(struct sample_tree *t)
{
	return error_no_memory(t->a->err);
}

static struct str node_name(const void *view, uint32_t node)
{
	const struct sample_tree *t = view;

	return node ? t->labels.texts[t->nodes[node].label] : SAMPLES_ROOT;
}

static uint32_t node_rank(const void *view, uint32_t node)
{
	const struct sample_tree *t = view;

	return t->label_rank[t->nodes[node].label];
}

static uint32_t node_own_row(const void *view, uint32_t node)
{
	(void)view;
	return node + 1;
}

static uint32_t node_op_count(const void *view, uint32_t node)
{
	(void)view;
	(void)node;
	return 0;
}

static void node_fill(const void *view, uint32_t node, struct tree_node *to)
{
	(void)view;
	to->code = node;
}

static bool add_node(struct sample_tree *t, uint32_t parent, uint32_t label, frame_id frame,
		     uint32_t *node)
{
	if (t->count == UINT32_MAX - 2 ||
	    !vec_reserve(t->a->mem, t->nodes, t->node_cap, (size_t)t->count + 1))
		return false;
	if (!vec_reserve(t->a->mem, t->own, t->own_cap, (size_t)t->count + 1))
		return false;
	*node = t->count++;
	t->nodes[*node] = (struct code_node){ .parent = parent,
					      .label = label & 0x7fffffffu,
					      .frame = frame };
	t->own[*node] = 0;
	if (!*node)
		return true;
	t->nodes[*node].next_sibling = t->nodes[parent].first_child;
	t->nodes[parent].first_child = *node;
	return map_add(&t->children, map_hash_u64(parent, label), *node);
}

static bool child_of(struct sample_tree *t, uint32_t parent, uint32_t label, frame_id frame,
		     uint32_t *node)
{
	uint64_t hash = map_hash_u64(parent, label);

	for (struct map_iter it = map_find(&t->children, hash); it.value;
	     it = map_next(&t->children, it))
		if (t->nodes[it.value].parent == parent && t->nodes[it.value].label == label) {
			*node = it.value;
			return true;
		}
	return add_node(t, parent, label, frame, node);
}

/* The node of a stack in a process: from the nearest caller that has one down to it. The callers wait in
 * `touched`, behind the stacks that are listed there: a stack has fewer callers than there are stacks. */
static bool place_stack(struct sample_tree *t, uint32_t stack, uint32_t root, bool java,
			uint32_t *waiting)
{
	const struct stack_table *s = &t->m->stack;
	uint32_t count = 0, parent = root;

	for (uint32_t at = stack; at; at = s->parent[at].v) {
		if (t->of_stack[at]) {
			parent = t->of_stack[at] - 1;
			break;
		}
		waiting[count++] = at;
	}
	while (count--) {
		frame_id frame = s->frame[waiting[count]];
		uint32_t label = sample_label(&t->labels, frame, java);

		if (!label ||
		    (label != LABEL_DROPPED && !child_of(t, parent, label, frame, &parent)))
			return false;
		t->of_stack[waiting[count]] = parent + 1;
	}
	return true;
}

/* Returns whether the stackcollapse scripts lose the sample: they drop a last sample that no
 * empty line follows. */
static bool is_lost(const struct sample_tree *t, uint32_t sample)
{
	return t->labels.style & STYLE_STACKCOLLAPSE &&
	       str_eq(model_str(t->m, COLUMN_GET(t->m->sample.label, sample)), STR(SAMPLE_UNENDED));
}

/* Adds up the samples of all tracks that have the label of `first`. */
static ow_status add_process(struct sample_tree *t, uint32_t first)
{
	const struct sample_table *s = &t->m->sample;
	uint32_t label = t->track_label[first], root = 0, count = 0;
	bool java = label && str_eq(t->labels.texts[label], STR("java"));
	uint32_t *waiting;

	memset(t->of_stack, 0, (size_t)t->m->stack.count * sizeof(*t->of_stack));
	for (uint32_t track = first; track < t->m->track.count; track++) {
		if (t->track_label[track] != label)
			continue;
		for (uint32_t i = t->first[track]; i < t->last[track]; i++) {
			uint32_t stack = s->stack[i].v;

			if (!sample_counts(&t->choice, i) || is_lost(t, i))
				continue;
			if (!t->of_stack[stack]) {
				t->touched[count++] = stack;
				t->of_stack[stack] = 1;
				t->weight[stack] = 0;
			}
			t->weight[stack] = sum_add(t->weight[stack], s->weight[i]);
		}
		t->first[track] = t->last[track]; /* marks the track as processed */
	}
	if (!count)
		return OW_OK;
	for (uint32_t i = 0; i < count; i++)
		t->of_stack[t->touched[i]] = 0;
	if (label && !child_of(t, 0, label, (frame_id){ 0 }, &root))
		return no_memory(t);
	waiting = t->touched + t->m->stack.count;
	for (uint32_t i = 0; i < count; i++) {
		uint32_t stack = t->touched[i], node;

		if (!place_stack(t, stack, root, java, waiting))
			return no_memory(t);
		node = stack ? t->of_stack[stack] - 1 : root;
		t->own[node] = sum_add(t->own[node], t->weight[stack]);
	}
	return OW_OK;
}

/* Finds the range of samples of each track; samples are sorted by track. */
static uint32_t find_ranges(struct sample_tree *t)
{
	const struct sample_table *s = &t->m->sample;
	uint32_t tracks = 0;

	for (uint32_t i = 1; i < s->count; i++) {
		uint32_t track = s->track[i].v;

		if (i == 1 || track != s->track[i - 1].v) {
			t->first[track] = i;
			tracks++;
		}
		t->last[track] = i + 1;
	}
	return tracks;
}

static ow_status build_tree(struct sample_tree *t)
{
	struct arena *scratch = &t->a->scratch;
	struct model *m = t->m;
	uint32_t root;
	bool several;

	t->of_stack = ARENA_ARRAY(scratch, uint32_t, m->stack.count);
	t->weight = ARENA_ARRAY(scratch, int64_t, m->stack.count);
	t->touched = ARENA_ARRAY(scratch, uint32_t, 2 * (size_t)m->stack.count);
	t->track_label = ARENA_ARRAY(scratch, uint32_t, m->track.count);
	t->first = ARENA_ARRAY(scratch, uint32_t, m->track.count);
	t->last = ARENA_ARRAY(scratch, uint32_t, m->track.count);
	if (!t->of_stack || !t->weight || !t->touched || !t->track_label || !t->first || !t->last ||
	    !sample_labels_init(&t->labels, m, sample_style_parse(t->a->options->style),
				&t->a->tree->arena, scratch) ||
	    !add_node(t, 0, 0, (frame_id){ 0 }, &root))
		return no_memory(t);
	several = find_ranges(t) > 1;
	for (uint32_t i = 0; i < m->track.count; i++)
		if (!sample_track_label(&t->labels, (track_id){ i }, several, &t->track_label[i]))
			return no_memory(t);
	for (uint32_t i = 0; i < m->track.count; i++)
		if (t->first[i] < t->last[i])
			OW_TRY(add_process(t, i));
	return OW_OK;
}

static int by_label(const void *a, const void *b, void *arg)
{
	const struct sample_labels *l = arg;

	return str_cmp(l->texts[*(const uint32_t *)a], l->texts[*(const uint32_t *)b]);
}

static ow_status rank_labels(struct sample_tree *t)
{
	size_t count = t->labels.count;
	uint32_t *order = ARENA_ARRAY(&t->a->scratch, uint32_t, count);
	struct tree *tree = t->a->tree;

	t->label_rank = ARENA_ARRAY(&t->a->scratch, uint32_t, count);
	tree->labels = ARENA_ARRAY(&tree->arena, struct str, count);
	if (!order || !t->label_rank || !tree->labels)
		return no_memory(t);
	memcpy(tree->labels, t->labels.texts, count * sizeof(*tree->labels));
	tree->labels[0] = SAMPLES_ROOT;
	for (uint32_t i = 1; i < count; i++)
		order[i] = i;
	qsort_r(order + 1, count - 1, sizeof(*order), by_label, &t->labels);
	for (uint32_t i = 1; i < count; i++)
		t->label_rank[order[i]] = i;
	return OW_OK;
}

static ow_status display_tree(struct sample_tree *t)
{
	struct account *a = t->a;
	struct hierarchy h = { .a = a,
			       .view = t,
			       .count = t->count,
			       .links = t->nodes,
			       .link_stride = sizeof(*t->nodes),
			       .name = node_name,
			       .rank = node_rank,
			       .own_row = node_own_row,
			       .op_count = node_op_count,
			       .fill = node_fill };

	a->tree->own_rows = ARENA_ARRAY(&a->tree->arena, int64_t, (size_t)t->count + 1);
	h.flags = ARENA_ARRAY(&a->scratch, uint8_t, t->count);
	if (!a->tree->own_rows || !h.flags)
		return no_memory(t);
	memcpy(a->tree->own_rows + 1, t->own, t->count * sizeof(*t->own));
	memset(h.flags, NODE_ACCOUNTED, t->count);
	OW_TRY(rank_labels(t));
	OW_TRY(hierarchy_total(&h));
	a->tree->code_nodes = t->nodes;
	a->tree->code_node_count = t->count;
	a->tree->code_node_cap = t->node_cap;
	OW_TRY(display_hierarchy(&h));
	if (a->tree->node_count)
		a->tree->nodes[0].name = SAMPLES_ROOT;
	return OW_OK;
}

/* Chooses the metric. The only value of a node is its weight, so options about other values do
 * not apply. */
static ow_status choose_metric(struct sample_tree *t)
{
	const struct view_options *o = t->a->options;
	struct account *a = t->a;

	OW_TRY(samples_choose(t->m, o, &a->scratch, &t->choice, a->err));
	account_set_metrics(a, METRIC_BIT(METRIC_WEIGHT));
	if (a->order == ORDER_METRIC || a->order == ORDER_OPS)
		a->order = ORDER_METRIC;
	a->order_metric = METRIC_WEIGHT;
	a->test_count = 0;
	if (t->choice.shown_as == UNIT_NS && o->min_micros > 0)
		a->tests[a->test_count++] =
			(struct min_test){ METRIC_WEIGHT, us_to_ns(o->min_micros), false };
	if (t->choice.shown_as == UNIT_BYTES && o->min_bytes > 0)
		a->tests[a->test_count++] = (struct min_test){ METRIC_WEIGHT, o->min_bytes, false };
	a->tree->weight_name = model_str(t->m, t->choice.name);
	a->tree->weight_source_unit = model_str(t->m, t->choice.unit);
	a->tree->weight_unit = t->choice.shown_as;
	a->tree->empty_store = false;
	return OW_OK;
}

static ow_status add_left_out(struct sample_tree *t)
{
	struct account *a = t->a;
	char *text;

	OW_TRY(samples_left_out(&t->choice, a->options, &a->scratch, &text, a->err));
	return text ? tree_message(a->tree, a->err, "%s", text) : OW_OK;
}

ow_status sample_tree_run(struct model *m, const struct view_options *options, struct table *out,
			  struct ow_error *err)
{
	struct account a;
	struct sample_tree t = { .a = &a, .m = m, .labels = { .mem = m->mem } };
	ow_status status = account_begin(&a, m, options, TREE_CODE, out, err);

	map_init(&t.labels.map, m->mem);
	buf_init(&t.labels.text, m->mem);
	map_init(&t.children, a.mem);
	if (status == OW_OK)
		status = choose_metric(&t);
	if (status == OW_OK)
		status = build_tree(&t);
	if (status == OW_OK)
		status = display_tree(&t);
	if (status == OW_OK)
		status = add_left_out(&t);
	if (!a.tree || a.tree->code_nodes != t.nodes)
		mem_free(a.mem, t.nodes, t.node_cap * sizeof(*t.nodes));
	mem_free(a.mem, t.own, t.own_cap * sizeof(*t.own));
	map_release(&t.children);
	sample_labels_release(&t.labels);
	return account_end(&a, status);
}
