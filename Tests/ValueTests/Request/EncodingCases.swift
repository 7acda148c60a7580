import Foundation

@testable import EasyNetwork
@testable import TestSupport

/// The environment of the script `.ci/formats`.
enum EncodingCases {
    /// The folder for the cases; nil if they are not to be written.
    static let folder = variable("ENCODINGS_FOLDER").map { URL(fileURLWithPath: $0, isDirectory: true) }
    /// A server that stores the requests it receives.
    static let server = variable("ENCODINGS_SERVER").flatMap { URL(string: $0) }

    private static func variable(_ name: String) -> String? {
        ProcessInfo.processInfo.environment[name]
    }
}

/// A parameter value in a case for an independent decoder.
indirect enum EncodingValue: Sendable {
    case null
    case bool(Bool)
    case integer(Int64)
    case double(Double)
    case text(String)
    case date(milliseconds: Int64)
    case data([UInt8])
    case array([EncodingValue])
    case object([String: EncodingValue])

    /// The value for the package.
    var any: Any {
        switch self {
        case .null: NSNull()
        case .bool(let value): value
        case .integer(let value): value
        case .double(let value): value
        case .text(let value): value
        case .date(let milliseconds): Date(timeIntervalSince1970: Double(milliseconds) / 1_000)
        case .data(let bytes): Data(bytes)
        case .array(let values): values.map(\.any)
        case .object(let values): values.mapValues(\.any)
        }
    }

    /// The value for the decoder: its kind and a lossless text.
    var told: Any {
        switch self {
        case .null: ["null"]
        case .bool(let value): ["bool", value ? "true" : "false"]
        case .integer(let value): ["integer", "\(value)"]
        case .double(let value): ["double", "\(value)"]
        case .text(let value): ["text", value]
        case .date(let milliseconds): ["date", "\(milliseconds)"]
        case .data(let bytes): ["data", bytes.map { Int($0) }] as [Any]
        case .array(let values): ["array", values.map(\.told)] as [Any]
        // Written as pairs, because JSON readers may treat canonically equal keys as one.
        case .object(let values): ["object", values.map { [$0.key, $0.value.told] as [Any] }] as [Any]
        }
    }

    static func random(_ generator: inout SeededGenerator, depth: Int = 0) -> EncodingValue {
        switch Int.random(in: 0..<(depth < 4 ? 10 : 7), using: &generator) {
        case 0: return .null
        case 1: return .bool(Bool.random(using: &generator))
        case 2:
            let bits = Int64.random(in: .min ... .max, using: &generator)
            return .integer(bits >> Int64.random(in: 0..<64, using: &generator))
        case 3:
            let value = Double(bitPattern: generator.next())
            return .double(value.isFinite ? value : 5)
        case 4: return .text(randomText(&generator))
        case 5:
            return .date(milliseconds: Int64.random(in: -62_000_000_000_000..<253_402_300_800_000, using: &generator))
        case 6:
            let count = Int.random(in: 0..<20, using: &generator)
            return .data((0..<count).map { _ in UInt8.random(in: 0...255, using: &generator) })
        case 7:
            let count = Int.random(in: 0..<4, using: &generator)
            return .array((0..<count).map { _ in random(&generator, depth: depth + 1) })
        default: return .object(randomObject(&generator, depth: depth + 1))
        }
    }

    static func randomObject(_ generator: inout SeededGenerator, depth: Int = 0) -> [String: EncodingValue] {
        let pairs = (0..<Int.random(in: 0..<5, using: &generator)).map { _ in
            (randomText(&generator), random(&generator, depth: depth))
        }
        return Dictionary(pairs) { first, _ in first }
    }

    static func randomText(_ generator: inout SeededGenerator) -> String {
        let alphabet = Array(
            "ab19 &=+%#?/;,.~*_-\"'<>\\^`{|}$!@:()[]é漢😀ßﬁ\u{301}\u{2028}\r\n\t\u{0}\u{7F}".unicodeScalars
        )
        var scalars = String.UnicodeScalarView()
        for _ in 0..<Int.random(in: 0..<9, using: &generator) {
            scalars.append(alphabet[Int.random(in: 0..<alphabet.count, using: &generator)])
        }
        return String(scalars)
    }
}

extension QueryEncoder {
    static func random(_ generator: inout SeededGenerator) -> QueryEncoder {
        func one<Style>(_ styles: Style...) -> Style {
            styles[Int.random(in: 0..<styles.count, using: &generator)]
        }
        let seconds: @Sendable (Date) -> Any = { ($0.timeIntervalSince1970 * 1_000).rounded() / 1_000 }
        return QueryEncoder(
            arrayStyle: one(.brackets, .repeated, .indices),
            usesDotNotation: one(false, true),
            usesNumericBools: one(false, true),
            nullSuffix: one("", "=", "=null", nil as String?),
            encodeDate: one(false, true) ? seconds : nil
        )
    }

    /// The names of the styles.
    var told: [String: String] {
        let nulls = ["": "key", "=": "empty", "=null": "word"][nullSuffix ?? "-"] ?? "omitted"
        return [
            "arrays": "\(arrayStyle)", "keys": usesDotNotation ? "dots" : "brackets",
            "bools": usesNumericBools ? "numbers" : "words",
            "nulls": nulls, "dates": encodeDate == nil ? "iso8601" : "secondsSince1970",
        ]
    }
}

/// A form and a description of its parts.
struct EncodingForm {
    private(set) var form = MultipartForm()
    private(set) var told: [[String: Any]] = []

    static func random(_ generator: inout SeededGenerator, in folder: URL) throws -> EncodingForm {
        var form = EncodingForm()
        for _ in 0..<Int.random(in: 1..<7, using: &generator) { try form.appendRandom(&generator, in: folder) }
        return form
    }

    mutating func append(_ data: Data, name: String, filename: String?, contentType: String?, hasLength: Bool) {
        let stream = TransportBodyStream(length: hasLength ? data.count : nil) { InputStream(data: data) }
        form.append(stream: stream, name: name, filename: filename, contentType: contentType)
        tell(data, name, filename, contentType)
    }

    mutating func append(file: URL, _ data: Data, name: String, contentType: String) {
        form.append(file: file, name: name)
        tell(data, name, file.lastPathComponent, contentType)
    }

    private mutating func appendRandom(_ generator: inout SeededGenerator, in folder: URL) throws {
        let name = Self.randomName(&generator)
        let filename = Bool.random(using: &generator) ? Self.randomName(&generator) + ".png" : nil
        let bytes = (0..<Int.random(in: 0..<3_000, using: &generator)).map { _ in
            Array("\r\n-\r\n--E\u{0}é".utf8).randomElement(using: &generator) ?? 0
        }
        let data = Data(bytes)
        switch Int.random(in: 0..<4, using: &generator) {
        case 0:
            let text = EncodingValue.randomText(&generator)
            form.append(text, name: name)
            tell(Data(text.utf8), name, nil, nil)
        case 1:
            form.append(data, name: name, filename: filename)
            tell(data, name, filename, filename == nil ? nil : "image/png")
        case 2:
            let file = folder.appendingPathComponent("file-\(UUID().uuidString) é.json")
            try data.write(to: file)
            append(file: file, data, name: name, contentType: "application/json")
        default:
            let hasLength = Bool.random(using: &generator)
            append(data, name: name, filename: filename, contentType: "a/b; c=\"d e\"", hasLength: hasLength)
        }
    }

    private mutating func tell(
        _ data: Data,
        _ name: String,
        _ filename: String?,
        _ contentType: String?
    ) {
        told.append([
            "name": name, "filename": filename ?? NSNull(), "contentType": contentType ?? NSNull(),
            "data": data.base64EncodedString(),
        ])
    }

    private static func randomName(_ generator: inout SeededGenerator) -> String {
        var text = EncodingValue.randomText(&generator).unicodeScalars
        // The form refuses other control characters.
        text.removeAll { $0.value < 0x20 && $0 != "\r" && $0 != "\n" || $0.value == 0x7F }
        return String(text)
    }
}
