/// Decides which names of headers, parameters, fields and keys are names of secrets.
///
/// A name is split into words: at every character that is not a letter or digit, at a change of case, and around
/// digits. `status_code` and `app_keyboard` are therefore not secret, but `accessCode` and `X-Key` are. A name that is
/// written as one word, such as `accesstoken`, is recognized, too.
///
/// The file uses only the standard library, because the program Generate compiles it, too. With a dependency on this
/// module, Generate's plugin would build the whole module a second time.
enum SecretName {
    /// The letters and digits of a name, in lower case.
    struct Words {
        let letters: UnsafeBufferPointer<UInt8>
        /// For each letter, 1 if a word begins there, otherwise 0. One more element marks the end.
        fileprivate let starts: UnsafeBufferPointer<UInt8>

        var text: String { String(decoding: letters, as: UTF8.self) }
    }

    static func isKnown(_ name: String) -> Bool {
        Array(name.utf8).withUnsafeBufferPointer { words(of: $0, isKnown) }
    }

    static func isKnown(_ name: Words) -> Bool {
        for start in name.letters.indices.dropLast() {
            let parts = parts[index(name.letters[start], name.letters[start + 1])]
            if !parts.isEmpty, name.has(oneOf: parts, at: start) {
                return !counts.contains { name.letters.elementsEqual($0) }
            }
        }
        return name.endsWithSecret
    }

    static func words<Result>(of name: UnsafeBufferPointer<UInt8>, _ body: (Words) -> Result) -> Result {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 2 * name.count + 1) { space in
            var count = 0
            var last = Kind.separator
            for index in name.indices {
                let kind = Kind(name[index])
                defer { last = kind }
                if kind == .separator { continue }
                // The last of several capitals begins the next word, as in `APIKey`.
                let isNext = kind == .capital && index + 1 < name.count && Kind(name[index + 1]) == .letter
                let isStart = isNext || kind != last && !(kind == .letter && last == .capital)
                space[count] = kind == .capital ? name[index] | 0x20 : name[index]
                space[name.count + count] = isStart ? 1 : 0
                count += 1
            }
            space[name.count + count] = 1
            let letters = UnsafeBufferPointer(rebasing: space[..<count])
            let starts = UnsafeBufferPointer(rebasing: space[name.count...].prefix(count + 1))
            return body(Words(letters: letters, starts: starts))
        }
    }

    fileprivate enum Kind {
        case letter, capital, digit, separator

        init(_ byte: UInt8) {
            switch byte {
            case UInt8(ascii: "a")...UInt8(ascii: "z"): self = .letter
            case UInt8(ascii: "A")...UInt8(ascii: "Z"): self = .capital
            case UInt8(ascii: "0")...UInt8(ascii: "9"): self = .digit
            default: self = .separator
            }
        }
    }
}

extension SecretName.Words {
    /// Returns whether a part of secret names occurs here: within a word, or as one or several whole words, singular or
    /// plural.
    fileprivate func has(oneOf parts: [[UInt8]], at start: Int) -> Bool {
        for part in parts where letters[start...].starts(with: part) {
            let end = start + part.count
            let isInWord = !starts[(start + 1)..<end].contains(1)
            let isPlural = starts[end] == 0 && letters[end] == UInt8(ascii: "s") && starts[end + 1] == 1
            if isInWord || starts[start] == 1 && (starts[end] == 1 || isPlural) {
                return !SecretName.harmless.contains { letters[start...].starts(with: $0) }
            }
        }
        return false
    }

    /// Whether the name ends with a secret name, which can be followed by a number.
    fileprivate var endsWithSecret: Bool {
        guard let last = letters.lastIndex(where: { SecretName.Kind($0) != .digit }), last > 0 else { return false }
        return SecretName.lastWords[SecretName.index(letters[last - 1], letters[last])].contains { word in
            let start = last + 1 - word.count
            guard start >= 0, letters[start...last].elementsEqual(word) else { return false }
            guard starts[start] == 0, let first = starts[..<start].lastIndex(of: 1) else { return true }
            return SecretName.owners.contains { letters[first..<start].elementsEqual($0) }
        }
    }
}

// MARK: - Tables

extension SecretName {
    /// Returns a table of words by their first or last two bytes; see ``index(_:_:)``.
    private static func table(_ texts: [String], by pair: (Substring.UTF8View) -> Substring.UTF8View) -> [[[UInt8]]] {
        var table = [[[UInt8]]](repeating: [], count: 1_024)
        for text in texts {
            let pair = Array(pair(text[...].utf8))
            table[index(pair[0], pair[1])].append(Array(text.utf8))
        }
        return table
    }

    /// Returns the index of the words with this pair of letters or digits.
    fileprivate static func index(_ first: UInt8, _ second: UInt8) -> Int { Int(first & 31) << 5 | Int(second & 31) }

    /// The parts of secret names.
    private static let parts = table(
        [
            "assertion", "authentication", "authorization", "basicauth", "cookie", "credential", "csrf", "hmac", "jwt",
            "passcode", "passphrase", "passwd", "password", "pwd", "secret", "sessid", "sessionid", "signature",
            "token", "totp", "xauth", "xsrf",
        ] + keys.map { $0 + "key" } + codes.map { $0 + "code" },
        by: { $0.prefix(2) }
    )

    /// The words before `key` in secret names. Most keys are not secret: `primary_key`, `sort_key`, `Idempotency-Key`.
    private static let keys = [
        "access", "account", "activation", "admin", "aes", "api", "app", "application", "appwrite", "auth", "client",
        "consumer", "decryption", "deploy", "developer", "encryption", "function", "functions", "license", "master",
        "merchant", "partner", "pass", "private", "recovery", "root", "security", "server", "service", "session",
        "shared", "signing", "ssh", "storage", "subscription", "webhook", "write",
    ]

    /// The words before `code` in secret names. Most codes are not secret: `status_code`, `zip_code`, `country_code`.
    private static let codes = [
        "2fa", "access", "activation", "auth", "backup", "confirmation", "device", "email", "factor", "invitation",
        "invite", "login", "mfa", "onetime", "otp", "pairing", "pin", "recovery", "reset", "security", "sms", "unlock",
        "user", "verification", "verify",
    ]

    /// Words that contain such a part, but are not secret.
    fileprivate static let harmless = [
        "secretar", "tokenisation", "tokeniser", "tokenization", "tokenizer", "xauthor",
    ]
    .map { Array($0.utf8) }

    /// Secret names, and the last words of secret names: `user_pwd`, `X-GitHub-OTP`, `connect.sid`.
    fileprivate static let lastWords = table(
        [
            "auth", "bearer", "cvc", "cvv", "dpop", "otp", "pass", "pin", "samlresponse", "session", "sid", "sig",
            "verifier", "xkey",
        ],
        by: { $0.suffix(2) }
    )

    /// The words that precede such a name in one word: `userpass`, but not `compass`.
    fileprivate static let owners = [
        "admin", "api", "app", "card", "client", "db", "email", "ftp", "http", "ldap", "login", "mail", "my", "mysql",
        "new", "old", "phone", "proxy", "redis", "root", "sms", "smtp", "sql", "user", "web", "x",
    ]
    .map { Array($0.utf8) }

    /// Names that count harmless tokens, as in the APIs of language models.
    private static let counts = [
        "cached", "completion", "input", "max", "maxcompletion", "maxinput", "maxnew", "maxoutput", "min", "minnew",
        "num", "output", "prompt", "reasoning", "remaining", "total", "used",
    ]
    .map { Array(($0 + "tokens").utf8) }
}
