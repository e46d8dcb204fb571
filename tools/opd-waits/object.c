/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The object file as numbers: what an assembler includes by itself is not seen by caches of
 * compilers, which then return old objects. cppcheck leaves this file out: it takes minutes for so
 * many numbers.
 */
#include "tools/opd-waits/object.h"

const uint8_t opw_object[] __attribute__((aligned(8))) = {
#include "pipeline/waits/program.bpf.inc"
};

const size_t opw_object_bytes = sizeof(opw_object);
