/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * The swap of the memory pair, step by step as libop/ring_memory_pair.[ch] does it: one writer, one reader, and with SWAPPER a
 * swapping thread; without it the reader does all swaps. The letters are those of doc/ring.md.
 *
 *   writer                                        who swaps
 *   (E) store inside = epoch of the last time, in  (G) store the next epoch
 *         fence; LIGHT: nothing                         fence
 *   (F) load epoch; not the same:                  (H) load inside: this epoch: quiet; an older one, in: look again;
 *       guess again, go back to E                     an older one, out: quiet, but with LIGHT after a barrier only
 *   (A) load tail; no room: leave
 *   store record, (B) store head                  reader
 *   (I) store inside = epoch, out                  (C) load the head of the frozen ring, load its records
 *                                                 (D) store its tail
 *
 *   reader                                        swapping thread
 *   store the swap, (J) store holder = nobody     (O) claim holder, load the swap
 *   (W) load holder: back: load the swap; or      nothing, or G, or G and H
 *   (O) claim holder: nobody had it               store the swap, (V) store holder = reader
 *
 * The swap is what the holder of the baton knows: the epoch, whether the frozen ring is quiet, whether a barrier is due. Here it is one
 * word. The reader swaps itself or lends the baton, as it likes, and looks (H) itself when the ring it gets back is not quiet.
 *
 * LIGHT is the variant with membarrier(2): it returns after a moment at which all that the writer had stored was in memory, here:
 * at which its buffer was empty. The reader may call it when it likes, so with LIGHT it may look (H) any number of times before.
 * Turns count to 8 here; a pair that has nothing is swapped once in a row at most, so that none comes again while it is remembered.
 *
 * Memory: a store goes into the buffer of its process, and from there into memory at any later time. Stores to different
 * addresses leave the buffer in any order, but a release store (B, D, I) leaves it after all that stand before it, and a full fence
 * waits until it is empty: op_store_fence before op_load_fence, and what stands behind the latter.
 * With -DTSO stores leave in order, as on x86; with -DSC at once, so that what goes wrong does so by the protocol alone, and is found
 * in a small search. Loads are done where they stand, as acquire promises. Every
 * variable has one process that writes it, which keeps its own copy, so no load looks into a buffer.
 *
 * What is asserted: records come with no number missing, none twice, in order (expect), both words of a record are of one
 * record, the head makes sense, what was frozen has not grown while it was read (frozen), nobody else has had the baton meanwhile
 * (HOLDER), and one swap that begins after the last commit gives all (finished). No state is stuck.
 *
 * Broken on purpose, each must fail: NO_WRITER_FENCE (after E; LIGHT without its barrier), NO_SWAPPER_FENCE (after G), EARLY_BARRIER
 * (LIGHT, and the barrier before G), NO_EPOCHS (the writer says its ring only, so that a guess looks like an answer; LIGHT),
 * NO_LOOK (the writer looks at the epoch behind I instead), NO_WAIT (the reader does without H), NO_LEAVE_RELEASE (E and I may be seen before the record;
 * right under TSO; with NO_COMMIT_RELEASE for B too a record is torn), NO_WAIT_ACQUIRE (C comes before H; moved by hand), NO_TAIL (the writer does without A). With SWAPPER: NO_LEND_RELEASE and NO_GIVE_RELEASE (J and V may be
 * seen before the swap; right under TSO), NO_TAKE_ACQUIRE (the swap is loaded before O) and NO_BACK_ACQUIRE (C comes before W), both moved by
 * hand, NO_BACK (the reader goes on without a look at W), NO_CLAIM (O looks first and stores then); with each of these two one
 * moves the epoch that the other takes for its own, and a record goes into a ring that was just read.
 */
#ifndef NR_RECORDS
#define NR_RECORDS 5
#endif
#define SLOTS 2 /* records that fit in a ring */
#define DEPTH 6 /* stores that fit in a buffer */

#define WRITER 0 /* whose buffer */
#define READER 1
#define SWAPPING 2

#define NR_EPOCHS 8
#ifdef NO_EPOCHS
#define SAID(epoch, in) (((epoch) % 2) * 2 + (in))
#else
#define SAID(epoch, in) ((epoch) * 2 + (in))
#endif

/* Addresses. */
#define EPOCH 0
#define INSIDE 1
#define HEAD(ring) (2 + (ring))
#define TAIL(ring) (4 + (ring))
#define WORD(ring, position, word) (6 + (ring) * 2 * SLOTS + ((position) % SLOTS) * 2 + (word))
#define HOLDER (6 + 4 * SLOTS)
#define SWAP (7 + 4 * SLOTS)
#define NR_ADDRESSES (8 + 4 * SLOTS)

/* What is in HOLDER and in SWAP. */
#define BY_READER 0
#define BY_SWAPPER 1
#define BY_NOBODY 2
#define PACKED(epoch, quiet, due) ((epoch) * 4 + (quiet) * 2 + (due))

/* What may be wrong. With -DONLY=kind the search passes over the other kinds: a variant is to fail by what it is said to do. */
#define TORN   1 /* the words of what is read are not of one record */
#define ORDER  2 /* a number is missing, or comes twice */
#define WILD   3 /* the head makes no sense */
#define FROZEN 4 /* the ring grew while it was read */
#define LOST   5 /* in the end not all was read */
#define HANDS  6 /* the baton is in two of them */
#ifdef ONLY
#define must(kind, condition) assert(kind != ONLY || (condition))
#else
#define must(kind, condition) assert(condition)
#endif

byte memory[NR_ADDRESSES];

typedef store_buffer {
	byte address[DEPTH];
	byte value[DEPTH];
	bool release[DEPTH];
	byte nr
};
store_buffer buffers[3];

/* Not part of the protocol: the last record is committed and in memory; it was read. */
bool writer_done, reader_done;

#ifdef SC
inline store(who, to, what, is_release)
{
	memory[to] = what
}
#else
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
#endif

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

proctype drain(byte who)
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

#ifdef NO_COMMIT_RELEASE
#define COMMIT_RELEASE false
#else
#define COMMIT_RELEASE true
#endif
#ifdef NO_TAIL
#define ROOM 255
#else
#define ROOM SLOTS
#endif

/* Makes the ring of epoch, at first that of the last time, the writer's until it leaves. */
inline enter(epoch, again)
{
	do
	:: store(WRITER, INSIDE, SAID(epoch, 1), LEAVE_RELEASE); /* E */
#if !defined(NO_WRITER_FENCE) && !defined(LIGHT)
		fence(WRITER);
#endif
#ifdef NO_LOOK
		break
#else
		again = memory[EPOCH]; /* F */
		if
		:: again == epoch -> break
		:: else -> epoch = memory[EPOCH]
		fi
#endif
	od
}

proctype writer()
{
	byte heads[2];
	byte epoch, again, tail;
	byte next = 1;

	do
	:: next <= NR_RECORDS ->
		enter(epoch, again);
		tail = memory[TAIL(epoch % 2)]; /* A */
		if
		:: heads[epoch % 2] - tail < ROOM ->
			store(WRITER, WORD(epoch % 2, heads[epoch % 2], 0), next, false);
			store(WRITER, WORD(epoch % 2, heads[epoch % 2], 1), next, false);
			heads[epoch % 2]++;
			store(WRITER, HEAD(epoch % 2), heads[epoch % 2], COMMIT_RELEASE); /* B */
			next++
		:: else /* dropped: this number is tried again, so that the reader may expect every one */
		fi;
		store(WRITER, INSIDE, SAID(epoch, 0), LEAVE_RELEASE); /* I */
#ifdef NO_LOOK
		epoch = memory[EPOCH]
#endif
	:: else -> break
	od;
	atomic { buffers[WRITER].nr == 0 -> writer_done = true }
}

/* membarrier(2) */
inline barrier(who)
{
	fence(who);
	buffers[WRITER].nr == 0
}

/* By whoever has the baton. */
inline advance_epoch(who)
{
#ifdef EARLY_BARRIER
	barrier(who);
#endif
	epoch = (epoch + 1) % NR_EPOCHS;
	store(who, EPOCH, epoch, false); /* G */
#ifndef NO_SWAPPER_FENCE
	fence(who);
#endif
	quiet = false;
#if defined(LIGHT) && !defined(NO_WRITER_FENCE) && !defined(EARLY_BARRIER)
	due = true
#endif
}

inline look_for_writer(who)
{
	inside = memory[INSIDE]; /* H */
	if
	:: inside == SAID(epoch, 0) || inside == SAID(epoch, 1) -> quiet = true
	:: else ->
		if
		:: inside % 2 == 1
		:: inside % 2 == 0 && !due -> quiet = true
#ifdef LIGHT
		:: inside % 2 == 0 && due ->
			barrier(who);
			due = false
		:: inside % 2 == 0 && due /* one more look before it */
#endif
		fi
	fi;
	inside = 0
}

inline read_records(ring)
{
	do
	:: tails[ring] != head ->
		first = memory[WORD(ring, tails[ring], 0)];
		second = memory[WORD(ring, tails[ring], 1)];
		must(TORN, first == second);
		must(ORDER, first == expect);
		expect++;
		tails[ring]++
	:: else -> break
	od;
	first = 0;
	second = 0
}

#ifdef NO_LEND_RELEASE
#define LEND_RELEASE false
#else
#define LEND_RELEASE true
#endif
#ifdef NO_GIVE_RELEASE
#define GIVE_RELEASE false
#else
#define GIVE_RELEASE true
#endif

/* The reader's own store to HOLDER is what it would load. */
#define IN_BUFFER(i) (buffers[READER].address[i] == HOLDER)
#define LENT_IN_BUFFER (IN_BUFFER(0) || IN_BUFFER(1) || IN_BUFFER(2) || IN_BUFFER(3) || IN_BUFFER(4) || IN_BUFFER(5))
#ifdef NO_BACK
#define IS_BACK true
#else
#define IS_BACK (memory[HOLDER] == BY_READER && !LENT_IN_BUFFER)
#endif

inline unpack()
{
	epoch = swap / 4;
	quiet = swap / 2 % 2;
	due = swap % 2;
	swap = 0
}

/* Until the baton is back, by W, or by O when nobody had it. */
inline lend()
{
	store(READER, SWAP, PACKED(epoch, quiet, due), false);
	store(READER, HOLDER, BY_NOBODY, LEND_RELEASE); /* J */
#ifdef NO_BACK_ACQUIRE
	head = memory[HEAD(old)];
#endif
	if
	:: IS_BACK -> /* W */
		swap = memory[SWAP];
		unpack()
	:: atomic { memory[HOLDER] == BY_NOBODY -> memory[HOLDER] = BY_READER } /* O */
	fi
}

proctype reader()
{
	byte tails[2];
	byte epoch, old, head, frozen, first, second, inside, idle, swap;
	byte expect = 1;
	bool quiet, due, finished;

	do
	:: writer_done || idle < 1 || memory[HEAD(old)] != tails[old] ->
		if
		:: memory[HEAD(old)] != tails[old] -> idle = 0
		:: else -> idle++
		fi;
		finished = writer_done;
		do
		:: epoch % 2 == old -> advance_epoch(READER)
#ifdef SWAPPER
		:: epoch % 2 == old -> lend()
#endif
		:: epoch % 2 != old -> break
		od;
#ifdef NO_WAIT_ACQUIRE
		head = memory[HEAD(old)];
#endif
#ifndef NO_WAIT
		do
		:: !quiet ->
			look_for_writer(READER)
#ifdef NO_BACK_ACQUIRE
			; head = memory[HEAD(old)]
#endif
		:: quiet -> break
		od;
#endif
#if !defined(NO_WAIT_ACQUIRE) && !defined(NO_BACK_ACQUIRE)
		head = memory[HEAD(old)]; /* C */
#endif
		must(WILD, head >= tails[old] && head - tails[old] <= SLOTS);
		read_records(old);
		frozen = memory[HEAD(old)];
		must(FROZEN, frozen == head);
		must(HANDS, memory[HOLDER] == BY_READER);
		store(READER, TAIL(old), tails[old], true); /* D */
		head = 0;
		frozen = 0;
		old = 1 - old;
		if
		:: finished ->
			must(LOST, expect == NR_RECORDS + 1);
			reader_done = true;
			break
		:: else
		fi
	od
}

proctype swapper()
{
	byte epoch, inside, swap;
	bool quiet, due;

end:
	do
	:: memory[HOLDER] == BY_NOBODY ->
#ifdef NO_TAKE_ACQUIRE
		swap = memory[SWAP];
#endif
#ifdef NO_CLAIM
		memory[HOLDER] = BY_SWAPPER;
#else
		if
		:: atomic { memory[HOLDER] == BY_NOBODY -> memory[HOLDER] = BY_SWAPPER } /* O */
		:: atomic { memory[HOLDER] != BY_NOBODY -> swap = 0; goto end }
		fi;
#endif
#ifndef NO_TAKE_ACQUIRE
		swap = memory[SWAP];
#endif
		unpack();
		if
		:: true /* gives it back as it was */
		:: true ->
			advance_epoch(SWAPPING);
			do
			:: !quiet -> look_for_writer(SWAPPING)
			:: break
			od
		fi;
		must(HANDS, memory[HOLDER] == BY_SWAPPER);
		store(SWAPPING, SWAP, PACKED(epoch, quiet, due), false);
		store(SWAPPING, HOLDER, BY_READER, GIVE_RELEASE); /* V */
		epoch = 0;
		quiet = false;
		due = false
	:: reader_done -> break
	od
}

init
{
	atomic {
#ifdef SWAPPER
		run drain(SWAPPING);
		run swapper();
#endif
		run drain(WRITER);
		run drain(READER);
		run writer();
		run reader()
	}
}
