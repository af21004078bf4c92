/*
 * import_pprof_legacy.c: the forms that pprof read before profile.proto: CPU profiles of gperftools and early Go
 * (binary words), heap, growth, contention, thread and count profiles (text), and Java's. See pprof_legacy.h for
 * the parts. Programs that the addresses are in are not opened; what pprof drops by the names of its own
 * functions stays.
 */
#include "import/pprof_legacy.h"

static int sniff(const struct sniff *sniff)
{
	struct legacy_words how;
	char text[4096];

	if (legacy_words_fit(sniff->head, &how))
		return 90;
	return legacy_text_fits(text_head(str_first(sniff->head, 4096), text, sizeof(text))) ? 95
											     : 0;
}

/* ---- samples ---- */

ow_status legacy_no_memory(struct legacy *l)
{
	return import_no_memory(l->ctx);
}

void legacy_note_bad(struct legacy *l, uint64_t offset)
{
	l->bad_offset = l->bad++ ? l->bad_offset : offset;
}

void legacy_type(struct legacy *l, const char *name, struct str unit)
{
	if (l->type_count == LEGACY_TYPES)
		return;
	l->types[l->type_count].name = builder_cstr(l->b, name);
	l->types[l->type_count++].unit = builder_str(l->b, unit);
}

ow_status legacy_sample_begin(struct legacy *l, const int64_t *values)
{
	void *samples = l->samples;

	if (!mem_grow(l->mem, &samples, &l->sample_cap, l->sample_count + 1, sizeof(*l->samples)))
		return legacy_no_memory(l);
	l->samples = samples;
	l->samples[l->sample_count] = (struct legacy_sample){ .first = l->address_count };
	if (values)
		memcpy(l->samples[l->sample_count].value, values, LEGACY_TYPES * sizeof(*values));
	l->sample_count++;
	return OW_OK;
}

/* Return addresses lie behind the call that is meant. */
ow_status legacy_sample_address(struct legacy *l, uint64_t address)
{
	struct legacy_sample *s = &l->samples[l->sample_count - 1];
	void *addresses = l->addresses;

	if (s->count == LEGACY_FRAMES_MAX) {
		l->cut++;
		return OW_OK;
	}
	if (!mem_grow(l->mem, &addresses, &l->address_cap, l->address_count + 1,
		      sizeof(*l->addresses)))
		return legacy_no_memory(l);
	l->addresses = addresses;
	if (address && !l->named && (s->count || !l->leaf_is_exact))
		address--;
	l->addresses[l->address_count++] = address;
	s->count++;
	return OW_OK;
}

/* ---- rows ---- */

/* Times become nanoseconds. */
static struct str unit_of(struct str unit, int64_t *factor)
{
	*factor = 1;
	if (str_eq(unit, STR("nanoseconds")))
		return STR("ns");
	if (str_eq(unit, STR("microseconds"))) {
		*factor = 1000;
		return STR("ns");
	}
	return unit.len ? unit : STR("count");
}

static void add_rows(struct legacy *l, const struct legacy_sample *s, const metric_id *metrics,
		     const int64_t *factors)
{
	stack_id stack = { 0 };
	str_id label = { 0 };
	char text[40];

	for (uint32_t i = s->count; i--;)
		stack = builder_stack(l->b, stack, legacy_frame(l, l->addresses[s->first + i]));
	if (s->block > 0) {
		snprintf(text, sizeof(text), "bytes=%" PRId64, s->block);
		label = builder_cstr(l->b, text);
	}
	if (!s->track.v && !l->track.v)
		l->track = builder_track(
			l->b, &(struct track_row){ .kind = TRACK_HOST, .source = l->b->source });
	for (size_t i = 0; i < l->type_count; i++)
		if (s->value[i])
			builder_add_sample(l->b, &(struct sample_row){
							 .ts_ns = TIME_UNKNOWN,
							 .weight = (int64_t)((uint64_t)s->value[i] *
									     (uint64_t)factors[i]),
							 .metric = metrics[i],
							 .stack = stack,
							 .track = s->track.v ? s->track : l->track,
							 .label = label });
}

static ow_status add_samples(struct legacy *l)
{
	metric_id metrics[LEGACY_TYPES] = { { 0 } };
	int64_t factors[LEGACY_TYPES] = { 0 };

	for (size_t i = 0; i < l->type_count; i++) {
		struct str unit = unit_of(model_str(l->b->m, l->types[i].unit), &factors[i]);

		metrics[i] = builder_metric(l->b, model_str(l->b->m, l->types[i].name), unit);
	}
	if (l->type_count)
		l->b->m->metric.is_default[metrics[l->type_count - 1].v] = 1;
	for (size_t i = 0; i < l->sample_count && l->b->status == OW_OK; i++)
		add_rows(l, &l->samples[i], metrics, factors);
	return l->b->status;
}

static void tell(struct legacy *l)
{
	struct builder *b = l->b;
	const fact_id top = { 0 };
	size_t used = 0;
	fact_id list;

	if (l->bad)
		builder_note_many(b, NOTE_DAMAGED, l->bad_offset, l->bad,
				  "a line that makes no sense in a profile, left out");
	if (l->cut)
		builder_note_many(b, NOTE_DROPPED, OW_NO_OFFSET, l->cut,
				  "an address beyond the first %d of its stack, left out",
				  LEGACY_FRAMES_MAX);
	for (size_t i = 0; i < l->place_count; i++)
		used += l->places[i].placed;
	fact_text(b, top, "kind", str_from(l->kind ? l->kind : "?"));
	fact_text(b, top, "format", l->words ? STR("legacy: binary words") : STR("legacy: text"));
	fact_int(b, top, "samples", (int64_t)l->sample_count);
	fact_int(b, top, "locations", (int64_t)used);
	fact_int(b, top, "mappings", (int64_t)l->map_count);
	fact_int(b, top, "duration_nanos", l->duration);
	fact_int(b, top, "period", l->period);
	list = fact_list(b, top, "sample_types");
	for (size_t i = 0; i < l->type_count; i++) {
		fact_id pair = fact_list(b, list, NULL);
		struct str unit = model_str(b->m, l->types[i].unit);

		fact_text(b, pair, NULL, model_str(b->m, l->types[i].name));
		fact_text(b, pair, NULL, unit);
	}
	list = fact_list(b, top, "sum_values");
	for (size_t i = 0; i < l->type_count; i++) {
		int64_t sum = 0;

		for (size_t k = 0; k < l->sample_count; k++)
			sum = wrap_add(sum, l->samples[k].value[i]);
		fact_int(b, list, NULL, sum);
	}
}

static ow_status read_all(struct legacy *l, struct text_lines *lines)
{
	struct str head = window_peek(&lines->window, 0, 64);
	struct legacy_words how;
	uint64_t end = 0;

	if (!head.ptr)
		return lines->window.status;
	l->words = !lines->utf16 && legacy_words_fit(head, &how);
	if (l->words) {
		OW_TRY(legacy_words_read(l, &lines->window, &end));
		text_lines_seek(lines, end);
	}
	OW_TRY(legacy_text_read(l, lines));
	OW_TRY(add_samples(l));
	tell(l);
	if (!l->sample_count)
		builder_note(l->b, NOTE_MISSING, OW_NO_OFFSET, "there is no sample in this file");
	return l->b->status;
}

static ow_status load(struct import_ctx *ctx)
{
	struct mem *mem = ctx->b->m->mem;
	struct legacy l = { .ctx = ctx, .b = ctx->b, .mem = mem };
	struct text_lines lines;
	ow_status status;

	map_init(&l.by_address, mem);
	status = text_lines_init(&lines, ctx->in, ctx->err);
	if (status == OW_OK)
		status = read_all(&l, &lines);
	text_lines_release(&lines);
	mem_free(mem, l.samples, l.sample_cap * sizeof(*l.samples));
	mem_free(mem, l.addresses, l.address_cap * sizeof(*l.addresses));
	mem_free(mem, l.places, l.place_cap * sizeof(*l.places));
	mem_free(mem, l.maps, l.map_cap * sizeof(*l.maps));
	map_release(&l.by_address);
	return status;
}

const struct importer import_pprof_legacy = {
	.name = "pprof_legacy",
	.summary = "pprof's older forms: CPU, heap, contention and thread profiles of gperftools, "
		   "jemalloc and Go",
	.extensions = "*.prof *.heap",
	.role = ROLE_TRACE,
	.sniff = sniff,
	.load = load,
};
