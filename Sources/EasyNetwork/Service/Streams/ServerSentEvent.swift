import Foundation

/// What a server sends over a stream of events (HTML Living Standard, section 9.2).
public struct ServerSentEvent: Hashable, Sendable {
    /// The type. Default `message`.
    public var event: String

    /// The text, lines separated by line feeds; empty when the server sent an empty one.
    public var data: String

    /// The last event ID: of this event, or of the last one before it that had one. Empty when none had. A stream that
    /// is begun again goes on after it.
    public var id: String

    /// How long the server wants to be left alone once the stream breaks off, in seconds, if it said so with this event.
    /// It holds until the server says otherwise. Default nil.
    public var retry: TimeInterval?

    public init(event: String = "message", data: String, id: String = "", retry: TimeInterval? = nil) {
        self.event = event
        self.data = data
        self.id = id
        self.retry = retry
    }
}
