/*
 * import_pprof.c: profile.proto, as `go tool pprof` and many profilers write it (gzip is undone before).
 * Every value of a sample is a metric of its own. There are no times of samples in such a file.
 * What drop_frames names is left out, as pprof does.
 */
#include "import/pprof_file.h"

/* ---- recognition ---- */

static bool is_value_type(const struct pb_field *f)
{
	struct pb r = pb_message(f);
	struct pb_field sub;
	bool any = false;

	while (pb_next(&r, &sub)) {
		if (sub.tag != PB_TAG(1, PB_VARINT) && sub.tag != PB_TAG(2, PB_VARINT))
			return false;
		any = true;
	}
	return any && !r.problem && f->value <= 22;
}

/* Which fields there can be, and of what kind. */
static bool is_known_field(uint32_t tag)
{
	uint32_t number = tag >> 3, wire = tag & 7;

	if (number >= 1 && number <= 6)
		return wire == PB_BYTES;
	if (number == 11)
		return wire == PB_BYTES;
	if (number == 13)
		return wire == PB_BYTES || wire == PB_VARINT;
	return number >= 7 && number <= 15 && wire == PB_VARINT;
}

static int sniff(const struct sniff *sniff)
{
	struct pb r = pb_over(sniff->head.ptr, sniff->head.len);
	unsigned types = 0, blank = 0, samples = 0, strings = 0, tables = 0;
	struct pb_field f;

	while (pb_next(&r, &f)) {
		if (!is_known_field(f.tag))
			return 0;
		if (f.tag == PB_TAG(1, PB_BYTES)) {
			if (f.value && !is_value_type(&f))
				return 0;
			types += f.value != 0;
			blank += !f.value; /* of no name: writers that lost it exist */
		}
		samples += f.tag == PB_TAG(2, PB_BYTES);
		tables += f.tag == PB_TAG(4, PB_BYTES) || f.tag == PB_TAG(5, PB_BYTES);
		if (f.tag == PB_TAG(6, PB_BYTES) && !strings++ && f.value)
			return 0; /* the first string is empty */
	}
	if (r.problem && (sniff->size == sniff->head.len || r.problem != PB_TRUNCATED))
		return 0;
	if (!types)
		return blank && samples && tables && strings ? 60 : 0;
	return samples || tables || strings ? 80 : 0;
}

/* ---- samples ---- */

static void add_label(struct pprof_file *p, const struct pb_field *f)
{
	uint64_t n[8];

	pprof_numbers(f, n);
	if (p->label.len)
		buf_puts(&p->label, ", ");
	buf_add_str(&p->label, pprof_text(p, n[1]));
	buf_add_char(&p->label, '=');
	if (n[2])
		buf_add_str(&p->label, pprof_text(p, n[2]));
	else
		buf_printf(&p->label, "%" PRId64, (int64_t)n[3]);
}

/* Numbers that may be packed: calls for each. */
struct numbers {
	const uint8_t *at, *end;
	uint64_t one;
	bool single;
};

static struct numbers numbers_of(const struct pb_field *f)
{
	if ((f->tag & 7) == PB_BYTES)
		return (struct numbers){ f->ptr, f->ptr + f->value, 0, false };
	return (struct numbers){ .one = f->value, .single = true };
}

static bool next_number(struct numbers *n, uint64_t *value)
{
	struct pb_varint v;

	if (n->single) {
		*value = n->one;
		n->single = false;
		return true;
	}
	if (n->at >= n->end)
		return false;
	v = pb_varint_at(n->at, n->end);
	if (!v.next)
		return false;
	n->at = v.next;
	*value = v.value;
	return true;
}

static void add_values(struct pprof_file *p, const int64_t *values, size_t count, stack_id stack)
{
	str_id label = builder_str(p->b, buf_str(&p->label));

	for (size_t i = 0; i < count; i++) {
		p->sums[i] = wrap_add(p->sums[i], values[i]);
		if (!values[i])
			continue;
		builder_add_sample(p->b,
				   &(struct sample_row){ .ts_ns = TIME_UNKNOWN,
							 .weight = (int64_t)((uint64_t)values[i] *
									     (uint64_t)p->scale[i]),
							 .metric = p->metrics[i],
							 .stack = stack,
							 .track = p->track,
							 .label = label });
	}
}

static ow_status read_sample(struct pprof_file *p, const struct pb_field *f)
{
	struct pb r = pb_message(f);
	uint32_t frames = 0, kept;
	size_t values = 0;
	int64_t value[PPROF_TYPES_MAX];
	stack_id stack = { 0 };
	struct pb_field sub;

	buf_clear(&p->label);
	p->part_count = 0;
	while (pb_next(&r, &sub)) {
		struct numbers n = numbers_of(&sub);
		uint64_t number;

		if (sub.tag >> 3 == 1)
			while (next_number(&n, &number))
				frames = pprof_add_location(p, number, frames);
		else if (sub.tag >> 3 == 2)
			while (next_number(&n, &number) && values < p->type_count)
				value[values++] = (int64_t)number;
		else if (sub.tag == PB_TAG(3, PB_BYTES))
			add_label(p, &sub);
	}
	kept = pprof_first_kept(p, frames);
	while (frames-- > kept)
		stack = builder_stack(p->b, stack, p->frames[frames]);
	add_values(p, value, values, stack);
	return p->label.failed ? import_no_memory(p->ctx) : p->b->status;
}

/* ---- metrics ---- */

static struct str unit_of(struct str unit, int64_t *scale)
{
	static const struct {
		const char *word, *unit;
		int64_t scale;
	} units[] = { { "nanoseconds", "ns", 1 },	 { "microseconds", "ns", 1000 },
		      { "milliseconds", "ns", 1000000 }, { "seconds", "ns", 1000000000 },
		      { "kilobytes", "bytes", 1024 },	 { "megabytes", "bytes", 1048576 } };

	*scale = 1;
	for (size_t i = 0; i < ARRAY_COUNT(units); i++)
		if (str_eq(unit, str_from(units[i].word))) {
			*scale = units[i].scale;
			return str_from(units[i].unit);
		}
	return unit.len ? unit : STR("count");
}

static void make_metrics(struct pprof_file *p)
{
	size_t shown = p->type_count - 1;

	for (size_t i = 0; i < p->type_count; i++) {
		struct str name = pprof_text(p, p->types[i].type);
		struct str unit = unit_of(pprof_text(p, p->types[i].unit), &p->scale[i]);

		p->metrics[i] = builder_metric(p->b, name.len ? name : STR("value"), unit);
		if (p->default_type && p->types[i].type == p->default_type)
			shown = i;
	}
	p->b->m->metric.is_default[p->metrics[shown].v] = 1;
	p->track = builder_track(p->b,
				 &(struct track_row){ .kind = TRACK_HOST, .source = p->b->source });
}

static void tell(struct pprof_file *p)
{
	struct builder *b = p->b;
	const fact_id top = { 0 };
	fact_id list;

	if (p->bad)
		builder_note_many(b, NOTE_DAMAGED, OW_NO_OFFSET, p->bad,
				  "a sample names a location that is not there");
	if (p->cut)
		builder_note_many(b, NOTE_DROPPED, OW_NO_OFFSET, p->cut,
				  "a stack of more than %d frames, cut there", PPROF_FRAMES_MAX);
	if (p->prune.invalid)
		builder_note(
			b, NOTE_DROPPED, OW_NO_OFFSET,
			"drop_frames or keep_frames is no regular expression: all frames stay");
	if (p->pruned)
		builder_note_many(b, NOTE_INFO, OW_NO_OFFSET, p->pruned,
				  "a stack without the frames that the profile says to drop");
	fact_text(b, top, "kind", STR("profile.proto"));
	fact_int(b, top, "samples", (int64_t)p->samples);
	fact_int(b, top, "mappings", (int64_t)p->mappings.count);
	fact_int(b, top, "locations", (int64_t)p->locations.count);
	fact_int(b, top, "functions", (int64_t)p->functions.count);
	fact_int(b, top, "strings", (int64_t)p->string_count);
	fact_int(b, top, "time_nanos", p->time);
	fact_int(b, top, "duration_nanos", p->duration);
	fact_int(b, top, "period", p->period);
	list = fact_list(b, top, "sample_types");
	for (size_t i = 0; i < p->type_count; i++) {
		fact_id pair = fact_list(b, list, NULL);

		fact_text(b, pair, NULL, pprof_text(p, p->types[i].type));
		fact_text(b, pair, NULL, pprof_text(p, p->types[i].unit));
	}
	list = fact_list(b, top, "sum_values");
	for (size_t i = 0; i < p->type_count; i++)
		fact_int(b, list, NULL, p->sums[i]);
}

static ow_status load_bytes(struct pprof_file *p)
{
	struct pb_field f;
	struct pb r;

	OW_TRY(pprof_tables_read(p));
	if (!p->type_count || !p->string_count)
		return error_at(p->ctx->err, OW_E_FORMAT, 0,
				"%s: no types of samples, or no strings, in this profile",
				p->ctx->in->name);
	make_metrics(p);
	OW_TRY(p->b->status);
	OW_TRY(pprof_prune_init(&p->prune, p->mem, pprof_text(p, p->drop_frames),
				pprof_text(p, p->keep_frames), p->ctx->err));
	r = pb_over(p->bytes, p->size);
	while (pb_next(&r, &f))
		if (f.tag == PB_TAG(2, PB_BYTES))
			OW_TRY(read_sample(p, &f));
	OW_TRY(regex_list_status(&p->prune.drop, p->ctx->err));
	OW_TRY(regex_list_status(&p->prune.keep, p->ctx->err));
	tell(p);
	return p->b->status;
}

static ow_status load(struct import_ctx *ctx)
{
	struct mem *mem = ctx->b->m->mem;
	struct pprof_file *p = mem_zalloc(mem, sizeof(*p));
	struct window w;
	ow_status status;

	if (!p)
		return error_no_memory(ctx->err);
	p->ctx = ctx;
	p->b = ctx->b;
	p->mem = mem;
	pprof_tables_init(p);
	buf_init(&p->label, mem);
	window_init(&w, ctx->in, ctx->err);
	p->size = (size_t)ctx->in->size;
	p->bytes = window_at(&w, 0, p->size);
	status = p->bytes ? load_bytes(p) : w.status;
	window_release(&w);
	pprof_tables_release(p);
	buf_release(&p->label);
	pprof_prune_release(&p->prune);
	mem_free(mem, p, sizeof(*p));
	return status;
}

const struct importer import_pprof = {
	.name = "pprof",
	.summary = "pprof's profile.proto: sampled stacks of Go and many others",
	.extensions = "*.pb.gz *.pprof *.prof",
	.role = ROLE_TRACE,
	.sniff = sniff,
	.load = load,
};
