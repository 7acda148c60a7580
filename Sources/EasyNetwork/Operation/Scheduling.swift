/// The place of a job in its queue's graph. A place is used again; the number of the tenant tells them apart.
struct JobID: Hashable, Sendable {
    let index: Int32
    let tenant: UInt64
}

/// An operation's queue and its place there.
struct Scheduling {
    let queue: NetworkQueue
    let job: JobID
}
