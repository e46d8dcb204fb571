/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opd-tables/sandbox.h"

#include <errno.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include "tools/opd-tables/filter.h"

/* libLLVM-14 and node take less than a tenth of both. */
#define MEMORY_BYTES (2ull << 30)
#define CPU_SECONDS  10u

/* Sanitizers reserve terabytes, so with them there is no limit of memory. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define RESERVED_BYTES RLIM_INFINITY
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define RESERVED_BYTES RLIM_INFINITY
#endif
#endif
#ifndef RESERVED_BYTES
#define RESERVED_BYTES MEMORY_BYTES
#endif

static int set_limits(void)
{
	const struct rlimit memory = { RESERVED_BYTES, RESERVED_BYTES }, cpu = { CPU_SECONDS, CPU_SECONDS }, none = { 0, 0 };

	if (setrlimit(RLIMIT_CPU, &cpu) < 0 || setrlimit(RLIMIT_CORE, &none) < 0 || setrlimit(RLIMIT_AS, &memory) < 0)
		return -errno;
	return 0;
}

int opt_sandbox_enter(void)
{
	int err = set_limits();

	if (!err && prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0)
		err = -errno;
	return err ? err : opt_filter_apply();
}
