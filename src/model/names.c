/*
 * names.c: words for the kinds of devices, tracks and notes; the views and `info --json` call it. A number beyond the
 * enum, as a newer or damaged file may have, reads as "unknown". Words are part of the output and are not translated.
 */
#include "model/names.h"

static const char *name_of(const char *const *names, size_t count, uint8_t kind)
{
	return kind < count && names[kind] ? names[kind] : "unknown";
}

const char *device_kind_name(uint8_t kind)
{
	static const char *const names[] = {
		[DEVICE_UNKNOWN] = "unknown", [DEVICE_CPU] = "cpu",	[DEVICE_GPU] = "gpu",
		[DEVICE_TPU] = "tpu",	      [DEVICE_OTHER] = "other",
	};

	return name_of(names, ARRAY_COUNT(names), kind);
}

const char *track_kind_name(uint8_t kind)
{
	static const char *const names[] = {
		[TRACK_OTHER] = "other",     [TRACK_HOST] = "host",
		[TRACK_DEVICE] = "device",   [TRACK_ACCELERATOR] = "accelerator",
		[TRACK_STREAM] = "stream",   [TRACK_COPY] = "copy",
		[TRACK_LOADER] = "loader",   [TRACK_COMMUNICATION] = "communication",
		[TRACK_DERIVED] = "derived", [TRACK_SPAN] = "span",
		[TRACK_FRAMES] = "frames",   [TRACK_ASYNC] = "async",
	};

	return name_of(names, ARRAY_COUNT(names), kind);
}

const char *note_kind_name(uint8_t kind)
{
	static const char *const names[] = {
		[NOTE_INFO] = "info",		[NOTE_REPAIRED] = "repaired",
		[NOTE_DROPPED] = "dropped",	[NOTE_DAMAGED] = "damaged",
		[NOTE_TRUNCATED] = "truncated", [NOTE_MISSING] = "missing",
	};

	return name_of(names, ARRAY_COUNT(names), kind);
}
