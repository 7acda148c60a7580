import Foundation

/// What a client keeps between the requests that it proves itself for with Digest (RFC 7616).
///
/// It begins with a challenge, and uses the nonce of it, counting, until the server gives another one.
///
/// Without `qop` it answers in the way of RFC 2069, which servers are not to ask for any more and some do. `auth-int` is
/// not known; the `domain` of a challenge is not looked at: the whole origin is one protection space.
struct DigestSession: Sendable {
    let user: String
    let realm: String
    let algorithm: DigestAlgorithm
    /// Chosen by the server, for one request or for many.
    private(set) var nonce: String
    /// How many requests have used the nonce.
    private(set) var nonceCount: UInt32 = 0

    private let clientNonce: String
    private let opaque: String?
    private let hasQuality: Bool
    private let isAlgorithmNamed: Bool
    private let isUserHashed: Bool
    /// The digest of A1: section 3.4.2. Stands for the password, which is not kept.
    private let key: String

    /// The challenge to answer: of those that can be answered the one with the strongest algorithm, of these the first.
    static func strongest(of challenges: [AuthenticationChallenge]) -> AuthenticationChallenge? {
        let known = challenges.compactMap { challenge in algorithm(of: challenge).map { (challenge, $0) } }
        let best = known.map(\.1.rawValue).max()
        return known.first { $0.1.rawValue == best }?.0
    }

    /// - Parameter clientNonce: unguessable, and another one for each session.
    /// - Returns: nil when the challenge is none of Digest, or asks for what is not known.
    init?(_ challenge: AuthenticationChallenge, user: String, password: String, clientNonce: String) {
        guard let algorithm = Self.algorithm(of: challenge), let realm = challenge.parameters["realm"],
            let nonce = challenge.parameters["nonce"]
        else { return nil }
        self.user = user.precomposedStringWithCanonicalMapping
        self.realm = realm
        self.nonce = nonce
        self.algorithm = algorithm
        self.clientNonce = clientNonce
        opaque = challenge.parameters["opaque"]
        hasQuality = challenge.parameters["qop"] != nil
        isAlgorithmNamed = challenge.parameters["algorithm"] != nil
        isUserHashed = challenge.isTrue("userhash")
        let secret = "\(self.user):\(realm):\(password.precomposedStringWithCanonicalMapping)"
        let digest = algorithm.digest(secret)
        key = algorithm.isSession ? algorithm.digest("\(digest):\(nonce):\(clientNonce)") : digest
    }

    private static func algorithm(of challenge: AuthenticationChallenge) -> DigestAlgorithm? {
        guard challenge.scheme == "digest", challenge.parameters["realm"] != nil, challenge.parameters["nonce"] != nil
        else { return nil }
        if let qualities = challenge.parameters["qop"] {
            let names = qualities.split { $0 == "," || $0 == " " || $0 == "\t" }
            guard names.contains(where: { String($0).isEqualIgnoringASCIICase(to: "auth") }) else { return nil }
        }
        return DigestAlgorithm(challenge.parameters["algorithm"])
    }

    /// The value of the `Authorization` field for one request; it counts as a use of the nonce.
    ///
    /// - Parameters:
    ///   - method: as it is sent.
    ///   - target: path and query as they are sent.
    mutating func authorization(method: String, target: String) -> String {
        // A server that has seen four thousand million requests takes the next for a replay, and gives a new nonce.
        nonceCount &+= 1
        let count = Self.hexadecimal(nonceCount)
        let request = algorithm.digest("\(method):\(target)")
        let response =
            hasQuality
            ? algorithm.digest("\(key):\(nonce):\(count):\(clientNonce):auth:\(request)")
            : algorithm.digest("\(key):\(nonce):\(request)")
        var fields = [userField, "realm=\(Self.quoted(realm))", "nonce=\(Self.quoted(nonce))"]
        fields.append("uri=\(Self.quoted(target))")
        if isAlgorithmNamed { fields.append("algorithm=\(algorithm.name)") }
        fields.append("response=\(Self.quoted(response))")
        if hasQuality { fields.append("qop=auth, nc=\(count)") }
        if hasQuality || algorithm.isSession { fields.append("cnonce=\(Self.quoted(clientNonce))") }
        if let opaque { fields.append("opaque=\(Self.quoted(opaque))") }
        if isUserHashed { fields.append("userhash=true") }
        return "Digest " + fields.joined(separator: ", ")
    }

    /// Takes the nonce that a server gives along with an answer for the requests to come (section 3.5).
    mutating func take(_ headers: HTTPHeaders) {
        guard let next = AuthenticationChallenge.information(in: headers)["nextnonce"], next != nonce else { return }
        nonce = next
        nonceCount = 0
    }

    /// A name that is not ASCII goes out in the extended form, which has an encoding of its own (section 3.4).
    private var userField: String {
        if isUserHashed { return "username=\(Self.quoted(algorithm.digest("\(user):\(realm)")))" }
        if user.utf8.allSatisfy({ $0 < 0x80 }) { return "username=\(Self.quoted(user))" }
        return "username*=UTF-8''\(Self.extended(user))"
    }

    /// - Returns: eight digits.
    private static func hexadecimal(_ count: UInt32) -> String {
        let digits = String(count, radix: 16)
        return String(repeating: "0", count: 8 - digits.count) + digits
    }

    private static func quoted(_ text: String) -> String {
        var bytes = [UInt8(ascii: "\"")]
        for byte in text.utf8 {
            if byte == UInt8(ascii: "\"") || byte == UInt8(ascii: "\\") { bytes.append(UInt8(ascii: "\\")) }
            bytes.append(byte)
        }
        return String(decoding: bytes + [UInt8(ascii: "\"")], as: UTF8.self)
    }

    /// Percent-encoded but for letters, digits and a few signs (RFC 8187, section 3.2.1).
    private static func extended(_ text: String) -> String {
        text.utf8.map { byte in
            let isPlain = HTTPSyntax.isTokenByte(byte) && !"%'*".utf8.contains(byte)
            let digits = String(byte, radix: 16, uppercase: true)
            return isPlain ? String(UnicodeScalar(byte)) : "%" + (digits.count < 2 ? "0" : "") + digits
        }.joined()
    }
}

extension AuthenticationChallenge {
    /// Whether a parameter is there and says `true`, in any case.
    func isTrue(_ name: String) -> Bool {
        parameters[name]?.isEqualIgnoringASCIICase(to: "true") == true
    }
}
