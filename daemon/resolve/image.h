/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Which image is this: from what the kernel says of a mapping to its dcookie. Files are never opened here: a look at the
 * inode is all.
 *
 * Sync thread only.
 */
#ifndef OPD_IMAGE_H
#define OPD_IMAGE_H

#include <sys/types.h>

#include "daemon/resolve/build_ids.h"
#include "daemon/resolve/locate.h"
#include "daemon/resolve/mount_view.h"
#include "libop/base/build_id.h"
#include "libop/base/compiler.h"
#include "libop/session/dcookie.h"

#define OPD_STAT_CACHE_SLOTS 256u

/* How a record tells of a file. */
struct opd_stat_entry {
	uint64_t device, inode, inode_generation;
	uint64_t name_hash;
	struct opd_mount_view *mount_view; /* of the process; NULL: the host */
	uint64_t cookie;	 /* of the image; OP_DCOOKIE_NONE: the slot is free */
	uint64_t time_ns;	 /* OP_CLOCK, just before the look */
};

/* Zero is empty. It holds references to places: to be cleared before these are freed, and when rows of cookies are forgotten. */
struct opd_stat_cache {
	struct opd_stat_entry slots[OPD_STAT_CACHE_SLOTS];
};

/* The cookie of the file, if it was looked at after time_ns (look->time_ns and look->cookie are not read); else OP_DCOOKIE_NONE. */
uint64_t opd_stat_cache_find(const struct opd_stat_cache *cache, const struct opd_stat_entry *entry, uint64_t time_ns) OP_NONNULL OP_MUST_CHECK;

/* Keeps what a look has shown, in the place of another. */
void opd_stat_cache_keep(struct opd_stat_cache *cache, const struct opd_stat_entry *entry) OP_NONNULL;

void opd_stat_cache_clear(struct opd_stat_cache *cache) OP_NONNULL;

/* What is known of a mapping, from PERF_RECORD_MMAP2 or from a line of /proc/PID/maps. */
struct opd_mapped {
	uint32_t pid;        /* whose directory in /proc to look in: the process, or a thread of it when the first has ended */
	uint64_t start, end; /* addresses */
	uint64_t offset;     /* in the file, bytes */
	const char *name;    /* as the kernel writes it: a path, [vdso], //anon, or "" */
	bool name_is_ours;   /* from /proc/PID/maps: a path from opd's root; else from the root of the process */
	bool is_foreign;     /* recorded on another machine: the file is not looked for on this one */
	uint8_t build_id[OP_BUILD_ID_BYTES_MAX];
	uint8_t build_id_bytes; /* 0: not given; then device and inode are */
	uint64_t device, inode, inode_generation;
	uint64_t time_ns; /* when it was mapped; 0: it is mapped now */
	struct opd_mount_views *mount_views;
	struct opd_mount_view *mount_view; /* of the process; NULL: the host */
	struct opd_stat_cache *stat_cache; /* what was looked at lately; NULL: nothing */
	struct opd_build_ids *build_ids; /* who is asked for them; NULL: nobody */
};

/* True for memory that may hold a copy of a program's text, as those make who want it in huge pages. */
bool opd_image_may_be_text_copy(const char *name) OP_NONNULL;

/*
 * The cookie of what is mapped. A file: *ret_is_file, and an offset in it counts from the start of the file. Memory without
 * a file: the cookie stands for its label alone ([vdso], anon), since most regions never have a sample; opd_image_of_region
 * gives one its own. OP_DCOOKIE_NONE without memory.
 */
uint64_t opd_image_of_mapping(struct op_dcookie_table *table, const struct opd_mapped *mapped,
			      bool *ret_is_file) OP_NONNULL OP_MUST_CHECK;

/* The cookie of one region of one process: the label's cookie, the process, its bounds. OP_DCOOKIE_NONE without memory. */
uint64_t opd_image_of_region(struct op_dcookie_table *table, uint64_t label_cookie, uint32_t pid, uint64_t start,
			     uint64_t end) OP_NONNULL OP_MUST_CHECK;

/*
 * The cookie of a part of the kernel: `name` is a module, or with a slash a file (vmlinux, /proc/kallsyms). What has the same name and another
 * build-id is another image; of what has none, a file by its time. OP_DCOOKIE_NONE without memory.
 */
uint64_t opd_image_of_kernel(struct op_dcookie_table *table, const char *name, const struct op_build_id *build_id) OP_NONNULL OP_MUST_CHECK;

/*
 * Pseudo-images: where samples are filed that cannot be attributed, so that they are seen.
 */
#define OPD_PSEUDO_IMAGES(X)                                                                                                       \
	X(NO_PROCESS, "no-process")     /* nothing is known of the process */                                                      \
	X(NO_MAPPING, "no-mapping")     /* the process has nothing mapped there */                                                 \
	X(GUEST_KERNEL, "guest-kernel") /* a virtual machine of this host */                                                       \
	X(GUEST_USER, "guest-user")                                                                                                \
	X(HYPERVISOR, "hypervisor")                                                                                                \
	X(NO_MODE, "no-mode") /* the record does not say in which mode */                                                          \
	X(TOO_MANY_IMAGES, "too-many-images") /* beyond what a session may have (op_dcookie_limit) */

enum opd_pseudo {
#define X(id, name) OPD_PSEUDO_##id,
	OPD_PSEUDO_IMAGES(X)
#undef X
		OPD_NR_PSEUDO,
};

/* The cookie of a pseudo-image; OP_DCOOKIE_NONE without memory. */
uint64_t opd_image_pseudo(struct op_dcookie_table *table, enum opd_pseudo which) OP_NONNULL OP_MUST_CHECK;

#endif
