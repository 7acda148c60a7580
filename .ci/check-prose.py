#!/usr/bin/env python3
"""Checks how the pages, the comments and the messages are written.

usage: .ci/check-prose.py [FILE…]      FILE: prints the phrases of these files alone, and fails if there are any

Fails if README has more than 1,300 words of prose, if more than 5% of the inline comments in Sources begin without a subject
("It …", "Only …", "As …"), or if a comment, a string with a space, or a page has a phrase of .ci/phrases.txt. Needs Python.
"""

import os
import pathlib
import re
import subprocess
import sys

README_WORDS = 1_300
BARE_SHARE = 0.05
PHRASES = pathlib.Path(".ci/phrases.txt")
PAGES = ["README.md", "CHANGELOG.md", ".github/*.md", ".github/ISSUE_TEMPLATE/*.yml", "Sources/*/*.docc/*.md"]

INLINE = re.compile(r"^\s*// (?!swift-format|MARK|-)(?=[A-Z])(.+)$", flags=re.MULTILINE)
BARE = re.compile(r"(It|Its|They|Their|Only|As|Such|Else|Mostly|Not|So|Also)\b")
PROSE_OF_SWIFT = re.compile(r'(?:^|[^:"])//.*|"[^"]*[ ][^"]*"')


def prose(page):
    """The prose of a page: without code, tables, comments, tags, and lines that have only links or pictures."""
    page = re.sub(r"^```.*?^```$", "", page, flags=re.MULTILINE | re.DOTALL)
    page = re.sub(r"<!--.*?-->|</?[a-z][^>]*>", " ", page, flags=re.DOTALL)
    for line in page.splitlines():
        without_pictures = re.sub(r"!\[[^]]*\]\([^)]*\)", " ", line)
        without_links = re.sub(r"\[[^]]*\]\([^)]*\)", " ", without_pictures)
        if line.startswith("|") or not re.search(r"\w", without_links):
            continue
        yield re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", without_pictures)


def word_count(page):
    return sum(bool(re.search(r"\w", word)) for line in prose(page) for word in line.split())


def read_phrases():
    """The patterns with what to write instead, and the allowed hits as pairs of a file and words of the line."""
    patterns, allowed = [], []
    for line in PHRASES.read_text().splitlines():
        if line.startswith("#") or not line:
            continue
        fields = line.split("\t")
        if fields[0] == "allow":
            file, words, reason = fields[1:]
            if reason:
                allowed.append((file, words))
        else:
            pattern, instead = fields
            patterns.append((re.compile(pattern), instead))
    return patterns, allowed


def hits(file, patterns, allowed):
    """A line for each hit of a phrase in a file: its place, the phrase, and what to write instead."""
    for number, line in enumerate(file.read_text().splitlines(), 1):
        parts = PROSE_OF_SWIFT.findall(line) if file.suffix == ".swift" else [line]
        if any(name == str(file) and words in line for name, words in allowed):
            continue
        for part in parts:
            for pattern, instead in patterns:
                if found := pattern.search(part):
                    yield f"{file}:{number}: \"{found[0].strip()}\": {instead}"


def bare_comments(files):
    """The inline comments, and those of them that begin without a subject."""
    comments = [(file, comment) for file in files for comment in INLINE.findall(file.read_text())]
    return comments, [(file, comment) for file, comment in comments if BARE.match(comment)]


def main():
    top = subprocess.run(["git", "rev-parse", "--show-toplevel"], check=True, stdout=subprocess.PIPE, text=True).stdout
    os.chdir(top.strip())
    patterns, allowed = read_phrases()
    if len(sys.argv) > 1:
        found = [hit for name in sys.argv[1:] for hit in hits(pathlib.Path(name), patterns, allowed)]
        print("\n".join(found) or "no phrases")
        return bool(found)

    failures = []
    words = word_count(pathlib.Path("README.md").read_text())
    if words > README_WORDS:
        failures.append(f"README.md has {words} words of prose, more than {README_WORDS:,}")

    sources = sorted(pathlib.Path("Sources").rglob("*.swift"))
    comments, bare = bare_comments(sources)
    if len(bare) > BARE_SHARE * len(comments):
        failures += [f"{file}: this comment begins without a subject: {comment}" for file, comment in bare]
        failures.append(f"{len(bare)} of {len(comments)} inline comments begin without a subject, more than 5%")
    pages = sorted(page for pattern in PAGES for page in pathlib.Path().glob(pattern))
    failures += [hit for file in pages + sources for hit in hits(file, patterns, allowed)]

    share = f"{len(bare)} of {len(comments)} inline comments without a subject"
    print("\n".join(failures) or f"README has {words} words of prose; {share}; no phrases")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
