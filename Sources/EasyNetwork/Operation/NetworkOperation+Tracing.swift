import Foundation

/// How the jobs of a graph become parts of one trace.
///
/// | a job | its parent |
/// |-|-|
/// | is a child of a batch or a chain | the group |
/// | was made or added in a task with a ``TraceContext/current`` | that |
/// | depends on others | the first of them that is in its trace and was added before; the others are links |
/// | otherwise | none |
///
/// A job without a context joins the trace of a job that it depends on, directly or indirectly. Those of these jobs
/// that are not in a trace yet will join the same one. A graph therefore has one trace if all of it is known before it
/// starts.
extension NetworkOperation {
    /// The span of the operation; `nil` while it is in no trace.
    package final var trace: TraceSpan? { option { $0.trace } }

    final func setTraceOrigin(_ context: TraceContext) {
        changeOptions { options, _ in if options.traceOrigin == nil { options.traceOrigin = context } }
    }

    /// - Parameter group: the group that contains the operation as a child. Defaults to `nil`.
    /// - Returns: the span of the operation, created by the first call.
    @discardableResult
    final func joinTrace(of group: NetworkOperation? = nil) -> TraceSpan {
        if let trace { return trace }
        if let group { return setTrace(TraceSpan(in: group.joinTrace().context)) }
        let origin = findTrace()
        guard !origin.hasSpan else { return setTrace(TraceSpan(in: origin)) }
        let dependencies = core.withLock { $0.dependencies?.list ?? [] }
        let parent = dependencies.lazy.compactMap { $0.operation.trace?.context }.first { $0.isInTrace(of: origin) }
        return setTrace(TraceSpan(in: parent ?? origin))
    }

    /// - Returns: the existing span, if there is one; otherwise `trace`.
    private func setTrace(_ trace: TraceSpan) -> TraceSpan {
        changeOptions { options, _ in
            let trace = options.trace ?? trace
            (options.trace, options.traceOrigin) = (trace, nil)
            return trace
        }
    }

    /// Determines the trace of the operation, and of the operations that it waits for and that have no trace.
    @discardableResult
    final func findTrace() -> TraceContext {
        var found = option { $0.trace?.context ?? $0.traceOrigin } ?? TraceContext.current
        var isKnown: Set<ObjectIdentifier> = []
        var undecided: [NetworkOperation] = []
        var next = [self]
        // A job that has a trace has determined it for the jobs that it waits for.
        while let operation = next.popLast() {
            let (context, dependencies) = operation.core.withLock { state in
                (state.options?.trace?.context ?? state.options?.traceOrigin, state.dependencies?.list ?? [])
            }
            if let context, operation !== self {
                if found == nil { found = context.beginning }
                continue
            }
            undecided.append(operation)
            // Reverse the order, so that the first dependency is examined first.
            for other in dependencies.lazy.reversed().map(\.operation)
            where isKnown.insert(ObjectIdentifier(other)).inserted {
                next.append(other)
            }
        }
        let context = found ?? TraceContext()
        setTraceOrigin(context)
        for operation in undecided where operation !== self { operation.setTraceOrigin(context.beginning) }
        return context
    }
}
