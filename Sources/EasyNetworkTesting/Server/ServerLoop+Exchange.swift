import EasyNetwork
import Foundation

/// Handles requests and responses, on the loop's thread.
extension ServerLoop {
    /// The longest wait in seconds for the client to close its side after the server has closed its own.
    private static let drainTime: TimeInterval = 20

    /// Reads the next request if the previous one has ended.
    func readOn(_ connection: ServerConnection) {
        guard case .reading = connection.phase else { return }
        if connection.parser.bufferedCount > 0 && !begin(connection) { return }
        do {
            while let event = try connection.parser.next() {
                switch event {
                case .continueExpected:
                    guard readsOn(connection.parser.message, isComplete: false, on: connection) else { return }
                    connection.enqueue([.bytes(Data("HTTP/1.1 100 Continue\r\n\r\n".utf8))])
                    flush(connection)
                    guard connection.isOpen else { return }
                case .request(let message):
                    guard readsOn(message, isComplete: true, on: connection) else { return }
                    let trip = link.nextTrip()
                    return delay(.request(message, trip), by: trip.up, on: connection)
                }
            }
            if connection.parser.isInBody,
                !readsOn(connection.parser.message, isComplete: false, on: connection)
            {
                return
            }
            if connection.isInputEnded { close(connection) }
        } catch {
            connection.phase = .writing(then: .close)
            let response = MockResponse.error(error.reason, status: error.statusCode)
            connection.enqueue(ResponsePlan(response, method: "").wire(closing: true, minorVersion: 1))
            flush(connection)
        }
    }

    private func delay(
        _ delayed: ServerConnection.Delayed,
        by seconds: TimeInterval,
        on connection: ServerConnection
    ) {
        guard seconds > 0 else { return proceed(with: delayed, on: connection) }
        if connection.isInputEnded { return close(connection) }
        let id = connection.id
        let timer = SystemClock().schedule(after: seconds) { [weak self] in
            self?.post(.delayOver(connection: id))
        }
        connection.phase = .delayed(delayed, timer: timer)
    }

    private func proceed(with delayed: ServerConnection.Delayed, on connection: ServerConnection) {
        switch delayed {
        case .request(_, let trip) where trip.loss == .request && connection.fault == nil:
            meet(.reset, on: connection)
        case .request(let message, let trip): ask(message, trip, on: connection)
        case .answer(let answer): send(answer, on: connection)
        }
    }

    private func ask(_ message: RequestParser.Message, _ trip: NetworkLink.Trip, on connection: ServerConnection) {
        let id = connection.id
        let request = MockRequest(
            method: message.method,
            target: message.target,
            headers: message.headers,
            body: message.body,
            connection: id
        )
        connection.phase = .answering
        let kept = script.keepsBody(request) ? request : request.withoutBody
        state.update { $0.requests.append(kept) }
        let fault = connection.fault
        workers.async {
            let response = trip.applied(to: self.script.answer(request), method: message.method)
            self.post(.answer(connection: id, PreparedAnswer(response, to: message, fault: fault)))
        }
    }

    func perform(_ command: Command) {
        switch command {
        case .answer(let id, let answer):
            guard let connection = connection(id), case .answering = connection.phase else { return }
            delay(.answer(answer), by: answer.delay, on: connection)
        case .delayOver(let id):
            guard let connection = connection(id), case .delayed(let delayed, _) = connection.phase else { return }
            proceed(with: delayed, on: connection)
        case .paceTick(let id, let count):
            guard let connection = connection(id) else { return }
            connection.paceTimer = nil
            connection.pace?.tick(count)
            flush(connection)
        case .inputArrived(let id, let bytes):
            guard let connection = connection(id) else { return }
            connection.inputTimer = nil
            connection.parser.append(bytes)
            readOn(connection)
        case .drainOver(let id):
            guard let connection = connection(id), case .draining = connection.phase else { return }
            close(connection)
        case .sendUnasked(let bytes):
            for connection in idleConnections {
                connection.enqueue([.bytes(bytes)])
                flush(connection)
            }
            state.update { $0.unaskedCount += 1 }
        }
    }

    private func send(_ answer: PreparedAnswer, on connection: ServerConnection) {
        connection.fault = nil
        connection.hasBegunRequest = false
        connection.hasLookedUpFault = false
        connection.phase = .writing(then: answer.ending)
        connection.pace = answer.pace ?? Pace(link)
        connection.enqueue(answer.segments)
        // Count the fault first, so that a client that has seen it finds the new count.
        if answer.hasFault { countFault() }
        flush(connection)
    }

    /// Sends bytes. After the last one, continues with the next request.
    func flush(_ connection: ServerConnection) {
        guard connection.flush() else { return close(connection) }
        setPace(connection)
        guard !connection.hasOutput, case .writing(let ending) = connection.phase else { return }
        connection.pace = nil
        if let ending { return end(connection, with: ending) }
        connection.phase = .reading
        readOn(connection)
    }

    /// Ends the sending side, and waits until the client closes its side.
    func finish(_ connection: ServerConnection) {
        if connection.isInputEnded { return close(connection) }
        Socket.finishWriting(connection.descriptor)
        state.update { $0.hasEnded = true }
        let id = connection.id
        let timer = SystemClock().schedule(after: Self.drainTime) { [weak self] in
            self?.post(.drainOver(connection: id))
        }
        connection.phase = .draining(timer: timer)
    }

    /// Handles the end of the client's side. If a response is being created or sent, the client still receives it; in
    /// all other states, the connection closes.
    func inputEnded(_ connection: ServerConnection) {
        switch connection.phase {
        case .reading:
            // No body will follow, so a pending `100 Continue` has no use.
            readOn(connection)
        case .answering, .writing, .halfOpen: break
        case .delayed, .stalled, .draining: close(connection)
        }
    }
}

/// Handles faults, on the loop's thread.
extension ServerLoop {
    /// Begins a request whose first bytes have arrived.
    ///
    /// - Returns: `false` if the request must not be read.
    func begin(_ connection: ServerConnection) -> Bool {
        guard !connection.hasBegunRequest else { return true }
        connection.hasBegunRequest = true
        connection.fault = script.next()
        guard let action = connection.fault?.actionAtRequestStart else { return true }
        meet(action, on: connection)
        return false
    }

    /// Breaks off the current request if its fault applies now.
    ///
    /// - Parameter isComplete: Whether the request has been read completely.
    /// - Returns: `false` if no more of the request must be read.
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

    /// Breaks off an exchange whose request can be incomplete.
    private func meet(_ action: MockResponse.Fault.Action, on connection: ServerConnection) {
        connection.parser = RequestParser()
        countFault()
        end(connection, with: action)
    }

    /// Performs the action of a fault after the bytes before it have been sent.
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

    /// Sets the timer for the next share of a slow response.
    func setPace(_ connection: ServerConnection) {
        guard connection.isPaused, connection.paceTimer == nil, let pace = connection.pace else { return }
        let id = connection.id
        let count = min(pace.share, link.share, connection.nextCount)
        let wait = max(pace.interval, link.wait(for: count, .down, now: SystemClock().now))
        connection.paceTimer = SystemClock().schedule(after: wait) { [weak self] in
            self?.post(.paceTick(connection: id, count: count))
        }
    }
}
