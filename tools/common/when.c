/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/common/when.h"

#include <ctype.h>
#include <errno.h>
#include <strings.h>
#include <time.h>

#include "libop/base/parse.h"

#define US_PER_S 1000000ull

/* ---- parts of the text ---- */

/* Copies `text` without blanks at its ends. False: it is empty or too long. */
static bool copy_trimmed(const char *text, char *copy, size_t size)
{
	size_t length;

	while (isspace((unsigned char)*text))
		text++;
	length = strlen(text);
	while (length && isspace((unsigned char)text[length - 1]))
		length--;
	if (!length || length >= size)
		return false;
	memcpy(copy, text, length);
	copy[length] = '\0';
	return true;
}

static bool cut_suffix(char *text, const char *suffix)
{
	size_t length = strlen(text), cut = strlen(suffix);

	if (length <= cut || strcasecmp(text + length - cut, suffix))
		return false;
	text[length - cut] = '\0';
	return true;
}

/* Leading zeros may be missing, as for strptime(3). Returns the number of digits. */
static int take_digits(const char **at, int max_digits, int *ret_value)
{
	int value = 0, nr_digits = 0;

	for (; nr_digits < max_digits && isdigit((unsigned char)**at); nr_digits++)
		value = 10 * value + (*(*at)++ - '0');
	if (nr_digits)
		*ret_value = value;
	return nr_digits;
}

static bool take_char(const char **at, char c)
{
	if (**at != c)
		return false;
	(*at)++;
	return true;
}

/* A fraction of a second. Digits behind the sixth are ignored. */
static bool take_fraction(const char **at, uint64_t *ret_us)
{
	uint64_t us = 0, weight = US_PER_S / 10;

	if (!isdigit((unsigned char)**at))
		return false;
	for (; isdigit((unsigned char)**at); (*at)++, weight /= 10)
		us += (uint64_t)(**at - '0') * weight;
	*ret_us = us;
	return true;
}

/* ---- relative to now ---- */

static int add_span(uint64_t now_us, const char *text, bool forwards, uint64_t *ret_us)
{
	uint64_t span_us;
	int err = op_parse_span_us(text, &span_us);

	if (err)
		return err;
	if (forwards ? span_us > INT64_MAX - now_us : span_us > now_us)
		return -ERANGE;
	*ret_us = forwards ? now_us + span_us : now_us - span_us;
	return 0;
}

static int parse_relative(char *text, uint64_t now_us, uint64_t *ret_us)
{
	if (*text == '-' || *text == '+')
		return add_span(now_us, text + 1, *text == '+', ret_us);
	if (cut_suffix(text, " ago"))
		return add_span(now_us, text, false, ret_us);
	if (cut_suffix(text, " left"))
		return add_span(now_us, text, true, ret_us);
	return -EINVAL;
}

static int parse_epoch(const char *at, uint64_t *ret_us)
{
	uint64_t seconds, us = 0;
	char whole[24];
	size_t length = strspn(at, "0123456789");
	int err;

	if (!length || length >= sizeof(whole))
		return -EINVAL;
	memcpy(whole, at, length);
	whole[length] = '\0';
	at += length;
	if (*at && !(take_char(&at, '.') && take_fraction(&at, &us) && !*at))
		return -EINVAL;
	errno = 0;
	seconds = strtoull(whole, NULL, 10);
	err = errno || seconds > INT64_MAX / US_PER_S - 1 ? -ERANGE : 0;
	if (!err)
		*ret_us = seconds * US_PER_S + us;
	return err;
}

/* ---- dates ---- */

struct date {
	struct tm tm;
	uint64_t us;
	bool utc;
	int weekday; /* -1: not given */
};

static bool of_day(struct date *date, uint64_t now_us, int days)
{
	time_t now = (time_t)(now_us / US_PER_S);

	if (!(date->utc ? gmtime_r(&now, &date->tm) : localtime_r(&now, &date->tm)))
		return false;
	date->tm.tm_mday += days;
	date->tm.tm_hour = date->tm.tm_min = date->tm.tm_sec = 0;
	date->tm.tm_isdst = -1;
	return true;
}

static int seconds_of(const struct date *date, const struct tm *wanted, uint64_t *ret_us)
{
	struct tm tm = *wanted;
	time_t seconds = date->utc ? timegm(&tm) : mktime(&tm);

	if (seconds < 0)
		return -ERANGE;
	if (date->weekday >= 0 && date->weekday != tm.tm_wday)
		return -ERANGE;
	*ret_us = (uint64_t)seconds * US_PER_S + date->us;
	return 0;
}

static bool is_a_time(const struct tm *tm)
{
	static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	int year = tm->tm_year + 1900;
	bool leap = (!(year % 4) && year % 100) || !(year % 400);

	return tm->tm_mon >= 0 && tm->tm_mon < 12 && tm->tm_mday >= 1 &&
	       tm->tm_mday <= days[tm->tm_mon] + (leap && tm->tm_mon == 1) && tm->tm_hour < 24 && tm->tm_min < 60 &&
	       tm->tm_sec <= 60; /* there are leap seconds */
}

/* Four digits, or two digits for 1969 to 2068. */
static bool take_year(const char **at, int *ret_year)
{
	int year = 0, nr_digits = take_digits(at, 4, &year);

	if (nr_digits == 2)
		year += year < 69 ? 2000 : 1900;
	*ret_year = year;
	return nr_digits == 2 || nr_digits == 4;
}

static bool take_date(const char **at, struct date *date)
{
	const char *start = *at;
	int year, month;

	if (take_year(at, &year) && take_char(at, '-') && take_digits(at, 2, &month) && take_char(at, '-') &&
	    take_digits(at, 2, &date->tm.tm_mday)) {
		date->tm.tm_year = year - 1900;
		date->tm.tm_mon = month - 1;
		return true;
	}
	*at = start;
	return false;
}

static bool take_time(const char **at, struct date *date)
{
	if (!take_digits(at, 2, &date->tm.tm_hour) || !take_char(at, ':') || !take_digits(at, 2, &date->tm.tm_min))
		return false;
	if (!take_char(at, ':'))
		return true;
	if (!take_digits(at, 2, &date->tm.tm_sec))
		return false;
	return !take_char(at, '.') || take_fraction(at, &date->us);
}

static void take_weekday(const char **at, struct date *date)
{
	static const char *const names[] = { "sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday" };
	size_t length = strcspn(*at, " ,");

	for (int i = 0; i < (int)op_array_size(names); i++) {
		if ((length != 3 && length != strlen(names[i])) || strncasecmp(*at, names[i], length))
			continue;
		date->weekday = i;
		*at += length;
		*at += strspn(*at, " ,");
		return;
	}
}

/* A date, a time of day, or both. */
static int parse_date(struct date *date, const char *at, uint64_t now_us, uint64_t *ret_us)
{
	struct tm today = date->tm;

	take_weekday(&at, date);
	if (take_date(&at, date)) {
		if (*at && !((take_char(&at, ' ') || take_char(&at, 'T')) && take_time(&at, date)))
			return -EINVAL;
	} else if (date->weekday >= 0 || !of_day(date, now_us, 0) || !take_time(&at, date)) {
		date->tm = today;
		return -EINVAL;
	}
	if (*at)
		return -EINVAL;
	if (!is_a_time(&date->tm))
		return -ERANGE;
	date->tm.tm_isdst = -1;
	return seconds_of(date, &date->tm, ret_us);
}

static const struct {
	const char *word;
	int days;
} days[] = { { "yesterday", -1 }, { "today", 0 }, { "tomorrow", 1 } };

static int parse_day(struct date *date, const char *text, uint64_t now_us, uint64_t *ret_us)
{
	for (size_t i = 0; i < op_array_size(days); i++)
		if (!strcasecmp(text, days[i].word))
			return of_day(date, now_us, days[i].days) ? seconds_of(date, &date->tm, ret_us) : -ERANGE;
	return parse_date(date, text, now_us, ret_us);
}

/* The Z in the name of a session means UTC. It stands only behind a time of day. */
static bool cut_utc(char *text)
{
	size_t length = strlen(text);

	if (cut_suffix(text, " UTC"))
		return true;
	return length > 1 && isdigit((unsigned char)text[length - 2]) && strchr(text, ':') && cut_suffix(text, "Z");
}

int opr_when_parse(const char *text, uint64_t now_us, uint64_t *ret_us)
{
	struct date date = { .weekday = -1 };
	char copy[128];
	int err;

	if (!copy_trimmed(text, copy, sizeof(copy)))
		return -EINVAL;
	if (*copy == '@')
		return parse_epoch(copy + 1, ret_us);
	if (!strcasecmp(copy, "now")) {
		*ret_us = now_us;
		return 0;
	}
	err = parse_relative(copy, now_us, ret_us);
	if (err != -EINVAL)
		return err;
	date.utc = cut_utc(copy);
	return parse_day(&date, copy, now_us, ret_us);
}

void opr_when_format(uint64_t us, char text[OPR_WHEN_BYTES])
{
	time_t seconds = (time_t)(us / US_PER_S);
	struct tm tm = { 0 };

	localtime_r(&seconds, &tm);
	if (!strftime(text, OPR_WHEN_BYTES, "%Y-%m-%d %H:%M:%S %Z", &tm))
		*text = '\0';
}
