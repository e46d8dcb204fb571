/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/session/pending.h"

#include <errno.h>
#include <stdio.h>

#include "libop/base/grow.h"
#include "libop/odb/recover.h"
#include "libop/session/layout.h"
#include "libop/session/list.h"
#include "libop/session/walk.h"

struct sessions {
	char **paths; /* "samples/NAME" */
	size_t nr, capacity;
};

static int add_closed(const char *name, void *arg)
{
	struct sessions *sessions = arg;

	if (!strcmp(name, strrchr(OP_SESSION_CURRENT, '/') + 1))
		return 0;
	if (!op_grow(&sessions->paths, &sessions->capacity, sessions->nr + 1))
		return -ENOMEM;
	if (asprintf(&sessions->paths[sessions->nr], "samples/%s", name) < 0)
		return -ENOMEM;
	sessions->nr++;
	return 0;
}

int op_session_recover_pending(int session_fd, uint64_t *ret_nr_put_back)
{
	struct sessions sessions = { 0 };
	struct op_odb_moves moves = { .from = OP_SESSION_CURRENT };
	uint64_t nr_put_back = 0;
	int err = op_session_visit_dir(session_fd, "samples", add_closed, &sessions);

	moves.to = sessions.paths;
	moves.nr_to = sessions.nr;
	/* op_odb_recover removes links whose file it does not find: it must know all sessions. */
	if (!err)
		err = op_odb_recover(session_fd, OP_SESSION_TMP_SAMPLE, &moves, op_session_is_jit_object, &nr_put_back);
	for (size_t i = 0; i < sessions.nr; i++)
		free(sessions.paths[i]);
	free(sessions.paths);
	if (!err)
		*ret_nr_put_back = nr_put_back;
	return err;
}
