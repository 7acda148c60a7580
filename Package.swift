// swift-tools-version: 6.1
import PackageDescription

// An async function goes on where it was called, without a look at the executor at each call and return.
let settings: [SwiftSetting] = [.enableUpcomingFeature("NonisolatedNonsendingByDefault")]

let package = Package(
    name: "EasyNetwork",
    platforms: [.macOS(.v13), .iOS(.v16), .tvOS(.v16), .watchOS(.v9), .visionOS(.v1)],
    products: [
        .library(name: "EasyNetwork", targets: ["EasyNetwork"]),
        .library(name: "EasyNetworkDiagnostics", targets: ["EasyNetworkDiagnostics"]),
        .library(name: "EasyNetworkOutbox", targets: ["EasyNetworkOutbox"]),
        .library(name: "EasyNetworkResources", targets: ["EasyNetworkResources"]),
        .library(name: "EasyNetworkTesting", targets: ["EasyNetworkTesting"]),
        .plugin(name: "GenerateRequests", targets: ["GenerateRequests"]),
    ],
    targets: [
        .target(name: "CCurl", linkerSettings: [.linkedLibrary("dl", .when(platforms: [.linux]))]),
        .target(
            name: "EasyNetwork",
            dependencies: [.target(name: "CCurl", condition: .when(platforms: [.linux]))],
            resources: [.process("PrivacyInfo.xcprivacy")],
            swiftSettings: settings
        ),
        // The files of the page are held as strings by TimelinePage.swift, see .ci/formats.
        .target(
            name: "EasyNetworkDiagnostics",
            dependencies: ["EasyNetwork"],
            exclude: ["Page"],
            swiftSettings: settings
        ),
        .target(name: "EasyNetworkOutbox", dependencies: ["EasyNetwork"], swiftSettings: settings),
        .target(name: "EasyNetworkResources", dependencies: ["EasyNetwork"], swiftSettings: settings),
        // Reads OpenAPI for EasyNetworkTesting and Generate; no product.
        .target(name: "EasyNetworkOpenAPI"),
        .target(name: "EasyNetworkTesting", dependencies: ["EasyNetwork", "EasyNetworkOpenAPI"]),
        .executableTarget(
            name: "Quickstart",
            dependencies: ["EasyNetwork", "EasyNetworkDiagnostics", "EasyNetworkTesting"],
            path: "Samples/Quickstart",
            exclude: ["README.md"]
        ),
        .executableTarget(
            name: "Feed",
            dependencies: [
                "EasyNetwork", "EasyNetworkOutbox", "EasyNetworkResources", "EasyNetworkTesting", "SampleSupport",
            ],
            path: "Samples/Feed",
            exclude: ["README.md"]
        ),
        // What the samples share: how they read their arguments, and how they handle Ctrl-C.
        .target(name: "SampleSupport", path: "Samples/Support"),
        .executableTarget(
            name: "Downloader",
            dependencies: ["EasyNetwork", "SampleSupport"],
            path: "Samples/Downloader",
            exclude: ["README.md"]
        ),
        .executableTarget(
            name: "Harness",
            dependencies: [
                "EasyNetwork", "EasyNetworkDiagnostics", "EasyNetworkOutbox", "EasyNetworkResources",
                "EasyNetworkTesting", "SampleSupport",
            ],
            path: "Samples/Harness",
            exclude: ["README.md"]
        ),
        .executableTarget(
            name: "Generate",
            dependencies: ["EasyNetworkOpenAPI", "SampleSupport"],
            path: "Samples/Generate",
            exclude: ["README.md"]
        ),
        .plugin(
            name: "GenerateRequests",
            capability: .command(
                intent: .custom(
                    verb: "generate-requests",
                    description: "Writes requests and structs from an OpenAPI document, a sample or recorded traffic."
                ),
                permissions: [
                    .writeToPackageDirectory(reason: "The files that are made from the document are put there.")
                ]
            ),
            dependencies: ["Generate"],
            path: "Sources/GenerateRequests"
        ),
        .executableTarget(
            name: "Benchmark",
            dependencies: [
                "EasyNetwork", "EasyNetworkDiagnostics", "EasyNetworkOutbox", "EasyNetworkResources",
                "EasyNetworkTesting", "Programs",
                .target(name: "CCurl", condition: .when(platforms: [.linux])),
            ],
            path: "Tests/Benchmark",
            exclude: ["README.md"]
        ),
        // A program that a test kills while it writes, as it does the Downloader.
        .executableTarget(
            name: "Writer",
            dependencies: ["EasyNetwork", "EasyNetworkDiagnostics", "EasyNetworkOutbox"],
            path: "Tests/Writer"
        ),
        // Sends load to the servers of .ci/servers.
        .executableTarget(name: "Load", dependencies: ["EasyNetwork"], path: "Tests/Load"),
        // The whole package in worlds that are made by seeds. `swift run Simulation SEED` prints one, .ci/simulation runs many.
        .target(
            name: "SimulatedWorld",
            dependencies: ["EasyNetwork", "EasyNetworkDiagnostics", "EasyNetworkOutbox", "EasyNetworkResources"],
            path: "Tests/Simulation",
            swiftSettings: settings
        ),
        .executableTarget(name: "Simulation", dependencies: ["SimulatedWorld"], path: "Tests/SimulationProgram"),
        // Sets how many descriptors the tests have, and how many of them run at once, when it is loaded.
        .target(name: "TestProcess", path: "Tests/TestProcess"),
        // The programs that tests and Benchmark start, nginx among them.
        .target(name: "Programs", dependencies: ["EasyNetwork"], path: "Tests/Programs"),
        // What the test targets share. A test target itself, so that it sees what is internal and no release build has it.
        .testTarget(
            name: "TestSupport",
            dependencies: ["EasyNetwork", "EasyNetworkTesting", "Writer", "TestProcess", "Programs"],
            swiftSettings: settings
        ),
        // The rooms from the ground up: Support to Cache, Transport and Service, Operation and Queue, the other products.
        .testTarget(name: "ValueTests", dependencies: ["EasyNetwork", "TestSupport"], swiftSettings: settings),
        .testTarget(
            name: "ServiceTests",
            dependencies: [
                "EasyNetwork", "TestSupport", "Programs",
                .target(name: "CCurl", condition: .when(platforms: [.linux])),
            ],
            swiftSettings: settings
        ),
        .testTarget(
            name: "OperationTests",
            dependencies: ["EasyNetwork", "TestSupport", "Programs", "Downloader"],
            swiftSettings: settings
        ),
        .testTarget(
            name: "SatelliteTests",
            dependencies: [
                "EasyNetworkDiagnostics", "EasyNetworkOpenAPI", "EasyNetworkOutbox", "EasyNetworkResources",
                "TestSupport",
            ],
            swiftSettings: settings
        ),
        .testTarget(name: "DownloaderTests", dependencies: ["Downloader", "EasyNetworkTesting", "SampleSupport"]),
        .testTarget(
            name: "GenerateTests",
            dependencies: ["EasyNetwork", "EasyNetworkOpenAPI", "EasyNetworkTesting", "Generate", "SampleSupport"],
            exclude: ["OpenAPI", "Samples"]
        ),
        .testTarget(name: "SimulationTests", dependencies: ["SimulatedWorld", "TestSupport"], swiftSettings: settings),
        .testTarget(name: "HarnessTests", dependencies: ["Harness", "EasyNetworkTesting", "SampleSupport"]),
    ],
    swiftLanguageModes: [.v6]
)
