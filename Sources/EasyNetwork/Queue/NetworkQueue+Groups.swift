extension NetworkQueue {
    /// The queue for the children of a group that is on no ``NetworkQueue`` itself.
    ///
    /// - Parameter limit: nil means the queue's default.
    static func forGroup(limit: Int?) -> NetworkQueue {
        NetworkQueue(
            name: "EasyNetwork.GroupOperation",
            maxConcurrentOperationCount: limit ?? NetworkQueue.defaultMaxConcurrentOperationCount
        )
    }
}
