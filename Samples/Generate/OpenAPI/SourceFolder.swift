import Foundation

/// The folder of the files for a document.
struct SourceFolder {
    let url: URL

    init(_ url: URL) { self.url = url }

    /// Writes the files that differ, and removes files of an earlier version of the document that are no longer needed.
    ///
    /// - Returns: The names of the changed files, in order.
    func write(_ files: [(name: String, text: String)]) throws -> [String] {
        let manager = FileManager.default
        try manager.createDirectory(at: url, withIntermediateDirectories: true)
        var changed: [String] = []
        for (name, text) in files {
            let file = url.appendingPathComponent(name)
            if manager.contents(atPath: file.path) == Data(text.utf8) { continue }
            try Data(text.utf8).write(to: file, options: .atomic)
            changed.append(name)
        }
        // Another document can have its files in the same folder.
        guard let root = files.first?.name.dropLast(".swift".count) else { return changed }
        for name in try manager.contentsOfDirectory(atPath: url.path).sorted() where name.hasPrefix("\(root)+") {
            let file = url.appendingPathComponent(name)
            guard name.hasSuffix(".swift"), !files.contains(where: { $0.name == name }),
                let text = manager.contents(atPath: file.path), text.starts(with: OpenAPIWriter.mark.utf8)
            else { continue }
            try manager.removeItem(at: file)
            changed.append(name)
        }
        return changed
    }
}
