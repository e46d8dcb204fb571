/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "daemon/main_thread.h"
#include "libop/base/file.h"
#include "libop/base/log.h"
#include "libop/base/sys.h"
#include "libop/process/lock.h"
#include "libop/session/directory.h"
#include "libop/session/layout.h"
#include "pipeline/ledger/recover.h"

int opd_fail(const char *format, ...)
{
	char line[1024];
	va_list args;

	va_start(args, format);
	vsnprintf(line, sizeof(line), format, args);
	va_end(args);
	op_log(OP_LOG_ERR, "%s", line);
	sd_notifyf(0, "STATUS=%s", line); /* opcontrol and systemctl show it */
	return -1;
}

/* ---- configuration and setup ---- */

static void log_lines(char *text)
{
	char *rest = NULL;

	for (char *line = text ? strtok_r(text, "\n", &rest) : NULL; line; line = strtok_r(NULL, "\n", &rest))
		op_log(OP_LOG_WARNING, "%s", line);
}

int opd_read_config(const struct opd *opd, struct op_config *ret_config)
{
	struct op_text warnings = { 0 };
	struct op_config config;
	bool is_explicit;
	const char *path = op_config_path(opd->config_path, &is_explicit);
	int err = op_config_init(&config);

	if (err)
		return opd_fail("no memory");
	err = op_config_read(&config, path, is_explicit, &warnings);
	if (err) {
		opd_fail("cannot read %s: %s", path, strerror(-err));
		op_config_free(&config);
	} else {
		log_lines(warnings.data);
		*ret_config = config;
	}
	op_text_free(&warnings);
	return err ? -1 : 0;
}

int opd_init_config(struct opd *opd)
{
	return opd_read_config(opd, &opd->config);
}

void opd_fini_config(struct opd *opd)
{
	op_config_free(&opd->config);
}

static int read_setup_file(struct opd *opd, int dir_fd)
{
	char *why = NULL;
	int err;

	op_setup_init(&opd->setup);
	err = op_setup_read(&opd->setup, dir_fd, OP_SETUP_NAME, &why);
	if (!err)
		return 0;
	opd_fail("%s", why ? why : strerror(-err));
	free(why);
	op_setup_free(&opd->setup);
	return -1;
}

/* Whether a daemon uses the present setup, so that the new one waits. A damaged one is unused. */
static bool setup_is_in_use(const struct opd *opd, int dir_fd)
{
	struct op_setup setup;
	char *why = NULL;
	bool in_use;

	op_setup_init(&setup);
	if (op_setup_read(&setup, dir_fd, OP_SETUP_NAME, &why) < 0)
		free(why);
	in_use = op_session_is_locked(setup.session_dir ? setup.session_dir : opd->config.session_dir);
	op_setup_free(&setup);
	return in_use;
}

/* The setup of `opcontrol --setup`. One that was made while a daemon ran takes effect now. */
static int read_setup(struct opd *opd, int dir_fd)
{
	bool waits = !faccessat(dir_fd, OP_SETUP_NEW_NAME, F_OK, AT_SYMLINK_NOFOLLOW);
	int err = waits && !setup_is_in_use(opd, dir_fd) ? op_setup_promote(dir_fd) : 0;

	if (err < 0)
		op_log(OP_LOG_WARNING, "%s/" OP_SETUP_NEW_NAME " does not take effect: %s", opd->config.session_dir,
			strerror(-err));
	return read_setup_file(opd, dir_fd);
}

static int make_absolute(char **path)
{
	char cwd[PATH_MAX], *absolute;

	if ((*path)[0] == '/')
		return 0;
	if (!getcwd(cwd, sizeof(cwd)) || asprintf(&absolute, "%s/%s", cwd, *path) < 0)
		return -ENOMEM;
	free(*path);
	*path = absolute;
	return 0;
}

int opd_init_setup(struct opd *opd)
{
	int dir_fd, err = 0;

	op_setup_init(&opd->setup);
	dir_fd = op_sys_openat(AT_FDCWD, opd->config.session_dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC, 0);
	if (dir_fd >= 0) {
		err = read_setup(opd, dir_fd);
		close(dir_fd);
	}
	if (err)
		return err;
	if (opd->session_dir_option && make_absolute(&opd->session_dir_option) < 0) {
		op_setup_free(&opd->setup);
		return opd_fail("cannot use the session directory %s: no memory or no working directory", opd->session_dir_option);
	}
	opd->session_dir = opd->session_dir_option  ? opd->session_dir_option
			   : opd->setup.session_dir ? opd->setup.session_dir
						    : opd->config.session_dir;
	return 0;
}

void opd_fini_setup(struct opd *opd)
{
	op_setup_free(&opd->setup);
}

/* ---- session ---- */

/* A file cannot be renamed to another mount. The mount is 0 before Linux 5.8. */
struct mounted {
	dev_t device;
	uint64_t mount;
};

/* 0, also when there is no such entry. */
static int check_directory(const struct opd *opd, const char *name, struct mounted *ret_mounted)
{
	struct statx stx;

	if (statx(opd->session_fd, name, AT_SYMLINK_NOFOLLOW, STATX_TYPE | STATX_MNT_ID, &stx) < 0)
		return 0;
	if (!S_ISDIR(stx.stx_mode))
		return opd_fail("%s/%s is not a directory: remove it or choose another SessionDir=", opd->session_dir, name);
	*ret_mounted = (struct mounted){ .device = makedev(stx.stx_dev_major, stx.stx_dev_minor),
					 .mount = stx.stx_mask & STATX_MNT_ID ? stx.stx_mnt_id : 0 };
	return 0;
}

/* Links would lead out of the session directory. Files are renamed from tmp/ to samples/. */
static int check_directories(const struct opd *opd)
{
	static const char *const names[] = { OP_SESSION_TMP, "samples", OP_SESSION_CURRENT };
	struct mounted tmp = { 0 };

	for (size_t i = 0; i < op_array_size(names); i++) {
		struct mounted mounted = tmp;
		int err = check_directory(opd, names[i], &mounted);

		if (err)
			return err;
		if (!i)
			tmp = mounted;
		else if (tmp.device && (mounted.device != tmp.device || mounted.mount != tmp.mount))
			return opd_fail("%s/%s is %s than %s/" OP_SESSION_TMP
					", where its files are made: mount that over all of the session directory, or choose "
					"another SessionDir=",
					opd->session_dir, names[i],
					mounted.device == tmp.device ? "another mount" : "on another file system",
					opd->session_dir);
	}
	return 0;
}

static const char *remedy_of(int err)
{
	switch (err) {
	case -ENOSPC:
	case -EDQUOT:
		return "make room, or choose another SessionDir=";
	case -EFBIG:
		return "raise LimitFSIZE= or ulimit -f";
	case -EACCES:
	case -EPERM:
	case -EROFS:
		return "run opd as root, or choose another SessionDir=";
	default:
		return "choose another SessionDir=";
	}
}

/* opd becomes the owner. Nobody may have replaced the directory since the setup was read. */
static int check_owner(const struct opd *opd)
{
	uid_t owner = opd->setup.session_dir_owner;
	struct stat st;
	int err;

	if (opd->session_dir != opd->setup.session_dir || owner == OP_SETUP_ANYBODY)
		return 0;
	err = op_sys_fstat(opd->session_fd, &st);
	if (err)
		return opd_fail("cannot look at %s: %s", opd->session_dir, strerror(-err));
	return st.st_uid == owner ? 0
				  : opd_fail("%s, named in %s/" OP_SETUP_NAME ", belongs to another user than that file: user %u",
					     opd->session_dir, opd->config.session_dir, st.st_uid);
}

int opd_init_session(struct opd *opd)
{
	const char *in_the_way;

	opd->session_fd = op_session_open(opd->session_dir);
	in_the_way = opd->session_fd < 0 ? op_session_in_the_way(opd->session_dir) : NULL;
	if (in_the_way)
		return opd_fail("cannot use the session directory %s: %s/%s is a directory: remove it", opd->session_dir,
				opd->session_dir, in_the_way);
	if (opd->session_fd < 0)
		return opd_fail("cannot use the session directory %s: %s: %s", opd->session_dir, strerror(-opd->session_fd),
				remedy_of(opd->session_fd));
	if (check_owner(opd) < 0 || check_directories(opd) < 0) {
		close(opd->session_fd);
		return -1;
	}
	return 0;
}

void opd_fini_session(struct opd *opd)
{
	close(opd->session_fd);
}

static int explain_lock(const struct opd *opd)
{
	pid_t pid = op_lock_owner(opd->session_fd, OP_SESSION_LOCK);

	return pid ? opd_fail("another opd (pid %d) uses the session directory %s", (int)pid, opd->session_dir)
		   : opd_fail("another opd (pid unknown) uses the session directory %s", opd->session_dir);
}

int opd_init_lock(struct opd *opd)
{
	bool was_there;
	int fd = op_session_take_lock(opd->session_fd, &was_there), err = 0;

	if (fd == -EBUSY)
		return explain_lock(opd);
	if (fd < 0)
		return opd_fail("cannot make %s/" OP_SESSION_LOCK ": %s", opd->session_dir, strerror(-fd));
	/* After a power cut its presence says that the session must be checked. */
	if (!was_there)
		err = op_sys_fsync(opd->session_fd);
	if (!err)
		err = op_lock_write_pid(fd);
	if (err) {
		op_sys_unlinkat(opd->session_fd, OP_SESSION_LOCK, 0);
		close(fd);
		return opd_fail("cannot write %s/" OP_SESSION_LOCK ": %s: %s", opd->session_dir, strerror(-err), remedy_of(err));
	}
	opd->lock_fd = fd;
	opd->was_unclean = was_there || !faccessat(opd->session_fd, OP_SESSION_UNCLEAN, F_OK, AT_SYMLINK_NOFOLLOW);
	return 0;
}

void opd_fini_lock(struct opd *opd)
{
	if (opd->is_unwritten && opd->has_lost_lock)
		(void)!op_session_leave_unclean(opd->session_fd);
	else if (!opd->is_unwritten && !opd->has_lost_lock)
		op_sys_unlinkat(opd->session_fd, OP_SESSION_LOCK, 0);
	close(opd->lock_fd);
}

int opd_init_recovery(struct opd *opd)
{
	opd_recover(opd->session_fd, opd->was_unclean);
	/* from here on the lock says the same */
	op_sys_unlinkat(opd->session_fd, OP_SESSION_UNCLEAN, 0);
	return 0;
}

int opd_init_syncer(struct opd *opd)
{
	int err = opd_syncer_new(opd->session_fd, &opd->syncer);

	return err ? opd_fail("cannot start a thread: %s", strerror(-err)) : 0;
}

void opd_fini_syncer(struct opd *opd)
{
	opd_syncer_free(opd->syncer);
}
