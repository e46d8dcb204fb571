/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * What is known of a Java machine: its layout, its code and its methods. Lookers read them
 * (pipeline/readers/java_format.h); answers are kept and from time to time compared with the
 * memory again. Of a process that ends they stay as they are.
 *
 * Sync thread only.
 */
#ifndef OPD_JAVA_STATE_H
#define OPD_JAVA_STATE_H

#include "libop/base/compiler.h"
#include "libop/base/htable.h"
#include "pipeline/files/lookers.h"
#include "pipeline/readers/java_format.h"
#include "pipeline/runtimes/host.h"

/* A range of code with the same answer. Of a caller it is one return address. */
struct opd_java_range {
	uint64_t from, to;
	bool is_exact, is_behind_call;
	uint8_t shape;
	int32_t original_pc;
	uint32_t nr_scopes;
	struct opd_java_scope *scopes;
};

struct opd_java_blob {
	uint64_t at, start, end; /* of its code */
	uint64_t fingerprint;
	uint64_t checked_ns, used_ns;
	uint64_t moved_ns; /* it was seen to be another one; 0: it is the one that was read */
	enum opd_java_code code;
	uint32_t frame_bytes;
	struct opd_java_range *places; /* by is_exact and address */
	size_t nr_places, places_capacity;
};

struct opd_java_function {
	struct op_hlink link;
	uint64_t at, fingerprint, checked_ns, used_ns, moved_ns;
	uint64_t code_start;
	uint32_t code_bytes;
	uint32_t name; /* of names.h; 0: it cannot be read */
	uint32_t nr_lines;
	struct opd_java_line *lines;
};

/* A question that is made. */
struct opd_java_ask {
	struct opd_java_question question;
	struct opd_java_item items[OPD_JAVA_CHECKS_MAX];
};

struct opd_java {
	struct opd_runtime_host *host;
	struct opd_look_about about;
	uint64_t who; /* opd_far_memory_who */
	uint64_t image_address;
	uint64_t owner; /* who pays */
	bool has_layout, is_refused;
	uint64_t retry_ns;
	struct opd_java_layout layout;
	uint64_t low, high, bounds_ns; /* of all code */
	struct opd_java_blob **blobs;  /* by address */
	size_t nr_blobs, blobs_capacity, nr_places;
	struct op_htable methods;
	size_t line_bytes;
	struct opd_java_ask ask; /* the question that is made */
};

/* What an ask needs. */
struct opd_java_asking {
	struct opd_java *java;
	const struct opd_runtime_frame *frame;
	struct opd_runtime_answer *answer;
	enum opd_runtime_fault *fault;
	uint64_t now_ns;
	bool must_wait; /* a looker had no time */
};

/* NULL: no memory. */
struct opd_java *opd_java_begin(struct opd_runtime_host *host, const struct opd_runtime_process *process) OP_NONNULL OP_MUST_CHECK;
void opd_java_end(struct opd_java *java) OP_NONNULL;

/* The layout; asked for once. 0; -EAGAIN: later; -EPROTONOSUPPORT: it is not known; -errno. */
int opd_java_get_layout(struct opd_java_asking *asking) OP_NONNULL OP_MUST_CHECK;

/*
 * The code at an address, read now or before. 0: *ret_place; NULL: no code of the machine is there.
 * -ESTALE: other code came between the sample and now; -EAGAIN: later; -errno. What it returns is
 * valid until the next question.
 */
int opd_java_get_place(struct opd_java_asking *asking, uint64_t pc, bool is_exact, struct opd_java_blob **ret_blob,
		       struct opd_java_range **ret_place) OP_NONNULL OP_MUST_CHECK;

/* The same for a method. */
int opd_java_get_method(struct opd_java_asking *asking, uint64_t at,
			struct opd_java_function **ret_method) OP_NONNULL OP_MUST_CHECK;

/* The line of a position in the bytecode; 0: not known. */
uint32_t opd_java_line(const struct opd_java_function *method, int64_t bci) OP_NONNULL;

#endif
