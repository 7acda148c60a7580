import Foundation

/// A sanitizer of file names that a server or a URL proposes. Its result names one visible file in the chosen folder
/// (RFC 6266, section 4.3).
///
/// It works on Unicode scalars, as file systems do: to Swift, a slash with an accent is another character.
enum SafeFileName {
    /// The maximum length of a name, in bytes of UTF-8.
    static let byteLimit = 255

    /// - Returns: nil if nothing is left of the name.
    static func name(_ proposed: String) -> String? {
        let scalars = proposed.unicodeScalars
        let separator = scalars.lastIndex { $0 == "/" || $0 == "\\" }
        let start = separator.map(scalars.index(after:)) ?? scalars.startIndex
        var name = String.UnicodeScalarView()
        for scalar in scalars[start...] where !isUnprintable(scalar) {
            // The colon separates paths on HFS, and drives and streams on Windows.
            name.append(scalar == ":" ? "-" : scalar)
        }
        // File systems can ignore these scalars, so that a dot after them would hide the file.
        let visible = name.drop { isPadding($0) || $0.properties.isDefaultIgnorableCodePoint }
        let trimmed = trimmingEnd(String(String.UnicodeScalarView(visible)))
        return trimmed.isEmpty ? nil : cut(trimmed)
    }

    /// Returns the last non-empty part of the path, decoded, or `download` if there is none.
    static func name(for url: URL) -> String {
        let part = url.path(percentEncoded: true).split(separator: "/").last.map(String.init) ?? ""
        return name(part.removingPercentEncoding ?? part) ?? "download"
    }

    /// Returns the name with a number before its extension, if the name already exists: `a (2).tar.gz`.
    static func numbered(_ name: String, _ number: Int) -> String {
        cut(name, suffix: " (\(number))")
    }

    /// Shortens the name before the suffix and the extension, between two characters.
    private static func cut(_ name: String, suffix: String = "") -> String {
        let parts = parts(of: name)
        let room = byteLimit - suffix.utf8.count - parts.fileExtension.utf8.count
        guard parts.stem.utf8.count > room else { return parts.stem + suffix + parts.fileExtension }
        let scalars = parts.stem.unicodeScalars
        var end = parts.stem.utf8.index(parts.stem.startIndex, offsetBy: max(0, room))
        while end.samePosition(in: scalars) == nil { end = parts.stem.utf8.index(before: end) }
        var stem = String(scalars[..<end])
        // Don't cut within a character, unless it is the only one, with many accents.
        if end.samePosition(in: parts.stem) == nil, stem.count > 1 { stem.removeLast() }
        return trimmingEnd(stem) + suffix + parts.fileExtension
    }

    /// Removes dots and white space at the end, which Windows ignores, so that two names would become one.
    private static func trimmingEnd(_ text: String) -> String {
        let scalars = text.unicodeScalars
        guard let last = scalars.lastIndex(where: { !isPadding($0) }) else { return "" }
        return String(scalars[...last])
    }

    private static func isPadding(_ scalar: Unicode.Scalar) -> Bool {
        scalar == "." || scalar.properties.isWhitespace
    }

    /// Returns whether the scalar is a control character, a line break, or a mark of writing direction, which would
    /// show `txt.exe` as `exe.txt`.
    private static func isUnprintable(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator: true
        default: scalar.properties.isBidiControl
        }
    }

    /// Extensions of compressed files, which follow another extension.
    private static let compressions: Set<String> = ["gz", "bz2", "xz", "zst", "lz", "lz4", "lzma", "z", "br"]

    /// Returns the name before its extension, and the extension with its dot: both parts of `.tar.gz`, and empty if
    /// there is none.
    private static func parts(of name: String) -> (stem: String, fileExtension: String) {
        let (stem, fileExtension) = divide(name)
        let inner = divide(stem)
        guard compressions.contains(fileExtension.dropFirst().lowercased()),
            inner.fileExtension.utf8.contains(where: \.isLetter)
        else { return (stem, fileExtension) }
        return (inner.stem, inner.fileExtension + fileExtension)
    }

    private static func divide(_ name: String) -> (stem: String, fileExtension: String) {
        let bytes = name.utf8
        guard let dot = bytes.lastIndex(of: UInt8(ascii: ".")), dot != name.startIndex else { return (name, "") }
        let letters = bytes[dot...].dropFirst()
        // A longer string after the dot is the end of a sentence.
        guard (1...16).contains(letters.count), letters.allSatisfy({ $0.isLetter || $0.isDigit }) else {
            return (name, "")
        }
        return (String(name[..<dot]), String(name[dot...]))
    }
}
