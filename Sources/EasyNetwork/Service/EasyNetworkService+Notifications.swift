import Foundation

/// The name of the notification that is posted when a request ends with ``NetworkError/Code/unauthorized``: the server
/// responded with 401 or refused the credential in another way. It is posted before the failure is delivered. It is not
/// posted if an ``Authenticator`` gets another credential in time.
///
/// The notification is posted on a background queue. Its object is the ``HostConfiguration``. Its user info contains
/// the ``NetworkError`` under ``EasyNetworkService/errorKey``.
public let DidPerformUnauthorizedOperation = "DidPerformUnauthorizedOperation"

/// The notifications about requests, posted to `NotificationCenter.default` if ``HostSettings/postsNotifications`` is
/// true.
///
/// The object is the ``HostConfiguration``. Neither a request that shares another request's response nor a background
/// revalidation (`stale-while-revalidate`) posts notifications.
extension EasyNetworkService {
    /// Posted when a request begins. Each request that begins also ends. The request is under ``requestKey``. Posted on
    /// the thread that begins the request, which for an operation is a thread of its queue.
    public static let requestDidStartNotification = Notification.Name("EasyNetworkRequestDidStart")
    /// Posted when a request has ended, before its result is delivered. The result of a cancelled operation can be
    /// delivered first. The request is under ``requestKey``, the ``NetworkResponse`` under ``responseKey`` or the
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
        // Observers can block.
        WorkQueue.userCode {
            NotificationCenter.default.post(name: name, object: self, userInfo: information)
        }
    }
}
