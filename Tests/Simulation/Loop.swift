import EasyNetwork
import Foundation

/// Runs all work of one history on one thread, in an order that the seed decides.
///
/// Ready work runs in any order; that of one serial queue in its own. Time moves when nothing is ready, or, on a slow
/// machine, before. Where code of the user runs, other work may run in between, as other threads would.
final class Loop: WorkLoop, NetworkClock, @unchecked Sendable {
    // Sendable because one thread uses it.
    /// The queue is nil for work that runs beside any other, and kept, as another one may get the address of a dead one.
    private typealias Piece = (work: @Sendable () -> Void, queue: DispatchQueue?, process: Int)

    private final class Timer: ClockTimer, @unchecked Sendable {
        // Sendable for the same reason.
        var action: (@Sendable () -> Void)?
        /// Whether it is about to fire on a thread of its own: a cancel may be too late.
        var isDue = false
        private let mayBeLate: Bool
        let process: Int

        init(_ action: @escaping @Sendable () -> Void, mayBeLate: Bool, _ process: Int) {
            (self.action, self.mayBeLate, self.process) = (action, mayBeLate, process)
        }

        func cancel() { if !isDue || !mayBeLate { action = nil } }
    }

    enum Order: String, CaseIterable { case any, oldest, newest }

    private let random: Random
    private let settings: History.Settings
    private var (ready, operations): ([Piece], [Operation]) = ([], [])
    /// The serial queues whose work is on the stack.
    private var busy: Set<ObjectIdentifier> = []
    private var timers = TimerHeap<Timer>()
    /// The task that runs, the queues that it has been on in this piece of work, and where it goes on.
    private var running:
        (task: UInt, queues: Set<ObjectIdentifier>, next: (queue: DispatchQueue, part: @Sendable () -> Void)?)?
    /// The processes whose code is on the stack; 0 for that of the world and of jobs. A killed one gets another number.
    private var (onStack, dead): ([Int], Set<Int>) = ([], [])
    private var depth = 0
    private(set) var now: TimeInterval = 1_000
    /// How far the wall clock is from the monotonic one.
    var dateOffset: TimeInterval = 0
    private(set) var stepCount = 0
    /// Called when nothing is ready, before time moves.
    var becomesQuiet: () -> Void = {}
    /// Called before each step, and before a running job is cancelled.
    var (willStep, willCancel): (() -> Void, () -> Void) = ({}, {})
    var mustStop = false
    /// Escapes would never be seen otherwise.
    private let thread = ObjectIdentifier(Thread.current)

    init(seed: UInt64, _ settings: History.Settings) { (random, self.settings) = (Random(seed), settings) }

    var clock: any NetworkClock { self }
    var process: Int { onStack.last ?? 0 }
    /// When the world begins, by a clock that is right.
    let start = Date(timeIntervalSince1970: 1_767_226_600)
    var date: Date { start + (now - 1_000 + dateOffset) }

    func schedule(after delay: TimeInterval, _ action: @escaping @Sendable () -> Void) -> any ClockTimer {
        let timer = Timer(action, mayBeLate: random.chance(0.5), process)
        timers.add(timer, at: now + (delay > 0 ? delay : 0))
        return timer
    }

    /// Work of the world, which no kill ends.
    func after(_ delay: TimeInterval, _ action: @escaping @Sendable () -> Void) {
        within(0) { _ = schedule(after: delay, action) }
    }

    func add(_ work: @escaping @Sendable () -> Void, to queue: DispatchQueue) {
        precondition(thread == ObjectIdentifier(Thread.current), "work has left the simulation")
        guard !dead.contains(process) else { return }
        ready.append((work, serial(queue), process))
    }

    /// The queue, unless its work runs beside any other.
    private func serial(_ queue: DispatchQueue) -> DispatchQueue? {
        [WorkQueue.shared, .global(), .global(qos: .utility)].contains { $0 === queue } ? nil : queue
    }

    /// A task that runs and goes on elsewhere does so at once: whether it changes its executor in between depends on the
    /// optimization of the build, and no choice may.
    func add(_ job: UnownedJob, to queue: DispatchQueue, _ part: @escaping @Sendable () -> Void) {
        let (task, id) = (unsafeBitCast(job, to: UInt.self), ObjectIdentifier(queue))
        let goesOn = running.map { $0.task == task && ($0.queues.contains(id) || !busy.contains(id)) } ?? false
        if goesOn { running?.next = (queue, part) } else { add({ self.run(task, on: queue, part) }, to: queue) }
    }

    private func run(_ task: UInt, on queue: DispatchQueue, _ part: @escaping @Sendable () -> Void) {
        let outer = running
        running = (task, [ObjectIdentifier(queue)], nil)
        part()
        while let (queue, next) = running?.next.take() {
            running?.queues.insert(ObjectIdentifier(queue))
            let isTaken = serial(queue) != nil && busy.insert(ObjectIdentifier(queue)).inserted
            next()
            if isTaken { busy.remove(ObjectIdentifier(queue)) }
        }
        running = outer
    }

    func start(_ operation: Operation) { operations.append(operation) }
    func makeUUID() -> UUID {
        withUnsafeBytes(of: (random.next(), random.next())) { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) }
    }

    /// Runs code of a process, unless it has been killed.
    func within(_ process: Int, _ work: () -> Void) {
        guard isAlive(process) else { return }
        onStack.append(process)
        work()
        onStack.removeLast()
    }

    func isAlive(_ process: Int) -> Bool { !dead.contains(process) }
    func mayBeKilled(_ process: Int) -> Bool { !onStack.contains(process) }

    func kill(_ process: Int) {
        dead.insert(process)
        ready.removeAll { $0.process == process }
        timers.sweep { $0.process != process }
    }

    /// Whether other work may run where a file is used: not while the lock of a folder is held, for which it would wait.
    var mayInterruptFiles: () -> Bool = { false }
    var usesFile: () -> Void = {}
    var diskIsFullUntil = 0.0

    func willUseFile(_ path: String, toWrite: Bool) throws {
        if toWrite, now < diskIsFullUntil { throw POSIXError(.ENOSPC) }
        if process != 0 { usesFile() }
        guard settings.interruption > 0, depth == 0, random.chance(settings.interruption / 2) else { return }
        if mayInterruptFiles() { interrupt(surely: true) }
    }

    /// Runs until a time, or until nothing is left to do.
    func run(until end: TimeInterval) {
        while !mustStop {
            addReadyOperations()
            if settings.isSlow, !ready.isEmpty, random.chance(0.02), let next = timers.earliest, next <= end {
                moveTime(to: next)
            }
            if runOne() { continue }
            timers.sweep { $0.action != nil }
            becomesQuiet()
            guard !mustStop, ready.isEmpty else { continue }
            guard let next = timers.earliest, next <= end else { return now = max(now, end) }
            moveTime(to: next)
        }
    }

    /// Code of the user runs here: other threads may go on meanwhile.
    func interrupt(surely: Bool = false) {
        guard depth < 3, settings.interruption > 0, surely || random.chance(settings.interruption) else { return }
        depth += 1
        for _ in 0...random.below(6) where !mustStop {
            addReadyOperations()
            guard runOne() else { break }
        }
        depth -= 1
    }

    /// - Returns: false when nothing can run.
    private func runOne() -> Bool {
        guard let index = nextIndex() else { return false }
        let piece = ready.remove(at: index)
        stepCount += 1
        willStep()
        if let queue = piece.queue { busy.insert(ObjectIdentifier(queue)) }
        within(piece.process) {
            // Before these versions a task cannot choose its executor.
            guard depth > 0, #available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *) else {
                return piece.work()
            }
            // As a task of its own, so that it has none of the task that it interrupts.
            WorkQueue.simulate(on: self) { Task.detached(executorPreference: AtOnce.shared) { piece.work() } }
        }
        if let queue = piece.queue { busy.remove(ObjectIdentifier(queue)) }
        return true
    }

    private func nextIndex() -> Int? {
        guard !ready.isEmpty else { return nil }
        let chosen =
            switch random.chance(0.25) ? .any : settings.order {
            case .any: random.below(ready.count)
            case .oldest: 0
            case .newest: ready.count - 1
            }
        for offset in ready.indices {
            let index = (chosen + offset) % ready.count
            guard let queue = ready[index].queue else { return index }
            if !busy.contains(ObjectIdentifier(queue)) { return ready.firstIndex { $0.queue === queue } }
        }
        return nil
    }

    private func addReadyOperations() {
        for operation in operations where operation.isReady {
            operations.removeAll { $0 === operation }
            ready.append(({ operation.start() }, nil, 0))
        }
    }

    private func moveTime(to time: TimeInterval) {
        now = max(now, time)
        while let timer = timers.takeDue(now: now) {
            guard timer.action != nil else { continue }
            timer.isDue = true
            ready.append(({ timer.action.take()?() }, nil, timer.process))
        }
    }

    /// Runs its tasks where they are made.
    @available(macOS 15, iOS 18, tvOS 18, watchOS 11, visionOS 2, *)
    private final class AtOnce: TaskExecutor {
        static let shared = AtOnce()

        func enqueue(_ job: consuming ExecutorJob) { UnownedJob(job).runSynchronously(on: asUnownedTaskExecutor()) }
    }
}
