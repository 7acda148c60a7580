/// A position in a distributed trace, as identified by a `traceparent` header
/// ([W3C Trace Context](https://www.w3.org/TR/trace-context/), levels 1 and 2).
///
/// ```swift
/// let context = TraceContext(traceparent: message.headers["traceparent"] ?? "") ?? TraceContext()
/// let profile = try await TraceContext.$current.withValue(context) {
///     try await NetworkQueue.shared.perform(GetProfile())
/// }
/// ```
///
/// Messages to hosts with ``HostSettings/sendsTraceContext`` include the context in their headers. `Timeline` of the
/// product EasyNetworkDiagnostics records the spans.
public struct TraceContext: Hashable, Sendable {
    /// The context of the current task. Jobs that the task creates or enqueues, and calls that it makes, belong to its
    /// trace. Defaults to `nil`: each graph of jobs, and each call without a job, begins its own trace.
    ///
    /// While a job or a call is traced, its context is current in ``NetworkOperation/execute()``, in filters,
    /// interceptors and authenticators, and in closures that decide about redirects.
    @TaskLocal public static var current: TraceContext?

    /// Whether anything in the process uses traces. If not, no task-local value is read and no ID is generated.
    package static let isUsed = Flag()

    private let high: UInt64
    private let low: UInt64
    package private(set) var span: UInt64
    private let flags: UInt8

    /// The `tracestate` that was received with the trace, and is passed on unchanged; nil if there is none.
    public let tracestate: String?

    /// Whether a span with the ``spanID`` exists, and not only the beginning of a trace.
    private(set) var hasSpan: Bool

    private static let sampled: UInt8 = 1
    /// The flag of level 2 that says that the last seven bytes of the trace ID are random.
    private static let random: UInt8 = 2

    /// Begins a trace with a random ID. Its first spans have no parent.
    ///
    /// - Parameter isSampled: Whether the trace is recorded; see ``isSampled``. Defaults to `true`.
    public init(isSampled: Bool = true) {
        let flags = Self.random | (isSampled ? Self.sampled : 0)
        self.init(high: Self.makeID(), low: Self.makeID(), span: Self.makeID(), flags: flags, hasSpan: false)
    }

    private init(high: UInt64, low: UInt64, span: UInt64, flags: UInt8, tracestate: String? = nil, hasSpan: Bool) {
        (self.high, self.low, self.span) = (high, low, span)
        (self.flags, self.tracestate, self.hasSpan) = (flags, tracestate, hasSpan)
        if !Self.isUsed.isSet { Self.isUsed.isSet = true }
    }

    /// Returns a random ID that is not zero.
    private static func makeID() -> UInt64 { .random(in: 1 ... .max) }

    /// Returns a new span of this trace.
    func child() -> TraceContext {
        var child = self
        (child.span, child.hasSpan) = (Self.makeID(), true)
        return child
    }

    /// The same trace without its span.
    var beginning: TraceContext {
        var beginning = self
        beginning.hasSpan = false
        return beginning
    }

    package func isInTrace(of other: TraceContext) -> Bool { high == other.high && low == other.low }

    /// The ID of the trace: 32 hexadecimal digits in lower case.
    public var traceID: String { Self.hex(high) + Self.hex(low) }

    /// The ID of the span, the `parent-id` of the specification: 16 hexadecimal digits in lower case.
    public var spanID: String { Self.hex(span) }

    /// Whether the trace is recorded. If not, it is passed on, but none of its spans are recorded.
    public var isSampled: Bool { flags & Self.sampled != 0 }

    /// The value of the header: `00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01`.
    public var traceparent: String { "00-\(traceID)-\(spanID)-0\(flags)" }

    package static func hex(_ value: UInt64) -> String {
        let digits = String(value, radix: 16)
        return String(repeating: "0", count: 16 - digits.utf8.count) + digits
    }
}

// MARK: - Reading

extension TraceContext {
    /// Creates a context from the headers of a caller.
    ///
    /// - Parameters:
    ///   - traceparent: The value of the header. The result is nil for a value that the specification requires a
    ///     receiver to ignore: one with digits in upper case, an ID of zeros, the version `ff`, or another length. Of a
    ///     later version, only the fields of version `00` are read (section 3.2.4 of level 1, "Versioning of
    ///     traceparent").
    ///   - tracestate: The value of the header. Join several values with commas. A malformed value is omitted, as the
    ///     specification requires. Defaults to `nil`.
    public init?(traceparent: String, tracestate: String? = nil) {
        let text = Array(traceparent.utf8)
        func number(_ range: Range<Int>) -> UInt64? {
            let isNumber = text[range].allSatisfy { $0.isHexDigit && $0.lowercasedASCII == $0 }
            return isNumber ? UInt64(String(decoding: text[range], as: UTF8.self), radix: 16) : nil
        }
        let dash = UInt8(ascii: "-")
        guard text.count >= 55, [2, 35, 52].allSatisfy({ text[$0] == dash }), let version = number(0..<2),
            version != 0xff, text.count == 55 || (version > 0 && text[55] == dash), let high = number(3..<19),
            let low = number(19..<35), high != 0 || low != 0, let span = number(36..<52), span != 0,
            let flags = number(53..<55)
        else { return nil }
        let knownFlags = UInt8(flags) & (Self.sampled | Self.random)
        let state = tracestate.flatMap { Self.isValid($0) ? $0 : nil }
        self.init(high: high, low: low, span: span, flags: knownFlags, tracestate: state, hasSpan: true)
    }

    /// Returns whether the value has at most 32 members `key=value` (section 3.3.1), and no key twice.
    private static func isValid(_ tracestate: String) -> Bool {
        var keys: Set<[UInt8]> = []
        for part in tracestate.utf8.split(separator: UInt8(ascii: ",")) {
            // An empty member is allowed.
            let member = part.drop(while: \.isBlank)
            guard !member.isEmpty else { continue }
            guard let equals = member.firstIndex(of: UInt8(ascii: "=")) else { return false }
            let key = Array(member[..<equals])
            // Blanks at the end belong to the list instead of the value.
            let value = Array(member[member.index(after: equals)...].reversed().drop(while: \.isBlank))
            guard isKey(key), (1...256).contains(value.count),
                value.allSatisfy({ (0x20...0x7e).contains($0) && $0 != UInt8(ascii: "=") }), keys.insert(key).inserted
            else { return false }
        }
        return (1...32).contains(keys.count)
    }

    private static func isKey(_ key: [UInt8]) -> Bool {
        let isLetterOrDigit = { (byte: UInt8) in byte.isDigit || byte.isLetter && byte.lowercasedASCII == byte }
        return (1...256).contains(key.count) && isLetterOrDigit(key[0])
            && key.allSatisfy { isLetterOrDigit($0) || "_-*/@".utf8.contains($0) }
    }
}

extension TraceContext: CustomStringConvertible {
    /// The ``traceparent``.
    public var description: String { traceparent }
}

/// A span of a job, a call or a message.
package final class TraceSpan: Sendable {
    package let context: TraceContext
    private let parent: TraceContext

    /// Creates a span.
    ///
    /// - Parameter parent: The context of the new span. If it has a span, this is the parent. Otherwise the new span
    ///   has no parent, and begins or continues the trace.
    package init(in parent: TraceContext) {
        context = parent.child()
        self.parent = parent
    }

    /// The ID of the parent span; nil for a span without parent. A trace can have several of them.
    package var parentID: String? { parent.hasSpan ? parent.spanID : nil }
}
