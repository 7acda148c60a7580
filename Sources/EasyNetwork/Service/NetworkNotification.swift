import Foundation

/// The notification posted when a server answers 401, or refuses a credential in another way, and that is the end of the
/// request: before its failure is delivered. An ``Authenticator`` that gets another credential in time spares it.
///
/// It is posted on a background queue. Its object is the ``HostConfiguration``; its user info has the ``NetworkError``
/// under the key `"error"`.
public let DidPerformUnauthorizedOperation = "DidPerformUnauthorizedOperation"

/// What `NotificationCenter.default` is told of requests when ``HostSettings/postsNotifications`` is true.
///
/// The object is the ``HostConfiguration``. A request that joins another one's answer is not told of.
public enum NetworkNotification {
    /// A request has begun; each one also ends. Its value is under ``requestKey``. Posted on the thread that begins it,
    /// for an operation a thread of its queue.
    public static let requestDidStart = Notification.Name("EasyNetworkRequestDidStart")
    /// It has ended, and nothing has been delivered. Its value is under ``requestKey``, the ``NetworkResponse`` under
    /// ``responseKey`` or the ``NetworkError`` under ``errorKey``. Posted on a background queue.
    public static let requestDidFinish = Notification.Name("EasyNetworkRequestDidFinish")
    /// ``DidPerformUnauthorizedOperation``.
    public static let unauthorized = Notification.Name(DidPerformUnauthorizedOperation)

    /// An `any BaseAPIRequest`.
    public static let requestKey = "request"
    public static let responseKey = "response"
    public static let errorKey = "error"

    static func post(_ name: Notification.Name, _ host: HostConfiguration, _ information: [String: Any]) {
        NotificationCenter.default.post(name: name, object: host, userInfo: information)
    }
}
