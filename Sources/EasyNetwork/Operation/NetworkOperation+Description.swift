import Foundation

extension NetworkOperation {
    // Don't hold a lock here: names and requests can be user code.
    final var summary: String {
        var text = typeName
        if let name, !name.isEmpty { text += " \(nameForMessages)" }
        if let requestText { text += " (\(requestText))" }
        return text + ": " + stateText
    }

    private var stateText: String {
        let (scheduling, lifecycle, isWatching) = core.withLock { state in
            (state.scheduling, state.lifecycle, state.readiness != nil)
        }
        switch lifecycle.outcome {
        case .success: return "has succeeded"
        case .failure where lifecycle.isCancelled: return "was cancelled"
        case .failure(let error): return "has failed: \(error)"
        case nil: break
        }
        if let scheduling {
            return WaitReason.summary(of: scheduling.queue.explain(self))
        }
        if let pendingCondition { return WaitReason.condition(pendingCondition).description }
        if lifecycle.phase != .waiting { return WaitReason.running.description }
        return isWatching ? "waits in an OperationQueue" : "is on no queue"
    }
}

extension BaseAPIRequest {
    /// Returns the method and the URL, without user, password, query and fragment.
    func summary(_ options: RequestOptions, for host: HostConfiguration) -> String {
        if let custom = options.customURLRequest {
            return "\(custom.httpMethod ?? "GET") \(custom.url?.withoutSecrets ?? "without a URL")"
        }
        let url = try? URLBuilder.url(api: api, base: try RequestBuilder.base(options, host), query: nil)
        return "\(method.rawValue) \(url?.withoutSecrets ?? "with an invalid URL")".cleaned()
    }
}
