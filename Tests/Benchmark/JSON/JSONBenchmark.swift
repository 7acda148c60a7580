import EasyNetwork
import Foundation

/// The costs of JSON that becomes structs or a tree, compared with Foundation's in the same run.
struct JSONBenchmark {
    private struct Figure {
        let seconds: Double
        /// The bytes that the process has at most besides those from before.
        let memory: Int?
    }

    /// How many times as fast as Foundation it must be.
    private enum Way: String, CaseIterable {
        case decodable = "Decodable"
        case mapper = "mapper"
        case tree = "json()"

        var bar: Double {
            switch self {
            case .decodable: 4
            case .mapper: 8
            case .tree: 2
            }
        }
    }

    static let sizes = [100, 1_000, 10_000, 100_000, 1_000_000, 10_000_000]
    /// The seconds that a sample takes at least.
    static let sample = 0.02

    let report: Report

    func run() throws {
        report.line(
            "MB a second of the processor, the highest of \(Measurement.samples); MiB at the peak besides the body"
        )
        try measure(FlatObject.self)
        try measure(NestedObject.self)
        try measure(EscapedTexts.self)
        try measure(LongText.self)
        try measure(Numbers.self)
        try measure(Dates.self)
    }

    private func measure<Item: JSONShape>(_ type: Item.Type) throws {
        report.line("")
        report.line(
            "\(Item.name), bytes".filled(18) + "as".filled(10)
                + ["MB/s", "MiB", "Foundation", "MiB", "ratio", "bar"].map { $0.aligned(11) }.joined()
        )
        var lowest: [Way: Double] = [:]
        for size in Self.sizes {
            for (way, ours, theirs, count) in try figures(type, size) {
                let ratio = theirs.seconds / ours.seconds
                lowest[way] = min(lowest[way] ?? .infinity, ratio)
                let cells = [ours, theirs].flatMap { figure in
                    let memory = figure.memory.map { Report.number(Double($0) / 1_048_576, digits: 1) } ?? "-"
                    return [Report.number(Double(count) / figure.seconds / 1e6, digits: 0), memory]
                }
                report.line(
                    "\(count)".filled(18) + way.rawValue.filled(10)
                        + (cells + [Report.number(ratio), Report.number(way.bar, digits: 0)]).map { $0.aligned(11) }
                        .joined() + (ratio < way.bar ? "  missed" : "")
                )
            }
        }
        for way in Way.allCases {
            let name = "\(Item.name) by \(way.rawValue), the lowest ratio to Foundation"
            report.bar(name, lowest[way] ?? .nan, atLeast: way.bar)
        }
    }

    private func figures<Item: JSONShape>(
        _ type: Item.Type,
        _ size: Int
    ) throws -> [(Way, ours: Figure, theirs: Figure, count: Int)] {
        let isOne = size == Self.sizes[0]
        let body = try Self.body(type, isOne ? nil : size)
        let response = NetworkResponse(body: body)
        let decoder = JSONDecoder()
        decoder.dateDecodingStrategy = .iso8601
        func decoded() throws -> [Item] {
            isOne ? [try decoder.decode(type, from: body)] : try decoder.decode([Item].self, from: body)
        }
        func item() throws -> [Item] { isOne ? [try response.decode(type)] : try response.decode([Item].self) }
        func mapped() throws -> [Item] {
            isOne
                ? [try Mapper<Item>.process(response)]
                : try ArrayResponseMapper.process(response, mapper: Mapper<Item>.process)
        }
        func tree() throws -> Any { try JSONSerialization.jsonObject(with: body) }
        if size <= 100_000 {
            let (items, theirs) = (try decoded(), NSArray(object: try tree()))
            guard try item() == items, try mapped() == items, try theirs.isEqual(to: [response.json()]) else {
                Report.stop("\(Item.name), \(size) bytes: not read as by Foundation")
            }
        }
        let foundation = try Self.figure(decoded)
        return [
            (.decodable, try Self.figure(item), foundation, body.count),
            (.mapper, try Self.figure(mapped), foundation, body.count),
            (.tree, try Self.figure(response.json), try Self.figure(tree), body.count),
        ]
    }

    private static func figure<Value>(_ work: () throws -> Value) throws -> Figure {
        Memory.trim()
        let before = Memory.resident
        Memory.forgetPeak()
        let first = try Measurement.processorSeconds { _ = try work() }
        let memory = before.flatMap { before in Memory.peakResident.map { max(0, $0 - before) } }
        let count = max(1, Int(sample / max(first, 1e-6)))
        let times = try (0..<Measurement.samples).map { _ in
            try Measurement.processorSeconds { for _ in 0..<count { _ = try work() } }
        }
        return Figure(seconds: (times.min() ?? .nan) / Double(count), memory: memory)
    }

    /// - Parameter size: of an array, in bytes; nil for one small element.
    private static func body<Item: JSONShape>(_ type: Item.Type, _ size: Int?) throws -> Data {
        let encoder = JSONEncoder()
        encoder.dateEncodingStrategy = .iso8601
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        guard let size else { return try encoder.encode(Item(0, isSmall: true)) }
        var body = Data("[".utf8)
        var number = 0
        repeat {
            if number > 0 { body.append(UInt8(ascii: ",")) }
            body.append(try encoder.encode(Item(number % 1_000, isSmall: false)))
            number += 1
        } while body.count < size
        return body + Data("]".utf8)
    }
}

private final class Mapper<Item: JSONShape>: ResponseMapper<Item>, ResponseMapperProtocol {
    static func process(_ json: Any?) throws -> Item { try process(json, parse: Item.init(parsing:)) }
}

extension Measurement {
    fileprivate static func processorSeconds(_ work: () throws -> Void) rethrows -> Double {
        let start = processorTime
        try work()
        return processorTime - start
    }
}
