/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The memory of another process, read page by page. Pages that were read stay known, so structures
 * that lie together cost one call. A question has a budget of pages: a process that leads its
 * reader around in circles gets an error.
 *
 * In a looker (pipeline/files/lookers.h). One thread.
 */
#ifndef OPD_FAR_MEMORY_H
#define OPD_FAR_MEMORY_H

#include <sys/types.h>

#include "libop/base/compiler.h"

#define OPD_FAR_PAGE_BYTES 4096u
#define OPD_FAR_SLOTS      128u
#define OPD_FAR_STRING_MAX 4096u /* bytes of a text, with its NUL */

struct opd_far_memory {
	/* Reads so many bytes at an address: their number, less where the mapping ends; -errno. */
	ssize_t (*read)(void *arg, uint64_t address, void *to, size_t nr_bytes);
	void *arg;
	uint32_t nr_pages_left; /* the budget */
	uint32_t nr_pages;      /* that were read */
	struct {
		uint64_t page; /* its number + 1; 0: empty */
		uint32_t nr_bytes;
	} slots[OPD_FAR_SLOTS];
	uint8_t bytes[OPD_FAR_SLOTS][OPD_FAR_PAGE_BYTES];
};

/*
 * The effective user and group of a process. Makes no call that the process can delay; any thread.
 * 0 or -errno.
 */
int opd_far_memory_who(uint32_t pid, uint64_t *ret_who) OP_NONNULL OP_MUST_CHECK;

/*
 * Opens /proc/PID/mem. The addresses that are read come from the process, which can execute a
 * program with more rights meanwhile, or end, and its number is used again. So it must still be
 * `who`. A descriptor; -ESTALE: it is not; another -errno.
 */
int opd_far_memory_open_fd(uint32_t pid, uint64_t who) OP_MUST_CHECK;

/* The memory of a process, by that. Its budget is nr_pages. 0 or -errno; the caller frees it. */
int opd_far_memory_open(uint32_t pid, uint64_t who, uint32_t nr_pages,
			struct opd_far_memory **ret_memory) OP_NONNULL OP_MUST_CHECK;
void opd_far_memory_close(struct opd_far_memory *memory); /* NULL is allowed */

/* Copies all of it. 0; -EFAULT: some of it is not there; -EDQUOT: the budget is used up. */
int opd_far_memory_read(struct opd_far_memory *memory, uint64_t address, void *to, size_t nr_bytes) OP_NONNULL OP_MUST_CHECK;

/*
 * A text with its NUL, at most `size` bytes. 0; -EBADMSG: it is longer; as opd_far_memory_read.
 */
int opd_far_memory_string(struct opd_far_memory *memory, uint64_t address, char *to, size_t size) OP_NONNULL OP_MUST_CHECK;

/*
 * Finds where the file of a mapping begins in memory: the mapping of the same file at offset 0
 * below `address`. 0, -ENOENT or -errno.
 */
int opd_far_memory_image(uint32_t pid, uint64_t address, uint64_t *ret_start) OP_NONNULL OP_MUST_CHECK;

/* The address of a symbol of the image with an ELF header at `start`. 0; -ENOENT; or as above. */
int opd_far_memory_symbol(struct opd_far_memory *memory, uint64_t start, const char *name,
			  uint64_t *ret_address) OP_NONNULL OP_MUST_CHECK;

#endif
