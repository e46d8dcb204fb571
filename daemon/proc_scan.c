/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "daemon/proc_scan.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "daemon/image.h"
#include "daemon/jit.h"

struct scan {
	struct opd_processes *processes;
	struct op_dcookie_table *table;
	struct opd_process *process;
	const char *exe; /* path of the executable, "" when there is none */
};

/* "start-end perms offset maj:min inode   name". False when it is none of that or not executable. */
static bool parse_line(char *line, struct opd_mapped *ret_mapped)
{
	unsigned long long start, end, offset, inode;
	unsigned int maj, min;
	char perms[5];
	int name_at = 0;

	if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu %n", &start, &end, perms, &offset, &maj, &min, &inode, &name_at) < 7)
		return false;
	if (strlen(perms) < 3 || perms[2] != 'x' || start >= end)
		return false;
	line[strcspn(line, "\n")] = '\0';
	*ret_mapped = (struct opd_mapped){
		.start = start,
		.end = end,
		.offset = offset,
		.name = line + name_at,
		.device = makedev(maj, min),
		.inode = inode,
	};
	return true;
}

static int add_mapping(struct scan *scan, struct opd_mapped *mapped)
{
	struct opd_mapping mapping = { .start = mapped->start, .end = mapped->end };
	bool is_file;

	mapped->pid = scan->process->pid;
	mapping.cookie = opd_image_of_mapping(scan->table, mapped, &is_file);
	if (mapping.cookie == OP_DCOOKIE_NONE)
		return -ENOMEM;
	mapping.may_be_jit = opd_jit_may_be_in(mapped->name);
	opd_jit_saw_mapping(scan->processes, scan->process, scan->process->mm, mapped);
	if (is_file) {
		struct opd_mm *mm = scan->process->mm;

		mapping.key = mapped->offset;
		if (mm->app_cookie == OP_DCOOKIE_NONE || !strcmp(mapped->name, scan->exe))
			mm->app_cookie = mapping.cookie;
	} else {
		mapping.region_end = mapping.end;
	}
	return opd_process_map(scan->processes, scan->process->mm, &mapping);
}

static int read_maps(struct scan *scan, FILE *file)
{
	char *line = NULL;
	size_t capacity = 0;
	int err = 0;

	while (!err && getline(&line, &capacity, file) >= 0) {
		struct opd_mapped mapped;

		if (parse_line(line, &mapped))
			err = add_mapping(scan, &mapped);
	}
	free(line);
	return err;
}

int opd_proc_scan_pid(struct opd_processes *processes, struct op_dcookie_table *table, uint32_t pid, uint64_t now_ns)
{
	char path[64], exe[PATH_MAX] = "";
	struct scan scan = { .processes = processes, .table = table, .exe = exe };
	FILE *file;
	int err;

	snprintf(path, sizeof(path), "/proc/%u/exe", pid);
	if (readlink(path, exe, sizeof(exe) - 1) < 0)
		exe[0] = '\0';
	snprintf(path, sizeof(path), "/proc/%u/maps", pid);
	file = fopen(path, "re");
	if (!file)
		return errno == ENOMEM ? -ENOMEM : -ENOENT;
	scan.process = opd_process_find(processes, pid);
	if (!scan.process)
		scan.process = opd_process_add(processes, pid, 0);
	if (!scan.process) {
		fclose(file);
		return -ENOMEM;
	}
	scan.process->snapshot_ns = now_ns;
	err = read_maps(&scan, file);
	fclose(file);
	return err;
}

int opd_proc_scan_all(struct opd_processes *processes, struct op_dcookie_table *table, uint64_t now_ns)
{
	DIR *proc = opendir("/proc");
	struct dirent *entry;
	int err = 0;

	if (!proc)
		return -errno;
	while (err != -ENOMEM && (entry = readdir(proc))) {
		if (isdigit((unsigned char)entry->d_name[0]))
			err = opd_proc_scan_pid(processes, table, (uint32_t)strtoul(entry->d_name, NULL, 10), now_ns);
	}
	closedir(proc);
	return err == -ENOMEM ? err : 0;
}

bool opd_proc_is_gone(uint32_t pid)
{
	char path[32];

	snprintf(path, sizeof(path), "/proc/%u", pid);
	return access(path, F_OK) < 0;
}
