import Dispatch
import Foundation

/// The measurement of time.
enum Measurement {
    /// The smallest number of jobs in a sample. Short rounds are repeated, because the shortest of many short times and
    /// the shortest of few long ones cannot be compared.
    static let jobsInSample = 100_000

    /// The number of samples. The shortest one counts, because other programs only make a sample longer.
    static let samples = 5

    /// The processor's time of all threads of the process in seconds. Other programs affect it less than the time of
    /// the clock.
    static var processorTime: Double {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1_000_000_000
    }

    /// - Parameters:
    ///   - part: 0.5 for the median, 1 for the largest.
    ///   - figures: at least one, in ascending order.
    static func percentile(_ part: Double, of figures: [Double]) -> Double {
        figures[Int(part * Double(figures.count - 1))]
    }

    static func seconds(_ work: () throws -> Void) rethrows -> Double {
        let start = DispatchTime.now().uptimeNanoseconds
        try work()
        return Double(DispatchTime.now().uptimeNanoseconds - start) / 1_000_000_000
    }
}
