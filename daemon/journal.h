/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The journal as a receiver of log lines with fields: the only part of the log that needs
 * libsystemd.
 */
#ifndef OPD_JOURNAL_H
#define OPD_JOURNAL_H

/*
 * Sends lines with fields to the journal (libop/base/log.h). To be called before there are threads.
 */
void opd_journal_use(void);

#endif
