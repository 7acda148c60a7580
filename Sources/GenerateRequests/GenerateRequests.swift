import Foundation
import PackagePlugin

/// Writes requests and structs into the package: `swift package generate-requests openapi.json --output Sources/API`.
@main
struct GenerateRequests: CommandPlugin {
    func performCommand(context: PluginContext, arguments: [String]) async throws {
        try run(context.tool(named: "Generate").url, arguments, in: context.package.directoryURL)
    }

    private func run(_ program: URL, _ arguments: [String], in folder: URL) throws {
        let process = Process()
        process.executableURL = program
        process.arguments = arguments
        process.currentDirectoryURL = folder
        try process.run()
        process.waitUntilExit()
        if process.terminationStatus != 0 { Diagnostics.error("no files were written; see the error above") }
    }
}

#if canImport(XcodeProjectPlugin)
import XcodeProjectPlugin

extension GenerateRequests: XcodeCommandPlugin {
    func performCommand(context: XcodePluginContext, arguments: [String]) throws {
        // Xcode passes the selected target as an argument.
        var words = ArgumentExtractor(arguments)
        _ = words.extractOption(named: "target")
        try run(context.tool(named: "Generate").url, words.remainingArguments, in: context.xcodeProject.directoryURL)
    }
}
#endif
