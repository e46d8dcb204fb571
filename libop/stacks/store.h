/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Counts stacks in a file, in place through a shared mapping; the file is whole at any moment. It
 * never moves: it grows by blocks at its end. A file has one writer, and one thread of it calls
 * these functions. None waits for the disk.
 */
#ifndef OP_STACKS_STORE_H
#define OP_STACKS_STORE_H

#include "libop/odb/odb.h"
#include "libop/stacks/format.h"

struct op_stacks;

struct op_stacks_setup {
	/* each "NAME:COUNT:UNIT-MASK"; op_stack_path.event is an index here */
	const char *const *events;
	size_t nr_events;
	uint64_t max_bytes; /* of the file */
	/* of the session, and the caller's until op_stacks_close; NULL: no limit */
	struct op_odb_space *space;
	/*
	 * Called before a node with this image is made; NULL: never. Returns the image under
	 * which it is filed, usually the same; of another one the value becomes 0,
	 * but not that of a runtime's function.
	 */
	uint64_t (*count_image)(void *arg, uint64_t image);
	void *arg;
};

/* What comes before the frames of a stack. */
struct op_stack_path {
	uint32_t event;
	uint64_t app;       /* dcookie */
	const char *comm;   /* at most 15 bytes count; NULL: unknown */
	const char *cgroup; /* NULL: none */
	uint32_t tgid, tid; /* 0: threads are not separated */
	uint64_t cpu;       /* its number + 1; 0: CPUs are not separated */
	uint32_t end; /* enum op_stack_end (libop/session/stack_ends.h); 0: complete */
	/* enum op_wait_state (libop/session/wait_states.h); 0: no wait. The amount is in us then */
	uint32_t state;
	bool goes_on; /* of a wait that was added before: this is no new record */
	const char *waker; /* the thread that ended it; "": an interrupt did; NULL: unknown */
	uint64_t waker_app; /* dcookie of its program; 0: unknown */
	/* where the function of the last frame starts; 0: unknown. See op_stacks_add */
	uint64_t leaf_start;
};

struct op_stack_frame {
	uint64_t image; /* dcookie */
	uint64_t value; /* position as in sample files; of a caller: where it goes on */
	bool is_kernel;
	/*
	 * Of a function of a runtime its text (runtime_name.h); `value` is the line then. NULL:
	 * native code. The same text has the same text_id, from 1 on, as long as the store is open.
	 */
	const char *text;
	uint32_t text_id;
};

/*
 * Opens `path` below dir_fd. Makes a missing file, with its directories, at tmp_path (same file
 * system, also below dir_fd) and renames it. Of an existing file, nodes from the first damaged one
 * on are dropped. The strings of `setup` are not needed later. 0 and a handle for op_stacks_close;
 * -EBADMSG: no file of stacks; -EDQUOT: max_bytes or the space of the session; -ENOSPC; another
 * -errno.
 */
int op_stacks_open(int dir_fd, const char *path, const char *tmp_path, const struct op_stacks_setup *setup,
		   struct op_stacks **ret_stacks) OP_NONNULL OP_MUST_CHECK;

/*
 * Adds `amount` to the stack. `frames` begin with the outermost one. When half of the nodes that
 * the file may have are in use, a new last frame gets leaf_start for its value, so that the many
 * positions in a function leave room for stacks. 0; -EDQUOT, -ENOSPC, -ENOMEM
 * and other errors of growing: it was added to the deepest node of the stack that exists
 * (no_room); -EIO: the file went away or was overwritten, and nothing was added.
 */
int op_stacks_add(struct op_stacks *stacks, const struct op_stack_path *path, const struct op_stack_frame *frames, size_t nr_frames,
		  uint64_t amount) OP_NONNULL_ARGS(1, 2) OP_MUST_CHECK;

/* The node to which op_stacks_add added last. Nodes keep their numbers while the file is there. */
uint32_t op_stacks_last_node(const struct op_stacks *stacks) OP_NONNULL;

/* The number of nodes; those that op_stacks_open dropped. */
uint32_t op_stacks_nr_nodes(const struct op_stacks *stacks) OP_NONNULL;
uint32_t op_stacks_nr_cut(const struct op_stacks *stacks) OP_NONNULL;

/* The sum of all counts in the file; of those of one event, by its index in the setup. */
uint64_t op_stacks_total(const struct op_stacks *stacks) OP_NONNULL;
uint64_t op_stacks_event_total(const struct op_stacks *stacks, uint32_t event) OP_NONNULL;

/* Whether the file went away under the map, was overwritten, or was removed from its directory. */
bool op_stacks_is_broken(const struct op_stacks *stacks) OP_NONNULL;

/* Drops the file's pages from the process's memory; the next access maps them again. */
void op_stacks_drop_pages(const struct op_stacks *stacks) OP_NONNULL;

/* Frees the blocks behind the last node, and closes; NULL is allowed. */
void op_stacks_close(struct op_stacks *stacks);

#endif
