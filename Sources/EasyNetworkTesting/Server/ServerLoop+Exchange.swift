import EasyNetwork
import Foundation

/// What happens on a connection, from the bytes of a request to those of the answer. All on the loop's thread.
extension ServerLoop {
    /// How long a client may take to close its side after the server's, in seconds.
    private static let drainTime: TimeInterval = 20

    /// Takes the next request, if the last one is done with.
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
                    return ask(message, on: connection)
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
        state.update { $0.requests.append(request) }
        let fault = connection.fault
        workers.async {
            let answer = PreparedAnswer(self.script.answer(request), to: message, fault: fault)
            self.post(.answer(connection: id, answer))
        }
    }

    func perform(_ command: Command) {
        switch command {
        case .answer(let id, let answer):
            guard let connection = connection(id), case .answering = connection.phase else { return }
            guard answer.delay > 0 else { return send(answer, on: connection) }
            if connection.isInputEnded { return close(connection) }
            let timer = SystemClock().schedule(after: answer.delay) { [weak self] in
                self?.post(.delayOver(connection: id))
            }
            connection.phase = .delayed(answer, timer: timer)
        case .delayOver(let id):
            guard let connection = connection(id), case .delayed(let answer, _) = connection.phase else { return }
            send(answer, on: connection)
        case .paceTick(let id):
            guard let connection = connection(id) else { return }
            connection.paceTimer = nil
            connection.pace?.tick()
            flush(connection)
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
        connection.pace = answer.pace
        connection.enqueue(answer.segments)
        // First, so that a client that has seen the fault finds it counted.
        if answer.hasFault { countFault() }
        flush(connection)
    }

    /// Sends what can be sent, and goes on when all is out.
    func flush(_ connection: ServerConnection) {
        guard connection.flush() else { return close(connection) }
        setPace(connection)
        guard !connection.hasOutput, case .writing(let ending) = connection.phase else { return }
        connection.pace = nil
        if let ending { return end(connection, with: ending) }
        connection.phase = .reading
        readOn(connection)
    }

    /// Tells the client that nothing more comes, and waits for it to close as well.
    func finish(_ connection: ServerConnection) {
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
        case .answering, .writing, .halfOpen: break
        case .delayed, .stalled, .draining: close(connection)
        }
    }
}
