/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The files of tools/page/web as strings, made by embed.sh. */
#ifndef OPR_PAGE_WEB_H
#define OPR_PAGE_WEB_H

extern const char opr_page_style[], opr_page_script[], opr_page_body[];

#endif
