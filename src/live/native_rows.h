/*
 * native_rows.h: native stacks of processes as rows of the model: samples of the metric `native`, how long a thread was
 * on a processor, on the same tracks as its Python stacks. They are samples of their own: the kernel takes them at other
 * moments than Python stacks are read.
 */
#ifndef LIVE_NATIVE_ROWS_H
#define LIVE_NATIVE_ROWS_H

#include "live/native_unwind.h"
#include "model/builder.h"

struct native_process;

struct native_rows {
	struct builder *b;
	struct native_process **items;
	size_t count, cap;
	metric_id metric;
	uint32_t hz;
	int64_t to_wall_ns, looked_ns;
	uint64_t samples, lost;
	struct buf name;
};

void native_rows_init(struct native_rows *rows, struct builder *b, uint32_t hz, int64_t to_wall_ns);
void native_rows_release(struct native_rows *rows);
/* Fails as native_events_open and native_unwind_new do. */
ow_status native_rows_add(struct native_rows *rows, pid_t pid, struct error *err);
/* Empties the rings. False without memory; rows are the builder's to fail. */
bool native_rows_read(struct native_rows *rows);

#endif
