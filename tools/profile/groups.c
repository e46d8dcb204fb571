/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/profile/groups.h"

#include <errno.h>
#include <inttypes.h>
#include <pwd.h>

#include "tools/common/log.h"
#include "tools/profile/image_name.h"

#define NO_PROCESS   "(no process)"
#define USERS_KEPT   64
#define NAME_BYTES   64
#define ENTRY_BYTES  4096

static const struct {
	const char *word, *separate;
} groupings[OPR_NR_GROUPINGS] = {
	[OPR_BY_NONE] = { "", "" },
#define X(id, word, separate) [OPR_BY_##id] = { word, separate },
	OPR_GROUPINGS(X)
#undef X
};

const char *opr_by_word(enum opr_by by)
{
	return groupings[by].word;
}

int opr_take_by(void *field, const char *value)
{
	for (enum opr_by by = OPR_BY_NONE + 1; by < OPR_NR_GROUPINGS; by++) {
		if (strcmp(value, groupings[by].word) != 0)
			continue;
		*(enum opr_by *)field = by;
		return 0;
	}
	return opr_error(-EINVAL, "--by=%s: unknown word; allowed: comm, cgroup, user, thread", value);
}

/* ---- what a file was kept apart by ---- */

/* The application is none: the kernel without a process, or samples without a place. */
static bool has_process(const struct opr_session *session, const struct opr_file *file)
{
	const struct op_dcookie_row *row = opr_session_row(session, &file->name->app);

	if (opr_is_kernel_thread(session, &file->name->app))
		return true;
	return row ? !row->id.is_pseudo && !row->id.is_kernel : file->name->app.kind == OP_IMAGE_FILE;
}

static bool is_apart(const struct opr_session *session, const struct opr_file *file, enum opr_by by)
{
	const struct op_dcookie_row *program = opr_session_program(session, &file->name->app);

	switch (by) {
	case OPR_BY_COMM:
		return program && program->id.comm[0];
	case OPR_BY_USER:
		return program && program->id.user != OP_USER_NONE;
	case OPR_BY_THREAD:
		return file->name->tid != OP_CLASS_ALL;
	case OPR_BY_CGROUP:
	case OPR_BY_NONE:
	case OPR_NR_GROUPINGS:
		break;
	}
	return session->cgroup;
}

int opr_groups_check(const struct opr_profile *profile, enum opr_by by)
{
	if (by == OPR_BY_NONE)
		return 0;
	for (size_t i = 0; i < profile->nr_files; i++)
		if (is_apart(&profile->sessions[profile->files[i].session], &profile->files[i], by))
			return 0;
	return opr_error(-ENOENT,
			 "--by=%s: these samples were not kept apart in this way: opcontrol --setup --separate=kernel,%s%s "
			 "keeps later samples apart",
			 groupings[by].word, groupings[by].separate, by == OPR_BY_THREAD ? ", or operf --separate-thread," : "");
}

/* ---- words ---- */

/* Names of users of this machine; an archive may be of another. The last ones are remembered. */
char *opr_user_name(const struct opr_profile *profile, uint32_t user)
{
	static struct {
		bool is_known;
		uint32_t user;
		char name[NAME_BYTES];
	} kept[USERS_KEPT];
	size_t slot = user % USERS_KEPT;
	char entry_text[ENTRY_BYTES];
	struct passwd entry, *found = NULL;

	if (!kept[slot].is_known || kept[slot].user != user) {
		if (!profile->archive && getpwuid_r(user, &entry, entry_text, sizeof(entry_text), &found) != 0)
			found = NULL;
		kept[slot].is_known = true;
		kept[slot].user = user;
		if (found)
			snprintf(kept[slot].name, NAME_BYTES, "%s", found->pw_name);
		else
			snprintf(kept[slot].name, NAME_BYTES, "%" PRIu32, user);
	}
	return strdup(kept[slot].name);
}

/*
 * A thread by the tags that select it. The main thread has the name of its process. Names of other
 * threads are not in a session: that of their process stands in parentheses.
 */
static char *name_thread(const struct opr_session *session, const struct opr_file *file)
{
	const struct op_dcookie_row *program = opr_session_program(session, &file->name->app);
	const char *name = program && program->id.comm[0] ? program->id.comm : opr_base_name(file->app);
	struct op_text text = { 0 };

	if (file->name->tid == OP_CLASS_ALL)
		return strdup("(no thread)");
	op_text_printf(&text, file->name->tid == file->name->tgid ? "tid:%" PRId32 " tgid:%" PRId32 " %s" :
								    "tid:%" PRId32 " tgid:%" PRId32 " (%s)",
		       file->name->tid, file->name->tgid, name);
	return op_text_steal(&text);
}

char *opr_group_of(const struct opr_profile *profile, const struct opr_file *file, enum opr_by by)
{
	const struct opr_session *session = &profile->sessions[file->session];
	const struct op_dcookie_row *program = opr_session_program(session, &file->name->app);
	bool is_kernel_thread = opr_is_kernel_thread(session, &file->name->app);

	if (by == OPR_BY_CGROUP)
		return strdup(session->cgroup);
	if (by == OPR_BY_THREAD)
		return name_thread(session, file);
	if (by == OPR_BY_USER && (is_kernel_thread || is_apart(session, file, by)))
		return opr_user_name(profile, is_kernel_thread ? 0 : program->id.user);
	if (by == OPR_BY_COMM && is_kernel_thread)
		return strdup(file->app);
	if (is_apart(session, file, by))
		return strdup(program->id.comm);
	if (!has_process(session, file))
		return strdup(NO_PROCESS);
	return strdup(by == OPR_BY_USER ? "(no user)" : "(no name)");
}
