/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Fuzz target for compressed kernel modules. Input: the compression (1 byte), the file. The result
 * is a whole file within the size limit, or an error.
 */
#include "tests/fuzz/fuzz_dir.h"

#include <sys/stat.h>
#include <unistd.h>

#include "tools/elf/module_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t nr_bytes)
{
	static const char *const names[] = { "m.ko.gz", "m.ko.xz", "m.ko.zst" };
	const char *name = nr_bytes ? names[bytes[0] % op_array_size(names)] : NULL;
	char path[FUZZ_PATH_BYTES];
	struct stat st;
	int fd;

	if (!name)
		return 0;
	fuzz_check(fuzz_dir_write(name, bytes + 1, nr_bytes - 1));
	fuzz_dir_path(path, name);
	fuzz_check(opr_module_is_packed(path));
	fd = opr_module_unpack(path, NULL);
	if (fd < 0)
		return 0;
	fuzz_check(!fstat(fd, &st) && st.st_size <= OPR_MODULE_BYTES_MAX && !lseek(fd, 0, SEEK_CUR));
	close(fd);
	return 0;
}
