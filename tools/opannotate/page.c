/* SPDX-License-Identifier: GPL-3.0-or-later */
#include "tools/opannotate/page.h"

#include "libop/base/sys.h"

/* How a page of opannotate begins. */
#define MARK "<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8><title>opannotate</title>\n"

static const char head[] = MARK
	"<style>\n"
	"body { font: 14px/1.35 sans-serif; margin: 1em 1.5em; color: #1c1c1c; background: #fff }\n"
	"h1 { font: 600 15px/1.4 monospace; overflow-wrap: anywhere }\n"
	"h2 { font-size: 16px; margin: 1.6em 0 .4em; border-bottom: 1px solid #bbb }\n"
	"h3 { font: 600 13px/1.4 monospace; margin: .6em 0 .2em; overflow-wrap: anywhere }\n"
	".t { font-weight: normal; color: #666; margin-left: .8em }\n"
	"table { border-collapse: collapse } td { padding: 0 .5em 0 0; vertical-align: top; white-space: nowrap }\n"
	"pre { margin: 0; font: 12px/1.45 monospace; tab-size: 8 }\n"
	".n, .a { font: 12px/1.45 monospace; text-align: right; color: #444 } .a { color: #888; user-select: none }\n"
	".pair { display: flex; gap: 1em; align-items: flex-start }\n"
	".left, .right { flex: 1 1 50%; min-width: 0; overflow: auto; max-height: 92vh; border: 1px solid #ddd; padding: .3em }\n"
	".left table, .right table { min-width: 100% } .left td:last-child, .right td:last-child { width: 100% }\n"
	".gap td { color: #999 } tr.m, tr:target { outline: 2px solid #2a6fdb; outline-offset: -2px }\n"
	"[data-l] { cursor: pointer }\n"
	".h1 { background: #fff8e6 } .h2 { background: #fff1cc } .h3 { background: #ffe9b3 } .h4 { background: #ffdf99 }\n"
	".h5 { background: #ffd080 } .h6 { background: #ffba6b } .h7 { background: #ffa057 } .h8 { background: #ff8547 }\n"
	".h9 { background: #ff6b3d } .h5 td, .h6 td, .h7 td, .h8 td, .h9 td { color: #1c1c1c }\n"
	"</style></head><body>\n";

static const char tail[] = "<script>\n"
			   "document.addEventListener('click', e => {\n"
			   "  const row = e.target.closest('[data-l]');\n"
			   "  if (!row) return;\n"
			   "  document.querySelectorAll('tr.m').forEach(r => r.classList.remove('m'));\n"
			   "  const same = document.querySelectorAll(`[data-l='${row.dataset.l}']`);\n"
			   "  same.forEach(r => r.classList.add('m'));\n"
			   "  const other = [...same].find(r => r.closest('.left, .right') !== row.closest('.left, .right'));\n"
			   "  if (other) other.scrollIntoView({ block: 'nearest' });\n"
			   "});\n</script>\n</body></html>\n";

void opr_annotate_page_begin(FILE *out)
{
	fputs(head, out);
}

void opr_annotate_page_end(FILE *out)
{
	fputs(tail, out);
}

bool opr_annotate_page_is(int fd)
{
	char start[sizeof(MARK) - 1];

	return op_sys_read(fd, start, sizeof(start)) == (ssize_t)sizeof(start) && !memcmp(start, MARK, sizeof(start));
}
