import Foundation

/// Byte counts on a command line.
enum ByteCount {
    /// - Parameter text: A positive number, optionally with a fraction, and with K, M or G for powers of 1,024.
    /// - Returns: The count; `nil` for any other string.
    static func parse(_ text: String) -> Int? {
        let exponents: [Character: Double] = ["k": 1, "m": 2, "g": 3]
        let exponent = text.last.flatMap { exponents[Character($0.lowercased())] }
        let digits = exponent == nil ? text : String(text.dropLast())
        // `Double` would also accept "0x1p3" and "infinity".
        guard digits.utf8.allSatisfy({ (0x30...0x39).contains($0) || $0 == UInt8(ascii: ".") }),
            let number = Double(digits)
        else { return nil }
        let count = (number * pow(1_024, exponent ?? 0)).rounded()
        return count >= 1 && count < 0x1p62 ? Int(exactly: count) : nil
    }
}

/// Amounts as people read them.
enum Amounts {
    /// Powers of 1,024 with three or four digits: `512 B`, `1.5 KiB`, `123 MiB`.
    static func bytes(_ count: Double) -> String {
        guard count.isFinite, count >= 0 else { return "?" }
        if count < 1_023.5 { return "\(Int(count.rounded())) B" }
        var value = count
        for unit in ["KiB", "MiB", "GiB", "TiB", "PiB"] {
            value /= 1_024
            // Use the next unit if the value would be rounded up to 1,024.
            if value < 1_023.5 { return String(format: value < 99.95 ? "%.1f \(unit)" : "%.0f \(unit)", value) }
        }
        return String(format: "%.0f PiB", value)
    }

    static func bytes(_ count: Int64) -> String {
        bytes(Double(count))
    }

    static func rate(_ bytesPerSecond: Double) -> String {
        bytes(bytesPerSecond) + "/s"
    }

    /// A whole percentage, rounded down so that only a complete file has 100.
    static func percent(_ fraction: Double) -> Int {
        // The `Double` 0.57 is slightly less than 57 hundredths.
        Int(fraction * 100 + 1e-9)
    }

    /// Hours, minutes and seconds, rounded up: `0:07`, `1:02:03`. An unknown time is `-:--`.
    static func clock(_ seconds: Double?) -> String {
        guard let seconds, seconds.isFinite, seconds >= 0, seconds < 1_000 * 3_600 else { return "-:--" }
        let all = Int(seconds.rounded(.up))
        let (hours, minutes) = (all / 3_600, all / 60 % 60)
        let end = String(format: "%02d", all % 60)
        return hours > 0 ? "\(hours):\(String(format: "%02d", minutes)):\(end)" : "\(minutes):\(end)"
    }

    /// A duration such as `3.2 s`. From one minute on, the format of ``clock(_:)``.
    static func duration(_ seconds: Double) -> String {
        seconds < 59.95 ? String(format: "%.1f s", max(seconds, 0)) : clock(seconds)
    }
}
