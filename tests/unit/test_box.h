/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Temporary directories. box_setup and box_teardown are cmocka fixtures; *state is a struct box.
 * They lie in /tmp, on a disk. A test that makes thousands of files defines BOX_IN_MEMORY first, if
 * tmpfs has all that it needs: directories have no blocks there, and inodes no generation.
 */
#ifndef TEST_BOX_H
#define TEST_BOX_H

#include "tests/unit/cmocka_all.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "libop/base/compiler.h"

#define BOX_PATH_BYTES 32

#ifdef BOX_IN_MEMORY
#define BOX_TOP (access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm")
#else
#define BOX_TOP "/tmp"
#endif

/* Makes a directory: 0 or -1. */
static OP_UNUSED int box_make(char ret_path[BOX_PATH_BYTES])
{
	snprintf(ret_path, BOX_PATH_BYTES, "%s/opd-test.XXXXXX", BOX_TOP);
	return mkdtemp(ret_path) ? 0 : -1;
}

/* Makes a directory and opens it: its descriptor or -1. */
static OP_UNUSED int box_make_open(char ret_path[BOX_PATH_BYTES])
{
	return box_make(ret_path) ? -1 : open(ret_path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
}

/* Removes a directory with all that is in it. */
static OP_UNUSED int box_remove(const char *path)
{
	char command[BOX_PATH_BYTES + 16];

	snprintf(command, sizeof(command), "rm -rf %s", path);
	return system(command);
}

struct box {
	char path[BOX_PATH_BYTES];
	int fd;
};

static OP_UNUSED int box_setup(void **state)
{
	struct box *box = test_malloc(sizeof(*box));

	box->fd = box_make_open(box->path);
	*state = box;
	return box->fd < 0 ? -1 : 0;
}

static OP_UNUSED int box_teardown(void **state)
{
	struct box *box = *state;
	int err = box_remove(box->path);

	close(box->fd);
	test_free(box);
	return err;
}

#define box_test(function) cmocka_unit_test_setup_teardown(function, box_setup, box_teardown)

#endif
