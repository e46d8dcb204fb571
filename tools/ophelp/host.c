/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The events of this host. Source of what the kernel knows: perf-list(1),
 * Documentation/ABI/testing/sysfs-bus-event_source-devices-events.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sys/stat.h>
#include <unistd.h>

#include "libop/base/file.h"
#include "libop/events/event.h"
#include "libop/events/host_cpu.h"
#include "libop/events/ibs_derived.h"
#include "libop/events/ibs_host.h"
#include "libop/events/tracepoint.h"
#include "tools/events/cpu_types.h"
#include "tools/ophelp/events.h"

#define NAME_BYTES    256
#define TEXT_BYTES    4096
#define EVENTS_SUBDIR "events"
#define DEVICES_DIR   "/sys/bus/event_source/devices"
#define TRACE_DIR     "/sys/kernel/tracing/events"
#define IBS_MINIMUM   50000

/* The first line of a small file. Freed by the caller; NULL: it cannot be read. */
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

/* Adds the events of an entry of a directory. `parent`: what the caller of visit says. */
typedef int visit_fn(struct opr_help_events *events, int dir_fd, const char *parent, const char *name);

/* Calls fn for each entry of a directory, sorted. A directory that does not exist has none. */
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

/* "event=0xc0,umask=0x1" of the CPU's PMU is a raw event: 0x01c0; "event=0x0011" on arm64: 0x11. */
static bool raw_code(const char *pmu, const char *terms, uint64_t *ret_code)
{
	unsigned int event = 0, mask = 0;
	int used = 0;

	if (!op_is_cpu_pmu(pmu) || sscanf(terms, "event=%x%n", &event, &used) != 1)
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

/* ---- events of opd ---- */

static int add_own(struct opr_help_events *events)
{
	static char timer[] = "timer", software[] = "software";
	const struct op_event_info *info;
	int err = 0;

	for (size_t i = 0; (info = op_event_info(i)) && !err; i++) {
		struct op_event parsed;
		char spec[OP_EVENT_NAME_BYTES + 24], *why = NULL;

		snprintf(spec, sizeof(spec), "%s:%" PRIu64, info->name, info->min_count);
		if (op_event_parse(spec, &parsed, &why) < 0) {
			free(why);
			continue;
		}
		if (parsed.type == PERF_TYPE_HARDWARE && !op_host_has_pmu())
			continue;
		err = opr_help_add(events, &(struct opr_help_event){ .name = (char *)(uintptr_t)info->name,
								     .description = (char *)(uintptr_t)info->description,
								     .source = OPR_HELP_opd,
								     .number = parsed.number,
								     .minimum = info->min_count,
								     .ext = parsed.is_timer                     ? timer
									    : parsed.type == PERF_TYPE_SOFTWARE ? software
														: NULL,
								     .as = (char *)(uintptr_t)info->name });
	}
	return err;
}

static int add_ibs(struct opr_help_events *events)
{
	static char fetch[] = "ibs_fetch", op[] = "ibs_op";
	const struct op_ibs_event *event;
	struct op_ibs_host ibs;
	const char *why;
	int err = 0;

	if (op_ibs_host_read(&ibs, &why) < 0)
		return 0;
	for (size_t i = 0; (event = op_ibs_event(i)) && !err; i++) {
		if (!op_ibs_event_is_there(event, &ibs.cpu, ibs.caps))
			continue;
		err = opr_help_add(events, &(struct opr_help_event){ .name = (char *)(uintptr_t)event->name,
								     .description = (char *)(uintptr_t)event->description,
								     .source = OPR_HELP_ibs,
								     .number = event->number,
								     .minimum = IBS_MINIMUM,
								     .ext = event->kind == OP_IBS_FETCH ? fetch : op,
								     .as = (char *)(uintptr_t)event->name });
	}
	return err;
}

/* ---- all of them ---- */

int opr_help_read_host(struct opr_help_events *events, bool name_only)
{
	const char *type = op_host_cpu_type(), *name, *pretty = opr_cpu_type_find(type, &name);
	int err = opr_help_set_type(events, type, pretty ? pretty : OPR_ARM64_PRETTY);

	events->is_host = true;
	if (err || name_only)
		return err;
	err = add_own(events);
	if (err)
		return err;
	err = add_ibs(events);
	if (err)
		return err;
	err = visit(events, AT_FDCWD, DEVICES_DIR, "", add_pmu);
	if (!err && op_host_has_pmu())
		err = opr_help_add_pfm(events);
	return err ? err : visit(events, AT_FDCWD, TRACE_DIR, "", add_system);
}
