/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Names of events as libpfm4 has them. */
#ifndef OPR_PFM_NAMES_H
#define OPR_PFM_NAMES_H

#include "libop/base/compiler.h"

#define OPR_PFM_ALIAS_BYTES 64 /* as OP_EVENT_NAME_BYTES; longer names are cut */

/*
 * Translates NAME:count[:unitmask[:kernel[:user]]], with a name of libpfm4
 * (PMU::EVENT:UNIT_MASK:MODIFIER=VALUE...), for op_event_parse: rCODE=NAME:count..., where NAME is
 * the event with its masks, and '_' for characters that file names do not allow. 0, freed by the
 * caller; -ENOENT: libpfm4 does not know the name for this CPU; -EINVAL: the event cannot be
 * sampled, and *ret_why, constant, says why; -ENOMEM.
 */
int opr_pfm_translate(const char *spec, char **ret_spec, const char **ret_why) OP_NONNULL OP_MUST_CHECK;

#endif
