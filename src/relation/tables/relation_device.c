/* relation_device.c: the relation `device`: a processor, or a stream or copy engine that reports as a device. */
#include "relation/columns.h"

const struct table_source relation_device = {
	.name = "device",
	.doc = "a processor, or a stream or copy engine that the source reports as a device",
	.is_table = true,
	.table = TABLE_device,
};
