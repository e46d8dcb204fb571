/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Records of a perf.data file, of whatever sample_type and byte order, as the records that opd itself asks the kernel for
 * (libop/perf/record.h): that is what a memory ring is given. One thread.
 *
 * What becomes what:
 *
 *   SAMPLE                  OP_SAMPLE_TYPE, the identifier is the number of the event + 1; one that is too short, or of an event that
 *                           the file does not have, has no more than the identifier of the event, as far as that is known, which opd
 *                           counts as undecodable; one that stands before all events of a pipe does not hold what it should
 *                           IBS: OP_SAMPLE_TYPE_IBS, the registers as they are, also where they only may be such (data_shape.h)
 *                           and PERF_SAMPLE_CALLCHAIN, when the event has it: its innermost OP_PERF_CHAIN_WORDS
 *   LOST, LOST_SAMPLES      as they are, but see below; what the event's BPF filter did not want is not lost, and passed over
 *   THROTTLE, UNTHROTTLE    for their event
 *   MMAP, MMAP2             MMAP2, with the build-id that the file has for that name; of the kernel: OP_PERF_KERNEL
 *   FORK, EXIT, KSYMBOL     as they are; a FORK that perf made up for a process that ran before says nothing and is passed over
 *   COMM                    an exec; other names are nothing that opd needs
 *   everything else         passed over
 *
 * A record that perf made up has the time 0; it holds since 1 ns. One that has no time has that of the record before it, + 1 ns.
 *
 * What was lost is told in up to three ways:
 *
 *   LOST            the kernel, when a full ring has room again: all records since then, of whatever event, with the identifier of the event that finds the
 *                   room. What was lost last is not told. (__perf_output_begin in kernel/events/ring_buffer.c)
 *   LOST_SAMPLES    the kernel, at that time: samples that a PMU's driver gave up before it asked for room, in neither of the others (perf_log_lost_samples)
 *   LOST_SAMPLES    perf, at the end, with the time 0: PERF_FORMAT_LOST of each event, which counts what LOST tells where and for whom it is lost.
 *                   (Linux 6.0 counts, perf 6.1 asks for it and writes it where both can: record__read_lost_samples in tools/perf/builtin-record.c)
 *
 * So all LOST_SAMPLES count, and LOST, unless its event has PERF_FORMAT_LOST and perf came to write its sums: it did not when it was killed, when the file is cut, nor in
 * any but the last file of --switch-output. Whoever reads to the end knows (OP_PERF_LOST_AGAIN, is_sum). PERF_FORMAT_LOST in READ records and in samples is
 * a part of the sums.
 */
#ifndef OP_PERF_RECORD_H
#define OP_PERF_RECORD_H

#include "libop/perf/chain.h"
#include "libop/base/compiler.h"
#include "libop/perf/data_event.h"
#include "libop/perf/data_feature.h"
#include "libop/perf/record.h"

#define OP_PERF_NAME_BYTES_MAX 4096u
#define OP_PERF_RAW_BYTES_MAX  2064u /* of an IBS sample: more than its decoder takes */
#define OP_PERF_CHAIN_WORDS    OP_CHAIN_WORDS(OP_CHAIN_DEPTH_MAX)
#define OP_PERF_RING_BYTES_MAX (OP_SAMPLE_RECORD_BYTES + 8 * OP_PERF_CHAIN_WORDS + OP_PERF_RAW_BYTES_MAX + 8) /* of a record for a ring pair */

enum op_perf_kind {
	OP_PERF_PASSED_OVER, /* nothing for opd */
	OP_PERF_RING,        /* for the ring pair of its CPU */
	OP_PERF_SIDEBAND,    /* for the side band */
	OP_PERF_KERNEL,      /* an MMAP2 of the kernel's text or of a module: nothing that a ring has */
	OP_PERF_ROUND,       /* records older than the newest before the last one of these are all there */
	OP_PERF_LOST_AGAIN,  /* LOST, for the ring pair of its CPU unless the file has sums of perf, which tell the same better */
};

struct op_perf_record {
	enum op_perf_kind kind;
	uint32_t event; /* OP_PERF_NO_EVENT: none of the file's */
	uint32_t cpu;   /* 0 where the file does not say */
	bool is_sum;    /* a LOST_SAMPLES that perf wrote: what the kernel had counted as lost for the event in the end */
	uint64_t time_ns;
	const struct perf_event_header *header; /* until the next one; NULL when it is passed over or a round */
};

enum op_perf_has_raw { OP_PERF_RAW_UNTOLD, OP_PERF_RAW_NONE, OP_PERF_RAW_IBS, OP_PERF_RAW_MAYBE };

#define OP_PERF_LOOKS_MAX 4096u /* samples that are looked at for what they are */

struct op_perf_translator {
	struct op_perf_events *events;
	const struct op_perf_features *features;
	bool swapped;
	uint64_t last_ns;
	uint8_t has_raw[OP_PERF_EVENTS_MAX]; /* of an event: enum op_perf_has_raw, as its samples find it */
	uint32_t nr_looks[OP_PERF_EVENTS_MAX];
	uint64_t out[(OP_PERF_NAME_BYTES_MAX + 256) / 8];
};

/*
 * One record: its header in this host's byte order, and what follows it as the file has it. 0; -EBADMSG: it does not hold what it
 * should, and nothing is known of it: PASSED_OVER, unless it is a sample: that is there as far as it goes, and PASSED_OVER when it goes nowhere. *ret_record is
 * written in any case.
 */
int op_perf_translate(struct op_perf_translator *translator, const struct perf_event_header *header, const uint8_t *body,
		      struct op_perf_record *ret_record) OP_NONNULL OP_MUST_CHECK;

#endif
