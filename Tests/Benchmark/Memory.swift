import Foundation

/// The memory of the process.
enum Memory {
    /// The bytes that are allocated; nil when the platform does not report them.
    static var allocated: Int? {
        #if canImport(Darwin)
        var statistics = malloc_statistics_t()
        malloc_zone_statistics(nil, &statistics)
        return Int(statistics.size_in_use)
        #else
        guard let text = mallocInfo else { return nil }
        // The last lines are the sums over all heaps.
        func last(_ tag: String) -> Int? {
            guard let range = text.range(of: tag, options: .backwards),
                let size = text[range.upperBound...].range(of: "size=\"")
            else { return nil }
            return Int(text[size.upperBound...].prefix { $0.isNumber })
        }
        guard let taken = last("<system type=\"current\""), let mapped = last("<total type=\"mmap\""),
            let fast = last("<total type=\"fast\""), let rest = last("<total type=\"rest\"")
        else { return nil }
        return taken + mapped - fast - rest
        #endif
    }

    /// ``allocated`` after it has stopped changing, because other threads release the last jobs.
    static var settledAllocated: Int? {
        guard var last = allocated else { return nil }
        var equalLooks = 0
        for _ in 0..<1_000 where equalLooks < 5 {
            // There is no event to wait for: a pause between two reads.
            usleep(2_000)
            let now = allocated ?? last
            equalLooks = now == last ? equalLooks + 1 : 0
            last = now
        }
        return last
    }

    /// The resident bytes of the process; nil when the platform does not report them.
    static var resident: Int? {
        #if os(Linux)
        guard let text = try? String(contentsOfFile: "/proc/self/statm", encoding: .utf8) else { return nil }
        let pages = text.split(separator: " ").dropFirst().first.flatMap { Int($0) }
        return pages.map { $0 * Int(sysconf(Int32(_SC_PAGESIZE))) }
        #else
        return nil
        #endif
    }

    /// The largest number of resident bytes since ``forgetPeak()``; nil when the platform does not report it.
    static var peakResident: Int? {
        #if os(Linux)
        guard let text = try? String(contentsOfFile: "/proc/self/status", encoding: .utf8),
            let line = text.split(separator: "\n").first(where: { $0.hasPrefix("VmHWM:") })
        else { return nil }
        return Int(line.filter(\.isNumber)).map { $0 * 1_024 }
        #else
        return nil
        #endif
    }

    /// Resets ``peakResident``.
    static func forgetPeak() {
        #if os(Linux)
        // proc(5): 5 sets the peak to the current value. It must be one write into the existing file.
        let descriptor = open("/proc/self/clear_refs", O_WRONLY | O_CLOEXEC)
        guard descriptor >= 0 else { return }
        _ = write(descriptor, "5", 1)
        close(descriptor)
        #endif
    }

    /// The number of open descriptors of the process; nil when the platform does not report it.
    static var descriptors: Int? {
        #if os(Linux)
        // The listing itself has one.
        return (try? FileManager.default.contentsOfDirectory(atPath: "/proc/self/fd")).map { $0.count - 1 }
        #else
        return nil
        #endif
    }

    /// Returns freed memory to the system, so that ``resident`` is meaningful.
    static func trim() {
        #if canImport(Darwin)
        malloc_zone_pressure_relief(nil, 0)
        #else
        guard let symbol = dlsym(nil, "malloc_trim") else { return }
        let trim = unsafeBitCast(symbol, to: (@convention(c) (Int) -> Int32).self)
        _ = trim(0)
        #endif
    }

    #if !canImport(Darwin)
    /// The output of glibc's `malloc_info`. It and `malloc_trim` are looked up by name, because Swift's Glibc module
    /// lacks their header.
    private static var mallocInfo: String? {
        guard let symbol = dlsym(nil, "malloc_info") else { return nil }
        let write = unsafeBitCast(symbol, to: (@convention(c) (Int32, UnsafeMutablePointer<FILE>) -> Int32).self)
        var bytes: UnsafeMutablePointer<CChar>?
        var size = 0
        guard let file = open_memstream(&bytes, &size) else { return nil }
        _ = write(0, file)
        fclose(file)
        defer { free(bytes) }
        return bytes.map { String(cString: $0) }
    }
    #endif
}
