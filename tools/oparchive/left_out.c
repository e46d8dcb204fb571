/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/oparchive/run.h"

#include <errno.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tools/oparchive/copy.h"
#include "tools/common/log.h"

void opa_note_left_out(struct opa_run *run, const char *path)
{
	opr_archive_note(&run->writer, "left-out", path);
	run->nr_left_out++;
}

void opa_warn_other(struct opa_run *run, const char *path, const char *why)
{
	opr_warn("%s is left out: %s in %s, from an earlier session, whose files are not replaced; archive this session into "
		 "another directory",
		 path, why, run->options->output_dir);
	opr_archive_note(&run->writer, "other", path);
	run->nr_left_out++;
}

/* The end of a warning: who may read a file that the caller may not read. */
static void write_remedy(int err, const char *path, char *remedy, size_t nr_bytes)
{
	const struct passwd *owner;
	struct stat st;

	*remedy = '\0';
	if ((err != -EACCES && err != -EPERM) || !geteuid())
		return;
	owner = stat(path, &st) || !st.st_uid || st.st_uid == geteuid() || !(st.st_mode & S_IRUSR) ? NULL : getpwuid(st.st_uid);
	snprintf(remedy, nr_bytes, "; root%s%s can read it: run oparchive as root", owner ? " and its owner " : "",
		 owner ? owner->pw_name : "");
}

void opa_warn_unreadable(struct opa_run *run, int err, const char *path)
{
	char remedy[128];

	write_remedy(err, path, remedy, sizeof(remedy));
	if (err == -EFBIG)
		opr_warn("%s has more than %llu bytes of holes, and no ELF headers that say where it ends: it is left out",
			 path, OPR_HOLE_BYTES_MAX);
	else
		opr_warn("%s cannot be read (%s): it is left out%s", path, strerror(-err), remedy);
	opa_note_left_out(run, path);
}

int opa_warn_left_out(struct opa_run *run, int err, const char *path)
{
	if (!err || opr_archive_is_fatal(err))
		return err;
	if (err == -EEXIST)
		opa_warn_other(run, path, "another file has its name");
	else
		opa_warn_unreadable(run, err, path);
	return 0;
}
