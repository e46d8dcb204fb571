/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * XML elements in the layout of oprofile: two blanks before the first attribute, a line ends with a
 * tag.
 */
#ifndef OPR_XML_WRITER_H
#define OPR_XML_WRITER_H

#include "libop/base/compiler.h"

/* Text of HTML and of XML attributes: escaped by op_escape, and then & < > ". */
void opr_html_text(FILE *out, const char *text) OP_NONNULL;

/* `<tag `; attributes and then opr_xml_open or opr_xml_empty follow. */
void opr_xml_begin(FILE *out, const char *tag) OP_NONNULL;
void opr_xml_attribute(FILE *out, const char *name, const char *value) OP_NONNULL;
void opr_xml_number(FILE *out, const char *name, uint64_t value) OP_NONNULL;
void opr_xml_open(FILE *out) OP_NONNULL;
void opr_xml_empty(FILE *out) OP_NONNULL;

/* `<tag>` and `</tag>`. */
void opr_xml_start(FILE *out, const char *tag) OP_NONNULL;
void opr_xml_end(FILE *out, const char *tag) OP_NONNULL;

#endif
