/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The image filter, opcontrol --image: whose samples are kept. An image is wanted when the list has its path, as the process
 * has it or as the host has it, or its name where it has no path (a module, no-vmlinux). A sample is wanted when its image is,
 * or the application that it is filed under; so a wanted application has those of its anonymous regions, and of its libraries
 * and the kernel where these are separated. Source: oprofile 0.9.9, whose other rules (what follows an unwanted sample, IBS)
 * were faults.
 *
 * Sync thread only, but for opd_image_filter_new and _free.
 */
#ifndef OPD_IMAGE_FILTER_H
#define OPD_IMAGE_FILTER_H

#include "libop/base/compiler.h"
#include "libop/session/dcookie.h"

struct opd_image_filter;

/* Of a list with commas. A path that leads to a file by links stands for that file as well, as it is now. NULL without memory. */
struct opd_image_filter *opd_image_filter_new(const char *list) OP_NONNULL OP_MUST_CHECK;

void opd_image_filter_free(struct opd_image_filter *filter);

/*
 * Whether samples filed under the two images are wanted: looked up once for each row, which remembers it. What the overflow cookie
 * stands for nobody knows: it is wanted.
 */
bool opd_image_filter_wants(const struct opd_image_filter *filter, const struct op_dcookie_table *table, uint64_t app_cookie,
			    uint64_t image_cookie) OP_NONNULL OP_MUST_CHECK;

#endif
