// SPDX-License-Identifier: GPL-3.0-or-later
/*
 * Keeps random bytes in the frame of main while it works below it, until it is killed. It prints
 * them when it begins.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

static volatile uint64_t sink;

__attribute__((noinline, noclone)) static void work(const unsigned char *bytes)
{
	uint64_t x = bytes[0];

	for (unsigned int i = 0; i < 100000; i++)
		x = x * 6364136223846793005u + 1442695040888963407u;
	sink = x;
}

int main(void)
{
	unsigned char secret[1024];
	int fd = open("/dev/urandom", O_RDONLY);

	if (fd < 0 || read(fd, secret, sizeof(secret)) != (ssize_t)sizeof(secret))
		return 1;
	for (size_t i = 0; i < sizeof(secret); i++)
		printf("%02x", secret[i]);
	printf("\n");
	fflush(stdout);
	for (;;)
		work(secret);
}
