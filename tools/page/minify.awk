# SPDX-License-Identifier: GPL-3.0-or-later
# usage: LC_ALL=C awk -v lang=js|css -f minify.awk FILE: the same script or style without comments
# and without the blanks that separate nothing. Names that the script declares become short. Those in
# a comment that begins with `// kept:` become $a, $b ... in their order, so that tests find them.
# Properties with long names that are used often get names, too: `x.length` becomes `x[_a]`.
#
# It knows strings, templates and regular expressions. A / behind a word, a number, ) or ] divides,
# so a regular expression cannot be the body of an `if (...)`. A line that ends in what could end a
# statement stays one, unless the next goes on with an operator. No statement is empty, and no
# object has methods in the short form.

function char_at(at) { return substr(text, at, 1) }

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
	return !nr || token[nr] ~ /[(,=:[!&|?{};+*%<>~^-]$/ || token[nr] ~ /^(return|typeof|case|in|of|void|delete)$/
}

# Splits the text: token[1] to token[nr]; gap[i] is 1 where a blank stands before one, 2 for a line.
function split_text(at, next_at, c, two, blank, depth, braces) {
	for (at = 1; !failed && at <= length(text); at = next_at) {
		c = char_at(at)
		two = substr(text, at, 2)
		next_at = at + 1
		if (c ~ /[ \t\n]/) {
			blank = c == "\n" || blank == 2 ? 2 : 1
			continue
		}
		if (lang == "js" && two == "//") {
			next_at = at + index(substr(text, at), "\n") - 1
			if (substr(text, at, 9) == "// kept: ")
				keep(substr(text, at + 9, next_at - at - 9))
			continue
		}
		if (two == "/*") {
			next_at = at + index(substr(text, at), "*/") + 1
			blank = blank ? blank : 1
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
		else if (lang == "js" && match(substr(text, at, 80), /^[A-Za-z0-9_$]+/))
			next_at = at + RLENGTH
		token[++nr] = substr(text, at, next_at - at)
		gap[nr] = blank
		blank = 0
	}
}

function keep(names, list, nr_list, i) {
	nr_list = split(names, list, " ")
	for (i = 1; i <= nr_list; i++)
		kept[list[i]] = "$" substr(letters, ++nr_kept, 1)
	if (nr_kept > length(letters)) {
		print "minify.awk: too many names are kept" >"/dev/stderr"
		exit failed = 1
	}
}

function is_word(i) { return token[i] ~ /^[A-Za-z_$][A-Za-z0-9_$]*$/ }

# The token that closes what token i opens.
function close_of(i, depth) {
	for (; i <= nr; i++) {
		depth += token[i] ~ /^([({[]|`.*\$\{)$/ ? 1 : token[i] ~ /^([])}]|}.*`)$/ ? -1 : 0
		if (!depth)
			return i
	}
}

# The words from token `from` to token `to` that a pattern or a list of parameters declares.
function declare(from, to) {
	for (; from < to; from++)
		if (is_word(from) && token[from - 1] ~ /^[(,{:.[]$/ && token[from + 1] != ":")
			declared[token[from]] = 1
}

# The words that a declaration outside of all blocks has: every statement can use them.
function declare_for_all(i, last) {
	last = token[i + 1] ~ /^[{[]$/ ? close_of(i + 1) : i + 1
	for (; i <= last; i++)
		if (is_word(i))
			for_all[token[i]] = 1
}

# Finds which words are keys of objects, and which the script declares, and where a declaration
# follows another one: joins. is_key: 1, or 2 where `{ word }` is both. part: the statement, of those
# outside of all blocks, that a token belongs to.
function find_names(i, depth, opened, declares, last, next_one, nr_parts) {
	depth = 0
	for (i = 1; i <= nr; i++) {
		last = token[i - 1]
		next_one = token[i + 1]
		if (!depth && (last == ";" || last == "}" && gap[i] == 2))
			nr_parts++
		part[i] = nr_parts + 0
		if (token[i] ~ /^[])}]/)
			depth--
		if (!depth && (token[i] ~ /^(let|const|function)$/ || token[i] == "," && declares[0]))
			declare_for_all(i)
		if (token[i] ~ /^([({[]|.*\$\{)$/) {
			declares[++depth] = 0
			opened[depth] = token[i] != "{" ? "(" : last ~ /^([(,=:?&|.[]|return|let|const)$/ ? "object" : "block"
		}
		if (token[i] == "(" && (token[close_of(i) + 1] token[close_of(i) + 2] == "=>" || token[i - 2] == "function"))
			declare(i + 1, close_of(i))
		if (last ~ /^(let|const)$/ && token[i] ~ /^[{[]$/)
			declare(i + 1, close_of(i))
		if (token[i] ~ /^(let|const)$/ && opened[depth] != "(")
			declares[depth] = 1
		else if (token[i] == ";")
			declares[depth] = joins[i] = declares[depth] && next_one ~ /^(let|const)$/
		if (!is_word(i))
			continue
		if (last == "." && token[i - 2] != ".")
			is_key[i] = 1
		else if (opened[depth] == "object" && last ~ /^[{,]$/)
			is_key[i] = next_one == ":" ? 1 : 2
		else if (last ~ /^(let|const|function)$/ || !depth && last == "," || next_one token[i + 2] == "=>" ||
			 opened[depth] == "block" && last == "," && next_one == "=" && token[i + 2] != "=")
			declared[token[i]] = 1
	}
}

# Gives a name to a word in all of its statements. False: another word has it in one of them.
function take(name, word, i, list, nr_list) {
	nr_list = split(parts[word] (word in for_all ? " all" : ""), list, " ")
	for (i = 1; i <= nr_list; i++)
		if ((name, list[i]) in taken)
			return 0
	for (i = 1; i <= nr_list; i++)
		taken[name, list[i]] = 1
	return 1
}

# The most frequent names get the shortest names. Two words may get the same one where no statement
# has both.
function shorten(i, word, best, weight, name, nr_names, undeclared) {
	for (word in kept)
		if (length(kept[word]) < length(word))
			short[word] = kept[word]
	kept["of"] = "of" # a word of the language, too
	for (i = 1; i <= nr; i++) {
		if (!is_word(i) || is_key[i] == 1)
			continue
		if (!(token[i] in declared))
			undeclared[token[i]] = 1
		else if (!((token[i], part[i]) in seen)) {
			seen[token[i], part[i]] = 1
			parts[token[i]] = parts[token[i]] " " part[i]
		}
		if (token[i] in declared && !(token[i] in kept) && length(token[i]) > 1)
			weight[token[i]]++
	}
	for (word in parts)
		if (!(word in weight))
			take(word, word)
	for (;;) {
		best = ""
		for (word in weight)
			if (best == "" || weight[word] > weight[best] || weight[word] == weight[best] && word < best)
				best = word
		if (best == "")
			break
		for (nr_names = 0; nr_names < 520; nr_names++) {
			name = substr(letters, nr_names % 52 + 1, 1) (nr_names < 52 ? "" : int(nr_names / 52))
			if (!(name in undeclared) && take(name, best))
				break
		}
		# one that looks like a short name may be that of another word
		if (nr_names < 520 && (length(name) < length(best) || best ~ /^[A-Za-z][0-9]+$/))
			short[best] = name
		delete weight[best]
	}
	for (i = 1; i <= nr; i++)
		if (token[i - 3] == "new" && token[i - 1] == "(" && token[i] == ")" && token[i + 1] ~ /^[]);,}]$/)
			token[i] = token[i - 1] = ""
		else if (joins[i - 1])
			token[i] = ""
		else if (joins[i])
			token[i] = ","
		else if (is_key[i] != 1 && token[i] in short)
			token[i] = (is_key[i] == 2 ? token[i] ":" : "") short[token[i]]
		else if (token[i] in same)
			token[i] = same[token[i]]
}

# The properties whose names save bytes as _a, _b ...: name_of[i] is behind the i-th `.`.
function name_properties(i, word, best, saved, nr_words, words, name, list) {
	for (i = 3; i <= nr; i++)
		if (is_key[i] == 1 && token[i - 1] == ".") {
			if (!(token[i] in saved)) {
				saved[token[i]] = -length(token[i]) - 6
				words[++nr_words] = token[i]
			}
			saved[token[i]] += length(token[i]) - 3
		}
	for (i = 1; i <= nr_words && nr_properties < length(letters); i++)
		if (saved[words[i]] > 0) {
			name[words[i]] = "_" substr(letters, ++nr_properties, 1)
			properties = properties (properties ? "," : "let ") name[words[i]] "='" words[i] "'"
		}
	for (i = 3; i <= nr; i++)
		if (is_key[i] == 1 && token[i - 1] == "." && token[i] in name) {
			token[i - 1] = token[i - 2] == "?" ? ".[" : "["
			gap[i - 1] = gap[i] = 0
			token[i] = name[token[i]] "]"
		}
	i = token[1] == "'use strict'"
	if (properties)
		token[i + 1] = (i ? ";" : "") properties ";" (i ? "" : token[1])
}

BEGIN {
	letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
	same["const"] = "let"
	same["true"] = "!0"
	same["false"] = "!1"
	same["undefined"] = "void 0"
}

# Appends token i. What was blank before it stays where it separates.
function put(i, first) {
	if (token[i] == "")
		return
	first = substr(token[i], 1, 1)
	if (token[i] == "}" && last ~ /[;,]/)
		out = substr(out, 1, length(out) - 1)
	if (gap[i] && lang == "js") {
		if (last ~ /[A-Za-z0-9_$]/ && first ~ /[A-Za-z0-9_$]/ || last first ~ /^(\+\+|--|\/\/|\/\*)$/ ||
		    last ~ /[0-9]/ && first == ".")
			out = out (gap[i] == 2 ? "\n" : " ")
		else if (gap[i] == 2 && last ~ /[])}A-Za-z0-9_$"'`\/+-]/ && first !~ /[]),.;:?&|=*%<>}]/)
			out = out "\n"
	} else if (gap[i] && last !~ /[{};:,]/ && first !~ /[{};,]/ && last != "") {
		out = out " "
	}
	out = out token[i]
	last = substr(token[i], length(token[i]))
}

{ text = text $0 "\n" }

END {
	if (!failed)
		split_text()
	if (!failed && lang == "js") {
		find_names()
		shorten()
		name_properties()
	}
	for (i = 1; !failed && i <= nr; i++)
		put(i)
	if (!failed)
		print out
	exit failed
}
