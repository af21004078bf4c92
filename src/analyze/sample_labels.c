/* sample_labels.c: see sample_labels.h. */
#include "analyze/sample_labels.h"

unsigned sample_style_parse(const char *words)
{
	static const struct str_flag known[] = {
		{ "pid", STYLE_PID },	    { "tid", STYLE_TID | STYLE_PID },
		{ "kernel", STYLE_KERNEL }, { "jit", STYLE_JIT },
		{ "addrs", STYLE_ADDRESS }, { "all", STYLE_KERNEL | STYLE_JIT },
		{ "lines", STYLE_LINES },   { "stackcollapse", STYLE_STACKCOLLAPSE }
	};

	return str_flags(words, known, ARRAY_COUNT(known));
}

bool sample_labels_init(struct sample_labels *l, const struct model *m, unsigned style,
			struct arena *arena, struct arena *scratch)
{
	void *texts = NULL;

	*l = (struct sample_labels){ .m = m, .mem = m->mem, .arena = arena, .style = style };
	map_init(&l->map, m->mem);
	buf_init(&l->text, m->mem);
	l->of_frame[0] = ARENA_ARRAY(scratch, uint32_t, m->frame.count);
	l->of_frame[1] = ARENA_ARRAY(scratch, uint32_t, m->frame.count);
	if (!l->of_frame[0] || !l->of_frame[1] ||
	    !mem_grow(l->mem, &texts, &l->cap, 64, sizeof(*l->texts)))
		return false;
	l->texts = texts;
	l->texts[0] = STR("");
	l->count = 1;
	return true;
}

void sample_labels_release(struct sample_labels *l)
{
	mem_free(l->mem, l->texts, l->cap * sizeof(*l->texts));
	map_release(&l->map);
	buf_release(&l->text);
}

/* The number of what is in l->text. */
static uint32_t intern(struct sample_labels *l)
{
	struct str text = buf_str(&l->text), copy;
	uint64_t hash = str_hash(text);
	void *texts = l->texts;

	if (l->text.failed)
		return 0;
	for (struct map_iter it = map_find(&l->map, hash); it.value; it = map_next(&l->map, it))
		if (str_eq(l->texts[it.value], text))
			return it.value;
	if (l->count > INT32_MAX ||
	    !mem_grow(l->mem, &texts, &l->cap, l->count + 1, sizeof(*l->texts)))
		return 0;
	l->texts = texts;
	copy = arena_str(l->arena, text);
	if (!copy.ptr || !map_add(&l->map, hash, (uint32_t)l->count))
		return 0;
	l->texts[l->count] = copy;
	return (uint32_t)l->count++;
}

/* ---- native names ---- */

static bool is_unknown(struct str text)
{
	return !text.len || str_eq(text, STR("[unknown]"));
}

/* Methods of Go have their receiver in parentheses: net/http.(*Client).Do */
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

/* Whether what is between here and the end of the name begins the parameters, as the scripts see it. */
static bool is_parenthesis(struct str name, size_t at)
{
	return name.ptr[at] == '(' && !str_starts(str_skip(name, at), STR("(anonymous namespace)"));
}

/* Of "a::operator(" and the like the parentheses, or the angle bracket, are part of the name. */
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

/* The parameters of a function, not those in its template arguments: std::function<int (int)>::operator()(int) const. */
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

/* Up to the first parenthesis, but for (anonymous namespace); the scripts know no templates. */
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

/* ';' separates frames, quotes hurt the shell. */
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

/* Kernel modules are in brackets, and so are [vdso] and the like. */
static bool is_kernel_module(struct str module)
{
	return !is_unknown(module) && (module.ptr[0] == '[' || str_ends(module, STR("vmlinux")));
}

/* /tmp/perf-PID.map */
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
		buf_add_char(&l->text, ' '); /* which the script takes for the name */
	} else if (is_unknown(name)) {
		add_unknown(l, frame, module);
	} else {
		name = without_parameters(name, l->style & STYLE_STACKCOLLAPSE);
		/* the script looks at the name that is left, quotes gone */
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

uint32_t sample_label(struct sample_labels *l, frame_id frame, bool java)
{
	const struct frame_table *f = &l->m->frame;
	uint32_t *known = &l->of_frame[java][frame.v];
	bool nothing = !f->function[frame.v].v && !f->file[frame.v].v; /* [unknown <0>] */
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

bool sample_track_label(struct sample_labels *l, track_id track, bool several, uint32_t *label)
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
