/* SPDX-License-Identifier: GPL-3.0-or-later */
/* operf: profiles a command, a process or the whole system, as the user who calls it. */
#include "tools/common/log.h"
#include "tools/operf/profile.h"
#include "tools/operf/report.h"

static int run(const struct opf_options *options)
{
	struct opf_profile profile;
	int err = opf_profile_open(&profile, options), exit_code;

	if (!err) {
		opf_profile_run(&profile);
		opf_profile_finish(&profile);
		opf_report(&profile);
		err = profile.write_error;
	}
	exit_code = profile.command.exit_code;
	opf_profile_close(&profile);
	return exit_code ? exit_code : err ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, const char **argv)
{
	struct opf_options options = { 0 };
	enum opr_request request;
	int exit_code;

	opr_log_init("operf");
	opr_workload_note_signals();
	exit_code = opf_options_parse(&options, argc, argv, &request) ? EXIT_FAILURE : EXIT_SUCCESS;
	if (!exit_code && request == OPR_RUN)
		exit_code = run(&options);
	opf_options_free(&options);
	return exit_code;
}
