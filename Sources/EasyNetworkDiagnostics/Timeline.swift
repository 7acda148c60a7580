import EasyNetwork
import Foundation

/// A recording of jobs and calls, shown as bars over time: when each waited, ran, sent its messages and ended.
///
/// ```swift
/// let timeline = Timeline()
/// timeline.record(NetworkQueue.shared)
/// // … run the jobs …
/// let page = await timeline.html()
/// try Data(page.utf8).write(to: URL(fileURLWithPath: "timeline.html"))
/// ```
///
/// It records until it is released, and keeps the newest 20,000 jobs and calls, each with its newest 100 attempts; the
/// page says how many older ones were left out. A row has the name of its job: ``/EasyNetwork/NetworkOperation`` has a
/// `name`, and without one the type of the request names it. It holds neither operations nor messages, only their names and addresses, from which
/// ``/EasyNetwork/Redaction/standard`` takes the secrets before they are shown; header fields and bodies are not
/// recorded. All members may be used from any thread.
public final class Timeline: Sendable {
    private let content = Locked(TimelineRecord())
    private let subscriptions = EventSubscriptions()
    private let queues = Locked<[WeakQueue]>([])

    private struct WeakQueue: Sendable {
        weak var queue: NetworkQueue?
    }

    /// Creates a recording of nothing yet.
    public init() {}

    /// Records the jobs of a queue: those that are there, and those that are added later. Recording a queue twice has
    /// no effect. The queue is not kept alive.
    public func record(_ queue: NetworkQueue) {
        let content = content
        subscriptions.add(queue.broadcast) {
            queues.withLock { queues in
                queues.removeAll { $0.queue == nil }
                queues.append(WeakQueue(queue: queue))
            }
            return queue.subscribe { event in content.withLock { $0.note(event, fromQueue: true) } }
        }
    }

    /// Records the calls to a host from now on; a call of a job that is recorded with its queue is shown in that job's
    /// row. Recording a host twice has no effect. The host is not kept alive.
    public func record(_ host: HostConfiguration) {
        let content = content
        subscriptions.add(host.broadcast) {
            host.subscribe { event in content.withLock { $0.note(event, fromQueue: false) } }
        }
    }

    /// The recording until now as a page of HTML: a single file, which loads nothing and runs offline.
    ///
    /// - Parameter title: its heading. Default `Timeline`.
    public func html(title: String = "Timeline") async -> String {
        await picture().html(title: title)
    }

    /// The recording until now as lines for a terminal, in a font of fixed width.
    ///
    /// - Parameter width: the number of columns, at least 40. Default 100.
    public func text(width: Int = 100) async -> String {
        await picture().lines(width: width).joined(separator: "\n") + "\n"
    }

    private func picture() async -> TimelinePicture {
        await subscriptions.settled()
        var record = content.withLock { $0 }
        for queue in queues.withLock({ $0.compactMap(\.queue) }) { record.noteReasons(of: queue) }
        return TimelinePicture(record, at: Date())
    }
}
