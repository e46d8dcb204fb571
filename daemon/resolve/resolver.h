/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Resolve: a sample to its image, its offset there and its application. There is always an answer: what cannot be
 * attributed goes to a pseudo-image and says so.
 *
 * Sync thread only.
 */
#ifndef OPD_RESOLVE_H
#define OPD_RESOLVE_H

#include "daemon/resolve/cgroups.h"
#include "daemon/resolve/image.h"
#include "daemon/resolve/kernel_map.h"
#include "daemon/resolve/process.h"
#include "libop/base/compiler.h"
#include "libop/session/dcookie.h"
#include "libop/perf/record.h"

#define OPD_IMAGES_UNCOUNTED_MAX 65536 /* images without samples; beyond that a new one is filed under too-many-images */

#define OPD_IMAGE_BYTES_UNCOUNTED_MAX (24u << 20) /* the same by what they take, with their paths and what leads to them */
#define OPD_IMAGE_BYTES	 1024 /* that an image with samples may take, where there are as many as there may be */

/* When images without samples were forgotten, and how many. */
struct opd_forgetting {
	size_t due;          /* so many images without samples make it worth while */
	uint64_t nr_refused; /* by the table, when it was done last */
	uint64_t nr_forgotten;
};

/*
 * What was found last for a process in a part of its address space. It holds for later samples there as long as nothing was done
 * to the process, since only what was found in the newest address space, in a mapping that still holds, is kept.
 */
struct opd_found {
	uint64_t start, end; /* addresses; start 0, end 0: nothing kept */
	uint64_t from_ns;    /* for samples from then on */
	uint64_t first;      /* offset of address 0, modulo 2^64 */
	uint64_t cookie, app_cookie;
	uint32_t pid;
	uint32_t changes; /* opd_process_changes when it was found */
	uint32_t page;    /* of the last sample, counted from start */
	uint16_t nr_given; /* answers since it was compared with /proc, or so many that there is no room for more */
	uint8_t mode;      /* enum op_cpumode: user or kernel */
	bool is_region;
} __attribute__((aligned(64))); /* one cache line */

static_assert(sizeof(struct opd_found) == 64, "struct opd_found");

#define OPD_FOUND_SLOTS 4096u

/* Not known, and not in /proc at this visit: not looked for again for each of its samples. */
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
	bool is_foreign;     /* the records are of another machine: nothing of this host's /proc tells of them */
	struct opd_kernel_map kernel;
	struct opd_cgroups cgroups; /* empty but with separation by cgroup */
	uint64_t pseudo[OPD_NR_PSEUDO];
	uint64_t vdso_cookie, vsyscall_cookie; /* of the labels */
	uint64_t now_ns;                       /* set by the sync thread at each visit; stamps what is read from /proc */
	uint64_t nr_rereads;                   /* times that the maps of a process were read again */
	uint64_t reread_ns, reread_allowed_ns; /* when time was last allowed for it, and how much is left */
	uint64_t reread_burst_ns;              /* so much is left at most */
	uint64_t next_check_ns;                /* opd_resolve_check */
	uint64_t check_time_ns;                /* after it no more is compared in one check */
	bool is_caller;                        /* what is resolved may be no address of code at all: it is no reason to ask /proc */
	struct opd_absent absent[OPD_ABSENT_SLOTS];
	struct opd_found found[OPD_FOUND_SLOTS]; /* hot loops repeat */
};

struct opd_resolved {
	struct op_location location;
	uint64_t app_cookie; /* OP_DCOOKIE_NONE: no application (kernel thread, idle) */
	bool is_kernel;      /* the sample was taken in kernel mode */
	bool is_region;      /* memory without a file: filed under its application whatever the mode */
	bool unattributed;
	bool lasts;          /* it is the same for later samples of the process there until something happens to it */
};

/*
 * The table, the caller's, has the rows of an earlier daemon or none; at most max_images have samples in the session. `vmlinux` may be NULL. 0 or
 * -ENOMEM; opd_resolver_free frees in any case.
 */
int opd_resolver_init(struct opd_resolver *resolver, struct op_dcookie_table *table, size_t max_images,
		      const char *vmlinux) OP_NONNULL_ARGS(1, 2) OP_MUST_CHECK;

/*
 * The same for records of another machine, or of another time: all that is known is what they tell, and opd_kernel_map_part. Neither
 * /proc nor the files of this host are looked at, and there is no JIT code.
 */
int opd_resolver_init_foreign(struct opd_resolver *resolver, struct op_dcookie_table *table, size_t max_images,
			      const char *vmlinux) OP_NONNULL_ARGS(1, 2) OP_MUST_CHECK;
void opd_resolver_free(struct opd_resolver *resolver);

/*
 * Text is moved into huge pages by mapping memory in its place. True when a mapping of memory without a file is that: the process still has
 * the other segments of the image around it. Then the image goes on to hold there. Code that is generated at an address where a
 * file was once is not.
 */
bool opd_resolve_text_copy(struct opd_resolver *resolver, const struct opd_process *process, struct opd_mm *mm,
			   const struct opd_mapped *mapped) OP_NONNULL OP_MUST_CHECK;

/*
 * The kernel does not report mremap. The few answers that were given most often since they were last looked at are compared with /proc; where a process has
 * something else there its mappings are read again, and hold from now on. To be called at each visit, when the side band is read.
 */
void opd_resolve_check(struct opd_resolver *resolver) OP_NONNULL;

/* 0, or -ENOMEM when there was no memory for what had to be looked up. */
int opd_resolve(struct opd_resolver *resolver, const struct op_sample *sample,
		struct opd_resolved *ret_resolved) OP_NONNULL OP_MUST_CHECK;

/* The answer to this sample, the last that was asked for, was given so many times more without asking. */
void opd_resolve_repeated(struct opd_resolver *resolver, const struct op_sample *sample, uint32_t nr) OP_NONNULL;

/*
 * The same as opd_resolve for an address that a sample's call chain leads to, given as a sample of its own. Chains through code without frame pointers
 * lead anywhere, so nothing is read again for an address where nothing is mapped.
 */
int opd_resolve_caller(struct opd_resolver *resolver, const struct op_sample *sample,
		       struct opd_resolved *ret_resolved) OP_NONNULL OP_MUST_CHECK;

/* Forgets, when there are enough of them. */
void opd_forget_images(struct opd_resolver *resolver) OP_NONNULL;

/* The same when images were refused since the last time: now and then, since there may be room again. */
void opd_forget_refused(struct opd_resolver *resolver) OP_NONNULL;

#endif
