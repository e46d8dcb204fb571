/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/capability.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "tools/opd-events/filter.h"
#include "tools/opd-events/serve.h"

#define SOCKET_FD 3 /* where systemd puts the socket of opd-events.socket */

static const char usage[] =
	"usage: opd-events, with a socket as descriptor 3\n"
	"\n"
	"Opens perf events for opd where the kernel wants CAP_SYS_ADMIN for that (kernel.perf_event_paranoid above 2),\n"
	"and ends when opd closes the socket. systemd starts it (opd-events.socket); doc/security.md says what it may do.\n";

static int fail(const char *what, int err)
{
	fprintf(stderr, "opd-events: %s: %s\n", what, strerror(-err));
	return 1;
}

static bool is_needed(void)
{
	uint64_t level;

	/* -1 is no number here: nor is it needed then */
	return !op_file_read_u64(OP_PARANOID_PATH, 0, INT32_MAX, &level) && level > OP_PARANOID_MAX;
}

/* The socket may listen, or be connected already. Its connection is the only descriptor. */
static int take_connection(void)
{
	int listens = 0, fd = SOCKET_FD;
	socklen_t nr_bytes = sizeof(listens);

	if (getsockopt(SOCKET_FD, SOL_SOCKET, SO_ACCEPTCONN, &listens, &nr_bytes) < 0)
		return -errno;
	if (listens) {
		fd = accept4(SOCKET_FD, NULL, NULL, SOCK_CLOEXEC);
		if (fd < 0 || dup3(fd, SOCKET_FD, O_CLOEXEC) < 0)
			return -errno;
	}
	closefrom(SOCKET_FD + 1);
	return 0;
}

static int give_up_rights(void)
{
	const struct rlimit none = { 0, 0 };
	cap_value_t kept = CAP_SYS_ADMIN;
	cap_t wanted = cap_init();
	int err = 0;

	if (!wanted || cap_set_flag(wanted, CAP_PERMITTED, 1, &kept, CAP_SET) < 0 ||
	    cap_set_flag(wanted, CAP_EFFECTIVE, 1, &kept, CAP_SET) < 0)
		err = -ENOMEM;
	else if (prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) < 0 || cap_set_proc(wanted) < 0 ||
		 prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 || prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
		 setrlimit(RLIMIT_CORE, &none) < 0)
		err = -errno;
	cap_free(wanted);
	return err;
}

int main(int argc, char **argv)
{
	struct ope_samplers samplers;
	int err;

	if (argc > 1) {
		bool is_help = !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h");

		fputs(usage, is_help ? stdout : stderr);
		return is_help ? 0 : 2;
	}
	err = take_connection();
	if (err)
		return fail("no socket as descriptor 3", err);
	if (!is_needed()) {
		fputs("opd-events: not needed: kernel.perf_event_paranoid is 2 or less\n", stderr);
		return 0;
	}
	ope_samplers_read(&samplers);
	err = give_up_rights();
	if (err)
		return fail("cannot keep CAP_SYS_ADMIN alone", err);
	err = ope_filter_apply(SOCKET_FD);
	if (err)
		return fail("no filter of system calls (libseccomp), and so no events", err);
	ope_serve(SOCKET_FD, &samplers);
	_exit(0);
}
