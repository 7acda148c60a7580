import Testing

@testable import EasyNetwork
@testable import TestSupport

@Suite("HTTPHeaders")
struct HTTPHeadersTests {
    @Test("RSP-6: header names are case-insensitive, repeats and order are kept")
    func repeatsAndCase() {
        var headers: HTTPHeaders = ["Set-Cookie": "a=1", "X": "1", "set-cookie": "b=2"]
        expect(headers.values(for: "SET-COOKIE"), equals: ["a=1", "b=2"])
        expect(headers["x"], equals: "1")
        expect(headers["Set-Cookie"], equals: "a=1, b=2")
        expect(headers.map(\.name), equals: ["Set-Cookie", "X", "set-cookie"])
        headers["SET-cookie"] = "c=3"
        expect(headers.map(\.value), equals: ["c=3", "1"])
        headers["set-cookie"] = nil
        expect(headers.map(\.name), equals: ["X"])
        expect(headers["missing"] == nil)
    }

    @Test("SEC-2: copies share their storage until one of them is changed")
    func storage() {
        let headers: HTTPHeaders = ["Accept": "text/plain"]
        var copy = headers
        expect(copy.hasStorage(of: headers) && headers.merging([:]).hasStorage(of: headers))
        copy["Accept"] = "text/plain"
        expect(copy == headers && !copy.hasStorage(of: headers))
        expect(HTTPHeaders().hasStorage(of: [:]) && !HTTPHeaders().hasStorage(of: headers))
        copy = headers
        copy.remove("Accept")
        expect(!copy.hasStorage(of: headers))
    }

    @Test("CFG-6: the later headers win in merging, by name without case")
    func merging() {
        let host: HTTPHeaders = ["Accept": "text/html", "User-Agent": "host"]
        let merged = host.merging(["accept": "application/json", "Accept": "text/plain"])
        expect(merged.values(for: "Accept"), equals: ["application/json", "text/plain"])
        expect(merged["User-Agent"], equals: "host")
    }

    @Test("REQ-2: a dictionary of headers is sent in a stable order")
    func stableOrder() {
        expect(HTTPHeaders(["b": "2", "a": "1", "c": "3"]).map(\.name), equals: ["a", "b", "c"])
    }
}
