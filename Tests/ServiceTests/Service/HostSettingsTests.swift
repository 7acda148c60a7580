import EasyNetworkTesting
import Foundation
import Testing

#if canImport(FoundationNetworking)
import FoundationNetworking
#endif

@testable import EasyNetwork
@testable import TestSupport

@Suite("HostSettings")
struct HostSettingsTests {
    private struct Call: BaseAPIRequest {
        var api = "a"
        var method = NetworkService.Method.get
        var query = NetworkService.QueryType.path
        var useCDN = false
        var baseURL: URL?
        var headers: [String: String]?
        var customURLRequest: URLRequest?
        var options: RequestOptions {
            RequestOptions(baseURL: baseURL, useCDN: useCDN, customURLRequest: customURLRequest)
        }
        var count = 0
        var params: [String: Any]? { count == 0 ? nil : ["count": count] }

        func validateParameters() throws {
            if count < 0 { throw NetworkError(code: .invalidRequest, message: "count is negative") }
            if count > 10 { throw Excess() }
        }
    }

    private struct Excess: Error, CustomStringConvertible {
        var description: String { "count is too large" }
    }

    private let base: URL

    init() throws {
        base = try #require(URL(string: "https://api.example.com/v1"))
    }

    private func message(
        _ request: some BaseAPIRequest,
        _ change: (inout HostSettings) -> Void = { _ in }
    ) throws -> TransportRequest {
        try RequestBuilder.build(request, for: HostConfiguration(baseURL: base, change: change))
    }

    @Test("CFG-4: the CDN's base URL is used by the requests that ask for it, if there is one")
    func cdn() throws {
        let cdn = try #require(URL(string: "https://cdn.example.com/files"))
        func url(_ call: Call, _ cdnURL: URL?) throws -> String {
            try message(call) { $0.cdnURL = cdnURL }.url.absoluteString
        }
        try expect(url(Call(useCDN: true), cdn), equals: "https://cdn.example.com/files/a")
        try expect(url(Call(useCDN: false), cdn), equals: "https://api.example.com/v1/a")
        try expect(url(Call(useCDN: true), nil), equals: "https://api.example.com/v1/a")
        let own = URL(string: "https://own.example.com")
        try expect(url(Call(useCDN: true, baseURL: own), cdn), equals: "https://own.example.com/a")
        try expect(url(Call(api: "https://abs.example.com/x", useCDN: true), cdn), equals: "https://abs.example.com/x")
    }

    @Test("CFG-3: environments can be switched; the other host is a new one, and an unknown name an error")
    func environments() throws {
        let release = try #require(URL(string: "https://release.example.com"))
        let host = HostConfiguration(baseURL: base, headers: ["X-A": "1"]) { $0.environments = ["release": release] }
        let switched = try host.switched(to: "release") { $0.headers["X-B"] = "2" }
        expect(host.baseURL == base && switched.baseURL == release)
        expect(switched.settings.headers == ["X-A": "1", "X-B": "2"] && host.settings.headers == ["X-A": "1"])
        let error = #expect(throws: NetworkError.self) { try host.switched(to: "develop") }
        expect(error?.code == .invalidRequest && error?.message?.contains("\"develop\"; it has: release") == true)
    }

    /// Marks its messages and responses.
    private struct Marking: RequestInterceptor {
        let name: String

        func adapt(_ message: TransportRequest, context: AttemptContext) async throws -> TransportRequest {
            var message = message
            message.headers.add(name, for: "X-Interceptor")
            return message
        }

        func didReceive(_ result: Result<NetworkResponse, NetworkError>, context: AttemptContext) async
            -> ResponseDecision
        {
            guard let response = try? result.get(), let text = try? response.text() else { return .proceed }
            return .succeed(NetworkResponse(body: Data("\(text) back through \(name)".utf8)))
        }
    }

    /// A decoder that returns its name followed by the text.
    private func naming(_ name: String) -> ResponseDecoder {
        ResponseDecoder { type, response in
            let text = try response.text()
            return try JSONDecoder().decode(type, from: JSONEncoder().encode(["\(name) read: \(text)"]))
        }
    }

    private struct Words: APIRequest {
        typealias Item = [String]
        let api = "a"
    }

    @Test("CFG-3: several hosts side by side, each with its own headers, interceptors and decoder")
    func sideBySide() async throws {
        let transport = InMemoryTransport()
        transport.route("GET", "/v1/a") { request in
            .text("\(request.headers["X-Name"] ?? "nobody"), \(request.headers.values(for: "X-Interceptor"))")
        }
        func service(_ name: String) -> EasyNetworkService {
            EasyNetworkService(
                HostConfiguration(baseURL: base, headers: ["X-Name": name], transport: transport) { host in
                    host.interceptors = [Marking(name: name)]
                    host.decoder = naming(name)
                }
            )
        }
        let services = ["one": service("one"), "two": service("two"), "three": service("three")]
        for _ in 0..<2 {
            for (name, service) in services {
                let words = try await service.perform(Words())
                expect(words, equals: ["\(name) read: \(name), [\"\(name)\"] back through \(name)"])
            }
        }
    }

    @Test("RSP-6: a printed or dumped host and its settings show no secret")
    func secrecy() throws {
        let url = try #require(URL(string: "https://ada:s3cret@api.example.com/v1?token=s3cret"))
        let host = HostConfiguration(baseURL: url, headers: ["Authorization": "Bearer s3cret", "X-App": "shop"]) {
            $0.standardHeaders["X-Api-Key"] = "s3cret"
            $0.cdnURL = url
            $0.environments = ["release": url]
            $0.cachePartition = "s3cret"
            $0.authentication = AuthenticationSession(TestTokens { _ in "s3cret" }, credential: "s3cret")
        }
        let draft = RequestDraft(
            request: Call(),
            method: .post,
            url: url,
            parameters: ["password": "s3cret"],
            headers: host.settings.headers
        )
        let password = try RequestAuthentication.password(user: "ada", password: "s3cret")
        let jar = CookieJar()
        jar.store(["Set-Cookie": "session=s3cret"], from: url)
        for value in [host, host.settings, EasyNetworkService(host), draft, password, [host.settings], jar] as [Any] {
            var dumped = ""
            dump(value, to: &dumped)
            for text in ["\(value)", String(reflecting: value), dumped] {
                expect(!text.contains("s3cret") && !text.contains("ada:"), "\(text)")
            }
        }
        expect("\(host.settings)".contains("api.example.com/v1"))
        expect(String(reflecting: host.settings).contains("X-App: shop"))
    }

    private func common(_ name: String) -> @Sendable (inout RequestDraft) throws -> Void {
        { draft in
            if draft.url.path.hasSuffix("forbidden") { throw Excess() }
            draft.parameters["order"] = (draft.parameters["order"] as? String ?? "") + name
            draft.headers["X-Filter"] = (draft.headers["X-Filter"] ?? "") + name
            draft.url.appendPathComponent(name)
        }
    }

    @Test("CFG-5: filters change address, parameters and headers of every request, in order, absolute ones too")
    func filters() throws {
        let filters = [common("1"), common("2")]
        func filtered(_ call: Call) throws -> TransportRequest { try message(call) { $0.filters = filters } }
        let relative = try filtered(Call(api: "a?kept=1", headers: ["X-Filter": "0"], count: 3))
        expect(relative.url.absoluteString, equals: "https://api.example.com/v1/a/1/2?kept=1&count=3&order=12")
        expect(relative.headers["X-Filter"], equals: "012")
        let absolute = try filtered(Call(api: "https://other.example.com/x"))
        expect(absolute.url.absoluteString, equals: "https://other.example.com/x/1/2?order=12")
        let json = try filtered(Call(method: .post, query: .json, count: 3))
        expect(json.body == .data(Data(#"{"count":3,"order":"12"}"#.utf8)) && json.url.path == "/v1/a/1/2")
        let error = #expect(throws: NetworkError.self) { try filtered(Call(api: "forbidden")) }
        expect(error?.code == .invalidRequest && error?.underlying is Excess)
    }

    @Test("CFG-6: standard headers come last, then those of the host, then those of the request, whatever the case")
    func headers() throws {
        let headers = try message(Call(headers: ["user-agent": "mine"])) { $0.headers = ["accept-language": "tlh"] }
            .headers
        expect(headers.values(for: "User-Agent") == ["mine"] && headers.values(for: "Accept-Language") == ["tlh"])
        try expect(message(Call()).headers["User-Agent"]?.contains("EasyNetwork"), equals: true)
        try expect(message(Call()) { $0.standardHeaders = [:] }.headers.isEmpty)
    }

    @Test("CFG-6: Accept-Language has q-values, six languages at most, and nothing that is no language")
    func acceptLanguage() {
        expect(HTTPHeaders.acceptLanguage(["de-CH", "de", "en_GB"]), equals: "de-CH, de;q=0.9, en-GB;q=0.8")
        let many = HTTPHeaders.acceptLanguage(["a", "b", "c", "d", "e", "f", "g"])
        expect(many, equals: "a, b;q=0.9, c;q=0.8, d;q=0.7, e;q=0.6, f;q=0.5")
        expect(HTTPHeaders.acceptLanguage([]) == nil && HTTPHeaders.acceptLanguage(["", "x\r\ny"]) == nil)
    }

    @Test("CFG-6: the User-Agent names the program, and is sound whatever its name")
    func userAgent() {
        let process = ProcessInfo.processInfo
        let agent = HTTPHeaders.userAgent(
            ["CFBundleName": "My Shop\r\n", "CFBundleShortVersionString": "2.1"],
            process
        )
        expect(agent.hasPrefix("My-Shop--/2.1 EasyNetwork ("))
        expect(HTTPSyntax.isFieldValue(HTTPHeaders.userAgent(nil, process).utf8))
    }

    @Test("REQ-7: a validator refuses before anything is sent; none means pass")
    func validator() throws {
        try expect(message(Call(count: 5)).url.query, equals: "count=5")
        let negative = #expect(throws: NetworkError.self) { try message(Call(count: -1)) }
        expect(negative?.code == .invalidRequest && negative?.message == "count is negative")
        let excess = #expect(throws: NetworkError.self) { try message(Call(count: 11)) }
        expect(excess?.code == .invalidRequest && excess?.underlying is Excess)
    }

    @Test("REQ-6: a hand-made URLRequest replaces everything")
    func custom() throws {
        var custom = URLRequest(url: try #require(URL(string: "https://own.example.com/x?y=1")))
        custom.httpMethod = "PUT"
        custom.httpBody = Data("body".utf8)
        custom.setValue("v", forHTTPHeaderField: "X-Own")
        custom.timeoutInterval = 7
        let built = try message(Call(headers: ["X-Call": "1"], customURLRequest: custom, count: -1)) { host in
            host.headers = ["X-Host": "1"]
            host.filters = [common("1")]
        }
        expect(built.method == .put && built.url == custom.url && built.body == .data(Data("body".utf8)))
        expect(built.headers.filter { $0.name != "Content-Length" }, equals: [.init(name: "X-Own", value: "v")])
        expect(built.deadlines.idle, equals: 7)
        custom.httpBody = nil
        custom.httpBodyStream = InputStream(data: Data("stream".utf8))
        try expect(!message(Call(customURLRequest: custom)).body.isReplayable)
        custom.url = URL(string: "ftp://own.example.com")
        let error = #expect(throws: NetworkError.self) { try message(Call(customURLRequest: custom)) }
        expect(error?.code, equals: .invalidRequest)
    }

    @Test("REQ-5: timeouts of an attempt, cellular access")
    func perRequest() throws {
        struct Careful: BaseAPIRequest {
            var api: String { "a" }
            var options: RequestOptions { RequestOptions(timeout: 3, allowsCellularAccess: false) }
        }
        let built = try message(Careful())
        expect(built.deadlines.total == 3 && !built.allowsCellularAccess)
        try expect(message(Call()).allowsCellularAccess)
    }
}
