import Foundation

/// The state of Digest authentication with one server (RFC 7616).
///
/// A session begins with a challenge. It uses the nonce of the challenge, with a count, until the server sends another
/// nonce.
///
/// A challenge without `qop`, or with an empty one, gets a response in the form of RFC 2069, which some servers still
/// require. `auth-int` is not supported. The `domain` of a challenge is ignored: the protection space is the origin.
struct DigestSession: Sendable {
    /// An algorithm (RFC 7616, section 6.1). SHA-512-256 is left out, because neither CryptoKit nor servers support it.
    struct Algorithm: Sendable {
        fileprivate let isSHA256: Bool
        /// Whether the key includes the first nonces.
        let isSession: Bool

        /// Creates the algorithm with this name.
        ///
        /// - Parameter name: The name in a challenge; nil means MD5.
        init?(_ name: String?) {
            switch name?.lowercased() ?? "md5" {
            case "md5": (isSHA256, isSession) = (false, false)
            case "md5-sess": (isSHA256, isSession) = (false, true)
            case "sha-256": (isSHA256, isSession) = (true, false)
            case "sha-256-sess": (isSHA256, isSession) = (true, true)
            default: return nil
            }
        }

        /// Returns the digest as hexadecimal digits in lower case.
        func digest(_ text: String) -> String {
            let data = Data(text.fieldBytes)
            return (isSHA256 ? SHA256.digest(of: data) : MD5.digest(of: data)).hexadecimal
        }
    }

    let user: String
    let realm: String
    let algorithm: Algorithm
    private(set) var nonce: String
    /// The number of requests that have used the nonce.
    private(set) var nonceCount: UInt32 = 0

    private let challenge: AuthenticationChallenge
    private let clientNonce: String
    /// The digest of A1 (RFC 7616, section 3.4.2), which is kept instead of the password.
    private let key: String

    /// Returns the first challenge with the strongest supported algorithm.
    static func strongest(of challenges: [AuthenticationChallenge]) -> AuthenticationChallenge? {
        let known = challenges.filter { problem(of: $0) == nil }
        return known.first { Algorithm($0.parameters["algorithm"])?.isSHA256 == true } ?? known.first
    }

    /// Creates the session for a challenge; nil if the challenge is not a Digest challenge, or not supported.
    ///
    /// - Parameter clientNonce: An unpredictable string, different for each session.
    init?(_ challenge: AuthenticationChallenge, user: String, password: String, clientNonce: String) {
        guard Self.problem(of: challenge) == nil, let algorithm = Algorithm(challenge.parameters["algorithm"]),
            let realm = challenge.parameters["realm"], let nonce = challenge.parameters["nonce"]
        else { return nil }
        self.user = user.precomposedStringWithCanonicalMapping
        self.realm = realm
        self.nonce = nonce
        self.algorithm = algorithm
        self.challenge = challenge
        self.clientNonce = clientNonce
        let secret = "\(self.user):\(realm):\(password.precomposedStringWithCanonicalMapping)"
        let digest = algorithm.digest(secret)
        key = algorithm.isSession ? algorithm.digest("\(digest):\(nonce):\(clientNonce)") : digest
    }

    /// Returns the reason why a challenge is not supported, in words that follow "the server requires"; nil if it is
    /// supported.
    static func problem(of challenge: AuthenticationChallenge) -> String? {
        guard challenge.scheme == "digest" else { return "another scheme" }
        let qualities = qualities(of: challenge)
        if challenge.parameters["realm"] == nil || challenge.parameters["nonce"] == nil {
            return "Digest without a realm or nonce"
        }
        if !qualities.isEmpty, !qualities.contains(where: { $0.isEqualIgnoringASCIICase(to: "auth") }) {
            return "Digest with qop=\(qualities.joined(separator: ",").prefix(40))"
        }
        let name = challenge.parameters["algorithm"]
        return Algorithm(name) == nil ? "Digest with algorithm=\((name ?? "").prefix(40))" : nil
    }

    /// Returns the qualities of protection that the server accepts. Some servers send an empty list, which means that
    /// they use no quality.
    private static func qualities(of challenge: AuthenticationChallenge) -> [String] {
        (challenge.parameters["qop"] ?? "").split { $0 == "," || $0 == " " || $0 == "\t" }.map(String.init)
    }

    /// Returns the value of the `Authorization` field for one request, and counts it as a use of the nonce.
    ///
    /// - Parameter target: The path and query as they are sent.
    mutating func authorization(method: String, target: String) -> String {
        // After an overflow, the server refuses the request as a replay, and sends a new nonce.
        nonceCount &+= 1
        let count = String(format: "%08x", nonceCount)
        let hasQuality = !Self.qualities(of: challenge).isEmpty
        let request = algorithm.digest("\(method):\(target)")
        let response =
            hasQuality
            ? algorithm.digest("\(key):\(nonce):\(count):\(clientNonce):auth:\(request)")
            : algorithm.digest("\(key):\(nonce):\(request)")
        var fields = [userField, "realm=\(Self.quoted(realm))", "nonce=\(Self.quoted(nonce))"]
        fields.append("uri=\(Self.quoted(target))")
        if let name = challenge.parameters["algorithm"] { fields.append("algorithm=\(name)") }
        fields.append("response=\(Self.quoted(response))")
        if hasQuality { fields.append("qop=auth, nc=\(count)") }
        if hasQuality || algorithm.isSession { fields.append("cnonce=\(Self.quoted(clientNonce))") }
        if let opaque = challenge.parameters["opaque"] { fields.append("opaque=\(Self.quoted(opaque))") }
        if challenge.isTrue("userhash") { fields.append("userhash=true") }
        return "Digest " + fields.joined(separator: ", ")
    }

    /// Uses the nonce of a response for the following requests (RFC 7616, section 3.5).
    mutating func take(_ headers: HTTPHeaders) {
        guard let next = AuthenticationChallenge.information(in: headers)["nextnonce"], next != nonce else { return }
        nonce = next
        nonceCount = 0
    }

    /// The field with the user's name. A name that is not ASCII has the extended form (RFC 7616, section 3.4.4) only if
    /// the server has announced UTF-8. Other servers do not know that form, and compare the bytes.
    private var userField: String {
        if challenge.isTrue("userhash") { return "username=\(Self.quoted(algorithm.digest("\(user):\(realm)")))" }
        let isUTF8 = challenge.parameters["charset"]?.isEqualIgnoringASCIICase(to: "UTF-8") == true
        if !isUTF8 || user.utf8.allSatisfy({ $0 < 0x80 }) { return "username=\(Self.quoted(user))" }
        return "username*=UTF-8''\(user.addingPercentEncoding(withAllowedCharacters: Self.extendedSigns) ?? "")"
    }

    private static func quoted(_ text: String) -> String {
        // The string is escaped by Unicode scalars, because a quote and a combining accent are one Character.
        let escaped = text.unicodeScalars.map { $0 == "\"" || $0 == "\\" ? "\\\($0)" : "\($0)" }
        return "\"\(escaped.joined())\""
    }

    /// The characters that RFC 8187, section 3.2.1 allows. Characters that are not ASCII are encoded anyway.
    private static let extendedSigns = CharacterSet.alphanumerics.union(CharacterSet(charactersIn: "!#$&+-.^_`|~"))
}
