/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/waits/program.h"

#include <errno.h>
#include <linux/bpf.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libop/base/atomic.h"
#include "libop/base/grow.h"
#include "libop/base/sys.h"
#include "libop/process/pass.h"
#include "pipeline/waits/loading.h"

#define PROGRAM        OPD_PKGLIBEXECDIR "/opd-waits"
#define ANSWER_SECONDS 20
#define LINKS_MAX      16u
#define CPUS_MAX       65536u

/* The pages of a BPF ring buffer that say how far both sides are. */
struct kicks {
	uint64_t *consumed;
	const uint64_t *produced;
};

struct opd_wait_program {
	struct opd_wait_control *control;
	const struct opd_wait_cpu *cpus;
	uint32_t nr_cpus;
	struct kicks *kicks;
	size_t kicks_capacity;
	int control_fd, cpus_fd, output_fd, iterator_fd, sample_fd;
	int link_fds[LINKS_MAX];
	size_t nr_links;
};

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t bytes_of_cpus(uint32_t nr_cpus)
{
	size_t page = page_bytes();

	return (nr_cpus * sizeof(struct opd_wait_cpu) + page - 1) / page * page;
}

/* ---- what opd-waits sends ---- */

static int map_kick(struct opd_wait_program *program, uint32_t cpu, int fd)
{
	struct kicks *kicks;
	void *consumed, *produced;
	int err = cpu < CPUS_MAX ? op_sys_mmap(NULL, page_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0, &consumed) : -EBADMSG;

	if (err)
		return err;
	err = op_sys_mmap(NULL, page_bytes(), PROT_READ, MAP_SHARED, fd, (off_t)page_bytes(), &produced);
	if (!err && !op_grow(&program->kicks, &program->kicks_capacity, cpu + 1)) {
		op_sys_munmap(produced, page_bytes());
		err = -ENOMEM;
	}
	if (err) {
		op_sys_munmap(consumed, page_bytes());
		return err;
	}
	kicks = &program->kicks[cpu];
	*kicks = (struct kicks){ .consumed = consumed, .produced = produced };
	program->nr_cpus = cpu + 1;
	return 0;
}

static void keep(int *ret_fd, int *fd)
{
	if (*ret_fd >= 0)
		close(*ret_fd);
	*ret_fd = *fd;
	*fd = -1;
}

/* Takes the descriptor away where it is kept. 1: that was all; 0; -errno. */
static int take_piece(struct opd_wait_program *program, struct opd_waits_message *message, int *fd, struct op_text *why)
{
	message->words[sizeof(message->words) - 1] = '\0';
	if (message->piece == OPD_WAITS_FAILED) {
		op_text_printf(why, "%s", message->words);
		return -ENOTSUP;
	}
	if (message->piece == OPD_WAITS_DONE)
		return 1;
	if (*fd < 0)
		return -EBADMSG;
	switch (message->piece) {
	case OPD_WAITS_CONTROL:
		keep(&program->control_fd, fd);
		return 0;
	case OPD_WAITS_CPUS:
		keep(&program->cpus_fd, fd);
		return 0;
	case OPD_WAITS_OUTPUT:
		keep(&program->output_fd, fd);
		return 0;
	case OPD_WAITS_ITERATOR:
		keep(&program->iterator_fd, fd);
		return 0;
	case OPD_WAITS_SAMPLE:
		keep(&program->sample_fd, fd);
		return 0;
	case OPD_WAITS_KICK:
		return message->index == program->nr_cpus ? map_kick(program, message->index, *fd) : -EBADMSG;
	case OPD_WAITS_LINK:
		if (program->nr_links == LINKS_MAX)
			return -EBADMSG;
		program->link_fds[program->nr_links++] = *fd;
		*fd = -1;
		return 0;
	default:
		return -EBADMSG;
	}
}

static int take_pieces(struct opd_wait_program *program, int socket_fd, struct op_text *why)
{
	int result = 0;

	while (!result) {
		struct opd_waits_message message;
		int fd = -1;
		ssize_t nr = op_pass_receive(socket_fd, &message, sizeof(message), &fd);

		result = nr == sizeof(message) ? take_piece(program, &message, &fd, why) : nr < 0 ? (int)nr : -EPIPE;
		if (fd >= 0)
			close(fd);
	}
	return result < 0 ? result : 0;
}

static int map_maps(struct opd_wait_program *program)
{
	void *map;
	int err = program->nr_cpus && program->output_fd >= 0 && program->iterator_fd >= 0 && program->sample_fd >= 0 ?
			  0 :
			  -EBADMSG;

	if (!err)
		err = op_sys_mmap(NULL, page_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, program->control_fd, 0, &map);
	if (err)
		return err;
	program->control = map;
	err = op_sys_mmap(NULL, bytes_of_cpus(program->nr_cpus), PROT_READ, MAP_SHARED, program->cpus_fd, 0, &map);
	if (!err)
		program->cpus = map;
	return err;
}

/* ---- loading ---- */

static const char *program_path(void)
{
	const char *other = getenv(OPD_WAITS_ENV);

	return other && *other ? other : PROGRAM;
}

static _Noreturn void run_program(int socket_fd)
{
	char *arguments[] = { (char[]){ "opd-waits" }, NULL }, *environment[] = { NULL };

	if (dup2(socket_fd, OPD_WAITS_SOCKET_FD) >= 0) {
		closefrom(OPD_WAITS_SOCKET_FD + 1);
		execve(program_path(), arguments, environment);
	}
	_exit(127);
}

static int start(int *ret_fd, pid_t *ret_pid)
{
	const struct timeval longest = { .tv_sec = ANSWER_SECONDS };
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
		return -errno;
	if (setsockopt(fds[0], SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof(longest)) < 0)
		*ret_pid = -1;
	else
		*ret_pid = fork();
	if (!*ret_pid)
		run_program(fds[1]);
	close(fds[1]);
	if (*ret_pid < 0) {
		close(fds[0]);
		return -errno;
	}
	*ret_fd = fds[0];
	return 0;
}

static void explain(int err, struct op_text *why)
{
	if (why->length)
		return;
	if (err == -EPIPE)
		op_text_printf(why, "%s does not run, or was ended", program_path());
	else if (err == -EAGAIN)
		op_text_printf(why, "%s did not answer in %d seconds", program_path(), ANSWER_SECONDS);
	else
		op_text_printf(why, "%s", strerror(-err));
}

/* Runs opd-waits to its end. 0; -errno, and `why` may have the reason. */
static int take_all(struct opd_wait_program *program, struct op_text *why)
{
	int socket_fd = -1, err;
	pid_t pid = -1;

	err = start(&socket_fd, &pid);
	if (err)
		return err;
	err = take_pieces(program, socket_fd, why);
	close(socket_fd);
	if (err)
		kill(pid, SIGKILL);
	while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
		continue;
	return err ? err : map_maps(program);
}

int opd_wait_program_load(struct opd_wait_program **ret_program, struct op_text *why)
{
	struct opd_wait_program *program = calloc(1, sizeof(*program));
	int err;

	if (!program)
		return -ENOMEM;
	program->control_fd = program->cpus_fd = program->output_fd = program->iterator_fd = program->sample_fd = -1;
	err = take_all(program, why);
	if (err) {
		explain(err, why);
		opd_wait_program_free(program);
		return err;
	}
	*ret_program = program;
	return 0;
}

static void close_fd(int fd)
{
	if (fd >= 0)
		close(fd);
}

void opd_wait_program_free(struct opd_wait_program *program)
{
	if (!program)
		return;
	for (size_t i = 0; i < program->nr_links; i++)
		close(program->link_fds[i]);
	for (uint32_t i = 0; i < program->nr_cpus; i++) {
		op_sys_munmap(program->kicks[i].consumed, page_bytes());
		op_sys_munmap((void *)(uintptr_t)program->kicks[i].produced, page_bytes());
	}
	if (program->control)
		op_sys_munmap(program->control, page_bytes());
	if (program->cpus)
		op_sys_munmap((void *)(uintptr_t)program->cpus, bytes_of_cpus(program->nr_cpus));
	close_fd(program->control_fd);
	close_fd(program->cpus_fd);
	close_fd(program->output_fd);
	close_fd(program->iterator_fd);
	close_fd(program->sample_fd);
	free(program->kicks);
	free(program);
}

/* ---- use ---- */

struct opd_wait_control *opd_wait_program_control(struct opd_wait_program *program)
{
	return program->control;
}

const struct opd_wait_cpu *opd_wait_program_cpu(const struct opd_wait_program *program, uint32_t cpu)
{
	return cpu < program->nr_cpus ? &program->cpus[cpu] : NULL;
}

int opd_wait_program_of_samples(const struct opd_wait_program *program)
{
	return program->sample_fd;
}

int opd_wait_program_direct(struct opd_wait_program *program, uint32_t cpu, int event_fd)
{
	uint32_t value = (uint32_t)event_fd;
	union bpf_attr attr = {
		.map_fd = (uint32_t)program->output_fd,
		.key = (uintptr_t)&cpu,
		.value = (uintptr_t)&value,
	};

	return op_sys_bpf(BPF_MAP_UPDATE_ELEM, &attr, sizeof(attr));
}

void opd_wait_program_take_kicks(struct opd_wait_program *program)
{
	for (uint32_t i = 0; i < program->nr_cpus; i++) {
		struct kicks *kicks = &program->kicks[i];
		uint64_t produced = op_load_acquire(kicks->produced);

		if (*kicks->consumed != produced)
			op_store_release(kicks->consumed, produced);
	}
}

int opd_wait_program_read(const struct opd_wait_program *program)
{
	union bpf_attr attr = { .iter_create.link_fd = (uint32_t)program->iterator_fd };

	return op_sys_bpf(BPF_ITER_CREATE, &attr, sizeof(attr));
}
