/* SPDX-License-Identifier: GPL-3.0-or-later */
/* opcontrol: from the command line to the work. */
#include "tools/common/log.h"
#include "tools/opcontrol/options.h"

static int load_config(struct opcontrol *ctl, const char *option)
{
	struct op_text warnings = { 0 };
	int err = op_config_init(&ctl->config);

	if (err < 0)
		return opr_no_memory();
	ctl->config_path = op_config_path(option, &ctl->config_explicit);
	err = op_config_read(&ctl->config, ctl->config_path, ctl->config_explicit, &warnings);
	if (err < 0)
		opr_error(1, "cannot read the configuration %s: %s", ctl->config_path, strerror(-err));
	else
		fputs(op_text_get(&warnings), stderr);
	op_text_free(&warnings);
	return err < 0;
}

static int save_setup(struct opcontrol *ctl, const struct ctl_command_line *line)
{
	struct ctl_daemon daemon;
	int rc = ctl_find_daemon(ctl, &daemon);

	if (rc)
		return rc;
	rc = ctl_save_setup(ctl, daemon.presence != CTL_ABSENT, line->edits, line->nr_edits);
	if (!rc && daemon.presence != CTL_ABSENT && line->apply)
		rc = ctl_restart_daemon(ctl, &daemon);
	else if (!rc && daemon.presence != CTL_ABSENT)
		puts("The daemon is running: the new setup takes effect when it has been shut down and started again "
		     "(--apply does it).");
	ctl_daemon_free(&daemon);
	return rc;
}

static int work(struct opcontrol *ctl, const struct ctl_command_line *line)
{
	bool needs_setup = line->status || !line->request || !line->request->any_user;
	int rc = 0;

	ctl->session_dir = ctl->config.session_dir;
	ctl->request_arg = line->request_arg;
	ctl->changes_setup = line->nr_edits && !line->status;
	if (needs_setup)
		rc = ctl_load_setup(ctl, !line->status);
	if (rc && !line->status && !(line->request && line->request->without_setup))
		return rc;
	if (line->status)
		return ctl_with_daemon(ctl, ctl_show_status);
	rc = line->nr_edits ? save_setup(ctl, line) : 0;
	if (rc || !line->request)
		return rc;
	return line->request->act ? ctl_with_daemon(ctl, line->request->act) : line->request->run(ctl);
}

static int run(const struct ctl_command_line *line)
{
	struct opcontrol ctl = { .format = line->json ? CTL_JSON : line->format, .verbose = line->verbose };
	int rc;

	op_setup_init(&ctl.setup);
	rc = load_config(&ctl, line->config);
	if (!rc)
		rc = work(&ctl, line);
	op_setup_free(&ctl.setup);
	op_config_free(&ctl.config);
	return rc;
}

int main(int argc, const char **argv)
{
	struct ctl_command_line line = { 0 };
	enum opr_request request = OPR_DONE;
	int rc;

	/* lines of both streams stay in their order, also in one file */
	setvbuf(stdout, NULL, _IOLBF, 0);
	rc = ctl_command_line_read(&line, argc, argv, &request);
	if (!rc && request == OPR_RUN)
		rc = run(&line);
	ctl_command_line_free(&line);
	return rc ? EXIT_FAILURE : EXIT_SUCCESS;
}
