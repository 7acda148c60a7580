/// Which names of headers, parameters, fields and keys name a secret.
///
/// The file needs nothing but the standard library, because the program Generate compiles it too: with a dependency on
/// this module, its plugin would build the whole module a second time.
enum SecretName {
    static func isKnown(_ name: String) -> Bool {
        Array(name.utf8).withUnsafeBufferPointer { normalized($0, isKnown) }
    }

    static func isKnown(_ name: UnsafeBufferPointer<UInt8>, lastWord: Int) -> Bool {
        func isOne(of table: [[[UInt8]]], from start: Int) -> Bool {
            table[Int(name[start])].contains { name[start...].elementsEqual($0) }
        }
        if isOne(of: words, from: 0) || isOne(of: lastWords, from: lastWord) { return true }
        if isOne(of: counts, from: 0) { return false }
        for start in name.indices {
            for part in parts[Int(name[start])] where name[start...].starts(with: part) { return true }
        }
        return false
    }

    /// Gives the letters and digits of the name in lower case, and where its last word begins.
    static func normalized<Result>(
        _ name: UnsafeBufferPointer<UInt8>,
        _ body: (_ name: UnsafeBufferPointer<UInt8>, _ lastWord: Int) -> Result
    ) -> Result {
        withUnsafeTemporaryAllocation(of: UInt8.self, capacity: name.count) { letters in
            var count = 0
            var lastWord = 0
            // A word begins behind what is neither letter nor digit, and with the first of several capitals.
            var (isSeparated, wasCapital) = (true, false)
            for byte in name {
                var isCapital = false
                switch byte {
                case UInt8(ascii: "A")...UInt8(ascii: "Z"):
                    isCapital = true
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "0")...UInt8(ascii: "9"):
                    break
                default:
                    isSeparated = true
                    continue
                }
                if isSeparated || isCapital && !wasCapital { lastWord = count }
                letters[count] = isCapital ? byte | 0x20 : byte
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
