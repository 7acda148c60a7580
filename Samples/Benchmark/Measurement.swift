import Dispatch

/// How time is measured.
enum Measurement {
    /// How many jobs a sample has at least: a short round is run so often that every sample takes as long, since the
    /// shortest of many short times and the shortest of few long ones are not the same thing.
    static let jobsInSample = 100_000

    /// The shortest sample counts: whatever else the machine does only makes one longer.
    static let samples = 5

    static func seconds(_ work: () -> Void) -> Double {
        let start = DispatchTime.now().uptimeNanoseconds
        work()
        return Double(DispatchTime.now().uptimeNanoseconds - start) / 1_000_000_000
    }
}
