import Foundation

// Reading NSArray and NSDictionary one level at a time. On Linux every way to read an element turns the containers in it
// into Swift's at once, all the way down, and overflows the stack when one holds itself. Their mirrors show the
// elements as they are stored.

extension NSArray {
    var shallowElements: [Any] {
        #if canImport(Darwin)
        return map { $0 }
        #else
        let stored = Mirror(reflecting: self).children
        // A subclass may store its elements elsewhere.
        guard stored.count == count else { return map { $0 } }
        return stored.map { unboxed($0.value) }
        #endif
    }
}

extension NSDictionary {
    var shallowPairs: [(key: Any, value: Any)] {
        #if canImport(Darwin)
        return map { ($0.key, $0.value) }
        #else
        let stored = Mirror(reflecting: self).children.compactMap { child -> (key: Any, value: Any)? in
            let sides = Mirror(reflecting: child.value).children.map(\.value)
            return sides.count == 2 ? (unboxed(sides[0]), unboxed(sides[1])) : nil
        }
        return stored.count == count ? stored : map { ($0.key, $0.value) }
        #endif
    }
}

#if !canImport(Darwin)
/// Takes a value of Swift out of the object that Foundation stores for it; objects of Foundation stay what they are.
private func unboxed(_ value: Any) -> Any {
    switch value {
    case is NSArray, is NSDictionary, is NSNumber, is NSNull: value
    default: NSArray(object: value).object(at: 0)
    }
}
#endif
