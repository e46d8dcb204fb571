/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The data of a page as JSON; tools/page/web/page.js tells the format. */
#ifndef OPR_PAGE_PACK_H
#define OPR_PAGE_PACK_H

#include "libop/base/text.h"
#include "tools/page/collect.h"

/* All of the data; the page is about 40,000 bytes more. Not less than the contexts need. */
#define OPR_PAGE_DATA_MAX 1950000u

/*
 * Adds the data of a collected page. Nodes below `threshold` percent of the samples of their event
 * and side are added up in a node of kind LESS beside their siblings. The threshold is raised until
 * the data have OPR_PAGE_DATA_MAX bytes at most. 0 or -ENOMEM after a message.
 */
int opr_page_pack(const struct opr_page *page, double threshold, struct op_text *json) OP_NONNULL OP_MUST_CHECK;

/*
 * Adds a name as a JSON string that can stand in HTML. It is escaped as on a terminal. A very long
 * one loses template arguments, the inner ones first, and its middle where that is not enough.
 */
void opr_page_add_string(struct op_text *json, const char *name) OP_NONNULL;

/* The same of text that needs no escapes, as it is. */
void opr_page_add_text(struct op_text *json, const char *text) OP_NONNULL;

#endif
