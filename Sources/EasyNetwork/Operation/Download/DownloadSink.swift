import Foundation

/// One segment of a download, asked for and taken.
struct DownloadSink: BodySink {
    let transfer: DownloadTransfer
    let index: Int
    let round: Int

    /// For the round that is under way.
    init(transfer: DownloadTransfer, index: Int) {
        self.transfer = transfer
        self.index = index
        round = transfer.round
    }

    func intake(for message: TransportRequest) -> (TransportRequest, any BodyIntake) {
        var message = message
        let mayContinue = message.mayContinueDownload
        let (question, number, generation) = transfer.question(
            for: index,
            round: round,
            at: message.url.downloadDigest
        )
        let asked = mayContinue ? question : nil
        if let asked {
            message.headers["Range"] = asked.range
            message.headers["If-Range"] = asked.validator.fieldValue
        }
        // Bytes of the file itself: what is compressed on the way has other lengths and places.
        if message.headers["Accept-Encoding"] == nil { message.headers["Accept-Encoding"] = "identity" }
        let intake = DownloadIntake(transfer, index, asked, number, generation, mayContinue, url: message.url)
        return (message, intake)
    }
}

extension URL {
    /// Tells it from other addresses; a digest, as there may be secrets in it.
    var downloadDigest: String {
        var parts = URLComponents(url: self, resolvingAgainstBaseURL: true)
        parts?.fragment = nil
        parts?.user = nil
        parts?.password = nil
        return SHA256.digest(of: Data((parts?.string ?? absoluteString).utf8)).hexadecimal
    }
}

extension TransportRequest {
    /// Whether its answer may be gone on with. A range of one's own is no part of a file that could be.
    var mayContinueDownload: Bool { method == .get && headers["Range"] == nil }
}

/// Takes the answer of one exchange.
final class DownloadIntake: BodyIntake {
    private struct State {
        var generation: Int
        var valve: BodyValve?
    }

    private let transfer: DownloadTransfer
    private let index: Int
    private let question: DownloadCourse.Question?
    private let number: Int
    private let mayContinue: Bool
    private let url: URL
    private let state: Locked<State>

    init(
        _ transfer: DownloadTransfer,
        _ index: Int,
        _ question: DownloadCourse.Question?,
        _ number: Int,
        _ generation: Int,
        _ mayContinue: Bool,
        url: URL
    ) {
        self.transfer = transfer
        self.index = index
        self.question = question
        self.number = number
        self.mayContinue = mayContinue
        self.url = url
        state = Locked(State(generation: generation))
    }

    func begin(_ head: TransportHead, isAccepted: Bool, valve: BodyValve) -> BodyDecision {
        let (decision, generation) = transfer.answer(
            head,
            to: question,
            number,
            state.withLock { $0.generation },
            of: index,
            url: url,
            isAccepted: isAccepted,
            mayContinue: mayContinue
        )
        // Only what is taken has an end that counts.
        guard case .take = decision else { return decision }
        state.withLock { state in
            state.generation = generation
            state.valve = valve
        }
        return decision
    }

    func take(_ data: Data) -> BodyDecision {
        let (generation, valve) = state.withLock { ($0.generation, $0.valve) }
        guard let valve else { return .enough }
        return transfer.take(data, of: index, number, generation, valve: valve)
    }

    func end(_ error: NetworkError?, _ completion: @escaping @Sendable (BodyOutcome) -> Void) {
        let (generation, valve) = state.withLock { ($0.generation, $0.valve.take()) }
        transfer.afterwards {
            // An error before the file began, or of an answer that is none of it, stays what it is.
            let failure = valve == nil ? nil : self.transfer.end(error, of: self.index, self.number, generation)
            let hasProgressed = valve != nil && self.transfer.hasGained(for: self.index, generation)
            completion(BodyOutcome(error: failure, hasProgressed: hasProgressed))
        }
    }
}
