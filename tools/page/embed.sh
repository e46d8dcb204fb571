#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# usage: embed.sh DIRECTORY: writes C strings of the style, the script and the body of the page,
# which lie in DIRECTORY/web, without comments, blanks and quotes that separate nothing.
set -eu
LC_ALL=C
export LC_ALL
here=$1

embed() {
	printf '\nconst char %s[] =\n' "$1"
	sed -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/??/?\\?/g' -e 's/^/	"/' -e 's/$/\\n"/'
	printf '	;\n'
}

printf '/* Made by embed.sh. */\n#include "tools/page/web.h"\n'
"${AWK:-awk}" -v lang=css -f "$here/minify.awk" "$here/web/page.css" | embed opr_page_style
"${AWK:-awk}" -v lang=js -f "$here/minify.awk" "$here/web/page.js" | embed opr_page_script
sed -e 's/^[ 	]*//' -e '/^$/d' -e 's/="\([A-Za-z0-9-][A-Za-z0-9-]*\)"/=\1/g' "$here/web/page.html" | embed opr_page_body
