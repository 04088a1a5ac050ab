#!/usr/bin/env python3
"""What documents promise can be checked: check_documents.py SOURCE_FOLDER

Every path that a document names exists, and every link leads somewhere. README.md is short, and so
are sentences and entries of CHANGES. No document, manual page, comment, message or name in the
program has a word that the glossary has replaced.
"""

import glob
import io
import os
import re
import subprocess
import sys
import tokenize
import unittest

SOURCE = sys.argv.pop(1)
ROOMS = ("analysis", "bpf", "cmake", "cupti_bridge", "doc", "scripts", "tests", "userspace")
README_LINES = 120
SENTENCE_WORDS = 45
ENTRY_WORDS = 12

# Words of the old vocabulary, in the sense that the glossary replaces.
BANNED = re.compile(r"""\b(
    told | re-?told | dear | dearer | dearest | go(?:es)?\ by\ (?:it|its|the|this|that|those|what|them) | went\ by | gone\ by |
    spilt | (?<!workload\.)spills? | doz(?:e|es|ed|ing) | welcom(?:e|es|ed|ing) | homeless | arrears | whom |
    looks?\ on\ (?:in|at|the)| looking\ on | nobody\ look(?:ed|s|ing) |
    (?:an?|one|each|every|latest|by|from|so\ many)\ looks?(?!\ (?:at|up|like|for)|-) | look's | a\ thread's\ books? |
    booked | booking | books\ (?:the|what|of|time|a) | guess(?:es|ed) | settled? | settles | in\ doubt
)\b""", re.I | re.X)

# The same in names of the program: a part of an identifier between underscores.
BANNED_IN_NAMES = frozenset("""
    told retold tell tells heard dear spilt spill spills doze welcome homeless arrears whom
    newcomer newcomers pythons alternator throttle switchers absence absences
    book books booked booking look looks looked guess guesses guessed settle settles settled doubt doubts
""".split())
PROGRAM_ROOMS = ("analysis", "bpf", "cupti_bridge", "userspace")


def read(path):
    with open(os.path.join(SOURCE, path), encoding="utf-8") as file:
        return file.read()


def relative(pattern):
    found = glob.glob(os.path.join(SOURCE, pattern), recursive=True)
    return sorted(os.path.relpath(path, SOURCE) for path in found)


def documents():
    """Those that people read first; the results of benchmarks are beside them."""
    return ["README.md", "CONTRIBUTING.md"] + relative("doc/*.md") + relative("cupti_bridge/*.md") + \
        [path for path in relative("tests/**/README.md") if "/build" not in path]


def manual_pages():
    return relative("doc/man/*.1")


def without_code(text):
    """Fenced blocks and comments become empty lines, so that line numbers stay."""
    return re.sub(r"^```.*?^```$|<!--.*?-->", lambda m: "\n" * m.group().count("\n"), text,
                  flags=re.M | re.S)


# --- paths and links ------------------------------------------------------------------------

def named_paths(text):
    for line, words in enumerate(without_code(text).split("\n"), 1):
        for quoted in re.findall(r"`([^`\s]+)`", words):
            path = re.sub(r":\d+$", "", quoted).rstrip("/")
            if quoted.startswith(tuple(room + "/" for room in ROOMS)) or path in ROOMS:
                yield line, path


def slug(heading):
    """The anchor that GitHub gives a heading."""
    words = re.sub(r"[^\w\- ]", "", re.sub(r"\]\([^)]*\)", "", heading).lower())
    return words.strip().replace(" ", "-")


def anchors(path):
    return {slug(heading) for heading in re.findall(r"^#+ +(.*)$", without_code(read(path)), re.M)}


def links(text):
    for line, words in enumerate(without_code(text).split("\n"), 1):
        for target in re.findall(r"\]\(([^)\s]+)\)", words):
            if "://" not in target:
                yield line, target


# --- sentences ------------------------------------------------------------------------------

def blocks(text):
    """Paragraphs, entries of lists and cells of tables, each with its first line."""
    block, first = [], 1
    for number, line in enumerate(without_code(text).split("\n"), 1):
        if line.startswith("|"):
            for cell in line.strip("|").split("|"):
                yield number, cell
            continue
        if not line.strip() or re.match(r"\s*([-*]|\d+\.) |#", line):
            yield first, " ".join(block)
            block, first = [], number
        block.append(re.sub(r"^\s*([-*]|\d+\.|#+) ", "", line))
    yield first, " ".join(block)


def sentences(text):
    for line, block in blocks(text):
        plain = re.sub(r"\]\([^)]*\)", "]", block)
        for sentence in re.split(r"(?<=[.!?:;])\s+", plain):
            yield line, sentence


# --- words ----------------------------------------------------------------------------------

def manual_text(text):
    return "\n".join(line for line in text.split("\n") if not line.startswith('.\\"'))


def without_quotes(text):
    """Code in a document is quoted: JSON keys and old words in a table are no prose."""
    return re.sub(r"`[^`\n]*`", "``", without_code(text))


C_PARTS = re.compile(r"""/\*.*?\*/ | //[^\n]* | "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*'""", re.S | re.X)


def c_words(text):
    for part in C_PARTS.finditer(text):
        if part.group()[0] != "'":
            yield text.count("\n", 0, part.start()) + 1, part.group()


def python_words(text):
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.COMMENT, tokenize.STRING):
            yield token.start[0], token.string


def script_words(text):
    for line, words in enumerate(text.split("\n"), 1):
        comment = re.search(r"(^|\s)#.*", words)
        if comment:
            yield line, comment.group()


READERS = {".c": c_words, ".h": c_words, ".cpp": c_words, ".js": c_words, ".py": python_words,
           ".cmake": script_words, ".sh": script_words}


def reader_of(path):
    """What finds the words of a source; None if it is none."""
    extension = os.path.splitext(path)[1]
    if extension:
        return script_words if os.path.basename(path) == "CMakeLists.txt" else READERS.get(extension)
    with open(os.path.join(SOURCE, path), "rb") as file:
        first = file.readline()
    if first.startswith(b"#!"):
        return python_words if b"python" in first else script_words
    return None


def sources():
    for room in ROOMS:
        for path in relative(room + "/**/*"):
            if path != "tests/docs/check_documents.py" and os.path.isfile(os.path.join(SOURCE, path)):
                reader = reader_of(path)
                if reader:
                    yield path, reader


def banned_in(parts):
    for line, text in parts:
        for found in BANNED.finditer(re.sub(r"\s+", " ", text)):
            yield line, found.group()


def banned_names(text):
    """Of C's identifiers, with their lines."""
    code = C_PARTS.sub(lambda part: re.sub(r"[^\n]", " ", part.group()), text)
    for found in re.finditer(r"[A-Za-z_]\w*", code):
        if BANNED_IN_NAMES.intersection(found.group().lower().split("_")):
            yield text.count("\n", 0, found.start()) + 1, found.group()


class Documents(unittest.TestCase):
    def assert_none(self, faults):
        self.assertFalse(faults, "\n" + "\n".join(faults))

    def test_named_paths_exist(self):
        faults = ["%s:%d: there is no %s" % (path, line, named)
                  for path in documents() for line, named in named_paths(read(path))
                  if not glob.glob(os.path.join(SOURCE, named))]
        self.assert_none(faults)

    def test_paths_are_found(self):
        self.assertIn((1, "bpf/wire/record.h"), list(named_paths("see `bpf/wire/record.h`")))

    def test_links_lead_somewhere(self):
        faults = []
        for path in documents():
            for line, target in links(read(path)):
                file, _, anchor = target.partition("#")
                there = os.path.normpath(os.path.join(os.path.dirname(path), file)) if file else path
                if not os.path.exists(os.path.join(SOURCE, there)):
                    faults.append("%s:%d: there is no %s" % (path, line, there))
                elif anchor and anchor not in anchors(there):
                    faults.append("%s:%d: %s has no heading #%s" % (path, line, there, anchor))
        self.assert_none(faults)

    def test_readme_is_short(self):
        self.assertLessEqual(read("README.md").count("\n"), README_LINES)

    def test_sentences_are_short(self):
        faults = ["%s:%d: %d words: %s" % (path, line, len(sentence.split()), sentence)
                  for path in documents() for line, sentence in sentences(read(path))
                  if len(sentence.split()) > SENTENCE_WORDS]
        self.assert_none(faults)

    def test_changes_are_short(self):
        faults = ["%d words: %s" % (len(line.split()), line) for line in read("CHANGES").split("\n")
                  if line.startswith("  ") and len(line.split()) > ENTRY_WORDS]
        self.assert_none(faults)

    def test_version_has_changes(self):
        version = re.search(r"project\(rlscope-bpf VERSION (\S+)", read("CMakeLists.txt")).group(1)
        self.assertRegex(read("CHANGES"), r"(?m)^%s\b" % re.escape(version))

    def test_every_room_is_described(self):
        described = {path for _, path in named_paths(read("doc/architecture.md"))}
        rooms = {os.path.dirname(path) for top in ("analysis", "bpf", "cupti_bridge", "userspace")
                 for path in relative(top + "/**/*.[ch]")}
        rooms = {room for room in rooms if not re.search(r"/(html|proto)\b.*/|/python/", room + "/x")}
        self.assert_none(["doc/architecture.md says nothing of %s/" % room
                          for room in sorted(rooms - described - {"userspace", "analysis"})])

    def test_words_of_documents(self):
        faults = []
        for path in documents() + ["CHANGES"]:
            if path != "doc/glossary.md":
                faults += ["%s:%d: %s" % (path, line, word) for line, word in
                           banned_in(enumerate(without_quotes(read(path)).split("\n"), 1))]
        for path in manual_pages():
            faults += ["%s:%d: %s" % (path, line, word) for line, word in
                       banned_in(enumerate(manual_text(read(path)).split("\n"), 1))]
        self.assert_none(faults)

    def test_words_of_sources(self):
        faults = ["%s:%d: %s" % (path, line, word) for path, parts in sources()
                  for line, word in banned_in(parts(read(path)))]
        self.assert_none(faults)

    def test_names_of_the_program(self):
        faults = ["%s:%d: %s" % (path, line, name)
                  for path, parts in sources() if parts is c_words and path.startswith(PROGRAM_ROOMS)
                  for line, name in banned_names(read(path))]
        self.assert_none(faults)

    def test_names_are_found(self):
        text = '/* tell */ int tell_ended;\nf(RLS_WIRE_ABSENCE, "absence", intelligent);'
        self.assertEqual(list(banned_names(text)), [(1, "tell_ended"), (2, "RLS_WIRE_ABSENCE")])

    def test_sources_are_found(self):
        found = dict(sources())
        for path, reader in (("scripts/test", script_words), ("scripts/drift", python_words),
                             ("tests/root/harness.py", python_words), ("bpf/state.bpf.c", c_words)):
            self.assertIs(found.get(path), reader, path)

    def test_table_of_benchmarks(self):
        """It is the one that the script makes of the kept results."""
        table = subprocess.run([os.path.join(SOURCE, "scripts/bench/table")], capture_output=True, text=True,
                               check=True).stdout
        self.assertGreater(len(table.splitlines()), 2)
        self.assertIn("<!-- bench:begin -->\n%s<!-- bench:end -->" % table, read("doc/overhead.md"),
                      "scripts/bench/table --write doc/overhead.md")

    def test_words_are_found(self):
        text = 'int told;\n/* It is told\n * of a dear hit. */\nputs("what it goes by the clock");'
        self.assertEqual([word for _, word in banned_in(c_words(text))], ["told", "dear", "goes by the"])


if __name__ == "__main__":
    unittest.main()
