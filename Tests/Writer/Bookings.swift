#if DEBUG
import Foundation

@testable import EasyNetwork
@testable import EasyNetworkOutbox

private struct BookPart: APIRequest {
    struct Item: Decodable { let key: String }
    let chain: Int
    let part: Int
    var api: String { "bookings/\(chain)/\(part)" }
    var method: NetworkService.Method { .post }
    var options: RequestOptions { RequestOptions(retry: .never) }
}

/// The test has a type of its own with the same name on disk.
private struct Unbook: APIRequest, Codable {
    typealias Item = Void
    let key: String
    var api: String { "cancellations/\(key)" }
    var method: NetworkService.Method { .post }
}

/// Runs chains of bookings without end, several at a time. An outbox undoes those that are not whole.
func book(_ directory: URL, seed: UInt64, first: Int, server: URL?) async throws {
    let queue = NetworkQueue()
    let host = HostConfiguration(baseURL: server) { $0.random = { 0 } }
    let service = EasyNetworkService(host)
    let outbox = try Outbox(directory: directory, queue: queue, service: service)
    outbox.register(Unbook.self, name: "unbook")
    // Undoes what earlier processes have left.
    try outbox.start()
    await withTaskGroup(of: Void.self) { group in
        for lane in 0..<3 {
            group.addTask {
                var random = seed &+ UInt64(lane)
                func next(_ count: UInt64) -> Int {
                    random = random &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
                    return Int((random >> 33) % count)
                }
                for number in 0... {
                    let chain = first + 3 * number + lane
                    let parts = (0..<3).map { part in
                        let job = RequestOperation(BookPart(chain: chain, part: part), service: service)
                        job.undo = { outcome in
                            switch outcome {
                            case .succeeded(let booking): Unbook(key: booking.key)
                            case .unknown(let key): Unbook(key: key)
                            }
                        }
                        return job
                    }
                    let group = next(3) == 0 ? BatchOperation(parts) : ChainOperation(parts)
                    group.undoneBy = outbox
                    if next(4) == 0 { parts[next(3)].whenFinished { group.cancel() } }
                    queue.addOperation(group)
                    do {
                        try await group.finished()
                        Writer.tell("whole \(chain)")
                        guard next(6) == 0 else { continue }
                        Writer.tell("undoing \(chain)")
                        try? await group.undo()
                    } catch {}
                    Writer.tell("undone \(chain)")
                }
            }
        }
    }
}
#endif
