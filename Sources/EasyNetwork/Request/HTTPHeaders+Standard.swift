import Foundation

extension HTTPHeaders {
    /// The header fields that name the program and the languages of its user: `User-Agent` (RFC 9110, section 10.1.5)
    /// and `Accept-Language` (section 12.5.4). They are read once.
    public static let standard: HTTPHeaders = {
        #if canImport(Darwin)
        let information = Bundle.main.infoDictionary
        #else
        // Programs rarely have an Info.plist here, and to look for it takes half a millisecond.
        let information: [String: Any]? = nil
        #endif
        var headers: HTTPHeaders = ["User-Agent": userAgent(information, ProcessInfo.processInfo)]
        if let languages = acceptLanguage(Locale.preferredLanguages) { headers["Accept-Language"] = languages }
        return headers
    }()

    /// Returns at most six languages in order of preference: `de-CH, de;q=0.9, en;q=0.8`.
    static func acceptLanguage(_ languages: [String]) -> String? {
        let tags = languages.map { String($0.map { $0 == "_" ? "-" : $0 }) }
            .filter { tag in
                !tag.isEmpty && tag.utf8.allSatisfy { $0.isLetter || $0.isDigit || $0 == UInt8(ascii: "-") }
            }
            .prefix(6)
        guard !tags.isEmpty else { return nil }
        return tags.enumerated().map { $0 == 0 ? $1 : "\($1);q=0.\(10 - $0)" }.joined(separator: ", ")
    }

    /// Returns a value such as `Shop/2.1 EasyNetwork (Linux)`.
    static func userAgent(_ information: [String: Any]?, _ process: ProcessInfo) -> String {
        let name = token((information?["CFBundleName"] as? String) ?? process.processName)
        let version = (information?["CFBundleShortVersionString"] as? String).map(token)
        let product = [name.isEmpty ? "App" : name, version ?? ""].filter { !$0.isEmpty }.joined(separator: "/")
        return "\(product) EasyNetwork (\(platform))"
    }

    private static func token(_ text: String) -> String {
        String(decoding: text.utf8.map { HTTPSyntax.isTokenByte($0) ? $0 : UInt8(ascii: "-") }, as: UTF8.self)
    }

    private static var platform: String {
        #if os(macOS)
        "macOS"
        #elseif os(iOS)
        "iOS"
        #elseif os(tvOS)
        "tvOS"
        #elseif os(watchOS)
        "watchOS"
        #elseif os(visionOS)
        "visionOS"
        #elseif os(Linux)
        "Linux"
        #else
        "Swift"
        #endif
    }
}
