/* names.h: words for the model's enums, as views, JSON and SQL show them. */
#ifndef MODEL_NAMES_H
#define MODEL_NAMES_H

#include "model/model.h"

const char *device_kind_name(uint8_t kind);
const char *track_kind_name(uint8_t kind);
const char *note_kind_name(uint8_t kind);

#endif
