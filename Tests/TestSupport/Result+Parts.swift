import EasyNetwork

extension Result {
    var value: Success? { try? get() }
}

extension Result where Failure == NetworkError {
    var code: NetworkError.Code? {
        guard case .failure(let error) = self else { return nil }
        return error.code
    }
}
