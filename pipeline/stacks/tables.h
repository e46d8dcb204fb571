/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The row tables of images (libop/unwind/row_table.h), for walks of call stacks. The program
 * opd-tables makes a table, in a process without rights, one at a time; opd checks the table, keeps
 * it mapped, and in a cache on the disk. The first question for an image starts that, and the walk
 * is told to wait. The image with most questions comes first.
 *
 * opd never has a descriptor of an image: a looker opens the file and passes it on
 * (pipeline/files/pass_file.h).
 *
 * Sync thread only.
 */
#ifndef OPD_TABLES_H
#define OPD_TABLES_H

#include "libop/base/compiler.h"
#include "libop/process/nursery.h"
#include "libop/session/dcookie.h"
#include "pipeline/stacks/walk.h"

struct opd_tables;
struct opd_lookers;

struct opd_tables_config {
	struct op_nursery *nursery;  /* of helper_kinds.h; NULL: no tables are made */
	struct opd_lookers *lookers; /* NULL: this process opens the files, which may hang */
	const char *host_prefix;     /* of paths of the host: "" or "/proc/1/root"; NULL: "" */
	const char *cache_dir;       /* NULL: tables are kept in memory only */
	uint64_t max_use;            /* bytes of the cache; 0: no limit */
	uint64_t wait_ns;            /* for opd-tables with one image; 0: a minute */
	uint64_t unused_ns;          /* then a table leaves the memory; 0: 10 minutes */
	/*
	 * The images are of a recording. Files are opened by their paths. A file must have the
	 * build-id, or the device and inode where it was recorded here: then it is not newer.
	 */
	bool is_recording;
	uint16_t machine;      /* whose rows are wanted (elf.h); EM_NONE: any */
	bool has_vdso;         /* recorded with the kernel that runs here */
	uint64_t recorded_ns;  /* when; 0: not on this host */
};

/* Through which process the file of an image can be opened. */
struct opd_table_source {
	uint32_t pid; /* 0: none; then the path of the image is tried */
	uint64_t user_ns; /* its user namespace; 0: the host's, or unknown */
	uint64_t start, end; /* of a mapping of the file there; end exclusive */
};

/* Since the start. */
struct opd_tables_counts {
	uint64_t made, from_cache;
	uint64_t failed;    /* no file, or no table in it */
	uint64_t crashed;   /* opd-tables ended by a signal, or wrote what is no table */
	uint64_t nr_ended;  /* helper processes that ended by themselves, or were killed */
	uint64_t timed_out; /* it did not end in time */
	uint64_t dropped;   /* tables that left the memory */
	uint64_t uncached;  /* tables that the disk did not take */
	size_t nr_waiting;  /* images */
	size_t nr_mapped;   /* tables */
	uint64_t mapped_bytes;
};

/* What the config points to stays. 0 or -errno; a cache that cannot be used is logged. */
int opd_tables_new(const struct opd_tables_config *config, struct opd_tables **ret_tables) OP_NONNULL OP_MUST_CHECK;

/* The images that are asked about; to be set before the first question. They stay the caller's. */
void opd_tables_set_images(struct opd_tables *tables, const struct op_dcookie_table *images) OP_NONNULL;

/*
 * What is known of the table of an image. OPD_CODE_TABLE: *ret_table is it, until the next
 * opd_tables_turn. OPD_CODE_PENDING: it will come. OPD_CODE_NO_TABLE: there is none.
 */
enum opd_walk_code opd_tables_find(struct opd_tables *tables, uint64_t cookie, const struct opd_table_source *source,
				   const struct op_row_table **ret_table) OP_NONNULL;

/* The table of an image if it is in memory. It asks for nothing. NULL: there is none. */
const struct op_row_table *opd_tables_peek(struct opd_tables *tables, uint64_t cookie) OP_NONNULL;

/*
 * Takes finished tables and starts the next one. Does not wait. True: some image is not pending any
 * more, so waiting samples should be walked again. Call it in each turn, and when opd_tables_fd is
 * readable.
 */
bool opd_tables_turn(struct opd_tables *tables) OP_NONNULL;

/* For epoll(7). */
int opd_tables_fd(const struct opd_tables *tables) OP_NONNULL;

/* True while a table is wanted or made. */
bool opd_tables_is_busy(const struct opd_tables *tables) OP_NONNULL;

void opd_tables_get_counts(const struct opd_tables *tables, struct opd_tables_counts *ret_counts) OP_NONNULL;

/* NULL is allowed. */
void opd_tables_free(struct opd_tables *tables);

#endif
