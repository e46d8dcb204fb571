/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Calls that do not compile in opd: they write without a limit, keep hidden state or hide errors.
 * The build includes this file before every source file. Use instead: op_text_printf
 * (libop/base/text.h), snprintf, strtok_r, op_parse_u64 (libop/base/parse.h), gmtime_r.
 */
#ifndef OP_BANNED_H
#define OP_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define OP_BANNED(call) opd_does_not_use_##call

#undef strcpy
#define strcpy(a, b) OP_BANNED(strcpy)
#undef strcat
#define strcat(a, b) OP_BANNED(strcat)
#undef strncpy
#define strncpy(a, b, c) OP_BANNED(strncpy)
#undef strncat
#define strncat(a, b, c) OP_BANNED(strncat)
#undef sprintf
#define sprintf(...) OP_BANNED(sprintf)
#undef vsprintf
#define vsprintf(...) OP_BANNED(vsprintf)
#undef strtok
#define strtok(a, b) OP_BANNED(strtok)
#undef atoi
#define atoi(a) OP_BANNED(atoi)
#undef atol
#define atol(a) OP_BANNED(atol)
#undef gmtime
#define gmtime(a) OP_BANNED(gmtime)
#undef localtime
#define localtime(a) OP_BANNED(localtime)
#undef ctime
#define ctime(a) OP_BANNED(ctime)

#endif
