import Dispatch
import EasyNetwork
import Foundation

/// Runs all work of one history on one thread, in an order that the seed decides.
///
/// Ready work runs in any order; that of one serial queue in its own. Time moves when nothing is ready, or, on a slow
/// machine, before. Where code of the user runs, other work may run in between, as other threads would.
final class Loop: WorkLoop, NetworkClock, @unchecked Sendable {
    // Sendable because one thread uses it.
    private struct Piece {
        let work: @Sendable () -> Void
        /// Nil for work that runs beside any other. Kept, as another queue may get the address of one that has gone.
        let queue: DispatchQueue?
        let process: Int
    }

    private final class Timer: ClockTimer, @unchecked Sendable {
        // Sendable for the same reason.
        private unowned let loop: Loop
        var action: (@Sendable () -> Void)?
        /// Whether it is about to fire on a thread of its own: a cancel may be too late.
        var isDue = false
        private let mayBeLate: Bool
        let process: Int

        init(_ loop: Loop, _ action: @escaping @Sendable () -> Void, mayBeLate: Bool) {
            (self.loop, self.action, self.mayBeLate, process) = (loop, action, mayBeLate, loop.process)
        }

        func cancel() {
            if isDue ? mayBeLate : action == nil { return }
            if !isDue { loop.cancelledCount += 1 }
            action = nil
        }
    }

    enum Order: String, CaseIterable { case any, oldest, newest }

    private let random: Random
    private let order: Order
    private let isSlow: Bool
    /// How often other work runs in between where code of the user is called.
    private let interruption: Double
    private var ready: [Piece] = []
    /// The serial queues whose work is on the stack.
    private var busy: Set<ObjectIdentifier> = []
    private var timers = TimerHeap<Timer>()
    private var cancelledCount = 0
    private var operations: [Operation] = []
    /// The task that runs, the queues that it has been on in this piece of work, and where it goes on.
    private var running:
        (task: UInt, queues: Set<ObjectIdentifier>, next: (queue: DispatchQueue, part: @Sendable () -> Void)?)?
    /// The process whose code runs; 0 for that of the world and of jobs. A killed process gets another number.
    private(set) var process = 0
    private var onStack: [Int] = []
    private var dead: Set<Int> = []
    private var depth = 0
    private(set) var now: TimeInterval = 1_000
    /// How far the wall clock is from the monotonic one.
    var dateOffset: TimeInterval = 0
    private(set) var stepCount = 0
    /// Called when nothing is ready, before time moves.
    var becomesQuiet: () -> Void = {}
    /// Called before each piece of work.
    var willStep: () -> Void = {}
    var mustStop = false
    /// Escapes would never be seen otherwise.
    private let thread = pthread_self()

    init(seed: UInt64, _ settings: History.Settings) {
        random = Random(seed)
        (order, isSlow, interruption) = (settings.order, settings.isSlow, settings.interruption)
    }

    var clock: any NetworkClock { self }

    /// The beginning of 2026, and later.
    var date: Date { Date(timeIntervalSince1970: 1_767_225_600 + now + dateOffset) }

    func schedule(after delay: TimeInterval, _ action: @escaping @Sendable () -> Void) -> any ClockTimer {
        let timer = Timer(self, action, mayBeLate: random.chance(0.5))
        timers.add(timer, at: now + (delay > 0 ? delay : 0))
        return timer
    }

    /// Work of the world, which no kill ends.
    func after(_ delay: TimeInterval, _ action: @escaping @Sendable () -> Void) {
        let process = process
        self.process = 0
        _ = schedule(after: delay, action)
        self.process = process
    }

    func add(_ work: @escaping @Sendable () -> Void, to queue: DispatchQueue) {
        precondition(pthread_equal(thread, pthread_self()) != 0, "work has left the simulation")
        guard !dead.contains(process) else { return }
        ready.append(Piece(work: work, queue: Self.runsBesideOthers(queue) ? nil : queue, process: process))
    }

    private static func runsBesideOthers(_ queue: DispatchQueue) -> Bool {
        queue === WorkQueue.shared || queue === DispatchQueue.global()
            || queue === DispatchQueue.global(qos: .utility)
    }

    /// A task that runs and goes on elsewhere does so at once: whether it changes its executor in between depends on the
    /// optimization of the build, and no choice may.
    func add(_ job: UnownedJob, to queue: DispatchQueue, _ part: @escaping @Sendable () -> Void) {
        let (task, queueID) = (unsafeBitCast(job, to: UInt.self), ObjectIdentifier(queue))
        if let running, running.task == task, running.queues.contains(queueID) || !busy.contains(queueID) {
            self.running?.next = (queue, part)
        } else {
            add({ self.run(task, on: queue, part) }, to: queue)
        }
    }

    private func run(_ task: UInt, on queue: DispatchQueue, _ part: @escaping @Sendable () -> Void) {
        let outer = running
        running = (task, [ObjectIdentifier(queue)], nil)
        part()
        while let (queue, next) = running?.next.take() {
            running?.queues.insert(ObjectIdentifier(queue))
            let isTaken = !Self.runsBesideOthers(queue) && busy.insert(ObjectIdentifier(queue)).inserted
            next()
            if isTaken { busy.remove(ObjectIdentifier(queue)) }
        }
        running = outer
    }

    func makeUUID() -> UUID {
        withUnsafeBytes(of: (random.next(), random.next())) { UUID(uuid: $0.loadUnaligned(as: uuid_t.self)) }
    }

    /// Runs code of a process, unless it has been killed.
    func within(_ process: Int, _ work: () -> Void) {
        guard !dead.contains(process) else { return }
        let before = self.process
        self.process = process
        onStack.append(process)
        work()
        onStack.removeLast()
        self.process = before
    }

    func isAlive(_ process: Int) -> Bool { !dead.contains(process) }

    func mayBeKilled(_ process: Int) -> Bool { !onStack.contains(process) }

    /// Nothing of the process runs any more.
    func kill(_ process: Int) {
        dead.insert(process)
        ready.removeAll { $0.process == process }
        timers.sweep { $0.process != process }
    }

    /// Whether other work may run where a file is used: not while the lock of a folder is held, for which it would wait.
    var mayInterruptFiles: () -> Bool = { false }
    /// Until when the disk has no room.
    var diskIsFullUntil = 0.0

    func willUseFile(_ path: String, toWrite: Bool) throws {
        if toWrite, now < diskIsFullUntil { throw POSIXError(.ENOSPC) }
        if interruption > 0, depth == 0, random.chance(interruption / 2), mayInterruptFiles() {
            interrupt(surely: true)
        }
    }

    func start(_ operation: Operation) {
        operations.append(operation)
    }

    /// Runs until a time, or until nothing is left to do.
    func run(until end: TimeInterval) {
        while !mustStop {
            addReadyOperations()
            if isSlow, !ready.isEmpty, random.chance(0.02), let next = timers.earliest, next <= end {
                moveTime(to: next)
            }
            if runOne() { continue }
            if cancelledCount > 0 { timers.sweep { $0.action != nil } }
            cancelledCount = 0
            becomesQuiet()
            guard !mustStop, ready.isEmpty else { continue }
            guard let next = timers.earliest, next <= end else {
                now = max(now, end)
                return
            }
            moveTime(to: next)
        }
    }

    /// Whether nothing is left, not even a timer.
    var isIdle: Bool { ready.isEmpty && operations.isEmpty && timers.count == 0 }

    /// Code of the user runs here: other threads may go on meanwhile.
    func interrupt(surely: Bool = false) {
        guard depth < 3, interruption > 0, surely || random.chance(interruption) else { return }
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
            if depth == 0 { return piece.work() }
            // As a task of its own, so that it has none of the task that it interrupts.
            WorkQueue.simulate(on: self) { Task.detached(executorPreference: AtOnce.shared) { piece.work() } }
        }
        if let queue = piece.queue { busy.remove(ObjectIdentifier(queue)) }
        return true
    }

    private func nextIndex() -> Int? {
        guard !ready.isEmpty else { return nil }
        let chosen =
            switch random.chance(0.25) ? .any : order {
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
        guard !operations.isEmpty else { return }
        for operation in operations.filter(\.isReady) {
            operations.removeAll { $0 === operation }
            ready.append(Piece(work: { operation.start() }, queue: nil, process: 0))
        }
    }

    private func moveTime(to time: TimeInterval) {
        now = max(now, time)
        while let timer = timers.takeDue(now: now) {
            guard timer.action != nil else { continue }
            timer.isDue = true
            ready.append(Piece(work: { timer.action.take()?() }, queue: nil, process: timer.process))
        }
    }

    /// Runs its tasks where they are made.
    private final class AtOnce: TaskExecutor {
        static let shared = AtOnce()

        func enqueue(_ job: consuming ExecutorJob) {
            UnownedJob(job).runSynchronously(on: asUnownedTaskExecutor())
        }
    }
}
