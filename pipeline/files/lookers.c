/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "pipeline/files/lookers.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "libop/base/clock.h"
#include "libop/base/htable.h"
#include "libop/base/log.h"

/* for one answer; a local file system needs microseconds */
#define WAIT_NS      (100u * OP_NS_PER_MS)
#define CREDIT_NS    (300u * OP_NS_PER_MS) /* for all of a group: at most, */
#define CREDIT_SHARE 10u                   /* and this part of the time */
#define CREDIT_MIN   (10u * OP_NS_PER_MS)  /* with less nothing is asked */
#define FREE_NS      (OP_NS_PER_MS / 2)    /* of each question: a quick answer costs nothing */
#define BAN_MIN_NS   ((uint64_t)OP_NS_PER_S)
#define BAN_MAX_NS   (300u * (uint64_t)OP_NS_PER_S)
#define BANS         256u
#define OWNER_MAX    3u /* lookers that hang on files of one user, or of one user namespace */
#define OWNER_GONE   UINT64_MAX /* the owner of all processes that are gone */
#define FILES_OF     (UINT64_C(1) << 63) /* a key and an owner: files of a user, not processes */
#define PARTS_MAX    6u
/* after a looker has ended by itself: so often at once, and one in this time */
#define RESTARTS_MAX 8u
#define END_NS       ((uint64_t)OP_NS_PER_S)
#define RESTART_NS   (OP_NS_PER_S / 10u)

enum group { HOST, GUEST, NR_GROUPS };

struct looker {
	struct op_helper *helper;
	uint32_t serial;
	bool hangs;
	uint64_t owner; /* who let it hang */
};

struct group_state {
	struct looker lookers[OPD_LOOKERS_MAX];
	size_t nr_lookers, nr_hanging;
	uint64_t credit_ns, credit_added_ns;
};

/* A process, or all of a user namespace, that let a looker hang: no question for some time. */
struct ban {
	uint64_t key; /* 0: none */
	uint64_t until_ns, length_ns;
};

struct opd_lookers {
	struct op_nursery *nursery;
	size_t kind;
	uint32_t last_serial;
	uint64_t nr_unanswered, nr_ended;
	uint64_t until_ns; /* nothing is asked later; 0: no limit */
	uint64_t restarts_ns; /* RESTART_NS for each looker that ended, from when it ended */
	struct group_state groups[NR_GROUPS];
	struct ban bans[BANS];
};

int opd_lookers_new(struct op_nursery *nursery, size_t kind, struct opd_lookers **ret_lookers)
{
	struct opd_lookers *lookers = calloc(1, sizeof(*lookers));

	if (!lookers)
		return -ENOMEM;
	lookers->nursery = nursery;
	lookers->kind = kind;
	*ret_lookers = lookers;
	return 0;
}

/* All are told to end before one is waited for. */
void opd_lookers_free(struct opd_lookers *lookers)
{
	uint64_t until_ns = op_now_ns() + END_NS;

	for (int wait = 0; wait < 2; wait++) {
		for (size_t i = 0; lookers && i < NR_GROUPS; i++) {
			for (size_t j = 0; j < lookers->groups[i].nr_lookers; j++) {
				if (wait)
					op_helper_stop(lookers->groups[i].lookers[j].helper, until_ns);
				else
					op_helper_end(lookers->groups[i].lookers[j].helper);
			}
		}
	}
	free(lookers);
}

uint64_t opd_lookers_nr_unanswered(const struct opd_lookers *lookers)
{
	return lookers->nr_unanswered;
}

void opd_lookers_wait_until(struct opd_lookers *lookers, uint64_t until_ns)
{
	lookers->until_ns = until_ns;
}

/* ---- who may be asked about ---- */

static struct ban *ban_of(struct opd_lookers *lookers, const struct opd_look_about *about, uint64_t *ret_key)
{
	*ret_key = about->is_files ? FILES_OF | about->uid : about->user_ns ? about->user_ns << 32 : about->pid;
	return &lookers->bans[op_hash_u64(*ret_key) % BANS];
}

static bool is_banned(struct opd_lookers *lookers, const struct opd_look_about *about, uint64_t now_ns)
{
	uint64_t key;
	const struct ban *ban = ban_of(lookers, about, &key);

	return ban->key == key && now_ns < ban->until_ns;
}

/* Each time is twice as long as the one before. */
static void ban(struct opd_lookers *lookers, const struct opd_look_about *about)
{
	uint64_t key;
	struct ban *ban = ban_of(lookers, about, &key);

	ban->length_ns = ban->key == key ? op_min_u64(2 * ban->length_ns, BAN_MAX_NS) : BAN_MIN_NS;
	ban->until_ns = op_now_ns() + ban->length_ns;
	ban->key = key;
}

/*
 * A look at the attributes of /proc/PID needs nothing of the process's memory or files. A process
 * that cannot be dumped counts as root's there.
 */
uint64_t opd_look_owner(const struct opd_look_about *about)
{
	char path[32];
	struct stat st;

	if (about->is_files)
		return FILES_OF | about->uid;
	if (about->user_ns)
		return about->user_ns << 32;
	snprintf(path, sizeof(path), "/proc/%u", about->pid);
	return stat(path, &st) < 0 ? OWNER_GONE : st.st_uid;
}

static bool has_its_share(const struct group_state *group, const struct opd_look_about *about)
{
	uint64_t owner;
	size_t nr = 0;

	if (op_likely(!group->nr_hanging))
		return false;
	owner = opd_look_owner(about);
	for (size_t i = 0; i < group->nr_lookers; i++)
		nr += group->lookers[i].hangs && group->lookers[i].owner == owner;
	return nr >= OWNER_MAX;
}

/* ---- lookers ---- */

/* It ended, was killed, or is no use: another one will take its place. */
static void lose_looker(struct opd_lookers *lookers, struct group_state *group, struct looker *looker)
{
	lookers->nr_ended++;
	lookers->restarts_ns = op_max_u64(lookers->restarts_ns, op_now_ns()) + RESTART_NS;
	group->nr_hanging -= looker->hangs;
	op_helper_leave(looker->helper);
	*looker = group->lookers[--group->nr_lookers];
}

void opd_lookers_watch(struct opd_lookers *lookers)
{
	op_nursery_watch(lookers->nursery);
	for (size_t i = 0; i < NR_GROUPS; i++) {
		struct group_state *group = &lookers->groups[i];

		for (size_t j = group->nr_lookers; j--;)
			if (op_helper_has_ended(group->lookers[j].helper))
				lose_looker(lookers, group, &group->lookers[j]);
	}
}

uint64_t opd_lookers_nr_ended(const struct opd_lookers *lookers)
{
	return lookers->nr_ended + op_nursery_nr_ended(lookers->nursery);
}

/* Waiting for a nursery that sleeps counts as waiting for a looker. */
static struct looker *start_looker(struct opd_lookers *lookers, struct group_state *group)
{
	uint64_t begin_ns = op_now_ns();
	static struct op_rate rate;
	struct looker *looker = &group->lookers[group->nr_lookers];
	uint64_t suppressed;
	int err;

	if (group->nr_lookers == OPD_LOOKERS_MAX || lookers->restarts_ns > begin_ns + RESTARTS_MAX * RESTART_NS)
		return NULL;
	err = op_helper_start(lookers->nursery, lookers->kind, op_min_u64(group->credit_ns, WAIT_NS), &looker->helper);
	if (err == -EAGAIN) {
		group->credit_ns -= op_min_u64(group->credit_ns, op_now_ns() - begin_ns);
		return NULL;
	}
	if (err) {
		if (op_rate_allows(&rate, op_now_ns(), OP_LOG_INTERVAL_NS, &suppressed))
			op_log(OP_LOG_WARNING, "cannot start a looker: %s; files of processes stay unknown", strerror(-err));
		return NULL;
	}
	looker->serial = ++lookers->last_serial;
	looker->hangs = false;
	group->nr_lookers++;
	return looker;
}

static bool is_idle(struct group_state *group, struct looker *looker)
{
	if (!op_helper_is_idle(looker->helper))
		return false;
	group->nr_hanging -= looker->hangs;
	looker->hangs = false;
	return true;
}

/* serial 0: any. NULL: none, or it is gone. */
static struct looker *find_looker(struct opd_lookers *lookers, struct group_state *group, uint32_t serial)
{
	for (size_t i = 0; i < group->nr_lookers; i++) {
		struct looker *looker = &group->lookers[i];

		if ((serial && looker->serial != serial) || !is_idle(group, looker))
			continue;
		if (!op_helper_has_ended(looker->helper))
			return looker;
		lose_looker(lookers, group, looker);
		i--;
	}
	return serial ? NULL : start_looker(lookers, group);
}

bool opd_lookers_has(const struct opd_lookers *lookers, uint32_t serial)
{
	for (size_t i = 0; i < NR_GROUPS; i++)
		for (size_t j = 0; j < lookers->groups[i].nr_lookers; j++)
			if (lookers->groups[i].lookers[j].serial == serial)
				return true;
	return false;
}

/* ---- questions ---- */

static uint64_t add_credit(struct group_state *group, uint64_t now_ns)
{
	uint64_t more_ns = group->credit_added_ns ? (now_ns - group->credit_added_ns) / CREDIT_SHARE : CREDIT_NS;

	group->credit_ns = op_min_u64(group->credit_ns + more_ns, CREDIT_NS);
	group->credit_added_ns = now_ns;
	return group->credit_ns;
}

static void abandon(struct opd_lookers *lookers, struct group_state *group, struct looker *looker,
		    const struct opd_look_about *about)
{
	static struct op_rate rate;
	uint64_t suppressed;

	if (op_helper_is_stopped(looker->helper)) { /* that is no file system's fault */
		kill(op_helper_pid(looker->helper), SIGKILL);
		lose_looker(lookers, group, looker);
		return;
	}
	looker->hangs = true;
	looker->owner = opd_look_owner(about);
	group->nr_hanging++;
	if (!op_helper_is_blocked(looker->helper))
		return; /* the machine is busy, and the answer will come */
	ban(lookers, about);
	if (!op_rate_allows(&rate, op_now_ns(), OP_LOG_INTERVAL_NS, &suppressed))
		return;
	if (about->is_files)
		op_log(OP_LOG_WARNING, "a file system with files of user %u does not answer", about->uid);
	else
		op_log(OP_LOG_WARNING, "a file system of process %u does not answer: files that it has mapped stay unknown",
		       about->pid);
}

/*
 * The time of a question that counts is that in which the looker slept. Time in which it waited for
 * a CPU is the machine's, not the file system's.
 */
static int ask_one(struct opd_lookers *lookers, struct group_state *group, struct looker *looker,
		   const struct opd_look_about *about, struct iovec *parts, size_t nr_parts, int fd, int *ret_result,
		   struct op_text *ret_answer)
{
	uint64_t begin_ns = op_now_ns(), slept_ns;
	int err = op_helper_ask(looker->helper, parts, nr_parts, fd, op_min_u64(group->credit_ns, WAIT_NS), ret_result, ret_answer);

	slept_ns = err == -ETIMEDOUT ? op_now_ns() - begin_ns : op_helper_slept_ns(looker->helper);
	group->credit_ns -= op_min_u64(group->credit_ns, slept_ns - op_min_u64(slept_ns, FREE_NS));
	if (err == -ETIMEDOUT)
		abandon(lookers, group, looker, about);
	else if (err)
		lose_looker(lookers, group, looker);
	return err;
}

static int ask(struct opd_lookers *lookers, struct group_state *group, const struct opd_look_about *about, struct iovec *parts,
	       size_t nr_parts, int fd, uint32_t *serial, struct op_text *ret_answer)
{
	uint64_t now_ns = op_now_ns();
	struct looker *looker;
	int result;

	if (lookers->until_ns && now_ns > lookers->until_ns)
		return -EBUSY;
	if (add_credit(group, now_ns) < CREDIT_MIN || is_banned(lookers, about, now_ns) || has_its_share(group, about))
		return -EBUSY;
	looker = find_looker(lookers, group, *serial);
	if (!looker)
		return -EBUSY;
	*serial = looker->serial;
	return ask_one(lookers, group, looker, about, parts, nr_parts, fd, &result, ret_answer) ? -EBUSY : result;
}

int opd_look(struct opd_lookers *lookers, const struct opd_look_about *about, enum opd_look look, const struct iovec *parts,
	     size_t nr_parts, int fd, uint32_t *serial, struct op_text *ret_answer)
{
	uint32_t number = look;
	struct iovec all[PARTS_MAX + 1] = { { &number, sizeof(number) } };
	int result;

	assert(nr_parts <= PARTS_MAX);
	memcpy(all + 1, parts, nr_parts * sizeof(*parts));
	result = ask(lookers, &lookers->groups[about->user_ns ? GUEST : HOST], about, all, nr_parts + 1, fd, serial, ret_answer);
	lookers->nr_unanswered += result == -EBUSY;
	return result;
}
