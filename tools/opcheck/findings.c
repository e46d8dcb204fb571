/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opcheck/findings.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "libop/session/leftovers.h"

void opk_report(struct opk_check *check, struct opk_problem *problem, int err)
{
	char failure[128];

	problem->outcome = check->repair && !err ? OPK_REPAIRED : OPK_NOT_REPAIRED;
	if (check->repair && err) {
		snprintf(failure, sizeof(failure), "cannot repair it: %s", strerror(-err));
		problem->detail = failure;
	}
	if (problem->outcome == OPK_REPAIRED)
		check->nr_repaired++;
	else
		check->nr_left++;
	check->report(problem, check->arg);
}

void opk_note(struct opk_check *check, const char *path, const char *fault)
{
	struct opk_problem problem = { .path = path, .fault = fault, .detail = "", .outcome = OPK_NOTED };

	check->report(&problem, check->arg);
}

bool opk_put_aside(struct opk_check *check, const char *path, const char *fault, uint64_t offset, const char *detail)
{
	struct opk_problem problem = { .path = path, .fault = fault, .offset = offset, .has_offset = true, .detail = detail };
	char aside[OP_DAMAGED_NAME_BYTES] = "", kept[OP_DAMAGED_NAME_BYTES + 32];
	int err = check->repair ? op_damaged_put_aside(check->dir_fd, path, aside) : 0;

	if (*aside && !err) {
		snprintf(kept, sizeof(kept), "kept as %s", aside);
		problem.detail = kept;
	}
	opk_report(check, &problem, err);
	return check->repair && !err;
}

bool opk_is_other(const struct opk_check *check, const char *path, mode_t type)
{
	struct stat st;

	return !fstatat(check->dir_fd, path, &st, AT_SYMLINK_NOFOLLOW) && (st.st_mode & S_IFMT) != type;
}

bool opk_put_other_aside(struct opk_check *check, const char *path, mode_t type, const char *fault)
{
	bool is_other = opk_is_other(check, path, type);

	if (is_other)
		opk_put_aside(check, path, fault, 0, "");
	return is_other;
}
