/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The swap of the memory pair, step by step as libop/ring_memory_pair.[ch] does it: one writer, and the reader's thread, which also
 * swaps. The letters are those of doc/ring.md.
 *
 *   writer                                        reader's thread
 *   (E) store inside = ring of the last time      (G) store write index = read ring
 *         fence                                         fence
 *   (F) load write index; not that ring:          (H) load inside; what was the write ring: look again
 *       guess again, go back to E                 (C) load its head, load its records
 *   (A) load tail; no room: leave                 (D) store its tail
 *   store record, (B) store head
 *   (I) store inside = none
 *
 * Memory: a store goes into the buffer of its process, and from there into memory at any later time. Stores to different
 * addresses leave the buffer in any order, but a release store (B, D, I) leaves it after all that stand before it, and a full fence
 * waits until it is empty: op_store_fence before op_load_fence, and what stands behind the latter. With -DTSO stores leave in order, as on x86. Loads are done where they stand, as acquire promises. Every
 * variable has one process that writes it, which keeps its own copy, so no load looks into a buffer.
 *
 * What is asserted: records come with no number missing, none twice, in order (expect), both words of a record are of one
 * record, the head makes sense, what was frozen has not grown while it was read (frozen), and one swap that begins after the last
 * commit gives all (finished). No state is stuck.
 *
 * Broken on purpose, each must fail: NO_WRITER_FENCE (after E), NO_SWAPPER_FENCE (after G), NO_LOOK (the writer does without F),
 * NO_WAIT (the reader does without H), NO_LEAVE_RELEASE (I may be seen before the record; right under TSO), NO_WAIT_ACQUIRE (C comes
 * before H; the one load that is moved, by hand).
 */
#ifndef NR_RECORDS
#define NR_RECORDS 7
#endif
#define SLOTS 2 /* records that fit in a ring */
#define DEPTH 6 /* stores that fit in a buffer */

#define WRITER 0 /* whose buffer */
#define READER 1

#define NONE 2 /* inside no ring */

/* Addresses. */
#define WRITE_INDEX 0
#define INSIDE 1
#define HEAD(ring) (2 + (ring))
#define TAIL(ring) (4 + (ring))
#define WORD(ring, position, word) (6 + (ring) * 2 * SLOTS + ((position) % SLOTS) * 2 + (word))
#define NR_ADDRESSES (6 + 4 * SLOTS)

byte memory[NR_ADDRESSES];

typedef store_buffer {
	byte address[DEPTH];
	byte value[DEPTH];
	bool release[DEPTH];
	byte nr
};
store_buffer buffers[2];

bool writer_done; /* the last record is committed and in memory; not part of the protocol */

inline store(who, to, what, is_release)
{
	atomic {
		buffers[who].nr < DEPTH;
		buffers[who].address[buffers[who].nr] = to;
		buffers[who].value[buffers[who].nr] = what;
		buffers[who].release[buffers[who].nr] = is_release;
		buffers[who].nr++
	}
}

inline fence(who)
{
	buffers[who].nr == 0
}

/* The store at place i may leave: it is the first, or it is no release and none before it goes to the same address. */
#define ELSEWHERE(who, i, j) (j >= i || buffers[who].address[j] != buffers[who].address[i])
#ifdef TSO
#define MAY_LEAVE(who, i) (i == 0 && buffers[who].nr > 0)
#else
#define MAY_LEAVE(who, i)                                                                                                         \
	(i < buffers[who].nr && (i == 0 || !buffers[who].release[i]) && ELSEWHERE(who, i, 0) && ELSEWHERE(who, i, 1) &&           \
	 ELSEWHERE(who, i, 2) && ELSEWHERE(who, i, 3) && ELSEWHERE(who, i, 4))
#endif

inline leave(who, i)
{
	d_step {
		memory[buffers[who].address[i]] = buffers[who].value[i];
		buffers[who].nr--;
		at = i;
		do
		:: at < buffers[who].nr ->
			buffers[who].address[at] = buffers[who].address[at + 1];
			buffers[who].value[at] = buffers[who].value[at + 1];
			buffers[who].release[at] = buffers[who].release[at + 1];
			at++
		:: else -> break
		od;
		buffers[who].address[at] = 0;
		buffers[who].value[at] = 0;
		buffers[who].release[at] = false;
		at = 0
	}
}

proctype drain(bit who)
{
	byte at;

end:
	do
	:: atomic { MAY_LEAVE(who, 0) -> leave(who, 0) }
	:: atomic { MAY_LEAVE(who, 1) -> leave(who, 1) }
	:: atomic { MAY_LEAVE(who, 2) -> leave(who, 2) }
	:: atomic { MAY_LEAVE(who, 3) -> leave(who, 3) }
	:: atomic { MAY_LEAVE(who, 4) -> leave(who, 4) }
	:: atomic { MAY_LEAVE(who, 5) -> leave(who, 5) }
	od
}

#ifdef NO_LEAVE_RELEASE
#define LEAVE_RELEASE false
#else
#define LEAVE_RELEASE true
#endif

/* Makes ring, at first that of the last time, the writer's until it leaves. */
inline enter(ring, again)
{
	do
	:: store(WRITER, INSIDE, ring, false); /* E */
#ifndef NO_WRITER_FENCE
		fence(WRITER);
#endif
#ifdef NO_LOOK
		ring = memory[WRITE_INDEX];
		break
#else
		again = memory[WRITE_INDEX]; /* F */
		if
		:: again == ring -> break
		:: else -> ring = memory[WRITE_INDEX]
		fi
#endif
	od
}

proctype writer()
{
	byte heads[2];
	byte ring, again, tail;
	byte next = 1;

	do
	:: next <= NR_RECORDS ->
		enter(ring, again);
		tail = memory[TAIL(ring)]; /* A */
		if
		:: heads[ring] - tail < SLOTS ->
			store(WRITER, WORD(ring, heads[ring], 0), next, false);
			store(WRITER, WORD(ring, heads[ring], 1), next, false);
			heads[ring]++;
			store(WRITER, HEAD(ring), heads[ring], true); /* B */
			next++
		:: else /* dropped: this number is tried again, so that the reader may expect every one */
		fi;
		store(WRITER, INSIDE, NONE, LEAVE_RELEASE) /* I */
	:: else -> break
	od;
	atomic { buffers[WRITER].nr == 0 -> writer_done = true }
}

inline read_records(ring)
{
	do
	:: tails[ring] != head ->
		first = memory[WORD(ring, tails[ring], 0)];
		second = memory[WORD(ring, tails[ring], 1)];
		assert(first == second);
		assert(first == expect);
		expect++;
		tails[ring]++
	:: else -> break
	od;
	first = 0;
	second = 0
}

proctype reader()
{
	byte tails[2];
	byte old, head, frozen, first, second;
	byte expect = 1;
	bool finished;

	do
	:: finished = writer_done;
		store(READER, WRITE_INDEX, 1 - old, false); /* G */
#ifndef NO_SWAPPER_FENCE
		fence(READER);
#endif
#ifdef NO_WAIT_ACQUIRE
		head = memory[HEAD(old)];
#endif
#ifndef NO_WAIT
		memory[INSIDE] != old; /* H */
#endif
#ifndef NO_WAIT_ACQUIRE
		head = memory[HEAD(old)]; /* C */
#endif
		assert(head >= tails[old] && head - tails[old] <= SLOTS);
		read_records(old);
		frozen = memory[HEAD(old)];
		assert(frozen == head);
		store(READER, TAIL(old), tails[old], true); /* D */
		old = 1 - old;
		if
		:: finished ->
			assert(expect == NR_RECORDS + 1);
			break
		:: else
		fi
	od
}

init
{
	atomic {
		memory[INSIDE] = NONE;
		run drain(WRITER);
		run drain(READER);
		run writer();
		run reader()
	}
}
