/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Elements of XML as oprofile sets them: two blanks before the first attribute, the end of a tag ends the line. */
#ifndef OPR_XML_WRITER_H
#define OPR_XML_WRITER_H

#include "libop/base/compiler.h"

/* A name or text with & < > " escaped; control characters, which XML has not, as op_escape has them. */
void opr_xml_text(FILE *out, const char *text) OP_NONNULL;

/* The same for a page that people read: op_escape_shown. */
void opr_html_text(FILE *out, const char *text) OP_NONNULL;

/* `<tag ` and attributes: opr_xml_attribute ... and then opr_xml_open or opr_xml_empty. */
void opr_xml_begin(FILE *out, const char *tag) OP_NONNULL;
void opr_xml_attribute(FILE *out, const char *name, const char *value) OP_NONNULL;
void opr_xml_number(FILE *out, const char *name, uint64_t value) OP_NONNULL;
void opr_xml_open(FILE *out) OP_NONNULL;
void opr_xml_empty(FILE *out) OP_NONNULL;

/* `<tag>` and `</tag>`. */
void opr_xml_start(FILE *out, const char *tag) OP_NONNULL;
void opr_xml_end(FILE *out, const char *tag) OP_NONNULL;

#endif
