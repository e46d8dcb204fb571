/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The list of a session's sample files, kept in the user's cache directory (tools/common/cache_dir.h) with the directories that it hangs on: as long as none of them was changed, which one system call for each tells,
 * none has to be opened and read. A directory that was changed in the two seconds before it was listed may be changed once more without that being seen: then nothing is kept. Nor is it where anything
 * cannot be read, or is a link, or where there are few directories.
 *
 * The file, of this host's byte order: the header; directories as in libop/session/layout.h; where the paths of the files begin, sorted; paths, each with its NUL. One that does not have its checksum is as if it
 * was not there.
 */
#ifndef OPR_SESSION_LISTING_H
#define OPR_SESSION_LISTING_H

#include "libop/session/list.h"
#include "libop/session/walk.h"

#define OPR_LISTING_MAGIC       "opdlist1"
#define OPR_LISTING_MAGIC_BYTES 8

struct opr_listing_header {
	char magic[OPR_LISTING_MAGIC_BYTES];
	uint64_t nr_dirs, nr_files, nr_string_bytes;
	uint32_t sum; /* CRC-32 (zlib) of all behind it */
	uint32_t spare;
};

/* op_session_list_sound, or what that has given before. */
int opr_session_list(int dir_fd, struct op_session_list *ret_list,
		     const struct op_session_misfits *misfits) OP_NONNULL OP_MUST_CHECK;

#endif
