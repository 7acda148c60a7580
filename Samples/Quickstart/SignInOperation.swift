import EasyNetwork
import Foundation

/// A sign-in in the older style: the operation sends the request, maps the response and finishes itself.
///
/// In the typed style, `RequestOperation(SignIn(name:))` does the same.
nonisolated final class SignInOperation: ServiceOperation, @unchecked Sendable {
    // Sendable because the properties are set before the operation is added to a queue.
    private let request: SignIn
    // `@Sendable` because another thread calls these closures. Without it, a closure that is written in a main-actor class
    // would expect the main actor.
    var success: (@Sendable (Session) -> Void)?
    var failure: (@Sendable (NSError) -> Void)?

    init(_ request: SignIn) {
        self.request = request
        super.init()
    }

    override func start() {
        super.start()
        service.request(request, success: handleSuccess, failure: handleFailure)
    }

    private func handleSuccess(_ response: Any?) {
        do {
            let session = try SessionMapper.process(response)
            success?(session)
            finish()
        } catch {
            handleFailure(NSError.cannotParseResponse(underlying: error))
        }
    }

    private func handleFailure(_ error: NSError) {
        failure?(error)
        finish(error)
    }
}
