/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Java (HotSpot, OpenJDK 17 and 21 on x86-64), without flags of the virtual machine. A compiled
 * method has a frame of fixed size, which its CodeBlob tells; an interpreted one keeps its method
 * and its caller below the frame pointer. A looker reads both (pipeline/readers/java.h); what it
 * said is kept, and asked again after some seconds, because the machine replaces code.
 *
 * Sync thread only.
 */
#ifndef OPD_RUNTIME_JAVA_H
#define OPD_RUNTIME_JAVA_H

#include "libop/base/compiler.h"
#include "pipeline/runtimes/host.h"

extern const struct opd_runtime_kind opd_runtime_java;

#endif
