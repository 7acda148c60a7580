import EasyNetwork
import Foundation

/// The name of an entry's file, which contains what the outbox must know before it reads the file.
struct OutboxName: Hashable, Sendable {
    /// The position in the order of entries, across processes and restarts.
    let sequence: UInt64
    let id: UUID
    let priority: JobPriority
    let hasDependencies: Bool
    let hasOptions: Bool
    let type: String
    /// The lane; `nil` if the entry has no order.
    let lane: String?
    let text: String

    init(
        sequence: UInt64,
        id: UUID,
        priority: JobPriority,
        hasDependencies: Bool,
        hasOptions: Bool = false,
        type: String,
        lane: String?
    ) {
        (self.sequence, self.id, self.priority) = (sequence, id, priority)
        (self.hasDependencies, self.hasOptions, self.type, self.lane) = (hasDependencies, hasOptions, type, lane)
        let flags =
            "\(priority.rawValue)" + (hasDependencies ? "d" : "") + (hasOptions ? "o" : "") + (lane == nil ? "u" : "")
        let parts = [Self.padded(sequence), id.uuidString, flags, Self.encoded(type), Self.encoded(lane ?? "")]
        text = parts.joined(separator: ".")
    }

    /// Whether the number is in the range that an outbox assigns. If not, the entry becomes a dead letter.
    var isInOrder: Bool { sequence < OutboxSequence.limit }

    /// Returns the name of the same entry with another number.
    func numbered(_ sequence: UInt64) -> OutboxName {
        OutboxName(Self.padded(sequence) + text.dropFirst(16)) ?? self
    }

    private static func padded(_ sequence: UInt64) -> String {
        let digits = String(sequence, radix: 16)
        return String(repeating: "0", count: 16 - digits.count) + digits
    }

    /// Parses the name of a file. Returns `nil` if it isn't an entry's name.
    init?(_ text: String) {
        // The name is parsed by bytes for speed, because a starting outbox can have 100,000 names.
        var bytes = text
        let name = bytes.withUTF8 { bytes in Self.read(bytes, text) }
        guard let name else { return nil }
        self = name
    }

    private static func read(_ bytes: UnsafeBufferPointer<UInt8>, _ text: String) -> OutboxName? {
        guard bytes.count > 54, bytes[16] == UInt8(ascii: "."), bytes[53] == UInt8(ascii: "."),
            let sequence = number(bytes[..<16]), let id = id(bytes[17..<53])
        else { return nil }
        let parts = bytes[54...].split(separator: UInt8(ascii: "."), omittingEmptySubsequences: false)
        guard parts.count == 3, let digit = parts[0].first,
            let priority = JobPriority(rawValue: digit &- UInt8(ascii: "0")), let type = decoded(parts[1]),
            let lane = decoded(parts[2])
        else { return nil }
        return OutboxName(text, sequence, id, priority, flags: parts[0].dropFirst(), type, lane)
    }

    private init(
        _ text: String,
        _ sequence: UInt64,
        _ id: UUID,
        _ priority: JobPriority,
        flags: Bytes,
        _ type: String,
        _ lane: String
    ) {
        // The original string is kept, because another version may encode the same name differently.
        (self.text, self.sequence, self.id, self.priority, self.type) = (text, sequence, id, priority, type)
        hasDependencies = flags.contains(UInt8(ascii: "d"))
        hasOptions = flags.contains(UInt8(ascii: "o"))
        self.lane = flags.contains(UInt8(ascii: "u")) ? nil : lane
    }

    private typealias Bytes = Slice<UnsafeBufferPointer<UInt8>>

    /// Returns the value of up to 16 hexadecimal digits.
    private static func number(_ bytes: Bytes) -> UInt64? {
        var number: UInt64 = 0
        for byte in bytes {
            let letter = byte | 0x20
            switch byte {
            case UInt8(ascii: "0")...UInt8(ascii: "9"): number = number << 4 | UInt64(byte - UInt8(ascii: "0"))
            case _ where letter >= UInt8(ascii: "a") && letter <= UInt8(ascii: "f"):
                number = number << 4 | UInt64(letter - UInt8(ascii: "a") + 10)
            default: return nil
            }
        }
        return number
    }

    private static func id(_ bytes: Bytes) -> UUID? {
        let groups = bytes.split(separator: UInt8(ascii: "-"), omittingEmptySubsequences: false)
        guard groups.map(\.count) == [8, 4, 4, 4, 12], let a = number(groups[0]), let b = number(groups[1]),
            let c = number(groups[2]), let d = number(groups[3]), let e = number(groups[4])
        else { return nil }
        let (high, low) = (a << 32 | b << 16 | c, d << 48 | e)
        return withUnsafeBytes(of: (high.bigEndian, low.bigEndian)) { UUID(bytes: $0) }
    }

    /// - Throws: ``/EasyNetwork/NetworkError/Code/invalidRequest`` if a string is too long for a file name.
    static func check(_ text: String, _ role: String) throws(NetworkError) {
        guard encoded(text).utf8.count > 80 else { return }
        let message = "the \(role) \"\(text.prefix(40))…\" is too long; use at most 80 ASCII letters and digits"
        throw NetworkError(code: .invalidRequest, message: message)
    }

    /// Returns a string as the name of a file.
    static func fileName(_ text: String) -> String {
        // Capital letters are escaped, because some file systems ignore case.
        "name-" + (text.addingPercentEncoding(withAllowedCharacters: letters.subtracting(.uppercaseLetters)) ?? "")
    }

    private static let letters = CharacterSet(
        charactersIn: "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_"
    )

    private static func decoded(_ bytes: Bytes) -> String? {
        let text = String(decoding: bytes, as: UTF8.self)
        // Foundation's decoding is slow, so it is used only for a name with escapes.
        return bytes.contains(UInt8(ascii: "%")) ? text.removingPercentEncoding : text
    }

    private static func encoded(_ text: String) -> String {
        text.addingPercentEncoding(withAllowedCharacters: letters) ?? ""
    }
}

extension UUID {
    /// - Parameter bytes: at least 16 bytes.
    init(bytes: UnsafeRawBufferPointer) {
        self.init(
            uuid: (
                bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], bytes[6], bytes[7], bytes[8], bytes[9],
                bytes[10], bytes[11], bytes[12], bytes[13], bytes[14], bytes[15]
            )
        )
    }
}
