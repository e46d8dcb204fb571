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

#define CHECK	      "--check"
#define LOG_STATS     4 /* of the verifier: numbers at the end, without its steps */
#define LOG_BYTES     4096
#define LINKS_MAX     16

static const char usage[] =
	"usage: opd-waits [--no-waits], with a socket as descriptor 3\n"
	"       opd-waits --check\n"
	"\n"
	"Loads the BPF programs of opd, passes their descriptors to opd, and ends: those that sample waits, unless --no-waits\n"
	"is given, and the one that copies deep stacks and reads interpreters. What a kernel refuses is left out. opd starts it;\n"
	"people do not. It needs CAP_BPF and CAP_PERFMON, a kernel with BTF, and Linux 6.1. doc/security.md says what the\n"
	"programs may do.\n"
	"\n"
	"  --check   loads all of them, attaches none, and prints what the verifier of this kernel says of each\n";

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

/* Why loading failed, of the last attempt. */
static void explain(int err, char words[OPD_WAITS_WORDS_MAX])
{
	struct utsname host = { .release = "?" };

	uname(&host);
	if (is_too_old())
		snprintf(words, OPD_WAITS_WORDS_MAX, "Linux %d.%d is needed, and this is %.60s", OPD_WAITS_LINUX_MAJOR,
			 OPD_WAITS_LINUX_MINOR, host.release);
	else if (access("/sys/kernel/btf/vmlinux", R_OK) < 0)
		snprintf(words, OPD_WAITS_WORDS_MAX, "this kernel has no BTF (CONFIG_DEBUG_INFO_BTF): %s", strerror(-err));
	else if (err == -EPERM || err == -EACCES)
		snprintf(words, OPD_WAITS_WORDS_MAX, "CAP_BPF and CAP_PERFMON are needed, or lockdown forbids it: %s%s%s",
			 strerror(-err), *last_words ? ": " : "", last_words);
	else
		snprintf(words, OPD_WAITS_WORDS_MAX, "%s%s%s", strerror(-err), *last_words ? ": " : "", last_words);
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
static int choose(struct bpf_object *object, uint32_t parts)
{
	struct bpf_map *constants = bpf_object__find_map_by_name(object, ".rodata");
	struct bpf_program *program;
	int err = bpf_map__set_initial_value(constants, &parts, sizeof(parts));

	bpf_object__for_each_program(program, object)
		if (bpf_program__type(program) != BPF_PROG_TYPE_PERF_EVENT && !err)
			err = bpf_program__set_autoload(program, parts & OPD_PART_BIT(OPD_PART_waits));
	return err;
}

/* What one attempt has made. */
struct loaded {
	struct bpf_object *object;
	struct bpf_link *links[LINKS_MAX];
	size_t nr_links;
	uint32_t nr_cpus;
};

static void unload(struct loaded *loaded)
{
	for (size_t i = 0; i < loaded->nr_links; i++)
		bpf_link__destroy(loaded->links[i]);
	bpf_object__close(loaded->object);
	*loaded = (struct loaded){ 0 };
}

/* opd attaches the program of samples itself, to each of its events. */
static int attach(struct loaded *loaded)
{
	struct bpf_program *program;

	bpf_object__for_each_program(program, loaded->object) {
		struct bpf_link *link;

		if (!bpf_program__autoload(program) || bpf_program__type(program) == BPF_PROG_TYPE_PERF_EVENT)
			continue;
		link = loaded->nr_links < LINKS_MAX ? bpf_program__attach(program) : NULL;
		if (!link)
			return loaded->nr_links < LINKS_MAX ? -errno : -E2BIG;
		loaded->links[loaded->nr_links++] = link;
	}
	return 0;
}

static int load(uint32_t parts, struct loaded *ret_loaded)
{
	int nr_cpus = libbpf_num_possible_cpus(), err;
	struct loaded loaded = { .nr_cpus = (uint32_t)nr_cpus };

	*last_words = '\0';
	if (nr_cpus < 0)
		return nr_cpus;
	loaded.object = bpf_object__open_mem(opw_object, opw_object_bytes, NULL);
	if (!loaded.object)
		return -errno;
	err = set_sizes(loaded.object, loaded.nr_cpus);
	if (err)
		goto fail;
	err = choose(loaded.object, parts);
	if (err)
		goto fail;
	err = bpf_object__load(loaded.object);
	if (err)
		goto fail;
	err = attach(&loaded);
	if (err)
		goto fail;
	*ret_loaded = loaded;
	return 0;
fail:
	unload(&loaded);
	return err;
}

/* ---- what opd gets ---- */

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

static int send_programs(struct loaded *loaded)
{
	struct bpf_program *program;
	size_t nr_sent = 0;
	int err = 0;

	bpf_object__for_each_program(program, loaded->object) {
		bool is_iterator = bpf_program__expected_attach_type(program) == BPF_TRACE_ITER;

		if (!bpf_program__autoload(program) || err)
			continue;
		if (bpf_program__type(program) == BPF_PROG_TYPE_PERF_EVENT)
			err = send_piece(OPD_WAITS_SAMPLE, 0, "", bpf_program__fd(program));
		else
			err = send_piece(is_iterator ? OPD_WAITS_ITERATOR : OPD_WAITS_LINK, 0, "",
					 bpf_link__fd(loaded->links[nr_sent++]));
	}
	return err;
}

static int send_all(struct loaded *loaded, uint32_t parts, char why[OPD_NR_PARTS][OPD_WAITS_WORDS_MAX])
{
	int err = 0;

	for (uint32_t cpu = 0; parts & OPD_PART_BIT(OPD_PART_waits) && cpu < loaded->nr_cpus && !err; cpu++)
		err = make_kick(loaded->object, cpu);
	if (!err)
		err = send_maps(loaded->object);
	if (!err)
		err = send_programs(loaded);
	for (uint32_t i = 0; i < OPD_NR_PARTS && !err; i++)
		if (!(parts & OPD_PART_BIT(i)))
			err = send_piece(OPD_WAITS_MISSING, i, why[i], -1);
	return err ? err : send_piece(OPD_WAITS_DONE, loaded->nr_cpus, "", -1);
}

/*
 * All that is wanted, or else less: an old kernel's verifier may refuse one part. A part is missing
 * for the reason of the last attempt with it.
 */
static int load_and_send(uint32_t wanted)
{
	/* waits are worth most, then deep stacks */
	static const uint32_t attempts[] = {
		OPD_PARTS_ALL,
		OPD_PART_BIT(OPD_PART_waits) | OPD_PART_BIT(OPD_PART_deep),
		OPD_PART_BIT(OPD_PART_waits) | OPD_PART_BIT(OPD_PART_interpreters),
		OPD_PART_BIT(OPD_PART_waits),
		OPD_PART_BIT(OPD_PART_deep) | OPD_PART_BIT(OPD_PART_interpreters),
		OPD_PART_BIT(OPD_PART_deep),
		OPD_PART_BIT(OPD_PART_interpreters),
	};
	char why[OPD_NR_PARTS][OPD_WAITS_WORDS_MAX] = { 0 };
	struct loaded loaded = { 0 };
	int err = -EINVAL;

	for (size_t i = 0; i < op_array_size(attempts) && err; i++) {
		uint32_t parts = attempts[i] & wanted;

		if (i && attempts[i] & ~wanted)
			continue;
		err = load(parts, &loaded);
		if (!err) {
			err = send_all(&loaded, parts, why);
			unload(&loaded);
			return err ? 1 : 0;
		}
		for (uint32_t part = 0; part < OPD_NR_PARTS; part++)
			if (parts & OPD_PART_BIT(part))
				explain(err, why[part]);
		if (err == -EPERM || err == -EACCES || is_too_old())
			break;
	}
	send_piece(OPD_WAITS_FAILED, 0, why[OPD_PART_deep], -1);
	return 1;
}

/* ---- --check ---- */

static int check(void)
{
	struct bpf_object *object = bpf_object__open_mem(opw_object, opw_object_bytes, NULL);
	static char logs[LINKS_MAX][LOG_BYTES];
	struct bpf_program *program;
	char why[OPD_WAITS_WORDS_MAX];
	size_t nr = 0;
	int err = object ? set_sizes(object, (uint32_t)libbpf_num_possible_cpus()) : -errno;

	if (!err) {
		bpf_object__for_each_program(program, object) {
			bpf_program__set_log_level(program, LOG_STATS);
			if (nr < LINKS_MAX)
				bpf_program__set_log_buf(program, logs[nr++], LOG_BYTES);
		}
		err = bpf_object__load(object);
	}
	nr = 0;
	if (!err) {
		bpf_object__for_each_program(program, object) {
			printf("%s\n%s", bpf_program__name(program), nr < LINKS_MAX ? logs[nr++] : "");
		}
	} else {
		explain(err, why);
		fprintf(stderr, "opd-waits: %s\n", why);
	}
	bpf_object__close(object);
	return err ? 1 : 0;
}

int main(int argc, char **argv)
{
	const char *word = argc > 1 ? argv[1] : "";
	bool is_help = !strcmp(word, "--help") || !strcmp(word, "-h");

	libbpf_set_strict_mode(LIBBPF_STRICT_ALL);
	libbpf_set_print(note_words);
	if (argc == 2 && !strcmp(word, CHECK))
		return check();
	if (argc == 1)
		return load_and_send(OPD_PARTS_ALL);
	if (argc == 2 && !strcmp(word, OPD_WAITS_NONE))
		return load_and_send(OPD_PARTS_ALL & ~OPD_PART_BIT(OPD_PART_waits));
	fputs(usage, is_help ? stdout : stderr);
	return is_help ? 0 : 2;
}
