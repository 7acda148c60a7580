import Foundation

extension CallGroup {
    /// Sends a request, waits for its end, and notes that for the operation. Cancelling the task cancels the call.
    ///
    /// The parameters are those of ``start(_:order:consumer:cached:map:completion:)``.
    func result<Item: Sendable>(
        of source: RequestSource,
        order: CacheLookup.Order = .standard,
        consumer: BodyConsumer? = nil,
        map: @escaping @Sendable (NetworkResponse) throws -> Item
    ) async -> Result<Item, NetworkError> {
        // A group of its own, which is cancelled with the task.
        let group = CallGroup(partOf: self)
        let caller = caller
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                group.start(source, order: order, consumer: consumer, map: map) { continuation.resume(returning: $0) }
            }
        } onCancel: {
            group.cancel()
        }
        caller?.callGroup.noteEnd(of: result.failure)
        return result
    }

    /// Sends a request.
    ///
    /// - Parameters:
    ///   - order: how the cache is asked. Default ``CacheLookup/Order/standard``.
    ///   - consumer: how an accepted body is used; then the answer has no body, and the cache is not asked. Default
    ///     nil.
    ///   - cached: called at most once before the completion, on ``WorkQueue``, with the item from the cache that is
    ///     followed by the network's.
    ///   - map: makes the item from an accepted answer, on ``WorkQueue``.
    ///   - completion: called exactly once, on ``WorkQueue``.
    func start<Item: Sendable>(
        _ source: RequestSource,
        order: CacheLookup.Order = .standard,
        consumer: BodyConsumer? = nil,
        cached: (@Sendable (Item) -> Void)? = nil,
        map: @escaping @Sendable (NetworkResponse) throws -> Item,
        completion: @escaping @Sendable (Result<Item, NetworkError>) -> Void
    ) {
        var plan = CallPlan(source: source, order: order, consumer: consumer) { try map($0) }
        if let cached { plan.cached = { cached(Self.typed($0)) } }
        begin(plan) { _, result, keep in
            keep?()
            completion(result.map(Self.typed))
        }
    }

    /// An item of a call, in which its type is erased.
    ///
    /// - Parameter item: made by the call's `map`, which makes such items: the cast holds.
    static func typed<Item: Sendable>(_ item: any Sendable) -> Item {
        // swift-format-ignore: NeverForceUnwrap
        item as! Item
    }

    /// Sends a request for an item of any type. It is not generic, as reading a type's layout at run time costs each
    /// request.
    ///
    /// - Parameters:
    ///   - created: gets the call before it begins.
    ///   - completion: called exactly once, on ``WorkQueue``.
    func begin(
        _ plan: CallPlan,
        created: (Call) -> Void = { _ in },
        completion: @escaping CallPlan.Completion
    ) {
        if plan.isAnnounced { host.postStart(of: plan.source.request) }
        // Asked now, as the operation may have ended when its call's end is told.
        let namedCaller = host.broadcast.isHeard ? caller : nil
        let call = Call(trace: TraceContext.isUsed.isSet ? traceOfCall : nil) { call, error in
            self.leave(call)
            self.forgetStored(after: .failure(error))
            self.end(call, namedCaller ?? self.caller, plan, nil, .failure(error), nil, completion)
        }
        let (refusal, caller, mayLackSlot) = enter(call)
        host.tell(.callStarted, of: call, namedCaller)
        created(call)
        if let refusal {
            call.fail(refusal)
            // As below.
            return leave(call)
        }
        let launch = { (beginning: OneShot?) in
            let hasBegun = call.begin {
                if let beginning { await beginning.wait() }
                if mayLackSlot { await caller?.waitForSlot(call) }
                await self.run(call, plan, caller, completion)
            }
            // It may have been ended, and left, before it had entered all groups.
            if !hasBegun { self.leave(call) }
        }
        if let caller { caller.beginCall(launch) } else { launch(nil) }
    }

    /// The task of a call, from the request to the item, or until the call is ended from outside.
    private func run(
        _ call: Call,
        _ plan: CallPlan,
        _ caller: (any CallOwner)?,
        _ completion: @escaping CallPlan.Completion
    ) async {
        var plan = plan
        var answer: CallAttempts.Answer
        var item: Result<any Sendable, NetworkError>
        var hasLeftSlot = false
        repeat {
            if hasLeftSlot { await caller?.returnToSlot(call) }
            guard !Task.isCancelled else { return }
            if let sharedAnswer = plan.sharedAnswer {
                answer = await sharedAnswer()
            } else {
                answer = await sendAttempts(of: &plan, call, caller)
            }
            item = answer.result.flatMap { $0.item(plan.map) }
            hasLeftSlot = false
            if let makeItem = plan.makeItem, case .success(let response) = answer.result {
                call.endDeadline()
                caller?.leaveSlot(call)
                hasLeftSlot = true
                do {
                    item = .success(try await makeItem(response))
                } catch {
                    item = .failure(response.mappingError(error))
                }
            }
            // When a stored answer can no longer be read, the request is sent.
            (plan.order, plan.cached) = (.pass(.unreadable), nil)
        } while !Task.isCancelled && removeUnusable(answer, after: item.failure)
        guard call.end() else { return }
        leave(call)
        forgetStored(after: answer.result)
        var keep: (@Sendable () -> Void)?
        if case .success = item, answer.pendingStore != nil {
            // The policy of the cache and the request may be asked.
            keep = { [answer, plan] in WorkQueue.userCode { self.keep(answer, plan) } }
        }
        var response = answer.takeResponse()
        // This is the only reference here, so that it is not copied.
        if !plan.keepsBody, !(plan.isAnnounced && host.settings.postsNotifications) { response?.dropBody() }
        WorkQueue.finish { [plan, response, item, keep] in
            self.end(call, caller, plan, response, item, keep, completion)
        }
    }

    private func end(
        _ call: Call,
        _ caller: (any CallOwner)?,
        _ plan: CallPlan,
        _ response: NetworkResponse?,
        _ result: Result<any Sendable, NetworkError>,
        _ keep: (@Sendable () -> Void)?,
        _ completion: CallPlan.Completion
    ) {
        host.tell(.callEnded(result.failure), of: call, caller)
        if plan.isAnnounced { host.postEnd(of: plan.source.request, response, result.failure) }
        var response = response
        if !plan.keepsBody { response?.dropBody() }
        completion(response, result, keep)
    }

    private var traceOfCall: TraceSpan {
        caller?.joinTrace() ?? TraceSpan(in: TraceContext.current ?? TraceContext())
    }

    private func sendAttempts(
        of plan: inout CallPlan,
        _ call: Call,
        _ caller: (any CallOwner)?
    ) async -> CallAttempts.Answer {
        if let trace = call.trace, TraceContext.current != trace.context {
            return await TraceContext.$current.withValue(trace.context) {
                await sendAttempts(of: &plan, call, caller)
            }
        }
        do throws(NetworkError) {
            let snapshot = try plan.source.snapshot(for: host)
            plan.source = .read(snapshot)
            let context = CallContext(
                snapshot,
                caller: caller,
                heardBy: broadcast,
                order: plan.order,
                consumer: plan.consumer,
                cached: plan.show
            )
            if let timeout = snapshot.overallTimeout { call.setDeadline(timeout, context.clock) }
            var attempts = CallAttempts(context, of: call)
            return await attempts.run()
        } catch {
            return CallAttempts.Answer(result: .failure(error))
        }
    }

    // MARK: - After a call

    /// Stores the answer of a call, or refreshes the stored answer that it came from.
    private func keep(_ answer: CallAttempts.Answer, _ plan: CallPlan) {
        switch answer.pendingStore {
        case .store(let deposit):
            guard let accepted = answer.acceptedAnswer, let response = try? answer.result.get(),
                plan.mayStore?(response) != false
            else { return }
            deposit.keep(accepted, at: host.settings.clock.date)
        case .answered(let lookup, let key, isRefreshed: true):
            guard lookup.cache.beginRefresh(key) else { return }
            // The refresh outlives the operation.
            CallGroup(host).begin(plan.refresh) { _, _, keep in
                keep?()
                lookup.cache.endRefresh(key)
            }
        case .shared(let keep): keep()
        case .answered, nil: return
        }
    }

    /// Removes a stored answer that could not be mapped, or that an interceptor now refuses.
    ///
    /// - Returns: whether there was one, so that the request is to be sent without it.
    func removeUnusable(_ answer: CallAttempts.Answer, after error: NetworkError?) -> Bool {
        guard let error, ![.cancelled, .timedOut, .notCached].contains(error.code) else { return false }
        switch answer.pendingStore {
        case .answered(let lookup, let key, _): lookup.cache.remove(key)
        case .store(let deposit):
            guard let response = try? answer.result.get(), response.source == .cache || response.source == .revalidated,
                let candidate = deposit.candidate
            else { return false }
            deposit.lookup.cache.remove(candidate.entry.header.key)
        case .shared, nil: return false
        }
        return true
    }

    /// Invalidates the answers that a request of an unsafe method may have made outdated (RFC 9111, section 4.4).
    func forgetStored(after result: Result<NetworkResponse, NetworkError>) {
        let (history, headers) =
            switch result {
            case .success(let response): (response.history, response.headers)
            case .failure(let error): (error.history, error.headers)
            }
        let isSafe = history.allSatisfy { HTTPHeaders.safeMethods.contains($0.request.method) }
        guard !isSafe else { return }
        let (cache, partition) = (host.settings.cache, host.settings.cachePartition)
        for (index, attempt) in history.enumerated() {
            let urls = (index == history.count - 1 ? headers : HTTPHeaders()).invalidatedURLs(
                method: NetworkService.Method(rawValue: attempt.request.method),
                target: attempt.request.url,
                status: attempt.statusCode ?? 0
            )
            for url in urls { cache.invalidate(CacheKey.http(url, partition: partition)) }
        }
    }
}
