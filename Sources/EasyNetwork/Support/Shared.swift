/// A value that copies share until one of them changes it: for what is large, seldom changed and often handed on.
struct Shared<Value: Sendable>: Sendable {
    private final class Box: @unchecked Sendable {
        // Sendable because it is changed only by the one who alone refers to it.
        var value: Value

        init(_ value: Value) {
            self.value = value
        }
    }

    private var box: Box

    init(_ value: Value) {
        box = Box(value)
    }

    var value: Value { box.value }

    mutating func change<Result>(_ body: (inout Value) -> Result) -> Result {
        if !isKnownUniquelyReferenced(&box) { box = Box(box.value) }
        return body(&box.value)
    }
}
