/// How many retries a host may be given beside its requests, as a value: when a server is down, retries of every request
/// would make its load a multiple of what it cannot bear.
///
/// Every request pays in a part of a retry, every retry takes a whole one out; one of a download that gained bytes with its
/// last attempt takes a tenth.
public struct RetryBudget: Hashable, Sendable {
    /// How many retries are there at the beginning. Default 10.
    public let reserve: Double
    /// How many retries each request adds. Default 0.2: in the long run at most one retry for five requests.
    public let ratio: Double
    /// How many retries can be saved up. Default 100.
    public let maximum: Double

    private var balance: Double

    public init(reserve: Double = 10, ratio: Double = 0.2, maximum: Double = 100) {
        self.reserve = reserve
        self.ratio = ratio
        self.maximum = maximum
        balance = min(reserve, maximum)
    }

    /// Retries are bounded by each request's policy alone.
    public static let unlimited = RetryBudget(reserve: .infinity, ratio: 0, maximum: .infinity)

    mutating func deposit() {
        balance = min(balance + ratio, maximum)
    }

    /// What a retry takes out after an attempt with progress.
    static let costAfterProgress = 0.1

    /// - Parameter cost: in retries.
    /// - Returns: whether there is that much left.
    mutating func withdraw(_ cost: Double = 1) -> Bool {
        guard balance >= cost else { return false }
        balance -= cost
        return true
    }
}
