/* SPDX-License-Identifier: GPL-3.0-or-later */
/* The ELF machine that opd is compiled for. No other file asks the compiler. */
#ifndef OPD_ELF_HOST_H
#define OPD_ELF_HOST_H

#include <elf.h>

#if defined(__x86_64__)
#define OPD_ELF_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OPD_ELF_MACHINE EM_AARCH64
#elif defined(__riscv)
#define OPD_ELF_MACHINE EM_RISCV
#elif defined(__powerpc64__)
#define OPD_ELF_MACHINE EM_PPC64
#elif defined(__s390x__)
#define OPD_ELF_MACHINE EM_S390
#elif defined(__i386__)
#define OPD_ELF_MACHINE EM_386
#elif defined(__arm__)
#define OPD_ELF_MACHINE EM_ARM
#else
#define OPD_ELF_MACHINE EM_NONE
#endif

#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
#define OPD_ELF_DATA ELFDATA2MSB
#else
#define OPD_ELF_DATA ELFDATA2LSB
#endif

#endif
