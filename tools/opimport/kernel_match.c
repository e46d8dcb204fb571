/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Recognizes the kernel of a file as the one that runs here, whose symbols are in /proc/kallsyms.
 */
#include <sys/utsname.h>

#include "libop/base/build_id.h"
#include "libop/perf/record.h"
#include "pipeline/resolve/kernel_code.h"
#include "tools/opimport/opimport.h"

#define PERF_NAME   "[kernel.kallsyms]"
#define PERF_PREFIX PERF_NAME "_text"
#define OWN_IMAGE   "/proc/kallsyms"

static bool is_own_id(const uint8_t *bytes, size_t nr_bytes)
{
	struct op_build_id own;

	return op_build_id_of_notes_file("/sys/" OP_KERNEL_NOTES, &own) == 0 && own.nr_bytes == nr_bytes &&
	       !memcmp(own.bytes, bytes, nr_bytes);
}

const char *opi_kernel_of_file(const struct op_perf_features *features)
{
	const struct op_build_id *known = op_perf_build_id_of(features, PERF_NAME);

	return known && is_own_id(known->bytes, known->nr_bytes) ? OWN_IMAGE : NULL;
}

static bool is_own_release(const struct op_perf_features *features)
{
	struct utsname own;

	return uname(&own) == 0 && features->hostname && features->os_release && !strcmp(features->hostname, own.nodename) &&
	       !strcmp(features->os_release, own.release);
}

/* Each boot puts the kernel at another address, unless KASLR is off. */
static bool is_own_address(uint64_t text_start)
{
	return text_start && opd_kallsyms_text("/proc") == text_start;
}

const char *opi_kernel_of_record(const struct op_perf_features *features, const struct perf_event_header *header)
{
	struct op_mmap_record part;
	bool is_own;

	if (op_perf_build_id_of(features, PERF_NAME) || op_record_mmap(header, &part) < 0 ||
	    strncmp(part.file_name, PERF_PREFIX, strlen(PERF_PREFIX)) != 0)
		return NULL;
	is_own = part.build_id_bytes ? is_own_id(part.build_id, part.build_id_bytes)
				     : is_own_release(features) && is_own_address(part.start);
	return is_own ? OWN_IMAGE : NULL;
}
