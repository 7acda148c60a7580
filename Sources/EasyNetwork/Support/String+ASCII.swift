extension String {
    /// Compares as header names and URL schemes are compared: only A to Z have two cases.
    package func isEqualIgnoringASCIICase(to other: String) -> Bool {
        guard utf8.count == other.utf8.count else { return false }
        // By their storage, as headers are looked for by name again and again.
        var (left, right) = (self, other)
        return left.withUTF8 { left in
            right.withUTF8 { right in
                for index in left.indices where left[index] != right[index] {
                    guard left[index].lowercasedASCII == right[index].lowercasedASCII else { return false }
                }
                return true
            }
        }
    }
}

extension UInt8 {
    package var lowercasedASCII: UInt8 {
        (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(self) ? self | 0x20 : self
    }

    package var uppercasedASCII: UInt8 {
        (UInt8(ascii: "a")...UInt8(ascii: "z")).contains(self) ? self & ~0x20 : self
    }
}
