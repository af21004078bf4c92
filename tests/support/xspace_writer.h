/*
 * xspace_writer.h: writes small XSpace messages for tests: planes of lines of events, whose dictionaries are filled by
 * name as they are used. One plane at a time; xw_end_plane writes it.
 */
#ifndef SUPPORT_XSPACE_WRITER_H
#define SUPPORT_XSPACE_WRITER_H

#include "wire/protobuf/pb_write.h"

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#define XW_NAMES 64

struct xw {
	struct mem *mem;
	struct buf out;	  /* the bytes of the file */
	struct buf plane; /* the plane being written */
	struct buf line;
	struct buf event;
	struct buf entry_stats[XW_NAMES];
	const char *events[XW_NAMES], *displays[XW_NAMES], *stats[XW_NAMES];
	unsigned event_count, stat_count;
};

static inline void xw_init(struct xw *w, struct mem *mem)
{
	*w = (struct xw){ .mem = mem };
	buf_init(&w->out, mem);
	buf_init(&w->plane, mem);
	buf_init(&w->line, mem);
	buf_init(&w->event, mem);
}

static inline void xw_release(struct xw *w)
{
	buf_release(&w->out);
	buf_release(&w->plane);
	buf_release(&w->line);
	buf_release(&w->event);
}

/* The id of a name in a dictionary, from 1; it is added if necessary. */
static inline unsigned xw_id(const char **names, unsigned *count, const char *name)
{
	for (unsigned i = 1; i <= *count; i++)
		if (strcmp(names[i], name) == 0)
			return i;
	assert_true(*count + 1 < XW_NAMES);
	names[++*count] = name;
	return *count;
}

static inline void xw_begin_plane(struct xw *w, int64_t id, const char *name)
{
	buf_clear(&w->plane);
	w->event_count = w->stat_count = 0;
	if (id)
		pb_put_int(&w->plane, 1, id);
	pb_put_str(&w->plane, 2, str_from(name));
}

static inline void xw_begin_line(struct xw *w, int64_t id, const char *name, int64_t timestamp_ns)
{
	buf_clear(&w->line);
	pb_put_int(&w->line, 1, id);
	pb_put_str(&w->line, 2, str_from(name));
	pb_put_int(&w->line, 3, timestamp_ns);
}

static inline void xw_end_line(struct xw *w)
{
	pb_put_str(&w->plane, 3, buf_str(&w->line));
}

/* Begins an event; name is "name" or "name|display name". */
static inline void xw_begin_event(struct xw *w, const char *name, int64_t offset_ps,
				  int64_t duration_ps)
{
	buf_clear(&w->event);
	pb_put_varint(&w->event, 1, xw_id(w->events, &w->event_count, name));
	pb_put_int(&w->event, 2, offset_ps);
	pb_put_int(&w->event, 3, duration_ps);
}

static inline void xw_end_event(struct xw *w)
{
	pb_put_str(&w->line, 4, buf_str(&w->event));
}

static inline void xw_event(struct xw *w, const char *name, int64_t offset_ps, int64_t duration_ps)
{
	xw_begin_event(w, name, offset_ps, duration_ps);
	xw_end_event(w);
}

static inline void xw_put_stat(struct xw *w, struct buf *to, uint32_t field, const char *name,
			       int64_t number, const char *text)
{
	size_t stat = pb_begin(to, field);

	pb_put_varint(to, 1, xw_id(w->stats, &w->stat_count, name));
	if (text)
		pb_put_varint(to, 7, xw_id(w->stats, &w->stat_count, text));
	else
		pb_put_int(to, 4, number);
	pb_end(to, stat);
}

/* Adds a stat to the current event. Texts are references, as profilers write them. */
static inline void xw_number(struct xw *w, const char *name, int64_t number)
{
	xw_put_stat(w, &w->event, 4, name, number, NULL);
}
static inline void xw_text(struct xw *w, const char *name, const char *text)
{
	xw_put_stat(w, &w->event, 4, name, 0, text);
}
/* Adds a stat to the plane. */
static inline void xw_plane_number(struct xw *w, const char *name, int64_t number)
{
	xw_put_stat(w, &w->plane, 6, name, number, NULL);
}

/* The stats of all events of that name. */
static inline struct buf *xw_entry(struct xw *w, const char *name)
{
	struct buf *stats = &w->entry_stats[xw_id(w->events, &w->event_count, name)];

	if (!stats->mem)
		buf_init(stats, w->mem);
	return stats;
}
static inline void xw_entry_number(struct xw *w, const char *event, const char *name,
				   int64_t number)
{
	xw_put_stat(w, xw_entry(w, event), 5, name, number, NULL);
}
static inline void xw_entry_text(struct xw *w, const char *event, const char *name,
				 const char *text)
{
	xw_put_stat(w, xw_entry(w, event), 5, name, 0, text);
}

static inline void xw_put_entry(struct xw *w, unsigned id)
{
	const char *bar = strchr(w->events[id], '|');
	size_t pair = pb_begin(&w->plane, 4), entry;

	pb_put_varint(&w->plane, 1, id);
	entry = pb_begin(&w->plane, 2);
	pb_put_varint(&w->plane, 1, id);
	pb_put_str(&w->plane, 2,
		   bar ? str_make(w->events[id], (size_t)(bar - w->events[id]))
		       : str_from(w->events[id]));
	if (bar)
		pb_put_str(&w->plane, 4, str_from(bar + 1));
	if (w->entry_stats[id].mem) {
		buf_add_str(&w->plane, buf_str(&w->entry_stats[id]));
		buf_release(&w->entry_stats[id]);
		w->entry_stats[id] = (struct buf){ 0 };
	}
	pb_end(&w->plane, entry);
	pb_end(&w->plane, pair);
}

static inline void xw_end_plane(struct xw *w)
{
	for (unsigned i = 1; i <= w->event_count; i++)
		xw_put_entry(w, i);
	for (unsigned i = 1; i <= w->stat_count; i++) {
		size_t pair = pb_begin(&w->plane, 5), entry;

		pb_put_varint(&w->plane, 1, i);
		entry = pb_begin(&w->plane, 2);
		pb_put_varint(&w->plane, 1, i);
		pb_put_str(&w->plane, 2, str_from(w->stats[i]));
		pb_end(&w->plane, entry);
		pb_end(&w->plane, pair);
	}
	pb_put_str(&w->out, 1, buf_str(&w->plane));
}

#endif
