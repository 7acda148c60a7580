import Foundation

/// Standard output.
enum Terminal {
    struct Size: Equatable, Sendable {
        var columns: Int
        var rows: Int
    }

    /// Nil when nobody looks at it: a file or a pipe.
    static var size: Size? {
        guard isatty(STDOUT_FILENO) == 1 else { return nil }
        var window = winsize()
        guard ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &window) == 0, window.ws_col > 0, window.ws_row > 0 else {
            return Size(columns: 80, rows: 24)
        }
        return Size(columns: Int(window.ws_col), rows: Int(window.ws_row))
    }

    /// At once: `print` keeps the text back until there is much of it, when it goes to a pipe.
    static func write(_ text: String) {
        // Who has stopped reading misses nothing.
        try? FileHandle.standardOutput.write(contentsOf: Data(text.utf8))
    }

    static func writeError(_ text: String) {
        try? FileHandle.standardError.write(contentsOf: Data(text.utf8))
    }
}
