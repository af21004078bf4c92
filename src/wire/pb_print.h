/*
 * pb_print.h: a message as text, the way Python's protobuf prints one: fields by number, one per line,
 * defaults left out, nested messages indented. The other direction is pbtxt.h.
 */
#ifndef WIRE_PB_PRINT_H
#define WIRE_PB_PRINT_H

#include "base/buf.h"
#include "wire/pb_schema.h"

/* Fields that the type does not have are passed over; a damaged message is printed as far as it goes.
 * A failure to get memory is the buffer's. */
void pb_print_text(struct buf *out, const struct pb_message *type, struct str bytes);

#endif
