/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Forgetting images that have no samples and that nothing leads to any more: mark and sweep over all that keeps cookies. Whoever keeps a
 * cookie beyond the record that it came with marks it here; what resolving and counting do with one sample does not count.
 *
 * Sync thread only, between two records.
 */
#ifndef OPD_FORGET_H
#define OPD_FORGET_H

#include "daemon/resolve/resolver.h"
#include "libop/base/compiler.h"

#define OPD_IMAGES_UNCOUNTED_MAX 65536 /* images without samples; beyond that a new one is filed under too-many-images */

#define OPD_IMAGE_BYTES_UNCOUNTED_MAX (24u << 20) /* the same by what they take, with their paths and what leads to them */
#define OPD_IMAGE_BYTES	 1024 /* that an image with samples may take, where there are as many as there may be */

/* Forgets, when there are enough of them. */
void opd_forget_images(struct opd_resolver *resolver) OP_NONNULL;

/* The same when images were refused since the last time: now and then, since there may be room again. */
void opd_forget_refused(struct opd_resolver *resolver) OP_NONNULL;

#endif
