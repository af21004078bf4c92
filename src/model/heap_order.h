/* heap_order.h: the part of model_freeze that sorts changes of memory by time. */
#ifndef MODEL_HEAP_ORDER_H
#define MODEL_HEAP_ORDER_H

#include "model/builder.h"

ow_status order_heap(struct builder *b);

#endif
