/// What the article "Bridges" uses of swift-metrics, with the signatures of its version 2.10.
public final class Counter: Sendable {
    public init(label: String, dimensions: [(String, String)] = []) {}
    public func increment() {}
}

public final class Timer: Sendable {
    public init(label: String, dimensions: [(String, String)] = []) {}
    public func recordSeconds<DataType: BinaryFloatingPoint>(_ duration: DataType) {}
}
