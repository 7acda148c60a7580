#if os(Linux) || os(macOS)
import Foundation

/// A program that is built beside the tests.
enum BuiltProgram {
    static func url(_ name: String) -> URL {
        #if os(macOS)
        let tests = Bundle(for: TestFolder.self).bundleURL
        #else
        let tests = URL(fileURLWithPath: CommandLine.arguments[0])
        #endif
        return tests.deletingLastPathComponent().appendingPathComponent(name)
    }
}
#endif
