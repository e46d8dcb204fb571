/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Log lines with fields go to the journal: the only part of the log that needs libsystemd. */
#ifndef OPD_JOURNAL_H
#define OPD_JOURNAL_H

/* Sends lines with fields to the journal (libop/base/log.h). Call it before there are threads. */
void opd_journal_use(void);

#endif
