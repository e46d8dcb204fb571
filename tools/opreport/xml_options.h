/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The <options> element of an XML report. */
#ifndef OPR_OPREPORT_XML_H
#define OPR_OPREPORT_XML_H

#include "tools/opreport/options.h"
#include "tools/profile/spec.h"
#include "tools/report/write_xml.h"

#define OPR_NR_XML_OPTIONS 8 /* at most */

/* Lists as text, joined by commas. */
struct opr_xml_values {
	char *texts[OPR_NR_XML_OPTIONS];
	size_t nr_texts;
};

/*
 * Makes attributes of the options that were given. They are valid as long as the values, which
 * opr_xml_values_free frees in any case. 0 or -errno.
 */
int opr_xml_options(const struct opr_options *options, const struct opr_spec *spec, struct opr_xml_values *values,
		    struct opr_xml_attribute *ret_attributes, size_t *ret_nr_attributes) OP_NONNULL OP_MUST_CHECK;

void opr_xml_values_free(struct opr_xml_values *values);

#endif
