import EasyNetwork
import Foundation

/// A sign-in in the older style: the operation makes the call, maps the answer and finishes itself.
///
/// `RequestOperation(SignIn(name:))` is the same job in the typed style.
nonisolated final class SignInOperation: ServiceOperation, @unchecked Sendable {
    // Sendable because the properties are set before the operation is added to a queue.
    private let request: SignIn
    // `@Sendable` because they are called on another thread: a closure of a class on the main actor would else expect
    // that.
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
