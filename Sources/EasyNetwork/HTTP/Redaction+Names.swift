import Foundation

extension Redaction {
    /// The ``HostSettings/secretNames`` of all hosts: what one host calls a secret is hidden wherever it is printed,
    /// also where no host is known, as in the name of a job or in ``HTTPHeaders/description``.
    private static let hostNames = Locked<Set<String>>([])
    private static let hasHostNames = Flag(false)

    /// Adds the names of a host. Hosts with the same names add nothing.
    static func addHostNames(_ names: Set<String>) {
        guard !names.isEmpty else { return }
        hostNames.withLock { $0.formUnion(normalized(names)) }
        hasHostNames.isSet = true
    }

    static func normalized(_ names: Set<String>) -> Set<String> {
        Set(names.map { $0.utf8Bytes { normalized($0) { name, _ in String(decoding: name, as: UTF8.self) } } })
    }

    func isSecret(_ name: UnsafeBufferPointer<UInt8>) -> Bool {
        Self.normalized(name) { name, lastWord in
            guard !name.isEmpty else { return false }
            if Self.isKnown(name, lastWord: lastWord) { return true }
            let hasHostNames = Self.hasHostNames.isSet
            guard hasHostNames || !names.isEmpty else { return false }
            let text = String(decoding: name, as: UTF8.self)
            return names.contains(text) || hasHostNames && Self.hostNames.withLock { $0.contains(text) }
        }
    }

    private static func isKnown(_ name: UnsafeBufferPointer<UInt8>, lastWord: Int) -> Bool {
        func isOne(of table: [[[UInt8]]], from start: Int) -> Bool {
            table[Int(name[start])].contains { $0.count == name.count - start && name.has($0, at: start) }
        }
        if isOne(of: words, from: 0) || isOne(of: lastWords, from: lastWord) { return true }
        if isOne(of: counts, from: 0) { return false }
        for start in name.indices {
            for part in parts[Int(name[start])] where name.has(part, at: start) { return true }
        }
        return false
    }

    /// Gives the letters and digits of the name in lower case, and where its last word begins.
    private static func normalized<Result>(
        _ name: UnsafeBufferPointer<UInt8>,
        _ body: (_ name: UnsafeBufferPointer<UInt8>, _ lastWord: Int) -> Result
    ) -> Result {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: name.count) { letters in
            var count = 0
            var lastWord = 0
            // A word begins behind what is neither letter nor digit, and with the first of several capitals.
            var (isSeparated, wasCapital) = (true, false)
            for byte in name {
                guard byte.isLetter || byte.isDigit else {
                    isSeparated = true
                    continue
                }
                let letter = byte.lowercasedASCII
                let isCapital = letter != byte
                if isSeparated || isCapital && !wasCapital { lastWord = count }
                letters[count] = letter
                count += 1
                (isSeparated, wasCapital) = (false, isCapital)
            }
            return body(UnsafeBufferPointer(rebasing: letters[..<count]), lastWord)
        }
    }

    /// Texts by their first byte.
    private static func table(_ texts: [String]) -> [[[UInt8]]] {
        var table = [[[UInt8]]](repeating: [], count: 128)
        for text in texts.map({ Array($0.utf8) }) { table[Int(text[0])].append(text) }
        return table
    }

    /// Whole secret names.
    private static let words = table([
        "auth", "authcode", "bearer", "codeverifier", "devicecode", "samlresponse", "session", "sig", "usercode",
        "xauth", "xsession",
    ])

    /// Secret names, and the last words of secret names: `user_pwd`, `X-GitHub-OTP`, `connect.sid`.
    private static let lastWords = table([
        "cvc", "cvc2", "cvv", "cvv2", "otp", "pass", "pin", "pwd", "sid", "totp",
    ])

    /// Parts of secret names.
    private static let parts = table([
        "accesskey", "accountkey", "adminkey", "apikey", "appkey", "applicationkey", "appwritekey", "assertion",
        "authentication", "authkey", "authorization", "basicauth", "clientkey", "cookie", "credential", "csrf",
        "encryptionkey", "functionkey", "functionskey", "jwt", "licensekey", "masterkey", "passcode", "passphrase",
        "passwd", "password", "privatekey", "secret", "serverkey", "servicekey", "sessid", "sessionid", "sessionkey",
        "sharedkey", "signature", "signingkey", "subscriptionkey", "token", "userpwd", "xsrf",
    ])

    /// Names with such a part that count what is no secret, as language models do.
    private static let counts = table(
        [
            "cached", "completion", "input", "max", "maxcompletion", "maxinput", "maxnew", "maxoutput", "min",
            "minnew", "num", "output", "prompt", "reasoning", "remaining", "total", "used",
        ]
        .map { $0 + "tokens" }
    )
}
