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
