/*
 * tf_device.h: what tfprof reads out of a device's name. Lower-cased names throughout: "canonical"
 * devices are the executors "…/device:gpu:0", "…/cpu:1"; "…/stream:all" is what ran on a GPU.
 */
#ifndef IMPORT_TF_DEVICE_H
#define IMPORT_TF_DEVICE_H

#include "base/buf.h"
#include "base/str.h"

/* Lower-cases ASCII letters into `to`. */
void tf_device_lower(struct buf *to, struct str name);
/* An executor: ends in "/", one of device:gpu gpu device:cpu cpu device:sycl, ":" and a number. */
bool tf_device_is_canonical(struct str lower);
bool tf_device_is_accelerator(struct str lower);
bool tf_device_is_all_streams(struct str lower);
/* The host that feeds a canonical device: "gpu:1" becomes "cpu:0". */
void tf_device_host(struct buf *to, struct str lower);

#endif
