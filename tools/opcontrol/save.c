/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * --save: the daemon closes its session. If none runs, opcontrol does it, under the daemon's lock.
 * --unpack: opcontrol makes the sample files of a closed session anew.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/base/sys.h"
#include "libop/session/close.h"
#include "libop/session/directory.h"
#include "libop/session/layout.h"
#include "libop/session/ledger_file.h"
#include "libop/session/list.h"
#include "libop/session/pack_all.h"
#include "libop/session/parts.h"
#include "libop/session/leftovers.h"
#include "libop/session/stats_files.h"
#include "libop/session/sum.h"
#include "tools/common/log.h"
#include "tools/opcontrol/opcontrol.h"

/* No error, as in oprofile. */
static int say_nothing_saved(void)
{
	puts("There is no current session with samples: nothing was saved.");
	return 0;
}

/* In a list of sessions a comma ends a name, unless it is escaped. */
static void show_escaped(const char *name)
{
	struct op_text words = { 0 };

	if (!strchr(name, ','))
		return;
	for (; *name; name++)
		op_text_printf(&words, "%s%c", *name == ',' ? "\\" : "", *name);
	printf("opreport and the other tools know it as 'session:%s'.\n", op_text_get(&words));
	op_text_free(&words);
}

static int ask_daemon(const struct opcontrol *ctl, const char *name)
{
	char *message = NULL;
	int err = op_control_save(ctl->config.control_socket, name, &message);

	if (err < 0 && err != -ENODATA)
		opr_error(1, "--save: %s", message ? message : strerror(-err));
	free(message);
	if (!err)
		show_escaped(name);
	return err == -ENODATA ? say_nothing_saved() : err < 0;
}

/* Counts samples that a killed daemon did not enter, unless there are foreign files. */
static int recount(struct op_session_ledger *ledger, int current_fd)
{
	int err = op_session_ledger_recount(ledger, current_fd);

	if (!err)
		err = op_stats_raise(current_fd, ledger);
	return err == -EBADMSG ? 0 : err;
}

/*
 * Enters in the ledger that the user saved the session. A session of another program has no ledger.
 */
static int mark_saved(int current_fd, bool is_unclean)
{
	struct op_session_ledger ledger;
	int err = op_session_ledger_read(current_fd, &ledger, NULL);

	if (err)
		return err == -ENOENT || err == -EBADMSG ? 0 : err;
	ledger.ended = OP_SESSION_saved;
	err = is_unclean ? recount(&ledger, current_fd) : 0;
	if (!err)
		err = op_session_ledger_publish(&ledger, current_fd);
	op_session_ledger_free(&ledger);
	return err;
}

static int has_files(int current_fd, bool *ret_has)
{
	struct op_session_list list;
	int err = op_session_list(current_fd, &list, NULL);

	if (err == -EBADMSG) {
		*ret_has = true; /* there are files, but not only sample files */
		return 0;
	}
	if (err)
		return err;
	*ret_has = list.nr_files;
	op_session_list_free(&list);
	return 0;
}

/* The ledger knows, as for the daemon. Without one, or after a kill, the files know. */
static int has_samples(int current_fd, bool *ret_has)
{
	struct op_session_ledger ledger;
	bool is_empty = true;

	if (!op_session_ledger_read(current_fd, &ledger, NULL)) {
		is_empty = op_session_ledger_is_empty(&ledger);
		op_session_ledger_free(&ledger);
	}
	if (is_empty)
		return has_files(current_fd, ret_has);
	*ret_has = true;
	return 0;
}

/* After a kill the session keeps its mark, so that the next daemon checks every file. */
static int close_current(int session_fd, int current_fd, const char *name)
{
	bool has = false, is_unclean = !faccessat(session_fd, OP_SESSION_UNCLEAN, F_OK, AT_SYMLINK_NOFOLLOW);
	uint64_t nr_put_back;
	int err = op_session_recover_pending(session_fd, &nr_put_back);

	if (!err)
		err = has_samples(current_fd, &has);
	if (err || !has)
		return err ? err : -ENODATA;
	err = mark_saved(current_fd, is_unclean);
	if (err)
		return err;
	err = op_session_close(session_fd, name);
	if (err)
		return err;
	if (!is_unclean)
		op_session_compact(current_fd);
	err = op_sys_syncfs(session_fd);
	if (err)
		return err;
	if (!is_unclean)
		op_session_mark_whole(current_fd);
	return op_session_sync_dirs(session_fd);
}

static int save_locked(const struct opcontrol *ctl, int session_fd, const char *name)
{
	int current_fd = op_file_open_below(session_fd, OP_SESSION_CURRENT, O_RDONLY | O_DIRECTORY, 0);
	int err = current_fd < 0 ? current_fd : close_current(session_fd, current_fd, name);

	if (current_fd >= 0)
		close(current_fd);
	if (err == -ENODATA || (err == -ENOENT && current_fd < 0))
		return say_nothing_saved();
	if (err == -EEXIST)
		return opr_error(1, "there is a session %s already: nothing was saved", name);
	if (err)
		return ctl_fail_session(ctl, "save the session in", ctl->session_dir, NULL, err);
	show_escaped(name);
	return 0;
}

static int save_without_daemon(const struct opcontrol *ctl, const char *name)
{
	int session_fd = open(ctl->session_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), lock_fd, rc;

	if (session_fd < 0 && errno == ENOENT)
		return say_nothing_saved();
	if (session_fd < 0)
		return ctl_fail_session(ctl, "save the session in", ctl->session_dir, NULL, -errno);
	lock_fd = op_session_lock(session_fd);
	if (lock_fd == -EBUSY)
		rc = opr_error(1, "--save: a daemon that does not answer uses %s", ctl->session_dir);
	else if (lock_fd < 0)
		rc = ctl_fail_session(ctl, "lock", ctl->session_dir, OP_SESSION_LOCK, lock_fd);
	else
		rc = save_locked(ctl, session_fd, name);
	if (lock_fd >= 0)
		op_session_unlock(session_fd, lock_fd);
	close(session_fd);
	return rc;
}

int ctl_save(struct opcontrol *ctl, const struct ctl_daemon *daemon)
{
	const char *name = ctl->request_arg, *fault = op_session_name_fault(name);

	if (fault)
		return opr_error(1, "--save=%s: invalid name of a session: %s", name, fault);
	if (daemon->presence == CTL_NO_ANSWER)
		return ctl_fail_no_answer(ctl, daemon);
	return daemon->presence == CTL_PRESENT ? ask_daemon(ctl, name) : save_without_daemon(ctl, name);
}

/* ---- --unpack ---- */

/* The daemon must be able to remove the session, so its user makes the files. */
static int become_owner(int session_fd)
{
	struct stat st;
	int err = op_sys_fstat(session_fd, &st);

	if (err || geteuid() != 0)
		return err;
	return setegid(st.st_gid) < 0 || seteuid(st.st_uid) < 0 ? -errno : 0;
}

static int unpack(int session_fd, const char *name)
{
	char path[sizeof("samples/") + OP_SESSION_NAME_BYTES];
	int err = become_owner(session_fd);

	if (err)
		return err;
	op_session_adopt_mode(session_fd);
	snprintf(path, sizeof(path), "samples/%s", name);
	return op_session_unpack(session_fd, path);
}

int ctl_run_unpack(struct opcontrol *ctl)
{
	const char *name = ctl->request_arg, *fault = op_session_name_fault(name);
	int fd, err;

	if (!strcmp(name, "current"))
		return opr_error(1, "--unpack: the daemon writes this session: use --save=NAME, then --unpack=NAME");
	if (fault)
		return opr_error(1, "--unpack=%s: invalid name of a session: %s", name, fault);
	fd = open(ctl->session_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	err = fd < 0 ? -errno : unpack(fd, name);
	if (fd >= 0)
		close(fd);
	if (err == -ENOENT) {
		printf("There is no packed session %s in %s: nothing was unpacked.\n", name, ctl->session_dir);
		return 0;
	}
	if (err == -EBUSY)
		return opr_error(1, "--unpack=%s: the session is not on the disk yet, or another opcontrol unpacks it: try again",
				 name);
	return err ? ctl_fail_session(ctl, "unpack the session in", ctl->session_dir, NULL, err) : 0;
}
