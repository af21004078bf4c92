/*
 * hlo_cost.h: reads an HloProto, a program as XLA compiled it, and tells of every instruction that can become a
 * kernel what it is and what a run of it costs: float operations, and bytes read and written. Used by the importer
 * of XSpace. It does not know layouts, caches or how often a loop goes round.
 */
#ifndef IMPORT_HLO_COST_H
#define IMPORT_HLO_COST_H

#include "base/arena.h"
#include "base/error.h"
#include "base/str.h"

/* Texts are in the message or constant. */
struct hlo_instruction {
	struct str name, category;
	struct str scope; /* op_name: where it is in the framework's scopes */
	struct str file;
	int32_t line;
	int64_t flops, accessed; /* of one run; 0 = none or unknown */
};

typedef ow_status (*hlo_fn)(void *arg, const struct hlo_instruction *instruction);

/* OW_E_NO_MEMORY, or what `take` returned. *damaged: some of it could not be read. */
ow_status hlo_read(struct str proto, struct arena *scratch, hlo_fn take, void *arg, bool *damaged);

#endif
