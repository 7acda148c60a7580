import EasyNetwork
import Foundation

/// What happens on a connection, from the bytes of a request to those of the answer. All on the loop's thread.
extension ServerLoop {
    /// How long a client may take to close its side after the server's, in seconds.
    private static let drainTime: TimeInterval = 5

    /// Takes the next request, if the last one is done with.
    func readOn(_ connection: ServerConnection) {
        guard case .reading = connection.phase else { return }
        do {
            while let event = try connection.parser.next() {
                switch event {
                case .continueExpected:
                    connection.enqueue([Data("HTTP/1.1 100 Continue\r\n\r\n".utf8)])
                    flush(connection)
                    guard connection.isOpen else { return }
                case .request(let message):
                    return ask(message, on: connection)
                }
            }
            if connection.isInputEnded { close(connection) }
        } catch {
            connection.request = nil
            connection.phase = .writing(thenClose: true)
            let response = MockResponse.error(error.reason, status: error.statusCode)
            connection.enqueue(ResponsePlan(response, method: "").wire(closing: true, minorVersion: 1))
            flush(connection)
        }
    }

    private func ask(_ message: RequestParser.Message, on connection: ServerConnection) {
        let id = connection.id
        let request = MockRequest(
            method: message.method,
            target: message.target,
            headers: message.headers,
            body: message.body,
            connection: id
        )
        connection.phase = .answering
        connection.request = message
        connection.request?.body = Data()
        state.update { $0.requests.append(request) }
        workers.async { self.post(.answer(connection: id, self.handler(request))) }
    }

    func perform(_ command: Command) {
        switch command {
        case .answer(let id, let response):
            guard let connection = connection(id), case .answering = connection.phase else { return }
            guard response.delay > 0 else { return answer(response, on: connection) }
            if connection.isInputEnded { return close(connection) }
            let timer = SystemClock().schedule(after: response.delay) { [weak self] in
                self?.post(.delayOver(connection: id))
            }
            connection.phase = .delayed(response, timer: timer)
        case .delayOver(let id):
            guard let connection = connection(id), case .delayed(let response, _) = connection.phase else { return }
            answer(response, on: connection)
        case .drainOver(let id):
            guard let connection = connection(id), case .draining = connection.phase else { return }
            close(connection)
        }
    }

    private func answer(_ response: MockResponse, on connection: ServerConnection) {
        guard let request = connection.request else { return close(connection) }
        connection.request = nil
        switch response.fault?.kind {
        case .stall:
            connection.phase = .stalled
            if connection.isInputEnded { close(connection) }
        case .close:
            close(connection)
        case .reset:
            close(connection, reset: true)
        case .raw(let bytes):
            connection.phase = .writing(thenClose: true)
            connection.enqueue(bytes.isEmpty ? [] : [bytes])
            flush(connection)
        case .truncate, nil:
            let plan = ResponsePlan(response, method: request.method)
            let closing = !request.keepsAlive
            connection.phase = .writing(thenClose: closing || plan.closes)
            connection.enqueue(plan.wire(closing: closing, minorVersion: request.minorVersion))
            flush(connection)
        }
    }

    /// Sends what can be sent, and goes on when all is out.
    func flush(_ connection: ServerConnection) {
        guard connection.flush() else { return close(connection) }
        guard !connection.hasOutput, case .writing(let thenClose) = connection.phase else { return }
        if !thenClose {
            connection.phase = .reading
            return readOn(connection)
        }
        if connection.isInputEnded { return close(connection) }
        Socket.finishWriting(connection.descriptor)
        let id = connection.id
        let timer = SystemClock().schedule(after: Self.drainTime) { [weak self] in
            self?.post(.drainOver(connection: id))
        }
        connection.phase = .draining(timer: timer)
    }

    /// The client has closed its side. It still gets an answer that is on its way; one who waits for a delayed answer
    /// or for none has given up.
    func inputEnded(_ connection: ServerConnection) {
        switch connection.phase {
        case .reading:
            // An answer to 100-continue may not be out yet, but without a body there is nothing to go on with.
            readOn(connection)
        case .answering, .writing: break
        case .delayed, .stalled, .draining: close(connection)
        }
    }
}
