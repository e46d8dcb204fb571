/* SPDX-License-Identifier: GPL-3.0-or-later OR GPL-2.0-only */
/*
 * A kernel module that spends time when it is told to: echo MILLISECONDS
 * >/sys/module/opd_test_module/parameters/spin. For test_modules.py.
 */
#include <linux/kernel.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/moduleparam.h>
#include <linux/sched.h>

#define MAX_MS 2000
#define ROUNDS 100000

static volatile unsigned long counter;

static noinline int opd_test_spin(const char *value, const struct kernel_param *param)
{
	unsigned int ms;
	int err = kstrtouint(value, 0, &ms);
	ktime_t end;

	if (err)
		return err;
	if (ms > MAX_MS)
		return -EINVAL;
	end = ktime_add_ms(ktime_get(), ms);
	while (ktime_before(ktime_get(), end)) {
		for (unsigned int i = 0; i < ROUNDS; i++)
			counter += VARIANT;
		cond_resched();
	}
	return 0;
}

static const struct kernel_param_ops spin_ops = { .set = opd_test_spin };

module_param_cb(spin, &spin_ops, NULL, 0200);
MODULE_DESCRIPTION("spends time for the tests of opd");
MODULE_LICENSE("GPL");
