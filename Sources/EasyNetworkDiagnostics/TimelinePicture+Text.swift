import EasyNetwork
import Foundation

extension TimelinePicture {
    /// Returns the picture as lines for a terminal.
    func lines(width: Int) -> [String] {
        let width = max(40, width)
        let times = rows.map { Self.time($0.end - $0.added) }
        // The names get the room that they need, as long as the bars keep half of the width.
        let names = rows.map { row in row.name + (row.priority.map { ", \($0)" } ?? "") }
        let nameWidth = min(max(4, names.map { Self.columns($0) }.max() ?? 4), max(width / 4, width * 2 / 5 - 8))
        let timeWidth = max(4, times.map(\.count).max() ?? 4)
        let resultWidth = min(max(6, rows.map { Self.columns($0.result) }.max() ?? 6), width / 5)
        let longest = rows.map { Self.columns($0.why ?? "") }.max() ?? 0
        let whyWidth = width < 110 || longest == 0 ? 0 : min(max(10, longest), width / 5)
        // The marks and the spaces between the columns take seven columns.
        let barWidth = max(4, width - nameWidth - timeWidth - resultWidth - whyWidth - (whyWidth > 0 ? 7 : 6))
        var lines = Self.wrapped(summary, width)
        lines.append(
            [
                "  ", Self.fitted("name", nameWidth), Self.scale(length, barWidth),
                Self.fitted("time", timeWidth, isRight: true), Self.fitted("result", resultWidth),
                whyWidth > 0 ? Self.fitted("waited for", whyWidth) : "",
            ]
            .joined(separator: " ")
        )
        for (index, row) in rows.enumerated() {
            if row.isHeading {
                lines.append("\(row.name): \(times[index])")
                continue
            }
            lines.append(
                [
                    Self.mark(row.outcome) + (row.isCritical ? "*" : " "), Self.fitted(names[index], nameWidth),
                    Self.bar(row, length, barWidth), Self.fitted(times[index], timeWidth, isRight: true),
                    Self.fitted(row.result, resultWidth), whyWidth > 0 ? Self.fitted(row.why ?? "", whyWidth) : "",
                ]
                .joined(separator: " ")
            )
        }
        lines += Self.wrapped(Self.legend, width)
        return lines.map { line in
            String(line.reversed().drop { $0 == " " }.reversed())
        }
    }

    private static let legend =
        "┄ waits for a job  ░ for a slot or a rate  ~ for something else  ▒ has a slot  █ message under way  "
        + "◆ from the cache  "
        + "* critical path  ✓ succeeded  ✕ failed  − cancelled  … unfinished"

    private static func mark(_ outcome: TimelineRecord.Outcome) -> String {
        switch outcome {
        case .succeeded: "✓"
        case .failed, .dependencyFailed: "✕"
        case .cancelled: "−"
        case .unfinished: "…"
        }
    }

    private static func bar(_ row: Row, _ length: Double, _ width: Int) -> String {
        var cells = [Character](repeating: " ", count: width)
        func paint(_ start: Double, _ end: Double, _ character: Character) {
            let scale = length > 0 ? Double(width) / length : 0
            let first = min(width - 1, max(0, Int(start * scale)))
            let last = min(width, max(first + 1, Int((end * scale).rounded(.up))))
            for cell in first..<last { cells[cell] = character }
        }
        for wait in row.waits {
            paint(wait.start, wait.end, wait.kind == "job" ? "┄" : wait.kind == "slot" ? "░" : "~")
        }
        for slot in row.slots { paint(slot.start, slot.end, "▒") }
        for wait in row.waits where wait.kind == "other" { paint(wait.start, wait.end, "~") }
        for attempt in row.attempts { paint(attempt.start, attempt.end, "█") }
        for answer in row.cache where answer.miss == nil { paint(answer.at, answer.at, "◆") }
        return String(cells)
    }

    /// Returns an axis with the time at both ends, and in the middle if there is room.
    private static func scale(_ length: Double, _ width: Int) -> String {
        let (first, middle, last) = (time(0), time(length / 2), time(length))
        let rest = width - first.count - last.count
        guard rest > 0 else { return fitted(last, width, isRight: true) }
        guard rest > middle.count + 4 else { return first + String(repeating: " ", count: rest) + last }
        let before = width / 2 - first.count
        return first + String(repeating: " ", count: before) + middle
            + String(repeating: " ", count: max(1, rest - before - middle.count)) + last
    }

    static func time(_ milliseconds: Double) -> String {
        switch milliseconds {
        case ..<1: milliseconds > 0 ? String(format: "%.1f ms", milliseconds) : "0 ms"
        case ..<1_000: String(format: "%.0f ms", milliseconds)
        case ..<100_000: String(format: "%.2f s", milliseconds / 1_000)
        default: String(format: "%.0f s", milliseconds / 1_000)
        }
    }
}

// MARK: - Columns

extension TimelinePicture {
    /// Returns the text padded or truncated to a number of columns.
    static func fitted(_ text: String, _ width: Int, isRight: Bool = false) -> String {
        var text = text
        if columns(text) > width {
            var count = 0
            let head = text.prefix { character in
                count += columns(character)
                return count < width
            }
            text = head + "…"
        }
        let padding = String(repeating: " ", count: max(0, width - columns(text)))
        return isRight ? padding + text : text + padding
    }

    /// Returns the number of columns that a terminal uses for a string.
    static func columns(_ text: String) -> Int { text.reduce(0) { $0 + columns($1) } }

    private static func columns(_ character: Character) -> Int {
        let scalars = character.unicodeScalars
        if scalars.contains(where: { isWide($0) || $0.value == 0xFE0F }) { return 2 }
        let takesNone = scalars.allSatisfy { scalar in
            [.nonspacingMark, .enclosingMark, .format, .control].contains(scalar.properties.generalCategory)
        }
        return takesNone ? 0 : 1
    }

    /// Returns whether a scalar is an East Asian wide or full-width character (Unicode Standard Annex 11), or an emoji.
    private static func isWide(_ scalar: Unicode.Scalar) -> Bool {
        switch scalar.value {
        case 0x1100...0x115F, 0x2E80...0x303E, 0x3041...0xA4CF, 0xA960...0xA97C, 0xAC00...0xD7A3, 0xF900...0xFAFF,
            0xFE30...0xFE6F, 0xFF00...0xFF60, 0xFFE0...0xFFE6, 0x1F300...0x1F64F, 0x1F900...0x1F9FF, 0x20000...0x3FFFD:
            true
        default: scalar.properties.isEmojiPresentation
        }
    }

    private static func wrapped(_ text: String, _ width: Int) -> [String] {
        var lines = [""]
        // Parts are separated by two spaces, and are not broken.
        for word in text.replacingOccurrences(of: "  ", with: "\n").split(separator: "\n") {
            let joined = lines[lines.count - 1].isEmpty ? "\(word)" : lines[lines.count - 1] + "  \(word)"
            if columns(joined) <= width {
                lines[lines.count - 1] = joined
            } else {
                lines.append("\(word)")
            }
        }
        return lines
    }
}
