import EasyNetworkTesting
import Foundation
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@testable import EasyNetwork
@testable import TestSupport

@Suite("CookieJar")
struct CookieJarTests {
    /// A folder that is removed with the test.
    private final class Folder: Sendable {
        let url = FileManager.default.temporaryDirectory.appendingPathComponent("jar-\(UUID().uuidString)")

        init() throws {
            try FileManager.default.createDirectory(at: url, withIntermediateDirectories: true)
        }

        deinit {
            try? FileManager.default.removeItem(at: url)
        }

        var file: URL { url.appendingPathComponent("cookies.json") }
        var names: [String] { ((try? FileManager.default.contentsOfDirectory(atPath: url.path)) ?? []).sorted() }
    }

    private static func url() throws -> URL {
        try #require(URL(string: "https://h.example/a/b"))
    }

    @Test("SEC-3: cookies of one response are sent with the next request")
    func memory() throws {
        let jar = CookieJar()
        jar.store(["Set-Cookie": "a=1", "set-cookie": "b=2, c"], from: try Self.url())
        expect(jar.cookieHeader(for: try Self.url()), equals: "a=1; b=2, c")
        let mine = HTTPCookie(properties: [.name: "mine", .value: "x", .domain: "h.example", .path: "/"])
        try jar.set(try #require(mine))
        jar.remove { $0.name == "b" }
        expect(jar.cookies.map(\.name), equals: ["a", "mine"])
        jar.removeAll()
        expect(jar.cookies.isEmpty)
        expect(jar.cookieHeader(for: try Self.url()) == nil)
    }

    @Test("SEC-3: expiry is by the clock of the jar, in memory and in the file")
    func clock() async throws {
        let folder = try Folder()
        let clock = ManualClock()
        let jar = CookieJar(file: folder.file, clock: clock)
        jar.store(["Set-Cookie": "short=1; Max-Age=10", "Set-Cookie": "long=1; Max-Age=100"], from: try Self.url())
        let mine = HTTPCookie(properties: [
            .name: "mine", .value: "x", .domain: "h.example", .path: "/",
            .expires: clock.date.addingTimeInterval(10),
        ])
        try jar.set(try #require(mine))
        expect(jar.cookies.map(\.name), equals: ["short", "long", "mine"])
        try await jar.save()
        clock.advance(by: 20)
        expect(jar.cookies.map(\.name), equals: ["long"])
        expect(jar.cookieHeader(for: try Self.url()), equals: "long=1")
        expect(CookieJar(file: folder.file, clock: clock).cookies.map(\.name), equals: ["long"])
    }

    @Test("SEC-3: a file that is too large is not read, and the error says so")
    func largeFile() throws {
        let folder = try Folder()
        try FileManager.default.createDirectory(at: folder.url, withIntermediateDirectories: true)
        expect(FileManager.default.createFile(atPath: folder.file.path, contents: nil))
        let handle = try FileHandle(forWritingTo: folder.file)
        try handle.truncate(atOffset: 3_000_000_000)
        try handle.close()
        let jar = CookieJar(file: folder.file)
        expect(jar.readError?.message?.contains("the file has more than 67108864 bytes"), equals: true)
        expect(folder.names == ["cookies.json.damaged"] && jar.cookies.isEmpty)
    }

    @Test("SEC-3: a file keeps persistent cookies exactly and in order, and only its owner can read it")
    func file() async throws {
        let folder = try Folder()
        let file = folder.url.appendingPathComponent("deeper/cookies.json")
        let now = Date()
        let jar = CookieJar(file: file)
        expect(jar.readError == nil)
        jar.store(
            [
                "Set-Cookie": "z=\"ä\t\" ; Max-Age=1000.5; Max-Age=1000; Domain=h.example; HttpOnly; Secure",
                "set-cookie": "session=1", "SET-COOKIE": "a=2; Expires=Sun, 06 Nov 2094 08:49:37 GMT; Path=/a",
            ],
            from: try Self.url(),
            at: now
        )
        try await jar.save()
        let again = CookieJar(file: file)
        expect(again.readError == nil)
        expect(again.cookies.count, equals: 2)
        expect(zip(again.cookies, jar.cookies.filter { $0.expiresDate != nil }).allSatisfy { $0.isAlmost($1) })
        expect(again.cookies.map(\.name), equals: ["z", "a"])
        let attributes = try FileManager.default.attributesOfItem(atPath: file.path)
        expect(attributes[.posixPermissions] as? Int, equals: 0o600)
        try expect(
            FileManager.default.contentsOfDirectory(atPath: file.deletingLastPathComponent().path).count,
            equals: 1
        )
    }

    @Test("SEC-3: a file with a cookie whose path has a semicolon, as the URL had, can be read again")
    func semicolonInPath() async throws {
        let folder = try Folder()
        let jar = CookieJar(file: folder.file)
        let url = try #require(URL(string: "https://h.example/a;v=1/b"))
        jar.store(["Set-Cookie": "a=1; Max-Age=900"], from: url)
        try await jar.save()
        let again = CookieJar(file: folder.file)
        expect(again.readError == nil)
        expect(again.cookieHeader(for: url), equals: "a=1")
    }

    @Test("SEC-3: removed and expired cookies are not in the file")
    func removal() async throws {
        let folder = try Folder()
        let jar = CookieJar(file: folder.file)
        jar.store(["Set-Cookie": "a=1; Max-Age=900", "set-cookie": "b=1; Max-Age=900"], from: try Self.url())
        try await jar.save()
        jar.remove { $0.name == "a" }
        let past = HTTPCookie(
            properties: [.name: "b", .value: "", .domain: "h.example", .path: "/a", .expires: Date.distantPast]
        )
        try jar.set(try #require(past))
        try await jar.save()
        expect(CookieJar(file: folder.file).cookies.isEmpty)
    }

    @Test("SEC-3: without a save the file is written soon, once for many changes, with the last state")
    func background() async throws {
        let folder = try Folder()
        let jar = CookieJar(file: folder.file)
        for index in 0..<200 {
            jar.store(["Set-Cookie": "a=\(index); Max-Age=900"], from: try Self.url())
        }
        await expect(eventually { CookieJar(file: folder.file).cookies.map(\.value) == ["199"] })
        jar.store(["Set-Cookie": "a=later; Max-Age=900"], from: try Self.url())
        await expect(eventually { CookieJar(file: folder.file).cookies.map(\.value) == ["later"] })
        expect(folder.names, equals: ["cookies.json"])
    }

    @Test("SEC-3: a damaged file gives an empty jar and an error, and is renamed")
    func damaged() async throws {
        let folder = try Folder()
        let jar = CookieJar(file: folder.file)
        jar.store(["Set-Cookie": "a=1; Max-Age=900"], from: try Self.url())
        try await jar.save()
        let sound = try Data(contentsOf: folder.file)
        let garbage = [
            Data(), Data("{".utf8), Data("[]".utf8), Data([0xFF, 0x00]), sound.dropLast(1),
            sound.prefix(sound.count / 2),
            Data(#"{"version":2,"cookies":[]}"#.utf8),
            Data(String(decoding: sound, as: UTF8.self).replacingOccurrences(of: "\"a\"", with: "\"a;\"").utf8),
        ]
        for bytes in garbage {
            try bytes.write(to: folder.file)
            let again = CookieJar(file: folder.file)
            expect(again.cookies.isEmpty)
            expect(again.readError?.code, equals: .invalidRequest)
            expect(again.readError?.message?.contains("renamed to"), equals: true)
            expect(folder.names, equals: ["cookies.json.damaged"])
            try expect(Data(contentsOf: folder.url.appendingPathComponent("cookies.json.damaged")), equals: bytes)
            again.store(["Set-Cookie": "b=1; Max-Age=900"], from: try Self.url())
            try await again.save()
            expect(CookieJar(file: folder.file).cookies.map(\.name), equals: ["b"])
        }
    }

    @Test("SEC-3: a truncated file gives an empty jar", arguments: UInt64(1)...3)
    func cut(seed: UInt64) async throws {
        var generator = SeededGenerator(seed: seed)
        let folder = try Folder()
        let jar = CookieJar(file: folder.file)
        for index in 0..<10 { jar.store(["Set-Cookie": "c\(index)=1; Max-Age=900"], from: try Self.url()) }
        try await jar.save()
        let sound = try Data(contentsOf: folder.file)
        for _ in 0..<50 {
            let length = Int.random(in: 0..<sound.count, using: &generator)
            try sound.prefix(length).write(to: folder.file)
            let again = CookieJar(file: folder.file)
            expect(again.cookies.isEmpty, "seed \(seed), cut at \(length)")
            expect(again.readError != nil, "seed \(seed), cut at \(length)")
        }
    }

    @Test("SEC-3: after a failed write the cookies stay in memory, no file is left over, and the next save tries again")
    func unwritable() async throws {
        let folder = try Folder()
        let blocked = folder.url.appendingPathComponent("blocked")
        try Data().write(to: blocked)
        // A file in place of the folder stops root, too.
        let file = blocked.appendingPathComponent("cookies.json")
        let jar = CookieJar(file: file)
        jar.store(["Set-Cookie": "a=1; Max-Age=900"], from: try Self.url())
        for _ in 0..<2 {
            let error = await #expect(throws: NetworkError.self) { try await jar.save() }
            expect(error?.code, equals: .invalidRequest)
            expect(error?.message?.contains(file.path), equals: true)
        }
        expect(jar.cookies.map(\.name), equals: ["a"])
        expect(folder.names, equals: ["blocked"])
        try FileManager.default.removeItem(at: blocked)
        try await jar.save()
        expect(CookieJar(file: file).cookies.map(\.name), equals: ["a"])
    }

    @Test("SEC-3: a folder in the place of the file is not renamed")
    func folder() async throws {
        let folder = try Folder()
        let jar = CookieJar(file: folder.url)
        expect(jar.readError != nil)
        jar.store(["Set-Cookie": "a=1; Max-Age=900"], from: try Self.url())
        let error = await #expect(throws: NetworkError.self) { try await jar.save() }
        expect(error?.code, equals: .invalidRequest)
        var isDirectory = ObjCBool(false)
        expect(FileManager.default.fileExists(atPath: folder.url.path, isDirectory: &isDirectory))
        expect(isDirectory.boolValue)
        expect(jar.cookies.map(\.name), equals: ["a"])
    }

    @Test("SEC-3: a pipe in the place of the file is not waited for, and stays")
    func pipe() throws {
        let folder = try Folder()
        expect(mkfifo(folder.file.path, 0o600), equals: 0)
        let file = folder.file
        let jar = try #require(unlessItWaits(for: file.path) { CookieJar(file: file) })
        expect(
            jar.readError?.message?.contains("stays, and cookies are not saved: it is not a regular file"),
            equals: true
        )
        expect(folder.names, equals: ["cookies.json"])
    }

    @Test("SEC-3: a jar can be used from many threads at once, also within a predicate")
    func threads() async throws {
        let folder = try Folder()
        let jar = CookieJar(file: folder.file)
        let url = try Self.url()
        await withTaskGroup(of: Void.self) { group in
            for task in 0..<8 {
                group.addTask {
                    for round in 0..<50 {
                        jar.store(["Set-Cookie": "c\(task)=\(round); Max-Age=900"], from: url)
                        _ = jar.cookieHeader(for: url)
                        jar.remove { cookie in cookie.name == "none" && !jar.cookies.isEmpty }
                    }
                }
            }
        }
        try await jar.save()
        expect(CookieJar(file: folder.file).cookies.map(\.value), equals: Array(repeating: "49", count: 8))
    }

    @Test("SEC-3: the check refuses a cookie that cannot be sent, and names it")
    func invalidCookies() {
        func message(_ cookie: Cookie) -> String? {
            #expect(throws: NetworkError.self) { try cookie.check() }?.message
        }
        expect(message(Cookie(name: "a;b", value: "", domain: "h.example"))?.contains("\"a;b\""), equals: true)
        for name in ["", "a=b", " a", "a\n"] {
            expect(message(Cookie(name: name, value: "", domain: "h.example")) != nil)
        }
        for value in ["a;b", "a\r\n", "a ", "\u{0}", String(repeating: "x", count: 4_096)] {
            expect(message(Cookie(name: "a", value: value, domain: "h.example")) != nil)
        }
        for domain in ["", Cookie.canonicalDomain("."), "a b", "a\n"] {
            expect(message(Cookie(name: "a", value: "", domain: domain)) != nil)
        }
        for domain in ["com", "127.0.0.1", "[::1]"] {
            expect(message(Cookie(name: "a", value: "", domain: domain, isHostOnly: false)) != nil)
        }
        for path in ["", "a", "/a\n"] {
            expect(message(Cookie(name: "a", value: "", domain: "h.example", path: path)) != nil)
        }
        expect(message(Cookie(name: "__Host-a", value: "", domain: "h.example", path: "/a")) != nil)
        expect(message(Cookie(name: "__Secure-a", value: "", domain: "h.example", isSecure: false)) != nil)
        let never = Date(timeIntervalSince1970: .infinity)
        expect(message(Cookie(name: "a", value: "", domain: "h.example", expires: never)) != nil)
    }

    @Test("SEC-3: programs see cookies as Foundation's, with all properties, and set them so")
    func foundation() throws {
        let jar = CookieJar()
        jar.store(
            [
                "Set-Cookie": "a=1; Domain=h.example; HttpOnly; Secure; Expires=Sun, 06 Nov 2094 08:49:37 GMT",
                "set-cookie": "b=\"ä\"",
            ],
            from: try Self.url()
        )
        let cookies = jar.cookies
        expect(cookies.map(\.domain) == [".h.example", "h.example"] && cookies.map(\.path) == ["/a", "/a"])
        expect(cookies.map(\.isSecure) == [true, false] && cookies.map(\.isHTTPOnly) == [true, false])
        expect(cookies.map { $0.expiresDate?.timeIntervalSince1970 }, equals: [3_939_871_777, nil])
        let other = CookieJar()
        for cookie in cookies { try other.set(cookie) }
        expect(zip(other.cookies, cookies).allSatisfy { $0.isAlmost($1) })
        expect(other.cookieHeader(for: try Self.url()), equals: "a=1; b=\"ä\"")
        let forged = HTTPCookie(properties: [.name: "a", .value: "1\r\nX: y", .domain: "h.example", .path: "/"])
        let error = #expect(throws: NetworkError.self) { try other.set(try #require(forged)) }
        expect(error?.code == .invalidRequest && other.cookies.count == 2)
    }
}

extension HTTPCookie {
    /// Equal except for the precision of the date in the file.
    fileprivate func isAlmost(_ other: HTTPCookie) -> Bool {
        name == other.name && value == other.value && domain == other.domain && path == other.path
            && isSecure == other.isSecure && isHTTPOnly == other.isHTTPOnly
            && abs((expiresDate?.timeIntervalSince1970 ?? 0) - (other.expiresDate?.timeIntervalSince1970 ?? 0)) < 0.001
    }
}
