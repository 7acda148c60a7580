import EasyNetwork
import Foundation

/// The servers `a.test` and `b.test` as a model: what lies there, who may read it, and the record of all that came.
final class Server {
    struct Reply {
        var status: Int
        var headers = HTTPHeaders()
        var body = Data()
        var delay = 0.01
        var pieceCount = 1
        var pace = 0.0, endPause = 0.0
        /// How many of ten parts of the body come before the connection is lost, or stalls; nil for the whole body.
        var cut: (part: Int, stalls: Bool)?
    }

    private let settings: History.Settings
    private(set) var versions: [Int]
    private var tokens: [Int: (user: Int, expiresAt: Double)] = [:]
    private var (lastToken, refreshTokens): (Int, [Int: Int]) = (0, [:])
    private var replies: [String: Reply] = [:]
    /// Until when a host is down, and whether it says so itself.
    private var outages: [Int: (end: Double, answers: Bool)] = [:]

    init(_ settings: History.Settings) {
        self.settings = settings
        versions = Array(repeating: 1, count: settings.resources.count)
    }

    func change(_ resource: Int) { if versions.indices.contains(resource) { versions[resource] += 1 } }
    func breakDown(_ host: Int, until end: Double, answers: Bool) { outages[host] = (end, answers) }
    func isDown(_ host: Int, at now: Double) -> Bool { outages[host].map { $0.end > now && !$0.answers } ?? false }
    func recover() { outages = [:] }
    func revokeAll() { tokens = [:] }

    func makeToken(for user: Int, at now: Double) -> (access: Int, refresh: Int) {
        lastToken += 2
        tokens[lastToken] = (user, now + settings.tokenLife)
        refreshTokens[lastToken + 1] = user
        return (lastToken, lastToken + 1)
    }

    func answer(_ message: Message, at now: Double) -> Reply {
        if let token = message.token.flatMap({ tokens[$0] }), token.expiresAt > now { message.user = token.user }
        var reply = reply(to: message, at: now)
        if settings.hasCookies, let epoch = message.epoch {
            reply.headers.add("epoch=\(epoch); Path=/", for: "Set-Cookie")
        }
        message.status = reply.status
        return reply
    }

    /// Puts a status in the place of the answer.
    func refuse(_ message: Message, _ status: Int, _ delay: Double) -> Reply {
        message.status = status
        // By others the server does not say whether it has acted. A repeat of another message has done nothing itself.
        if (300..<500).contains(status), ![408, 429].contains(status), message.hasActed {
            message.hasActed = false
            if let key = message.key { replies[key] = nil }
        }
        return Reply(status: status, body: Data("{}".utf8), delay: delay)
    }

    private func reply(to message: Message, at now: Double) -> Reply {
        if let outage = outages[message.host], outage.end > now {
            return Reply(status: 503, headers: ["Retry-After": "\(Int(outage.end - now) + 1)"])
        }
        if message.path == "/token" { return refresh(message, at: now) }
        let (kind, resources, index) = (message.path.dropFirst().first, settings.resources, message.resource)
        guard resources.indices.contains(index) else { return Reply(status: 404) }
        let resource = resources[index]
        if resource.isPrivate, message.host == 0, message.mail == nil, message.user == nil {
            return Reply(status: 401, headers: ["WWW-Authenticate": "Bearer"], delay: resource.delay)
        }
        if let (status, host, isEndless) = resource.redirect, let kind, !message.isRedirected || isEndless {
            let place = "\(kind)/\(isEndless ? index : (index + 1) % resources.count)"
            let target = "https://\(host == 0 ? "a" : "b").test/\(place)?\(message.redirectedQuery)"
            return Reply(status: status, headers: ["Location": target], body: Data("moved".utf8))
        }
        if message.method == "POST" {
            if let key = message.key, let known = replies[key] { return known }
            message.hasActed = true
        }
        if kind == "f" { return file(index, resource, message) }
        if kind == "e" {
            var reply = Reply(status: 200, body: Data("data: \(message.number)\n\n".utf8), delay: resource.delay)
            for _ in 0..<(resource.repeatsType ? 2 : 1) { reply.headers.add("text/event-stream", for: "Content-Type") }
            return reply
        }
        if message.method == "POST", kind == "r" { versions[index] += 1 }
        let reply = document(index, resource, message, at: now)
        if message.method == "POST", let key = message.key { replies[key] = reply }
        return reply
    }

    private func document(_ index: Int, _ resource: History.Resource, _ message: Message, at now: Double) -> Reply {
        let user = resource.isPrivate && message.host == 0 ? message.user ?? -1 : -1
        let language = resource.variesBy == "Accept-Language" ? message.language ?? "" : ""
        let tag = (resource.hasStrongTag ? "" : "W/") + "\"\(index).\(versions[index]).\(user)\(language)\""
        message.document = (versions[index], tag, now - Double(resource.age))
        var reply = Reply(status: 304, headers: ["ETag": tag], delay: resource.delay)
        for _ in 0..<(resource.repeatsType ? 2 : 1) { reply.headers.add("application/json", for: "Content-Type") }
        let directives = [resource.maximumAge.map { "max-age=\($0)" }, resource.directive].compactMap(\.self)
        if !directives.isEmpty { reply.headers["Cache-Control"] = directives.joined(separator: ", ") }
        if resource.age > 0 { reply.headers["Age"] = "\(resource.age)" }
        reply.headers["Vary"] = resource.variesBy
        let asked = message.method == "GET" ? message.headers["If-None-Match"] : nil
        if asked == tag || resource.confirmsAny && asked != nil { return reply }
        let place = "\"job\":\(message.job ?? -1),\"path\":\"\(message.path)\""
        reply.body = Data("{\"message\":\(message.number),\(place),\"user\":\(user)}".utf8)
        reply.status = message.method == "POST" ? 201 : 200
        if message.method == "GET" { (reply.pieceCount, reply.pace) = (resource.pieceCount, resource.pace) }
        return reply
    }

    func bytes(of index: Int, version: Int) -> Data {
        let random = Random(UInt64(index * 1_000 + version))
        let words = (0..<settings.resources[index].pieceCount * 13).map { _ in random.next().littleEndian }
        return words.withUnsafeBytes { Data($0) }
    }

    private func file(_ index: Int, _ resource: History.Resource, _ message: Message) -> Reply {
        let whole = bytes(of: index, version: versions[index])
        let name = resource.hasCommonTag ? "f" : "f\(index)."
        let tag = (resource.hasStrongTag ? "" : "W/") + "\"\(name)\(versions[index])\""
        var reply = Reply(status: 200, headers: ["ETag": tag], body: whole, delay: resource.delay, pace: resource.pace)
        reply.headers["Content-Type"] = "application/octet-stream"
        reply.endPause = resource.endPause
        if resource.servesRanges { reply.headers["Accept-Ranges"] = "bytes" }
        if message.method == "GET", resource.servesRanges, let range = message.headers["Range"],
            message.headers["If-Range"] ?? tag == tag || resource.ignoresCondition,
            let start = range.dropFirst(6).split(separator: "-").first.flatMap({ Int($0) })
        {
            let end = "/\(whole.count)"
            guard start < whole.count else {
                return Reply(status: 416, headers: ["Content-Range": "bytes *" + end, "ETag": tag])
            }
            reply.status = 206
            reply.headers["Content-Range"] = "bytes \(start)-\(whole.count - 1)" + end
            reply.body = Data(whole.dropFirst(start))
        }
        reply.headers["Content-Length"] = "\(reply.body.count)"
        reply.pieceCount = max(1, reply.body.count / 100)
        return reply
    }

    private func refresh(_ message: Message, at now: Double) -> Reply {
        guard let token = message.refreshToken, let user = refreshTokens[token] else {
            return Reply(status: 400, body: Data("{}".utf8), delay: 0.05)
        }
        let (access, new) = makeToken(for: user, at: now)
        if settings.rotatesTokens { refreshTokens[token] = nil }
        let body = "{\"access\":\(access),\"refresh\":\(settings.rotatesTokens ? new : token)}"
        return Reply(status: 200, headers: ["Content-Type": "application/json"], body: Data(body.utf8), delay: 0.2)
    }
}
