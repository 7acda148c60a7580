import EasyNetwork
import Foundation

extension TimelinePicture {
    /// Returns the picture as an HTML page that loads nothing.
    func html(title: String) -> String {
        let title = Self.escaped(TimelineRecord.text(title))
        let since = begin.replacingOccurrences(of: "T", with: " ").replacingOccurrences(of: "Z", with: " UTC")
        return """
            <!DOCTYPE html>
            <html lang="en">
            <head>
            <meta charset="utf-8">
            <meta name="viewport" content="width=device-width, initial-scale=1">
            <meta name="color-scheme" content="light dark">
            <meta http-equiv="Content-Security-Policy"
              content="default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-\(TimelinePage.scriptDigest)'">
            <title>\(title)</title>
            <style>
            \(TimelinePage.style)
            </style>
            </head>
            <body>
            <header>
            <h1>\(title)</h1>
            <p>\(Self.escaped(summary))\(isPrediction ? ". Recorded" : ",") since \(since)</p>
            \(TimelinePage.body)
            <script type="application/json" id="data">\(json)</script>
            <script>
            \(TimelinePage.script)
            </script>
            </body>
            </html>

            """
    }

    /// The picture as JSON that cannot end its HTML element. The bytes are replaced one by one, because replacing in a
    /// string of ten megabytes takes longer than encoding it.
    private var json: String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        // Encoding cannot fail: the picture contains only strings and finite numbers.
        let data = (try? encoder.encode(self)) ?? Data("{}".utf8)
        var bytes: [UInt8] = []
        bytes.reserveCapacity(data.count + data.count / 16)
        for byte in data {
            if byte == UInt8(ascii: "<") { bytes += #"\u003C"#.utf8 } else { bytes.append(byte) }
        }
        return String(decoding: bytes, as: UTF8.self)
    }

    /// Escapes a string for HTML. It compares scalars, as a browser does: in Swift, a bracket followed by a combining
    /// accent is a different character.
    private static func escaped(_ text: String) -> String {
        let entities: [Unicode.Scalar: String] = ["&": "&amp;", "<": "&lt;", ">": "&gt;"]
        return text.unicodeScalars.map { entities[$0] ?? String($0) }.joined()
    }
}
