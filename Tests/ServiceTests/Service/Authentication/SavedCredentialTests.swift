import EasyNetworkTesting
import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("A credential that is saved")
struct SavedCredentialTests {
    /// What a program would find at its next launch, and all that it was told.
    private final class Store: Sendable {
        private let state = Locked<[String?]>([])
        var saved: [String?] { state.withLock { $0 } }
        func save(_ credential: String?) { state.withLock { $0.append(credential) } }
    }

    private static func session(
        _ tokens: TestTokens = TestTokens { _ in "new" },
        _ save: @escaping @Sendable (String?) -> Void
    ) -> AuthenticationSession<TestTokens> {
        AuthenticationSession(tokens, credential: "old", clock: ManualClock(), save: save)
    }

    @Test("CBK-7: each change is saved before it returns, nil after a sign-out, the first credential not")
    func changes() {
        let store = Store()
        let session = Self.session { store.save($0) }
        expect(store.saved, equals: [])
        session.signIn("a")
        expect(store.saved, equals: ["a"])
        session.signIn("b")
        session.signOut()
        expect(store.saved, equals: ["a", "b", nil])
    }

    @Test("CBK-7: a refreshed credential is saved before it is sent; a refresh that fails saves nothing")
    func refreshed() async throws {
        struct Refused: Error {}
        let store = Store()
        let next = Locked<String?>("new")
        let session = Self.session(TestTokens { _ in try next.withLock { try $0 ?? { throw Refused() }() } }) {
            store.save($0)
        }
        let good = Locked("new")
        let savedWhenSent = Locked<[String?]>([])
        let client = SessionClient(session) { token in
            guard token == good.withLock({ $0 }) else { return NetworkResponse(statusCode: 401) }
            savedWhenSent.withLock { $0 = store.saved }
            return NetworkResponse(statusCode: 200)
        }
        try await expect(client.start().result.get().statusCode, equals: 200)
        expect(savedWhenSent.withLock { $0 }, equals: ["new"])
        next.withLock { $0 = nil }
        good.withLock { $0 = "another" }
        await #expect(throws: NetworkError.self) { try await client.start().result.get() }
        expect(store.saved, equals: ["new"])
    }

    @Test("CBK-7: what a refresh gets after a sign-out is not saved")
    func signedOutDuringRefresh() async {
        let store = Store()
        let gate = Gate()
        let tokens = TestTokens { _ in
            await gate.opened()
            return "late"
        }
        weak var released: AuthenticationSession<TestTokens>?
        do {
            let session = Self.session(tokens) { store.save($0) }
            released = session
            let job = await SessionClient(session) { _ in NetworkResponse(statusCode: 401) }.start()
            session.signOut()
            await #expect(throws: NetworkError.self) { try await job.result.get() }
        }
        gate.open()
        // The refresh has the session until it is over.
        await expect(eventually { released == nil })
        expect(store.saved, equals: [nil])
    }

    @Test("CBK-7: changes during a save wait for nobody, and the last of them is saved after it")
    func changesDuringSave() {
        let store = Store()
        let shared = Locked<AuthenticationSession<TestTokens>?>(nil)
        let session = Self.session { credential in
            guard credential == "a", let session = shared.withLock({ $0 }) else { return store.save(credential) }
            session.signIn("b")
            let hasReturned = DispatchSemaphore(value: 0)
            Thread {
                session.signIn("c")
                session.signOut()
                hasReturned.signal()
            }.start()
            hasReturned.wait()
            store.save(credential)
        }
        shared.withLock { $0 = session }
        session.signIn("a")
        expect(store.saved, equals: ["a", nil])
        shared.withLock { $0 = nil }
    }

    @Test("CBK-7: of changes by many threads one is saved at a time, and at last the one that holds")
    func manyThreads() {
        let store = Store()
        let saving = Locked(0)
        let session = Self.session { credential in
            let count = saving.next()
            expect(count, equals: 1)
            store.save(credential)
            saving.withLock { $0 -= 1 }
        }
        DispatchQueue.concurrentPerform(iterations: 4000) { index in
            if index.isMultiple(of: 3) { session.signOut() } else { session.signIn("\(index)") }
        }
        expect(saving.withLock { $0 }, equals: 0)
        expect(store.saved.last, equals: .some(session.credential))
    }
}
