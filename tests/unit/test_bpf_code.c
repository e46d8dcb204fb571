/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Lengths of BPF programs, from a kernel that the test simulates; test_kernel uses the real one. */
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/bpf.h>
#include <string.h>
#include <unistd.h>

#include "libop/base/sys.h"
#include "pipeline/resolve/kernel_code.h"

#define FUNCTIONS_MAX 100u
#define NONE          UINT32_MAX

/*
 * id 0: the end. A program with `vanishes` ends between two looks; one with `grows` has another
 * length at the second look.
 */
static const struct program {
	uint32_t id, nr_functions;
	uint64_t start;
	uint32_t nr_bytes;
	bool vanishes, grows;
} mixed[] = {
	{ .id = 2, .nr_functions = 1, .start = 0xffffffffc0001000, .nr_bytes = 300 },
	{ .id = 3, .vanishes = true },
	{ .id = 5, .nr_functions = FUNCTIONS_MAX, .start = 0xffffffffc0010000, .nr_bytes = 40 },
	{ .id = 6, .nr_functions = 0 },                             /* interpreted */
	{ .id = 7, .nr_functions = 2, .start = 0, .nr_bytes = 40 }, /* addresses are hidden */
	{ .id = 8, .nr_functions = 1000000, .start = 0xffffffffc0060000, .nr_bytes = 4 },
	{ .id = 9, .nr_functions = 2, .start = 0xffffffffc0050000, .nr_bytes = 40, .grows = true },
	{ .id = 11, .nr_functions = 1, .start = 0xffffffffc0020000, .nr_bytes = 70000 },
	{ .id = 0 },
};

static const struct program *asked;
static int refusal;
static uint32_t nr_calls;

static int next_id(union bpf_attr *attr)
{
	for (const struct program *program = mixed; program->id; program++)
		if (program->id > attr->start_id) {
			attr->next_id = program->id;
			return 0;
		}
	return -ENOENT;
}

static int open_program(const union bpf_attr *attr)
{
	for (asked = mixed; asked->id && asked->id != attr->prog_id; asked++)
		;
	assert_int_not_equal(asked->id, 0);
	return asked->vanishes ? -ENOENT : open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static int tell_info(const union bpf_attr *attr)
{
	struct bpf_prog_info *info = (struct bpf_prog_info *)(uintptr_t)attr->info.info;
	uint64_t *starts = (uint64_t *)(uintptr_t)info->jited_ksyms;
	uint32_t *lengths = (uint32_t *)(uintptr_t)info->jited_func_lens, nr = asked->nr_functions;

	assert_int_equal(attr->info.info_len, sizeof(*info));
	if (asked->grows && info->nr_jited_ksyms)
		nr++;
	for (uint32_t i = 0; i < nr && i < info->nr_jited_ksyms; i++)
		starts[i] = asked->start ? asked->start + (uint64_t)i * 64 : 0;
	for (uint32_t i = 0; i < nr && i < info->nr_jited_func_lens; i++)
		lengths[i] = asked->nr_bytes;
	info->nr_jited_ksyms = info->nr_jited_func_lens = nr;
	return 0;
}

int __wrap_op_sys_bpf(int command, void *attr, size_t nr_bytes);
int __wrap_op_sys_bpf(int command, void *attr, size_t nr_bytes)
{
	assert_int_equal(nr_bytes, sizeof(union bpf_attr));
	nr_calls++;
	if (refusal)
		return refusal;
	switch (command) {
	case BPF_PROG_GET_NEXT_ID:
		return next_id(attr);
	case BPF_PROG_GET_FD_BY_ID:
		return open_program(attr);
	case BPF_OBJ_GET_INFO_BY_FD:
		return tell_info(attr);
	}
	return -EINVAL;
}

static uint32_t bytes_at(const struct opd_bpf_code *code, uint64_t start)
{
	for (size_t i = 0; i < code->nr_functions; i++)
		if (code->functions[i].start == start)
			return code->functions[i].nr_bytes;
	return NONE;
}

static int lowest_free_fd(void)
{
	int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	close(fd);
	return fd;
}

static void all_functions_of_all_programs(void **state OP_UNUSED)
{
	struct opd_bpf_code code;
	int fd = lowest_free_fd();

	refusal = 0;
	assert_int_equal(opd_bpf_code_read(&code), 0);
	assert_int_equal(code.nr_functions, FUNCTIONS_MAX + 2);
	assert_int_equal(bytes_at(&code, 0xffffffffc0001000), 300);
	assert_int_equal(bytes_at(&code, 0xffffffffc0010000), 40);
	assert_int_equal(bytes_at(&code, 0xffffffffc0010000 + (FUNCTIONS_MAX - 1) * 64), 40);
	assert_int_equal(bytes_at(&code, 0xffffffffc0020000), 70000);
	assert_int_equal(bytes_at(&code, 0), NONE);
	opd_bpf_code_free(&code);
	assert_int_equal(lowest_free_fd(), fd);
}

/* Without CAP_SYS_ADMIN, and under a seccomp filter. */
static void who_may_not_ask_knows_nothing(void **state OP_UNUSED)
{
	struct opd_bpf_code code;

	refusal = -EPERM;
	nr_calls = 0;
	assert_int_equal(opd_bpf_code_read(&code), 0);
	assert_int_equal(code.nr_functions, 0);
	assert_int_equal(nr_calls, 1);
	opd_bpf_code_free(&code);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_functions_of_all_programs),
		cmocka_unit_test(who_may_not_ask_knows_nothing),
	};

	return cmocka_run_group_tests_name("bpf_code", tests, NULL, NULL);
}
