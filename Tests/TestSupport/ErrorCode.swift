@testable import EasyNetwork

/// The code of the error with which the work fails; nil if it succeeds.
func errorCode<Value>(_ work: () async throws -> Value) async -> NetworkError.Code? {
    do {
        _ = try await work()
        return nil
    } catch {
        return (error as? NetworkError)?.code
    }
}
