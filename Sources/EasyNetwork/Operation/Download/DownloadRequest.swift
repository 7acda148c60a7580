import Foundation

/// What a ``DownloadOperation`` carries: a request whose answer becomes a file, and whose item is that file's URL.
public struct DownloadRequest: APIRequest, RequestWrapper {
    public typealias Item = URL

    public let wrapped: any BaseAPIRequest

    init(_ wrapped: any BaseAPIRequest) {
        self.wrapped = wrapped
    }

    /// Two downloads are two files: none takes its answer from another one.
    public var repeatPolicy: RepeatPolicy { wrapped.repeatPolicy == .join ? .allow : wrapped.repeatPolicy }

    /// - Throws: always; the file is made by the operation.
    public func item(from response: NetworkResponse) throws -> URL {
        throw NetworkError(code: .invalidRequest, message: "a DownloadRequest is performed by a DownloadOperation")
    }
}
