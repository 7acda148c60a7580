import Foundation
import Testing

@testable import EasyNetwork
@testable import TestSupport

/// Writes encoded requests for independent decoders; see `.ci/formats`.
@Suite("Encodings for independent decoders", .enabled(if: EncodingCases.folder != nil), .timeLimit(.minutes(10)))
struct EncodingCasesTests {
    private func write(_ value: Any, _ name: String) throws {
        let folder = try #require(EncodingCases.folder)
        try JSONSerialization.data(withJSONObject: value).write(to: folder.appendingPathComponent(name))
    }

    @Test("REQ-2, REQ-3: parameters as query, form and JSON")
    func parameters() throws {
        var cases: [[String: Any]] = []
        for seed in 1...600 as ClosedRange<UInt64> {
            var generator = SeededGenerator(seed: seed)
            let values = EncodingValue.randomObject(&generator)
            let encoder = seed % 3 == 0 ? QueryEncoder() : QueryEncoder.random(&generator)
            for (query, name) in [(NetworkService.QueryType.path, "query"), (.form, "form"), (.json, "json")] {
                let told = values.map { [$0.key, $0.value.told] as [Any] }
                var request = AnyRequest(api: "x", method: .post, query: query)
                request.makeParams = { EncodingValue.object(values).any as? [String: Any] }
                request.queryEncoder = encoder
                let built = try Built(request)
                let text = query == .path ? built.message.url.query ?? "" : try #require(built.text)
                cases.append(["kind": name, "seed": seed, "styles": encoder.told, "params": told, "text": text])
            }
        }
        try write(cases, "parameters.json")
    }

    @Test("REQ-4: multipart forms")
    func forms() async throws {
        let folder = try #require(EncodingCases.folder)
        let files = TestFolder()
        for seed in 1...100 as ClosedRange<UInt64> {
            var generator = SeededGenerator(seed: seed)
            let form = try EncodingForm.random(&generator, in: files.url)
            try await form.form.stream().wholeBody().write(to: folder.appendingPathComponent("form-\(seed).body"))
            try write(["contentType": form.form.contentType, "parts": form.told], "form-\(seed).json")
        }
    }

    @Test("REQ-3, REQ-4: forms sent to an independent server", arguments: [true, false])
    func upload(hasLength: Bool) async throws {
        let server = try #require(EncodingCases.server)
        let files = TestFolder()
        let file = files.url.appendingPathComponent("large é.pdf")
        let bytes = Data((0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) })
        try bytes.write(to: file)
        var form = EncodingForm()
        form.append(Data("Ada\r\né".utf8), name: "who", filename: nil, contentType: nil, hasLength: hasLength)
        form.append(file: file, bytes, name: "paper", contentType: "application/pdf")
        form.append(Data(), name: "a \"b\"\r\n", filename: "\"", contentType: "text/plain", hasLength: hasLength)
        let name = hasLength ? "known" : "unknown"
        try write(["contentType": form.form.contentType, "parts": form.told], "upload-\(name).json")
        let service = EasyNetworkService(HostConfiguration(baseURL: server, deadlines: TransportDeadlines(idle: nil)))
        let response = try await service.send(AnyRequest(api: name, method: .post, body: .multipart(form.form)))
        expect(response.statusCode, equals: 201)
    }
}
