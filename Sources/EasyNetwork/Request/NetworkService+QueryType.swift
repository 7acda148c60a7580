extension NetworkService {
    /// Where the parameters of a request go.
    public enum QueryType: Hashable, Sendable {
        /// Into the query of the URL: `?page=2&tags%5B%5D=new`. The default for GET, HEAD, DELETE and other methods
        /// without body. Not for secrets: servers and proxies write URLs into their logs.
        case path
        /// Into the body, as JSON with sorted keys; `Content-Type: application/json`.
        case json
        /// Into the body, as a browser sends a form; `Content-Type: application/x-www-form-urlencoded`. The default for
        /// POST, PUT and PATCH.
        case form
    }
}
