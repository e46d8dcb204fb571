/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The object file that clang made of pipeline/waits/program.bpf.c. Any thread. */
#ifndef OPW_OBJECT_H
#define OPW_OBJECT_H

#include <stddef.h>
#include <stdint.h>

extern const uint8_t opw_object[];
extern const size_t opw_object_bytes;

#endif
