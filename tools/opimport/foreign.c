/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/base/sys.h"
#include "libop/odb/abi.h"
#include "tools/common/formatting.h"
#include "tools/common/log.h"
#include "tools/common/output.h"
#include "tools/opimport/opimport.h"

#define MADE_NAME "file" /* in a directory of its own */

static int read_abi(const struct opi_options *options, struct op_abi *ret_abi)
{
	const char *name = NULL;
	char *text = NULL;
	int err = op_file_read(AT_FDCWD, options->abi, OP_ABI_MAX_BYTES, &text);

	if (err < 0)
		return opr_error(err, "cannot read %s: %s", options->abi, strerror(-err));
	err = op_abi_parse(text, ret_abi, &name);
	free(text);
	if (err == -ENODATA)
		return opr_error(err, "%s does not describe sample files: %s is missing", options->abi, name);
	if (err < 0)
		return opr_error(err, "%s: %s makes no sense", options->abi, name);
	if (!memcmp(ret_abi, &op_abi_native, sizeof(*ret_abi)) && !options->force)
		return opr_error(-EINVAL,
				 "the files that %s describes are read here as they are (--force makes a copy all the same)",
				 options->abi);
	return 0;
}

static int read_samples(const struct opi_options *options, const struct op_abi *abi, struct op_odb_samples *ret_samples)
{
	struct op_odb_fault fault = { 0 };
	int fd = op_sys_openat(AT_FDCWD, options->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0), err;

	if (fd < 0)
		return opr_error(fd, "cannot open %s: %s", options->file, strerror(-fd));
	err = op_abi_read(abi, fd, ret_samples, &fault);
	close(fd);
	if (err == -EBADMSG)
		return opr_error(err, "%s: %s, at byte %llu", options->file, fault.why, (unsigned long long)fault.offset);
	return err < 0 ? opr_error(err, "cannot read %s: %s", options->file, strerror(-err)) : 0;
}

/* Writes a new file `name` below dir_fd. */
static int fill_file(int dir_fd, const char *name, const struct op_odb_samples *samples)
{
	struct op_odb *odb = NULL;
	char tmp[64];
	int err, fd;

	snprintf(tmp, sizeof(tmp), "%s.new", name);
	err = op_odb_open(dir_fd, name, tmp, &samples->header, &odb);
	for (uint32_t i = 0; !err && i < samples->nr_nodes; i++)
		err = op_odb_add(odb, samples->nodes[i].key, samples->nodes[i].value);
	op_odb_close(odb);
	if (err < 0)
		return err;
	fd = op_sys_openat(dir_fd, name, O_RDONLY | O_CLOEXEC, 0);
	if (fd < 0)
		return fd;
	err = op_sys_fsync(fd);
	close(fd);
	return err;
}

/* In a directory of its own: in a shared one, a file of another user may have the name already. */
static int write_below(int dir_fd, const char *name, const struct op_odb_samples *samples)
{
	char path[sizeof("/proc/self/fd//.opimport-XXXXXX") + 10];
	const char *tmp;
	int tmp_fd, err;

	snprintf(path, sizeof(path), "/proc/self/fd/%d/.opimport-XXXXXX", dir_fd);
	if (!mkdtemp(path))
		return -errno;
	tmp = strrchr(path, '/') + 1;
	tmp_fd = op_sys_openat(dir_fd, tmp, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	err = tmp_fd < 0 ? tmp_fd : fill_file(tmp_fd, MADE_NAME, samples);
	if (!err)
		err = op_sys_rename_new(tmp_fd, MADE_NAME, dir_fd, name);
	if (err && tmp_fd >= 0)
		op_sys_unlinkat(tmp_fd, MADE_NAME, 0);
	if (tmp_fd >= 0)
		close(tmp_fd);
	op_sys_unlinkat(dir_fd, tmp, AT_REMOVEDIR);
	return err;
}

static int write_samples(const struct opi_options *options, const struct op_odb_samples *samples)
{
	char *dir_copy = strdup(options->output), *name_copy = strdup(options->output);
	int dir_fd, err = dir_copy && name_copy ? 0 : -ENOMEM;

	if (!err) {
		dir_fd = op_sys_openat(AT_FDCWD, dirname(dir_copy), O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
		err = dir_fd < 0 ? dir_fd : write_below(dir_fd, basename(name_copy), samples);
		if (dir_fd >= 0)
			close(dir_fd);
	}
	free(dir_copy);
	free(name_copy);
	return err < 0 ? opr_error(err, "cannot make %s: %s", options->output, strerror(-err)) : 0;
}

static bool is_jit_object(const char *path)
{
	size_t length = strlen(path);

	return length >= 3 && !strcmp(path + length - 3, ".jo");
}

int opi_import_foreign(const struct opi_options *options)
{
	struct op_odb_samples samples = { 0 };
	struct op_abi abi;
	int err;

	/*
	 * A script that converts a whole session file by file calls for objects of JIT code, too.
	 */
	if (is_jit_object(options->file))
		return 0;
	err = read_abi(options, &abi);
	if (err)
		return err;
	err = read_samples(options, &abi, &samples);
	if (!err && options->verbose) {
		opr_write_escaped(stdout, options->file);
		printf(": %u nodes, %s bytes first, header of %u bytes\n", samples.nr_nodes,
		       abi.little_endian ? "low" : "high", abi.sizeof_struct_opd_header);
	}
	if (!err)
		err = write_samples(options, &samples);
	op_odb_samples_free(&samples);
	return err ? err : opr_stdout_flush();
}
