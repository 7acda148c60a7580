import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import EasyNetworkTesting
@testable import TestSupport

@Suite("Uploads that resume: pauses, journals, users", .timeLimit(.minutes(10)))
struct UploadJournalTests {
    typealias Kind = ResumableUpload.Kind

    // MARK: - Pauses

    @Test(
        "TRF-7: a paused upload sends nothing, has no slot, and resumes where the server stopped",
        arguments: UploadFixture.kinds
    )
    func pause(kind: Kind) async throws {
        let fixture = try UploadFixture(kind, 1_000_000)
        let queue = NetworkQueue(name: "uploads", maxConcurrentOperationCount: 1)
        let upload = fixture.operation()
        await fixture.begin(upload, on: queue, upTo: 200_000)
        upload.pause()
        expect(upload.isPaused)
        // Another job gets the only slot.
        let other = TestJob { $0.finish() }
        queue.addOperation(other)
        await other.ended()
        let shown = upload.progress.completedUnitCount
        let count = fixture.server.requests.count
        expect(await staysFalse { fixture.server.requests.count > count || upload.isFinished })
        upload.resume()
        _ = try await upload.value
        expect(upload.progress.completedUnitCount >= shown && fixture.uploads.completed == [fixture.bytes])
        expect(fixture.methods.filter { $0 == "POST" }.count, equals: 1)
        expect(fixture.methods.filter { $0 == "HEAD" }.count <= 1)
    }

    @Test(
        "TRF-7: an upload that is paused before its start waits; its progress pauses and resumes it",
        arguments: UploadFixture.kinds
    )
    func pauseEarly(kind: Kind) async throws {
        let fixture = try UploadFixture(kind)
        let upload = fixture.operation()
        upload.progress.pause()
        expect(await eventually { upload.isPaused })
        NetworkQueue(name: "uploads").addOperation(upload)
        expect(await staysFalse { !fixture.server.requests.isEmpty })
        upload.progress.resume()
        _ = try await upload.value
        expect(fixture.uploads.completed, equals: [fixture.bytes])
    }

    @Test("TRF-7: random pauses and resumptions lose nothing", arguments: UploadFixture.kinds)
    func manyPauses(kind: Kind) async throws {
        let fixture = try UploadFixture(kind, 2_000_000)
        let upload = fixture.operation(partSize: 20_000)
        NetworkQueue(name: "uploads").addOperation(upload)
        for step in 1...40 where !upload.isFinished {
            await fixture.uploads.waitForBytes(step * 20_000)
            upload.pause()
            upload.resume()
        }
        _ = try await upload.value
        expect(fixture.uploads.completed, equals: [fixture.bytes])
        expect(fixture.methods.filter { $0 == "POST" }.count, equals: 1)
    }

    @Test("TRF-7: an upload gives its slot to an urgent job, and resumes afterwards", arguments: UploadFixture.kinds)
    func urgent(kind: Kind) async throws {
        let fixture = try UploadFixture(kind, 1_000_000)
        let queue = NetworkQueue(name: "uploads", maxConcurrentOperationCount: 1)
        let upload = fixture.operation()
        upload.queuePriority = .low
        await fixture.begin(upload, on: queue, upTo: 100_000)
        let hasSlot = Gate()
        let job = TestJob { _ in hasSlot.open() }
        queue.addOperation(job)
        await hasSlot.opened()
        expect(!upload.isFinished)
        expect(await staysFalse { upload.isFinished || fixture.uploads.offsets != [100_000] })
        job.finish()
        _ = try await upload.value
        expect(fixture.uploads.completed, equals: [fixture.bytes])
    }

    @Test("TRF-7: a pause does not interrupt the message that completes the upload")
    func pauseAtTheEnd() async throws {
        let fixture = try UploadFixture(.http, 10_000)
        let isLast = Gate()
        let uploads = fixture.uploads
        fixture.server.route("PATCH", "/files/1") { request in
            if request.headers["Upload-Complete"] == "?1" { isLast.open() }
            var response = uploads.respond(to: request)
            response.delay = 0.05
            return response
        }
        let upload = fixture.operation()
        NetworkQueue(name: "uploads").addOperation(upload)
        await isLast.opened()
        upload.pause()
        _ = try await upload.value
    }

    // MARK: - The journal

    private func path(_ fixture: UploadFixture) throws -> String {
        try fixture.journals.file(#require(fixture.journals.names.first)).path
    }

    @Test(
        "TRF-7: a changed file begins again, and says so",
        arguments: UploadFixture.kinds,
        ["length", "date", "bytes"]
    )
    func changedFile(kind: Kind, change: String) async throws {
        let fixture = try UploadFixture(kind)
        await fixture.breakOff(after: 30_000)
        var bytes = fixture.bytes
        let date = try FileManager.default.attributesOfItem(atPath: fixture.file.path)[.modificationDate]
        switch change {
        case "length": bytes.append(7)
        case "bytes": bytes[99_999] ^= 1
        default: break
        }
        try bytes.write(to: fixture.file)
        let kept = change == "date" ? Date(timeIntervalSince1970: 1_000_000_000) : date as? Date
        try FileManager.default.setAttributes([.modificationDate: kept ?? Date()], ofItemAtPath: fixture.file.path)
        let queue = NetworkQueue(name: "uploads")
        let events = queue.events
        let upload = fixture.operation()
        queue.addOperation(upload)
        var reasons: [String] = []
        for await event in events {
            if case .uploadStartedOver(let reason) = event.kind { reasons.append(reason) }
            if case .finished = event.kind { break }
        }
        _ = try await upload.value
        expect(reasons, equals: ["the file has changed since its upload began"])
        expect(fixture.uploads.completed, equals: [bytes])
    }

    /// Runs an upload of one part whose last response is lost.
    private func loseEnd(_ fixture: UploadFixture, change: (inout RequestOptions) -> Void = { _ in }) async {
        fixture.uploads.failResponse(number: fixture.server.requests.count + (fixture.kind == .tus ? 1 : 2))
        let error = await fixture.run(fixture.operation(change: change)).failure
        expect(error?.code == .connectionLost && error?.mayHaveReachedServer == true, "\(String(describing: error))")
    }

    @Test(
        "TRF-7: after all bytes were sent, only a server that says so makes it begin again",
        arguments: UploadFixture.kinds
    )
    func changedAfterEnd(kind: Kind) async throws {
        let session = AuthenticationSession(TestTokens { _ in "new" }, credential: "ada")
        for change in ["date", "bytes", "user"] {
            let fixture = try UploadFixture(kind, 10_000, retries: 0) { $0.authentication = session }
            await loseEnd(fixture)
            switch change {
            case "date":
                let path = fixture.file.path
                try FileManager.default.setAttributes([.modificationDate: Date.distantPast], ofItemAtPath: path)
            case "bytes": try Data(fixture.bytes.reversed()).write(to: fixture.file)
            default: session.signIn("ada")
            }
            let result = await fixture.run(fixture.operation())
            if change == "date" {
                expect(result.failure?.code, equals: kind == .tus ? nil : .cannotParseResponse)
            } else {
                expect(result.failure?.code == .cannotSendAgain && result.failure?.mayHaveReachedServer == true)
            }
            expect(fixture.methods.filter { $0 == "POST" }.count, equals: 1, "\(change)")
            expect(fixture.uploads.completed, equals: [fixture.bytes])
        }
    }

    @Test(
        "TRF-7: if the user or the file changes after the message that completes the upload, it is not sent again",
        arguments: [(Kind.tus, "user"), (Kind.http, "user"), (Kind.http, "file")]
    )
    func changesAfterLastMessage(kind: Kind, change: String) async throws {
        let session = AuthenticationSession(TestTokens { _ in "new" }, credential: "ada")
        let fixture = try UploadFixture(kind, 10_000) { $0.authentication = session }
        let (uploads, file) = (fixture.uploads, fixture.file)
        fixture.server.route("PATCH", "/files/1") { request in
            var response = uploads.respond(to: request)
            guard uploads.completed.count == 1 else { return response }
            response.fault = .reset
            if change == "user" { session.signIn("eve") }
            return response
        }
        if change == "file" {
            // The server has all bytes, and is busy with the message that completes the upload.
            fixture.server.route("HEAD", "/files/1") { _ in
                try? Data("other".utf8).write(to: file)
                return .status(204, headers: ["Upload-Offset": "10000", "Upload-Complete": "?0"])
            }
        }
        let error = await fixture.run(fixture.operation()).failure
        expect(error?.code, equals: .cannotSendAgain)
        expect(error?.mayHaveReachedServer == true, "\(String(describing: error))")
        expect(fixture.methods.filter { $0 == "POST" }.count, equals: 1)
        expect(fixture.uploads.completed, equals: [fixture.bytes])
        expect(await eventually { fixture.journals.names.isEmpty })
    }

    @Test("TRF-7: a file that cannot be read after its last byte has not changed, so the journal stays")
    func unreadableAfterLastMessage() async throws {
        let fixture = try UploadFixture(.http, 10_000)
        let (uploads, file) = (fixture.uploads, fixture.file)
        fixture.server.route("PATCH", "/files/1") { request in
            var response = uploads.respond(to: request)
            if uploads.completed.count == 1 { response.fault = .reset }
            return response
        }
        fixture.server.route("HEAD", "/files/1") { _ in
            try? FileManager.default.moveItem(at: file, to: file.appendingPathExtension("away"))
            return .status(204, headers: ["Upload-Offset": "10000", "Upload-Complete": "?0"])
        }
        let error = await fixture.run(fixture.operation()).failure
        expect(error?.code, equals: .invalidRequest)
        expect(fixture.journals.names.count, equals: 1)
        expect(fixture.methods.filter { $0 == "POST" }.count, equals: 1)
    }

    @Test("TRF-7: in a journal of its owner, another request begins again", arguments: UploadFixture.kinds)
    func ownedJournal(kind: Kind) async throws {
        let fixture = try UploadFixture(kind, retries: 0)
        let journal = fixture.journals.file("own")
        fixture.uploads.failResponse(number: 4)
        await fixture.run(fixture.operation { $0.resuming?.journal = journal })
        expect(fixture.journals.names, equals: ["own"])
        let other = fixture.operation(headers: ["Idempotency-Key": "other"]) { $0.resuming?.journal = journal }
        _ = try await fixture.run(other).get()
        expect(fixture.methods.filter { $0 == "POST" }.count, equals: 2)
        expect(fixture.uploads.completed, equals: [fixture.bytes])
        expect(await eventually { fixture.journals.names.isEmpty })
    }

    @Test("TRF-7: requests with different idempotency keys are different uploads", arguments: UploadFixture.kinds)
    func keys(kind: Kind) async throws {
        let fixture = try UploadFixture(kind, 10_000, retries: 0)
        await loseEnd(fixture) { $0.idempotencyKey = "one" }
        _ = try await fixture.run(fixture.operation { $0.idempotencyKey = "two" }).get()
        expect(fixture.uploads.completed, equals: [fixture.bytes, fixture.bytes])
        await fixture.run(fixture.operation { $0.idempotencyKey = "one" })
        expect(fixture.uploads.completed.count, equals: 2)
    }

    @Test("TRF-7: a file that changes during its upload begins again", arguments: UploadFixture.kinds)
    func changesMeanwhile(kind: Kind) async throws {
        let fixture = try UploadFixture(kind)
        let upload = fixture.operation()
        let uploads = fixture.uploads
        let (file, bytes) = (fixture.file, Data(fixture.bytes.reversed()))
        let hasChanged = Locked(false)
        fixture.server.route("PATCH", "/files/1") { request in
            if request.headers["Upload-Offset"] == "50000", !hasChanged.exchange(true) {
                try? bytes.write(to: file)
                try? FileManager.default.setAttributes([.modificationDate: Date.distantPast], ofItemAtPath: file.path)
            }
            return uploads.respond(to: request)
        }
        _ = try await fixture.run(upload).get()
        expect(fixture.uploads.completed, equals: [bytes])
    }

    /// Shortens a file before its first part is read.
    private struct Shortener: RequestInterceptor {
        let file: URL
        let count: Int
        let isDone = Locked(false)

        func adapt(_ message: TransportRequest, context: AttemptContext) async throws -> TransportRequest {
            if message.method == .patch, !isDone.exchange(true) { truncate(file.path, off_t(count)) }
            return message
        }
    }

    @Test("TRF-7: a file that becomes shorter while it is read begins again", arguments: UploadFixture.kinds)
    func shortens(kind: Kind) async throws {
        let fixture = try UploadFixture(kind, 4_000_000)
        let shortener = Shortener(file: fixture.file, count: 1_000_000)
        let upload = fixture.operation(partSize: 3_000_000) { $0.interceptors = [shortener] }
        _ = try await fixture.run(upload).get()
        expect(fixture.uploads.completed, equals: [fixture.bytes.prefix(1_000_000)])
    }

    @Test(
        "TRF-7: the start and the end of an upload are posted once, whatever it sends",
        arguments: UploadFixture.kinds
    )
    func notifications(kind: Kind) async throws {
        let fixture = try UploadFixture(kind) { $0.postsNotifications = true }
        let names = [
            EasyNetworkService.requestDidStartNotification, EasyNetworkService.requestDidFinishNotification,
        ]
        let posted = Locked<[Notification.Name]>([])
        let observers = names.map { name in
            NotificationCenter.default.addObserver(forName: name, object: fixture.host, queue: nil) { _ in
                posted.withLock { $0.append(name) }
            }
        }
        defer { for observer in observers { NotificationCenter.default.removeObserver(observer) } }
        _ = try await fixture.run(fixture.operation()).get()
        expect(posted.withLock { $0 }, equals: names)
    }

    @Test(
        "TRF-7: two operations never upload the same at once, and a second process is refused",
        arguments: UploadFixture.kinds
    )
    func exclusive(kind: Kind) async throws {
        let fixture = try UploadFixture(kind, retries: 0)
        fixture.uploads.failResponse(number: 3)
        await fixture.run(fixture.operation())
        let journal = try path(fixture)
        let descriptor = open(journal, O_RDWR)
        expect(flock(descriptor, LOCK_EX | LOCK_NB), equals: 0)
        expect(await fixture.run(fixture.operation()).failure?.code, equals: .refused)
        let error = await #expect(throws: NetworkError.self) { try await fixture.operation().discard() }
        expect(error?.code, equals: .refused)
        close(descriptor)
        let (one, two) = (fixture.operation(), fixture.operation())
        fixture.uploads.failNextResponses(with: .stall)
        let queue = NetworkQueue(name: "uploads")
        queue.addOperation(one)
        await fixture.server.waitForRequests(5)
        expect(await fixture.run(two).failure?.code, equals: .refused)
        one.cancel()
        _ = try await fixture.run(fixture.operation()).get()
        expect(fixture.uploads.completed, equals: [fixture.bytes])
    }

    @Test(
        "TRF-7: any bytes in the journal's place: it is read as a journal, or the upload begins again",
        arguments: UploadFixture.kinds
    )
    func hostileJournals(kind: Kind) async throws {
        let fixture = try UploadFixture(kind, 20_000, retries: 0)
        fixture.uploads.failResponse(number: 2)
        await fixture.run(fixture.operation())
        let journal = try path(fixture)
        let whole = try Data(contentsOf: URL(fileURLWithPath: journal))
        expect(UploadJournalTests.permissions(journal), equals: 0o600)
        var files = [Data(), Data("{".utf8), Data(repeating: 0, count: 100_000), whole + Data("{\"vers".utf8)]
        for cut in stride(from: 1, to: whole.count, by: 17) { files.append(whole.prefix(cut)) }
        var generator = SeededGenerator(seed: 7)
        for _ in 0..<20 {
            var bytes = whole
            bytes[Int.random(in: 0..<bytes.count, using: &generator)] = UInt8.random(in: 0...255, using: &generator)
            files.append(bytes)
        }
        for bytes in files {
            try bytes.write(to: URL(fileURLWithPath: journal))
            let read = try UploadJournal(journal, at: Date())
            if bytes.count > whole.count, bytes.count < 100_000 { expect(read.record != nil) }
            read.close(removing: false)
        }
        // A link in its place is neither followed nor removed.
        let victim = fixture.folder.write("precious", to: "victim")
        unlink(journal)
        try FileManager.default.createSymbolicLink(atPath: journal, withDestinationPath: victim.path)
        expect(await fixture.run(fixture.operation()).failure?.code, equals: .cannotWriteFile)
        expect(fixture.folder.data("victim"), equals: Data("precious".utf8))
    }

    /// A record, with a URL of some length.
    private func record(_ number: Int, _ count: Int = 0) -> UploadRecord {
        let url = "https://example.com/files/\(number)" + String(repeating: "x", count: count)
        return UploadRecord(identity: "a", source: UploadSource.Fingerprint(length: 1), address: URL(string: url))
    }

    @Test("TRF-7: a kill at any byte of any write of the journal leaves the record before it, or the one after it")
    func killedWrites() throws {
        let folder = TestFolder()
        let file = folder.file("journal.upload")
        let journal = try UploadJournal(file.path, at: Date())
        // Each slot gets a longer record, and a shorter one.
        for (number, length) in [0, 0, 30, 30, 0, 0].enumerated() {
            let (before, old, new) = (try Data(contentsOf: file), journal.record, record(number, length))
            try journal.save(new)
            let after = try Data(contentsOf: file)
            // Nothing is cut off before the write.
            expect(after.count >= before.count)
            let changed = after.indices.filter { $0 >= before.count || after[$0] != before[$0] }
            let (first, end) = (try #require(changed.first), try #require(changed.last) + 1)
            for count in first...end {
                // A write that ended early leaves the rest of the earlier bytes.
                let read = UploadJournal.newest(in: Array(after.prefix(count) + before.dropFirst(count)))?.record
                expect(read == new ? count > first : count < end && read == old, "\(number), \(count)")
            }
        }
        // Long records need no more room either.
        for number in 6..<12 { try journal.save(record(number, 10_000)) }
        try expect(Data(contentsOf: file).count <= 65_536)
        journal.close(removing: false)
        let read = try UploadJournal(file.path, at: Date())
        expect(read.record, equals: record(11, 10_000))
        read.close(removing: true)
    }

    private static func permissions(_ path: String) -> Int? {
        let attributes = try? FileManager.default.attributesOfItem(atPath: path)
        return (attributes?[.posixPermissions] as? NSNumber)?.intValue
    }

    @Test("TRF-7: old journals are removed, except open ones")
    func cleanup() throws {
        let folder = TestFolder()
        let old = try UploadJournal(UploadJournal.path(of: "open", .tus(directory: folder.url)), at: Date())
        for name in ["a.upload", "b.txt"] {
            folder.write("x", to: name)
            try FileManager.default.setAttributes(
                [.modificationDate: Date(timeIntervalSinceNow: -31 * 24 * 3_600)],
                ofItemAtPath: folder.file(name).path
            )
        }
        let other = TestFolder()
        for name in folder.names where name.hasSuffix(".txt") || name == "a.upload" {
            try FileManager.default.moveItem(at: folder.file(name), to: other.file(name))
        }
        let journal = try UploadJournal(UploadJournal.path(of: "new", .tus(directory: other.url)), at: Date())
        expect(!other.names.contains("a.upload") && other.names.contains("b.txt"))
        journal.close(removing: true)
        old.close(removing: false)
        expect(folder.names.isEmpty && other.names == ["b.txt"])
    }

    // MARK: - Users and credentials

    @Test("TRF-7: the journal has no credential, and another origin gets none", arguments: UploadFixture.kinds)
    func credentials(kind: Kind) async throws {
        let fixture = try UploadFixture(kind, retries: 0) { settings in
            settings.authentication = AuthenticationSession(TestTokens { _ in "fresh" }, credential: "secret-token")
            settings.cookies = CookieJar()
        }
        let other = try MockServer()
        let others = other.routeUploads("/files", kind == .tus ? .tus : .http)
        let target = other.baseURL.appendingPathComponent("files/1").absoluteString
        let uploads = fixture.uploads
        fixture.server.route("POST", "/files") { request in
            var response = uploads.respond(to: request)
            _ = others.respond(to: request)
            response.headers["Location"] = target
            response.headers["Set-Cookie"] = "session=cookie-secret; Path=/"
            return response
        }
        others.failResponse(number: 4)
        let headers = ["X-Api-Key": "key-secret", "X-Kind": "film"]
        await fixture.run(fixture.operation(headers: headers))
        let journal = try #require(fixture.journals.data(fixture.journals.names[0]))
        for secret in ["secret-token", "key-secret", "cookie-secret"] {
            expect(journal.range(of: Data(secret.utf8)) == nil)
        }
        _ = try await fixture.run(fixture.operation(headers: headers)).get()
        expect(others.completed, equals: [fixture.bytes])
        expect(fixture.server.requests.allSatisfy { $0.headers["Authorization"] == "Bearer secret-token" })
        for request in other.requests {
            expect(request.headers["Authorization"] == nil && request.headers["X-Api-Key"] == nil)
            expect(request.headers["Cookie"] == nil && request.headers["X-Kind"] == "film")
        }
    }

    /// Adds secrets to every message.
    private struct Secrets: RequestInterceptor {
        func adapt(_ message: TransportRequest, context: AttemptContext) async throws -> TransportRequest {
            var message = message
            message.headers["Authorization"] = "Bearer secret"
            message.headers["Referer"] = "https://example.com/secret"
            message.headers["X-Kind"] = "film"
            return message
        }
    }

    @Test(
        "TRF-7: another origin gets no credential of an interceptor, unless the redirect policy allows it",
        arguments: UploadFixture.kinds,
        [true, false]
    )
    func interceptors(kind: Kind, isAllowed: Bool) async throws {
        let fixture = try UploadFixture(kind)
        let other = try MockServer()
        let others = other.routeUploads("/files", kind == .tus ? .tus : .http)
        let target = other.baseURL.appendingPathComponent("files/1").absoluteString
        fixture.server.route("POST", "/files") { request in
            var response = others.respond(to: request)
            response.headers["Location"] = target
            return response
        }
        let upload = fixture.operation(headers: ["From": "ada@example.com"]) { options in
            options.interceptors = [Secrets()]
            options.redirects = RedirectPolicy(crossOriginHeaders: isAllowed ? ["Authorization"] : [])
        }
        _ = try await fixture.run(upload).get()
        expect(others.completed, equals: [fixture.bytes])
        expect(fixture.server.requests.map { $0.headers["Authorization"] }, equals: ["Bearer secret"])
        for request in other.requests {
            expect(request.headers["Authorization"], equals: isAllowed ? "Bearer secret" : nil)
            expect(request.headers["Referer"] == nil && request.headers["From"] == nil)
            expect(request.headers["X-Kind"], equals: "film")
        }
    }

    @Test(
        "TRF-7: the request's own origin gets its credentials with each message, refreshed if need be",
        arguments: UploadFixture.kinds
    )
    func refreshed(kind: Kind) async throws {
        let fixture = try UploadFixture(kind) { settings in
            settings.authentication = AuthenticationSession(TestTokens { _ in "new" }, credential: "old")
        }
        let uploads = fixture.uploads
        fixture.server.route("PATCH", "/files/1") { request in
            let isOld = request.headers["Authorization"] == "Bearer old"
            return isOld && uploads.offsets[0] >= 50_000 ? .status(401) : uploads.respond(to: request)
        }
        _ = try await fixture.run(fixture.operation()).get()
        expect(fixture.uploads.completed, equals: [fixture.bytes])
        expect(fixture.server.requests.allSatisfy { $0.headers["Authorization"] != nil })
        expect(fixture.methods.filter { $0 == "POST" }.count, equals: 1)
    }

    @Test("TRF-7: another user who signs in begins again, also during the upload", arguments: UploadFixture.kinds)
    func otherUser(kind: Kind) async throws {
        let session = AuthenticationSession(TestTokens { _ in "new" }, credential: "ada")
        let fixture = try UploadFixture(kind, retries: 0) { $0.authentication = session }
        fixture.uploads.failResponse(number: 4)
        await fixture.run(fixture.operation())
        session.signIn("eve")
        let uploads = fixture.uploads
        let hasChanged = Locked(false)
        fixture.server.route("PATCH", "/files/2") { request in
            let response = uploads.respond(to: request)
            if uploads.offsets.last == 50_000, !hasChanged.exchange(true) { session.signIn("bob") }
            return response
        }
        _ = try await fixture.run(fixture.operation()).get()
        expect(fixture.uploads.completed, equals: [fixture.bytes])
        let users = fixture.server.requests.map { ($0.path, $0.headers["Authorization"] ?? "") }
        expect(users.allSatisfy { path, user in path != "/files/1" || user == "Bearer ada" })
        expect(users.allSatisfy { path, user in path != "/files/2" || user == "Bearer eve" })
        expect(users.allSatisfy { path, user in path != "/files/3" || user == "Bearer bob" })
        expect(fixture.methods.filter { $0 == "POST" }.count, equals: 3)
    }

    @Test("TRF-7: hosts with different partitions of users have different journals", arguments: UploadFixture.kinds)
    func partitions(kind: Kind) async throws {
        let fixture = try UploadFixture(kind, retries: 0)
        fixture.uploads.failResponse(number: 4)
        await fixture.run(fixture.operation())
        let host = fixture.server.host { $0.cachePartition = "eve" }
        let upload = UploadOperation(
            UploadFixture.Post(options: RequestOptions(resuming: fixture.settings())),
            from: .file(fixture.file),
            service: EasyNetworkService(host)
        )
        _ = try await fixture.run(upload).get()
        expect(fixture.methods.filter { $0 == "POST" }.count, equals: 2)
        expect(await eventually { fixture.journals.names.count == 1 })
    }

    // MARK: - Discarding

    @Test(
        "TRF-7: discard deletes the upload on the server, and the next one begins again",
        arguments: UploadFixture.kinds
    )
    func discard(kind: Kind) async throws {
        let fixture = try UploadFixture(kind, 1_000_000)
        let upload = fixture.operation()
        await fixture.begin(upload, on: NetworkQueue(name: "uploads"), upTo: 100_000)
        try await upload.discard()
        expect(upload.isCancelled && fixture.methods.last == "DELETE")
        expect(fixture.uploads.offsets.isEmpty && fixture.journals.names.isEmpty)
        // Nothing is left to discard.
        let count = fixture.server.requests.count
        try await fixture.operation().discard()
        expect(fixture.server.requests.count, equals: count)
        // An operation that never started discards the upload of another one.
        await fixture.breakOff(after: 200_000)
        try await fixture.operation().discard()
        expect(fixture.uploads.offsets.isEmpty && fixture.journals.names.isEmpty)
        // A failure keeps the journal.
        await fixture.breakOff(after: 200_000)
        fixture.server.route("DELETE", "/files/3") { _ in .status(403) }
        let error = await #expect(throws: NetworkError.self) { try await fixture.operation().discard() }
        expect(error?.statusCode == 403 && fixture.journals.names.count == 1)
    }
}
