/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "pipeline/capture/cpus.h"

static int read_list(const char *list, uint32_t **ret_cpus, size_t *ret_nr_cpus)
{
	char path[] = "/tmp/test_cpus.XXXXXX";
	int fd = mkostemp(path, O_CLOEXEC), err;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, list, strlen(list)), (ssize_t)strlen(list));
	close(fd);
	err = opd_cpus_read(path, ret_cpus, ret_nr_cpus);
	unlink(path);
	return err;
}

static void parses_lists(void **state OP_UNUSED)
{
	uint32_t *cpus;
	size_t nr;

	assert_int_equal(read_list("0\n", &cpus, &nr), 0);
	assert_int_equal(nr, 1);
	free(cpus);
	assert_int_equal(read_list("0-2,8,10-11\n", &cpus, &nr), 0);
	assert_int_equal(nr, 6);
	assert_int_equal(cpus[2], 2);
	assert_int_equal(cpus[3], 8);
	assert_int_equal(cpus[5], 11);
	free(cpus);
}

static void refuses_what_is_no_list(void **state OP_UNUSED)
{
	static const char *const bad[] = { "", "\n", "a", "1-", "-1", "3-1", "0,", "0-99999999", "1 2", "0x" };

	for (size_t i = 0; i < op_array_size(bad); i++) {
		uint32_t *cpus = NULL;
		size_t nr = 77;

		assert_int_equal(read_list(bad[i], &cpus, &nr), -EINVAL);
		assert_null(cpus);
		assert_int_equal(nr, 77);
	}
}

static void this_machine_has_some(void **state OP_UNUSED)
{
	uint32_t *cpus;
	size_t nr;

	assert_int_equal(opd_cpus_read(OPD_CPUS_ONLINE, &cpus, &nr), 0);
	assert_true(nr >= 1);
	free(cpus);
	assert_true(opd_cpu_speed_mhz() >= 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parses_lists),
		cmocka_unit_test(refuses_what_is_no_list),
		cmocka_unit_test(this_machine_has_some),
	};

	return cmocka_run_group_tests_name("cpus", tests, NULL, NULL);
}
