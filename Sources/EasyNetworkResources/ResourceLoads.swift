import EasyNetwork
import Foundation

/// A receipt or load that waits for a load.
enum ResourceMember<Resource: Sendable>: Sendable {
    case resource(ResourceReceipt<Resource>)
    /// A receipt that needs only the response in the cache, and no resource.
    case answer(ResourceReceipt<Void>)
    /// A load that makes a variant, identified by its key and number.
    case variant(String, number: Int)

    enum ID: Hashable {
        case receipt(ObjectIdentifier)
        case variant(Int)
    }

    var id: ID {
        switch self {
        case .resource(let receipt): .receipt(ObjectIdentifier(receipt))
        case .answer(let receipt): .receipt(ObjectIdentifier(receipt))
        case .variant(_, let number): .variant(number)
        }
    }

    var isAnswer: Bool { if case .answer = self { true } else { false } }
    var isVariant: Bool { if case .variant = self { true } else { false } }
}

/// A load: a job that makes the whole resource, or the making of a variant.
struct ResourceLoad<Resource: Sendable> {
    typealias Member = ResourceMember<Resource>

    /// A description of what to load, and how.
    struct LoadRequest: Sendable {
        var key: ResourceKey
        let url: URL
        var variant: ResourceVariant<Resource>?
        var ignoresCache = false
    }

    /// A number that tells the load from earlier loads of its key, and from its own earlier job.
    var number: Int
    let wish: LoadRequest
    private var entries: [Member.ID: (member: Member, rank: ResourceOrder.Rank, number: Int)] = [:]
    private var lastNumber = 0
    /// The number of members of each rank.
    private var counts = Array(repeating: 0, count: ResourceOrder.Rank.allCases.count)
    private(set) var wantsPartials = false
    var wantsCounts = false
    /// The last reported byte counts of its job.
    var count: TransferMeter.Count?
    var isStarted = false
    /// The job; `nil` for a variant, and until the job has been made, which calls user code.
    var operation: ResourceOperation<Resource>?
    /// For a variant, the key of the whole resource's load while the variant waits for it.
    var source: String?

    init(number: Int, _ wish: LoadRequest) {
        (self.number, self.wish) = (number, wish)
    }

    /// The highest rank of a member.
    var rank: ResourceOrder.Rank {
        counts.lastIndex { $0 > 0 }.flatMap(ResourceOrder.Rank.init) ?? .prefetch
    }

    /// The members in the order in which they joined.
    var members: [(member: Member, rank: ResourceOrder.Rank)] {
        entries.values.sorted { $0.number < $1.number }.map { ($0.member, $0.rank) }
    }

    var isEmpty: Bool { entries.isEmpty }

    func member(_ id: Member.ID) -> Member? { entries[id]?.member }

    /// Whether all members need only the response in the cache.
    var isForCacheAlone: Bool { entries.values.allSatisfy { $0.member.isAnswer } }

    mutating func insert(_ member: Member, _ rank: ResourceOrder.Rank) {
        lastNumber += 1
        let number = entries[member.id]?.number ?? lastNumber
        remove(member.id)
        entries[member.id] = (member, rank, number)
        counts[rank.rawValue] += 1
        if case .resource(let receipt) = member, receipt.wantsPartials { wantsPartials = true }
    }

    @discardableResult
    mutating func remove(_ id: Member.ID) -> Bool {
        guard let old = entries.removeValue(forKey: id) else { return false }
        counts[old.rank.rawValue] -= 1
        return true
    }

    /// Resets the load, which another job will perform later.
    mutating func restart(number: Int) {
        self.number = number
        operation = nil
        isStarted = false
        count = nil
    }
}

/// The loads of a ``ResourceLoader`` that wait or run, and what it keeps in memory.
struct ResourceLoads<Resource: Sendable> {
    typealias Load = ResourceLoad<Resource>
    typealias Member = ResourceMember<Resource>
    typealias Failure = (error: NetworkError, end: TimeInterval, resource: String)

    /// A resource in memory, or about to be.
    struct Made: Sendable {
        let resource: Resource
        let cost: Int
        let isStorable: Bool
        /// The time of the whole resource, and the number of its load. A variant has the same ones.
        let moment: TimeInterval
        let number: Int
        /// The key of the whole resource.
        let name: String

        func replacing(_ resource: Resource, cost: Int) -> Made {
            Made(
                resource: resource,
                cost: cost,
                isStorable: isStorable,
                moment: moment,
                number: number,
                name: name
            )
        }
    }

    /// A load that waits until it may decode.
    enum Turn: Sendable {
        /// - Parameter isGranted: false if the load is no longer needed.
        case whole(@Sendable (_ isGranted: Bool) -> Void)
        case variant(String, Made)
    }

    /// The work that is done outside the lock when loads have ended.
    struct End {
        var receipts: [(receipt: ResourceReceipt<Resource>, result: Result<Resource, NetworkError>)] = []
        var answers: [(receipt: ResourceReceipt<Void>, result: Result<Void, NetworkError>)] = []
        var removed: [Made] = []
    }

    let maximumAge: TimeInterval?
    let failureLifetime: TimeInterval
    var order: ResourceOrder
    private(set) var memory: RecencyList<Made>
    private(set) var failures = RecencyList<Failure>(costLimit: 0, countLimit: 1_000)
    /// The loads that have members, by their keys.
    var loads: [String: Load] = [:]
    /// The loads that occupy a place, by number, and whether each is a prefetch. A cancelled load occupies its place
    /// until its job has finished; a load whose response has arrived has freed it.
    var running: [Int: Bool] = [:]
    /// The loads that wait until they may decode, by number.
    private var turns: [Int: Turn] = [:]
    private var turnOrder: ResourceOrder
    private(set) var decodingCount = 0
    private var lastNumber = 0

    init(
        isLIFO: Bool,
        memoryCostLimit: Int,
        memoryCountLimit: Int,
        maximumAge: TimeInterval?,
        failureLifetime: TimeInterval
    ) {
        order = ResourceOrder(isLIFO: isLIFO)
        turnOrder = ResourceOrder(isLIFO: isLIFO)
        memory = RecencyList(costLimit: memoryCostLimit, countLimit: memoryCountLimit)
        (self.maximumAge, self.failureLifetime) = (maximumAge, failureLifetime)
    }

    var isIdle: Bool { loads.isEmpty && running.isEmpty && order.count == 0 && turns.isEmpty && decodingCount == 0 }

    mutating func nextNumber() -> Int {
        lastNumber += 1
        return lastNumber
    }

    // MARK: - Asking

    /// Returns a resource in memory that is not too old. A resource that is too old stays until a newer one replaces it
    /// or its room is needed.
    mutating func find(_ name: String, at now: TimeInterval) -> Made? {
        if let maximumAge {
            guard let made = memory[name], now - made.moment < maximumAge else { return nil }
        }
        return memory.use(name)
    }

    private mutating func failure(of name: String, at now: TimeInterval) -> NetworkError? {
        guard let failure = failures[name] else { return nil }
        if now < failure.end { return failure.error }
        failures.remove(name)
        return nil
    }

    /// Adds a member to the load of what it requests. Creates the load if there is none.
    ///
    /// - Returns: the result if it is already known.
    mutating func enter(
        _ member: Member,
        _ rank: ResourceOrder.Rank,
        _ wish: Load.LoadRequest,
        at now: TimeInterval
    ) -> Result<Resource, NetworkError>? {
        let name = wish.key.memory
        if !wish.ignoresCache {
            if !member.isAnswer, let made = find(name, at: now) { return .success(made.resource) }
            if let error = failure(of: name, at: now) { return .failure(error) }
        }
        // A load that ignores the caches serves the other members as well, because no response is fresher.
        let past = wish.key.load(ignoresCache: true)
        let key = wish.ignoresCache || loads[past] != nil ? past : wish.key.load(ignoresCache: false)
        if loads[key] == nil {
            var load = Load(number: nextNumber(), wish)
            if wish.variant != nil {
                let whole = ResourceKey(whole: wish.key)
                if !wish.ignoresCache, let made = find(whole.memory, at: now) {
                    addTurn(.variant(key, made), load.number, rank)
                } else {
                    var source = wish
                    (source.variant, source.key) = (nil, whole)
                    let share = Member.variant(key, number: load.number)
                    if let result = enter(share, rank, source, at: now) { return result }
                    load.source = self.key(of: share.id, whole.memory)
                }
            }
            loads[key] = load
        }
        loads[key]?.insert(member, rank)
        return nil
    }

    /// Returns the key of the load in which a member waits, or `nil` if it no longer waits.
    func key(of id: Member.ID, _ name: String) -> String? {
        [name, "!" + name].first { loads[$0]?.member(id) != nil }
    }

    /// Gives a member of a load another rank.
    mutating func setRank(_ id: Member.ID, _ name: String) -> String? {
        guard let key = key(of: id, name), let member = loads[key]?.member(id) else { return nil }
        switch member {
        case .resource(let receipt): loads[key]?.insert(member, receipt.rank)
        case .answer(let receipt): loads[key]?.insert(member, receipt.rank)
        case .variant: break
        }
        return key
    }

    /// Passes on what the members of a load want: to the load of the whole resource, and to the order in which loads
    /// start or decode.
    ///
    /// - Returns: the load that has or will have a job.
    mutating func passOn(_ key: String) -> Load? {
        guard let load = loads[key] else { return nil }
        if turns[load.number] != nil { turnOrder.insert(String(load.number), load.rank) }
        guard let source = load.source else {
            guard load.wish.variant == nil else { return nil }
            if !load.isStarted { order.insert(key, load.rank) }
            if running[load.number] != nil { running[load.number] = load.rank == .prefetch }
            return load
        }
        loads[source]?.insert(.variant(key, number: load.number), load.rank)
        if load.wantsCounts { loads[source]?.wantsCounts = true }
        return passOn(source)
    }

    /// Removes a member, and its load if no other member is left.
    ///
    /// - Returns: the key of a load that continues, or the load and the turn that must be stopped.
    mutating func leave(_ id: Member.ID, _ name: String) -> (goesOn: String?, stopped: (Load, Turn?)?) {
        guard let key = key(of: id, name) else { return (nil, nil) }
        loads[key]?.remove(id)
        guard loads[key]?.isEmpty == true, let load = loads.removeValue(forKey: key) else { return (key, nil) }
        order.remove(key)
        let turn = takeTurn(load.number)
        guard let source = load.source, let whole = loads[source] else { return (nil, (load, turn)) }
        return leave(.variant(load.number), whole.wish.key.memory)
    }

    /// Returns the receipts of a load, including the receipts of its variants.
    func receipts(
        of key: String,
        _ number: Int
    ) -> (resources: [ResourceReceipt<Resource>], answers: [ResourceReceipt<Void>]) {
        guard let load = loads[key], load.number == number else { return ([], []) }
        var (resources, answers): ([ResourceReceipt<Resource>], [ResourceReceipt<Void>]) = ([], [])
        for (member, _) in load.members {
            switch member {
            case .resource(let receipt): resources.append(receipt)
            case .answer(let receipt): answers.append(receipt)
            case .variant(let key, let number): resources += receipts(of: key, number).resources
            }
        }
        return (resources, answers)
    }

    /// Stores the byte counts of a load and of its variants.
    mutating func note(_ count: TransferMeter.Count, _ key: String, _ number: Int) {
        guard let load = loads[key], load.number == number else { return }
        loads[key]?.count = count
        for case .variant(let key, let number) in load.members.map(\.member) { note(count, key, number) }
    }

    // MARK: - Starting

    /// Takes the load that starts next, if there is a place.
    ///
    /// - Parameter places: the number of loads that may run.
    mutating func takeNext(_ places: Int) -> (key: String, load: Load)? {
        // Responses that wait to be decoded take memory, so a slow decoder eventually makes transfers wait.
        guard running.count < places, turns.count < 8 * places else { return nil }
        let prefetchCount = running.values.count { $0 }
        let lowest: ResourceOrder.Rank = prefetchCount < max(1, places / 2) ? .prefetch : .veryLow
        guard let key = order.takeNext(from: lowest), let load = loads[key] else { return nil }
        loads[key]?.isStarted = true
        running[load.number] = load.rank == .prefetch
        return (key, load)
    }

    /// Makes the prefetch in the only place start again later, if an ordinary load waits for the place.
    ///
    /// - Returns: the prefetch's job, to be cancelled.
    mutating func stopPrefetch(for key: String) -> ResourceOperation<Resource>? {
        guard let wanted = loads[loads[key]?.source ?? key], !wanted.isStarted, wanted.wish.variant == nil,
            wanted.rank != .prefetch,
            let number = running.first(where: { $0.value })?.key,
            let (prefetch, load) = loads.first(where: { $0.value.number == number }),
            let operation = load.operation
        else { return nil }
        restart(prefetch)
        return operation
    }

    private mutating func restart(_ key: String) {
        let number = nextNumber()
        loads[key]?.restart(number: number)
        if let load = loads[key] { order.insert(key, load.rank) }
    }

    // MARK: - Decoding

    /// Frees the place of a load whose response has arrived, and makes the load wait until it may decode.
    ///
    /// - Returns: false if the load is no longer needed.
    mutating func awaitTurn(_ key: String, _ number: Int, _ run: @escaping @Sendable (Bool) -> Void) -> Bool {
        running[number] = nil
        guard let load = loads[key], load.number == number else { return false }
        addTurn(.whole(run), number, load.rank)
        return true
    }

    private mutating func addTurn(_ turn: Turn, _ number: Int, _ rank: ResourceOrder.Rank) {
        turns[number] = turn
        turnOrder.insert(String(number), rank)
    }

    /// Takes back the turn of a load. Returns `nil` if the load waits for none.
    mutating func takeTurn(_ number: Int) -> Turn? {
        guard let turn = turns.removeValue(forKey: number) else { return nil }
        turnOrder.remove(String(number))
        return turn
    }

    /// Takes the load that decodes next, if there is a place.
    mutating func takeNextTurn(_ limit: Int) -> (number: Int, turn: Turn)? {
        guard decodingCount < limit, let name = turnOrder.takeNext(from: .prefetch), let number = Int(name),
            let turn = turns.removeValue(forKey: number)
        else { return nil }
        decodingCount += 1
        return (number, turn)
    }

    mutating func endTurn() {
        decodingCount -= 1
    }

    /// Gives a load a place again after its response could not be decoded. If the response came from the cache, the job
    /// sends the request, and occupies the place until it ends.
    mutating func takePlaceAgain(_ key: String, _ number: Int) {
        guard let load = loads[key], load.number == number else { return }
        running[number] = load.rank == .prefetch
    }

    // MARK: - The end

    /// Ends the load of a job that has finished.
    mutating func finish(
        _ key: String,
        _ number: Int,
        _ result: Result<LoadedResource<Resource>, NetworkError>,
        at now: TimeInterval
    ) -> End {
        running[number] = nil
        guard let load = loads[key], load.number == number else { return End() }
        switch result {
        case .failure(let error): return conclude(key, .failure(error), at: now)
        case .success(let loaded):
            guard let resource = loaded.resource else { return concludeAnswers(key, .success(())) }
            let made = Made(
                resource: resource,
                cost: loaded.cost,
                isStorable: loaded.isStorable,
                moment: now,
                number: number,
                name: load.wish.key.resource
            )
            return conclude(key, .success(made), at: now)
        }
    }

    /// Ends a load with its resource or a failure.
    mutating func conclude(_ key: String, _ result: Result<Made, NetworkError>, at now: TimeInterval) -> End {
        var end = End()
        guard let load = loads.removeValue(forKey: key) else { return end }
        let key = load.wish.key
        switch result {
        case .success(let made):
            failures.remove(key.memory)
            if load.wish.ignoresCache {
                // Resources in memory that were made from an older response are removed.
                let old = memory.keys { $0.name == made.name && $0.number < made.number }
                for name in old { end.removed += [memory.remove(name)].compactMap { $0 } }
            }
            // A whole resource that only variants need is not kept in memory.
            let isWanted = load.members.contains { !$0.member.isVariant && !$0.member.isAnswer }
            // A reload of the source may have ended in the meantime.
            let isNewest = [key.memory, key.resource].allSatisfy { memory[$0].map { $0.number <= made.number } ?? true }
            if made.isStorable, isWanted, isNewest {
                end.removed += memory.store(made, cost: made.cost, for: key.memory)
            }
        case .failure(let error):
            guard failureLifetime > 0, error.code != .cancelled else { break }
            _ = failures.store((error, now + failureLifetime, key.resource), cost: 0, for: key.memory)
        }
        for (member, rank) in load.members {
            switch member {
            case .resource(let receipt): end.receipts.append((receipt, result.map(\.resource)))
            case .answer(let receipt): end.answers.append((receipt, result.map { _ in }))
            case .variant(let variant, let number):
                guard let other = loads[variant], other.number == number else { continue }
                switch result {
                case .success(let made):
                    loads[variant]?.source = nil
                    addTurn(.variant(variant, made), number, rank)
                case .failure(let error):
                    loads[variant] = nil
                    for receipt in other.receipts { end.receipts.append((receipt, .failure(error))) }
                }
            }
        }
        return end
    }

    /// Ends a load that needs only the response in the cache, because its request stores nothing there.
    mutating func refuse(_ key: String, _ number: Int, _ error: NetworkError) -> End {
        running[number] = nil
        return loads[key]?.number == number ? concludeAnswers(key, .failure(error)) : End()
    }

    /// Ends a load that needs only the response in the cache, without a resource.
    private mutating func concludeAnswers(_ key: String, _ result: Result<Void, NetworkError>) -> End {
        var end = End()
        for case .answer(let receipt) in loads[key]?.members.map(\.member) ?? [] {
            end.answers.append((receipt, result))
            loads[key]?.remove(.receipt(ObjectIdentifier(receipt)))
        }
        // If someone has requested the resource meanwhile, the load starts again and gets the response from the cache.
        if loads[key]?.isEmpty == true { loads[key] = nil } else { restart(key) }
        return end
    }

    // MARK: - Forgetting

    /// Removes a resource, its variants and their failures.
    mutating func forget(_ name: String) -> [Made] {
        for key in failures.keys(where: { $0.resource == name }) { failures.remove(key) }
        return memory.keys { $0.name == name }.compactMap { memory.remove($0) }
    }

    mutating func forgetAll() -> RecencyList<Made> {
        failures = RecencyList(costLimit: 0, countLimit: failures.countLimit)
        return exchange(&memory, with: RecencyList(costLimit: memory.costLimit, countLimit: memory.countLimit))
    }
}

extension ResourceLoad {
    /// The receipts that wait for the resource.
    var receipts: [ResourceReceipt<Resource>] {
        members.compactMap { if case .resource(let receipt) = $0.member { receipt } else { nil } }
    }
}
