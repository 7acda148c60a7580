import Foundation

/// Removes old parts, once in each directory.
final class PartSweep: Sendable {
    static let shared = PartSweep()

    private let swept = Locked<Set<String>>([])

    func sweep(_ place: PartPlace, before limit: Date) {
        guard swept.withLock({ $0.insert(place.directory).inserted }) else { return }
        place.sweep(before: limit)
    }
}

/// Which run of the machine this is.
enum MachineBoot {
    /// Nil where the system does not say.
    static let identifier: String? = {
        #if os(Linux)
        try? String(contentsOfFile: "/proc/sys/kernel/random/boot_id", encoding: .utf8).trimmed
        #elseif canImport(Darwin)
        var time = timeval()
        var size = MemoryLayout<timeval>.size
        return sysctlbyname("kern.boottime", &time, &size, nil, 0) == 0 ? "\(time.tv_sec)" : nil
        #else
        nil
        #endif
    }()
}
