# SPDX-License-Identifier: GPL-3.0-or-later
# usage: LC_ALL=C awk -v lang=js|css -f minify.awk FILE: the same script or style without comments
# and without the blanks that separate nothing. Names stay.
#
# It knows strings, templates and regular expressions. A / behind a word, a number, ) or ] divides,
# so a regular expression cannot be the body of an `if (...)`. A line that ends in what could end a
# statement stays one, unless the next goes on with an operator.

function char_at(at) { return substr(text, at, 1) }

# Appends a token. What was blank before it stays where it separates.
function put(token, first) {
	first = substr(token, 1, 1)
	if (blank && lang == "js") {
		if (last ~ /[A-Za-z0-9_$]/ && first ~ /[A-Za-z0-9_$]/ || last first ~ /^(\+\+|--|\/\/|\/\*)$/ ||
		    last ~ /[0-9]/ && first == ".")
			out = out (has_newline ? "\n" : " ")
		else if (has_newline && last ~ /[])}A-Za-z0-9_$"'`\/+-]/ && first !~ /[]),.;:?&|=*%<>}]/)
			out = out "\n"
	} else if (blank && lang == "css" && last !~ /[{};:,]/ && first !~ /[{};,]/ && last != "") {
		out = out " "
	}
	blank = has_newline = 0
	out = out token
	last = substr(token, length(token))
}

# The end of a string or regular expression that begins at `at`.
function end_of(at, quote, c, in_class) {
	while (++at <= length(text) && (c = char_at(at)) != "\n") {
		if (c == "\\")
			at++
		else if (quote == "/" && c == "[")
			in_class = 1
		else if (quote == "/" && c == "]")
			in_class = 0
		else if (c == quote && !in_class)
			return at
	}
	print "minify.awk: no end of " quote " in " FILENAME >"/dev/stderr"
	exit failed = 1
}

# The text of a template from `at` to the ` or ${ that ends it.
function end_of_template(at, c) {
	for (; at <= length(text); at++) {
		c = char_at(at)
		if (c == "\\")
			at++
		else if (c == "`")
			return at
		else if (c == "$" && char_at(at + 1) == "{")
			return at + 1
	}
	print "minify.awk: no end of ` in " FILENAME >"/dev/stderr"
	exit failed = 1
}

function is_regex() {
	return last == "" || last ~ /[(,=:[!&|?{};+*%<>~^-]/ || out ~ /(^|[^A-Za-z0-9_$.])(return|typeof|case|in|of|void|delete)$/
}

{ text = text $0 "\n" }

END {
	for (at = 1; !failed && at <= length(text); at = next_at) {
		c = char_at(at)
		two = substr(text, at, 2)
		next_at = at + 1
		if (c ~ /[ \t\n]/) {
			blank = 1
			has_newline = has_newline || c == "\n"
			continue
		}
		if (lang == "js" && two == "//") {
			next_at = at + index(substr(text, at), "\n") - 1
			continue
		}
		if (two == "/*") {
			next_at = at + index(substr(text, at), "*/") + 1
			blank = 1
			continue
		}
		if (c == "\"" || c == "'" || lang == "js" && c == "/" && is_regex())
			next_at = end_of(at, c) + 1
		else if (lang == "js" && (c == "`" || c == "}" && depth && !braces[depth])) {
			if (c == "}")
				depth--
			next_at = end_of_template(at + 1) + 1
			if (char_at(next_at - 1) == "{")
				braces[++depth] = 0
		} else if (depth && c ~ /[{}]/)
			braces[depth] += c == "{" ? 1 : -1
		put(substr(text, at, next_at - at))
	}
	if (!failed)
		print out
	exit failed
}
