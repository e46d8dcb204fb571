/* SPDX-License-Identifier: GPL-3.0-or-later */
/* Each record from bytes laid out by hand, and every shorter record refused. */
#include "tests/unit/cmocka_all.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libop/perf/chain.h"
#include "libop/perf/record.h"

static struct {
	struct perf_event_header header;
	uint8_t body[512];
} record;

static void put(size_t *at, const void *bytes, size_t nr_bytes)
{
	memcpy(record.body + *at, bytes, nr_bytes);
	*at += nr_bytes;
}

static void put_u64(size_t *at, uint64_t value)
{
	put(at, &value, 8);
}

static void put_u32(size_t *at, uint32_t value)
{
	put(at, &value, 4);
}

static void begin(uint32_t type, uint16_t misc)
{
	memset(&record, 0, sizeof(record));
	record.header.type = type;
	record.header.misc = misc;
}

static void end(size_t nr_bytes)
{
	record.header.size = (uint16_t)(sizeof(record.header) + nr_bytes);
}

static void put_trailer(size_t *at)
{
	put_u32(at, 11);
	put_u32(at, 12);
	put_u64(at, 1300);
	put_u64(at, 14);
}

static const struct perf_event_header *cut(uint16_t size)
{
	/* A copy of exactly so many bytes, so that ASan sees a read behind it. */
	static struct perf_event_header *copy;

	free(copy);
	copy = malloc(size);
	memcpy(copy, &record, size);
	copy->size = size;
	return copy;
}

#define assert_refuses_shorter(decode, type_of_result) \
	do { \
		type_of_result result_; \
		uint16_t whole_ = record.header.size; \
		for (uint16_t size_ = sizeof(struct perf_event_header); size_ < whole_; size_ += 8) \
			assert_int_equal(decode(cut(size_), &result_), -EBADMSG); \
	} while (0)

static void sample(void **state OP_UNUSED)
{
	static const struct {
		uint16_t misc;
		enum op_cpumode mode;
	} modes[] = {
		{ PERF_RECORD_MISC_KERNEL, OP_CPUMODE_KERNEL },
		{ PERF_RECORD_MISC_USER, OP_CPUMODE_USER },
		{ PERF_RECORD_MISC_HYPERVISOR, OP_CPUMODE_HYPERVISOR },
		{ PERF_RECORD_MISC_GUEST_KERNEL, OP_CPUMODE_GUEST_KERNEL },
		{ PERF_RECORD_MISC_GUEST_USER, OP_CPUMODE_GUEST_USER },
		{ PERF_RECORD_MISC_CPUMODE_UNKNOWN, OP_CPUMODE_UNKNOWN },
		{ PERF_RECORD_MISC_USER | PERF_RECORD_MISC_EXACT_IP, OP_CPUMODE_USER },
	};

	for (size_t i = 0; i < op_array_size(modes); i++) {
		struct op_sample s;
		size_t at = 0;

		begin(PERF_RECORD_SAMPLE, modes[i].misc);
		put_u64(&at, 77);
		put_u64(&at, 0xffffffff81000010);
		put_u32(&at, 5);
		put_u32(&at, 6);
		put_u64(&at, 123456789);
		end(at);
		assert_int_equal(op_record_sample(&record.header, &s), 0);
		assert_int_equal(s.id, 77);
		assert_int_equal(s.ip, 0xffffffff81000010);
		assert_int_equal(s.pid, 5);
		assert_int_equal(s.tid, 6);
		assert_int_equal(s.time_ns, 123456789);
		assert_int_equal(s.mode, modes[i].mode);
	}
	assert_refuses_shorter(op_record_sample, struct op_sample);
}

static void make_mmap(uint16_t misc, const char *name, size_t name_bytes)
{
	size_t at = 0;

	begin(PERF_RECORD_MMAP2, misc);
	put_u32(&at, 21);
	put_u32(&at, 22);
	put_u64(&at, 0x400000);
	put_u64(&at, 0x1000);
	put_u64(&at, 0x2000);
	if (misc & PERF_RECORD_MISC_MMAP_BUILD_ID) {
		uint8_t build_id[24] = { 20 };

		for (uint8_t i = 0; i < 20; i++)
			build_id[4 + i] = (uint8_t)(0xa0 + i);
		put(&at, build_id, sizeof(build_id));
	} else {
		put_u32(&at, 8);
		put_u32(&at, 1);
		put_u64(&at, 4711);
		put_u64(&at, 3);
	}
	put_u32(&at, 5);
	put_u32(&at, 2);
	put(&at, name, name_bytes);
	put_trailer(&at);
	end(at);
}

static void mmap_by_inode(void **state OP_UNUSED)
{
	struct op_mmap_record m;

	make_mmap(PERF_RECORD_MISC_USER, "/bin/true\0\0\0\0\0\0", 16);
	assert_int_equal(op_record_mmap(&record.header, &m), 0);
	assert_int_equal(m.pid, 21);
	assert_int_equal(m.start, 0x400000);
	assert_int_equal(m.bytes, 0x1000);
	assert_int_equal(m.offset, 0x2000);
	assert_int_equal(m.maj, 8);
	assert_int_equal(m.min, 1);
	assert_int_equal(m.inode, 4711);
	assert_int_equal(m.inode_generation, 3);
	assert_int_equal(m.build_id_bytes, 0);
	assert_int_equal(m.prot, 5);
	assert_string_equal(m.file_name, "/bin/true");
	assert_int_equal(m.who.pid, 11);
	assert_int_equal(m.who.time_ns, 1300);
	assert_int_equal(m.who.id, 14);
	assert_refuses_shorter(op_record_mmap, struct op_mmap_record);
}

static void mmap_by_build_id(void **state OP_UNUSED)
{
	struct op_mmap_record m;

	make_mmap(PERF_RECORD_MISC_MMAP_BUILD_ID, "/lib/a\0", 8);
	assert_int_equal(op_record_mmap(&record.header, &m), 0);
	assert_int_equal(m.build_id_bytes, 20);
	assert_int_equal(m.build_id[0], 0xa0);
	assert_int_equal(m.build_id[19], 0xb3);
	assert_int_equal(m.inode, 0);
	/* opd did not ask for it: another profiler set the flag, and the field is the inode. */
	make_mmap(0, "/lib/a\0", 8);
	record.header.misc |= PERF_RECORD_MISC_MMAP_BUILD_ID;
	assert_int_equal(op_record_mmap_unasked(&record.header, &m), 0);
	assert_int_equal(m.build_id_bytes, 0);
	assert_int_equal(m.inode, 4711);
	assert_int_equal(m.inode_generation, 3);
	make_mmap(PERF_RECORD_MISC_MMAP_BUILD_ID, "/lib/a\0", 8);
	record.body[32] = 21; /* longer than a build-id can be */
	assert_int_equal(op_record_mmap(&record.header, &m), -EBADMSG);
}

static void mmap_that_lies(void **state OP_UNUSED)
{
	struct op_mmap_record m;
	uint64_t huge = UINT64_MAX;

	make_mmap(0, "12345678", 8); /* no end of the string */
	assert_int_equal(op_record_mmap(&record.header, &m), -EBADMSG);
	make_mmap(0, "/x\0\0\0\0\0", 8);
	memcpy(record.body + 16, &huge, 8); /* start + length wraps */
	assert_int_equal(op_record_mmap(&record.header, &m), -EBADMSG);
}

static void task(void **state OP_UNUSED)
{
	struct op_task_record t;
	size_t at = 0;

	begin(PERF_RECORD_FORK, 0);
	for (uint32_t i = 1; i <= 4; i++)
		put_u32(&at, i);
	put_u64(&at, 99);
	end(at);
	assert_int_equal(op_record_task(&record.header, &t), 0);
	assert_int_equal(t.pid, 1);
	assert_int_equal(t.parent_pid, 2);
	assert_int_equal(t.tid, 3);
	assert_int_equal(t.parent_tid, 4);
	assert_int_equal(t.time_ns, 99);
	assert_refuses_shorter(op_record_task, struct op_task_record);
}

static void comm(void **state OP_UNUSED)
{
	struct op_comm_record c;
	size_t at = 0;

	begin(PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC);
	put_u32(&at, 31);
	put_u32(&at, 32);
	put(&at, "true\0\0\0", 8);
	put_trailer(&at);
	end(at);
	assert_int_equal(op_record_comm(&record.header, &c), 0);
	assert_int_equal(c.pid, 31);
	assert_int_equal(c.tid, 32);
	assert_true(c.is_exec);
	assert_string_equal(c.comm, "true");
	record.header.misc = 0;
	assert_int_equal(op_record_comm(&record.header, &c), 0);
	assert_false(c.is_exec);
	assert_refuses_shorter(op_record_comm, struct op_comm_record);
}

static void lost_and_throttle(void **state OP_UNUSED)
{
	struct op_lost_record l;
	struct op_throttle_record t;
	size_t at = 0;

	begin(PERF_RECORD_LOST, 0);
	put_u64(&at, 5);
	put_u64(&at, 600);
	end(at);
	assert_int_equal(op_record_lost(&record.header, &l), 0);
	assert_int_equal(l.id, 5);
	assert_int_equal(l.lost, 600);
	assert_refuses_shorter(op_record_lost, struct op_lost_record);
	begin(PERF_RECORD_LOST_SAMPLES, 0);
	at = 0;
	put_u64(&at, 700);
	put_trailer(&at);
	end(at);
	assert_int_equal(op_record_lost_samples(&record.header, &l), 0);
	assert_int_equal(l.lost, 700);
	assert_int_equal(l.id, 14);
	assert_refuses_shorter(op_record_lost_samples, struct op_lost_record);
	begin(PERF_RECORD_THROTTLE, 0);
	at = 0;
	put_u64(&at, 1000);
	put_u64(&at, 9);
	put_u64(&at, 10);
	end(at);
	assert_int_equal(op_record_throttle(&record.header, &t), 0);
	assert_int_equal(t.time_ns, 1000);
	assert_int_equal(t.id, 9);
	assert_refuses_shorter(op_record_throttle, struct op_throttle_record);
}

static void ksymbol(void **state OP_UNUSED)
{
	struct op_ksymbol_record k;
	uint16_t type = 1, flags = 1;
	size_t at = 0;

	begin(PERF_RECORD_KSYMBOL, 0);
	put_u64(&at, 0xffffffffc0001000);
	put_u32(&at, 64);
	put(&at, &type, 2);
	put(&at, &flags, 2);
	put(&at, "bpf_prog_1\0\0\0\0\0", 16);
	put_trailer(&at);
	end(at);
	assert_int_equal(op_record_ksymbol(&record.header, &k), 0);
	assert_int_equal(k.start, 0xffffffffc0001000);
	assert_int_equal(k.bytes, 64);
	assert_true(k.unregister);
	assert_string_equal(k.name, "bpf_prog_1");
	assert_int_equal(k.who.time_ns, 1300);
	assert_refuses_shorter(op_record_ksymbol, struct op_ksymbol_record);
}

/*
 * Another profiler on the host got the record first: the kernel has made it larger, and the end of
 * the record in the ring is as before.
 */
static void ksymbol_that_grew(void **state OP_UNUSED)
{
	static const uint8_t rest[2 * sizeof(uint64_t) * 3] = { [8] = 0xff, [15] = 0xff, [32] = 0xee };
	struct op_ksymbol_record k;
	struct op_record_id id;
	uint16_t type = 1, flags = 0;
	size_t at = 0;

	begin(PERF_RECORD_KSYMBOL, 0);
	put_u64(&at, 0xffffffffc0001000);
	put_u32(&at, 64);
	put(&at, &type, 2);
	put(&at, &flags, 2);
	put(&at, "bpf_prg", 8);
	put_trailer(&at);
	put(&at, rest, sizeof(rest));
	end(at);
	assert_int_equal(op_record_ksymbol(&record.header, &k), 0);
	assert_string_equal(k.name, "bpf_prg");
	assert_int_equal(k.who.time_ns, 1300);
	assert_int_equal(op_record_id(&record.header, &id), 0);
	assert_int_equal(id.time_ns, 1300);
}

static void namespaces(void **state OP_UNUSED)
{
	struct op_namespaces_record n;
	size_t at = 0;

	begin(PERF_RECORD_NAMESPACES, 0);
	put_u32(&at, 21);
	put_u32(&at, 22);
	put_u64(&at, MNT_NS_INDEX + 1);
	for (uint64_t i = 0; i <= MNT_NS_INDEX; i++) {
		put_u64(&at, 4);
		put_u64(&at, 4026531830 + i);
	}
	put_trailer(&at);
	end(at);
	assert_int_equal(op_record_namespaces(&record.header, &n), 0);
	assert_int_equal(n.pid, 21);
	assert_int_equal(n.tid, 22);
	assert_int_equal(n.mnt_ns, 4026531830 + MNT_NS_INDEX);
	assert_int_equal(n.user_ns, 4026531830 + USER_NS_INDEX);
	assert_int_equal(n.who.time_ns, 1300);
	assert_refuses_shorter(op_record_namespaces, struct op_namespaces_record);
	memcpy(&record.body[8], &(uint64_t){ MNT_NS_INDEX }, sizeof(uint64_t));
	assert_int_equal(op_record_namespaces(&record.header, &n), -EBADMSG);
}

/* ---- call chains ---- */

static void make_chain(uint64_t nr, const uint64_t *words, size_t nr_words)
{
	size_t at = OP_SAMPLE_RECORD_BYTES - sizeof(record.header);

	begin(PERF_RECORD_SAMPLE, PERF_RECORD_MISC_KERNEL);
	put_u64(&at, nr);
	put(&at, words, nr_words * 8);
	end(at);
}

static void expect_frame(struct op_chain *chain, uint64_t ip, enum op_cpumode mode)
{
	struct op_chain_frame frame;

	assert_true(op_chain_next(chain, &frame));
	assert_int_equal(frame.ip, ip);
	assert_int_equal(frame.mode, mode);
}

static void markers_say_of_what_kind_frames_are(void **state OP_UNUSED)
{
	static const uint64_t words[] = {
		0x10, /* before any marker: as the sample */
		PERF_CONTEXT_KERNEL, 0xffffffff81000010, PERF_CONTEXT_HV, PERF_CONTEXT_USER, 0x401000, 0xffffffffff600010,
		PERF_CONTEXT_GUEST_KERNEL, 1, PERF_CONTEXT_GUEST_USER, 2, PERF_CONTEXT_HV, 3, (uint64_t)-3000, 4, PERF_CONTEXT_USER,
	};
	struct op_chain chain;
	struct op_chain_frame frame;

	make_chain(op_array_size(words), words, op_array_size(words));
	assert_int_equal(op_chain_begin(&record.header, OP_CPUMODE_KERNEL, &chain), 0);
	expect_frame(&chain, 0x10, OP_CPUMODE_KERNEL);
	expect_frame(&chain, 0xffffffff81000010, OP_CPUMODE_KERNEL);
	expect_frame(&chain, 0x401000, OP_CPUMODE_USER);
	/* the vsyscall page is no marker */
	expect_frame(&chain, 0xffffffffff600010, OP_CPUMODE_USER);
	expect_frame(&chain, 1, OP_CPUMODE_GUEST_KERNEL);
	expect_frame(&chain, 2, OP_CPUMODE_GUEST_USER);
	expect_frame(&chain, 3, OP_CPUMODE_HYPERVISOR);
	expect_frame(&chain, 4, OP_CPUMODE_UNKNOWN);
	assert_false(op_chain_next(&chain, &frame));
}

static void chain_that_lies(void **state OP_UNUSED)
{
	static const uint64_t words[] = { PERF_CONTEXT_USER, 0x401000, 0x402000 };
	static const uint64_t lies[] = { 4, 1ull << 32, UINT64_MAX / 8, UINT64_MAX / 8 + 1, UINT64_MAX };
	struct op_chain chain;
	struct op_chain_frame frame;

	for (size_t i = 0; i < op_array_size(lies); i++) {
		make_chain(lies[i], words, op_array_size(words));
		assert_int_equal(op_chain_begin(&record.header, OP_CPUMODE_USER, &chain), -EBADMSG);
	}
	make_chain(2, words, op_array_size(words)); /* more may follow */
	assert_int_equal(op_chain_begin(cut(record.header.size), OP_CPUMODE_USER, &chain), 0);
	expect_frame(&chain, 0x401000, OP_CPUMODE_USER);
	assert_false(op_chain_next(&chain, &frame));
	make_chain(3, words, op_array_size(words));
	for (uint16_t size = sizeof(struct perf_event_header); size < record.header.size; size += 8)
		assert_int_equal(op_chain_begin(cut(size), OP_CPUMODE_USER, &chain), -EBADMSG);
	make_chain(0, words, 0);
	assert_int_equal(op_chain_begin(cut(record.header.size), OP_CPUMODE_USER, &chain), 0);
	assert_false(op_chain_next(&chain, &frame));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(markers_say_of_what_kind_frames_are),
		cmocka_unit_test(chain_that_lies),
		cmocka_unit_test(sample),
		cmocka_unit_test(mmap_by_inode),
		cmocka_unit_test(mmap_by_build_id),
		cmocka_unit_test(mmap_that_lies),
		cmocka_unit_test(task),
		cmocka_unit_test(comm),
		cmocka_unit_test(lost_and_throttle),
		cmocka_unit_test(ksymbol),
		cmocka_unit_test(ksymbol_that_grew),
		cmocka_unit_test(namespaces),
	};

	return cmocka_run_group_tests_name("record", tests, NULL, NULL);
}
