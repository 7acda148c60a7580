import Foundation

/// The parts of a message that a log shows after its line: the head, and the beginning of the body as text, without
/// secrets.
///
///     > Authorization: Bearer REDACTED
///     >
///     > {"name":"Ada","password":"REDACTED"}
///
/// Each line begins with two blanks and the direction, so that no body looks like lines of the log.
package struct LogMessage: Sendable {
    private enum Body {
        case none
        case excerpt(BodyExcerpt)
        case leftOut(String)
    }

    /// The maximum number of bytes of a body that are kept until its text is made. JSON is serialized again without its
    /// secrets, which requires the complete body.
    package static let maximumBody = 1_048_576
    /// The default number of bytes that are shown of the beginning of a body.
    package static let standardBodyCount = 4_096

    private let mark: String
    private let headers: HTTPHeaders
    private let body: Body
    private let bodyCount: Int

    /// Creates the message of an event; nil if the event has no message.
    ///
    /// - Parameters:
    ///   - level: ``NetworkEvent/Level/heads`` or ``NetworkEvent/Level/bodies``. With any other level, the log shows no
    ///     message.
    ///   - bodyCount: The number of bytes of a body that are shown.
    package init?(_ event: NetworkEvent, _ level: NetworkEvent.Level, bodyCount: Int) {
        guard level <= .heads else { return nil }
        self.bodyCount = bodyCount
        let body: Body
        switch event.kind {
        case .attemptStarted(_, let message):
            (mark, headers) = ("  >", message.headers)
            switch message.body {
            case .none: body = .none
            case .data(let data): body = .excerpt(Self.excerpt(data))
            case .file, .stream: body = .leftOut("left out: the body is read or made while it is sent")
            }
        case .attemptEnded(let attempt, .success(let response)):
            (mark, headers) = ("  <", response.headers)
            // If the body was consumed as it arrived, the log has requested an excerpt of its beginning.
            body = .excerpt(attempt.beginning ?? Self.excerpt(response.body))
        case .attemptEnded(let attempt, .failure(let error)):
            guard error.statusCode != nil else { return nil }
            (mark, headers) = ("  <", error.headers)
            let bytes = error.responseBody ?? Data()
            // The length of a longer body is unknown.
            let isCut = bytes.count == NetworkError.responseBodyLimit
            body = .excerpt(attempt.beginning ?? Self.excerpt(bytes, isCut ? bytes.count + 1 : nil))
        case .servedFromCache(let response):
            (mark, headers, body) = ("  <", response.headers, .excerpt(Self.excerpt(response.body)))
        default: return nil
        }
        self.body = level == .bodies ? body : .none
    }

    private static func excerpt(_ body: Data, _ count: Int? = nil) -> BodyExcerpt {
        // A longer text cannot be shown at all. The beginning is enough to see whether the body is text.
        BodyExcerpt(body, count: count ?? body.count, limit: body.count > maximumBody ? 1_024 : maximumBody)
    }

    /// The approximate size of the message in memory, in bytes.
    package var size: Int {
        let head = 256 + headers.size
        guard case .excerpt(let excerpt) = body else { return head }
        return head + excerpt.bytes.count
    }

    /// The lines, each after a line feed. Secrets are removed here, which can take a while.
    package var text: String {
        var lines: [String] = []
        for field in headers {
            let field = Redaction.standard.redacted(field)
            lines.append(Self.printable("\(field.name): \(field.value)"))
        }
        switch body {
        case .none: break
        case .leftOut(let reason): lines += ["", "(\(reason))"]
        case .excerpt(let excerpt): if excerpt.count > 0 { lines += [""] + Self.lines(of: excerpt, headers, bodyCount) }
        }
        return lines.map { $0.isEmpty ? "\n\(mark)" : "\n\(mark) \($0)" }.joined()
    }

    private static func lines(of excerpt: BodyExcerpt, _ headers: HTTPHeaders, _ count: Int) -> [String] {
        switch ShownBody(excerpt, contentType: headers["Content-Type"], .standard) {
        case .leftOut(let reason): return ["(\(excerpt.count) bytes, \(reason))"]
        case .bytes: return ["(\(excerpt.count) bytes that are not text)"]
        case .text(let text):
            let shown = ShownBody.beginning(of: text, count)
            // Each line needs room for its mark.
            var (lines, room) = ([String](), count)
            // The text is split by Unicode scalars, because "\r\n" is one Character.
            for line in shown.unicodeScalars.split(separator: "\n", omittingEmptySubsequences: false) {
                guard room > 0 else { break }
                let line = printable(String(line))
                lines.append(line)
                room -= line.utf8.count + 5
            }
            let isCut = shown.utf8.count < text.utf8.count || room <= 0
            return isCut ? lines + ["(the beginning of \(excerpt.count) bytes)"] : lines
        }
    }

    /// Returns the text without characters that begin a line or control a terminal.
    private static func printable(_ text: String) -> String {
        var scalars = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            switch scalar.properties.generalCategory {
            case .control where scalar == "\t": scalars.append(scalar)
            case .control where scalar == "\r": continue
            case .control, .lineSeparator, .paragraphSeparator: scalars.append("\u{FFFD}")
            default: scalars.append(scalar)
            }
        }
        return String(scalars)
    }
}
