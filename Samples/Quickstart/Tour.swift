import EasyNetwork
import EasyNetworkTesting
import Foundation

/// Seven jobs against a real HTTP server on this machine.
enum Tour {
    /// - Returns: whether all jobs had the expected results.
    static func run() async -> Bool {
        do {
            let server = try startServer()
            defer { server.stop() }
            try HostConfiguration.baseURL(server.baseURL.absoluteString)
            print("A server is listening on \(server.baseURL.absoluteString).")
            try await signInAndReadProfile()
            try await signInTheOlderWay()
            try await readList()
            let hasFailed = await fail()
            let wasCancelled = await cancel(server)
            return hasFailed && wasCancelled
        } catch {
            print("failed: \(error.localizedDescription)")
            return false
        }
    }

    /// Chains a request to another one, whose result it needs.
    private static func signInAndReadProfile() async throws {
        let signIn = RequestOperation(SignIn(name: "ada"))
        let profile = signIn.then { session in GetProfile(token: session.token) }
        signIn.success = { session in print("sign-in   token \(session.token)") }
        NetworkQueue.shared.addOperations([profile, signIn])
        let item = try await profile.value
        print("profile   \(item.name) of \(item.city), read with that token")
    }

    /// Signs in by an operation that wraps the service, and runs a typed job that depends on it.
    private static func signInTheOlderWay() async throws {
        let signIn = SignInOperation(SignIn(name: "grace"))
        signIn.success = { session in print("older way token \(session.token)") }
        signIn.failure = { error in print("older way \(error.localizedDescription)") }
        let articles = RequestOperation(GetArticles(topic: "compilers"))
        articles.addDependency(signIn)
        NetworkQueue.shared.addOperations([articles, signIn])
        print("after it  \(try await articles.value.count) articles")
    }

    private static func readList() async throws {
        let articles = try await NetworkQueue.shared.perform(GetArticles(topic: "R&D + life"))
        print("list      \(articles.count) articles: \(articles.map(\.title).joined(separator: ", "))")
    }

    /// Shows a failure with its status and the server's message.
    private static func fail() async -> Bool {
        do {
            _ = try await NetworkQueue.shared.perform(GetAnswer(api: "articles/99"))
            return false
        } catch {
            print("failure   \(error.localizedDescription)")
            return error.statusCode == 404
        }
    }

    /// Cancels an operation in flight, which ends at once.
    private static func cancel(_ server: MockServer) async -> Bool {
        let operation = RequestOperation(GetAnswer(api: "slow"))
        NetworkQueue.shared.addOperation(operation)
        await server.waitForRequests(7)
        NetworkQueue.shared.cancelAllOperations()
        do {
            _ = try await operation.value
            return false
        } catch {
            print("cancelled \(error.localizedDescription)")
            return error.code == .cancelled
        }
    }

    private static func startServer() throws -> MockServer {
        let server = try MockServer()
        server.route("POST", "/sign-in") { request in
            let name = (request.json() as? [String: Any])?["name"] as? String
            return .json(["token": "\(name ?? "nobody")-42"])
        }
        server.route("GET", "/profile") { request in
            guard request.headers["Authorization"] == "Bearer ada-42" else {
                return .json(["error": "sign in first"], status: 401)
            }
            return .json(["name": "Ada", "city": "London"])
        }
        server.route("GET", "/articles") { request in
            let topic = request.queryItems.first { $0.name == "topic" }?.value ?? "nothing"
            return .json([["title": "On \(topic)"], ["title": "On engines"]])
        }
        server.route("GET", "/articles/*") { _ in .json(["error": "there is no such article"], status: 404) }
        server.route("GET", "/slow") { _ in .fault(.stall) }
        return server
    }
}
