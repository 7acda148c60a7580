import Foundation

/// Reads `Decodable` items from answers: the format of a server, and its ways to write dates and keys.
///
/// ```swift
/// let decoder = JSONResponseDecoder(dates: .rfc3339, keys: .convertFromSnakeCase)
/// let user = try response.decode(User.self, with: decoder)
/// ```
///
/// It is called on the thread that decodes, on several at once.
public protocol ResponseDecoder: Sendable {
    /// The media types it is for, `type/*` included; nil, the default, means any.
    var contentTypes: Set<String>? { get }

    /// - Throws: anything; what is no ``NetworkError`` becomes ``NetworkError/Code/cannotParseResponse``.
    func decode<T: Decodable>(_ type: T.Type, from response: NetworkResponse) throws -> T
}

extension ResponseDecoder {
    public var contentTypes: Set<String>? { nil }
}

/// Reads JSON.
public struct JSONResponseDecoder: ResponseDecoder {
    /// JSON's types: `application/json`, `text/json` and everything that ends with `+json`.
    public var contentTypes: Set<String>? { ["application/json", "text/json", "*/*+json"] }

    private let makeDecoder: @Sendable () -> JSONDecoder

    /// Takes dates as text of RFC 3339, or as numbers: seconds since 2001. All else as a plain `JSONDecoder`.
    public init() {
        self.init { .standard() }
    }

    /// - Parameter makeDecoder: makes a `JSONDecoder` for each answer, since one cannot be shared among threads and set up.
    public init(_ makeDecoder: @escaping @Sendable () -> JSONDecoder) {
        self.makeDecoder = makeDecoder
    }

    /// - Parameters:
    ///   - dates: how dates are written. ``Foundation/JSONDecoder/DateDecodingStrategy/rfc3339`` takes fractions of seconds,
    ///     Foundation's `iso8601` does not.
    ///   - keys: how keys are written. Default as the properties.
    public init(
        dates: JSONDecoder.DateDecodingStrategy,
        keys: JSONDecoder.KeyDecodingStrategy = .useDefaultKeys
    ) {
        self.init {
            let decoder = JSONDecoder()
            decoder.dateDecodingStrategy = dates
            decoder.keyDecodingStrategy = keys
            return decoder
        }
    }

    public func decode<T: Decodable>(_ type: T.Type, from response: NetworkResponse) throws -> T {
        try response.decode(type, using: makeDecoder())
    }
}

extension JSONDecoder {
    /// A new one that is plain, but that dates may be text of RFC 3339 as well as seconds since 2001.
    static func standard() -> JSONDecoder {
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .custom { decoder in
            let container = try decoder.singleValueContainer()
            if let seconds = try? container.decode(Double.self) { return Date(timeIntervalSinceReferenceDate: seconds) }
            return try Date.decodeRFC3339(container)
        }
        return decoder
    }
}

extension JSONDecoder.DateDecodingStrategy {
    /// Dates of RFC 3339, section 5.6, with fractions of seconds or without: `2024-02-29T12:00:00.25+01:00`.
    public static var rfc3339: JSONDecoder.DateDecodingStrategy {
        .custom { decoder in
            try Date.decodeRFC3339(decoder.singleValueContainer())
        }
    }
}

extension Date {
    fileprivate static func decodeRFC3339(_ container: any SingleValueDecodingContainer) throws -> Date {
        let text = try container.decode(String.self)
        if let date = Date(rfc3339Text: text) { return date }
        let reason = "\"\(JSONShape.Constant.quotable(text))\" is no date of RFC 3339"
        throw DecodingError.dataCorruptedError(in: container, debugDescription: reason)
    }
}

/// Reads property lists in XML and in binary.
public struct PropertyListResponseDecoder: ResponseDecoder {
    public var contentTypes: Set<String>? { ["application/x-plist", "application/x-apple-plist", "text/x-plist"] }

    public init() {}

    public func decode<T: Decodable>(_ type: T.Type, from response: NetworkResponse) throws -> T {
        try response.decodePropertyList(type)
    }
}

/// Reads with the first of several decoders that fits.
///
/// ```swift
/// let decoder = FirstFittingResponseDecoder(JSONResponseDecoder(dates: .rfc3339), PropertyListResponseDecoder())
/// ```
///
/// Those for the media type of the answer are tried, in order, until one succeeds. When it has no type, or one that none is
/// for, all are.
public struct FirstFittingResponseDecoder: ResponseDecoder {
    public let decoders: [any ResponseDecoder]

    public init(_ decoders: any ResponseDecoder...) {
        self.init(decoders)
    }

    public init(_ decoders: [any ResponseDecoder]) {
        self.decoders = decoders
    }

    /// - Throws: what the only one threw that was tried; for several ``NetworkError/Code/cannotParseResponse`` with the
    ///   messages of all.
    public func decode<T: Decodable>(_ type: T.Type, from response: NetworkResponse) throws -> T {
        let mediaType = response.headers["Content-Type"].flatMap(MediaType.init)
        let fitting = decoders.filter { decoder in
            guard let mediaType, let patterns = decoder.contentTypes else { return decoder.contentTypes == nil }
            return patterns.contains { mediaType.matches($0) }
        }
        let candidates = fitting.isEmpty ? decoders : fitting
        return try response.decodeFirst(candidates.map { decoder in { try $0.decode(type, with: decoder) } })
    }
}
