import Foundation

/// A place that keeps the undo requests of groups, so that they survive the process. An outbox is one.
package protocol UndoStore: AnyObject, Sendable {
    /// - Throws: ``NetworkError/Code/invalidRequest`` if the request cannot be stored.
    func checkUndo(_ request: any APIRequest) throws(NetworkError)

    /// Creates the journal of one group. A journal that is released before it was committed or emptied, even by the end
    /// of the process, is carried out by the store.
    func makeUndoJournal() throws(NetworkError) -> any UndoJournal
}

/// The undo requests of one group. Its methods read and write files on the caller's thread.
package protocol UndoJournal: AnyObject, Sendable {
    /// Stores the request that undoes a step, instead of an earlier one with the same id. When the method returns, the
    /// request is on disk. It fails for an id that was forgotten.
    func keep(_ request: any APIRequest, id: UUID) throws(NetworkError)
    /// Removes the request, because there is nothing to undo, or no longer.
    func forget(_ id: UUID)
    /// Leaves the request to the store, which sends it until the server has accepted it.
    func handOver(_ id: UUID) throws(NetworkError)
    /// Records that the group is whole. When the method returns, the record is on disk, and nothing is undone.
    func commit() throws(NetworkError)
    /// Takes the record of ``commit()`` back.
    func reopen() throws(NetworkError)
}
