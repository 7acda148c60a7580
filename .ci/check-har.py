"""Checks recordings against the schema of HAR 1.2 (http://www.softwareishard.com/blog/har-12-spec/), in a folder, and reads
them with haralyzer; see .ci/formats."""

import base64
import json
import pathlib
import sys

import haralyzer
import jsonschema
import referencing

failures = []


def check(holds, *what):
    if not holds:
        failures.append(" ".join(str(part) for part in what))


def check_schema(har, folder):
    schemas = {path.name: json.loads(path.read_text()) for path in pathlib.Path(folder).glob("*.json")}
    registry = referencing.Registry().with_resources(
        (name, referencing.Resource.from_contents(schema)) for name, schema in schemas.items()
    )
    kind = jsonschema.Draft6Validator
    validator = kind(schemas["har.json"], registry=registry, format_checker=kind.FORMAT_CHECKER)
    for error in validator.iter_errors(har):
        check(False, error.json_path, error.message)
    # Additional fields begin with an underscore; the schema allows any.
    known = {name for schema in schemas.values() for name in schema.get("properties", {})}
    # Missing from the schema, and in the specification.
    known |= {"comment", "httpOnly", "secure"}
    check_names(har, known, "har")


def check_names(value, known, where):
    if isinstance(value, list):
        for index, item in enumerate(value):
            check_names(item, known, f"{where}[{index}]")
    elif isinstance(value, dict):
        for name, item in value.items():
            if not name.startswith("_"):
                check(name in known, where, "has an unknown", name)
                check_names(item, known, f"{where}.{name}")


def check_entry(entry, where):
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


def main(schemas, path):
    with open(path, encoding="utf-8") as file:
        har = json.load(file)
    check_schema(har, schemas)
    for index, entry in enumerate(har["log"]["entries"]):
        check_entry(entry, f"entries[{index}]")

    parser = haralyzer.HarParser(har)
    entries = [entry for page in parser.pages for entry in page.entries]
    check(len(entries) == len(har["log"]["entries"]) > 0, "haralyzer reads", len(entries), "entries")
    check(all(entry.startTime is not None for entry in entries), "haralyzer reads no time of the start")
    # It sorts them by their start; a recording has them as they end.
    read = sorted((one.request.url, one.request.method, one.response.status, one.time) for one in entries)
    wanted = sorted(
        (one["request"]["url"], one["request"]["method"], one["response"]["status"], one["time"])
        for one in har["log"]["entries"]
    )
    for one, other in zip(read, wanted):
        check(one == other, "haralyzer reads", one, "and not", other)
    for failure in failures[:20]:
        print("failed:", failure[:2000], file=sys.stderr)
    if failures:
        sys.exit(f"{len(failures)} differences")
    print(f"{len(entries)} entries of HAR 1.2, read by haralyzer {getattr(haralyzer, '__version__', '')}".rstrip())


for path in sys.argv[2:]:
    main(sys.argv[1], path)
