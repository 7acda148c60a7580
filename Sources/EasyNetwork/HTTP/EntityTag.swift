/// What a server calls one state of a resource (RFC 9110, section 8.8.3).
struct EntityTag: Hashable, Sendable {
    /// With its quotes, without `W/`.
    let opaqueTag: String
    let isWeak: Bool

    /// - Parameter field: the value of `ETag`; nil comes back for what is none, several of them among it, and `*`.
    init?(_ field: String) {
        let text = field.trimmed
        isWeak = text.hasPrefix("W/")
        opaqueTag = isWeak ? String(text.dropFirst(2)) : text
        let bytes = opaqueTag.utf8
        guard bytes.count >= 2, bytes.first == UInt8(ascii: "\""), bytes.last == UInt8(ascii: "\""),
            bytes.dropFirst().dropLast().allSatisfy({ $0 > 0x20 && $0 != 0x7F && $0 != UInt8(ascii: "\"") })
        else { return nil }
    }

    /// - Returns: nil when there is no such field, or no sound one.
    init?(_ headers: HTTPHeaders) {
        guard let field = headers["ETag"] else { return nil }
        self.init(field)
    }

    /// The form to send.
    var text: String { isWeak ? "W/" + opaqueTag : opaqueTag }

    /// The weak comparison (section 8.8.3.2).
    func isWeaklyEqual(to other: EntityTag) -> Bool {
        opaqueTag == other.opaqueTag
    }
}
