/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Flat samples: of functions, and of lines of the source or machine code of the hottest ones.
 * Functions of runtimes have the samples of stacks instead.
 */
#ifndef OPR_PAGE_CODE_H
#define OPR_PAGE_CODE_H

#include "tools/page/collect.h"
#include "tools/profile/image_name.h"

/* Of a page. One function has about 15,000 bytes at most. */
#define OPR_PAGE_CODE_BYTES 100000u

/*
 * Sets `code` of a side to a JSON list: for each of the hottest functions its source lines with
 * samples and those around; its instructions where no source is found. No function is added behind
 * max_bytes, and none of a runtime behind half of them. `names`: short_images.h; NULL: images have
 * their full names. Without sample files the list has functions of runtimes only. 0 or -errno after
 * a message; -ESTALE as in read_samples.h.
 *
 * Of a side that is compared, unless inlined functions are apart, `flat` gets a JSON object: the
 * event, its samples, and of up to FLAT_MAX functions name, image and samples; `whole`: there are
 * no more. Nothing is added where the first event does not count time, as stacks do.
 */
int opr_page_add_code(struct opr_page_side *side, bool is_compared, const struct opr_short_names *names, size_t max_bytes)
	OP_NONNULL_ARGS(1) OP_MUST_CHECK;

#endif
