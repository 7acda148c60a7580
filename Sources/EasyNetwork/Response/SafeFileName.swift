import Foundation

/// Names of files that a server or a URL proposes, made such that nothing is written but one visible file in the folder
/// that was chosen (RFC 6266, section 4.3).
///
/// All is looked at scalar by scalar, as file systems do: to Swift a slash with an accent is another character.
enum SafeFileName {
    /// How many bytes the name of a file may have, in UTF-8.
    static let byteLimit = 255

    /// - Returns: nil when nothing is left that could be a name.
    static func name(_ proposed: String) -> String? {
        let scalars = proposed.unicodeScalars
        let separator = scalars.lastIndex { $0 == "/" || $0 == "\\" }
        let start = separator.map(scalars.index(after:)) ?? scalars.startIndex
        var name = String.UnicodeScalarView()
        for scalar in scalars[start...] where !isUnprintable(scalar) {
            // What a path is divided by on HFS, which Finder shows as a slash, and on Windows a drive or a stream.
            name.append(scalar == ":" ? "-" : scalar)
        }
        // Some file systems do not see what is ignorable: behind it, too, a dot hides a file.
        let visible = name.drop { isPadding($0) || $0.properties.isDefaultIgnorableCodePoint }
        let trimmed = trimmingEnd(String(String.UnicodeScalarView(visible)))
        return trimmed.isEmpty ? nil : cut(FileNameParts(trimmed))
    }

    /// The last part of the path that is not empty, decoded; `download` when there is none.
    static func name(for url: URL) -> String {
        let part = url.path(percentEncoded: true).split(separator: "/").last.map(String.init) ?? ""
        return name(part.removingPercentEncoding ?? part) ?? "download"
    }

    /// The name with a number before its extension, for when there is such a file already: `a (2).tar.gz`.
    static func numbered(_ name: String, _ number: Int) -> String {
        cut(FileNameParts(name), suffix: " (\(number))")
    }

    /// Shortens what stands before the suffix and the extension, at the border of a character.
    private static func cut(_ parts: FileNameParts, suffix: String = "") -> String {
        let room = byteLimit - suffix.utf8.count - parts.fileExtension.utf8.count
        guard parts.stem.utf8.count > room else { return parts.stem + suffix + parts.fileExtension }
        var stem = ""
        var count = 0
        for character in parts.stem {
            count += character.utf8.count
            if count > room { break }
            stem.append(character)
        }
        if stem.isEmpty { stem = cutWithinCharacter(parts.stem, room) }
        return trimmingEnd(stem) + suffix + parts.fileExtension
    }

    /// One character may have any number of accents.
    private static func cutWithinCharacter(_ text: String, _ room: Int) -> String {
        var scalars = String.UnicodeScalarView()
        var count = 0
        for scalar in text.unicodeScalars {
            count += UTF8.width(scalar)
            if count > room { break }
            scalars.append(scalar)
        }
        return String(scalars)
    }

    /// Windows drops these, so that two names become one.
    private static func trimmingEnd(_ text: String) -> String {
        let scalars = text.unicodeScalars
        guard let last = scalars.lastIndex(where: { !isPadding($0) }) else { return "" }
        return String(scalars[...last])
    }

    private static func isPadding(_ scalar: Unicode.Scalar) -> Bool {
        scalar == "." || scalar.properties.isWhitespace
    }

    /// Controls, breaks of lines, and what changes the direction of writing, which makes `exe.txt` out of `txt.exe`.
    private static func isUnprintable(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.properties.generalCategory {
        case .control, .lineSeparator, .paragraphSeparator: true
        default: scalar.properties.isBidiControl
        }
    }
}

/// A name of a file, divided before its extension.
private struct FileNameParts {
    /// A longer one is no extension, but the end of a sentence.
    private static let extensionLimit = 16
    /// What is compressed has the extension that says what it is before this one.
    private static let compressions: Set<String> = ["gz", "bz2", "xz", "zst", "lz", "lz4", "lzma", "z", "br"]

    var stem: String
    /// With its dot; both of `.tar.gz`; empty when there is none.
    var fileExtension: String

    init(_ name: String) {
        (stem, fileExtension) = Self.divide(name)
        let kind = Self.divide(stem)
        if Self.compressions.contains(fileExtension.dropFirst().lowercased()),
            kind.fileExtension.utf8.contains(where: \.isLetter)
        {
            stem = kind.stem
            fileExtension = kind.fileExtension + fileExtension
        }
    }

    private static func divide(_ name: String) -> (stem: String, fileExtension: String) {
        let bytes = name.utf8
        guard let dot = bytes.lastIndex(of: UInt8(ascii: ".")), dot != name.startIndex else { return (name, "") }
        let letters = bytes[dot...].dropFirst()
        guard (1...extensionLimit).contains(letters.count), letters.allSatisfy({ $0.isLetter || $0.isDigit }) else {
            return (name, "")
        }
        return (String(name[..<dot]), String(name[dot...]))
    }
}
