import Foundation

/// A temporary folder that is removed in `deinit`.
final class TestFolder: Sendable {
    let url = FileManager.default.temporaryDirectory
        .appendingPathComponent("EasyNetwork-\(UUID().uuidString)", isDirectory: true)

    init() {
        try? FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
    }

    deinit {
        try? FileManager.default.removeItem(at: url)
    }

    /// The names of all files, hidden ones included, sorted.
    var names: [String] {
        ((try? FileManager.default.contentsOfDirectory(atPath: url.path)) ?? []).sorted()
    }

    func file(_ name: String) -> URL { url.appendingPathComponent(name, isDirectory: false) }

    func data(_ name: String) -> Data? { FileManager.default.contents(atPath: file(name).path) }

    @discardableResult
    func write(_ text: String, to name: String) -> URL {
        _ = FileManager.default.createFile(atPath: file(name).path, contents: Data(text.utf8))
        return file(name)
    }
}
