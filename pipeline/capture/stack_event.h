/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Chooses the event that takes stacks, or lets the configured events take them. Any thread. */
#ifndef OPD_STACK_EVENT_H
#define OPD_STACK_EVENT_H

#include "libop/base/compiler.h"
#include "libop/control/config.h"
#include "libop/control/stack_setup.h"
#include "libop/events/event.h"

/*
 * Takes `setup`, or where it leaves something open, `config`. Changes `events`, those that the
 * kernel samples, which have room for one more: either STACKS is added, or all plain events get
 * stack_bytes. STACKS counts cycles when has_pmu is true and a counter is left for it, otherwise
 * the CPU's clock.
 *
 * 0. -EINVAL: --stacks=event without a copy. -ENOMEM. Another -errno: this kernel or this user
 * takes no stacks, and nothing was changed. With an error *ret_why is one line, freed by the
 * caller, or NULL.
 */
int opd_stack_event_add(const struct op_stack_setup *setup, const struct op_config *config, bool has_pmu, struct op_event *events,
			size_t *nr_events, char **ret_why) OP_NONNULL OP_MUST_CHECK;

/* True when samples can tell their cgroup: since Linux 5.7, with CONFIG_CGROUP_PERF. */
bool opd_stack_event_knows_cgroups(void);

#endif
