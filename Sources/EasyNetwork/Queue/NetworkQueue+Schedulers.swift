/// Where operations that are on no ``NetworkQueue`` have their jobs run: the one place where they name it.
extension OperationScheduler where Self == NetworkQueue {
    /// For what a condition needs.
    static var forPrerequisites: Self { .shared }

    /// For the children of one group.
    ///
    /// - Parameter limit: nil means the queue's default.
    static func forGroup(limit: Int?) -> Self {
        NetworkQueue(
            name: "EasyNetwork.GroupOperation",
            maxConcurrentOperationCount: limit ?? NetworkQueue.defaultMaxConcurrentOperationCount
        )
    }
}
