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
        var erasedCached: (@Sendable (any Sendable) -> Void)?
        if let cached { erasedCached = { item in cached(Self.typed(item)) } }
        begin(
            source,
            order: order,
            consumer: consumer,
            cached: erasedCached,
            map: { response in try map(response) },
            completion: { _, result, keep in
                keep?()
                completion(result.map(Self.typed))
            }
        )
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
    ///   - isAnnounced: whether notifications are posted for the call. Default true.
    ///   - mayStore: whether the cache may store an accepted answer. Default nil: it may.
    ///   - sharedAnswer: gets the answer from another call, instead of sending the request. Default nil.
    ///   - makeItem: makes the item in place of `map`, without the slot of the job; `map` then only serves for answers
    ///     that refresh the cache. Default nil.
    ///   - created: gets the call before it begins.
    ///   - keepsBody: whether the completion gets the answer with its body. Default true.
    ///   - completion: gets the answer too, if there is one, even when it could not be mapped; and a closure that
    ///     stores it in the cache, to be called when the user's callbacks have returned, nil when there is nothing to
    ///     store.
    func begin(
        _ source: RequestSource,
        isAnnounced: Bool = true,
        order: CacheLookup.Order,
        consumer: BodyConsumer? = nil,
        cached: (@Sendable (any Sendable) -> Void)? = nil,
        sharedAnswer: (@Sendable () async -> CallAttempts.Answer)? = nil,
        mayStore: (@Sendable (NetworkResponse) -> Bool)? = nil,
        map: @escaping @Sendable (NetworkResponse) throws -> any Sendable,
        makeItem: (@Sendable (NetworkResponse) async throws -> any Sendable)? = nil,
        created: (Call) -> Void = { _ in },
        keepsBody: Bool = true,
        completion:
            @escaping @Sendable (
                NetworkResponse?, Result<any Sendable, NetworkError>, _ keep: (@Sendable () -> Void)?
            ) -> Void
    ) {
        if isAnnounced { host.postStart(of: source.request) }
        let end = {
            @Sendable
            (
                call: Call,
                response: NetworkResponse?,
                result: Result<any Sendable, NetworkError>,
                keep: (@Sendable () -> Void)?
            ) in
            self.tell(.callEnded(result.failure), of: call)
            if isAnnounced { self.host.postEnd(of: source.request, response, result.failure) }
            var response = response
            if !keepsBody { response?.dropBody() }
            completion(response, result, keep)
        }
        let call = Call(trace: TraceContext.isUsed.isSet ? traceOfCall : nil) { call, error in
            self.leave(call)
            self.forgetStored(after: .failure(error))
            end(call, nil, .failure(error), nil)
        }
        let (refusal, caller, mayLackSlot) = enter(call)
        tell(.callStarted, of: call)
        created(call)
        if let refusal { return call.fail(refusal) }
        let run = { (beginning: OneShot?) in
            call.begin {
                if let beginning { await beginning.wait() }
                if mayLackSlot { await caller?.waitForSlot(call) }
                guard !Task.isCancelled else { return }
                var (source, order) = (source, order)
                var cached = cached.map { cached in
                    { @Sendable (response: NetworkResponse) in
                        // An unreadable item is skipped; the network's will follow.
                        if case .success(let item) = response.item(map) { cached(item) }
                    }
                }
                var answer: CallAttempts.Answer
                var item: Result<any Sendable, NetworkError>
                var hasLeftSlot = false
                repeat {
                    if hasLeftSlot {
                        hasLeftSlot = false
                        await caller?.returnToSlot(call)
                        guard !Task.isCancelled else { return }
                    }
                    if let sharedAnswer {
                        answer = await sharedAnswer()
                    } else {
                        answer = await self.answer(to: &source, call, caller, order, consumer, cached)
                    }
                    item = answer.result.flatMap { $0.item(map) }
                    if let makeItem, case .success(let response) = answer.result {
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
                    (order, cached) = (.pass(.unreadable), nil)
                } while !Task.isCancelled && self.removeUnusable(answer, after: item.failure)
                guard call.end() else { return }
                self.leave(call)
                self.forgetStored(after: answer.result)
                var keep: (@Sendable () -> Void)?
                if case .success = item, answer.pendingStore != nil {
                    keep = { [answer, source] in self.keep(answer, source, mayStore, map) }
                }
                var response = answer.takeResponse()
                // This is the only reference here, so that it is not copied.
                if !keepsBody, !(isAnnounced && self.host.settings.postsNotifications) { response?.dropBody() }
                WorkQueue.finish { [response, item, keep] in end(call, response, item, keep) }
            }
        }
        if let caller { caller.beginCall(run) } else { run(nil) }
    }

    private var traceOfCall: TraceSpan {
        caller?.joinTrace() ?? TraceSpan(in: TraceContext.current ?? TraceContext())
    }

    private func tell(_ kind: @autoclosure () -> NetworkEvent.Kind, of call: Call) {
        guard host.broadcast.isHeard else { return }
        host.tell(kind(), of: call, caller)
    }

    private func answer(
        to source: inout RequestSource,
        _ call: Call,
        _ caller: (any CallOwner)?,
        _ order: CacheLookup.Order,
        _ consumer: BodyConsumer?,
        _ cached: (@Sendable (NetworkResponse) -> Void)?
    ) async -> CallAttempts.Answer {
        if let trace = call.trace, TraceContext.current != trace.context {
            return await TraceContext.$current.withValue(trace.context) {
                await answer(to: &source, call, caller, order, consumer, cached)
            }
        }
        do throws(NetworkError) {
            let snapshot = try source.snapshot(for: host)
            source = .read(snapshot)
            let context = CallContext(
                snapshot,
                caller: caller,
                heardBy: broadcast,
                order: order,
                consumer: consumer,
                cached: cached
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
    func keep(
        _ answer: CallAttempts.Answer,
        _ source: RequestSource,
        _ mayStore: (@Sendable (NetworkResponse) -> Bool)?,
        _ map: @escaping @Sendable (NetworkResponse) throws -> any Sendable
    ) {
        switch answer.pendingStore {
        case .store(let deposit):
            guard let accepted = answer.acceptedAnswer, let response = try? answer.result.get(),
                mayStore?(response) != false
            else { return }
            deposit.keep(accepted, at: host.settings.clock.date)
        case .answered(let lookup, let key, isRefreshed: true):
            guard lookup.cache.beginRefresh(key) else { return }
            // The refresh outlives the operation.
            CallGroup(host).begin(source, isAnnounced: false, order: .refresh, mayStore: mayStore, map: map) {
                _,
                _,
                keep in
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
