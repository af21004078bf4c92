/*
 * meaning.c: runs the passes of meaning.h over the rows of one source: looks around once, finds the
 * producer, and has it fill in what is its own.
 */
#include "import/mean_int.h"

#define PRODUCER(name) &producer_##name,
static const struct producer *const producers[] = {
#include "import/producers.def"
};
#undef PRODUCER

/* ---- questions that producers ask ---- */

bool mean_on_device(const struct meaning *x, uint32_t track)
{
	switch ((enum track_kind)x->m->track.kind[track]) {
	case TRACK_STREAM:
	case TRACK_COPY:
	case TRACK_ACCELERATOR:
	case TRACK_COMMUNICATION:
		return true;
	default:
		return false;
	}
}

bool mean_on_host(const struct meaning *x, uint32_t track)
{
	return x->m->track.kind[track] == TRACK_HOST || x->m->track.kind[track] == TRACK_LOADER;
}

bool mean_has_process(const struct meaning *x, bool (*test)(struct str process))
{
	for (uint32_t t = x->first_track; t < x->last_track; t++)
		if (test(mean_process(x, t)))
			return true;
	return false;
}

bool mean_has_name(const struct meaning *x, bool (*test)(struct str name))
{
	for (size_t i = 0; i < x->names.count; i++)
		if (test(model_str(x->m, (str_id){ x->names.list[i] })))
			return true;
	return false;
}

struct name_class mean_new_name_class(struct meaning *x, str_id name)
{
	struct name_class class = classify_name(model_str(x->m, name));

	if (name.v < x->string_count && !x->shared) {
		x->name_of[name.v] = class;
		x->name_known[name.v] = 1;
	}
	return class;
}

/* ---- a look around ---- */

static ow_status make_arrays(struct meaning *x)
{
	x->string_count = x->m->strings.count;
	x->tracks = ARENA_ARRAY(&x->scratch, struct mean_track,
				(size_t)(x->last_track - x->first_track) + 1);
	x->category_of = ARENA_ARRAY(&x->scratch, uint8_t, x->string_count);
	x->name_of = ARENA_ARRAY(&x->scratch, struct name_class, x->string_count);
	x->name_known = ARENA_ARRAY(&x->scratch, uint8_t, x->string_count);
	x->first_of = ARENA_ARRAY(&x->scratch, uint32_t, x->string_count);
	if (!x->tracks || !x->category_of || !x->name_of || !x->name_known || !x->first_of)
		return mean_no_memory(x);
	return OW_OK;
}

/* CATEGORY_NONE, which is 0, means here that the text has not been looked at. */
static enum category_class class_of(struct meaning *x, str_id category)
{
	struct category_meaning meaning;

	if (!category.v)
		return CATEGORY_NONE;
	if (!x->category_of[category.v]) {
		meaning = category_meaning(model_str(x->m, category));
		x->category_of[category.v] = meaning.class;
		x->kineto_categories |= meaning.kineto;
	}
	return (enum category_class)x->category_of[category.v];
}

static void survey_categories(struct meaning *x, struct mean_track *track)
{
	const str_id *category = x->m->event.category;
	str_id last = { UINT32_MAX };

	for (uint32_t i = track->first; category && i < track->last; i++) {
		if (category[i].v == last.v)
			continue;
		track->categories |= 1u << class_of(x, category[i]);
		last = category[i];
	}
	if (!category)
		track->categories = 1u << CATEGORY_NONE;
	x->categories |= track->categories;
}

static ow_status survey_names(struct meaning *x, const struct mean_track *track)
{
	const op_id *op = x->m->event.op; /* strings, still */
	const str_id *own = x->m->event.name;
	uint32_t *first_of = x->first_of;

	for (uint32_t i = track->first; i < track->last; i++) {
		uint32_t name = own && own[i].v ? own[i].v : op[i].v;

		if (OW_LIKELY(first_of[name]))
			continue;
		first_of[name] = i;
		if (name)
			OW_TRY(mean_rows_add(x, &x->names, name));
	}
	return OW_OK;
}

static ow_status survey(struct meaning *x)
{
	const track_id *track = x->m->event.track;
	uint32_t last;

	for (uint32_t i = x->first_event; i < x->last_event; i = last) {
		struct mean_track *t;

		for (last = i + 1; last < x->last_event && track[last].v == track[i].v; last++)
			;
		if (track[i].v < x->first_track)
			continue;
		t = mean_track(x, track[i].v);
		*t = (struct mean_track){ .first = i, .last = last };
		survey_categories(x, t);
		OW_TRY(survey_names(x, t));
	}
	return OW_OK;
}

/* ---- the producer ---- */

static ow_status find_producer(struct meaning *x)
{
	const char *known = x->in->producer;

	for (size_t i = 0; i < ARRAY_COUNT(producers) && !x->producer; i++)
		if (known ? strcmp(producers[i]->name, known) == 0 : producers[i]->recognise(x))
			x->producer = producers[i];
	OW_ASSERT(x->producer);
	snprintf(x->title, sizeof(x->title), "%s",
		 x->in->title ? x->in->title : x->producer->title);
	return OW_OK;
}

static void tell_producer(struct meaning *x)
{
	source_id kept = x->b->source;

	x->b->source = x->source;
	x->m->source.producer[x->source.v] = builder_cstr(x->b, x->title);
	fact_text(x->b, (fact_id){ 0 }, "producer", str_from(x->title));
	x->b->source = kept;
}

static void find_rank(struct meaning *x)
{
	int32_t *rank = &x->m->source.rank[x->source.v];

	if (*rank < 0)
		*rank = mean_file_rank(model_str(x->m, x->m->source.path[x->source.v]));
}

/* ---- all ---- */

static void find_devices(struct meaning *x)
{
	for (uint32_t t = x->first_track; t < x->last_track; t++) {
		const struct mean_track *track = mean_track(x, t);

		if (!mean_on_device(x, t))
			continue;
		for (uint32_t e = track->first; e < track->last && !x->has_device; e++)
			x->has_device = mean_is_slice(x, e);
	}
}

/* Sequence numbers of operators are PyTorch's, whose producer takes them. */
static void drop_sequences(struct meaning *x)
{
	if (!x->m->event.correlation || !(x->categories & 1u << CATEGORY_OPERATOR) ||
	    x->producer == &producer_kineto)
		return;
	for (uint32_t e = x->first_event; e < x->last_event; e++)
		if (mean_category(x, e) == CATEGORY_OPERATOR)
			x->m->event.correlation[e] = 0;
}

static ow_status run(struct meaning *x)
{
	OW_TRY(make_arrays(x));
	OW_TRY(survey(x));
	OW_TRY(find_producer(x));
	find_rank(x);
	if (x->producer->tracks)
		OW_TRY(x->producer->tracks(x));
	if (x->producer->ops)
		OW_TRY(x->producer->ops(x));
	OW_TRY(mean_make_ops(x));
	find_devices(x);
	drop_sequences(x);
	if (x->producer->links)
		OW_TRY(x->producer->links(x));
	OW_TRY(mean_link_flows(x));
	OW_TRY(mean_steps(x));
	OW_TRY(mean_phases(x));
	OW_TRY(mean_stacks(x));
	if (x->producer->memory)
		OW_TRY(x->producer->memory(x));
	tell_producer(x);
	return builder_status(x->b);
}

ow_status trace_meaning(struct builder *b, const struct meaning_input *in)
{
	struct model *m = b->m;
	struct meaning x = { .b = b,
			     .m = m,
			     .mem = m->mem,
			     .err = b->err,
			     .in = in,
			     .source = in->source,
			     .first_event = in->first_event,
			     .last_event = m->event.count,
			     .first_track = in->first_track,
			     .last_track = m->track.count,
			     .first_flow = in->first_flow,
			     .last_flow = m->flow.count,
			     .first_link = in->first_link ? in->first_link : m->link.count };
	ow_status status;

	arena_init(&x.scratch, m->mem);
	status = run(&x);
	mem_free(m->mem, x.markers.list, x.markers.cap * sizeof(*x.markers.list));
	mem_free(m->mem, x.drafts, x.draft_cap * sizeof(*x.drafts));
	mean_rows_release(&x, &x.names);
	arena_release(&x.scratch);
	return status;
}
