/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/oparchive/kernel.h"

#include <errno.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/base/sys.h"
#include "tools/code/core_file.h"
#include "tools/symbols/image_identity.h"
#include "tools/common/log.h"
#include "tools/symbols/symbol_sources.h"

/* Saves the code with symbols. Only the owner may read it, as with /proc/kcore. */
static int save_text(const char *path, const struct opr_symbols *symbols, int fd)
{
	const struct opr_symbol *first = &symbols->symbols[0], *last = &symbols->symbols[symbols->nr_symbols - 1];
	struct opr_core core;
	int err = opr_core_open(&core, path);

	if (!err)
		err = opr_core_save(&core, first->vma, last->vma + last->size, fd);
	opr_core_close(&core);
	if (!err && (fchmod(fd, S_IRUSR) < 0 || lseek(fd, 0, SEEK_SET) < 0))
		err = -errno;
	return err;
}

/* No message without --verbose: where the code cannot be read, opannotate cannot show it either. */
static int make_core(const char *kallsyms, const char *path)
{
	struct opr_symbols symbols = { 0 };
	int fd = op_sys_memfd_create("oparchive", MFD_CLOEXEC);
	int err = fd < 0 ? fd : opr_symbols_read_kallsyms(&symbols, kallsyms, OPR_DEMANGLE_NONE);

	if (!err)
		err = symbols.nr_symbols ? save_text(path, &symbols, fd) : -ENODATA;
	opr_symbols_free(&symbols);
	if (err)
		opr_verbose(OPR_TOPIC_bfd, "%s: %s", path, strerror(-err));
	if (!err)
		return fd;
	if (fd >= 0)
		close(fd);
	return err;
}

int opr_archive_add_kernel(struct opr_archive_writer *writer, const char *kallsyms)
{
	char *notes = opr_beside_kallsyms(kallsyms, OPR_KERNEL_NOTES), *core = opr_beside_kallsyms(kallsyms, OPR_KERNEL_CORE);
	int err = notes && core ? opr_archive_add(writer, notes, OPR_KERNEL_NOTES) : opr_no_memory();

	if (!opr_archive_is_fatal(err)) {
		int fd = make_core(kallsyms, core);

		err = fd < 0 ? 0 : opr_archive_add_open(writer, fd, core, OPR_KERNEL_CORE);
	}
	free(notes);
	free(core);
	return opr_archive_is_fatal(err) ? err : 0;
}

static int read_symbols(struct opr_symbols *symbols, const char *path, bool *ret_hidden)
{
	int err = opr_symbols_read_kallsyms(symbols, path, OPR_DEMANGLE_NONE);

	*ret_hidden = err == -EPERM;
	return err == -ENOMEM ? opr_no_memory() : 0;
}

static bool are_same(const struct opr_symbols *left, const struct opr_symbols *right)
{
	bool same = left->nr_symbols == right->nr_symbols;

	for (size_t i = 0; same && i < left->nr_symbols; i++)
		same = left->symbols[i].start == right->symbols[i].start && left->symbols[i].size == right->symbols[i].size &&
		       !strcmp(left->symbols[i].name, right->symbols[i].name);
	return same;
}

int opr_archive_compare_kernels(const char *left, const char *right, bool *ret_same)
{
	struct opr_symbols of_left = { 0 }, of_right = { 0 };
	bool left_hidden = false, right_hidden = false;
	int err = read_symbols(&of_left, left, &left_hidden);

	if (!err)
		err = read_symbols(&of_right, right, &right_hidden);
	if (!err)
		*ret_same = left_hidden == right_hidden && are_same(&of_left, &of_right);
	opr_symbols_free(&of_left);
	opr_symbols_free(&of_right);
	return err;
}
