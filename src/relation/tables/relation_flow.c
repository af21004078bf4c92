/* relation_flow.c: the relation `flow`: one end of an arrow between events, as in the source. */
#include "relation/columns.h"

static const struct path_column derived[] = {
	{ "track", "track.name", "name of the track" },
	{ "process", "track.process", NULL },
	{ "rank", "track.source.rank", NULL },
	{ NULL, NULL, NULL },
};

/* Fills the id of a flow, which is a number or a text. */
static ow_status fill_key(const struct table_part *p, const struct table_column *c, uint64_t first,
			  uint32_t n, struct table_vec *out, struct ow_error *err)
{
	const struct model *m = p->m;
	struct str *to = out->values;

	(void)c;
	for (uint32_t i = 0; i < n; i++) {
		uint64_t id = m->flow.id[first + 1 + i];
		char number[24];
		int len;

		if (id & MODEL_TEXT_ID && (id ^ MODEL_TEXT_ID) < m->strings.count) {
			to[i] = m->strings.text[id ^ MODEL_TEXT_ID];
			continue;
		}
		len = snprintf(number, sizeof(number), "%" PRIu64, id);
		to[i] = arena_str(out->scratch, str_make(number, (size_t)len));
		if (!to[i].ptr)
			return error_no_memory(err);
	}
	return OW_OK;
}

static ow_status describe(struct table *t, struct ow_error *err)
{
	OW_TRY(columns_add(t,
			   &(struct table_column){ .name = "key",
						   .doc = "id of the flow; flows of one (source, "
							  "category, key) belong together"
							  "belong together",
						   .type = TYPE_TEXT,
						   .fill = fill_key },
			   err));
	return columns_paths(t, TABLE_flow, derived, err);
}

const struct table_source relation_flow = {
	.name = "flow",
	.doc = "one end of an arrow between events, as the source gives it",
	.is_table = true,
	.table = TABLE_flow,
	.describe = describe,
};
