import Foundation

/// The notification posted when a server answers 401 or refuses a credential in another way, and the request ends with
/// that, before its failure is delivered. It is not posted when an ``Authenticator`` gets another credential in time.
///
/// It is posted on a background queue. Its object is the ``HostConfiguration``; its user info has the ``NetworkError``
/// under the key `"error"`.
public let DidPerformUnauthorizedOperation = "DidPerformUnauthorizedOperation"

/// The notifications about requests, posted to `NotificationCenter.default` when ``HostSettings/postsNotifications`` is
/// true.
///
/// The object is the ``HostConfiguration``. A request that joins another one's answer posts none.
public enum NetworkNotification {
    /// Posted when a request begins; each one also ends. The request is under ``requestKey``. Posted on the thread that
    /// begins it, for an operation a thread of its queue.
    public static let requestDidStart = Notification.Name("EasyNetworkRequestDidStart")
    /// Posted when a request has ended, before its result is delivered. The request is under ``requestKey``, the
    /// ``NetworkResponse`` under ``responseKey`` or the ``NetworkError`` under ``errorKey``. Posted on a background
    /// queue.
    public static let requestDidFinish = Notification.Name("EasyNetworkRequestDidFinish")
    /// ``DidPerformUnauthorizedOperation``.
    public static let unauthorized = Notification.Name(DidPerformUnauthorizedOperation)

    /// An `any BaseAPIRequest`.
    public static let requestKey = "request"
    public static let responseKey = "response"
    public static let errorKey = "error"

    static func post(_ name: Notification.Name, _ host: HostConfiguration, _ information: [String: Any]) {
        // Observers may block.
        WorkQueue.userCode { NotificationCenter.default.post(name: name, object: host, userInfo: information) }
    }
}
