import Foundation

/// Where a body goes that somebody iterates over.
struct StreamSink: BodySink {
    let channel: StreamChannel

    func intake(for message: TransportRequest) -> (TransportRequest, any BodyIntake) {
        (message, StreamIntake(channel: channel, url: message.url))
    }
}

/// Takes the answer to one message: the first that is accepted goes to the channel.
struct StreamIntake: BodyIntake {
    let channel: StreamChannel
    let url: URL

    func begin(_ head: TransportHead, isAccepted: Bool, valve: BodyValve) -> BodyDecision {
        guard isAccepted else { return .gather }
        if channel.begin(head, from: url, valve: valve) { return .take }
        return .fail(
            NetworkError(code: .cannotSendAgain, message: "the beginning of an earlier answer has been handed over")
        )
    }

    func take(_ data: Data) -> BodyDecision {
        channel.take(data)
        return .take
    }

    func end(_ error: NetworkError?, _ completion: @escaping @Sendable (BodyOutcome) -> Void) {
        // The end of the request is the end of the body: it knows what was sent before.
        let outcome = BodyOutcome(error: error, mayBeginAgain: !channel.hasBegun)
        WorkQueue.shared.async { completion(outcome) }
    }
}
