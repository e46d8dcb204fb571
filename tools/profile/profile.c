/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/profile/profile.h"

#include <errno.h>
#include <unistd.h>

#include "libop/base/guard.h"
#include "tools/common/log.h"

size_t opr_profile_nr_left_out(const struct opr_profile *profile)
{
	size_t nr_left_out = 0;

	for (size_t i = 0; i < profile->nr_sessions; i++)
		nr_left_out += profile->sessions[i].misfits.nr_words + profile->sessions[i].damaged.nr_words;
	return nr_left_out;
}

int opr_profile_end(const struct opr_profile *profile)
{
	size_t nr_left_out = opr_profile_nr_left_out(profile);

	if (op_guard_nr_broken())
		return opr_error(-EIO, "stored symbols were lost while they were shown, names may be missing: run it again");
	if (!nr_left_out)
		return 0;
	return opr_error(-EBADMSG, "%zu %s left out (see the warnings): the report is incomplete", nr_left_out,
			 nr_left_out == 1 ? "file or directory was" : "files and directories were");
}

void opr_file_free(struct opr_file *file)
{
	free(file->app);
	free(file->image);
	free(file->callee);
	op_odb_samples_free(&file->kept);
}

static void free_session(struct opr_session *session, bool is_parent)
{
	if (session->dir_fd >= 0)
		close(session->dir_fd);
	op_session_list_free(&session->list);
	op_session_ledger_free(&session->ledger);
	opr_words_free(&session->misfits);
	opr_words_free(&session->damaged);
	if (is_parent)
		op_dcookie_table_free(session->images);
	free(session->path);
	free(session->real_path);
	free(session->cgroup);
}

void opr_profile_free(struct opr_profile *profile)
{
	if (!profile)
		return;
	for (size_t i = 0; i < profile->nr_files; i++)
		opr_file_free(&profile->files[i]);
	for (size_t i = 0; i < profile->nr_sessions; i++)
		free_session(&profile->sessions[i], profile->sessions[i].parent == i);
	for (size_t i = 0; i < profile->nr_session_fds; i++)
		if (profile->session_fds[i] >= 0)
			close(profile->session_fds[i]);
	free(profile->session_fds);
	free(profile->files);
	free(profile->parts);
	free(profile->sessions);
	*profile = (struct opr_profile){ 0 };
}
