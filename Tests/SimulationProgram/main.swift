import Foundation
import SimulatedWorld

/// The seeds under way, one for each thread; never freed, as the handler of a signal reads them.
nonisolated(unsafe) private let seeds = UnsafeMutablePointer<UInt64>.allocate(capacity: 64)

let arguments = CommandLine.arguments.dropFirst()
let numbers = arguments.compactMap { UInt64($0) }
guard let first = numbers.first else {
    print("usage: Simulation SEED [PAGE] | FIRST COUNT [THREADS] | traces FIRST COUNT")
    exit(2)
}

// The digest of each trace; many histories, up to the tenth that fails; or the trace of one, and the smallest one that
// fails like it, with its timeline as a page.
if arguments.first == "traces" {
    for seed in first..<first + (numbers.count > 1 ? numbers[1] : 1) {
        let trace = Simulation.live(seed, isTraced: true).trace.joined(separator: "\n")
        // FNV-1a.
        let digest = trace.utf8.reduce(0xCBF2_9CE4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 as UInt64 }
        print(seed, String(digest, radix: 16))
    }
} else if numbers.count > 1 {
    // Names the seeds under way when the process stops or hangs.
    seeds.initialize(repeating: 0, count: 64)
    for number in [SIGILL, SIGTRAP, SIGSEGV, SIGABRT, SIGALRM] {
        signal(number) { number in
            for thread in 0..<64 where seeds[thread] != 0 { print("signal \(number) during seed \(seeds[thread])") }
            fflush(nil)
            _exit(1)
        }
    }
    let (begin, threads) = (Date(), numbers.count > 2 ? Int(numbers[2]) : 1)
    let summary = Simulation.live(first..<first + numbers[1], threads: threads, failureLimit: 10) { thread, seed in
        seeds[thread % 64] = seed
        alarm(120)
    }
    for failure in summary.failures { print("\(failure.seed): \(failure.law ?? ""): \(failure.detail)") }
    let rate = Int(Double(numbers[1]) / Date().timeIntervalSince(begin))
    print("\(numbers[1]) histories, \(summary.failures.count) failed, \(summary.stepCount) pieces of work")
    print(
        "\(rate) a second; \(summary.covered.count) kinds of jobs with their ends, faults and deeds of users occurred"
    )
    exit(summary.failures.isEmpty ? 0 : 1)
} else {
    let outcome = Simulation.live(first, isTraced: true)
    print(outcome.trace.joined(separator: "\n"))
    guard let law = outcome.law else { exit(0) }
    print("\(law): \(outcome.detail)\n\nThe smallest history that fails like it:\n")
    let (history, smallest, timeline) = Simulation.shrink(outcome)
    print(history, smallest.trace.joined(separator: "\n"), separator: "\n\n")
    let path = arguments.count > 1 ? arguments[2] : NSTemporaryDirectory() + "/simulation-\(first).html"
    if let page = await timeline?.html(title: "Seed \(first): \(law)") {
        try Data(page.utf8).write(to: URL(fileURLWithPath: path))
        print("\nIts timeline: \(path)")
    }
    exit(1)
}
