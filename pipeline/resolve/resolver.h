/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * From a sample to its image, its offset there, and its application. There is always an answer: a
 * sample without an image is filed under a pseudo-image.
 *
 * Sync thread only.
 */
#ifndef OPD_RESOLVE_H
#define OPD_RESOLVE_H

#include "libop/base/compiler.h"
#include "libop/perf/record.h"
#include "libop/session/dcookie.h"
#include "pipeline/resolve/cgroups.h"
#include "pipeline/resolve/image.h"
#include "pipeline/resolve/kernel_map.h"
#include "pipeline/resolve/process.h"

/* Images without samples, and their bytes. Further ones are filed under too-many-images. */
#define OPD_IMAGES_UNCOUNTED_MAX      65536
#define OPD_IMAGE_BYTES_UNCOUNTED_MAX (24u << 20)
#define OPD_IMAGE_BYTES               1024 /* for an image with samples, on average */

struct opd_app_witness;

/* Forgetting of images without samples. */
struct opd_forgetting {
	size_t due;          /* images without samples at which the next round begins */
	uint64_t nr_refused; /* by the table, at the last round */
	uint64_t nr_forgotten;
};

/*
 * A result that was found for a process in a part of its address space. It is valid while
 * opd_process_changes is the same. Only results from the newest address space, in a mapping that
 * still holds, are kept.
 */
struct opd_found {
	uint64_t start, end; /* addresses; 0, 0: empty */
	uint64_t from_ns;    /* valid for samples from then on */
	uint64_t first;      /* offset of address 0, modulo 2^64 */
	uint64_t cookie, app_cookie;
	uint32_t pid;
	uint32_t changes; /* opd_process_changes at that time */
	uint32_t page;    /* of the last sample, counted from start */
	uint16_t nr_uses; /* uses since it was last compared with /proc, at most UINT16_MAX */
	uint8_t mode;     /* enum op_cpumode: user or kernel */
	bool is_region;
} __attribute__((aligned(64))); /* one cache line */

static_assert(sizeof(struct opd_found) == 64, "struct opd_found");

#define OPD_FOUND_SLOTS 4096u

/* A process that is unknown and not in /proc: /proc is asked once per visit. */
struct opd_absent {
	uint32_t pid;
	uint64_t now_ns; /* of the visit */
};

#define OPD_ABSENT_SLOTS 256u

struct opd_resolver {
	struct op_dcookie_table *table;
	struct opd_forgetting forgetting;
	struct opd_processes processes;
	struct opd_jit *jit; /* owned */
	bool is_foreign;     /* records of another machine: /proc of this host is not read */
	/* of the caller, for records of another machine; NULL: none (application.h) */
	const struct opd_app_witness *witness;
	struct opd_kernel_map kernel;
	struct opd_cgroups cgroups; /* empty when samples have none */
	uint64_t pseudo[OPD_NR_PSEUDO];
	uint64_t vdso_cookie, vsyscall_cookie; /* of their labels */
	uint64_t now_ns;                       /* time of the visit; the sync thread sets it */
	uint64_t nr_rereads;                   /* readings of the maps of a known process */
	/* last time that reading time was added, and reading time that is left */
	uint64_t reread_ns, reread_allowed_ns;
	uint64_t reread_burst_ns; /* most of it that can be left */
	uint64_t next_check_ns;   /* of opd_resolve_check */
	uint64_t check_time_ns;   /* no further comparison is begun after this time */
	/* the address may be no code at all, so /proc is not read for it */
	bool is_caller;
	struct opd_absent absent[OPD_ABSENT_SLOTS];
	struct opd_found found[OPD_FOUND_SLOTS];
};

struct opd_resolved {
	struct op_location location;
	/*
	 * Of a runtime's frame its function (pipeline/runtimes/names.h): the location is the image
	 * of its code, and the line. 0: native code.
	 */
	uint32_t runtime_name;
	bool is_inlined;        /* in the function of the next frame, which has the same code */
	uint64_t native_offset; /* of a runtime's frame: the offset of its code */
	uint64_t app_cookie; /* OP_DCOOKIE_NONE: none (kernel thread, idle) */
	bool is_kernel;      /* the sample was taken in kernel mode */
	bool is_region;      /* memory without a file: filed under its application in any mode */
	bool unattributed;
	/* later samples of the process there have the same result until the process changes */
	bool lasts;
};

/*
 * The caller keeps the table, which may have the rows of an earlier daemon. At most max_images
 * images can have samples. `vmlinux` may be NULL. 0 or -ENOMEM; opd_resolver_free frees in any
 * case.
 */
int opd_resolver_init(struct opd_resolver *resolver, struct op_dcookie_table *table, size_t max_images, const char *vmlinux)
	OP_NONNULL_ARGS(1, 2) OP_MUST_CHECK;

/* The same when the kernel is not sampled: /proc/kallsyms, which is long, is not read. */
int opd_resolver_init_user_only(struct opd_resolver *resolver, struct op_dcookie_table *table,
				size_t max_images) OP_NONNULL OP_MUST_CHECK;

/*
 * The same for records of another machine or another time. Only the records and opd_kernel_map_part
 * count; neither /proc nor files of this host are read, and there is no JIT code.
 */
int opd_resolver_init_foreign(struct opd_resolver *resolver, struct op_dcookie_table *table, size_t max_images, const char *vmlinux)
	OP_NONNULL_ARGS(1, 2) OP_MUST_CHECK;
void opd_resolver_free(struct opd_resolver *resolver);

/*
 * Programs move text into huge pages by mapping memory over it. True when a mapping of memory
 * without a file is such a copy: other segments of the image surround it. Then the image continues
 * to hold there. False for code that is generated where a file was mapped before.
 */
bool opd_resolve_text_copy(struct opd_resolver *resolver, const struct opd_process *process, struct opd_mm *mm,
			   const struct opd_mapped *mapped) OP_NONNULL OP_MUST_CHECK;

/*
 * The kernel does not report mremap. This compares the few results that were used most with /proc.
 * Where a process has something else mapped, its maps are read again and hold from now on. Called
 * at each visit, with the side band.
 */
void opd_resolve_check(struct opd_resolver *resolver) OP_NONNULL;

/* Resolves a sample. 0, or -ENOMEM. */
int opd_resolve(struct opd_resolver *resolver, const struct op_sample *sample,
		struct opd_resolved *ret_resolved) OP_NONNULL OP_MUST_CHECK;

/* The last result was used `nr` more times for samples like this one. */
void opd_resolve_repeated(struct opd_resolver *resolver, const struct op_sample *sample, uint32_t nr) OP_NONNULL;

/*
 * Resolves an address of a sample's call chain, given as a sample. Chains through code without
 * frame pointers contain garbage, so /proc is not read for an address where nothing is mapped.
 */
int opd_resolve_caller(struct opd_resolver *resolver, const struct op_sample *sample,
		       struct opd_resolved *ret_resolved) OP_NONNULL OP_MUST_CHECK;

/*
 * Forgets images without samples that nothing refers to, when there are many. It marks all cookies
 * that are in use and sweeps the rest, so whoever keeps a cookie beyond one record must be visited
 * there. Called between two records.
 */
void opd_forget_images(struct opd_resolver *resolver) OP_NONNULL;

/* The same when images were refused since the last time, because there may be room again. */
void opd_forget_refused(struct opd_resolver *resolver) OP_NONNULL;

#endif
