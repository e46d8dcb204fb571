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
	const struct opd_deep_cpu *deep_cpus;
	uint32_t nr_cpus, nr_kicks;
	struct kicks *kicks;
	size_t kicks_capacity;
	int control_fd, cpus_fd, output_fd, iterator_fd, sample_fd, notes_fd, deep_fd;
	int runtime_images_fd, runtime_control_fd;
	struct opd_interpreter_control *interpreter_control;
	bool lacks[OPD_NR_PARTS];
	char why_not[OPD_NR_PARTS][OPD_WAITS_WORDS_MAX];
	int link_fds[LINKS_MAX];
	size_t nr_links;
};

static size_t page_bytes(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t whole_pages(size_t nr_bytes)
{
	size_t page = page_bytes();

	return (nr_bytes + page - 1) / page * page;
}

/* The element of an array that is mapped is a multiple of 8 bytes. */
static_assert(sizeof(struct opd_wait_cpu) % 8 == 0 && sizeof(struct opd_deep_cpu) % 8 == 0, "maps");

static size_t bytes_of_cpus(uint32_t nr_cpus)
{
	return whole_pages(nr_cpus * sizeof(struct opd_wait_cpu));
}

static size_t bytes_of_deep_cpus(uint32_t nr_cpus)
{
	return whole_pages(nr_cpus * sizeof(struct opd_deep_cpu));
}

/* Maps a part of a map of the kernel, for opd alone: helpers that it forks later do not have it. */
static int map_part(size_t nr_bytes, int access, int fd, size_t offset, void **ret_memory)
{
	int err = op_sys_mmap(NULL, nr_bytes, access, MAP_SHARED, fd, (off_t)offset, ret_memory);

	if (!err && madvise(*ret_memory, nr_bytes, MADV_DONTFORK) < 0) {
		err = -errno;
		op_sys_munmap(*ret_memory, nr_bytes);
	}
	return err;
}

/* ---- what opd-waits sends ---- */

static int map_kick(struct opd_wait_program *program, uint32_t cpu, int fd)
{
	struct kicks *kicks;
	void *consumed, *produced;
	int err = cpu < CPUS_MAX ? map_part(page_bytes(), PROT_READ | PROT_WRITE, fd, 0, &consumed) : -EBADMSG;

	if (err)
		return err;
	err = map_part(page_bytes(), PROT_READ, fd, page_bytes(), &produced);
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
	program->nr_kicks = cpu + 1;
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
	if (message->piece == OPD_WAITS_MISSING && message->index < OPD_NR_PARTS) {
		program->lacks[message->index] = true;
		memcpy(program->why_not[message->index], message->words, sizeof(message->words));
		return 0;
	}
	if (message->piece == OPD_WAITS_DONE) {
		program->nr_cpus = message->index;
		return 1;
	}
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
	case OPD_WAITS_NOTES:
		keep(&program->notes_fd, fd);
		return 0;
	case OPD_WAITS_DEEP_CPUS:
		keep(&program->deep_fd, fd);
		return 0;
	case OPD_WAITS_INTERPRETER_IMAGES:
		keep(&program->runtime_images_fd, fd);
		return 0;
	case OPD_WAITS_INTERPRETER_CONTROL:
		keep(&program->runtime_control_fd, fd);
		return 0;
	case OPD_WAITS_ITERATOR:
		keep(&program->iterator_fd, fd);
		return 0;
	case OPD_WAITS_SAMPLE:
		keep(&program->sample_fd, fd);
		return 0;
	case OPD_WAITS_KICK:
		return message->index == program->nr_kicks ? map_kick(program, message->index, *fd) : -EBADMSG;
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

/* All descriptors have come. Those of waits are there all, or none is. */
static bool is_whole(const struct opd_wait_program *program)
{
	bool with_waits = program->iterator_fd >= 0;

	return program->nr_cpus && program->nr_cpus <= CPUS_MAX && program->nr_kicks == (with_waits ? program->nr_cpus : 0) &&
	       program->control_fd >= 0 && program->cpus_fd >= 0 && program->output_fd >= 0 && program->sample_fd >= 0 &&
	       program->notes_fd >= 0 && program->deep_fd >= 0 && program->runtime_images_fd >= 0 &&
	       program->runtime_control_fd >= 0;
}

static int map_maps(struct opd_wait_program *program)
{
	void *control, *cpus, *deep_cpus, *interpreter_control;
	int err = is_whole(program) ? 0 : -EBADMSG;

	if (!err)
		err = map_part(page_bytes(), PROT_READ | PROT_WRITE, program->control_fd, 0, &control);
	if (err)
		return err;
	program->control = control;
	err = map_part(bytes_of_cpus(program->nr_cpus), PROT_READ, program->cpus_fd, 0, &cpus);
	if (err)
		return err;
	program->cpus = cpus;
	err = map_part(bytes_of_deep_cpus(program->nr_cpus), PROT_READ, program->deep_fd, 0, &deep_cpus);
	if (err)
		return err;
	program->deep_cpus = deep_cpus;
	err = map_part(page_bytes(), PROT_READ | PROT_WRITE, program->runtime_control_fd, 0, &interpreter_control);
	if (!err)
		program->interpreter_control = interpreter_control;
	return err;
}

/* ---- loading ---- */

static const char *program_path(void)
{
	const char *other = getenv(OPD_WAITS_ENV);

	return other && *other ? other : PROGRAM;
}

static _Noreturn void run_program(int socket_fd, bool with_waits)
{
	char *arguments[] = { (char[]){ "opd-waits" }, with_waits ? NULL : (char[]){ OPD_WAITS_NONE }, NULL };
	char *environment[] = { NULL };

	if (dup2(socket_fd, OPD_WAITS_SOCKET_FD) >= 0) {
		closefrom(OPD_WAITS_SOCKET_FD + 1);
		execve(program_path(), arguments, environment);
	}
	_exit(127);
}

static int start(bool with_waits, int *ret_fd, pid_t *ret_pid)
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
		run_program(fds[1], with_waits);
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
static int take_all(struct opd_wait_program *program, bool with_waits, struct op_text *why)
{
	int socket_fd = -1, err;
	pid_t pid = -1;

	err = start(with_waits, &socket_fd, &pid);
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

int opd_wait_program_load(bool with_waits, struct opd_wait_program **ret_program, struct op_text *why)
{
	struct opd_wait_program *program = calloc(1, sizeof(*program));
	int err;

	if (!program)
		return -ENOMEM;
	program->control_fd = program->cpus_fd = program->output_fd = program->iterator_fd = program->sample_fd = -1;
	program->notes_fd = program->deep_fd = program->runtime_images_fd = program->runtime_control_fd = -1;
	err = take_all(program, with_waits, why);
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
	for (uint32_t i = 0; i < program->nr_kicks; i++) {
		op_sys_munmap(program->kicks[i].consumed, page_bytes());
		op_sys_munmap((void *)(uintptr_t)program->kicks[i].produced, page_bytes());
	}
	if (program->control)
		op_sys_munmap(program->control, page_bytes());
	if (program->cpus)
		op_sys_munmap((void *)(uintptr_t)program->cpus, bytes_of_cpus(program->nr_cpus));
	if (program->deep_cpus)
		op_sys_munmap((void *)(uintptr_t)program->deep_cpus, bytes_of_deep_cpus(program->nr_cpus));
	close_fd(program->control_fd);
	close_fd(program->cpus_fd);
	close_fd(program->output_fd);
	close_fd(program->iterator_fd);
	close_fd(program->sample_fd);
	close_fd(program->notes_fd);
	close_fd(program->deep_fd);
	if (program->interpreter_control)
		op_sys_munmap(program->interpreter_control, page_bytes());
	close_fd(program->runtime_images_fd);
	close_fd(program->runtime_control_fd);
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

bool opd_wait_program_has_waits(const struct opd_wait_program *program)
{
	return program->iterator_fd >= 0;
}

const char *opd_wait_program_why_not(const struct opd_wait_program *program, uint32_t part)
{
	return program->lacks[part] ? program->why_not[part] : NULL;
}

int opd_wait_program_of_samples(const struct opd_wait_program *program)
{
	return program->sample_fd;
}

const struct opd_deep_cpu *opd_wait_program_deep_cpu(const struct opd_wait_program *program, uint32_t cpu)
{
	return cpu < program->nr_cpus ? &program->deep_cpus[cpu] : NULL;
}

struct opd_interpreter_control *opd_wait_program_interpreters(const struct opd_wait_program *program, int *ret_images_fd)
{
	*ret_images_fd = program->runtime_images_fd;
	return program->interpreter_control;
}

static int direct(int map_fd, uint32_t cpu, int event_fd)
{
	uint32_t value = (uint32_t)event_fd;
	union bpf_attr attr = { .map_fd = (uint32_t)map_fd, .key = (uintptr_t)&cpu, .value = (uintptr_t)&value };

	return op_sys_bpf(BPF_MAP_UPDATE_ELEM, &attr, sizeof(attr));
}

int opd_wait_program_direct(struct opd_wait_program *program, uint32_t cpu, int event_fd)
{
	return direct(program->output_fd, cpu, event_fd);
}

int opd_wait_program_direct_notes(struct opd_wait_program *program, uint32_t cpu, int event_fd)
{
	return direct(program->notes_fd, cpu, event_fd);
}

void opd_wait_program_take_kicks(struct opd_wait_program *program)
{
	for (uint32_t i = 0; i < program->nr_kicks; i++) {
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
