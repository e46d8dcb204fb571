/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tests/bench/peer_lttng.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void run(const char *command, int in, int out)
{
	if (dup2(in, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0)
		execl("/bin/sh", "sh", "-c", command, (char *)NULL);
	_exit(127);
}

int peer_lttng_start(const char *command, struct peer_lttng *ret_peer)
{
	int requests[2], answers[2];
	pid_t pid;

	if (pipe2(requests, O_CLOEXEC) < 0)
		return -errno;
	if (pipe2(answers, O_CLOEXEC) < 0) {
		close(requests[0]);
		close(requests[1]);
		return -EMFILE;
	}
	signal(SIGPIPE, SIG_IGN);
	pid = fork();
	if (!pid)
		run(command, requests[0], answers[1]);
	close(requests[0]);
	close(answers[1]);
	*ret_peer = (struct peer_lttng){ .requests = fdopen(requests[1], "w"), .answers = fdopen(answers[0], "r"), .pid = pid };
	if (pid > 0 && ret_peer->requests && ret_peer->answers)
		return 0;
	peer_lttng_stop(ret_peer);
	return -ENOMEM;
}

int peer_lttng_measure(struct peer_lttng *peer, size_t record_bytes, uint64_t nr, struct lttng_figures *ret_figures)
{
	unsigned long long lost;
	struct lttng_figures figures;

	if (fprintf(peer->requests, "%zu %llu\n", record_bytes, (unsigned long long)nr) < 0 || fflush(peer->requests) != 0)
		return -EPIPE;
	if (fscanf(peer->answers, "%lf %lf %llu", &figures.write_ns, &figures.through_ns, &lost) != 3)
		return -EPIPE;
	figures.lost_permille = lost;
	*ret_figures = figures;
	return 0;
}

void peer_lttng_stop(struct peer_lttng *peer)
{
	if (peer->requests)
		fclose(peer->requests); /* the end of its input ends it */
	if (peer->answers)
		fclose(peer->answers);
	if (peer->pid > 0)
		waitpid(peer->pid, NULL, 0);
	*peer = (struct peer_lttng){ .pid = 0 };
}
