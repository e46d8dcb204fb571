/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/files/lookers.h"

#include <errno.h>

#include "pipeline/files/build_ids.h"
#include "pipeline/files/far_file.h"
#include "pipeline/files/locate_ask.h"
#include "pipeline/files/node_heap.h"
#include "pipeline/files/owner_ask.h"
#include "pipeline/files/pass_file.h"
#include "pipeline/files/proc_maps.h"
#include "pipeline/files/stack_copy.h"
#include "pipeline/files/unchanged.h"
#include "pipeline/readers/java.h"

typedef int (*answerer)(const char *question, size_t nr_bytes, int fd, struct op_text *answer);

static int answer_view(const char *question, size_t nr_bytes, int fd OP_UNUSED, struct op_text *answer)
{
	struct opd_place place;
	uint32_t pid;

	if (nr_bytes != sizeof(pid))
		return -EINVAL;
	memcpy(&pid, question, sizeof(pid));
	if (!opd_place_read(pid, &place))
		return -ENOENT;
	op_text_add_bytes(answer, &place, offsetof(struct opd_place, root) + strlen(place.root));
	return 0;
}

static int answer_maps(const char *question, size_t nr_bytes, int fd OP_UNUSED, struct op_text *answer)
{
	struct opd_proc_wanted wanted;

	if (nr_bytes != sizeof(wanted))
		return -EINVAL;
	memcpy(&wanted, question, sizeof(wanted));
	return opd_proc_maps_answer(&wanted, answer);
}

static int answer_locate(const char *question, size_t nr_bytes, int fd OP_UNUSED, struct op_text *answer)
{
	return opd_locate_answer(question, nr_bytes, answer);
}

static int answer_build_id(const char *question, size_t nr_bytes, int fd OP_UNUSED, struct op_text *answer)
{
	return opd_build_ids_answer(question, nr_bytes, answer);
}

static int answer_unchanged(const char *question, size_t nr_bytes, int fd OP_UNUSED, struct op_text *answer)
{
	return opd_unchanged_answer(question, nr_bytes, answer);
}

static int answer_read(const char *question, size_t nr_bytes, int fd OP_UNUSED, struct op_text *answer)
{
	return opd_far_read_answer(question, nr_bytes, answer);
}

static int answer_close(const char *question, size_t nr_bytes, int fd OP_UNUSED, struct op_text *answer OP_UNUSED)
{
	return opd_far_close_answer(question, nr_bytes);
}

static int answer_pass(const char *question, size_t nr_bytes, int fd, struct op_text *answer OP_UNUSED)
{
	return opd_pass_file_answer(question, nr_bytes, fd);
}

static int answer_stack(const char *question, size_t nr_bytes, int fd OP_UNUSED, struct op_text *answer)
{
	return opd_stack_copy_answer(question, nr_bytes, answer);
}

static int answer_node(const char *question, size_t nr_bytes, int fd OP_UNUSED, struct op_text *answer)
{
	return opd_node_answer(question, nr_bytes, answer);
}

static int answer_java(const char *question, size_t nr_bytes, int fd OP_UNUSED, struct op_text *answer)
{
	return opd_java_answer(question, nr_bytes, answer);
}

static const answerer answerers[OPD_NR_LOOKS] = {
	[OPD_LOOK_VIEW] = answer_view,
	[OPD_LOOK_MAPS] = answer_maps,
	[OPD_LOOK_LOCATE] = answer_locate,
	[OPD_LOOK_BUILD_ID] = answer_build_id,
	[OPD_LOOK_UNCHANGED] = answer_unchanged,
	[OPD_LOOK_OWNER] = opd_jit_owner_answer,
	[OPD_LOOK_OPEN] = opd_jit_open_answer,
	[OPD_LOOK_READ] = answer_read,
	[OPD_LOOK_CLOSE] = answer_close,
	[OPD_LOOK_PASS] = answer_pass,
	[OPD_LOOK_STACK] = answer_stack,
	[OPD_LOOK_NODE] = answer_node,
	[OPD_LOOK_JAVA] = answer_java,
};

int opd_look_answer(const char *question, size_t nr_bytes, int fd, struct op_text *answer)
{
	uint32_t look;

	if (nr_bytes < sizeof(look))
		return -EINVAL;
	memcpy(&look, question, sizeof(look));
	if (look >= OPD_NR_LOOKS || !answerers[look])
		return -EINVAL;
	return answerers[look](question + sizeof(look), nr_bytes - sizeof(look), fd, answer);
}
