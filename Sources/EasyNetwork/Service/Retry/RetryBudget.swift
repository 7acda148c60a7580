/// The number of retries that a host may get beyond its requests, as a value. It limits the load on a server that is
/// down.
///
/// Every request adds a part of a retry, every retry takes one out. The retry of a download that gained bytes with its
/// last attempt takes a tenth.
public struct RetryBudget: Hashable, Sendable {
    /// The number of retries at the beginning. Default 10.
    public let reserve: Double
    /// How many retries each request adds. Default 0.2: in the long run at most one retry for five requests.
    public let ratio: Double
    /// The largest number of saved retries. Default 100.
    public let maximum: Double

    private var balance: Double

    public init(reserve: Double = 10, ratio: Double = 0.2, maximum: Double = 100) {
        self.reserve = reserve
        self.ratio = ratio
        self.maximum = maximum
        balance = min(reserve, maximum)
    }

    /// No common limit: only each request's policy limits its retries.
    public static let unlimited = RetryBudget(reserve: .infinity, ratio: 0, maximum: .infinity)

    mutating func deposit() {
        balance = min(balance + ratio, maximum)
    }

    /// The cost of a retry after an attempt with progress.
    static let costAfterProgress = 0.1

    /// - Parameter cost: in retries.
    /// - Returns: whether that much is left.
    mutating func withdraw(_ cost: Double = 1) -> Bool {
        guard balance >= cost else { return false }
        balance -= cost
        return true
    }
}
