/*
 * xspace_counters.c: values of counters: the line that TPUs and GPUs have for them, and planes of a chip. An event is a
 * counter at a time, its numbers are the series of it. What counters mean is not known here.
 */
#include "import/xspace_int.h"

bool xspace_has_counters(const struct xplane *plane, const struct xline *line)
{
	return str_eq(line->name, STR("_counters_")) || str_starts(plane->name, STR("#Chip"));
}

/* Numbers that say which counter it is, not how much. */
static bool is_identity(struct str stat)
{
	return !stat.len || stat.ptr[0] == '_' || str_ends(stat, STR("_id"));
}

ow_status xspace_take_counter(struct xspace *x, const struct xplane *plane, str_id name,
			      struct pb message, track_id track, int64_t ts_ns)
{
	struct xvalue value;
	struct pb_field f;

	while (pb_next(&message, &f)) {
		struct str stat;
		uint32_t row;

		if (f.tag != PB_TAG(4, PB_BYTES) || !xvalue_read(pb_message(&f), &value) ||
		    value.field < 2 || value.field > 4)
			continue;
		row = xids_find(&plane->stat_ids, value.stat);
		stat = row ? plane->stats[row].name : STR("");
		if (is_identity(stat))
			continue;
		builder_add_counter(x->b, &(struct counter_row){ .track = track,
								 .name = name,
								 .series = xspace_text(x, stat),
								 .ts_ns = ts_ns,
								 .value = xvalue_real(&value) });
	}
	return builder_status(x->b);
}
