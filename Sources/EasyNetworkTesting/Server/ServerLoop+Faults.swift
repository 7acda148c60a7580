import EasyNetwork
import Foundation

/// How requests are broken off, and what follows a broken answer. All on the loop's thread.
extension ServerLoop {
    /// Begins a request, of which bytes have come that may not have been read.
    ///
    /// - Returns: false when it is not to be read.
    func begin(_ connection: ServerConnection) -> Bool {
        guard !connection.hasBegunRequest else { return true }
        connection.hasBegunRequest = true
        connection.fault = script.next()
        guard let action = connection.fault?.actionAtRequestStart else { return true }
        meet(action, on: connection)
        return false
    }

    /// Breaks the request off that is being read, if it is time.
    ///
    /// - Parameter isComplete: whether all of it has been read.
    /// - Returns: false when it is not to be read any further.
    func readsOn(_ message: RequestParser.Message, isComplete: Bool, on connection: ServerConnection) -> Bool {
        if connection.fault == nil && !connection.hasLookedUpFault {
            connection.hasLookedUpFault = true
            connection.fault = script.route(MockRequest(method: message.method, target: message.target))
        }
        let fault = connection.fault
        guard let action = fault?.actionInRequest(bodyCount: message.body.count, isComplete: isComplete) else {
            return true
        }
        meet(action, on: connection)
        return false
    }

    func countFault() {
        state.update { $0.faultCount += 1 }
    }

    /// Breaks an exchange off of whose request not all may have been read.
    private func meet(_ action: MockResponse.Fault.Action, on connection: ServerConnection) {
        connection.parser = RequestParser()
        countFault()
        end(connection, with: action)
    }

    /// Leaves a connection as the fault has it, once all is sent that goes before it.
    func end(_ connection: ServerConnection, with action: MockResponse.Fault.Action) {
        switch action {
        case .stall:
            connection.phase = .stalled
            if connection.isInputEnded { close(connection) }
        case .close: finish(connection)
        case .reset: close(connection, reset: true)
        case .halfOpen: connection.phase = .halfOpen
        case .refuse(let statusCode):
            connection.phase = .writing(then: .close)
            let plan = ResponsePlan(.status(statusCode), method: "")
            connection.enqueue(plan.wire(closing: true, minorVersion: 1))
            flush(connection)
        }
    }

    /// Lets the next share of a trickling answer go out when its time has come.
    func setPace(_ connection: ServerConnection) {
        guard connection.isPaused, connection.paceTimer == nil, let pace = connection.pace else { return }
        let id = connection.id
        connection.paceTimer = SystemClock().schedule(after: pace.interval) { [weak self] in
            self?.post(.paceTick(connection: id))
        }
    }
}
