import Foundation

/// An event of a server (HTML Living Standard, section 9.2).
///
/// ```swift
/// for try await event in service.events(GetNews()) where event.event == "headline" { show(event.data) }
/// ```
public struct ServerSentEvent: Hashable, Sendable {
    /// The type. Defaults to `message`.
    public var event: String

    /// The text, with its lines separated by line feeds. Empty if the server sent an empty one.
    public var data: String

    /// The ID of this event, or of the last event before it that had one. Empty if there was none. A new connection
    /// continues after this event.
    public var id: String

    /// The time to wait before the next connection, in seconds, if this event sets one. It applies until the server
    /// sends another. Defaults to `nil`.
    public var retry: TimeInterval?

    /// Creates an event.
    public init(event: String = "message", data: String, id: String = "", retry: TimeInterval? = nil) {
        self.event = event
        self.data = data
        self.id = id
        self.retry = retry
    }
}

/// Parses a stream of events (HTML Living Standard, section 9.2.6) in chunks of any size.
struct ServerSentEventParser {
    private let maximumByteCount: Int
    private var lines: LineSplitter
    private var isFirstLine = true

    // The event that is being read.
    private var event = ""
    private var data: String?
    private var id: String
    private var eventRetry: TimeInterval?

    /// The ID of the last complete event, for the next connection.
    private(set) var lastEventID: String

    /// The time to wait before the next connection, in seconds; nil until the server sends one.
    private(set) var retry: TimeInterval?

    /// Creates a parser.
    ///
    /// - Parameters:
    ///   - maximumByteCount: The maximum length of a line, and of the type, data and ID of an event together, in bytes.
    ///   - lastEventID: The ID of the last event of the previous connection.
    init(maximumByteCount: Int, lastEventID: String = "") {
        self.maximumByteCount = maximumByteCount
        lines = LineSplitter(maximumByteCount: maximumByteCount, endsAtCarriageReturn: true)
        id = lastEventID
        self.lastEventID = lastEventID
    }

    /// Drops an incomplete event, to read from another connection.
    mutating func restart() {
        let retry = retry
        self = ServerSentEventParser(maximumByteCount: maximumByteCount, lastEventID: lastEventID)
        self.retry = retry
    }

    mutating func append(_ data: Data) {
        lines.append(data)
    }

    /// Returns the next complete event; nil if there is none. An event that the end of the stream cuts off is dropped.
    ///
    /// - Throws: ``NetworkError/Code/bodyTooLong``.
    mutating func next() throws(NetworkError) -> ServerSentEvent? {
        while var line = try lines.next() {
            if isFirstLine {
                isFirstLine = false
                if line.unicodeScalars.first == "\u{FEFF}" { line.unicodeScalars.removeFirst() }
            }
            if line.isEmpty, let event = dispatch() { return event }
            if !line.isEmpty { try read(line) }
        }
        return nil
    }

    private mutating func dispatch() -> ServerSentEvent? {
        lastEventID = id
        defer { (event, data, eventRetry) = ("", nil, nil) }
        return data.map { data in
            ServerSentEvent(event: event.isEmpty ? "message" : event, data: data, id: id, retry: eventRetry)
        }
    }

    private mutating func read(_ line: String) throws(NetworkError) {
        // The line is split by bytes, because a colon and a combining character after it are one Character.
        let bytes = line.utf8
        let colon = bytes.firstIndex(of: UInt8(ascii: ":")) ?? bytes.endIndex
        var value = bytes[colon...].dropFirst()
        if value.first == UInt8(ascii: " ") { value = value.dropFirst() }
        let text = String(Substring(value))
        switch Substring(bytes[..<colon]) {
        case "event": event = text
        case "data":
            data?.append("\n")
            if data == nil { data = text } else { data?.append(text) }
        case "id" where !text.utf8.contains(0): id = text
        case "retry":
            guard text.utf8.allSatisfy(\.isDigit), let milliseconds = Double(text), milliseconds.isFinite
            else { return }
            retry = milliseconds / 1_000
            eventRetry = retry
        // Comments have no field name, and unknown fields are ignored.
        default: break
        }
        guard event.utf8.count + (data?.utf8.count ?? 0) + id.utf8.count <= maximumByteCount else {
            throw NetworkError(code: .bodyTooLong, message: "an event is longer than \(maximumByteCount) bytes")
        }
    }
}
