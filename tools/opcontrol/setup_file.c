/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The files of the setup: daemonrc and daemonrc_new. */
#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "libop/session/directory.h"
#include "libop/session/layout.h"
#include "tools/common/log.h"
#include "tools/common/session_dir.h"
#include "tools/opcontrol/opcontrol.h"

#define ELF_MAGIC "\177ELF"

/* A full disk can be emptied. For other errors the message says how to choose a directory. */
int ctl_fail_session(const struct opcontrol *ctl, const char *action, const char *dir, const char *name, int err)
{
	bool is_configured = !strcmp(dir, ctl->config.session_dir), is_full = err == -ENOSPC || err == -EDQUOT;

	return opr_error(1, "cannot %s %s%s%s: %s (%s%s%s can name another directory)", action, dir, name ? "/" : "",
			 name ? name : "", strerror(-err), is_full ? "make room there; " : "",
			 is_configured ? "SessionDir= in " : "opcontrol --session-dir=", is_configured ? ctl->config_path : "DIR");
}

static int open_dir(const struct opcontrol *ctl, bool make, int *ret_fd)
{
	const char *path = ctl->config.session_dir;
	int fd, err = make ? op_session_make(path) : 0;

	if (err < 0)
		return ctl_fail_session(ctl, "make the session directory", path, NULL, err);
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0 && errno == EACCES && !make) {
		opr_fail_open(-EACCES, path);
		return 1;
	}
	if (fd < 0 && (make || (errno != ENOENT && errno != ENOTDIR)))
		return ctl_fail_session(ctl, "open the session directory", path, NULL, -errno);
	if (fd >= 0)
		op_session_adopt_mode(fd);
	*ret_fd = fd;
	return 0;
}

static bool waits(int dir_fd)
{
	return !faccessat(dir_fd, OP_SETUP_NEW_NAME, F_OK, 0);
}

/* ---- reading ---- */

/* The setup cannot be read. 0 when the call replaces it. `why`: it is damaged. */
static int check_unreadable(const struct opcontrol *ctl, const char *name, int err, const char *why)
{
	if (!why)
		return opr_error(1, "cannot read %s/%s: %s", ctl->config.session_dir, name, strerror(-err));
	if (ctl->changes_setup)
		return 0;
	return opr_error(1, "%s ('opcontrol --setup' with setup options, or removing the file, starts a new setup)", why);
}

/* Without a daemon, daemonrc_new becomes daemonrc. */
static int promote(const struct opcontrol *ctl, int dir_fd)
{
	struct ctl_daemon daemon;
	int err, rc;

	if (geteuid() != 0)
		return 0;
	rc = ctl_find_daemon(ctl, &daemon);
	if (rc)
		return rc;
	err = daemon.presence == CTL_ABSENT ? op_setup_promote(dir_fd) : 0;
	ctl_daemon_free(&daemon);
	return err ? opr_error(1, "cannot rename %s/" OP_SETUP_NEW_NAME ": %s", ctl->config.session_dir, strerror(-err)) : 0;
}

static void choose_session_dir(struct opcontrol *ctl)
{
	ctl->session_dir = ctl->setup.session_dir ? ctl->setup.session_dir : ctl->config.session_dir;
}

/* The setup that waits may also replace a damaged one. */
int ctl_load_setup(struct opcontrol *ctl, bool may_promote)
{
	char *why = NULL;
	int err, fd, rc = open_dir(ctl, false, &fd);

	if (rc || fd < 0)
		return rc;
	err = op_setup_read(&ctl->setup, fd, OP_SETUP_NAME, &why);
	choose_session_dir(ctl);
	if (may_promote && waits(fd) && (!err || why)) {
		free(why);
		why = NULL;
		rc = promote(ctl, fd);
		err = op_setup_read(&ctl->setup, fd, OP_SETUP_NAME, &why);
		choose_session_dir(ctl);
	}
	ctl->setup_waits = waits(fd);
	if (!rc && err)
		rc = check_unreadable(ctl, OP_SETUP_NAME, err, why);
	free(why);
	close(fd);
	return rc;
}

bool ctl_note_setup(const struct opcontrol *ctl, struct op_setup *ret_setup)
{
	int fd = open(ctl->config.session_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), err;
	char *why = NULL;

	if (fd < 0)
		return false;
	op_setup_init(ret_setup);
	err = op_setup_read(ret_setup, fd, OP_SETUP_NAME, &why);
	close(fd);
	free(why);
	if (err)
		op_setup_free(ret_setup);
	return !err;
}

pid_t ctl_daemon_of_session(const struct opcontrol *ctl, char **ret_dir)
{
	struct op_setup setup;
	bool has_setup = ctl_note_setup(ctl, &setup);
	const char *dir = has_setup && setup.session_dir ? setup.session_dir : ctl->config.session_dir;
	struct op_text lock = { 0 };
	pid_t pid;

	op_text_printf(&lock, "%s/" OP_SESSION_LOCK, dir);
	pid = lock.failed ? 0 : ctl_lock_holder(op_text_get(&lock));
	op_text_free(&lock);
	*ret_dir = pid ? strdup(dir) : NULL;
	if (has_setup)
		op_setup_free(&setup);
	return pid;
}

/* Reads the setup of the last call, even if it waits. *why: it is damaged. */
static int load_base(const struct opcontrol *ctl, struct op_setup *base, char **why)
{
	const char *name;
	int err, fd, rc = open_dir(ctl, false, &fd);

	if (rc || fd < 0)
		return rc;
	name = waits(fd) ? OP_SETUP_NEW_NAME : OP_SETUP_NAME;
	err = op_setup_read(base, fd, name, why);
	close(fd);
	return err ? check_unreadable(ctl, name, err, *why) : 0;
}

/* ---- writing ---- */

static int apply(struct op_setup *setup, const struct ctl_edit *edits, size_t nr_edits)
{
	struct ctl_editing editing = { .setup = setup };
	struct op_setup *before = malloc(sizeof(*before));
	int rc = before ? 0 : opr_no_memory();

	if (before)
		*before = *setup; /* for its events; it owns nothing */

	for (size_t i = 0; i < nr_edits && !rc; i++)
		rc = edits[i].option->edit(&editing, edits[i].option, edits[i].arg);
	if (!rc)
		rc = ctl_check_counts(setup);
	for (size_t i = 0; i < nr_edits && !rc; i++)
		if (edits[i].option->without_effect)
			printf("--%s is kept in the setup, but opd ignores it.\n", edits[i].option->row.name);
		else if (edits[i].option->ignored)
			printf("--%s is ignored: %s.\n", edits[i].option->row.name, edits[i].option->ignored);
	if (!rc && editing.has_events)
		ctl_tell_replaced(before, setup);
	free(before);
	return rc;
}

/* The length of the part of a path that exists. */
static size_t existing_part(const char *path)
{
	char *part = strdup(path), *slash;
	size_t length;

	while (part && access(part, F_OK) < 0 && (slash = strrchr(part, '/')))
		*slash = '\0';
	length = strlen(part ? part : path);
	free(part);
	return length;
}

/* Removes the directories behind the first nr_kept characters of a path. */
static void remove_dirs(const char *path, size_t nr_kept)
{
	char *part = strdup(path), *slash;

	while (part && strlen(part) > nr_kept && (!rmdir(part) || errno == ENOENT) && (slash = strrchr(part, '/')))
		*slash = '\0';
	free(part);
}

/* Writes only a setup that the next call can read. */
static int write_checked(const struct opcontrol *ctl, const struct op_setup *setup, int dir_fd, const char *name)
{
	char *why = NULL;
	int err = op_setup_check(setup, dir_fd, name, &why), rc;

	if (!err)
		err = op_setup_write(setup, dir_fd, name);
	rc = !err ? 0 : why ? opr_error(1, "%s", why) : ctl_fail_session(ctl, "write", ctl->config.session_dir, name, err);
	free(why);
	return rc;
}

static int write_setup(const struct opcontrol *ctl, const struct op_setup *setup, const char *name)
{
	const char *path = ctl->config.session_dir;
	size_t nr_kept = existing_part(path);
	int fd, rc = open_dir(ctl, true, &fd);

	if (!rc) {
		rc = write_checked(ctl, setup, fd, name);
		close(fd);
	}
	if (rc)
		remove_dirs(path, nr_kept);
	return rc;
}

int ctl_restore_setup(struct opcontrol *ctl, const struct op_setup *setup)
{
	int rc = write_setup(ctl, setup, OP_SETUP_NAME);

	return rc ? rc : ctl_load_setup(ctl, false);
}

/* Warns of a kernel without symbols: the user has perhaps given vmlinuz, which is compressed. */
static void check_vmlinux(const char *path)
{
	char magic[sizeof(ELF_MAGIC) - 1] = "";
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t nr = fd < 0 ? -1 : read(fd, magic, sizeof(magic));

	if (nr < 0)
		opr_warn("--vmlinux=%s: cannot be read: %s", path, strerror(errno));
	else if (nr != sizeof(magic) || memcmp(magic, ELF_MAGIC, sizeof(magic)))
		opr_warn("--vmlinux=%s: not an ELF file, so there are no symbols (give the uncompressed kernel, vmlinux)", path);
	if (fd >= 0)
		close(fd);
}

static bool changes_vmlinux(const struct ctl_edit *edits, size_t nr_edits)
{
	for (size_t i = 0; i < nr_edits; i++)
		if (edits[i].option->edit == ctl_edit_vmlinux)
			return true;
	return false;
}

int ctl_save_setup(struct opcontrol *ctl, bool daemon_runs, const struct ctl_edit *edits, size_t nr_edits)
{
	struct op_setup setup;
	char *why = NULL;
	int rc;

	op_setup_init(&setup);
	rc = load_base(ctl, &setup, &why) || apply(&setup, edits, nr_edits) ||
	     write_setup(ctl, &setup, daemon_runs ? OP_SETUP_NEW_NAME : OP_SETUP_NAME);
	if (!rc && why)
		opr_warn("%s: this setup begins with the defaults", why);
	free(why);
	if (!rc && setup.vmlinux && changes_vmlinux(edits, nr_edits))
		check_vmlinux(setup.vmlinux);
	if (!rc && !daemon_runs) {
		op_setup_free(&ctl->setup);
		ctl->setup = setup;
		choose_session_dir(ctl);
		return 0;
	}
	op_setup_free(&setup);
	return rc;
}
