import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("TraceContext")
struct TraceContextTests {
    private static let example = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"

    @Test("DIA-3: ids are random, have all of their digits, and a child keeps the trace")
    func ids() throws {
        let text = "00-000000000000000a0000000000000001-000000000000001f-03"
        let context = try #require(TraceContext(traceparent: text))
        expect(context.traceparent, equals: text)
        expect(context.traceID == "000000000000000a0000000000000001" && context.spanID == "000000000000001f")
        let child = context.child()
        expect(child.traceparent.hasPrefix("00-000000000000000a0000000000000001-") && child.spanID != context.spanID)
        expect(TraceContext(isSampled: false).traceparent.hasSuffix("-02"))
        expect(TraceContext().traceparent.hasSuffix("-03"))
        expect(Set((0..<1_000).map { _ in TraceContext().traceID }).count, equals: 1_000)
    }

    @Test("DIA-3: a traceparent is read, and written as it was")
    func reading() throws {
        let context = try #require(TraceContext(traceparent: Self.example, tracestate: "a=1"))
        expect(context.traceID == "0af7651916cd43dd8448eb211c80319c" && context.spanID == "b7ad6b7169203331")
        expect(context.isSampled && context.traceparent == Self.example && context.tracestate == "a=1")
        let unsampled = try #require(TraceContext(traceparent: Self.example.dropLast() + "0"))
        expect(!unsampled.isSampled && !unsampled.child().isSampled)
        expect(context.child().traceID == context.traceID && context.child().tracestate == "a=1")
        // Unknown flags are not passed on.
        expect(TraceContext(traceparent: Self.example.dropLast(2) + "ff")?.traceparent.hasSuffix("-03"), equals: true)
        // A later version may have more.
        for text in ["cc" + Self.example.dropFirst(2), "cc" + Self.example.dropFirst(2) + "-what"] {
            expect(TraceContext(traceparent: text)?.traceparent, equals: Self.example, "\(text)")
        }
    }

    @Test(
        "DIA-3: a malformed traceparent is refused",
        arguments: [
            "", "00", example + "-", example + "-00", "ff" + example.dropFirst(2),
            "cc" + example.dropFirst(2) + ".what",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01", example.uppercased(), " " + example,
            "00_" + example.dropFirst(3), "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-0g",
            "0x" + example.dropFirst(2), "00-0af7651916cd43dd8448eb211c80319-cb7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c8031é-b7ad6b7169203331-01", String(example.dropLast()),
        ] as [String]
    )
    func refusal(text: String) {
        expect(TraceContext(traceparent: text) == nil)
    }

    @Test("DIA-3: a malformed tracestate is left out, and the trace goes on without it")
    func states() {
        func state(_ text: String) -> String? { TraceContext(traceparent: Self.example, tracestate: text)?.tracestate }
        let many = (1...32).map { "k\($0)=v" }.joined(separator: ",")
        for text in ["a=1", "a=1,b@c=x y", "a=1 ,, b=2", "0_-*/@=!~", many] {
            expect(state(text), equals: text, "\(text)")
        }
        let long = String(repeating: "v", count: 257)
        for text in [
            "", "a", "=1", "a=", "A=1", "a=1,a=2", "a=1=2", "a=é", "a=\r\nX: 1", "a=\(long)", many + ",l=1", "_a=1",
        ] {
            expect(state(text) == nil, "\(text)")
        }
        expect(TraceContext(traceparent: Self.example, tracestate: "A=1") != nil)
    }
}
