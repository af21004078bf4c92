/*
 * interpret_names.h: classifies events by their names: whether a call of the host waits for data, synchronises or
 * allocates, and whether work of a device copies or communicates. Used by the interpretation of traces, and for the ops
 * of TensorFlow's profiles (import/tensorflow/tf_phases.c).
 */
#ifndef IMPORT_INTERPRET_NAMES_H
#define IMPORT_INTERPRET_NAMES_H

#include "base/base.h"

enum host_name {
	HOST_PLAIN,
	HOST_INPUT,	    /* a wait for input data */
	HOST_PIPELINE,	    /* work that prepares input data ahead */
	HOST_COMMUNICATION, /* a communication that lasts until all ranks have taken part */
	HOST_ENQUEUE,	    /* a call that only starts a communication on a device */
	HOST_SYNC,
	HOST_SLEEP, /* a call of the operating system that waits */
	HOST_ALLOCATION,
	HOST_INITIALISATION,
	HOST_EXECUTOR, /* TensorFlow's executor, which starts ready work */
	HOST_MARKER,   /* a step marker, which does no work itself */
	HOST_WRAPPER,  /* a wrapper around the slices that do the work */
};

enum device_name {
	DEVICE_PLAIN,
	DEVICE_COMMUNICATION,
	DEVICE_TO_DEVICE, /* copies between devices count as communication */
	DEVICE_FROM_HOST,
	DEVICE_TO_HOST,
	DEVICE_LOCAL_COPY, /* copies within a device, and memset */
	DEVICE_WAIT,
};

struct name_class {
	uint8_t host, device;
};

struct name_class classify_name(struct str name);
/* Phase of work on a device by enum device_name: values of enum event_phase. */
extern const uint8_t device_name_phases[];

#endif
