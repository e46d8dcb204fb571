/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * opd-waits: loads the programs of pipeline/waits/program.bpf.c, gives opd the descriptors and
 * ends. So opd needs neither libbpf nor, after its start, CAP_BPF, and the memory that loading
 * takes is free again.
 */
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "libop/base/compiler.h"
#include "libop/process/pass.h"
#include "pipeline/waits/loading.h"
#include "pipeline/waits/shared.h"
#include "tools/opd-waits/object.h"

static const char usage[] =
	"usage: opd-waits [--no-waits], with a socket as descriptor 3\n"
	"\n"
	"Loads the BPF programs of opd, passes their descriptors to opd, and ends: those that sample waits, unless --no-waits\n"
	"is given, and the one that copies deep stacks. opd starts it; people do not. It needs CAP_BPF and CAP_PERFMON, a\n"
	"kernel with BTF, and Linux 6.1. doc/security.md says what the programs may do.\n";

static char last_words[120];

/* The first line of libbpf that is a warning says most. */
static OP_PRINTF(2, 0) int note_words(enum libbpf_print_level level, const char *format, va_list args)
{
	if (level == LIBBPF_WARN && !*last_words) {
		vsnprintf(last_words, sizeof(last_words), format, args);
		last_words[strcspn(last_words, "\n")] = '\0';
	}
	return 0;
}

static int send_piece(enum opd_waits_piece piece, uint32_t index, const char *words, int fd)
{
	struct opd_waits_message message = { .piece = piece, .index = index };
	struct iovec part = { &message, sizeof(message) };
	ssize_t nr;

	snprintf(message.words, sizeof(message.words), "%s", words);
	nr = op_pass_send(OPD_WAITS_SOCKET_FD, &part, 1, fd, 0);
	return nr == sizeof(message) ? 0 : nr < 0 ? (int)nr : -EPIPE;
}

static bool is_too_old(void)
{
	struct utsname host;
	unsigned int major = 0, minor = 0;

	return !uname(&host) && sscanf(host.release, "%u.%u", &major, &minor) == 2 &&
	       (major < OPD_WAITS_LINUX_MAJOR || (major == OPD_WAITS_LINUX_MAJOR && minor < OPD_WAITS_LINUX_MINOR));
}

static int fail(int err)
{
	struct utsname host = { .release = "?" };
	char words[OPD_WAITS_WORDS_MAX];

	uname(&host);
	if (is_too_old())
		snprintf(words, sizeof(words), "Linux %d.%d is needed, and this is %.60s", OPD_WAITS_LINUX_MAJOR,
			 OPD_WAITS_LINUX_MINOR, host.release);
	else if (access("/sys/kernel/btf/vmlinux", R_OK) < 0)
		snprintf(words, sizeof(words), "this kernel has no BTF (CONFIG_DEBUG_INFO_BTF): %s", strerror(-err));
	else if (err == -EPERM || err == -EACCES)
		snprintf(words, sizeof(words), "CAP_BPF and CAP_PERFMON are needed, or lockdown forbids it: %s%s%s", strerror(-err),
			 *last_words ? ": " : "", last_words);
	else
		snprintf(words, sizeof(words), "%s%s%s", strerror(-err), *last_words ? ": " : "", last_words);
	send_piece(OPD_WAITS_FAILED, 0, words, -1);
	return 1;
}

/* ---- loading ---- */

static int set_sizes(struct bpf_object *object, uint32_t nr_cpus)
{
	static const char *const of_cpus[] = { "cpus", "output", "kicks", "notes", "deep_cpus", "stack_notes" };
	int err = 0;

	for (size_t i = 0; i < op_array_size(of_cpus) && !err; i++)
		err = bpf_map__set_max_entries(bpf_object__find_map_by_name(object, of_cpus[i]), nr_cpus);
	return err;
}

/* Without waits nothing runs at switches, and costs nothing there. */
static int leave_waits_out(struct bpf_object *object)
{
	struct bpf_program *program;
	int err = 0;

	bpf_object__for_each_program(program, object)
		if (bpf_program__type(program) != BPF_PROG_TYPE_PERF_EVENT && !err)
			err = bpf_program__set_autoload(program, false);
	return err;
}

static int make_kick(struct bpf_object *object, uint32_t cpu)
{
	int fd = bpf_map_create(BPF_MAP_TYPE_RINGBUF, "opd_kick", 0, 0, OPD_WAIT_KICK_BYTES, NULL), err;

	if (fd < 0)
		return fd;
	err = bpf_map_update_elem(bpf_object__find_map_fd_by_name(object, "kicks"), &cpu, &fd, BPF_ANY);
	if (!err)
		err = send_piece(OPD_WAITS_KICK, cpu, "", fd);
	close(fd);
	return err;
}

static int send_maps(struct bpf_object *object)
{
	static const struct {
		const char *name;
		enum opd_waits_piece piece;
	} maps[] = { { "control", OPD_WAITS_CONTROL }, { "cpus", OPD_WAITS_CPUS }, { "output", OPD_WAITS_OUTPUT },
		     { "notes", OPD_WAITS_NOTES }, { "deep_cpus", OPD_WAITS_DEEP_CPUS },
		     { "interpreter_images", OPD_WAITS_INTERPRETER_IMAGES },
		     { "interpreter_control", OPD_WAITS_INTERPRETER_CONTROL } };
	int err = 0;

	for (size_t i = 0; i < op_array_size(maps) && !err; i++)
		err = send_piece(maps[i].piece, 0, "", bpf_object__find_map_fd_by_name(object, maps[i].name));
	return err;
}

static int attach(struct bpf_program *program)
{
	bool is_iterator = bpf_program__expected_attach_type(program) == BPF_TRACE_ITER;
	struct bpf_link *link = bpf_program__attach(program);
	int err;

	if (!link)
		return -errno;
	err = send_piece(is_iterator ? OPD_WAITS_ITERATOR : OPD_WAITS_LINK, 0, "", bpf_link__fd(link));
	bpf_link__destroy(link); /* opd has it */
	return err;
}

/* opd attaches the program of samples itself, to each of its events. */
static int send_programs(struct bpf_object *object)
{
	struct bpf_program *program;
	int err = 0;

	bpf_object__for_each_program(program, object) {
		if (!bpf_program__autoload(program))
			continue;
		err = bpf_program__type(program) == BPF_PROG_TYPE_PERF_EVENT ?
			      send_piece(OPD_WAITS_SAMPLE, 0, "", bpf_program__fd(program)) :
			      attach(program);
		if (err)
			break;
	}
	return err;
}

static int send_all(struct bpf_object *object, uint32_t nr_cpus, bool with_waits)
{
	int err = 0;

	for (uint32_t cpu = 0; with_waits && cpu < nr_cpus && !err; cpu++)
		err = make_kick(object, cpu);
	if (err)
		return err;
	err = send_maps(object);
	if (err)
		return err;
	err = send_programs(object);
	return err ? err : send_piece(OPD_WAITS_DONE, nr_cpus, "", -1);
}

static int load_into(struct bpf_object *object, uint32_t nr_cpus, bool with_waits)
{
	int err = set_sizes(object, nr_cpus);

	if (!err && !with_waits)
		err = leave_waits_out(object);
	if (!err)
		err = bpf_object__load(object);
	return err ? err : send_all(object, nr_cpus, with_waits);
}

static int load(bool with_waits)
{
	int nr_cpus = libbpf_num_possible_cpus(), err;
	struct bpf_object *object;

	if (nr_cpus < 0)
		return nr_cpus;
	object = bpf_object__open_mem(opw_object, opw_object_bytes, NULL);
	if (!object)
		return -errno;
	err = load_into(object, (uint32_t)nr_cpus, with_waits);
	bpf_object__close(object);
	return err;
}

int main(int argc, char **argv)
{
	bool with_waits = argc == 1;
	int err;

	if (argc > 2 || (argc == 2 && strcmp(argv[1], OPD_WAITS_NONE))) {
		bool is_help = !strcmp(argv[1], "--help") || !strcmp(argv[1], "-h");

		fputs(usage, is_help ? stdout : stderr);
		return is_help ? 0 : 2;
	}
	libbpf_set_strict_mode(LIBBPF_STRICT_ALL);
	libbpf_set_print(note_words);
	err = load(with_waits);
	return err ? fail(err) : 0;
}
