/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Names of events as libpfm4 has them. Apart from what reads its tables for a list, because its header has the kernel's structures once more. */
#ifndef OPR_PFM_NAMES_H
#define OPR_PFM_NAMES_H

#include "libop/base/compiler.h"

#define OPR_PFM_ALIAS_BYTES 64 /* as OP_EVENT_NAME_BYTES; longer names are cut */

/*
 * The specification NAME:count[:unitmask[:kernel[:user]]] with a name as libpfm4 has it, PMU::EVENT:UNIT_MASK:MODIFIER=VALUE..., as one of
 * op_event_parse: rCODE=NAME:count..., where NAME is the event and its masks with '_' for what a file name may not have. 0, and the caller frees
 * it; -ENOENT: libpfm4 does not know the name for this CPU; -EINVAL: it knows it, and *ret_why, constant, says why it cannot be sampled so; -ENOMEM.
 */
int opr_pfm_translate(const char *spec, char **ret_spec, const char **ret_why) OP_NONNULL OP_MUST_CHECK;

#endif
