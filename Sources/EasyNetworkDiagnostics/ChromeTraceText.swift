import EasyNetwork
import Foundation

/// A writer of Chrome trace events (https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU),
/// which Perfetto reads.
///
/// Each host is a process. It has as many lanes as it has concurrent spans that do not contain each other.
struct ChromeTraceText {
    private struct Lanes {
        let process: Int
        /// The end of the last span in each lane, in microseconds.
        var ends: [Int] = []
    }

    private var text = JSONText()
    private var lanes: [String: Lanes] = [:]
    private let origin: Date

    /// Returns the rows as a JSON document.
    ///
    /// - Parameter now: the end of spans that have not ended.
    static func document(_ rows: [TracedRow], until now: Date) -> String {
        let rows = rows.map { (row: $0, spans: $0.spans(until: now)) }
            .filter { !$0.spans.isEmpty }
            .sorted { $0.spans[0].start < $1.spans[0].start }
        var events = Self(origin: rows.first?.spans[0].start ?? now)
        var text = JSONText()
        text.object { text in
            text.add("displayTimeUnit", "ms")
            text.object("otherData") { $0.add("begin", events.origin.timestamp) }
            text.array("traceEvents") { text in
                swap(&events.text, &text)
                for (row, spans) in rows { events.add(row, spans) }
                events.addNames()
                swap(&events.text, &text)
            }
        }
        return String(decoding: text.bytes, as: UTF8.self)
    }

    private init(origin: Date) {
        self.origin = origin
    }

    private mutating func add(_ row: TracedRow, _ spans: [RecordedSpan]) {
        let process = row.host ?? "jobs"
        var parts = spans[...]
        // The lanes of the parts. A job can have several calls under way at once.
        var free: [(lane: Int, end: Int)] = []
        if row.hasOwnSpan, let own = parts.popFirst() {
            let lane = lane(in: process, from: time(own.start), to: time(own.end))
            add(own, in: process, lane)
            free = [(lane, time(own.start))]
        }
        // Phases are drawn in the lane of their message.
        var lanes: [String: Int] = [:]
        for part in parts.sorted(by: { ($0.start, $1.end) < ($1.start, $0.end) }) {
            let (start, end) = (time(part.start), time(part.end))
            var place = part.parentID.flatMap { lanes[$0] }
            if place == nil {
                if let index = free.indices.first(where: { free[$0].end <= start }) {
                    free[index].end = end
                    place = free[index].lane
                } else {
                    let lane = lane(in: process, from: start, to: end)
                    free.append((lane, end))
                    place = lane
                }
            }
            if part.isMessage { lanes[part.id] = place }
            add(part, in: process, place ?? 0)
        }
    }

    private mutating func lane(in process: String, from start: Int, to end: Int) -> Int {
        var own = lanes[process] ?? Lanes(process: lanes.count + 1)
        defer { lanes[process] = own }
        if let free = own.ends.indices.first(where: { own.ends[$0] <= start }) {
            own.ends[free] = end
            return free + 1
        }
        own.ends.append(end)
        return own.ends.count
    }

    private mutating func add(_ span: RecordedSpan, in process: String, _ lane: Int) {
        let process = lanes[process]?.process ?? 0
        let (start, end) = (time(span.start), time(span.end))
        text.object { text in
            text.add("name", span.name)
            text.add("cat", span.isMessage ? "message" : "job")
            text.add("ph", "X")
            text.add("ts", start)
            text.add("dur", end - start)
            text.add("pid", process)
            text.add("tid", lane)
            text.object("args") { text in
                text.add("trace", span.context.traceID)
                text.add("span", span.id)
                if let parent = span.parentID { text.add("parent", parent) }
                if !span.links.isEmpty {
                    text.array("links") { text in
                        for link in span.links { text.add(link.spanID) }
                    }
                }
                for (name, value) in span.attributes {
                    text.add(key: name) { text in
                        switch value {
                        case .text(let value): text.add(value)
                        case .number(let value): text.add(value)
                        case .list(let values): text.add(values.joined(separator: ", "))
                        }
                    }
                }
                if let message = span.failure.message { text.add("error", message) }
            }
        }
    }

    private mutating func addNames() {
        for (name, lanes) in lanes.sorted(by: { $0.value.process < $1.value.process }) {
            addName("process_name", name, lanes.process, 0)
            for lane in lanes.ends.indices { addName("thread_name", "lane \(lane + 1)", lanes.process, lane + 1) }
        }
    }

    private mutating func addName(_ kind: String, _ name: String, _ process: Int, _ lane: Int) {
        text.object { text in
            text.add("name", kind)
            text.add("ph", "M")
            text.add("pid", process)
            text.add("tid", lane)
            text.object("args") { $0.add("name", name) }
        }
    }

    /// Returns the microseconds since the first event. Rounding each time in the same way keeps nested spans nested.
    private func time(_ date: Date) -> Int {
        Int(exactly: (date.timeIntervalSince(origin) * 1_000_000).rounded()) ?? 0
    }
}
