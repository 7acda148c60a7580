"""Checks a recording against HAR 1.2 (http://www.softwareishard.com/blog/har-12-spec/) and reads it with haralyzer; see
.ci/har."""

import base64
import json
import re
import sys

import haralyzer

NUMBER = (int, float)
TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}(Z|[+-]\d\d:\d\d)")
PAIR = {"name": str, "value": str}
# Required fields; those with a question mark are optional. All others begin with an underscore.
LOG = {"version": str, "creator": {"name": str, "version": str}, "entries": list}
COOKIE = {**PAIR, "path?": str, "domain?": str, "expires?": TIME, "httpOnly?": bool, "secure?": bool}
ENTRY = {
    "startedDateTime": TIME,
    "time": NUMBER,
    "request": {
        "method": str, "url": str, "httpVersion": str, "cookies": [COOKIE], "headers": [PAIR], "queryString": [PAIR],
        "postData?": {"mimeType": str, "params": [PAIR], "text": str, "comment?": str},
        "headersSize": int, "bodySize": int,
    },
    "response": {
        "status": int, "statusText": str, "httpVersion": str, "cookies": [COOKIE], "headers": [PAIR],
        "content": {"size": int, "mimeType": str, "text?": str, "encoding?": str, "comment?": str},
        "redirectURL": str, "headersSize": int, "bodySize": int, "comment?": str,
    },
    "cache": {},
    "timings": {name: NUMBER for name in ("blocked", "dns", "connect", "send", "wait", "receive", "ssl")},
    "serverIPAddress?": str, "connection?": str,
}  # fmt: skip
failures = []


def check(holds, *what):
    if not holds:
        failures.append(" ".join(str(part) for part in what))


def check_type(value, kind, where):
    if isinstance(kind, dict):
        check(isinstance(value, dict), where, "is no object")
        known = {name.rstrip("?"): (name.endswith("?"), inner) for name, inner in kind.items()}
        for name, (is_optional, inner) in known.items():
            if name in value:
                check_type(value[name], inner, f"{where}.{name}")
            else:
                check(is_optional, where, "has no", name)
        for name in value:
            check(name in known or name.startswith("_"), where, "has an unknown", name)
    elif isinstance(kind, list):
        check(isinstance(value, list), where, "is no list")
        for index, item in enumerate(value):
            check_type(item, kind[0], f"{where}[{index}]")
    elif isinstance(kind, re.Pattern):
        check(isinstance(value, str) and kind.fullmatch(value), where, "is", value)
    else:
        check(isinstance(value, kind) and (kind is bool or not isinstance(value, bool)), where, "is", repr(value))


def check_entry(entry, where):
    check_type(entry, ENTRY, where)
    timings = entry["timings"]
    total = sum(time for name, time in timings.items() if name != "ssl" and time != -1)
    check(abs(total - entry["time"]) < 1, where, "takes", entry["time"], "and not", total)
    check(all(time >= 0 or time == -1 for time in timings.values()), where, timings)
    check(all(timings[name] >= 0 for name in ("send", "wait", "receive")), where, timings)
    check(timings["ssl"] <= max(timings["connect"], -1), where, timings)
    content = entry["response"]["content"]
    if content.get("encoding"):
        check(content["encoding"] == "base64", where, content["encoding"])
        base64.b64decode(content["text"], validate=True)


def main(path):
    with open(path, encoding="utf-8") as file:
        har = json.load(file)
    check_type(har, {"log": LOG}, "har")
    for index, entry in enumerate(har["log"]["entries"]):
        check_entry(entry, f"entries[{index}]")

    parser = haralyzer.HarParser(har)
    entries = [entry for page in parser.pages for entry in page.entries]
    check(len(entries) == len(har["log"]["entries"]) > 0, "haralyzer reads", len(entries), "entries")
    for entry, written in zip(entries, har["log"]["entries"]):
        check(entry.request.url == written["request"]["url"], "haralyzer reads the address", entry.request.url)
        check(entry.request.method == written["request"]["method"], "haralyzer reads the method", entry.request.method)
        check(entry.response.status == written["response"]["status"], "haralyzer reads", entry.response.status)
        check(entry.time == written["time"] and entry.startTime is not None, "haralyzer reads the time", entry.time)
    for failure in failures[:20]:
        print("failed:", failure[:2000], file=sys.stderr)
    if failures:
        sys.exit(f"{len(failures)} differences")
    print(f"{len(entries)} entries of HAR 1.2, read by haralyzer {getattr(haralyzer, '__version__', '')}".rstrip())


main(sys.argv[1])
