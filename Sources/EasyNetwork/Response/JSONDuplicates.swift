import Foundation

/// Finds a key that an object has twice, which readers of JSON understand in different ways (RFC 8259, section 4):
/// on Linux `JSONSerialization` takes one of the two values and `JSONDecoder` the other.
enum JSONDuplicates {
    private struct Container {
        let isObject: Bool
        var keys: Set<String> = []
        var key = ""
        var index = 0
    }

    /// - Parameter json: well-formed, in UTF-8.
    /// - Returns: the steps to the first such key; nil when there is none.
    static func path(in json: Data) -> [JSONStep]? {
        json.withUnsafeBytes { path(in: $0) }
    }

    private static func path(in bytes: UnsafeRawBufferPointer) -> [JSONStep]? {
        var open: [Container] = []
        var expectsKey = false
        var index = 0
        while index < bytes.count {
            let byte = bytes[index]
            switch byte {
            case UInt8(ascii: "{"), UInt8(ascii: "["):
                open.append(Container(isObject: byte == UInt8(ascii: "{")))
                expectsKey = byte == UInt8(ascii: "{")
            case UInt8(ascii: "}"), UInt8(ascii: "]"):
                _ = open.popLast()
                expectsKey = false
            case UInt8(ascii: ","):
                guard let last = open.indices.last else { break }
                open[last].index += 1
                expectsKey = open[last].isObject
            case UInt8(ascii: "\""):
                let end = endOfString(bytes, from: index)
                if expectsKey, let last = open.indices.last {
                    let key = text(bytes[index..<end])
                    open[last].key = key
                    guard open[last].keys.insert(key).inserted else {
                        return open.map { $0.isObject ? .key($0.key) : .index($0.index) }
                    }
                    expectsKey = false
                }
                index = end
                continue
            default: break
            }
            index += 1
        }
        return nil
    }

    private static func endOfString(_ bytes: UnsafeRawBufferPointer, from start: Int) -> Int {
        var index = start + 1
        while index < bytes.count, bytes[index] != UInt8(ascii: "\"") {
            index += bytes[index] == UInt8(ascii: "\\") ? 2 : 1
        }
        return min(index + 1, bytes.count)
    }

    /// - Parameter string: with its quotes.
    private static func text(_ string: Slice<UnsafeRawBufferPointer>) -> String {
        if string.contains(UInt8(ascii: "\\")),
            let text = try? JSONSerialization.jsonObject(with: Data(string), options: .fragmentsAllowed) as? String
        {
            return text
        }
        return String(decoding: string.dropFirst().dropLast(), as: UTF8.self)
    }
}
