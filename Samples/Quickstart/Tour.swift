import EasyNetwork
import EasyNetworkTesting
import Foundation

/// Seven jobs against a local HTTP server. Each line names a feature and what it did.
enum Tour {
    /// - Returns: Whether all jobs had the expected results.
    static func run() async -> Bool {
        do {
            let server = try startServer()
            defer { server.stop() }
            try HostConfiguration.baseURL(server.baseURL.absoluteString)
            report("MockServer", "started on \(server.baseURL.absoluteString)")
            try await signInAndReadProfile()
            try await signInTheOlderWay()
            try await readList()
            let hasFailed = await fail()
            let wasCancelled = await cancel(server)
            let isFine = hasFailed && wasCancelled
            if isFine { print("\nAll seven jobs ended as expected. To see many jobs at once, run: swift run Feed") }
            return isFine
        } catch {
            print("failed: \(error.localizedDescription)")
            return false
        }
    }

    /// Chains a profile request to a sign-in, because it needs the token.
    private static func signInAndReadProfile() async throws {
        let signIn = RequestOperation(SignIn(name: "ada"))
        let profile = signIn.then { session in GetProfile(token: session.token) }
        signIn.success = { session in
            report("RequestOperation", "signed in as ada and received the token \(session.token)")
        }
        NetworkQueue.shared.addOperations([profile, signIn])
        let item = try await profile.value
        report("then", "sent that token and loaded the profile of \(item.name) in \(item.city)")
    }

    /// Signs in with an operation in the older style, and runs a typed job that depends on it.
    private static func signInTheOlderWay() async throws {
        let signIn = SignInOperation(SignIn(name: "grace"))
        signIn.success = { session in
            report("ServiceOperation", "a subclass signed in as grace and received the token \(session.token)")
        }
        signIn.failure = { error in report("ServiceOperation", "failed: \(error.localizedDescription)") }
        let articles = RequestOperation(GetArticles(topic: "compilers"))
        articles.addDependency(signIn)
        NetworkQueue.shared.addOperations([articles, signIn])
        let count = try await articles.value.count
        report("addDependency", "waited for that sign-in, then loaded \(count) articles")
    }

    /// Loads a list with a single call.
    private static func readList() async throws {
        let articles = try await NetworkQueue.shared.perform(GetArticles(topic: "R&D + life"))
        report("perform", "loaded \(articles.count) articles: \(articles.map(\.title).joined(separator: ", "))")
    }

    /// Requests an article that doesn't exist. The error contains the status and the server's message.
    private static func fail() async -> Bool {
        do {
            _ = try await NetworkQueue.shared.perform(GetAnswer(api: "articles/99"))
            return false
        } catch {
            report("NetworkError", "described a request that failed: \(error.localizedDescription)")
            return error.statusCode == 404
        }
    }

    /// Cancels an operation in flight.
    private static func cancel(_ server: MockServer) async -> Bool {
        let operation = RequestOperation(GetAnswer(api: "slow"))
        NetworkQueue.shared.addOperation(operation)
        await server.waitForRequests(7)
        NetworkQueue.shared.cancelAllOperations()
        do {
            _ = try await operation.value
            return false
        } catch {
            report(
                "cancelAllOperations",
                "stopped a request in flight, which failed with: \(error.localizedDescription)"
            )
            return error.code == .cancelled
        }
    }

    /// Prints a feature and what it did. `nonisolated`, because the closures of jobs run in the background.
    private nonisolated static func report(_ feature: String, _ event: String) {
        print(feature.padding(toLength: 21, withPad: " ", startingAt: 0) + event)
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
