/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * A temporary directory for one test. box_setup and box_teardown are cmocka fixtures; *state is a
 * struct box.
 */
#ifndef TEST_BOX_H
#define TEST_BOX_H

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

#include "libop/base/compiler.h"

struct box {
	char path[32];
	int fd;
};

static OP_UNUSED int box_setup(void **state)
{
	struct box *box = test_malloc(sizeof(*box));

	snprintf(box->path, sizeof(box->path), "/tmp/opd-test.XXXXXX");
	if (!mkdtemp(box->path))
		return -1;
	box->fd = open(box->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	*state = box;
	return box->fd < 0 ? -1 : 0;
}

static OP_UNUSED int box_teardown(void **state)
{
	struct box *box = *state;
	DIR *dir = fdopendir(box->fd);
	struct dirent *entry;

	while ((entry = readdir(dir)))
		if (unlinkat(dirfd(dir), entry->d_name, 0) < 0)
			unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR);
	closedir(dir);
	rmdir(box->path);
	test_free(box);
	return 0;
}

#define box_test(function) cmocka_unit_test_setup_teardown(function, box_setup, box_teardown)

#endif
