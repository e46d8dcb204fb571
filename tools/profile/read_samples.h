/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Reads the selected sample files, by as many threads as the process has CPUs. */
#ifndef OPR_READ_SAMPLES_H
#define OPR_READ_SAMPLES_H

#include "tools/profile/profile.h"

/*
 * Reads each file once: its header, the sum of its samples and, as long as memory allows, the
 * samples. A file that cannot be read is left out of the profile with a warning. 0; -ESTALE after a
 * warning: a file was removed meanwhile; another -errno. A profile of which no file can be read is
 * an error.
 */
int opr_samples_read(struct opr_profile *profile) OP_NONNULL OP_MUST_CHECK;

/*
 * Hands over the samples of one file, freed with op_odb_samples_free. Samples that were not kept,
 * or were handed over before, are read again. 0 or -errno as above.
 */
int opr_samples_take(const struct opr_profile *profile, struct opr_file *file,
		     struct op_odb_samples *ret_samples) OP_NONNULL OP_MUST_CHECK;

#endif
