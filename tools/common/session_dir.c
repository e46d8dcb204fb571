/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/common/session_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/control/config.h"
#include "libop/control/daemonrc.h"
#include "tools/common/formatting.h"
#include "tools/common/log.h"

#define LOCAL_DIR "oprofile_data"

/* The configuration may be read several times; its warnings are printed once. */
static void warn_lines(char *lines)
{
	static bool is_told;
	char *rest = lines;

	if (is_told)
		return;
	is_told = true;
	for (char *line; (line = strsep(&rest, "\n"));)
		if (*line)
			opr_warn("%s", line);
}

/* A file that the user names must exist. Without the default file, the defaults hold. */
static int read_config(struct op_config *config)
{
	struct op_text warnings = { 0 };
	bool named;
	const char *path = op_config_path(NULL, &named);
	int err = op_config_init(config);

	if (err < 0)
		return opr_no_memory();
	err = op_config_read(config, path, named, &warnings);
	if (err < 0 && named)
		opr_error(err, "cannot read the configuration %s: %s (" OP_CONFIG_ENV " names it)", path, strerror(-err));
	else if (err < 0)
		opr_warn("cannot read the configuration %s: %s", path, strerror(-err));
	if (!err && warnings.data)
		warn_lines(warnings.data);
	op_text_free(&warnings);
	return named ? err : 0;
}

/* A damaged setup is only a warning: its directory may have sessions all the same. */
static void read_setup(struct op_setup *setup, const char *dir)
{
	int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC), err;
	char *why = NULL;

	if (fd < 0)
		return;
	err = op_setup_read(setup, fd, OP_SETUP_NAME, &why);
	if (err < 0 && why)
		opr_warn("%s", why);
	else if (err < 0)
		opr_warn("cannot read %s/" OP_SETUP_NAME ": %s", dir, strerror(-err));
	free(why);
	close(fd);
}

static int choose_configured(char **ret_dir)
{
	struct op_config config = { 0 };
	struct op_setup setup;
	int err = read_config(&config);

	op_setup_init(&setup);
	if (!err) {
		read_setup(&setup, config.session_dir);
		*ret_dir = strdup(setup.session_dir ? setup.session_dir : config.session_dir);
		if (!*ret_dir)
			err = opr_no_memory();
	}
	op_setup_free(&setup);
	op_config_free(&config);
	return err;
}

/* Where the choice depends on the current directory, it is told once. */
int opr_session_dir_choose(const char *option, char **ret_dir)
{
	static bool is_told;
	struct stat st;
	int err = 0;

	if (option && !*option)
		return opr_error(-EINVAL, "--session-dir: the name is empty; give a directory");
	if (!option && (stat(LOCAL_DIR, &st) < 0 || !S_ISDIR(st.st_mode))) {
		err = choose_configured(ret_dir);
	} else {
		*ret_dir = strdup(option ? option : LOCAL_DIR);
		err = *ret_dir ? 0 : opr_no_memory();
	}
	if (err || option || is_told || (strcmp(*ret_dir, LOCAL_DIR) != 0 && !opr_log_shows(OPR_TOPIC_details)))
		return err;
	is_told = true;
	fputs("Using ", stderr);
	opr_write_escaped(stderr, *ret_dir);
	fputs("/samples/ for samples directory.\n", stderr);
	return 0;
}

int opr_session_limits(uint64_t *ret_max_files, uint64_t *ret_keep_free_bytes, uint64_t *ret_max_stack_bytes)
{
	struct op_config config = { 0 };
	int err = read_config(&config);

	if (!err) {
		*ret_max_files = config.max_sample_files;
		*ret_keep_free_bytes = config.session_keep_free;
		*ret_max_stack_bytes = config.stack_max_use;
	}
	op_config_free(&config);
	return err;
}

/* What is wrong in the file is told where the session directory is chosen. */
int opr_table_dir(const struct opr_archive *archives, char **ret_dir)
{
	struct op_config config = { 0 };
	struct op_text warnings = { 0 };
	bool named;
	int err;

	if (archives)
		return asprintf(ret_dir, "%s/" OPR_ARCHIVE_TABLES, archives->dir) < 0 ? -ENOMEM : 0;
	err = op_config_init(&config);
	if (err)
		goto out;
	(void)!op_config_read(&config, op_config_path(NULL, &named), false, &warnings);
	op_text_free(&warnings);
	if (config.table_dir)
		*ret_dir = config.table_dir;
	else
		err = -ENOENT;
	config.table_dir = NULL;
out:
	op_config_free(&config);
	return err;
}

int opr_control_socket(char **ret_socket)
{
	struct op_config config = { 0 };
	int err = read_config(&config);

	if (!err) {
		*ret_socket = config.control_socket;
		config.control_socket = NULL;
	}
	op_config_free(&config);
	return err;
}

/* The first part of a path that the caller may not enter or read. False: it cannot be found. */
static bool find_closed(const char *path, struct stat *ret_st)
{
	char *part = strdup(path), *slash = part;
	bool found = false;

	while (slash && !found) {
		slash = strchr(slash + strspn(slash, "/"), '/');
		if (slash)
			*slash = '\0';
		found = access(part, slash ? X_OK : R_OK) < 0 && errno == EACCES;
		if (found && stat(part, ret_st) < 0)
			break;
		if (slash)
			*slash = '/';
	}
	free(part);
	return found;
}

int opr_fail_open(int err, const char *path)
{
	struct stat st = { 0 };
	bool helps = err == -EACCES && find_closed(path, &st) && st.st_gid && st.st_mode & 0040;
	const struct group *group = helps ? getgrgid(st.st_gid) : NULL;
	const struct passwd *user = group ? getpwuid(getuid()) : NULL;

	if (!group)
		return opr_error(err, "%s: %s%s", path, strerror(-err),
				 err == -EMFILE ? ": raise the hard limit of ulimit -n" : "");
	return opr_error(err,
			 "%s: %s: members of the group %s may read it: 'sudo usermod -aG %s %s' makes you one, then log in again",
			 path, strerror(-err), group->gr_name, group->gr_name, user ? user->pw_name : "USER");
}

static int compare_words(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

int opr_session_names(const char *session_dir, struct opr_words *names)
{
	struct dirent *entry;
	char *path = NULL;
	DIR *dir;
	struct stat st;
	int err = 0;

	if (asprintf(&path, "%s/samples", session_dir) < 0)
		return opr_no_memory();
	dir = opendir(path);
	if (!dir)
		err = opr_fail_open(-errno, path);
	free(path);
	while (dir && !err && (entry = readdir(dir)))
		if (*entry->d_name != '.' && !fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) && S_ISDIR(st.st_mode))
			err = opr_words_add(names, entry->d_name) < 0 ? opr_no_memory() : 0;
	if (dir)
		closedir(dir);
	if (names->nr_words)
		qsort(names->words, names->nr_words, sizeof(*names->words), compare_words);
	return err;
}
