import Foundation

/// Writes DER.
enum DERBytes {
    static func element(_ tag: UInt8, _ contents: Data...) -> Data {
        let contents = contents.reduce(Data(), +)
        return Data([tag]) + length(contents.count) + contents
    }

    private static func length(_ count: Int) -> Data {
        guard count >= 0x80 else { return Data([UInt8(count)]) }
        let bytes = withUnsafeBytes(of: UInt64(count).bigEndian) { Data($0.drop { $0 == 0 }) }
        return Data([0x80 | UInt8(bytes.count)]) + bytes
    }
}
