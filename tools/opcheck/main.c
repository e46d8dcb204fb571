/* SPDX-License-Identifier: GPL-3.0-or-later */
/* opcheck: are the sessions sound, and can they be made so? */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/session/contents.h"
#include "libop/session/layout.h"
#include "libop/session/close.h"
#include "libop/session/leftovers.h"
#include "tools/opcheck/location.h"
#include "tools/opcheck/session.h"
#include "tools/common/formatting.h"
#include "tools/common/option_values.h"
#include "tools/common/log.h"
#include "tools/common/progress.h"
#include "tools/common/session_dir.h"
#include "tools/profile/session_hint.h"
#include "tools/common/program.h"
#include "tools/common/output.h"
#include "tools/common/words.h"

enum exit_code { SOUND, REPAIRED, DAMAGED, FAILED };

struct program {
	char *session_dir_option;
	int repair, json, quiet;
	struct opr_words words;
	bool is_named; /* the user said which sessions */
	char *session_dir;
	const char *session; /* under check */
	size_t nr_reported;  /* problems of it */
	enum exit_code result;
};

static void worsen(struct program *program, enum exit_code code)
{
	if (code > program->result)
		program->result = code;
}

/* ---- output ---- */

static void show_progress(uint64_t nr_files, void *arg)
{
	const struct program *program = arg;

	opr_progress("%s: %" PRIu64 " sample files", program->session, nr_files);
}

static const char *const outcomes[] = {
	[OPK_NOTED] = "note",
	[OPK_REPAIRED] = "repaired",
	[OPK_NOT_REPAIRED] = "damaged",
};

static void show_json(const char *key, const char *value)
{
	struct op_text text = { 0 };

	op_text_add_json(&text, value);
	printf("\"%s\": \"%s\"", key, op_text_get(&text));
	op_text_free(&text);
}

static void report_json(struct program *program, const struct opk_problem *problem)
{
	printf("%s\n      { ", program->nr_reported++ ? "," : "");
	show_json("outcome", outcomes[problem->outcome]);
	fputs(", ", stdout);
	show_json("file", problem->path);
	if (problem->has_offset)
		printf(", \"offset\": %" PRIu64, problem->offset);
	fputs(", ", stdout);
	show_json("fault", problem->fault);
	fputs(", ", stdout);
	show_json("detail", problem->detail);
	fputs(" }", stdout);
}

static void report(const struct opk_problem *problem, void *arg)
{
	struct program *program = arg;

	if (program->json) {
		report_json(program, problem);
		return;
	}
	if (program->quiet && problem->outcome == OPK_NOTED)
		return;
	opr_progress_end();
	printf("%s: ", outcomes[problem->outcome]);
	opr_write_escaped(stdout, program->session);
	putchar('/');
	opr_write_shortened(stdout, problem->path);
	if (problem->has_offset)
		printf(", byte %" PRIu64, problem->offset);
	printf(": %s", problem->fault);
	if (*problem->detail) {
		fputs(" (", stdout);
		opr_write_escaped(stdout, problem->detail);
		putchar(')');
	}
	putchar('\n');
}

static const char *state_of(const struct opk_check *check, bool is_checked)
{
	if (!is_checked)
		return "not checked";
	return check->nr_left ? "damaged" : check->nr_repaired ? "repaired" : "sound";
}

static void begin_session(struct program *program, bool first)
{
	program->nr_reported = 0;
	if (!program->json)
		return;
	printf("%s\n    { ", first ? "" : ",");
	show_json("session", program->session);
	fputs(", \"problems\": [", stdout);
}

static void end_session(struct program *program, const struct opk_check *check, bool is_checked)
{
	opr_progress_end();
	if (program->json) {
		printf("%s], \"state\": \"%s\", \"live\": %s, \"files\": %" PRIu64 ", \"samples\": %" PRIu64
		       ", \"dropped_nodes\": %" PRIu64 " }",
		       program->nr_reported ? "\n    " : "", state_of(check, is_checked), check->live ? "true" : "false",
		       check->nr_files,
		       check->nr_samples, check->nr_dropped);
		return;
	}
	if (program->quiet && is_checked && !check->nr_left && !check->nr_repaired)
		return;
	opr_write_escaped(stdout, program->session);
	printf(": %s%s: %" PRIu64 " sample files, %" PRIu64 " samples", state_of(check, is_checked),
	       check->live ? " (being written)" : "", check->nr_files, check->nr_samples);
	if (check->nr_dropped)
		printf(", %" PRIu64 " nodes that were not whole %s", check->nr_dropped, check->repair ? "dropped" : "passed over");
	putchar('\n');
}

/* ---- one session ---- */

static char *path_of(const struct program *program, const char *name)
{
	char *path = NULL;

	if (*name == '/' || *name == '.')
		return realpath(name, NULL);
	if (asprintf(&path, "%s/samples/%s", program->session_dir, name) < 0)
		return NULL;
	return path;
}

/* Reports what was repaired in tmp/, which is of all sessions. */
static void report_tmp(struct program *program, struct opk_check *check, uint64_t nr, const char *fault, const char *what)
{
	char detail[96];
	struct opk_problem problem = { .path = "../../" OP_SESSION_TMP, .fault = fault, .detail = detail, .outcome = OPK_REPAIRED };

	if (!nr)
		return;
	snprintf(detail, sizeof(detail), "%" PRIu64 " %s", nr, what);
	check->nr_repaired++;
	report(&problem, program);
}

static int begin_repair(struct program *program, struct opk_check *check, struct opk_location *location, const char *path)
{
	uint64_t nr_put_back;
	int err = opk_location_begin_repair(location, &nr_put_back);

	check->live = err == -EBUSY;
	if (check->live)
		return opr_error(
			-EBUSY,
			"%s: a daemon is writing this session: end it with opcontrol --shutdown; a running daemon repairs "
			"the files that it opens",
			path);
	if (err)
		return opr_error(err, "%s: cannot lock the session, or finish the replacements in " OP_SESSION_TMP "/: %s", path,
				 strerror(-err));
	report_tmp(program, check, nr_put_back, "sample files were being replaced by larger ones that are not on the disk",
		   "replaced by the copies that were kept");
	if (location->lock_fd >= 0)
		report_tmp(program, check, op_session_import_sweep(location->top_fd), "a run of opimport was interrupted",
			   "directories removed");
	return 0;
}

/* How the session was closed, by its name. */
static enum op_session_end end_of(const char *path)
{
	const char *slash = strrchr(path, '/');

	return op_session_is_time_name(slash ? slash + 1 : path) ? OP_SESSION_rotated : OP_SESSION_saved;
}

static int check_one(struct program *program, struct opk_check *check, struct opk_location *location, const char *path)
{
	int err = 0;

	check->closed = !location->is_current;
	check->top_fd = location->top_fd;
	check->unclean = opk_location_is_unclean(location);
	check->end = location->is_current ? OP_SESSION_open : end_of(path);
	if (program->repair)
		err = begin_repair(program, check, location, path);
	else
		check->live = opk_location_is_live(location);
	if (err)
		return err;
	err = opk_session_check(check);
	return err ? opr_error(err, "%s: %s", path, strerror(-err)) : 0;
}

/*
 * The user must name a session. A directory in samples/ may be empty, as the current one is at
 * first.
 */
static int refuse_no_session(const struct program *program, int dir_fd, const struct opk_location *location, const char *path)
{
	if (!program->is_named || location->is_current || op_session_has_parts(dir_fd))
		return 0;
	if (!faccessat(dir_fd, "samples", F_OK, 0))
		return opr_error(-EINVAL, "%s is a session directory, not a session: check its sessions with --session-dir=%s",
				 path, path);
	return opr_error(-EINVAL, "%s is not a session: it has neither {root} nor {kern}, and no ledger", path);
}

static int refuse_missing(const struct program *program, const char *name, const char *path, int err)
{
	struct op_text hint = { 0 };

	if (path && err == -EACCES)
		return opr_fail_open(err, path);
	opr_hint_at_sessions(&hint, program->session_dir, name);
	opr_error(err, "there is no session '%s'%s%s: %s%s%s", name, path ? " at " : "", path ? path : "", strerror(-err),
		  hint.length ? "." : "", op_text_get(&hint));
	op_text_free(&hint);
	return err;
}

static int open_session(const struct program *program, const char *name, const char *path, struct opk_location *ret_location)
{
	int fd = path ? open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1, err;

	if (fd < 0)
		return refuse_missing(program, name, path, -errno);
	err = opk_location_find(fd, ret_location);
	if (err) {
		opr_fail_open(err, path);
	} else {
		err = refuse_no_session(program, fd, ret_location, path);
		if (err)
			opk_location_free(ret_location);
	}
	if (!err)
		return fd;
	close(fd);
	return err;
}

static void check_session(struct program *program, const char *name, bool first)
{
	struct opk_check check = { .repair = program->repair, .report = report, .progress = show_progress, .arg = program };
	char *path = path_of(program, name);
	struct opk_location location;
	bool is_checked;

	program->session = name;
	check.dir_fd = open_session(program, name, path, &location);
	if (check.dir_fd < 0) {
		worsen(program, FAILED);
		free(path);
		return;
	}
	begin_session(program, first);
	is_checked = !check_one(program, &check, &location, path);
	if (!is_checked)
		worsen(program, FAILED);
	worsen(program, check.nr_left ? DAMAGED : check.nr_repaired ? REPAIRED : SOUND);
	end_session(program, &check, is_checked);
	opk_location_free(&location);
	close(check.dir_fd);
	free(path);
}

/* ---- all of them ---- */

static int check_sessions(struct program *program)
{
	int err = opr_session_dir_choose(program->session_dir_option, &program->session_dir);

	program->is_named = program->words.nr_words;
	if (!err && !program->is_named)
		err = opr_session_names(program->session_dir, &program->words);
	if (err)
		return err;
	if (program->json)
		fputs("{\n  \"sessions\": [", stdout);
	for (size_t i = 0; i < program->words.nr_words; i++)
		check_session(program, program->words.words[i], !i);
	if (program->json)
		printf("%s],\n  \"exit_code\": %d\n}\n", program->words.nr_words ? "\n  " : "", (int)program->result);
	return 0;
}

#define FIELD(name) offsetof(struct program, name)

static const struct opr_option rows[] = {
	{ "json", 0, FIELD(json), NULL, "one JSON object", NULL },
	{ "quiet", 'q', FIELD(quiet), NULL, "print problems only", NULL },
	{ "repair", 'r', FIELD(repair), NULL, "repair what can be repaired", NULL },
	{ "session-dir", 0, FIELD(session_dir_option), opr_take_string, "directory that holds the samples", "directory" },
};

#undef FIELD

static const struct opr_command command = {
	.program = "opcheck",
	.arguments = "[SESSION]...",
	.rows = rows,
	.nr_rows = op_array_size(rows),
	.failed = FAILED,
};

int main(int argc, const char **argv)
{
	struct program program = { 0 };
	enum opr_request request;
	int err;

	opr_log_init(command.program);
	err = opr_command_read(&command, argc, argv, &program, &program.words, &request);
	if (program.json || program.quiet)
		opr_progress_stop();
	if (!err && request == OPR_RUN)
		err = check_sessions(&program);
	if (err)
		worsen(&program, FAILED);
	if (opr_stdout_flush())
		worsen(&program, FAILED);
	opr_command_free(&command, &program);
	opr_words_free(&program.words);
	free(program.session_dir);
	return (int)program.result;
}
