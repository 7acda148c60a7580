/// Text from servers, made harmless for a terminal.
enum PlainText {
    /// The text as one line without control characters. With an escape sequence, a name could clear the screen.
    static func line(_ text: String) -> String {
        var line = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            switch scalar.properties.generalCategory {
            case .control, .lineSeparator, .paragraphSeparator: line.append(" ")
            case .format where scalar.properties.isBidiControl: line.append(" ")
            default: line.append(scalar)
            }
        }
        return String(line)
    }

    /// The approximate number of columns of the text. East Asian characters and emoji take two.
    static func columns(_ text: String) -> Int {
        text.reduce(0) { $0 + columns($1) }
    }

    /// The text in exactly `columns` columns, padded with spaces or cut in the middle. The end stays, because it often
    /// distinguishes files.
    static func fit(_ text: String, columns width: Int) -> String {
        let length = columns(text)
        guard length > width else { return text + String(repeating: " ", count: max(width - length, 0)) }
        let head = prefix(text, columns: max(width - 1, 0) / 2)
        let tail = String(prefix(String(text.reversed()), columns: max(width - 1, 0) - columns(head)).reversed())
        let cut = width > 0 ? head + "~" + tail : ""
        return cut + String(repeating: " ", count: max(width - columns(cut), 0))
    }

    private static func prefix(_ text: String, columns width: Int) -> String {
        var room = width
        return String(
            text.prefix { character in
                room -= columns(character)
                return room >= 0
            }
        )
    }

    private static func columns(_ character: Character) -> Int {
        guard let scalar = character.unicodeScalars.first else { return 0 }
        if scalar.properties.isEmojiPresentation { return 2 }
        switch scalar.value {
        case 0x1100...0x115F, 0x2E80...0xA4CF, 0xAC00...0xD7A3, 0xF900...0xFAFF, 0xFE30...0xFE6F, 0xFF00...0xFF60,
            0xFFE0...0xFFE6, 0x20000...0x3FFFD:
            return 2
        default:
            return 1
        }
    }
}
