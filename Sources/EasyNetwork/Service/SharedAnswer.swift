/// An answer that several requests get, with what an error of theirs needs to say about how it came.
struct SharedAnswer: Sendable {
    typealias Receiver = @Sendable (Result<SharedAnswer, NetworkError>) -> Void

    var response: NetworkResponse
    var request: NetworkError.Request?
    var attempts: Int

    /// - Parameter landing: the one that brought the answer.
    init(_ response: NetworkResponse, landing: Landing) {
        self.response = response
        let sent = landing.annotate(NetworkError(code: .cancelled))
        request = sent.request
        attempts = sent.attempts
    }

    /// What the others get: the one that asked first has it from where it came.
    var joined: SharedAnswer {
        var answer = self
        answer.response.source = .joined
        return answer
    }

    /// Makes the item of one of those that get the answer.
    func item<Item>(_ map: (NetworkResponse) throws -> Item) -> Result<Item, NetworkError> {
        do {
            return .success(try map(response))
        } catch {
            var error = response.mappingError(error)
            error.request = request
            error.attempts = attempts
            return .failure(error)
        }
    }
}
