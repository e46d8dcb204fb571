/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/common/when.h"

#include <ctype.h>
#include <errno.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "libop/base/parse.h"

#define US_PER_S   1000000ull
#define ZONE_BYTES 64
#define ZONE_DIR   "/usr/share/zoneinfo/"

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

/* False: the text is not relative. */
static bool parse_relative(char *text, uint64_t now_us, uint64_t *ret_us, int *ret_err)
{
	if (*text == '-' || *text == '+')
		*ret_err = add_span(now_us, text + 1, *text == '+', ret_us);
	else if (cut_suffix(text, " ago"))
		*ret_err = add_span(now_us, text, false, ret_us);
	else if (cut_suffix(text, " left"))
		*ret_err = add_span(now_us, text, true, ret_us);
	else
		return false;
	return true;
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
	int64_t offset_s;       /* of the zone, east of UTC; with utc */
	int is_summer;          /* -1: not given; else the zone's name tells */
	int weekday;            /* -1: not given */
	char zone[ZONE_BYTES];  /* of the time zone database; "": the local one */
};

static bool of_day(struct date *date, uint64_t now_us, int days)
{
	time_t now = (time_t)(now_us / US_PER_S) + (time_t)date->offset_s;

	if (!(date->utc ? gmtime_r(&now, &date->tm) : localtime_r(&now, &date->tm)))
		return false;
	date->tm.tm_mday += days;
	date->tm.tm_hour = date->tm.tm_min = date->tm.tm_sec = 0;
	return true;
}

static int seconds_of(const struct date *date, const struct tm *wanted, uint64_t *ret_us)
{
	struct tm tm = *wanted;
	time_t seconds;

	tm.tm_isdst = date->is_summer;
	seconds = date->utc ? timegm(&tm) - (time_t)date->offset_s : mktime(&tm);
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
	} else if (!of_day(date, now_us, 0) || !take_time(&at, date)) {
		date->tm = today;
		return -EINVAL;
	}
	if (*at)
		return -EINVAL;
	if (!is_a_time(&date->tm))
		return -ERANGE;
	return seconds_of(date, &date->tm, ret_us);
}

static const struct {
	const char *word;
	int days;
} days[] = { { "yesterday", -1 }, { "today", 0 }, { "tomorrow", 1 } };

/* A day by its word, alone or with a time of day. */
static int parse_word(struct date *date, const char *at, int nr_days, uint64_t now_us, uint64_t *ret_us)
{
	if (!of_day(date, now_us, nr_days))
		return -ERANGE;
	if (*at && !(take_char(&at, ' ') && take_time(&at, date) && !*at))
		return -EINVAL;
	return date->tm.tm_hour < 24 && date->tm.tm_min < 60 && date->tm.tm_sec <= 60 ? seconds_of(date, &date->tm, ret_us)
										      : -ERANGE;
}

static int parse_day(struct date *date, const char *text, uint64_t now_us, uint64_t *ret_us)
{
	for (size_t i = 0; i < op_array_size(days); i++) {
		size_t length = strlen(days[i].word);

		if (!strncasecmp(text, days[i].word, length) && (!text[length] || text[length] == ' '))
			return parse_word(date, text + length, days[i].days, now_us, ret_us);
	}
	return parse_date(date, text, now_us, ret_us);
}

/* ---- time zones ---- */

/* UTC, or the Z in the name of a session, which stands only behind a time of day. */
static bool cut_utc(char *text)
{
	size_t length = strlen(text);

	if (cut_suffix(text, " UTC"))
		return true;
	return length > 1 && isdigit((unsigned char)text[length - 2]) && strchr(text, ':') && cut_suffix(text, "Z");
}

/* "+02:00" or "-0330" behind a time of day. */
static bool cut_offset(char *text, int64_t *ret_offset_s)
{
	const char *time = strchr(text, ':');
	char *sign = time ? strpbrk(text + (time - text), "+-") : NULL;
	const char *at = sign ? sign + 1 : NULL;
	int hours, minutes;

	if (!sign || take_digits(&at, 2, &hours) != 2 || (*at == ':' && !at++) || take_digits(&at, 2, &minutes) != 2 || *at ||
	    hours > 24 || minutes > 59)
		return false;
	*ret_offset_s = (*sign == '-' ? -60 : 60) * (60 * hours + minutes);
	while (sign > text && sign[-1] == ' ')
		sign--;
	*sign = '\0';
	return true;
}

/* Whether the time zone database has a zone. The word comes from the user, and stays below it. */
static bool is_zone(const char *word)
{
	char path[sizeof(ZONE_DIR) + ZONE_BYTES];
	size_t length = strlen(word);

	if (!isalpha((unsigned char)*word) || length >= ZONE_BYTES || strstr(word, "..") ||
	    strspn(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_+-/") != length || word[length - 1] == '/')
		return false;
	snprintf(path, sizeof(path), ZONE_DIR "%s", word);
	return !access(path, R_OK);
}

/* A name of the local time: "CET" is not in summer, "CEST" is. */
static bool is_local(const char *word, int *ret_is_summer)
{
	tzset();
	for (int i = 0; i < 2; i++) {
		if (*tzname[i] && !strcasecmp(word, tzname[i])) {
			*ret_is_summer = i;
			return true;
		}
	}
	return false;
}

static void cut_zone(struct date *date, char *text)
{
	char *blank = strrchr(text, ' ');

	date->utc = cut_utc(text) || cut_offset(text, &date->offset_s);
	if (date->utc || !blank)
		return;
	if (is_local(blank + 1, &date->is_summer)) {
		*blank = '\0';
	} else if (is_zone(blank + 1)) {
		snprintf(date->zone, sizeof(date->zone), "%s", blank + 1);
		*blank = '\0';
	}
}

static void set_zone(const char *zone)
{
	if (zone)
		setenv("TZ", zone, 1);
	else
		unsetenv("TZ");
	tzset();
}

/* The C library knows one zone at a time: the local one is put back. */
static int parse_in_zone(struct date *date, const char *text, uint64_t now_us, uint64_t *ret_us)
{
	const char *own = getenv("TZ");
	char *kept = own ? strdup(own) : NULL;
	int err;

	if (own && !kept)
		return -ENOMEM;
	set_zone(date->zone);
	err = parse_day(date, text, now_us, ret_us);
	set_zone(kept);
	free(kept);
	return err;
}

int opr_when_parse(const char *text, uint64_t now_us, uint64_t *ret_us)
{
	struct date date = { .weekday = -1, .is_summer = -1 };
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
	if (parse_relative(copy, now_us, ret_us, &err))
		return err;
	cut_zone(&date, copy);
	return *date.zone ? parse_in_zone(&date, copy, now_us, ret_us) : parse_day(&date, copy, now_us, ret_us);
}

void opr_when_format(uint64_t us, char text[OPR_WHEN_BYTES])
{
	time_t seconds = (time_t)(us / US_PER_S);
	struct tm tm = { 0 };

	localtime_r(&seconds, &tm);
	if (!strftime(text, OPR_WHEN_BYTES, "%Y-%m-%d %H:%M:%S %Z", &tm))
		*text = '\0';
}
