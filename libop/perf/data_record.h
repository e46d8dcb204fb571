/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * Translates the records of a perf.data file, of any sample_type and byte order, into the records
 * that opd requests from the kernel (libop/perf/record.h): a memory ring takes these. One thread.
 *
 *   SAMPLE                  OP_SAMPLE_TYPE; the identifier is the number of the event + 1.
 *                           IBS, also when it only may be IBS (data_shape.h): OP_SAMPLE_TYPE_IBS.
 *                           With PERF_SAMPLE_CALLCHAIN: the innermost OP_PERF_CHAIN_WORDS of it.
 *                           With a stack (op_perf_has_stack): CALLCHAIN, REGS_USER with the
 *                           registers of the event, and STACK_USER with what was copied. What is
 *                           damaged, or in the byte order of another machine, becomes empty, and
 *                           the registers OP_STACK_ABI_MISSING.
 *                           Too short, or of an unknown event: only the identifier, if that is
 *                           known; opd counts it as undecodable. Before the events of a pipe:
 *                           -EBADMSG.
 *   LOST, LOST_SAMPLES      unchanged, see below; samples that a BPF filter rejected are not lost,
 *                           and passed over
 *   THROTTLE, UNTHROTTLE    for their event
 *   MMAP, MMAP2             MMAP2, with the build-id of the file for that name; of the kernel:
 *                           OP_PERF_KERNEL
 *   FORK, EXIT, KSYMBOL     unchanged; a FORK that perf made up is passed over
 *   COMM                    that of an exec; that of a main thread as perf found it in /proc, or
 *                           when the file does not mark execs; others are passed over
 *   everything else         passed over
 *
 * A record that perf made up has the time 0 and gets 1 ns. A record without a time gets the time of
 * the record before it, + 1 ns.
 *
 * Lost samples are reported in up to three ways:
 *
 *   LOST            By the kernel, when a full ring has room again: all records that were lost
 *                   since, of any event, with the identifier of the event that finds the room.
 *                   The last losses are never reported. (__perf_output_begin in
 *                   kernel/events/ring_buffer.c)
 *   LOST_SAMPLES    By the kernel: samples that the driver of a PMU dropped before it asked for
 *                   room. They are in neither of the others. (perf_log_lost_samples)
 *   LOST_SAMPLES    By perf, at the end, with the time 0: PERF_FORMAT_LOST of each event. It counts
 *                   the same losses as LOST, exactly and for the right event. (Linux 6.0 and perf
 *                   6.1: record__read_lost_samples in tools/perf/builtin-record.c)
 *
 * So all LOST_SAMPLES count. LOST counts too, unless its event has PERF_FORMAT_LOST and perf wrote
 * its sums. These are missing when perf was killed, when the file was cut, and in all but the last
 * file of --switch-output. Only a reader that reached the end knows (OP_PERF_LOST_AGAIN, is_sum).
 * PERF_FORMAT_LOST in READ records and in samples is a part of the sums.
 */
#ifndef OP_PERF_RECORD_H
#define OP_PERF_RECORD_H

#include "libop/perf/chain.h"
#include "libop/base/compiler.h"
#include "libop/perf/data_event.h"
#include "libop/perf/data_feature.h"
#include "libop/perf/record.h"

#define OP_PERF_NAME_BYTES_MAX 4096u
#define OP_PERF_RAW_BYTES_MAX  2064u /* of an IBS sample: more than its decoder uses */
#define OP_PERF_CHAIN_WORDS    OP_CHAIN_WORDS(OP_CHAIN_DEPTH_MAX)
/* of the chain of a stack, with their number: more than a walk takes */
#define OP_PERF_STACK_CHAIN_WORDS 1024u
/* The largest record for a ring pair: header.size has 16 bits. */
#define OP_PERF_RING_BYTES_MAX    65528u

enum op_perf_kind {
	OP_PERF_PASSED_OVER, /* opd does not need it */
	OP_PERF_RING,        /* for the ring pair of its CPU */
	OP_PERF_SIDEBAND,    /* for the side band */
	OP_PERF_KERNEL,      /* an MMAP2 of the kernel or of a module; not for a ring */
	/* all records older than the newest before the previous ROUND have been read */
	OP_PERF_ROUND,
	/* a LOST, for the ring pair of its CPU unless the file has the sums of perf */
	OP_PERF_LOST_AGAIN,
};

struct op_perf_record {
	enum op_perf_kind kind;
	uint32_t event; /* OP_PERF_NO_EVENT: none */
	uint32_t cpu;   /* 0: not known */
	bool is_sum;    /* a LOST_SAMPLES of perf: the final count of the kernel for the event */
	uint64_t time_ns;
	/* valid until the next record; NULL: passed over, or a round */
	const struct perf_event_header *header;
};

enum op_perf_has_raw { OP_PERF_RAW_UNKNOWN, OP_PERF_RAW_NONE, OP_PERF_RAW_IBS, OP_PERF_RAW_MAYBE };

#define OP_PERF_LOOKS_MAX 4096u /* samples of an event that are checked for IBS registers */

/* What is left of the counters that the last sample read, and the sample. */
struct op_perf_reads {
	const uint8_t *words; /* in the file's record; NULL: nothing */
	size_t nr_left, nr_words;
	uint64_t ip, who; /* as in the sample's record */
	uint32_t tid;     /* 0: all threads share the counters */
	uint16_t misc;
	struct op_perf_record sample;
};

struct op_perf_translator {
	struct op_perf_events *events;
	const struct op_perf_features *features;
	bool swapped;
	uint64_t last_ns;
	uint8_t has_raw[OP_PERF_EVENTS_MAX]; /* by event: enum op_perf_has_raw */
	uint32_t nr_looks[OP_PERF_EVENTS_MAX];
	struct op_perf_reads reads;
	uint64_t out[OP_PERF_RING_BYTES_MAX / 8];
};

/*
 * Translates one record, from its header in this host's byte order and its body as the file has it.
 * 0; -EBADMSG: the record is damaged. Then *ret_record, which is always written, has as much of a
 * sample as is valid, and is PASSED_OVER otherwise.
 */
int op_perf_translate(struct op_perf_translator *translator, const struct perf_event_header *header, const uint8_t *body,
		      struct op_perf_record *ret_record) OP_NONNULL OP_MUST_CHECK;

/*
 * After a sample, while its record is still there: the sample once more, of the next event of its
 * group that takes no samples itself, with the amount that the event's counter has grown
 * (OP_RECORD_MISC_AMOUNT). 1; 0: there is none; -EBADMSG; -ENOMEM.
 */
int op_perf_translate_reads(struct op_perf_translator *translator, struct op_perf_record *ret_record) OP_NONNULL OP_MUST_CHECK;

#endif
