import EasyNetwork
import Foundation

/// A writer of OTLP/JSON lines, each an `ExportTraceServiceRequest`
/// (https://opentelemetry.io/docs/specs/otlp/#json-protobuf-encoding): ids in hexadecimal, 64-bit integers as strings,
/// enumerations as numbers.
struct OpenTelemetryText: Sendable {
    /// The value of `service.name`.
    let service: String

    /// - Parameter droppedCount: the number of jobs that a file has lost before these spans. Defaults to 0.
    func line(of spans: [RecordedSpan], droppedCount: Int = 0) -> String {
        var text = JSONText()
        text.object { text in
            text.array("resourceSpans") { text in
                text.object { text in
                    text.object("resource") { text in
                        text.array("attributes") { Self.add("service.name", .text(service), to: &$0) }
                    }
                    text.array("scopeSpans") { text in
                        text.object { text in
                            text.object("scope") { text in
                                text.add("name", "EasyNetwork")
                                guard droppedCount > 0 else { return }
                                text.array("attributes") {
                                    Self.add("easynetwork.dropped", .number(droppedCount), to: &$0)
                                }
                            }
                            text.array("spans") { text in
                                for span in spans { text.object { Self.add(span, to: &$0) } }
                            }
                        }
                    }
                }
            }
        }
        return String(decoding: text.bytes, as: UTF8.self)
    }

    private static func add(_ span: RecordedSpan, to text: inout JSONText) {
        text.add("traceId", span.context.traceID)
        text.add("spanId", span.id)
        if let state = span.context.tracestate { text.add("traceState", state) }
        if let parent = span.parentID { text.add("parentSpanId", parent) }
        text.add("name", span.name)
        // SPAN_KIND_CLIENT and SPAN_KIND_INTERNAL.
        text.add("kind", span.isMessage ? 3 : 1)
        text.add("startTimeUnixNano", nanoseconds(span.start))
        text.add("endTimeUnixNano", nanoseconds(span.end))
        text.array("attributes") { text in
            for (name, value) in span.attributes { add(name, value, to: &text) }
        }
        if !span.links.isEmpty {
            text.array("links") { text in
                for link in span.links {
                    text.object { text in
                        text.add("traceId", link.traceID)
                        text.add("spanId", link.spanID)
                    }
                }
            }
        }
        guard span.failure.isError else { return }
        text.object("status") { text in
            if let message = span.failure.message { text.add("message", message) }
            // STATUS_CODE_ERROR.
            text.add("code", 2)
        }
    }

    private static func add(_ name: String, _ value: RecordedSpan.Value, to text: inout JSONText) {
        text.object { text in
            text.add("key", name)
            text.object("value") { text in
                switch value {
                case .text(let value): text.add("stringValue", value)
                case .number(let value): text.add("intValue", String(value))
                case .list(let values):
                    text.object("arrayValue") { text in
                        text.array("values") { text in
                            for value in values { text.object { $0.add("stringValue", value) } }
                        }
                    }
                }
            }
        }
    }

    private static func nanoseconds(_ date: Date) -> String {
        let time = date.timeIntervalSince1970
        // Today's dates have a precision of several hundred nanoseconds as a Double, so further digits would be noise.
        return String((Int64(exactly: (time * 1_000_000).rounded()) ?? 0) * 1_000)
    }
}
