/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The image filter (opcontrol --image): samples of other images are not kept. An image is wanted
 * when the list has its path, as the process or as the host sees it, or its name when it has no
 * path (a module, no-vmlinux). A sample is wanted when its image is, or the application that it is
 * filed under. So a wanted application includes its anonymous regions, and its libraries and the
 * kernel where these are separated. Source: oprofile 0.9.9, whose other rules (on samples after an
 * unwanted one, on IBS) were faults.
 *
 * Sync thread only, but for opd_image_filter_new and _free.
 */
#ifndef OPD_IMAGE_FILTER_H
#define OPD_IMAGE_FILTER_H

#include "libop/base/compiler.h"
#include "libop/session/dcookie.h"

struct opd_image_filter;

/* From a list with commas. A link in it also stands for its target. NULL without memory. */
struct opd_image_filter *opd_image_filter_new(const char *list) OP_NONNULL OP_MUST_CHECK;

void opd_image_filter_free(struct opd_image_filter *filter);

/*
 * Whether samples filed under the two images are wanted. Each row remembers the answer. The
 * overflow cookie may stand for any image, so it is wanted.
 */
bool opd_image_filter_wants(const struct opd_image_filter *filter, const struct op_dcookie_table *table, uint64_t app_cookie,
			    uint64_t image_cookie) OP_NONNULL OP_MUST_CHECK;

#endif
