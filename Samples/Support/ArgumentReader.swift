/// An error in the arguments. Its message is one line that names the argument.
package struct Misuse: Error, Equatable {
    package let message: String

    package init(_ message: String) {
        self.message = message
    }
}

/// Reads the words of a command line. Options can be anywhere.
///
/// ```swift
/// var reader = ArgumentReader(words)
/// while let word = reader.next() {
///     switch word {
///     case .option("-j"): jobCount = try reader.number(1...256)
///     case .option: throw reader.unknownOption
///     case .other(let file): files.append(file)
///     }
/// }
/// ```
///
/// A value follows its option or is attached to it: `-j 4`, `-j4`, `--limit 1M`, `--limit=1M`. Words after `--` are never
/// options.
package struct ArgumentReader {
    package enum Word {
        case option(String)
        case other(String)
    }

    private var rest: ArraySlice<String>
    private var hasOptions = true
    private var word = ""
    private var option = ""
    private var attached: String?

    /// - Parameter words: The arguments without the name of the program.
    package init(_ words: [String]) {
        rest = words[...]
    }

    /// Whether `--help` or `-h` is among the remaining words.
    package var asksForHelp: Bool { rest.prefix { $0 != "--" }.contains { ["--help", "-h"].contains($0) } }

    package mutating func next() -> Word? {
        guard let word = rest.popFirst() else { return nil }
        guard hasOptions, word.hasPrefix("-") else { return .other(word) }
        if word == "--" {
            hasOptions = false
            return next()
        }
        let isLong = word.hasPrefix("--")
        let name = isLong ? word.prefix { $0 != "=" } : word.prefix(2)
        self.word = word
        option = String(name)
        attached = name == word ? nil : String(word.dropFirst(name.count + (isLong ? 1 : 0)))
        return .option(option)
    }

    /// The error for the last option if the program does not know it.
    package var unknownOption: Misuse { Misuse("\(word): is not an option") }

    /// Returns true, or throws if a value is attached to the last option.
    package func flag() throws(Misuse) -> Bool {
        guard attached == nil else { throw unknownOption }
        return true
    }

    /// Returns the value of the last option.
    ///
    /// - Parameters:
    ///   - need: What the value must be, for the error.
    ///   - convert: Returns `nil` for an invalid value.
    package mutating func value<Value>(
        _ need: String,
        _ convert: (String) -> Value? = { $0 }
    ) throws(Misuse) -> Value {
        guard let text = attached ?? rest.popFirst() else { throw Misuse("\(option) needs \(need)") }
        guard !text.isEmpty, let value = convert(text) else { throw Misuse("\(option) \(text): needs \(need)") }
        return value
    }

    /// Returns the value of the last option, which must be an integer in the range.
    package mutating func number(_ range: ClosedRange<Int>) throws(Misuse) -> Int {
        let need = "a number from \(range.lowerBound)" + (range.upperBound == .max ? "" : " to \(range.upperBound)")
        return try value(need) { Int($0).flatMap { range.contains($0) ? $0 : nil } }
    }
}
