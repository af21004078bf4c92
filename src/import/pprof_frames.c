/* pprof_frames.c: see pprof_file.h. A location has several frames where calls were inlined; what drop_frames names is left out. */
#include "import/pprof_file.h"

static frame_id frame_of(struct pprof_file *p, const struct pprof_location *l, uint64_t function,
			 int64_t line, bool inlined)
{
	const struct pprof_function *fn =
		pprof_find(&p->functions, function, sizeof(struct pprof_function));
	const struct pprof_mapping *m =
		pprof_find(&p->mappings, l->mapping, sizeof(struct pprof_mapping));
	struct frame_row row = { 0 };

	if (fn) {
		row.function = builder_str(p->b, pprof_text(p, fn->name));
		row.file = builder_str(p->b, pprof_text(p, fn->file));
		row.function_line = (int32_t)MAX(MIN(fn->line, INT32_MAX), 0);
	}
	row.line = (int32_t)MAX(MIN(line, INT32_MAX), 0);
	if (m)
		row.module = builder_str(p->b, pprof_text(p, m->file));
	if (!fn || !row.function.v)
		row.address = l->address;
	row.flags = inlined ? FRAME_INLINED : 0;
	return builder_frame(p->b, &row);
}

/* ---- frames that nobody wants ---- */

static bool is_dropped(struct pprof_file *p, uint64_t id)
{
	struct pprof_function *fn = pprof_find(&p->functions, id, sizeof(struct pprof_function));

	if (!fn)
		return false;
	if (fn->fate == UNASKED)
		fn->fate = pprof_prune_drops(&p->prune, pprof_text(p, fn->name)) ? DROPPED : KEPT;
	return fn->fate == DROPPED;
}

/* How many lines of a location, from the innermost, are to be dropped: up to the outermost that matches. */
static uint32_t dropped_lines(struct pprof_file *p, const struct pprof_location *l, uint32_t *all)
{
	struct pb r = pb_over(l->lines, l->size);
	uint32_t dropped = 0;
	struct pb_field f;

	*all = 0;
	while (p->prune.active && pb_next(&r, &f)) {
		uint64_t n[8];

		if (f.tag != PB_TAG(4, PB_BYTES))
			continue;
		pprof_numbers(&f, n);
		++*all;
		if (is_dropped(p, n[1]))
			dropped = *all;
	}
	return dropped;
}

uint32_t pprof_first_kept(struct pprof_file *p, uint32_t frames)
{
	bool found = false;

	for (uint32_t i = p->part_count; i--;) {
		uint32_t end = i + 1 < p->part_count ? p->parts[i + 1].first : frames;

		if (!p->parts[i].drops && !p->parts[i].beneath) {
			found = true;
		} else if (found) {
			p->pruned++;
			return p->parts[i].drops ? end : p->parts[i].first;
		}
	}
	return 0;
}

uint32_t pprof_add_location(struct pprof_file *p, uint64_t id, uint32_t count)
{
	const struct pprof_location *l =
		pprof_find(&p->locations, id, sizeof(struct pprof_location));
	uint32_t first = count, dropped, all;
	struct pb_field f;
	struct pb r;

	if (!l) {
		p->bad++;
		return count;
	}
	dropped = dropped_lines(p, l, &all);
	if (p->part_count < PPROF_FRAMES_MAX) {
		p->parts[p->part_count].first = count;
		p->parts[p->part_count].drops = dropped && dropped == all;
		p->parts[p->part_count++].beneath = dropped && dropped < all;
	}
	r = pb_over(l->lines, l->size);
	if (dropped == all) /* whether it goes depends on its callers */
		dropped = 0;
	while (pb_next(&r, &f) && count < PPROF_FRAMES_MAX) {
		uint64_t n[8];

		if (f.tag != PB_TAG(4, PB_BYTES) || (dropped && dropped--))
			continue;
		pprof_numbers(&f, n);
		p->frames[count++] = frame_of(p, l, n[1], (int64_t)n[2], false);
	}
	if (count == first && count < PPROF_FRAMES_MAX)
		p->frames[count++] = frame_of(p, l, 0, 0, false);
	p->cut += count == PPROF_FRAMES_MAX;
	return count;
}
