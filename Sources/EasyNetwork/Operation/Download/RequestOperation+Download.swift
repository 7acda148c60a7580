import Foundation

extension RequestOperation {
    /// A download whose request is made from this operation's item.
    ///
    /// ```swift
    /// let report = signIn.then(downloadTo: file) { session in GetReport(token: session.token) }
    /// ```
    ///
    /// It depends on this one, as that of ``then(_:)`` does. Add both to a queue.
    ///
    /// - Parameters:
    ///   - destination: as that of a ``DownloadOperation``.
    ///   - options: default ``DownloadOptions``.
    ///   - next: called once, on a thread of the queue, when the download starts. What it throws is the download's error.
    public final func then<Next: BaseAPIRequest>(
        downloadTo destination: URL,
        options: DownloadOptions = DownloadOptions(),
        _ next: @escaping @Sendable (Request.Item) throws -> Next
    ) -> DownloadOperation {
        let item = itemOfDependency
        let operation = DownloadOperation(to: destination, options: options, service: nextService) {
            try next(item())
        }
        operation.addDependency(self)
        return operation
    }
}
