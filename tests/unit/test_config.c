/* SPDX-License-Identifier: GPL-3.0-or-later */
#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

#include "libop/control/config.h"
#include "libop/base/file.h"
#include "tests/unit/test_box.h"

/* Reads `text` as a file over a config of defaults; the warnings without their path. */
static char *read_text(const struct box *box, const char *text, struct op_config *config)
{
	struct op_text warnings = { 0 }, bare = { 0 };
	char path[64];
	const char *at;

	snprintf(path, sizeof(path), "%s/opd.conf", box->path);
	assert_int_equal(op_file_publish(box->fd, "opd.conf", text, 0644), 0);
	assert_int_equal(op_config_init(config), 0);
	assert_int_equal(op_config_read(config, path, true, &warnings), 0);
	for (at = op_text_get(&warnings); *at; at = strchr(at, '\n') + 1) {
		assert_int_equal(strncmp(at, path, strlen(path)), 0);
		op_text_add_bytes(&bare, at + strlen(path), strcspn(at, "\n") + 1 - strlen(path));
	}
	op_text_free(&warnings);
	return op_text_steal(&bare);
}

static void test_defaults(void **state)
{
	struct op_config config;

	(void)state;
	assert_int_equal(op_config_init(&config), 0);
	assert_string_equal(config.session_dir, OPD_LOCALSTATEDIR "/lib/oprofile");
	assert_string_equal(config.control_socket, OP_CONTROL_SOCKET_DEFAULT);
	assert_null(config.vmlinux);
	assert_int_equal(config.ring_bytes, 0); /* auto */
	assert_int_equal(config.sideband_bytes, 0); /* auto */
	assert_int_equal(config.watermark_bytes, 0);
	assert_int_equal(config.wakeup_records, 0);
	assert_int_equal(config.visit_ms, 250);
	assert_int_equal(config.max_open_files, 0);
	assert_string_equal(config.table_dir, OPD_LOCALSTATEDIR "/cache/opd/tables");
	assert_int_equal(config.table_max_use, 256 << 20);
	op_config_free(&config);
	op_config_free(&config);
}

static void test_all_keys(void **state)
{
	struct op_config config;
	char *warnings = read_text(*state,
				   "# a comment\n"
				   "\n"
				   "SessionDir=/a/b c\n"
				   "  controlsocket =  /run/x  \n"
				   "Vmlinux=/boot/vmlinux\n"
				   "RingSize=1M\n"
				   "SidebandSize=65536\n"
				   "Watermark=8K\n"
				   "WakeupRecords=7\n"
				   "VisitInterval=100\n"
				   "MaxOpenFiles=500\n"
				   "TableDir=\n"
				   "TableMaxUse=1M\n"
				   "Vmlinux=\n"
				   "RingSize=2M",
				   &config);

	assert_string_equal(warnings, "");
	assert_string_equal(config.session_dir, "/a/b c");
	assert_string_equal(config.control_socket, "/run/x");
	assert_null(config.vmlinux);
	assert_int_equal(config.ring_bytes, 2 << 20);
	assert_int_equal(config.sideband_bytes, 65536);
	assert_int_equal(config.watermark_bytes, 8192);
	assert_int_equal(config.wakeup_records, 7);
	assert_int_equal(config.visit_ms, 100);
	assert_int_equal(config.max_open_files, 500);
	assert_null(config.table_dir);
	assert_int_equal(config.table_max_use, 1 << 20);
	free(warnings);
	op_config_free(&config);
}

/* A fault is reported with its line. Its key keeps the default, and the rest is read. */
static void test_warnings(void **state)
{
	static const char *const cases[][2] = {
		{ "NoSuchKey=1\n", ":1: unknown key 'NoSuchKey'\n" },
		{ "SesionDir=/x\n", ":1: unknown key 'SesionDir'; did you mean 'SessionDir'?\n" },
		{ "\nnonsense\n", ":2: 'nonsense' is not Key=value\n" },
		{ "=5\n", ":1: unknown key ''\n" },
		{ "SessionDir=relative\n", ":1: SessionDir: 'relative' is not an absolute path\n" },
		{ "SessionDir=\n", ":1: SessionDir: '' is not an absolute path\n" },
		{ "RingSize=100000\n", ":1: RingSize: 100000 is not a power of two of pages\n" },
		{ "RingSize=8K\n", ":1: RingSize: 8K is not within 16384 to 268435456\n" },
		{ "RingSize=16384G\n", ":1: RingSize: 16384G is not within 16384 to 268435456\n" },
		{ "RingSize=x\n", ":1: RingSize: 'x' is not a number\n" },
		{ "VisitInterval=9\n", ":1: VisitInterval: 9 is not within 10 to 10000\n" },
		{ "VisitInterval=1s\n", ":1: VisitInterval: '1s' is not a number\n" },
		{ "RingSize=automatic\n", ":1: RingSize: 'automatic' is not a number\n" },
		{ "SidebandSize=much\n", ":1: SidebandSize: 'much' is not a number\n" },
	};

	for (size_t i = 0; i < op_array_size(cases); i++) {
		struct op_text text = { 0 };
		struct op_config config;
		char *warnings;

		op_text_printf(&text, "%sMaxOpenFiles=77\n", cases[i][0]);
		warnings = read_text(*state, op_text_get(&text), &config);
		assert_string_equal(warnings, cases[i][1]);
		assert_int_equal(config.max_open_files, 77);
		assert_int_equal(config.ring_bytes, 0);
		assert_int_equal(config.visit_ms, 250);
		assert_int_equal(config.watermark_bytes, 0);
		assert_string_equal(config.session_dir, OPD_LOCALSTATEDIR "/lib/oprofile");
		free(warnings);
		op_text_free(&text);
		op_config_free(&config);
	}
}

/* The watermark is compared with the ring only when the size of the ring is known. */
static void test_ring_size(void **state)
{
	static const struct {
		const char *text, *warnings;
		uint64_t ring_bytes, watermark_bytes;
	} cases[] = {
		{ "RingSize=AUTO\nWatermark=1M\n", "", 0, 1 << 20 },
		{ "RingSize=64K\nRingSize=auto\nWatermark=1M\n", "", 0, 1 << 20 },
		{ "RingSize=auto\nRingSize=1M\nWatermark=1M\n", "", 1 << 20, 1 << 20 },
		{ "RingSize=256K\nWatermark=1M\n", ": Watermark is larger than RingSize, a quarter of the ring is used\n",
		  256 << 10, 0 },
	};

	for (size_t i = 0; i < op_array_size(cases); i++) {
		struct op_config config;
		char *warnings = read_text(*state, cases[i].text, &config);

		assert_string_equal(warnings, cases[i].warnings);
		assert_int_equal(config.ring_bytes, cases[i].ring_bytes);
		assert_int_equal(config.watermark_bytes, cases[i].watermark_bytes);
		free(warnings);
		op_config_free(&config);
	}
}

static void test_long_socket_path(void **state)
{
	struct op_text text = { 0 };
	struct op_config config;
	char *warnings;

	op_text_add(&text, "ControlSocket=/");
	for (size_t i = 0; i < 107; i++)
		op_text_add_char(&text, 'x');
	warnings = read_text(*state, op_text_get(&text), &config);
	assert_string_equal(warnings, ":1: ControlSocket: the path is longer than 107 bytes\n");
	assert_string_equal(config.control_socket, OP_CONTROL_SOCKET_DEFAULT);
	free(warnings);
	op_config_free(&config);
	op_text_truncate(&text, text.length - 1);
	warnings = read_text(*state, op_text_get(&text), &config);
	assert_string_equal(warnings, "");
	assert_int_equal(strlen(config.control_socket), 107);
	free(warnings);
	op_config_free(&config);
	op_text_free(&text);
}

static void test_missing_file(void **state)
{
	struct op_text warnings = { 0 };
	struct op_config config;

	(void)state;
	assert_int_equal(op_config_init(&config), 0);
	assert_int_equal(op_config_read(&config, "/nonexistent/opd.conf", false, &warnings), 0);
	assert_int_equal(op_config_read(&config, "/nonexistent/opd.conf", true, &warnings), -ENOENT);
	assert_int_equal(op_config_read(&config, "/", false, &warnings), -EISDIR);
	assert_string_equal(op_text_get(&warnings), "");
	op_config_free(&config);
}

static void test_path(void **state)
{
	bool is_explicit;

	(void)state;
	unsetenv(OP_CONFIG_ENV);
	assert_string_equal(op_config_path(NULL, &is_explicit), OP_CONFIG_PATH_DEFAULT);
	assert_false(is_explicit);
	setenv(OP_CONFIG_ENV, "", 1);
	assert_string_equal(op_config_path(NULL, &is_explicit), OP_CONFIG_PATH_DEFAULT);
	setenv(OP_CONFIG_ENV, "/env", 1);
	assert_string_equal(op_config_path(NULL, &is_explicit), "/env");
	assert_true(is_explicit);
	assert_string_equal(op_config_path("/option", &is_explicit), "/option");
	assert_true(is_explicit);
	unsetenv(OP_CONFIG_ENV);
}

/* A file of the source tree; automake sets srcdir for its tests. */
static char *read_source(const char *name)
{
	const char *srcdir = getenv("srcdir");
	struct op_text path = { 0 };
	char *text = NULL;

	op_text_printf(&path, "%s/%s", srcdir ? srcdir : ".", name);
	if (op_file_read(AT_FDCWD, op_text_get(&path), OP_FILE_MAX_BYTES, &text) < 0)
		fail_msg("cannot read %s", op_text_get(&path));
	op_text_free(&path);
	return text;
}

/*
 * The example file and the manual page have every key of the table in config.c, with its default
 * unless that is a path.
 */
static void test_keys_are_documented(void **state)
{
	char *example = read_source("init/opd.conf.in"), *manual = read_source("doc/opd.conf.5");
	char *code = read_source("libop/control/config.c");
	static const char row[] = "\n\t{ \"";
	size_t nr_keys = 0;

	(void)state;
	for (const char *at = code; (at = strstr(at, row)); nr_keys++) {
		struct op_text line = { 0 };
		const char *key = at + strlen(row);
		int key_length = (int)strcspn(key, "\"");

		op_text_printf(&line, "\n#%.*s=", key_length, key);
		at = key + key_length + strlen("\", ");
		if (*at == '"')
			op_text_printf(&line, "%.*s\n", (int)strcspn(at + 1, "\""), at + 1);
		if (!strstr(example, op_text_get(&line)))
			fail_msg("the example has no %s", op_text_get(&line));
		op_text_truncate(&line, 0);
		op_text_printf(&line, "\n.BR %.*s =", key_length, key);
		if (!strstr(manual, op_text_get(&line)))
			fail_msg("the manual has no %s", op_text_get(&line));
		op_text_free(&line);
	}
	assert_true(nr_keys > 10);
	free(example);
	free(manual);
	free(code);
}

/*
 * Drop-ins are read in the order of their names; each fault has its own path and line; files that
 * are not *.conf are not read. A byte order mark is skipped at the begin of a file and nowhere
 * else.
 */
static void test_drop_ins(void **state)
{
	const struct box *box = *state;
	struct op_text warnings = { 0 };
	struct op_config config;
	char path[64], dir[72], wanted[256];
	int fd;

	snprintf(path, sizeof(path), "%s/opd.conf", box->path);
	snprintf(dir, sizeof(dir), "%s.d", path);
	assert_int_equal(op_file_make_dirs(dir), 0);
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(op_file_publish(fd, "20-b.conf", "VisitInterval=300\nProfileOnStart=No\n\nWhat=1\n", 0644), 0);
	assert_int_equal(op_file_publish(fd, "10-a.conf", "VisitInterval=200\nSessionKeep=1h\nProfileOnStart=maybe\n", 0644), 0);
	assert_int_equal(op_file_publish(fd, "30-c.conf.old", "VisitInterval=400\n", 0644), 0);
	assert_int_equal(op_config_init(&config), 0);
	assert_int_equal(config.profile_on_start, 1);
	assert_int_equal(op_config_read(&config, path, false, &warnings), 0);
	assert_int_equal(config.visit_ms, 300);
	assert_int_equal(config.session_keep_us, 3600ull * 1000000);
	assert_int_equal(config.profile_on_start, 0);
	snprintf(wanted, sizeof(wanted), "%s/10-a.conf:3: ProfileOnStart: 'maybe' is neither yes nor no\n", dir);
	assert_non_null(strstr(op_text_get(&warnings), wanted));
	snprintf(wanted, sizeof(wanted), "%s/20-b.conf:4: unknown key 'What'\n", dir);
	assert_non_null(strstr(op_text_get(&warnings), wanted));
	assert_int_equal(op_config_read(&config, path, true, &warnings), -ENOENT);
	op_text_truncate(&warnings, 0);
	assert_int_equal(op_file_publish(fd, "20-b.conf", "\xef\xbb\xbfVisitInterval=500\n\xef\xbb\xbfVisitInterval=600\n", 0644),
			 0);
	assert_int_equal(op_file_publish(fd, "10-a.conf", "", 0644), 0);
	assert_int_equal(op_file_publish(AT_FDCWD, path, "\xef\xbb\xbf# a comment\nRingSize=1M\n", 0644), 0);
	assert_int_equal(op_config_read(&config, path, true, &warnings), 0);
	assert_int_equal(config.visit_ms, 500);
	assert_int_equal(config.ring_bytes, 1 << 20);
	snprintf(wanted, sizeof(wanted), "%s/20-b.conf:2: unknown key '\xef\xbb\xbfVisitInterval'; "
		 "did you mean 'VisitInterval'?\n", dir);
	assert_string_equal(op_text_get(&warnings), wanted);
	op_text_free(&warnings);
	op_config_free(&config);
	close(fd);
}

static void test_change(void **state)
{
	struct op_config config, fresh;
	struct op_text keys = { 0 };

	(void)state;
	assert_int_equal(op_config_init(&config), 0);
	assert_int_equal(op_config_init(&fresh), 0);
	op_config_waiting(&config, &fresh, &keys);
	assert_int_equal(keys.length, 0);
	free(fresh.session_dir);
	fresh.session_dir = strdup("/elsewhere");
	fresh.vmlinux = strdup("/vmlinux");
	fresh.visit_ms = 17;
	fresh.session_keep_us = 18;
	op_config_waiting(&config, &fresh, &keys);
	assert_string_equal(op_text_get(&keys), "SessionDir, Vmlinux, VisitInterval");
	op_config_adopt(&config, &fresh);
	assert_int_equal(config.session_keep_us, 18);
	assert_int_equal(config.visit_ms, 250);
	assert_null(config.vmlinux);
	op_text_free(&keys);
	op_config_free(&config);
	op_config_free(&fresh);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		box_test(test_all_keys),
		box_test(test_warnings),
		box_test(test_ring_size),
		box_test(test_long_socket_path),
		box_test(test_drop_ins),
		cmocka_unit_test(test_change),
		cmocka_unit_test(test_missing_file),
		cmocka_unit_test(test_path),
		cmocka_unit_test(test_keys_are_documented),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
