# SPDX-License-Identifier: GPL-3.0-or-later
# Descriptions of events for sessions of oprofile, one directory for each type of CPU.
nobase_dist_pkgdata_DATA = \
	events/x86-64/family10/events events/x86-64/family10/unit_masks \
	events/x86-64/family11h/events events/x86-64/family11h/unit_masks \
	events/x86-64/family12h/events events/x86-64/family12h/unit_masks \
	events/x86-64/family14h/events events/x86-64/family14h/unit_masks \
	events/x86-64/family15h/events events/x86-64/family15h/unit_masks \
	events/x86-64/ibs/events \
	events/x86-64/generic/events events/x86-64/generic/unit_masks \
	events/i386/arch_perfmon/events events/i386/arch_perfmon/unit_masks \
	events/i386/core/events events/i386/core/unit_masks \
	events/i386/core_2/events events/i386/core_2/unit_masks \
	events/i386/core_i7/events events/i386/core_i7/unit_masks \
	events/i386/atom/events events/i386/atom/unit_masks \
	events/i386/nehalem/events events/i386/nehalem/unit_masks \
	events/i386/westmere/events events/i386/westmere/unit_masks \
	events/i386/sandybridge/events events/i386/sandybridge/unit_masks \
	events/i386/ivybridge/events events/i386/ivybridge/unit_masks \
	events/i386/haswell/events events/i386/haswell/unit_masks \
	events/i386/silvermont/events events/i386/silvermont/unit_masks \
	events/i386/broadwell/events events/i386/broadwell/unit_masks \
	events/i386/skylake/events events/i386/skylake/unit_masks \
	events/i386/goldmont/events events/i386/goldmont/unit_masks \
	events/i386/goldmontplus/events events/i386/goldmontplus/unit_masks \
	events/i386/knightslanding/events events/i386/knightslanding/unit_masks
