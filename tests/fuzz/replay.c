/* SPDX-License-Identifier: GPL-3.0-or-later */
/*
 * replay DIRECTORY: runs a fuzz target on every file of a corpus, without libFuzzer. So `make
 * check` can do it with every compiler.
 */
#include <dirent.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t nr_bytes);

static int replay(const char *directory, const char *name)
{
	static uint8_t bytes[1 << 20];
	char path[4096];
	size_t nr_bytes;
	FILE *file;

	if (snprintf(path, sizeof(path), "%s/%s", directory, name) >= (int)sizeof(path))
		return -1;
	file = fopen(path, "rb");
	if (!file)
		return -1;
	nr_bytes = fread(bytes, 1, sizeof(bytes), file);
	fclose(file);
	LLVMFuzzerTestOneInput(bytes, nr_bytes);
	return 0;
}

int main(int argc, char **argv)
{
	unsigned int nr_files = 0;
	struct dirent *entry;
	DIR *dir = argc == 2 ? opendir(argv[1]) : NULL;

	if (!dir)
		return 2;
	while ((entry = readdir(dir))) {
		if (entry->d_name[0] == '.')
			continue;
		if (replay(argv[1], entry->d_name) < 0)
			return 1;
		nr_files++;
	}
	closedir(dir);
	printf("%u inputs\n", nr_files);
	return nr_files ? 0 : 1;
}
