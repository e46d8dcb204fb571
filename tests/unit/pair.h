/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Two numbers of 32 bits that follow each other in memory, as one word of this machine. */
#ifndef PAIR_H
#define PAIR_H

#include <stdint.h>

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define PAIR(first, second) ((uint64_t)(second) << 32 | (uint32_t)(first))
#else
#define PAIR(first, second) ((uint64_t)(first) << 32 | (uint32_t)(second))
#endif

#endif
