"""Checks traces: lines of OTLP/JSON (*.jsonl) by the schema of opentelemetry-proto, and trace events of Chrome (*.json);
see .ci/formats."""

import base64
import collections
import json
import re
import sys

from google.protobuf import json_format
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

IDS = {"traceId": 16, "spanId": 8, "parentSpanId": 8}
failures = []


def check(holds, *what):
    if not holds:
        failures.append(" ".join(str(part) for part in what))


def with_base64(value, where):
    """OTLP/JSON has ids in hexadecimal, integers of 64 bits as texts, and enumerations as numbers; JSON of protobuf has
    ids in Base64 and takes more for the others."""
    if isinstance(value, list):
        return [with_base64(item, where) for item in value]
    if not isinstance(value, dict):
        return value
    result = {}
    for name, item in value.items():
        if name in IDS:
            check(re.fullmatch(f"[0-9a-f]{{{2 * IDS[name]}}}", item) and set(item) != {"0"}, where, name, item)
            result[name] = base64.b64encode(bytes.fromhex(item)).decode()
            continue
        if name in ("intValue", "startTimeUnixNano", "endTimeUnixNano"):
            check(isinstance(item, str) and re.fullmatch(r"-?\d+", item), where, name, item)
        if name in ("kind", "code"):
            check(isinstance(item, int), where, name, item)
        result[name] = with_base64(item, where)
    return result


def check_lines(path):
    spans = []
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            where = f"{path}:{number}"
            # Fails on names that are not those of the schema.
            request = json_format.ParseDict(with_base64(json.loads(line), where), ExportTraceServiceRequest())
            for resource in request.resource_spans:
                check(any(a.key == "service.name" for a in resource.resource.attributes), where, "has no service")
                for scope in resource.scope_spans:
                    spans += scope.spans
    check(spans, path, "has no spans")
    by_id = {span.span_id: span for span in spans}
    check(len(by_id) == len(spans), path, "has an id twice")
    for span in spans:
        where = f"{path}: {span.name}"
        check(0 < span.start_time_unix_nano <= span.end_time_unix_nano, where, "ends before it starts")
        keys = [attribute.key for attribute in span.attributes]
        check(len(keys) == len(set(keys)), where, "has an attribute twice", keys)
        parent = by_id.get(span.parent_span_id)
        check(not span.parent_span_id or parent, where, "has no parent")
        check(not parent or parent.trace_id == span.trace_id, where, "is in another trace than its parent")
        for link in span.links:
            check(link.span_id in by_id, where, "has a link to nothing")
        if span.kind == span.SPAN_KIND_CLIENT:
            for key in ("http.request.method", "url.full", "server.address", "server.port"):
                check(key in keys, where, "has no", key)
            failed = span.status.code == span.status.STATUS_CODE_ERROR
            check(failed == ("error.type" in keys), where, "has a status without a type", keys)
        elif not parent or parent.kind != span.SPAN_KIND_CLIENT:
            check(span.kind == span.SPAN_KIND_INTERNAL, where, "has the kind", span.kind)
    clients = sum(span.kind == span.SPAN_KIND_CLIENT for span in spans)
    print(f"{path.rpartition('/')[2]}: {len(spans)} spans of OTLP, {clients} of messages, "
          f"{len({span.trace_id for span in spans})} traces")


def check_events(path):
    with open(path, encoding="utf-8") as file:
        document = json.load(file)
    lanes = collections.defaultdict(list)
    names = set()
    for event in document["traceEvents"]:
        where = f"{path}: {event.get('name')}"
        check(isinstance(event.get("name"), str) and isinstance(event.get("args"), dict), where, event)
        lane = (event["pid"], event["tid"])
        check(all(type(number) is int for number in lane), where, lane)
        if event["ph"] == "M":
            check(isinstance(event["args"]["name"], str), where, event)
            names.add((event["name"], lane[0]) if event["name"] == "process_name" else (event["name"], *lane))
        else:
            check(event["ph"] == "X" and event["ts"] >= 0 and event["dur"] >= 0, where, event)
            lanes[lane].append((event["ts"], -event["dur"], event["name"]))
    for lane, events in lanes.items():
        check(("process_name", lane[0]) in names and ("thread_name", *lane) in names, path, "has no name for", lane)
        ends = []
        for start, length, name in sorted(events):
            while ends and ends[-1] <= start:
                ends.pop()
            # Events of a lane contain each other or follow each other.
            check(not ends or start - length <= ends[-1], f"{path}: {name} is cut in", lane)
            ends.append(start - length)
    count = sum(map(len, lanes.values()))
    check(count, path, "has no events")
    print(f"{path.rpartition('/')[2]}: {count} events of Chrome in {len(lanes)} lanes")


for path in sys.argv[1:]:
    if path.endswith(".jsonl"):
        check_lines(path)
    else:
        check_events(path)
for failure in failures[:20]:
    print("failed:", failure[:2000], file=sys.stderr)
if failures:
    sys.exit(f"{len(failures)} differences")
