import Foundation
import Testing

@testable import EasyNetwork

@Suite("LandingCourse")
struct LandingCourseTests {
    private let message: TransportRequest
    private let moment = LandingCourse.Moment(date: Date(timeIntervalSince1970: 0), random: { 1 })

    init() throws {
        message = TransportRequest(url: try #require(URL(string: "https://api.example.com/a")))
    }

    private func name(_ step: LandingCourse.Step) -> String {
        switch step {
        case .authorize(_, let stamp): "authorize \(stamp.version)"
        case .adapt: "adapt"
        case .look: "look"
        case .send(let message): "send \(message.url.path)"
        case .decide(let redirect): "decide \(redirect.message.url.path)"
        case .land(.success(let response)): "land \(response.statusCode)"
        case .land(.failure(let error)): "land \(error.code)"
        case .review(let response, _, let stamp): "review \(response.statusCode) \(stamp.version)"
        case .retry(let delay, let cost): "retry \(delay)" + (cost == 1 ? "" : " for \(cost)")
        case .wait(let delay): "wait \(delay)"
        case .finish(.success(let response)): "finish \(response.statusCode)"
        case .finish(.failure(let error)): "finish \(error.code)"
        }
    }

    private func answer(_ status: Int, _ headers: HTTPHeaders = HTTPHeaders()) -> (NetworkResponse, NetworkError?) {
        let response = NetworkResponse(statusCode: status, headers: headers)
        return (response, ResponseValidation().error(for: response))
    }

    private func received(
        _ course: inout LandingCourse,
        _ status: Int,
        _ headers: HTTPHeaders = HTTPHeaders()
    ) -> String {
        let (response, verdict) = answer(status, headers)
        return name(course.received(.success(response), verdict: verdict, at: moment))
    }

    private func course(_ change: (inout LandingCourse.Rules) -> Void = { _ in }) -> LandingCourse {
        var rules = LandingCourse.Rules(retry: RetryPolicy(), redirects: RedirectPolicy())
        change(&rules)
        return LandingCourse(message, rules)
    }

    @Test("RSP-7: without anything to do it is sent, received, and over")
    func plain() {
        var course = course()
        let sent = name(course.begin())
        let over = received(&course, 200)
        #expect(sent == "send /a" && over == "finish 200")
        #expect(course.history.map(\.reason) == [.first] && course.history.first?.statusCode == 200)
    }

    @Test(
        "BEY-8, SEC-2: redirects and retries go round again, each retry from the beginning, and all is in the history"
    )
    func roundAgain() {
        var course = course()
        var steps = [name(course.begin())]
        steps.append(received(&course, 302, ["Location": "/b"]))
        steps.append(received(&course, 503))
        steps.append(name(course.willRetry(after: 0.5)))
        steps.append(name(course.begin()))
        steps.append(received(&course, 307, ["Location": "/c"]))
        steps.append(received(&course, 200))
        #expect(steps == ["send /a", "send /b", "retry 0.5", "wait 0.5", "send /a", "send /c", "finish 200"])
        #expect(course.history.map(\.reason) == [.first, .redirect, .retry, .redirect])
        #expect(course.history.map(\.statusCode) == [302, 503, 307, 200])
        #expect(course.history.map(\.delay) == [0, 0, 0.5, 0])
        #expect(course.history.attemptCount == 2)
    }

    @Test("BEY-8: without a retry left in the budget the failure stays what it was")
    func budget() {
        var course = course()
        _ = course.begin()
        let retry = received(&course, 503)
        let over = name(course.isOutOfBudget(at: moment))
        #expect(retry == "retry 0.5" && over == "finish unacceptableStatus")
    }

    @Test(
        "BEY-8: progress resets the retry count, up to a hundred times the retries in all, each for a tenth of one"
    )
    func progress() {
        for (limit, count) in [(0, 0), (1, 100), (3, 300), (Int.max, 500)] {
            var course = course { $0.retry = RetryPolicy(maximumRetryCount: limit, baseDelay: 2) }
            var steps: [String] = []
            _ = course.begin()
            while steps.count < 500 {
                let error = NetworkError(code: .connectionLost)
                let body = BodyOutcome(error: error, hasProgressed: true)
                steps.append(name(course.received(.failure(error), verdict: nil, body: body, at: moment)))
                guard steps.last == "retry 2.0 for 0.1" else { break }
                _ = course.willRetry(after: 0)
                _ = course.begin()
            }
            #expect(steps.count(where: { $0 == "retry 2.0 for 0.1" }) == count)
            #expect(count == 500 || steps.last == "finish connectionLost")
        }
    }

    @Test("SEC-2: each attempt may follow as many redirects as the policy has")
    func limit() {
        var course = course { $0.redirects.limit = 2 }
        var steps = [name(course.begin())]
        for _ in 0..<3 { steps.append(received(&course, 302, ["Location": "/b"])) }
        #expect(steps == ["send /a", "send /b", "send /b", "finish redirectFailed"])
    }

    @Test("SEC-2: the policy's closure follows, refuses, or alters; what it alters is checked")
    func decide() throws {
        func steps(_ decision: Redirect.Decision) -> [String] {
            var course = course { $0.redirects.decide = { _ in .follow } }
            _ = course.begin()
            return [received(&course, 302, ["Location": "/b"]), name(course.decided(decision, at: moment))]
        }
        #expect(steps(.follow) == ["decide /b", "send /b"])
        #expect(steps(.refuse) == ["decide /b", "finish unacceptableStatus"])
        var other = message
        other.url = try #require(URL(string: "https://other.example/c"))
        #expect(steps(.alter(other)) == ["decide /b", "send /c"])
        other.headers["X"] = "a\r\nb"
        #expect(steps(.alter(other)) == ["decide /b", "finish invalidRequest"])
    }

    @Test("CBK-5: interceptors come between message and wire, and between answer and everything else")
    func interceptors() {
        var course = course { $0.isIntercepted = true }
        var steps = [name(course.begin()), name(course.adapted(.success(message)))]
        steps.append(received(&course, 503))
        steps.append(name(course.landed(.proceed, at: moment)))
        #expect(steps == ["adapt", "send /a", "land unacceptableStatus", "retry 0.5"])
        var vetoed = self.course { $0.isIntercepted = true }
        _ = vetoed.begin()
        let veto = name(vetoed.adapted(.failure(NetworkError(code: .refused))))
        #expect(veto == "finish refused" && vetoed.history.isEmpty)
    }

    @Test("CBK-6: a landing becomes a success, a failure, an end without a word, or is sent again")
    func decisions() throws {
        func step(_ status: Int, _ decision: LandingDecision) -> LandingCourse.Step {
            var course = course { $0.isIntercepted = true }
            _ = course.begin()
            _ = course.adapted(.success(message))
            _ = received(&course, status)
            return course.landed(decision, at: moment)
        }
        #expect(name(step(404, .succeed(NetworkResponse(statusCode: 404)))) == "finish 404")
        #expect(name(step(200, .fail(NetworkError(code: .unacceptableStatus)))) == "finish unacceptableStatus")
        #expect(name(step(404, .sendAgain())) == "adapt" && name(step(404, .sendAgain(after: 2))) == "wait 2.0")
        guard case .finish(.failure(let error)) = step(200, .stop) else {
            Issue.record("stop does not end it")
            return
        }
        #expect(error.code == .cancelled && error.isSilent)
    }

    @Test("CBK-6: interceptors that never have enough are stopped after twenty times")
    func again() {
        var course = course { $0.isIntercepted = true }
        var step = course.begin()
        var count = 0
        while name(step) == "adapt", count < 100 {
            count += 1
            _ = course.adapted(.success(message))
            _ = received(&course, 200)
            step = course.landed(.sendAgain(), at: moment)
        }
        #expect(count == 21 && name(step) == "finish cannotSendAgain")
    }

    private func authenticated() -> LandingCourse {
        course { $0.stamp = LandingCourse.Stamp() }
    }

    private func authorization(_ version: Int, isReplay: Bool = false) -> LandingCourse.Authorization {
        var authorized = message
        authorized.headers["X-Token"] = "\(version)"
        return .success((authorized, LandingCourse.Stamp(version: version, isReplay: isReplay)))
    }

    @Test("CBK-7: a refused message is sent again with another credential, and each answer is reviewed")
    func replay() {
        var course = authenticated()
        var steps = [name(course.begin()), name(course.authorized(authorization(1)))]
        steps.append(received(&course, 401))
        steps.append(name(course.reviewed(authorization(2, isReplay: true), at: moment)))
        steps.append(received(&course, 200))
        steps.append(name(course.reviewed(nil, at: moment)))
        #expect(steps == ["authorize 0", "send /a", "review 401 1", "send /a", "review 200 2", "finish 200"])
        #expect(course.history.map(\.reason) == [.first, .authentication])
    }

    @Test("CBK-7: without another credential the error is that of the one who looked for it")
    func noCredential() {
        var course = authenticated()
        _ = course.begin()
        _ = course.authorized(authorization(1))
        _ = received(&course, 401)
        let cause = NetworkError(code: .unauthorized, message: "no token")
        guard case .finish(.failure(let error)) = course.reviewed(.failure(cause), at: moment) else {
            Issue.record("it goes on")
            return
        }
        #expect(error.code == .unauthorized && error.message == "no token" && error.attempts == 1)
    }

    @Test("SEC-1: redirected to another origin, it goes without the credential, and with it again on the way back")
    func redirectedCredential() {
        var course = authenticated()
        _ = course.begin()
        _ = course.authorized(authorization(1))
        let (response, verdict) = answer(302, ["Location": "https://other.example/b"])
        guard case .send(let next) = course.received(.success(response), verdict: verdict, at: moment) else {
            Issue.record("it does not follow")
            return
        }
        #expect(next.headers["X-Token"] == nil)
        var back = course
        let over = received(&course, 401)
        let home = received(&back, 302, ["Location": "https://api.example.com/c"])
        #expect(over == "finish unauthorized" && home == "authorize 1")
    }

    @Test("CBK-7: a redirect within the origin is authorized anew, for a Digest holds for one address")
    func redirectedWithin() {
        var course = authenticated()
        _ = course.begin()
        _ = course.authorized(authorization(1))
        let next = received(&course, 302, ["Location": "/b"])
        #expect(next == "authorize 1")
    }
}
