/*
 * import_firefox.c: the importer of JSON of the Firefox Profiler (profiler.firefox.com), which Firefox, samply, Python's own sampling
 * profiler, `perf script gecko` and many converters write: threads with samples and markers over tables of strings, frames and
 * stacks. This file reads the document; firefox_profile.h says which file does the rest. Keys may come in any order: members that
 * others refer to are read first. Nothing is fetched from symbol servers.
 */
#include "import/firefox/firefox_profile.h"

#include "base/vec.h"

static int sniff_firefox(const struct sniff *sniff)
{
	struct str head = sniff->head;

	if (str_starts(head, STR("\xef\xbb\xbf")))
		head = str_skip(head, 3);
	head = str_trim(head);
	if (!str_starts(head, STR("{")) || str_has(head, STR("\"traceEvents\"")))
		return 0;
	if (str_has(head, STR("\"preprocessedProfileVersion\"")))
		return 96;
	if (str_has(sniff->tail, STR("Recorded Performance Data")))
		return 92; /* Firefox 46 to 79: the profile may begin behind the head */
	if (str_has(head, STR("\"meta\"")) && str_has(head, STR("\"processType\"")) &&
	    str_has(head, STR("\"interval\"")))
		return 90;
	if (str_has(head, STR("\"stackTable\"")) && str_has(head, STR("\"frameTable\"")))
		return 80;
	return str_has(head, STR("\"breakpadId\"")) && str_has(head, STR("\"debugName\"")) ? 60 : 0;
}

void fx_cut(struct firefox *f)
{
	if (!f->truncated)
		f->truncated_at = f->p->offset;
	f->truncated = true;
}

bool fx_skip(struct firefox *f)
{
	if (json_pull_skip(f->p))
		return true;
	fx_cut(f);
	return false;
}

static ow_status read_category(struct firefox *f)
{
	struct fx_category category = { 0 };
	enum json_token token = TOKEN_CLOSE;
	bool grey = false;

	while (!f->truncated && (token = json_pull_next(f->p)) == TOKEN_KEY) {
		if (json_key_is(f->p->text, "name"))
			category.name = json_text_value(f->p, f->b, &f->text);
		else if (!json_key_is(f->p->text, "color"))
			(void)fx_skip(f);
		else if (json_pull_next(f->p) == TOKEN_STRING)
			grey = json_key_is(f->p->text, "grey");
	}
	if (!f->truncated && token != TOKEN_CLOSE)
		fx_cut(f);
	buf_clear(&f->text);
	buf_puts(&f->text, "category=");
	buf_add_str(&f->text, model_str(f->b->m, category.name));
	if (f->text.failed)
		return builder_no_memory(f->b);
	category.label = builder_str(f->b, buf_str(&f->text));
	if (!vec_push(f->mem, f->categories, f->category_count, f->category_cap, category))
		return builder_no_memory(f->b);
	if (grey && !f->default_category)
		f->default_category = f->category_count;
	return f->b->status;
}

/* Reads a list of objects, the value of the last key. Calls `each` after each opening bracket. */
static ow_status read_list(struct firefox *f, ow_status (*each)(struct firefox *))
{
	enum json_token token = json_pull_next(f->p);

	if (token == TOKEN_OBJECT)
		(void)fx_skip(f);
	if (token != TOKEN_ARRAY)
		return OW_OK;
	while (!f->truncated && (token = json_pull_next(f->p)) != TOKEN_CLOSE) {
		if (token == TOKEN_OBJECT)
			OW_TRY(each(f));
		else if (token == TOKEN_ARRAY)
			(void)fx_skip(f);
		else if (token == TOKEN_DAMAGE || token == TOKEN_END)
			fx_cut(f);
	}
	return OW_OK;
}

static void read_units(struct firefox *f)
{
	enum json_token token = json_pull_next(f->p);

	if (token == TOKEN_ARRAY)
		(void)fx_skip(f);
	if (token != TOKEN_OBJECT)
		return;
	while (!f->truncated && (token = json_pull_next(f->p)) == TOKEN_KEY) {
		bool time = json_key_is(f->p->text, "time"),
		     cpu = json_key_is(f->p->text, "threadCPUDelta");

		if (!time && !cpu)
			(void)fx_skip(f);
		else if (json_pull_next(f->p) != TOKEN_STRING)
			continue;
		else if (time)
			f->untimed = json_key_is(f->p->text, "bytes");
		else
			f->cpu_scale = json_key_is(f->p->text, "ns") ? 0
				       : json_key_is(f->p->text, "\xc2\xb5s") ||
						       json_key_is(f->p->text, "us")
					       ? 3
					       : -1;
	}
	if (!f->truncated && token != TOKEN_CLOSE)
		fx_cut(f);
}

static ow_status read_meta(struct firefox *f)
{
	struct json_pull *p = f->p;
	enum json_token token;

	if (json_pull_next(p) != TOKEN_OBJECT)
		return OW_OK;
	while (!f->truncated && f->b->status == OW_OK &&
	       (token = json_pull_next(p)) != TOKEN_CLOSE) {
		if (token != TOKEN_KEY)
			fx_cut(f);
		else if (json_key_is(p->text, "startTime"))
			(void)json_text_number(p, 6, &f->base_ns);
		else if (json_key_is(p->text, "interval"))
			(void)json_text_number(p, 6, &f->interval_ns);
		else if (json_key_is(p->text, "version"))
			(void)json_text_number(p, 0, &f->version);
		else if (json_key_is(p->text, "preprocessedProfileVersion"))
			(void)json_text_number(p, 0, &f->processed_version);
		else if (json_key_is(p->text, "product"))
			f->product = json_text_value(p, f->b, &f->text);
		else if (json_key_is(p->text, "importedFrom"))
			f->imported_from = json_text_value(p, f->b, &f->text);
		else if (json_key_is(p->text, "sampleUnits"))
			read_units(f);
		else if (json_key_is(p->text, "categories"))
			OW_TRY(read_list(f, read_category));
		else
			(void)fx_skip(f);
	}
	return f->b->status;
}

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

static size_t read_build_id(struct firefox *f, unsigned char id[ELF_ID_MAX])
{
	enum json_token token = json_pull_next(f->p);
	struct str text = f->p->text;
	size_t len = 0;

	if (token == TOKEN_OBJECT || token == TOKEN_ARRAY)
		(void)fx_skip(f);
	if (token != TOKEN_STRING || text.len % 2 || text.len / 2 > ELF_ID_MAX)
		return 0;
	for (; len < text.len / 2; len++) {
		int high = hex_digit(text.ptr[2 * len]), low = hex_digit(text.ptr[2 * len + 1]);

		if (high < 0 || low < 0)
			return 0;
		id[len] = (unsigned char)(high << 4 | low);
	}
	return len;
}

static ow_status read_lib(struct firefox *f)
{
	unsigned char id[ELF_ID_MAX];
	enum json_token token = TOKEN_CLOSE;
	int64_t start = 0, end = 0;
	str_id path = { 0 };
	struct fx_lib lib = { 0 };
	size_t id_len = 0;

	while (!f->truncated && (token = json_pull_next(f->p)) == TOKEN_KEY) {
		if (json_key_is(f->p->text, "name"))
			lib.name = json_text_value(f->p, f->b, &f->text);
		else if (json_key_is(f->p->text, "path"))
			path = json_text_value(f->p, f->b, &f->text);
		else if (json_key_is(f->p->text, "codeId"))
			id_len = read_build_id(f, id);
		else if (json_key_is(f->p->text, "start"))
			(void)json_text_number(f->p, 0, &start);
		else if (json_key_is(f->p->text, "end"))
			(void)json_text_number(f->p, 0, &end);
		else
			(void)fx_skip(f);
	}
	if (!f->truncated && token != TOKEN_CLOSE)
		fx_cut(f);
	lib.name = path.v ? path : lib.name;
	lib.start = (uint64_t)MAX(start, 0);
	lib.end = (uint64_t)MAX(end, 0);
	if (!vec_push(f->mem, f->libs, f->lib_count, f->lib_cap, lib))
		return builder_no_memory(f->b);
	if (id_len && !perf_names_id(&f->names, lib.name, id, id_len))
		return builder_no_memory(f->b);
	return f->b->status;
}

/* Reads an id: a number or a text such as "123", or "123.1" for another process with the same
 * number. */
static int64_t read_id(struct firefox *f)
{
	enum json_token token = json_pull_next(f->p);
	struct str text = f->p->text;
	int64_t number;
	size_t len = 0;

	if (token == TOKEN_OBJECT || token == TOKEN_ARRAY)
		(void)fx_skip(f);
	if (token != TOKEN_STRING && token != TOKEN_NUMBER)
		return MODEL_NO_ID;
	while (len < text.len && text.ptr[len] != '.')
		len++;
	if (json_decimal(str_first(text, len), 0, &number) == JSON_EXACT && number > INT32_MIN)
		return number;
	if (token == TOKEN_NUMBER)
		return MODEL_NO_ID;
	return MODEL_TEXT_NUMBER + (int64_t)json_text_id(f->b, text, &f->text).v;
}

static ow_status read_thread_member(struct firefox *f)
{
	bool taken;

	OW_TRY(fx_read_table(f, &f->own, &taken));
	if (taken)
		return OW_OK;
	if (json_key_is(f->p->text, "name")) {
		f->thread.name = json_text_value(f->p, f->b, &f->text);
	} else if (json_key_is(f->p->text, "processName")) {
		f->thread.process = json_text_value(f->p, f->b, &f->text);
	} else if (json_key_is(f->p->text, "processType")) {
		f->thread.process_type = json_text_value(f->p, f->b, &f->text);
	} else if (json_key_is(f->p->text, "pid")) {
		f->thread.pid = read_id(f);
	} else if (json_key_is(f->p->text, "tid")) {
		f->thread.tid = read_id(f);
	} else if (json_key_is(f->p->text, "libs")) { /* up to version 40 */
		f->lib_count = 0;
		return read_list(f, read_lib);
	} else {
		(void)fx_skip(f);
	}
	return f->b->status;
}

static ow_status read_thread(struct firefox *f)
{
	enum json_token token = TOKEN_CLOSE;

	fx_tables_clear(f, &f->own);
	f->thread = (struct fx_thread){ .pid = MODEL_NO_ID, .tid = MODEL_NO_ID };
	while (!f->truncated && (token = json_pull_next(f->p)) == TOKEN_KEY)
		OW_TRY(read_thread_member(f));
	if (!f->truncated && token != TOKEN_CLOSE)
		fx_cut(f);
	return fx_add_thread(f);
}

static ow_status remember_profile(struct firefox *f, uint64_t offset)
{
	if (!vec_push(f->mem, f->profiles, f->profile_count, f->profile_cap, offset))
		return builder_no_memory(f->b);
	return OW_OK;
}

/* Remembers a process, which has its own profile. */
static ow_status remember_process(struct firefox *f)
{
	uint64_t offset = f->p->offset;

	(void)fx_skip(f);
	return remember_profile(f, offset);
}

static ow_status read_shared(struct firefox *f)
{
	enum json_token token;
	bool taken;

	if (json_pull_next(f->p) != TOKEN_OBJECT)
		return OW_OK;
	while (!f->truncated && (token = json_pull_next(f->p)) != TOKEN_CLOSE) {
		if (token != TOKEN_KEY) {
			fx_cut(f);
			break;
		}
		OW_TRY(fx_read_table(f, &f->shared, &taken));
		if (!taken)
			(void)fx_skip(f);
	}
	return f->b->status;
}

static ow_status read_libs(struct firefox *f)
{
	return read_list(f, read_lib);
}

static ow_status read_threads(struct firefox *f)
{
	return read_list(f, read_thread);
}

static ow_status read_counters(struct firefox *f)
{
	return read_list(f, fx_read_counter);
}

/* Members in this order, because each may need what earlier ones read. */
static const struct {
	const char *key;
	ow_status (*read)(struct firefox *f);
} members[] = {
	{ "meta", read_meta },	     { "libs", read_libs },	    { "shared", read_shared },
	{ "threads", read_threads }, { "counters", read_counters },
};

static void begin_profile(struct firefox *f)
{
	f->base_ns = 0;
	f->interval_ns = FX_MILLION;
	f->untimed = false;
	f->cpu_scale = 3;
	f->category_count = f->default_category = f->lib_count = f->track_count = 0;
	fx_tables_clear(f, &f->shared);
	fx_stacks_release(f, &f->shared_stacks);
}

static ow_status end_profile(struct firefox *f)
{
	for (size_t i = 0; i < f->category_count; i++)
		if (f->categories[i].sum &&
		    !name_sums_add(&f->by_category, f->categories[i].name, f->categories[i].sum))
			return builder_no_memory(f->b);
	return OW_OK;
}

static ow_status read_profile(struct firefox *f, uint64_t offset)
{
	uint64_t at[ARRAY_COUNT(members)] = { 0 };
	enum json_token token;
	unsigned around = 0; /* the old panel of DevTools wrote an object around the profile */
	bool cut = f->truncated;

	begin_profile(f);
	f->truncated = false;
	json_pull_seek(f->p, offset);
	if (json_pull_next(f->p) != TOKEN_OBJECT)
		return error_at(f->ctx->err, OW_E_FORMAT, f->p->offset,
				"%s: not a Firefox profile, which is a JSON object",
				f->ctx->in->name);
	while (!f->truncated) {
		size_t i = 0;

		token = json_pull_next(f->p);
		if (token == TOKEN_CLOSE && !around--)
			break;
		if (token == TOKEN_CLOSE)
			continue;
		if (token != TOKEN_KEY) {
			fx_cut(f);
			break;
		}
		if (!around && json_key_is(f->p->text, "profile")) {
			token = json_pull_next(f->p);
			around += token == TOKEN_OBJECT;
			if (token == TOKEN_ARRAY)
				(void)fx_skip(f);
			continue;
		}
		while (i < ARRAY_COUNT(members) && !json_key_is(f->p->text, members[i].key))
			i++;
		if (i == ARRAY_COUNT(members) && json_key_is(f->p->text, "processes")) {
			OW_TRY(read_list(f, remember_process));
			continue;
		}
		if (i < ARRAY_COUNT(members)) {
			token = json_pull_next(f->p);
			at[i] = f->p->offset;
			if (token != TOKEN_OBJECT && token != TOKEN_ARRAY)
				continue;
		}
		(void)fx_skip(f);
	}
	cut |= f->truncated;
	for (size_t i = 0; i < ARRAY_COUNT(members); i++) {
		if (!at[i])
			continue;
		f->truncated = false; /* a cut member is used up to the cut; one note is enough */
		json_pull_seek(f->p, at[i]);
		OW_TRY(members[i].read(f));
		OW_TRY(f->p->window.status);
	}
	f->truncated = cut;
	return end_profile(f);
}

static void add_notes_and_facts(struct firefox *f)
{
	const struct {
		uint64_t count;
		enum note_kind kind;
		const char *text;
	} notes[] = {
		{ f->nameless, NOTE_MISSING,
		  "functions have no name, only an address; open the profile on the machine where "
		  "it "
		  "was recorded, or let samply look up names: samply record --presymbolicate" },
		{ f->idle, NOTE_INFO,
		  "samples of a thread that waited, category Idle, are left out" },
		{ f->bad_stacks, NOTE_DAMAGED,
		  "stacks, callers or frames that are not in the tables are left out" },
		{ f->bad_frames, NOTE_DAMAGED,
		  "frames whose function is not in the table have no name" },
		{ f->bad_strings, NOTE_DAMAGED,
		  "texts that are not in the table of strings are left empty" },
		{ f->unequal, NOTE_DAMAGED, "threads whose samples and times differ in number" },
		{ f->no_time, NOTE_DAMAGED,
		  "samples and markers without a time; such markers are left out" },
		{ f->rounded, NOTE_REPAIRED, "weights that are not whole numbers are rounded" },
		{ f->unfinished, NOTE_REPAIRED,
		  "markers that start and never end: they end with their thread" },
		{ f->unmatched, NOTE_REPAIRED,
		  "markers that end without a start: they are points in time" },
	};
	struct builder *b = f->b;

	if (f->truncated)
		builder_note(b, NOTE_TRUNCATED, f->truncated_at,
			     "the document ends or is damaged here; what comes before is used");
	for (size_t i = 0; i < ARRAY_COUNT(notes); i++)
		if (notes[i].count)
			builder_note_many(b, notes[i].kind, OW_NO_OFFSET, notes[i].count, "%s",
					  notes[i].text);
	fact_text(b, (fact_id){ 0 }, "kind", STR("firefox"));
	fact_int(b, (fact_id){ 0 }, "version", f->version);
	fact_int(b, (fact_id){ 0 }, "processed_version", f->processed_version);
	fact_text(b, (fact_id){ 0 }, "product", model_str(b->m, f->product));
	fact_int(b, (fact_id){ 0 }, "processes", (int64_t)f->profile_count);
	fact_int(b, (fact_id){ 0 }, "threads", f->threads);
	fact_int(b, (fact_id){ 0 }, "samples", f->samples);
	fact_int(b, (fact_id){ 0 }, "markers", f->markers);
	fact_int(b, (fact_id){ 0 }, "counter_samples", f->counters);
	fact_sums(b, (fact_id){ 0 }, "weight_by_category", &f->by_category);
}

/* Finds steps, phases and ops, as for events of a trace. */
static ow_status interpret_events(struct firefox *f, struct interpret_input *in)
{
	struct model *m = f->b->m;
	str_id title = f->imported_from.v ? f->imported_from : f->product;

	if (!title.v)
		title = builder_cstr(f->b, "Firefox Profiler");
	OW_TRY(f->b->status);
	if (!f->markers) {
		m->source.producer[f->b->source.v] = title;
		return OW_OK;
	}
	in->title = model_str(m, title).ptr;
	in->producer = "other";
	in->stacks = m->event.stack != NULL;
	return interpret_trace(f->b, in);
}

static ow_status read_file(struct firefox *f)
{
	struct model *m = f->b->m;
	struct interpret_input in = { .source = f->b->source,
				      .input = f->ctx->in,
				      .options = f->ctx->options,
				      .draft = &f->draft,
				      .first_track = m->track.count,
				      .first_flow = m->flow.count };

	event_draft_init(&f->draft, f->b);
	OW_TRY(remember_profile(f, 0));
	for (size_t i = 0; i < f->profile_count; i++)
		OW_TRY(read_profile(f, f->profiles[i]));
	OW_TRY(f->b->status);
	if (!f->samples && !f->markers && !f->counters)
		return error_at(
			f->ctx->err, OW_E_FORMAT, f->truncated ? f->truncated_at : OW_NO_OFFSET,
			"%s: this Firefox profile has no samples, markers or counters; check that "
			"the recording ran. Profiles from before 2016 cannot be read",
			f->ctx->in->name);
	add_notes_and_facts(f);
	return interpret_events(f, &in);
}

static void release(struct firefox *f)
{
	event_draft_release(&f->draft);
	json_pull_release(f->p);
	mem_free(f->mem, f->p, sizeof(*f->p));
	buf_release(&f->text);
	perf_names_release(&f->names);
	name_sums_release(&f->by_category);
	fx_stacks_release(f, &f->shared_stacks);
	fx_stacks_release(f, &f->own_stacks);
	fx_tables_release(f, &f->shared);
	fx_tables_release(f, &f->own);
	mem_free(f->mem, f->profiles, f->profile_cap * sizeof(*f->profiles));
	mem_free(f->mem, f->categories, f->category_cap * sizeof(*f->categories));
	mem_free(f->mem, f->libs, f->lib_cap * sizeof(*f->libs));
	mem_free(f->mem, f->tracks, f->track_cap * sizeof(*f->tracks));
	mem_free(f->mem, f->payloads, f->payload_cap * sizeof(*f->payloads));
	mem_free(f->mem, f, sizeof(*f));
}

static ow_status load_firefox(struct import_ctx *ctx)
{
	struct mem *mem = ctx->b->m->mem;
	struct firefox *f = mem_zalloc(mem, sizeof(*f));
	ow_status status;

	if (!f)
		return builder_no_memory(ctx->b);
	f->ctx = ctx;
	f->b = ctx->b;
	f->mem = mem;
	f->p = mem_alloc(mem, sizeof(*f->p));
	if (!f->p) {
		mem_free(mem, f, sizeof(*f));
		return builder_no_memory(ctx->b);
	}
	buf_init(&f->text, mem);
	perf_names_init(&f->names, ctx->b);
	name_sums_init(&f->by_category, mem);
	json_pull_init(f->p, ctx->in, ctx->err);
	status = read_file(f);
	release(f);
	return status;
}

const struct importer import_firefox = {
	.name = "firefox",
	.summary = "profiles of the Firefox Profiler: Firefox, samply, Python, perf script gecko",
	.extensions = "*.json, *.json.gz",
	.role = ROLE_TRACE,
	.sniff = sniff_firefox,
	.load = load_firefox,
};
