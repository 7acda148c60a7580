import Dispatch
import Foundation

/// How time is measured.
enum Measurement {
    /// How many jobs a sample has at least: a short round is run so often that every sample takes as long, since the
    /// shortest of many short times and the shortest of few long ones are not the same thing.
    static let jobsInSample = 100_000

    /// The shortest sample counts: whatever else the machine does only makes one longer.
    static let samples = 5

    /// The processor time of the process, of all its threads, in seconds: other programs disturb it less than the clock
    /// on the wall.
    static var processorTime: Double {
        var time = timespec()
        clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time)
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1_000_000_000
    }

    /// - Parameters:
    ///   - part: 0.5 for the median, 1 for the largest.
    ///   - figures: in ascending order, at least one.
    static func percentile(_ part: Double, of figures: [Double]) -> Double {
        figures[Int(part * Double(figures.count - 1))]
    }

    static func seconds(_ work: () throws -> Void) rethrows -> Double {
        let start = DispatchTime.now().uptimeNanoseconds
        try work()
        return Double(DispatchTime.now().uptimeNanoseconds - start) / 1_000_000_000
    }
}
