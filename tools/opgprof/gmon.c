/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opgprof/gmon.h"

#include <errno.h>

#include "libop/base/sys.h"

#define MAGIC         "gmon"
#define FILE_VERSION  1
#define SPARE_BYTES   12
#define TAG_HISTOGRAM 0
#define TAG_ARC       1
#define RATE          1
#define UNIT          "samples" /* in 15 bytes, then its abbreviation */
#define UNIT_BYTES    15
#define ABBREVIATION  '1'
#define BINS_MAX      (256u << 20)

struct histogram {
	uint64_t low, high, bin_bytes;
	uint16_t *bins;
	uint32_t nr_bins;
};

/* In the host's byte order, as a program that profiles itself writes it. */
static void put(FILE *out, const void *value, size_t nr_bytes)
{
	fwrite(value, 1, nr_bytes, out);
}

static void put_u32(FILE *out, uint32_t value)
{
	put(out, &value, sizeof(value));
}

static void put_u64(FILE *out, uint64_t value)
{
	put(out, &value, sizeof(value));
}

bool opr_gmon_is(int fd)
{
	char start[sizeof(MAGIC) - 1];

	return op_sys_read(fd, start, sizeof(start)) == (ssize_t)sizeof(start) && !memcmp(start, MAGIC, sizeof(start));
}

static int measure(const struct opr_gmon *gmon, struct histogram *histogram)
{
	uint64_t low = UINT64_MAX, high = 0, bits = 0;

	for (size_t i = 0; i < gmon->nr_samples; i++) {
		low = op_min_u64(low, gmon->samples[i].vma);
		high = op_max_u64(high, gmon->samples[i].vma);
		bits |= gmon->samples[i].vma;
	}
	if (!gmon->nr_samples)
		low = 0;
	histogram->bin_bytes = bits & 3 ? 2 : 8;
	histogram->low = low - low % histogram->bin_bytes;
	if ((high - histogram->low) / histogram->bin_bytes >= BINS_MAX)
		return -EFBIG;
	histogram->nr_bins = (uint32_t)((high - histogram->low) / histogram->bin_bytes + 1);
	histogram->high = histogram->low + histogram->nr_bins * histogram->bin_bytes;
	return 0;
}

static size_t fill(const struct opr_gmon *gmon, struct histogram *histogram)
{
	size_t nr_full = 0;

	for (size_t i = 0; i < gmon->nr_samples; i++) {
		uint16_t *bin = &histogram->bins[(gmon->samples[i].vma - histogram->low) / histogram->bin_bytes];
		uint64_t count = op_min_u64(gmon->samples[i].count, UINT64_MAX - *bin) + *bin;

		nr_full += count > UINT16_MAX && *bin < UINT16_MAX;
		*bin = (uint16_t)op_min_u64(count, UINT16_MAX);
	}
	return nr_full;
}

static void write_histogram(FILE *out, const struct histogram *histogram)
{
	char unit[UNIT_BYTES + 1] = UNIT;

	unit[UNIT_BYTES] = ABBREVIATION;
	fputc(TAG_HISTOGRAM, out);
	put_u64(out, histogram->low);
	put_u64(out, histogram->high);
	put_u32(out, histogram->nr_bins);
	put_u32(out, RATE);
	put(out, unit, sizeof(unit));
	put(out, histogram->bins, histogram->nr_bins * sizeof(*histogram->bins));
}

static void write_arcs(FILE *out, const struct opr_gmon *gmon)
{
	for (size_t i = 0; i < gmon->nr_arcs; i++) {
		fputc(TAG_ARC, out);
		put_u64(out, gmon->arcs[i].from);
		put_u64(out, gmon->arcs[i].to);
		put_u32(out, (uint32_t)op_min_u64(gmon->arcs[i].count, UINT32_MAX));
	}
}

int opr_gmon_write(FILE *out, const struct opr_gmon *gmon, size_t *ret_nr_full)
{
	static const char spare[SPARE_BYTES];
	struct histogram histogram = { 0 };
	int err = measure(gmon, &histogram);

	if (err)
		return err;
	histogram.bins = calloc(histogram.nr_bins, sizeof(*histogram.bins));
	if (!histogram.bins)
		return -ENOMEM;
	*ret_nr_full = fill(gmon, &histogram);
	put(out, MAGIC, strlen(MAGIC));
	put_u32(out, FILE_VERSION);
	put(out, spare, sizeof(spare));
	write_histogram(out, &histogram);
	write_arcs(out, gmon);
	free(histogram.bins);
	return 0;
}
