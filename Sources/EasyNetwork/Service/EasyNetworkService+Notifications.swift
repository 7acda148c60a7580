import Foundation

/// The name of the notification that is posted when a server answers 401 or refuses a credential in another way, and
/// the request ends with that, before its failure is delivered. It is not posted when an ``Authenticator`` gets another
/// credential in time.
///
/// It is posted on a background queue. Its object is the ``HostConfiguration``; its user info has the ``NetworkError``
/// under ``EasyNetworkService/errorKey``.
public let DidPerformUnauthorizedOperation = "DidPerformUnauthorizedOperation"

/// The notifications about requests, posted to `NotificationCenter.default` when ``HostSettings/postsNotifications`` is
/// true.
///
/// The object is the ``HostConfiguration``. A request that joins another one's answer posts none, and neither does a
/// revalidation in the background (`stale-while-revalidate`).
extension EasyNetworkService {
    /// Posted when a request begins; each one also ends. The request is under ``requestKey``. Posted on the thread that
    /// begins it, for an operation a thread of its queue.
    public static let requestDidStartNotification = Notification.Name("EasyNetworkRequestDidStart")
    /// Posted when a request has ended, before its result is delivered; that of a cancelled operation may be delivered
    /// first. The request is under ``requestKey``, the ``NetworkResponse`` under ``responseKey`` or the
    /// ``NetworkError`` under ``errorKey``. Posted on a background queue.
    public static let requestDidFinishNotification = Notification.Name("EasyNetworkRequestDidFinish")

    /// The key `"request"` of an `any BaseAPIRequest`.
    public static let requestKey = "request"
    /// The key `"response"` of a ``NetworkResponse``.
    public static let responseKey = "response"
    /// The key `"error"` of a ``NetworkError``.
    public static let errorKey = "error"
}

extension HostConfiguration {
    func postStart(of request: any BaseAPIRequest) {
        guard settings.postsNotifications else { return }
        post(EasyNetworkService.requestDidStartNotification, [EasyNetworkService.requestKey: request])
    }

    func postEnd(of request: any BaseAPIRequest, _ response: NetworkResponse?, _ error: NetworkError?) {
        if let error, error.code == .unauthorized {
            post(Notification.Name(DidPerformUnauthorizedOperation), [EasyNetworkService.errorKey: error])
        }
        guard settings.postsNotifications else { return }
        var information: [String: Any] = [EasyNetworkService.requestKey: request]
        information[EasyNetworkService.errorKey] = error
        if error == nil { information[EasyNetworkService.responseKey] = response }
        post(EasyNetworkService.requestDidFinishNotification, information)
    }

    private func post(_ name: Notification.Name, _ information: [String: Any]) {
        // Observers may block.
        WorkQueue.userCode {
            NotificationCenter.default.post(name: name, object: self, userInfo: information)
        }
    }
}
