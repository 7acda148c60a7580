import Foundation

extension Error {
    /// What the error says, as part of a longer sentence.
    var wording: String {
        if let text = (self as? any LocalizedError)?.errorDescription { return text.withoutFullStop }
        // Foundation's own errors have a sentence, and describe themselves by domain and number.
        let isFoundations = self is CocoaError || self is POSIXError || type(of: self) is NSError.Type
        return (isFoundations ? localizedDescription : String(describing: self)).withoutFullStop
    }
}

extension String {
    /// The text as part of a longer sentence.
    var withoutFullStop: String {
        hasSuffix(".") ? String(dropLast()) : self
    }
}

extension String {
    /// The text as it may stand in a message, a log or a terminal: without control characters but tabs, without the marks
    /// that turn the direction of writing (Unicode Standard Annex 9), and bounded.
    ///
    /// Text from a server could otherwise forge lines of a log, send commands to a terminal, or hide what it says.
    ///
    /// - Parameters:
    ///   - limit: in Unicode scalars, since one character may have any number of them. An ellipsis stands for the rest.
    ///   - keepsLines: whether line breaks stay, each as `\n`; else each becomes a space.
    func cleaned(limit: Int = 2_000, keepsLines: Bool = false) -> String {
        // Nearly every text is clean.
        if utf8.count <= limit, utf8.allSatisfy({ (0x20...0x7E).contains($0) }) { return self }
        var result = String.UnicodeScalarView()
        var count = 0
        var previous: Unicode.Scalar?
        for scalar in unicodeScalars {
            defer { previous = scalar }
            var scalar = scalar
            switch scalar.value {
            case 0x0A where previous == "\r": continue
            case 0x0A...0x0D, 0x85, 0x2028, 0x2029: scalar = keepsLines ? "\n" : " "
            case 0x09: break
            case 0..<0x20, 0x7F...0x9F, 0x061C, 0x200E, 0x200F, 0x202A...0x202E, 0x2066...0x206F: continue
            default: break
            }
            guard count < limit else { return String(result) + "…" }
            result.append(scalar)
            count += 1
        }
        return String(result)
    }
}
