/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/session/pending.h"

#include <errno.h>

#include "libop/odb/odb.h"
#include "libop/session/layout.h"
#include "libop/session/walk.h"

struct sessions {
	char **paths; /* "samples/NAME" */
	size_t nr;
};

/* Takes `path` over, also when it fails. */
static int add_path(struct sessions *sessions, char *path)
{
	char **paths = reallocarray(sessions->paths, sessions->nr + 1, sizeof(*paths));

	if (!paths) {
		free(path);
		return -ENOMEM;
	}
	sessions->paths = paths;
	paths[sessions->nr++] = path;
	return 0;
}

static int add_closed(const char *name, void *arg)
{
	char *path;

	if (asprintf(&path, "samples/%s", name) < 0)
		return -ENOMEM;
	if (strcmp(path, OP_SESSION_CURRENT) != 0)
		return add_path(arg, path);
	free(path);
	return 0;
}

int op_session_settle_pending(int session_fd, uint64_t *ret_nr_put_back)
{
	struct sessions sessions = { 0 };
	struct op_odb_recovery recovery = { 0 };
	struct op_odb_moves moves = { .from = OP_SESSION_CURRENT };
	int err = op_session_visit_dir(session_fd, "samples", add_closed, &sessions);

	moves.to = sessions.paths;
	moves.nr_to = sessions.nr;
	/* Links that seem to be nobody's are removed: without all the sessions they wait. */
	if (!err)
		err = op_odb_recover(session_fd, OP_SESSION_TMP_SAMPLE, &moves, &recovery);
	for (size_t i = 0; i < sessions.nr; i++)
		free(sessions.paths[i]);
	free(sessions.paths);
	if (!err)
		*ret_nr_put_back = recovery.nr_put_back;
	return err;
}
