#!/bin/sh
# SPDX-License-Identifier: GPL-3.0-or-later
# usage: embed.sh DIRECTORY: writes C strings of the style, the script and the body of the page.
# Leaves out indentation and lines of comment, which a browser does not need.
set -eu

embed() {
	printf '\nconst char %s[] =\n' "$1"
	sed -e 's/^[ 	]*//' -e '/^\/\//d' -e '/^$/d' -e 's/\\/\\\\/g' -e 's/"/\\"/g' -e 's/^/	"/' -e 's/$/\\n"/' "$2"
	printf '\t;\n'
}

printf '/* Made by embed.sh. */\n#include "tools/page/web.h"\n'
embed opr_page_style "$1/page.css"
embed opr_page_script "$1/page.js"
embed opr_page_body "$1/page.html"
