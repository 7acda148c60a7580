import EasyNetwork
import Foundation

extension EasyNetworkService {
    /// Returns a request as a `curl` command for a POSIX shell.
    ///
    /// ```swift
    /// print(try await service.curlCommand(for: GetUser(id: 1)))
    /// // curl --globoff --path-as-is --compressed 'https://api.example.com/users/1' -H 'Accept-Language: en' …
    /// ```
    ///
    /// The command contains the message as it is before interceptors, credentials and cookies are applied. If there are
    /// any, a comment before the command says that they are missing. The command of a message that was sent includes
    /// them: see ``NetworkAttempt/curlCommand(redaction:)``. A body that is made while it is sent, such as a form with
    /// files, is read into memory.
    ///
    /// - Parameters:
    ///   - request: the request, which is not sent.
    ///   - redaction: removes secrets. Defaults to ``/EasyNetwork/Redaction/standard``. If it is `nil`, secrets are
    ///     kept, and the command sends the same bytes as the request.
    /// - Throws: ``/EasyNetwork/NetworkError/Code/invalidRequest`` if the request cannot be sent or its body cannot be
    ///   read.
    public func curlCommand(
        for request: some BaseAPIRequest,
        redaction: Redaction? = .standard
    ) async throws(NetworkError) -> String {
        let (options, settings) = (request.options, configuration.settings)
        let message = try RequestBuilder.build(request, options, for: configuration)
        let isWhole =
            settings.interceptors.isEmpty && options.interceptors.isEmpty && settings.authentication == nil
            && options.credential == nil && (settings.cookies ?? options.cookies) == nil
        let comment = isWhole ? "" : "# Interceptors, credentials and cookies are not applied\n"
        return comment + (try await message.withBodyInMemory().curlCommand(redaction: redaction))
    }
}

extension TransportRequest {
    /// Returns the message as a `curl` command for a POSIX shell.
    ///
    /// A file is sent from its path. A stream is left out: the command reads that body from its standard input.
    ///
    /// - Parameter redaction: removes secrets. A body that is neither JSON nor a URL-encoded form, such as a multipart
    ///   form, is then left out, and a comment before the command says so. Defaults to
    ///   ``/EasyNetwork/Redaction/standard``. If it is `nil`, everything is kept.
    public func curlCommand(redaction: Redaction? = .standard) -> String {
        CurlCommand(self, redaction).text
    }

    /// Returns the message with the bytes of its stream as the body, if the stream can be read again.
    func withBodyInMemory() async throws(NetworkError) -> TransportRequest {
        guard case .stream(let stream) = body, stream.isReplayable else { return self }
        let reader = try stream.reader()
        var bytes = Data()
        while let piece = try await reader.next() { bytes += piece }
        var message = self
        message.body = .data(bytes)
        return message
    }
}

extension NetworkAttempt {
    /// Returns the message as a `curl` command for a POSIX shell, without its body, which is not kept. If the message
    /// may have had a body, a comment before the command says so.
    ///
    /// - Parameter redaction: removes secrets. Defaults to ``/EasyNetwork/Redaction/standard``. If it is `nil`, secrets
    ///   are kept.
    public func curlCommand(redaction: Redaction? = .standard) -> String {
        request.curlCommand(redaction: redaction)
    }
}

extension NetworkError {
    /// Returns the request that failed as a `curl` command for a POSIX shell, without its body, which is not kept. If
    /// the request may have had a body, a comment before the command says so. Returns `nil` if nothing was sent.
    ///
    /// - Parameter redaction: removes secrets. Defaults to ``/EasyNetwork/Redaction/standard``. If it is `nil`, secrets
    ///   are kept.
    public func curlCommand(redaction: Redaction? = .standard) -> String? {
        request?.curlCommand(redaction: redaction)
    }
}

extension NetworkError.Request {
    fileprivate func curlCommand(redaction: Redaction?) -> String {
        let method = NetworkService.Method(rawValue: method)
        return CurlCommand(TransportRequest(method: method, url: url, headers: headers), redaction, keepsBody: false)
            .text
    }
}

/// A `curl` command. Each word that contains user data is in single quotes, in which a shell treats only the quote as
/// special.
private struct CurlCommand {
    /// The maximum length of a body that is a word of the command. Systems limit a word to 128 KiB.
    private static let longestWord = 65_536

    private var words = ["curl", "--globoff", "--path-as-is", "--compressed"]
    /// The command that writes the body to the standard input of this one.
    private var source: String?
    /// A note about a body that the command lacks or may lack.
    private var lack: String?

    /// - Parameter keepsBody: false if the message may have had a body that was not kept.
    init(_ message: TransportRequest, _ redaction: Redaction?, keepsBody: Bool = true) {
        if !keepsBody, [.post, .put, .patch].contains(message.method) || message.headers["Content-Type"] != nil {
            lack = "A body is not kept"
        }
        let url = message.url.withoutUser
        words.append(Self.quoted(redaction?.redacted(url) ?? url.absoluteString))
        let hasKnownBody = add(message.body, message.headers["Content-Type"], redaction)
        let hasBody = hasKnownBody || lack != nil
        add(message.method, hasBody: hasKnownBody)
        let headers = redaction?.redacted(message.headers) ?? message.headers
        for field in headers where !field.isFraming {
            // curl drops a field whose value is blank, unless its name is followed by a semicolon.
            let isBlank = field.value.allSatisfy { $0 == " " || $0 == "\t" }
            let line = isBlank ? "\(field.name);" : "\(field.name): \(field.raw)"
            guard line.hasKeptBytes else {
                words += ["-H", Self.quoted(line)]
                continue
            }
            words += ["-H", "\"$(printf -- \(Self.quoted(line.fieldBytes.map(Self.escaped).joined())))\""]
        }
        // An empty field removes a field that curl would add.
        if headers["User-Agent"] == nil { words += ["-H", "'User-Agent:'"] }
        if hasBody, headers["Content-Type"] == nil { words += ["-H", "'Content-Type:'"] }
        if hasBody, headers["Expect"] == nil { words += ["-H", "'Expect:'"] }
    }

    var text: String {
        let comment = lack.map { "# \($0); to send one, add --data-binary @file\n" } ?? ""
        return comment + (source.map { $0 + " | " } ?? "") + words.joined(separator: " ")
    }

    private mutating func add(_ method: NetworkService.Method, hasBody: Bool) {
        switch method {
        case .get where !hasBody && lack == nil: break
        case .head where !hasBody: words.append("--head")
        case .post where hasBody: break
        case .post, .put, .patch:
            words += ["-X", Self.quoted(method.rawValue)]
            // RFC 9110, section 8.6: a message with one of these methods and no body has a Content-Length of 0.
            if !hasBody, lack == nil { words += ["-H", "'Content-Length: 0'"] }
        default: words += ["-X", Self.quoted(method.rawValue)]
        }
    }

    /// - Returns: whether the command has a body.
    private mutating func add(_ body: TransportBody, _ contentType: String?, _ redaction: Redaction?) -> Bool {
        switch body {
        case .none: return false
        case .data(let data) where data.isEmpty: return false
        case .data(let data):
            guard let redaction else {
                add(data)
                return true
            }
            guard let text = redaction.redactedText(of: data, contentType: contentType) else {
                lack = "A body of \(data.count) bytes is left out, as it may have secrets"
                return false
            }
            add(Data(text.utf8))
        case .file(let url): words += ["--data-binary", Self.quoted("@" + url.path)]
        case .stream: words += ["--data-binary", "@-"]
        }
        return true
    }

    private mutating func add(_ data: Data) {
        if data.count <= Self.longestWord, data.allSatisfy(Self.isPlain), let text = String(data: data, encoding: .utf8)
        {
            words += ["--data-raw", Self.quoted(text)]
        } else {
            source = "printf -- " + Self.quoted(data.map(Self.escaped).joined())
            words += ["--data-binary", "@-"]
        }
    }

    /// Returns whether a terminal passes the byte on unchanged.
    private static func isPlain(_ byte: UInt8) -> Bool {
        byte >= 0x20 && byte != 0x7F || byte == 0x0A
    }

    /// Returns the byte as text for the format of `printf`.
    private static func escaped(_ byte: UInt8) -> String {
        switch byte {
        case UInt8(ascii: "%"): "%%"
        case UInt8(ascii: "\\"): "\\\\"
        case 0x20...0x7E: String(UnicodeScalar(byte))
        default: String(format: "\\%03o", Int(byte))
        }
    }

    /// Quotes a word for a shell. It compares bytes, as a shell does: in Swift, a quote followed by a combining accent
    /// is a different character.
    private static func quoted(_ text: String) -> String {
        var bytes = [UInt8(ascii: "'")]
        for byte in text.utf8 {
            if byte == UInt8(ascii: "'") { bytes += #"'\''"#.utf8 } else { bytes.append(byte) }
        }
        return String(decoding: bytes, as: UTF8.self) + "'"
    }
}
