import Foundation

extension JSONReader {
    /// Returns the position of a key's value. If a key is repeated, the last one counts.
    ///
    /// - Parameter hint: the position of the key at which the search begins; it continues after that key, and then
    ///   before it. The hint moves past the found value, because keys are mostly read in the order in which they were
    ///   written.
    @inline(__always)
    func value(of key: String, in object: Int, from hint: inout Int) -> Int? {
        let isNext = hint < end(object) && !words[object].isMarked && key.utf8Bytes { isKey(hint, $0) }
        guard isNext else { return search(object, for: key, from: &hint) }
        let value = hint + 1
        hint = next(value)
        return value
    }

    /// Searches like ``value(of:in:from:)``, for the name that a key in snake case is converted to.
    func value(ofSnakeCase name: String, in object: Int, from hint: inout Int) -> Int? {
        name.utf8Bytes { bytes in
            search(object, from: &hint) { matchesSnakeCase($0, bytes) ?? (string($0)?.convertedFromSnakeCase == name) }
        }
    }

    @inline(never)
    private func search(_ object: Int, for key: String, from hint: inout Int) -> Int? {
        key.utf8Bytes { bytes in
            // Compare as Strings, for which composed and decomposed letters are equal.
            search(object, from: &hint) { isKey($0, bytes) || kind($0) == .text && string($0) == key }
        }
    }

    @inline(__always)
    private func search(_ object: Int, from hint: inout Int, _ isKey: (Int) -> Bool) -> Int? {
        let (first, mayRepeat) = (object + 1, words[object].isMarked)
        let start = mayRepeat ? first : hint
        var (key, limit) = (start, end(object))
        var found: Int?
        // Search from the hint on, then before it.
        for _ in 0..<2 {
            while key < limit {
                let next = next(key + 1)
                if isKey(key) {
                    found = key + 1
                    hint = next
                    if !mayRepeat { return found }
                }
                key = next
            }
            (key, limit) = (first, start)
        }
        return found
    }

    /// Returns whether the key has exactly these bytes, and only ASCII.
    @inline(__always)
    private func isKey(_ key: Int, _ name: UnsafeBufferPointer<UInt8>) -> Bool {
        let word = words[key]
        guard word.kind == .ascii, word.count == name.count else { return false }
        let (bytes, name) = (bytes(key), UnsafeRawBufferPointer(name))
        return Self.ends(bytes) == Self.ends(name) && (name.count <= 16 || bytes.elementsEqual(name))
    }

    /// Returns the first eight and the last eight bytes, or fewer of a shorter key: all bytes of a key of up to 16.
    @inline(__always)
    private static func ends(_ text: UnsafeRawBufferPointer) -> (UInt64, UInt64) {
        let count = text.count
        if count >= 8 {
            let last = text.loadUnaligned(fromByteOffset: count - 8, as: UInt64.self)
            return (text.loadUnaligned(as: UInt64.self), last)
        }
        if count >= 4 {
            let last = text.loadUnaligned(fromByteOffset: count - 4, as: UInt32.self)
            return (UInt64(text.loadUnaligned(as: UInt32.self)), UInt64(last))
        }
        return count == 0 ? (0, 0) : (UInt64(text[0]), UInt64(text[count / 2]) << 8 | UInt64(text[count - 1]))
    }

    /// Returns whether two keys of an object could be equal. The result is rarely true if they are not.
    ///
    /// - Parameter isSnakeCase: whether the keys are compared by their converted names.
    func mayRepeatKeys(_ object: Int, isSnakeCase: Bool = false) -> Bool {
        let (count, end) = (count(object), end(object))
        if count <= 8, !isSnakeCase { return mayRepeatFewKeys(object) }
        // The set contains hashes and has room for at least twice as many; 0 marks a free slot.
        let capacity = 1 << (Int.bitWidth - (2 * count - 1).leadingZeroBitCount)
        return withUnsafeTemporaryAllocation(of: UInt32.self, capacity: capacity) { set in
            set.initialize(repeating: 0)
            var key = object + 1
            while key < end {
                // Assume a repeated key, because composed and decomposed letters are equal, and so are an escape and
                // its character.
                guard kind(key) == .ascii else { return true }
                let hash = (isSnakeCase ? Self.foldedHash(bytes(key)) : Self.hash(bytes(key))) | 1
                var slot = Int(hash >> 8) & (capacity - 1)
                var probes = 0
                while set[slot] != 0 {
                    // Keys that an attacker chose to collide must not cost the square of their number.
                    probes += 1
                    if set[slot] == hash || probes > 64 { return true }
                    slot = (slot + 1) & (capacity - 1)
                }
                set[slot] = hash
                key = next(key + 1)
            }
            return false
        }
    }

    /// Compares each key with every other one, which costs less than a set.
    @inline(__always)
    private func mayRepeatFewKeys(_ object: Int) -> Bool {
        let end = end(object)
        var key = object + 1
        while key < end {
            guard kind(key) == .ascii else { return count(object) > 1 }
            let following = next(key + 1)
            var other = following
            while other < end {
                if count(other) == count(key), Self.ends(bytes(other)) == Self.ends(bytes(key)) { return true }
                other = next(other + 1)
            }
            key = following
        }
        return false
    }

    /// Returns a hash of the length and the first and last bytes, which differ in most keys of one object. For a short
    /// key, these are all its bytes.
    @inline(__always)
    private static func hash(_ name: UnsafeRawBufferPointer) -> UInt32 {
        let (first, last) = ends(name)
        let mixed = (first ^ UInt64(name.count)) &* 0x9E37_79B9_7F4A_7C15 ^ last &* 0xC2B2_AE3D_27D4_EB4F
        return UInt32(truncatingIfNeeded: (mixed ^ mixed >> 29) &* 0x9E37_79B9_7F4A_7C15 >> 32)
    }

    /// Returns the same hash for all keys that are converted to the same name.
    private static func foldedHash(_ name: UnsafeRawBufferPointer) -> UInt32 {
        var hash: UInt32 = 0x811C_9DC5
        for byte in name where byte != UInt8(ascii: "_") { hash = (hash ^ UInt32(byte | 0x20)) &* 0x0100_0193 }
        return hash ^ hash >> 15
    }

    /// Returns whether the key is converted to the name, or nil if only Foundation's conversion can decide.
    private func matchesSnakeCase(_ key: Int, _ name: UnsafeBufferPointer<UInt8>) -> Bool? {
        guard kind(key) == .ascii else { return nil }
        let key = bytes(key)
        let mark = UInt8(ascii: "_")
        let start = key.firstIndex { $0 != mark } ?? key.count
        let end = (key.lastIndex { $0 != mark } ?? -1) + 1
        // A key without an underscore in its middle is not converted.
        guard start < end, key[start..<end].contains(mark) else { return key.elementsEqual(name) }
        var matched = 0
        func match(_ byte: UInt8) -> Bool {
            guard matched < name.count, name[matched] == byte else { return false }
            matched += 1
            return true
        }
        for byte in key[..<start] where !match(byte) { return false }
        // The state: at the first word, at the start of a word, after a digit of the word.
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

extension String {
    /// The string converted from `user_name` to `userName`, as `JSONDecoder` does: underscores at the beginning and the
    /// end are kept, and a string without others in its middle is not changed.
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
