import Testing

// `#expect` says more about a condition that is false. But what it expands to takes the compiler 13 ms each time, ten
// times as long as these functions, and the tests have thousands of conditions.

/// Records an issue if the condition is false.
func expect(
    _ condition: Bool,
    _ comment: @autoclosure () -> Comment? = nil,
    fileID: String = #fileID,
    filePath: String = #filePath,
    line: Int = #line,
    column: Int = #column
) {
    guard !condition else { return }
    let location = SourceLocation(fileID: fileID, filePath: filePath, line: line, column: column)
    Issue.record(comment() ?? "the condition is false", sourceLocation: location)
}

/// Records an issue with both values if they differ.
func expect<Value: Equatable>(
    _ value: Value,
    equals expected: Value,
    _ comment: @autoclosure () -> Comment? = nil,
    fileID: String = #fileID,
    filePath: String = #filePath,
    line: Int = #line,
    column: Int = #column
) {
    guard value != expected else { return }
    let location = SourceLocation(fileID: fileID, filePath: filePath, line: line, column: column)
    let values = "\(String(reflecting: value).prefix(4_000)) is not \(String(reflecting: expected).prefix(4_000))"
    Issue.record("\(comment().map { "\($0): " } ?? "")\(values)", sourceLocation: location)
}
