import EasyNetwork
import EasyNetworkResources
import Foundation

/// Loads several pictures, each requested several times at once. A `ResourceLoader` sends one request for each picture.
final class LoadPictures: ServiceOperation, @unchecked Sendable {
    // Sendable because no property of this class changes.
    private let count: Int
    private let askerCount: Int

    init(count: Int, askerCount: Int, service: EasyNetworkService) {
        (self.count, self.askerCount) = (count, askerCount)
        super.init(service: service)
    }

    override func execute() {
        // Start with the newest, as for a list that scrolls. An app would make an image of the body.
        let pictures = ResourceLoader(queue: NetworkQueue(), service: service, startsNewestFirst: true) { $0.body }
        let urls = (0..<count).compactMap { URL(string: "pictures/\($0)") }
        Task { [askerCount] in
            do {
                try await withThrowingTaskGroup(of: Data.self) { group in
                    for url in urls {
                        for _ in 0..<askerCount { group.addTask { try await pictures.resource(at: url) } }
                    }
                    try await group.waitForAll()
                }
                finish()
            } catch {
                finish(error as? NetworkError ?? NetworkError(code: .cancelled))
            }
        }
    }
}
