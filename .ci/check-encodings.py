"""Starts a server, runs tests that write their cases to a folder and upload to that server, and decodes all of it with
decoders that were not written here; see .ci/formats.

usage: check-encodings.py FOLDER COMMAND…      the command runs the tests
"""

import base64
import datetime
import email.parser
import email.policy
import http.server
import json
import os
import pathlib
import re
import subprocess
import sys
import threading
import unicodedata
import urllib.parse

failures = []


def check(holds, *what):
    if not holds:
        failures.append(" ".join(str(part) for part in what))


# Parameters


def date_text(milliseconds):
    moment = datetime.datetime(1970, 1, 1) + datetime.timedelta(milliseconds=milliseconds)
    return moment.isoformat(timespec="milliseconds" if milliseconds % 1000 else "seconds") + "Z"


def scalar(told, styles):
    """The value that JSON should have."""
    kind = told[0]
    if kind == "null":
        return None
    if kind == "bool":
        return told[1] == "true"
    if kind == "integer":
        return int(told[1])
    if kind == "double":
        return float(told[1])
    if kind == "text":
        return told[1]
    if kind == "data":
        return base64.b64encode(bytes(told[1])).decode()
    milliseconds = int(told[1])
    if styles["dates"] == "secondsSince1970":
        return milliseconds / 1000
    return date_text(milliseconds)


def ordered(pairs):
    # Swift compares texts by their canonical form.
    return sorted(pairs, key=lambda pair: unicodedata.normalize("NFC", pair[0]))


def flatten(key, told, styles):
    """The names and values that a query should have, in order; None for a name alone."""
    kind = told[0]
    if kind == "object":
        for name, value in ordered(told[1]):
            yield from flatten(f"{key}.{name}" if styles["keys"] == "dots" else f"{key}[{name}]", value, styles)
    elif kind == "array":
        has_containers = any(value[0] in ("array", "object") for value in told[1])
        style = "indices" if has_containers else styles["arrays"]
        for index, value in enumerate(told[1]):
            suffix = {"brackets": "[]", "repeated": "", "indices": f"[{index}]"}[style]
            yield from flatten(key + suffix, value, styles)
    elif kind == "null":
        if styles["nulls"] != "omitted":
            # A name that is empty cannot stand alone.
            yield key, {"key": None if key else "", "empty": "", "word": "null"}[styles["nulls"]]
    elif kind == "bool" and styles["bools"] == "numbers":
        yield key, "1" if told[1] == "true" else "0"
    elif kind == "bool":
        yield key, told[1]
    else:
        yield key, scalar(told, styles)


def is_same_text(text, value):
    if value is None:
        return text == ""
    if not isinstance(value, float):
        return text == str(value)
    # Numbers may be written in more than one way.
    try:
        return float(text) == value
    except ValueError:
        return False


def check_pairs(case):
    text, styles = case["text"], case["styles"]
    expected = [pair for key, told in ordered(case["params"]) for pair in flatten(key, told, styles)]
    what = f"{case['kind']} of seed {case['seed']}: {text!r} with {styles}"
    decoded = urllib.parse.parse_qsl(text, keep_blank_values=True, encoding="utf-8", errors="strict")
    check([key for key, _ in decoded] == [key for key, _ in expected], what, "has other names than", expected)
    for (key, found), (_, value) in zip(decoded, expected):
        check(is_same_text(found, value), what, f"has {found!r} for {key!r}, not {value!r}")
    lone = sum(1 for part in text.split("&") if part and "=" not in part)
    check(lone == sum(1 for _, value in expected if value is None), what, "has other names without a value")
    check(("%20" if case["kind"] == "form" else "+") not in text, what, "has spaces of another style")
    check(re.fullmatch(r"[A-Za-z0-9._~*+&=%-]*", text), what, "has characters that are not escaped")
    return len(expected)


def is_same_json(found, told, styles):
    if told[0] == "object":
        wanted = dict(told[1])
        return (
            isinstance(found, dict)
            and found.keys() == wanted.keys()
            and all(is_same_json(found[key], wanted[key], styles) for key in wanted)
        )
    if told[0] == "array":
        return (
            isinstance(found, list)
            and len(found) == len(told[1])
            and all(is_same_json(one, other, styles) for one, other in zip(found, told[1]))
        )
    value = scalar(told, styles)
    # To Python True is 1.
    return isinstance(found, bool) == isinstance(value, bool) and found == value


def check_json(case):
    found = json.loads(case["text"])
    what = f"JSON of seed {case['seed']}: {case['text']!r} is not {case['params']} with {case['styles']}"
    check(is_same_json(found, ["object", case["params"]], case["styles"]), what)
    return 1


# Forms


def parameter(header, name):
    """A parameter of Content-Disposition as WHATWG's HTML standard has it, which is not as mail has it."""
    found = re.search(f'; {name}="([^"]*)"', header)
    if not found:
        return None
    text = found[1]
    for escape, character in (("%22", '"'), ("%0D", "\r"), ("%0A", "\n")):
        text = text.replace(escape, character)
    return text


def check_form(what, content_type, body, expected):
    # The least that is a message of its own: the parser takes bytes as they are.
    source = b"Content-Type: " + content_type.encode() + b"\r\n\r\n" + body
    message = email.parser.BytesParser(policy=email.policy.compat32).parsebytes(source)
    check(message.get_content_type() == "multipart/form-data", what, "is", message.get_content_type())
    check(message.is_multipart() and not message.defects, what, "is broken:", message.defects)
    parts = message.get_payload() if message.is_multipart() else []
    check(len(parts) == len(expected), what, f"has {len(parts)} parts instead of {len(expected)}")
    for part, wanted in zip(parts, expected):
        check(not part.defects, what, "has a part that is broken:", part.defects)
        # Bytes that are not ASCII have been kept as what cannot be in a text.
        fields = [(name, value.encode("ascii", "surrogateescape").decode()) for name, value in part.raw_items()]
        header = dict(fields)
        disposition = header.pop("Content-Disposition")
        check(disposition.startswith('form-data; name="'), what, "has the disposition", disposition)
        check(parameter(disposition, "name") == wanted["name"], what, f"{disposition!r} is not {wanted['name']!r}")
        check(parameter(disposition, "filename") == wanted["filename"], what, f"{disposition!r}: {wanted['filename']!r}")
        check(header.pop("Content-Type", None) == wanted["contentType"], what, "type is not", wanted["contentType"])
        check(not header, what, f"has other fields: {header}")
        data = base64.b64decode(wanted["data"])
        check(part.get_payload(decode=True) == data, what, f"part {wanted['name']!r} has other bytes")
    return len(expected)


class Server(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    uploads = {}

    def do_POST(self):
        if "Content-Length" in self.headers:
            framing, body = "length", self.rfile.read(int(self.headers["Content-Length"]))
        else:
            framing, body = self.headers["Transfer-Encoding"], self.chunks()
        self.uploads[self.path] = (framing, self.headers["Content-Type"], body)
        self.send_response(201)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def chunks(self):
        pieces = []
        while size := int(self.rfile.readline().split(b";")[0], 16):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        while self.rfile.readline().strip():
            pass
        return b"".join(pieces)

    def log_message(self, *_):
        pass


def main():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    folder, command = sys.argv[1], sys.argv[2:]
    environment = dict(
        os.environ, ENCODINGS_FOLDER=folder, ENCODINGS_SERVER=f"http://127.0.0.1:{server.server_address[1]}"
    )
    run = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    server.shutdown()
    server.server_close()
    if run.returncode:
        sys.exit(f"{run.stdout}\nfailed: {' '.join(command)}")
    check_all(pathlib.Path(folder))
    for failure in failures[:20]:
        print("failed:", failure[:2000], file=sys.stderr)
    if failures:
        sys.exit(f"{len(failures)} differences")


def check_all(folder):
    checks = {"query": check_pairs, "form": check_pairs, "json": check_json}
    cases = json.loads((folder / "parameters.json").read_text())
    for kind, decoder in (("query", "urllib.parse"), ("form", "urllib.parse"), ("json", "json")):
        own = [case for case in cases if case["kind"] == kind]
        check(own, "there are no cases of", kind)
        values = sum(checks[kind](case) for case in own)
        print(f"{kind}: {len(own)} decoded by {decoder}" + ("" if kind == "json" else f", {values} pairs"))

    forms = sorted(folder.glob("form-*.json"))
    check(forms, "there are no multipart forms")
    parts = 0
    for description in forms:
        told = json.loads(description.read_text())
        body = description.with_suffix(".body").read_bytes()
        parts += check_form(description.stem, told["contentType"], body, told["parts"])
    print(f"multipart: {len(forms)} forms decoded by email, {parts} parts")

    for name, framing in (("known", "length"), ("unknown", "chunked")):
        told = json.loads((folder / f"upload-{name}.json").read_text())
        used, content_type, body = Server.uploads["/" + name]
        check(used == framing, f"the upload of {name} length was sent with {used}")
        check(content_type == told["contentType"], f"the upload has the type {content_type}")
        check_form(f"the upload of {name} length", content_type, body, told["parts"])
        print(f"upload: {len(body)} bytes with {framing} to http.server")


main()
