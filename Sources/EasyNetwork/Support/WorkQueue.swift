import Dispatch

/// The queue on which answers are checked, decoded and mapped, and on which callbacks run that name no other.
enum WorkQueue {
    static let shared = DispatchQueue(label: "EasyNetwork.work", attributes: .concurrent)
}
