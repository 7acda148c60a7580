"""Checks the script of the timeline's page, and that the library holds the page's files as they are; see .ci/formats.

usage: check-page.py [--update]            writes that part of the library

The files are in Sources/EasyNetworkDiagnostics/Page, where an editor and a linter know what they are. The library holds
them as strings: a bundle of resources would have to lie beside each program that writes a page, and a program that has
lost it traps. Needs Python and Node.
"""

import base64
import hashlib
import pathlib
import re
import subprocess
import sys

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "Sources/EasyNetworkDiagnostics"
OUTPUT = FOLDER / "TimelinePage.swift"
# Names that a script cannot declare at its top, and that a check of the syntax alone does not know.
TAKEN = {"document", "location", "top", "window"}


def literal(text):
    lines = ("        " + line if line else "" for line in text.rstrip("\n").split("\n"))
    return '#"""\n' + "\n".join(lines) + '\n        """#'


def main():
    files = {name: (FOLDER / "Page" / f"timeline.{name}").read_text() for name in ("html", "css", "js")}
    script = files["js"].rstrip("\n")
    failures = []
    for name, text in files.items():
        if '"""#' in text or "</script" in text or "\r" in text:
            failures.append(f"timeline.{name} has what ends a string or a script, or a carriage return")
    for name in sorted(TAKEN & set(re.findall(r"^(?:const|let|var|function) (\w+)", script, flags=re.MULTILINE))):
        failures.append(f"timeline.js declares {name}, which each page has")
    check = subprocess.run(["node", "--check", str(FOLDER / "Page" / "timeline.js")], capture_output=True, text=True)
    if check.returncode:
        failures.append(check.stderr.strip())

    digest = base64.b64encode(hashlib.sha256(f"\n{script}\n".encode()).digest()).decode()
    source = f"""/// The parts of the page of a timeline. Made by `.ci/formats page --update` from the files in the folder `Page`.
enum TimelinePage {{
    /// The picture that is seen before the script has run.
    static let body = {literal(files["html"])}

    static let style = {literal(files["css"])}

    /// The SHA-256 of the text of the script's element, in Base64: the script, and a line feed at either end.
    static let scriptDigest = "{digest}"

    static let script = {literal(files["js"])}
}}
"""
    if "--update" in sys.argv[1:]:
        OUTPUT.write_text(source)
    elif not OUTPUT.exists() or OUTPUT.read_text() != source:
        failures.append(f"{OUTPUT.name} does not hold the files as they are: run .ci/formats page --update")
    print("\n".join(failures) or "The script of the timeline's page is well formed, and the library has it as it is.")
    return bool(failures)


if __name__ == "__main__":
    sys.exit(main())
