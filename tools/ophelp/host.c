/* SPDX-License-Identifier: GPL-3.0-or-later */
/* What the kernel knows of this host's events. Source: perf-list(1); Documentation/ABI/testing/sysfs-bus-event_source-devices-events. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/events/tracepoint.h"
#include "tools/ophelp/events.h"
#include "tools/common/log.h"

#define NAME_BYTES    256
#define TEXT_BYTES    4096
#define EVENTS_SUBDIR "events"

/* A file of a few bytes without its newline; NULL: it is not there, or there is no memory. */
static char *read_line(int dir_fd, const char *path)
{
	char *text = NULL;

	if (op_file_read(dir_fd, path, TEXT_BYTES, &text) < 0)
		return NULL;
	text[strcspn(text, "\n")] = '\0';
	return text;
}

static int compare_entries(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* Calls for each entry of a directory, sorted; one that is not there has none. */
typedef int visit_fn(struct opr_help_events *events, int dir_fd, const char *parent, const char *name);

static int visit(struct opr_help_events *events, int parent_fd, const char *path, const char *parent, visit_fn *fn)
{
	int fd = openat(parent_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), nr_entries, err = 0;
	struct dirent **entries;

	if (fd < 0)
		return 0;
	nr_entries = scandirat(fd, ".", &entries, is_visible, compare_entries);
	for (int i = 0; i < nr_entries; i++) {
		if (!err)
			err = fn(events, fd, parent, entries[i]->d_name);
		free(entries[i]);
	}
	if (nr_entries >= 0)
		free(entries);
	close(fd);
	return err;
}

/* ---- PMUs ---- */

static bool has_suffix(const char *name, const char *suffix)
{
	size_t length = strlen(name), suffix_length = strlen(suffix);

	return length > suffix_length && !strcmp(name + length - suffix_length, suffix);
}

/* "event=0xc0,umask=0x1": the code of a raw event of the CPU's own PMU, where the low byte is the event and the next the mask. */
static bool raw_code(const char *pmu, const char *terms, uint64_t *ret_code)
{
	unsigned int event = 0, mask = 0;
	int used = 0;

	if (strcmp(pmu, "cpu") || sscanf(terms, "event=%x%n", &event, &used) != 1)
		return false;
	if (terms[used] &&
	    (sscanf(terms + used, ",umask=%x%n", &mask, &used) != 1 || strchr(terms + 1, ',') != strrchr(terms, ',')))
		return false;
	*ret_code = event | mask << 8;
	return true;
}

static int add_pmu_event(struct opr_help_events *events, int dir_fd, const char *pmu, const char *event)
{
	char *terms, name[2 * NAME_BYTES], as[32], text[TEXT_BYTES];
	uint64_t code = 0;
	bool raw;
	int err;

	if (has_suffix(event, ".scale") || has_suffix(event, ".unit") || has_suffix(event, ".snapshot") ||
	    has_suffix(event, ".per-pkg"))
		return 0;
	terms = read_line(dir_fd, event);
	if (!terms)
		return 0;
	raw = raw_code(pmu, terms, &code);
	snprintf(name, sizeof(name), "%s/%s/", pmu, event);
	snprintf(as, sizeof(as), "r%" PRIx64, code);
	snprintf(text, sizeof(text), "%.3000s", terms);
	free(terms);
	err = opr_help_add(
		events, &(struct opr_help_event){
				.name = name, .description = text, .source = OPR_HELP_pmu, .number = code, .as = raw ? as : NULL });
	return err;
}

static int add_pmu(struct opr_help_events *events, int dir_fd, const char *parent OP_UNUSED, const char *pmu)
{
	char path[NAME_BYTES + sizeof(EVENTS_SUBDIR) + 1];

	snprintf(path, sizeof(path), "%s/" EVENTS_SUBDIR, pmu);
	return visit(events, dir_fd, path, pmu, add_pmu_event);
}

int opr_help_add_pmus(struct opr_help_events *events, const char *devices_dir)
{
	return visit(events, AT_FDCWD, devices_dir, "", add_pmu);
}

/* ---- tracepoints ---- */

static int add_tracepoint(struct opr_help_events *events, int dir_fd, const char *system, const char *event)
{
	static char ext[] = "tracepoint";
	char path[NAME_BYTES + 4], name[2 * NAME_BYTES];
	struct stat st;

	snprintf(path, sizeof(path), "%s/id", event);
	if (fstatat(dir_fd, path, &st, 0) < 0)
		return 0;
	snprintf(name, sizeof(name), "%s:%s", system, event);
	return opr_help_add(events, &(struct opr_help_event){ .name = name,
							      .source = OPR_HELP_tracepoint,
							      .number = op_tracepoint_number(name),
							      .minimum = 1,
							      .ext = ext,
							      .as = name });
}

static int add_system(struct opr_help_events *events, int dir_fd, const char *parent OP_UNUSED, const char *system)
{
	return visit(events, dir_fd, system, system, add_tracepoint);
}

int opr_help_add_tracepoints(struct opr_help_events *events, const char *events_dir)
{
	return visit(events, AT_FDCWD, events_dir, "", add_system);
}
