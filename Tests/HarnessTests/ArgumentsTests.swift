import EasyNetworkTesting
import Foundation
import SampleSupport
import Testing

@testable import Harness

@Suite("Arguments of the Harness")
struct ArgumentsTests {
    private func parse(_ line: String) throws(Misuse) -> Arguments {
        try Arguments.parse(line.split(separator: " ").map(String.init))
    }

    @Test("TOL-1: commands")
    func commands() throws {
        #expect(try parse("list").command == .list)
        #expect(try parse("plan p.json").command == .plan(file: "p.json"))
        let values = ["id": "1", "name": "a=b", "c": ""]
        #expect(try parse("run user id=1 name=a=b c=").command == .run(api: "user", values: values))
        let add = OutboxCommand(action: .add, directory: "mail", values: ["count": "2"])
        #expect(try parse("outbox add mail count=2").command == .outbox(add))
        for help in ["--help", "-h", "run user -j 0 --help"] { #expect(try parse(help) == Arguments()) }
    }

    @Test("TOL-1: options stand anywhere, and bring their value along or behind them")
    func options() throws {
        let apart = try parse(
            "-j 2 run --repeat 3 user --base https://h/v1 --log --json --har a --timeline t.html --trace s"
        )
        let attached = try parse(
            "run user -j2 --repeat=3 --base=https://h/v1 --har=a --timeline=t.html --json --log --trace=s"
        )
        #expect(apart == attached)
        #expect(apart.jobCount == 2 && apart.repeatCount == 3 && apart.base == URL(string: "https://h/v1"))
        #expect(
            apart.harFile == "a" && apart.timelineFile == "t.html" && apart.traceFile == "s" && apart.isJSON
                && apart.isLogged
        )
        let none = try parse("list")
        #expect(none.jobCount == nil && none.repeatCount == 1 && none.base == nil && !none.isJSON && !none.isLogged)
    }

    @Test("BEY-24: --conditions names a preset of the network before the demo server; default one without limits")
    func conditions() throws {
        #expect(try parse("run user --conditions 3g").conditions == .mobile3G)
        #expect(try parse("--conditions=DSL list").conditions == .dsl)
        #expect(try parse("outbox drain mail --conditions train").conditions == .flakyTrain)
        #expect(try parse("list").conditions == NetworkConditions())
    }

    @Test(
        "TOL-1: a mistake is one line that names the argument",
        arguments: [
            ("", "no command is given"), ("go", "go: is not a command"), ("list x", "list has no"),
            ("plan", "plan needs one file"), ("plan a b", "plan needs one file"), ("run", "run needs the name"),
            ("run user id", "id: must have the form"), ("run user =1", "=1: must have the form"),
            ("outbox add", "outbox needs an action and"), ("outbox go mail", "outbox go: is not an action"),
            ("outbox add mail count", "count: must have the form"),
            ("run user a=1 a=2", "a=2: a is given twice"), ("list -j", "-j needs a number"),
            ("list -j 0", "-j 0: needs"), ("list -jx", "-j x: needs"), ("list --repeat=", "--repeat : needs"),
            ("list --base ftp://h", "--base ftp://h: needs an http"), ("list --base http://", "--base http://: needs"),
            ("list --json=1", "--json=1: is not an option"), ("list -x", "-x: is not an option"),
            ("list --har", "--har needs a file"), ("list --conditions", "--conditions needs 3g, dsl or train"),
            ("list --conditions 2g", "--conditions 2g: needs 3g, dsl or train"),
            ("list --conditions 3g --base http://h", "--conditions applies only to the demo server"),
        ]
    )
    func misuse(line: String, message: String) {
        let error = #expect(throws: Misuse.self) { try parse(line) }
        #expect(error?.message.hasPrefix(message) == true, "\(line): \(error as Any)")
    }
}
