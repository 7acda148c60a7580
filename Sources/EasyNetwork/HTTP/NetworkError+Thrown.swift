extension NetworkError {
    /// What an operation ends with when code of the user's has thrown.
    ///
    /// - Parameters:
    ///   - code: for what is neither a ``NetworkError`` nor a `CancellationError`.
    ///   - prefix: what the message begins with.
    static func thrown(_ error: any Error, otherwise code: Code, prefix: String = "") -> NetworkError {
        switch error {
        case let error as NetworkError: error
        case is CancellationError: NetworkError(code: .cancelled)
        default: NetworkError(code: code, message: prefix + error.wording, underlying: error)
        }
    }
}
