import Foundation

extension JSONScanner {
    /// Whether two keys of an object may be equal. Seldom true if they are not.
    ///
    /// - Parameter hash: gives the hash of a key of ASCII, equal for equal keys.
    @inline(__always)
    static func mayRepeatKeys(
        _ object: Int,
        _ words: UnsafeMutableBufferPointer<UInt64>,
        _ bytes: UnsafeRawBufferPointer,
        hash: (UnsafeRawBufferPointer) -> UInt32
    ) -> Bool {
        let count = JSONIndex.count(words[object])
        guard count > 1 else { return false }
        // A set of hashes with room for twice as many; 0 is free.
        let capacity = 1 << (Int.bitWidth - (2 * count - 1).leadingZeroBitCount)
        return withUnsafeTemporaryAllocation(of: UInt32.self, capacity: capacity) { set in
            set.initialize(repeating: 0)
            var key = object + 1
            let end = JSONIndex.place(words[object])
            while key < end {
                // Composed and decomposed letters are equal, and so are an escape and its character.
                guard words[key] >> 61 == JSONIndex.Kind.ascii.rawValue else { return true }
                let place = JSONIndex.place(words[key])
                let name = UnsafeRawBufferPointer(rebasing: bytes[place..<(place + JSONIndex.count(words[key]))])
                let hash = hash(name) | 1
                var slot = Int(hash >> 8) & (capacity - 1)
                var probes = 0
                while set[slot] != 0 {
                    // Keys that were chosen to meet at one place must not cost the square of their number.
                    probes += 1
                    if set[slot] == hash || probes > 64 { return true }
                    slot = (slot + 1) & (capacity - 1)
                }
                set[slot] = hash
                key = words[key + 1] >> 62 == 3 ? JSONIndex.place(words[key + 1]) : key + 2
            }
            return false
        }
    }

    /// Of the first and the last bytes and the length, which differ in most keys of one object, and of all if not short.
    @inline(__always)
    static func hash(_ name: UnsafeRawBufferPointer) -> UInt32 {
        let count = name.count
        var (first, last): (UInt64, UInt64) = (0, 0)
        if count >= 8 {
            first = name.loadUnaligned(as: UInt64.self)
            last = name.loadUnaligned(fromByteOffset: count - 8, as: UInt64.self)
        } else if count >= 4 {
            first = UInt64(name.loadUnaligned(as: UInt32.self))
            last = UInt64(name.loadUnaligned(fromByteOffset: count - 4, as: UInt32.self))
        } else {
            for byte in name { first = first << 8 | UInt64(byte) }
        }
        let mixed = (first ^ UInt64(count)) &* 0x9E37_79B9_7F4A_7C15 ^ last &* 0xC2B2_AE3D_27D4_EB4F
        return UInt32(truncatingIfNeeded: (mixed ^ mixed >> 29) &* 0x9E37_79B9_7F4A_7C15 >> 32)
    }

    /// The same for all keys that one name is made of.
    static func foldedHash(_ name: UnsafeRawBufferPointer) -> UInt32 {
        var hash: UInt32 = 0x811C_9DC5
        for byte in name where byte != UInt8(ascii: "_") { hash = (hash ^ UInt32(byte | 0x20)) &* 0x0100_0193 }
        return hash ^ hash >> 15
    }
}

extension JSONIndex {
    /// Whether two keys of an object may become one name.
    func mayRepeatSnakeCaseKeys(_ object: Int) -> Bool {
        withText { JSONScanner.mayRepeatKeys(object, words, $0, hash: JSONScanner.foldedHash) }
    }

    /// As ``value(of:in:from:)``, for a name that keys in snake case are converted to.
    func value(ofSnakeCase name: String, in object: Int, from hint: inout Int) -> Int? {
        var copy = name
        return copy.withUTF8 { bytes in
            let start = hint
            for range in [start..<end(object), object + 1..<start] {
                var key = range.lowerBound
                while key < range.upperBound {
                    let value = key + 1
                    if matchesSnakeCase(key, bytes) ?? (string(key)?.convertedFromSnakeCase == name) {
                        hint = next(value)
                        return value
                    }
                    key = next(value)
                }
            }
            return nil
        }
    }

    /// Whether the key becomes the name; nil if Foundation must say what it becomes.
    private func matchesSnakeCase(_ key: Int, _ name: UnsafeBufferPointer<UInt8>) -> Bool? {
        guard kind(key) == .ascii else { return nil }
        return withBytes(key) { key in
            let mark = UInt8(ascii: "_")
            let start = key.firstIndex { $0 != mark } ?? key.count
            let end = (key.lastIndex { $0 != mark } ?? -1) + 1
            // Without a mark in its middle it stays as it is.
            guard start < end, key[start..<end].contains(mark) else { return key.elementsEqual(name) }
            var matched = 0
            func match(_ byte: UInt8) -> Bool {
                guard matched < name.count, name[matched] == byte else { return false }
                matched += 1
                return true
            }
            for byte in key[..<start] where !match(byte) { return false }
            // At the start of a word that is not the first, in its letters, in its digits.
            var (isFirst, isStart, hasDigit) = (true, true, false)
            for byte in key[start..<end] {
                switch byte {
                case mark: (isFirst, isStart, hasDigit) = (false, true, false)
                case UInt8(ascii: "0")...UInt8(ascii: "9"):
                    guard match(byte) else { return false }
                    (isStart, hasDigit) = (false, true)
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"):
                    // Platforms capitalize "a1b" differently.
                    guard !hasDigit else { return nil }
                    guard match(isStart && !isFirst ? byte & 0xDF : byte | 0x20) else { return false }
                    isStart = false
                default: return nil
                }
            }
            for byte in key[end...] where !match(byte) { return false }
            return matched == name.count
        }
    }
}

extension String {
    /// `user_name` as `userName`, as `JSONDecoder` does it: marks at the beginning and at the end stay, and a text
    /// without others in its middle.
    var convertedFromSnakeCase: String {
        guard let start = firstIndex(where: { $0 != "_" }), let last = lastIndex(where: { $0 != "_" }) else {
            return self
        }
        let words = self[start...last].split(separator: "_")
        guard words.count > 1 else { return self }
        return self[..<start] + words[0].lowercased() + words[1...].map(\.capitalized).joined()
            + self[index(after: last)...]
    }
}
