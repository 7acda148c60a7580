import Foundation
import Testing

@testable import EasyNetwork

@Suite("What waits of a body")
struct StreamBufferTests {
    private func text(_ step: StreamBuffer.Step) -> String {
        switch step {
        case .chunk(let data): String(decoding: data, as: UTF8.self)
        case .failed(let error): "failed \(error.code)"
        case .end: "end"
        case .wait: "wait"
        }
    }

    private func steps(_ buffer: inout StreamBuffer, _ count: Int) -> [String] {
        (0..<count).map { _ in text(buffer.next()) }
    }

    @Test("BEY-3: bytes come out as they went in, before the end; the error comes once, then the end")
    func order() {
        var buffer = StreamBuffer()
        let before = steps(&buffer, 1)
        buffer.append(Data(repeating: 97, count: 5_000))
        buffer.append(Data())
        buffer.append(Data(repeating: 98, count: 5_000))
        buffer.finish(.failure(NetworkError(code: .connectionLost)))
        buffer.finish(.success(()))
        buffer.append(Data("late".utf8))
        let after = steps(&buffer, 5)
        #expect(before == ["wait"])
        #expect(after[0] == String(repeating: "a", count: 5_000))
        #expect(after[1] == String(repeating: "b", count: 5_000))
        #expect(after[2] == "failed \(NetworkError.Code.connectionLost)")
        #expect(after[3...] == ["end", "end"])
        #expect(buffer.byteCount == 0)
    }

    @Test("BEY-3: small pieces are put together, so that their number has a bound as well")
    func pieces() {
        var buffer = StreamBuffer()
        for _ in 0..<100_000 { buffer.append(Data([1])) }
        #expect(buffer.byteCount == 100_000)
        #expect(buffer.chunkCount <= 100_000 / 4_096 + 1)
        var count = 0
        while case .chunk(let data) = buffer.next() { count += data.count }
        #expect(count == 100_000)
    }

    @Test("BEY-3: it is full beyond the limit, and has room below half of it")
    func limits() {
        var buffer = StreamBuffer()
        buffer.append(Data(count: StreamBuffer.limit))
        #expect(!buffer.isFull)
        buffer.append(Data(count: StreamBuffer.limit / 2))
        #expect(buffer.isFull)
        let first = steps(&buffer, 1).count
        #expect(first == 1 && !buffer.isFull && !buffer.hasRoom)
        let second = steps(&buffer, 1).count
        #expect(second == 1 && buffer.hasRoom)
    }

    @Test("BEY-3: given up, it has nothing but the error; what had been fetched to its end stays so")
    func abandoned() {
        var buffer = StreamBuffer()
        buffer.append(Data("a".utf8))
        buffer.finish(.success(()))
        let cancelled = NetworkError(code: .cancelled)
        let old = buffer.abandon(cancelled)
        #expect(old.chunks == [Data("a".utf8)])
        let rest = steps(&buffer, 2)
        #expect(rest == ["failed \(NetworkError.Code.cancelled)", "end"])
        var over = StreamBuffer()
        over.finish(.success(()))
        _ = over.abandon(cancelled)
        let end = steps(&over, 1)
        #expect(end == ["end"])
    }
}
