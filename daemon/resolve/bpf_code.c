/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/resolve/bpf_code.h"

#include <errno.h>
#include <linux/bpf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libop/base/sys.h"

#define FUNCTIONS_MAX 4096u /* of a program; the verifier takes 256 */

static int make_room(struct opd_bpf_code *code, size_t nr_more)
{
	size_t capacity = op_max_u64(code->nr_functions + nr_more, code->capacity * 2);
	struct opd_bpf_function *functions;

	if (code->nr_functions + nr_more <= code->capacity)
		return 0;
	functions = realloc(code->functions, capacity * sizeof(*functions));
	if (!functions)
		return -ENOMEM;
	code->functions = functions;
	code->capacity = capacity;
	return 0;
}

static int get_info(int fd, struct bpf_prog_info *info)
{
	union bpf_attr attr = { 0 };

	attr.info.bpf_fd = (uint32_t)fd;
	attr.info.info_len = sizeof(*info);
	attr.info.info = (uintptr_t)info;
	return op_sys_bpf(BPF_OBJ_GET_INFO_BY_FD, &attr, sizeof(attr));
}

/* The kernel fills in as many as there is room for, says how many there are, and has 0 for addresses that are hidden. */
static int take_functions(struct opd_bpf_code *code, int fd, uint32_t nr)
{
	uint64_t *starts = calloc(nr, sizeof(*starts));
	uint32_t *lengths = calloc(nr, sizeof(*lengths));
	struct bpf_prog_info info = {
		.nr_jited_ksyms = nr,
		.nr_jited_func_lens = nr,
		.jited_ksyms = (uintptr_t)starts,
		.jited_func_lens = (uintptr_t)lengths,
	};
	int err = starts && lengths ? make_room(code, nr) : -ENOMEM;

	if (!err && get_info(fd, &info) >= 0 && info.nr_jited_ksyms == nr && info.nr_jited_func_lens == nr)
		for (uint32_t i = 0; i < nr; i++)
			if (starts[i] && lengths[i])
				code->functions[code->nr_functions++] =
					(struct opd_bpf_function){ .start = starts[i], .nr_bytes = lengths[i] };
	free(starts);
	free(lengths);
	return err;
}

static int take_program(struct opd_bpf_code *code, uint32_t id)
{
	struct bpf_prog_info info = { 0 };
	union bpf_attr attr = { 0 };
	int fd, err = 0;

	attr.prog_id = id;
	fd = op_sys_bpf(BPF_PROG_GET_FD_BY_ID, &attr, sizeof(attr));
	if (fd < 0)
		return 0;
	if (get_info(fd, &info) >= 0 && info.nr_jited_ksyms && info.nr_jited_ksyms <= FUNCTIONS_MAX &&
	    info.nr_jited_func_lens == info.nr_jited_ksyms)
		err = take_functions(code, fd, info.nr_jited_ksyms);
	close(fd);
	return err;
}

int opd_bpf_code_read(struct opd_bpf_code *code)
{
	union bpf_attr attr = { 0 };
	int err = 0;

	*code = (struct opd_bpf_code){ 0 };
	while (!err && op_sys_bpf(BPF_PROG_GET_NEXT_ID, &attr, sizeof(attr)) >= 0) {
		uint32_t id = attr.next_id;

		err = take_program(code, id);
		attr = (union bpf_attr){ 0 };
		attr.start_id = id;
	}
	return err;
}

void opd_bpf_code_free(struct opd_bpf_code *code)
{
	free(code->functions);
	*code = (struct opd_bpf_code){ 0 };
}
