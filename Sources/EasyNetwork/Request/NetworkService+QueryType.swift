extension NetworkService {
    /// Where the parameters of a request go.
    public enum QueryType: Hashable, Sendable {
        /// Into the query of the URL: `?page=2&tags%5B%5D=new`. The default, right for GET, HEAD and DELETE.
        case path
        /// Into the body, as JSON with sorted keys; `Content-Type: application/json`.
        case json
        /// Into the body, as a browser sends a form; `Content-Type: application/x-www-form-urlencoded`.
        case form
    }
}
