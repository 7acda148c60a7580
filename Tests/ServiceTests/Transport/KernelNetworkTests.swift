#if os(Linux)
import Dispatch
import EasyNetworkTesting
import Foundation
import Programs
import Testing

@testable import EasyNetwork
@testable import TestSupport

#if canImport(Glibc)
import Glibc
#elseif canImport(Musl)
import Musl
#endif

private typealias Status = NetworkReachability.Status

/// Messages as the kernel writes them.
private enum Message {
    static func bytes(_ number: some FixedWidthInteger) -> [UInt8] { withUnsafeBytes(of: number) { [UInt8]($0) } }

    static func padded(_ bytes: [UInt8]) -> [UInt8] { bytes + [UInt8](repeating: 0, count: (4 - bytes.count % 4) % 4) }

    /// The default flags are those of an answer with several messages.
    static func make(
        _ type: UInt16,
        flags: UInt16 = 2,
        _ number: UInt32,
        _ body: [UInt8] = [],
        port: UInt32 = 77
    ) -> [UInt8] {
        let head = bytes(UInt32(16 + body.count)) + bytes(type) + bytes(flags) + bytes(number) + bytes(port)
        return padded(head + body)
    }

    static func done(_ number: UInt32, flags: UInt16 = 2, error: Int32 = 0) -> [UInt8] {
        make(3, flags: flags, number, bytes(error))
    }

    static func attribute(_ kind: UInt16, _ value: [UInt8]) -> [UInt8] {
        padded(bytes(UInt16(4 + value.count)) + bytes(kind) + value)
    }

    /// The default flags: up, running.
    static func link(_ index: UInt32, _ flags: UInt32 = 0x41) -> [UInt8] {
        [0, 0, 1, 0] + bytes(index) + bytes(flags) + bytes(UInt32(0)) + attribute(3, Array("a name\0".utf8))
    }

    static func address(_ family: UInt8 = 2, scope: UInt8 = 0, flags: UInt8 = 0x80) -> [UInt8] {
        [family, 24, flags, scope] + bytes(UInt32(2)) + attribute(1, [192, 0, 2, 1])
    }

    static func route(
        _ family: UInt8 = 2,
        to destination: [UInt8] = [],
        length: UInt8 = 0,
        type: UInt8 = 1,
        over index: UInt32? = 2,
        hops: [UInt32] = []
    ) -> [UInt8] {
        var route: [UInt8] = [family, length, 0, 0, 254, 3, 0, type, 0, 0, 0, 0]
        // An unknown one of an odd length first.
        route += attribute(99, [1, 2, 3])
        if !destination.isEmpty { route += attribute(1, destination) }
        if let index { route += attribute(4, bytes(index)) }
        if !hops.isEmpty {
            let gateway = attribute(5, [192, 0, 2, 9])
            let hops = hops.map { bytes(UInt16(8 + gateway.count)) + [0, 0] + bytes($0) + gateway }
            route += attribute(9, hops.flatMap { $0 })
        }
        return route
    }
}

/// What a kernel has, and how it answers.
private struct Kernel: Sendable, CustomTestStringConvertible {
    var testDescription: String
    var status: Status
    var links = [Message.link(1, 0x49), Message.link(2)]
    var addresses = [Message.address(scope: 254), Message.address()]
    var routes = [Message.route(to: [127, 0, 0, 1], length: 32, type: 2, over: 1), Message.route()]

    init(_ description: String, _ status: Status, _ change: (inout Kernel) -> Void = { _ in }) {
        testDescription = description
        self.status = status
        change(&self)
    }

    /// The entries that a question asks for, without the end.
    func answer(_ question: [UInt8]) -> [[UInt8]] {
        let number = question[8..<12].enumerated().reduce(UInt32(0)) { $0 | UInt32($1.element) << (8 * $1.offset) }
        let entries = [18: links, 22: addresses, 26: routes][question[4]] ?? []
        return entries.map { Message.make(UInt16(question[4]) - 2, number, $0) } + [Message.done(number)]
    }

    /// Answers all questions; the status that the last answer leads to.
    ///
    /// - Parameter change: of the messages of one answer, of which each is a datagram.
    func answerAll(_ network: inout KernelNetwork, change: (inout [[UInt8]]) -> Void = { _ in }) -> Status? {
        var question = network.ask()
        while true {
            var outcome = KernelNetwork.Outcome.nothing
            var datagrams = answer(question)
            change(&datagrams)
            for datagram in datagrams {
                outcome = network.read(datagram[...])
                if outcome != .nothing { break }
            }
            switch outcome {
            case .nothing: return nil
            case .ask(let next): question = next
            case .status(let status): return status
            }
        }
    }
}

@Suite("The network of Linux", .timeLimit(.minutes(10)))
struct KernelNetworkTests {
    private static let kernels = [
        Kernel("a default route", .reachable),
        Kernel("no route", .unreachable) { $0.routes = [] },
        Kernel("a route to a subnet alone", .reachable) { $0.routes = [Message.route(to: [10, 0, 0, 0], length: 8)] },
        Kernel("a link that is up but does not run", .unreachable) { $0.links[1] = Message.link(2, 0x1) },
        Kernel("a link that is down", .unreachable) { $0.links[1] = Message.link(2, 0x40) },
        Kernel("no link but the loopback", .unreachable) { $0.links.removeLast() },
        Kernel("a default route over the loopback", .unreachable) { $0.routes = [Message.route(over: 1)] },
        Kernel("no address but the loopback's", .unreachable) { $0.addresses.removeLast() },
        Kernel("a default route of a family without address", .unreachable) { $0.routes = [Message.route(10)] },
        Kernel("IPv6 alone", .reachable) { kernel in
            kernel.addresses = [Message.address(10)]
            kernel.routes = [Message.route(10)]
        },
        Kernel("a default route and no IPv6 address but a link-local one", .unreachable) { kernel in
            kernel.addresses = [Message.address(10, scope: 253)]
            kernel.routes = [Message.route(10)]
        },
        Kernel("an IPv6 address that may be another's", .unreachable) { kernel in
            kernel.addresses = [Message.address(10, flags: 0xC0)]
            kernel.routes = [Message.route(10)]
        },
        Kernel("an IPv6 address that is used before that is known", .reachable) { kernel in
            kernel.addresses = [Message.address(10, flags: 0xC4)]
            kernel.routes = [Message.route(10)]
        },
        Kernel("link-local and multicast routes", .unreachable) { kernel in
            kernel.addresses.append(Message.address(10))
            kernel.routes = [
                Message.route(to: [169, 254, 0, 0], length: 16), Message.route(to: [169, 254, 7, 7], length: 32),
                Message.route(10, to: [0xFE, 0x80, 0, 0], length: 64),
                Message.route(10, to: [0xFF, 0, 0, 0], length: 8),
            ]
        },
        Kernel("the half of all addresses, in which the link-local ones are", .reachable) { kernel in
            kernel.routes = [Message.route(to: [128, 0, 0, 0], length: 1)]
        },
        Kernel("a link-local IPv4 address with a default route, as virtual machines have", .reachable) { kernel in
            kernel.addresses = [Message.address(scope: 253)]
        },
        Kernel("a route that drops everything", .unreachable) { $0.routes = [Message.route(type: 6)] },
        Kernel("hops of which one runs", .reachable) { $0.routes = [Message.route(over: nil, hops: [1, 7, 2])] },
        Kernel("hops of which none runs", .unreachable) { $0.routes = [Message.route(over: nil, hops: [1, 7])] },
        Kernel("a route by a nexthop object", .reachable) { $0.routes = [Message.route(over: nil)] },
        Kernel("a route over a link that is not there", .unreachable) { $0.routes = [Message.route(over: 7)] },
        Kernel("routes of other protocols", .unreachable) { $0.routes = [Message.route(28), Message.route(128)] },
        Kernel("no links at all", .unknown) { $0.links = [] },
        Kernel("a link that is cut short", .unknown) { $0.links.append([0, 0, 1, 0, 7, 0]) },
        Kernel("an address that is cut short", .unknown) { $0.addresses = [[2, 24]] },
        Kernel("a route that is cut short", .unknown) { $0.routes = [[2, 0, 0, 0, 254, 3, 0, 1]] },
    ]

    @Test("OPQ-9: links, addresses and routes tell whether there is a network", arguments: kernels)
    private func status(kernel: Kernel) {
        var network = KernelNetwork()
        expect(network.isOutdated && !network.isAsking)
        expect(kernel.answerAll(&network), equals: kernel.status)
        expect(!network.isOutdated && !network.isAsking)
        // Nothing of the answer before is left, and it does not matter how the messages are spread over datagrams.
        let nothing = Kernel("the loopback", .unreachable) { kernel in
            kernel.links.removeLast()
            (kernel.addresses, kernel.routes) = ([], [])
        }
        expect(nothing.answerAll(&network), equals: .unreachable)
        expect(kernel.answerAll(&network) { $0 = [$0.flatMap { $0 }] }, equals: kernel.status)
    }

    @Test("OPQ-9: the questions are those for whole tables")
    func questions() {
        var network = KernelNetwork()
        let first = network.ask()
        // RTM_GETLINK, NLM_F_REQUEST and NLM_F_DUMP, and a whole ifinfomsg.
        expect(first, equals: Message.make(18, flags: 0x301, 1, .init(repeating: 0, count: 16), port: 0))
        var numbers: [UInt8] = []
        _ = Kernel("all", .reachable).answerAll(&network) { numbers.append($0[0][8]) }
        expect(numbers, equals: [2, 3, 4])
    }

    @Test("OPQ-9: a change makes the answer outdated, whoever has made it")
    func changes() {
        let kernel = Kernel("all", .reachable)
        for type: UInt16 in [16, 17, 20, 21, 24, 25] {
            var network = KernelNetwork()
            // With the number of the question that the answer is awaited for.
            let status = kernel.answerAll(&network) { $0.insert(Message.make(type, flags: 0, 2), at: 0) }
            expect(status == .reachable && network.isOutdated)
            _ = kernel.answerAll(&network)
            expect(!network.isOutdated)
            expect(network.read(Message.make(type, flags: 0, 9)[...]) == .nothing && network.isOutdated)
        }
        var network = KernelNetwork()
        _ = kernel.answerAll(&network)
        // NLMSG_NOOP, the rest of an earlier answer, and what is none of the groups'.
        let others = [Message.make(1, 9), Message.make(24, 2, Message.route()), Message.done(2), Message.make(60, 9)]
        for message in others {
            expect(network.read(message[...]) == .nothing && !network.isOutdated)
        }
        expect(network.read(Message.make(4, 9)[...]) == .nothing && network.isOutdated)
        _ = kernel.answerAll(&network)
        network.lose()
        expect(network.isOutdated)
    }

    @Test("OPQ-9: an answer that was interrupted says nothing, and is asked for again", arguments: [0, 1, 2])
    func interruption(table: Int) {
        for atEnd in [false, true] {
            var network = KernelNetwork()
            var left = table
            let status = Kernel("all", .reachable).answerAll(&network) { messages in
                if left == 0 { messages[atEnd ? messages.count - 1 : 0][6] |= 0x10 }
                left -= 1
            }
            expect(status == nil && network.isOutdated && !network.isAsking)
            expect(Kernel("all", .reachable).answerAll(&network), equals: .reachable)
        }
    }

    @Test("OPQ-9: a refusal leaves the status unknown", arguments: [0, 1, 2], [true, false])
    func refusal(table: Int, isAtOnce: Bool) {
        var network = KernelNetwork()
        var left = table
        let status = Kernel("no route", .unreachable) { $0.routes = [] }.answerAll(&network) { messages in
            guard left == 0 else { return left -= 1 }
            let number = UInt32(messages[0][8])
            // EPERM in either.
            let error = Message.bytes(-1 as Int32)
            if isAtOnce {
                messages = [Message.make(2, flags: 0, number, error + messages[0])]
            } else {
                messages[messages.count - 1] = Message.done(number, error: -1)
            }
        }
        expect(status == .unknown && !network.isAsking)
    }

    @Test("OPQ-9: messages that are cut short or changed do not trap, and those cut short tell of no missing network")
    func hostile() {
        let kernel = Kernel("all", .reachable) { $0.routes.append(Message.route(over: nil, hops: [1, 2])) }
        var random = SeededGenerator(seed: 9)
        for table in 0..<3 {
            var network = KernelNetwork()
            var sizes: [Int] = []
            _ = kernel.answerAll(&network) { sizes.append($0.reduce(0) { $0 + $1.count }) }
            for cut in 0..<sizes[table] {
                var left = table
                let status = kernel.answerAll(&network) { messages in
                    if left == 0 { messages = [Array(messages.flatMap { $0 }.prefix(cut))] }
                    left -= 1
                }
                expect(status == nil || status == .unknown)
            }
            for _ in 0..<TestLoad.count(20_000, part: 3_000) {
                var left = table
                _ = kernel.answerAll(&network) { messages in
                    if left == 0 {
                        var datagram = messages.flatMap { $0 }
                        for _ in 0...Int.random(in: 0...3, using: &random) {
                            let place = Int.random(in: datagram.indices, using: &random)
                            datagram[place] = [0, 1, 3, 0xFF].randomElement(using: &random) ?? 0
                        }
                        messages = [datagram]
                    }
                    left -= 1
                }
            }
        }
    }

    @Test("OPQ-9: the socket asks at the start, after changes and without an answer, when nothing is known")
    func socket() async throws {
        var ends: [Int32] = [-1, -1]
        #if canImport(Glibc)
        let kind = Int32(SOCK_DGRAM.rawValue)
        #else
        let kind = SOCK_DGRAM
        #endif
        try #require(socketpair(AF_UNIX, kind, 0, &ends) == 0)
        let kernelEnd = ends[0]
        defer { close(kernelEnd) }
        let network = NetworkReachability(.unreachable)
        let socket = KernelNetworkSocket(ends[1], patience: 1) { network.status = $0 }
        defer { withExtendedLifetime(socket) {} }

        // Datagrams that find no room wait, as those of a kernel do.
        var unsent: [[UInt8]] = []
        func isTold(by kernel: Kernel?) async -> Bool {
            await eventually {
                var question = [UInt8](repeating: 0, count: 100)
                let length = recv(kernelEnd, &question, question.count, Int32(MSG_DONTWAIT))
                if length > 0, let kernel { unsent += kernel.answer(Array(question.prefix(length))) }
                while let next = unsent.first, send(kernelEnd, next, next.count, Int32(MSG_DONTWAIT)) > 0 {
                    unsent.removeFirst()
                }
                return network.status == kernel?.status ?? .unknown
            }
        }
        await expect(isTold(by: nil))
        await expect(isTold(by: Kernel("all", .reachable)))
        unsent += (0..<50).map { Message.make(25, flags: 0, $0) }
        await expect(isTold(by: Kernel("no route", .unreachable) { $0.routes = [] }))
        unsent.append(Message.make(16, flags: 0, 9))
        await expect(isTold(by: Kernel("no sense", .unknown) { $0.links = [[]] }))
        unsent.append(Message.make(24, flags: 0, 9))
        await expect(isTold(by: Kernel("all", .reachable)))
        unsent.append(Message.make(24, flags: 0, 9))
        await expect(isTold(by: nil))
    }

    /// Whether a namespace with links of its own can be made here.
    private static let hasNamespaces: Bool = {
        guard ChildProcess.find("ip") != nil, ChildProcess.find("unshare") != nil else { return false }
        let script = "\(unshare) sh -c 'ip link add easy type veth peer name other && ip link del easy'"
        return (try? Command.runScript(path + script, [], in: FileManager.default.temporaryDirectory)) != nil
    }()

    private static let path = "PATH=$PATH:/usr/sbin:/sbin; "

    private static var unshare: String { geteuid() == 0 ? "unshare -n" : "unshare -rn" }

    @Test(
        "OPQ-9: a link that comes and goes is seen, also when the kernel has dropped messages",
        .enabled(if: hasNamespaces, "needs ip of iproute2, and a system that lets one make network namespaces")
    )
    func namespace() async throws {
        let script = """
            mkfifo statuses
            "$1" network - 11 >statuses &
            writer=$!
            exec 3<statuses
            expect() {
                read -r status <&3 || status=nothing
                [ "$status" = "$1" ] || { printf '%s in place of %s: %s\\n' "$status" "$1" "$2"; exit 1; }
            }
            expect unreachable 'no link'
            ip link set lo up
            ip link add easy type veth peer name other
            ip link set other up
            ip address add 192.0.2.1/24 dev easy
            ip link set easy up
            expect reachable 'a link'
            ip route add default via 192.0.2.2
            ip link set easy down
            expect unreachable 'its link is down'
            ip link set easy up
            expect reachable 'its link is up again'
            ip link set other down
            expect unreachable 'its cable is out'
            ip link set other up
            expect reachable 'its cable is in again'
            ip address del 192.0.2.1/24 dev easy
            expect unreachable 'no address'
            ip address add 2001:db8::1/64 dev easy nodad
            expect reachable 'an IPv6 address'
            ip address add 192.0.2.1/24 dev easy
            kill -STOP $writer
            i=0
            while [ $i -lt 4000 ]; do
                echo "route add 10.$((i / 250)).$((i % 250)).0/24 dev easy"
                i=$((i + 1))
            done >routes
            ip -batch routes
            ip link set easy down
            kill -CONT $writer
            expect unreachable 'its link went down among many changes'
            ip link set easy up
            expect reachable 'its link is up again after many changes'
            ip link del easy
            expect unreachable 'the link is gone'
            wait $writer
            """
        let folder = TestFolder()
        let words = [BuiltProgram.url("Writer").path, script]
        try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
            // Not on the threads of tasks, which must not block.
            DispatchQueue.global().async {
                let outer = Self.path + "exec \(Self.unshare) /bin/sh -eu -c \"$2\" sh \"$1\""
                continuation.resume(with: Result { try Command.runScript(outer, words, in: folder.url) })
            }
        }
    }
}
#endif
