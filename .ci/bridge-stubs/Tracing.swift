/// What the article "Bridges" uses of swift-distributed-tracing and its modules, with the signatures of its version 1.4.
public struct ServiceContext: Sendable {
    public static var current: ServiceContext? { nil }
    public static var topLevel: ServiceContext { ServiceContext() }
}

public enum SpanKind: Hashable, Sendable { case client, `internal` }

public protocol Span: Sendable {
    var context: ServiceContext { get }
}

public protocol Injector: Sendable {
    associatedtype Carrier: Sendable
    func inject(_ value: String, forKey key: String, into carrier: inout Carrier)
}

public protocol Instrument: Sendable {
    func inject<Carrier, Inject>(_ context: ServiceContext, into carrier: inout Carrier, using injector: Inject)
    where Inject: Injector, Inject.Carrier == Carrier
}

public enum InstrumentationSystem {
    public static var instrument: any Instrument { fatalError("a stub does not run") }
}

public func withSpan<T>(
    _ operationName: String,
    context: @autoclosure () -> ServiceContext = .current ?? .topLevel,
    ofKind kind: SpanKind = .internal,
    isolation: isolated (any Actor)? = #isolation,
    function: String = #function,
    file fileID: String = #fileID,
    line: UInt = #line,
    _ operation: (any Span) async throws -> T
) async rethrows -> T {
    fatalError("a stub does not run")
}
