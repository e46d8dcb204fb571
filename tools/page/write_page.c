/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/page/write_page.h"

#include <sha256.h>
#include <stdio.h>
#include <string.h>

#include "libop/base/sys.h"
#include "tools/page/web.h"

static const char start[] = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
			    "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; base-uri 'none'; "
			    "form-action 'none'; style-src ";

/* A hash as Content-Security-Policy has it: base64 of 32 bytes, the last character is a '='. */
static void write_hash(const char *text, FILE *out)
{
	static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	uint8_t hash[SHA256_DIGEST_LENGTH + 1] = { 0 };
	SHA2_CTX context;

	SHA256Init(&context);
	SHA256Update(&context, (const uint8_t *)text, strlen(text));
	SHA256Final(hash, &context);
	fputs("'sha256-", out);
	for (size_t i = 0; i < SHA256_DIGEST_LENGTH; i += 3) {
		uint32_t bits = (uint32_t)hash[i] << 16 | (uint32_t)hash[i + 1] << 8;
		size_t nr_digits = i + 3 > SHA256_DIGEST_LENGTH ? 3 : 4;

		if (nr_digits == 4)
			bits |= hash[i + 2];
		for (size_t digit = 0; digit < nr_digits; digit++)
			fputc(digits[bits >> (18 - 6 * digit) & 63], out);
	}
	fputs("='", out);
}

void opr_page_write(const struct op_text *json, FILE *out)
{
	fputs(start, out);
	write_hash(opr_page_style, out);
	fputs("; script-src ", out);
	write_hash(opr_page_script, out);
	fputs("\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>opd</title>\n<style>", out);
	fputs(opr_page_style, out);
	fputs("</style>\n</head>\n<body>\n", out);
	fputs(opr_page_body, out);
	fputs("<script type=\"application/json\" id=\"data\">", out);
	fputs(op_text_get(json), out);
	fputs("</script>\n<script>", out);
	fputs(opr_page_script, out);
	fputs("</script>\n</body>\n</html>\n", out);
}

bool opr_page_is(int fd)
{
	char found[sizeof(start) - 1];

	return op_sys_read(fd, found, sizeof(found)) == (ssize_t)sizeof(found) && !memcmp(found, start, sizeof(found));
}
