/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "libop/ring/process_token.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <unistd.h>

#include "libop/base/atomic.h"
#include "libop/base/sys.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static uint64_t *token; /* in a page that is zero in a child */

static void make_page(void)
{
	size_t page_bytes = (size_t)sysconf(_SC_PAGESIZE);
	void *page;

	if (op_sys_mmap(NULL, page_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0, &page) < 0)
		return;
	if (madvise(page, page_bytes, MADV_WIPEONFORK) < 0)
		op_sys_munmap(page, page_bytes);
	else
		token = page;
}

uint64_t op_process_token(void)
{
	uint64_t fresh;

	pthread_once(&once, make_page);
	if (!token)
		return 0;
	if (!op_load_relaxed(token)) {
		if (getrandom(&fresh, sizeof(fresh), GRND_NONBLOCK) != sizeof(fresh))
			return 0;
		op_claim_u64(token, fresh | 1);
	}
	/* No order: there is no data besides the number. */
	return op_load_relaxed(token);
}
