import Foundation
import Testing

@testable import EasyNetwork
@testable import EasyNetworkDiagnostics
@testable import TestSupport

@Suite("The graph of a queue", .timeLimit(.minutes(10)))
struct NetworkQueueGraphTests {
    private func queue() -> (NetworkQueue, [NetworkOperation]) {
        let queue = NetworkQueue(name: "a \"queue\"")
        queue.isSuspended = true
        let first = TestJob()
        first.name = "sign-in"
        let second = TestJob()
        second.name = "list [\"1\"]\n--> <b>"
        second.queuePriority = .high
        second.addDependency(first, policy: .allowFailure)
        let elsewhere = TestJob()
        elsewhere.name = "elsewhere"
        second.addDependency(elsewhere)
        let batch = BatchOperation([TestJob(), TestJob()])
        batch.name = "batch"
        queue.addOperations([first, second, batch], waitUntilFinished: false)
        return (queue, [first, second, elsewhere, batch])
    }

    @Test("DIA-1: text, Mermaid and DOT name the jobs, their priorities, and what each waits for")
    func formats() async {
        let (queue, jobs) = queue()
        let text = queue.graph()
        expect(text.hasPrefix("a \"queue\": 3 jobs, suspended\n"), "\(text)")
        expect(text.contains("\n'sign-in': waits because the queue is suspended\n"), "\(text)")
        expect(text.contains(", high: waits for 'sign-in'; waits for 'elsewhere', which is on no queue\n"), "\(text)")

        let mermaid = queue.mermaidGraph()
        expect(mermaid.contains("title: \"a \\\"queue\\\": 3 jobs, suspended\"\n---\nflowchart LR\n"), "\(mermaid)")
        expect(mermaid.contains("'list #91;#34;1#34;#93;<br/>--#62; #60;b#62;', high<br/>waits for"), "\(mermaid)")
        expect(mermaid.contains("    j0 -.-> j1\n    j3 --> j1\n"), "\(mermaid)")
        expect(mermaid.contains("\"]:::elsewhere\n"), "\(mermaid)")

        let dot = queue.dotGraph()
        expect(dot.contains("label=\"a \\\"queue\\\": 3 jobs, suspended\""), "\(dot)")
        expect(dot.contains("j1 [label=\"'list [\\\"1\\\"]\\n--> <b>', high\\nwaits for"), "\(dot)")
        expect(dot.contains("j0 -> j1 [style=dashed]\n    j3 -> j1\n}\n"), "\(dot)")
        queue.cancelAllOperations()
        for job in jobs where job.name != "elsewhere" { await job.ended() }
        expect(queue.graph(), equals: "a \"queue\": 0 jobs, suspended\n")
    }

    @Test("DIA-1: the children of a batch stand together, and running jobs are marked")
    func groups() async {
        let queue = NetworkQueue()
        let (gate, hasBegun) = (Gate(), Gate())
        let child = TestJob { job in
            hasBegun.open()
            gate.whenOpen { job.finish() }
        }
        child.name = "child"
        let batch = BatchOperation([child])
        batch.name = "batch"
        queue.addOperation(batch)
        await hasBegun.opened()
        let (dot, mermaid) = (queue.dotGraph(), queue.mermaidGraph())
        expect(
            dot.contains(
                "subgraph cluster0 { label=\"\"\n        j0 [label=\"'batch'\\nruns\" penwidth=3]\n"
                    + "        j1 [label=\"'child'\\nruns\" penwidth=3]\n    }"
            ),
            "\(dot)"
        )
        expect(
            mermaid.contains(
                "subgraph g0[\" \"]\n        j0[\"'batch'<br/>runs\"]:::running\n"
                    + "        j1[\"'child'<br/>runs\"]:::running\n    end"
            ),
            "\(mermaid)"
        )
        gate.open()
        await batch.ended()
    }

    @Test("BEY-12: equal jobs are one line and one box; those that differ in what waits for them are not")
    func folding() async {
        let queue = NetworkQueue(name: "q", maxConcurrentOperationCount: 0)
        let jobs = (1...9).map { number in
            let job = TestJob()
            if number > 7 { job.name = "page \(number)" }
            return job
        }
        let last = TestJob()
        last.name = "last"
        last.addDependency(jobs[0])
        queue.addOperations(jobs + [last], waitUntilFinished: false)
        let (text, dot) = (queue.graph(), queue.dotGraph())
        expect(
            text,
            equals: """
                q: 10 jobs
                TestJob: waits for one of 0 slots
                8 jobs, TestJob to 'page 9': each waits for one of 0 slots
                'last': waits for TestJob

                """,
            "\(text)"
        )
        expect(dot.components(separatedBy: "[label=").count == 4 && dot.contains("    j0 -> j9\n"), "\(dot)")
        queue.cancelAllOperations()
        for job in jobs + [last] { await job.ended() }
    }

    @Test("BEY-12: a chain shows the steps that are over and those that will come, also while the queue is suspended")
    func steps() async {
        let queue = NetworkQueue(name: "q")
        queue.isSuspended = true
        let (gate, hasBegun) = (Gate(), Gate())
        let second = TestJob { job in
            hasBegun.open()
            gate.whenOpen { job.finish() }
        }
        let steps = [TestJob(), second, TestJob()]
        for (step, name) in zip(steps, ["reserve", "pay", "confirm"]) { step.name = name }
        let chain = ChainOperation(steps)
        chain.name = "checkout"
        queue.addOperation(chain)
        let suspended = queue.graph()
        expect(
            suspended,
            equals: """
                q: 1 job, suspended
                'checkout': waits because the queue is suspended
                  'reserve': comes later
                  'pay': comes later
                  'confirm': comes later

                """,
            "\(suspended)"
        )
        queue.isSuspended = false
        await hasBegun.opened()
        let (running, dot) = (queue.graph(), queue.dotGraph())
        expect(
            running,
            equals: """
                q: 2 jobs
                'checkout': runs
                  'reserve': has succeeded
                  'pay': runs
                  'confirm': comes later

                """,
            "\(running)"
        )
        // The chain, and the job of the second step; then those that are no jobs.
        expect(dot.contains("    j2 -> j1\n    j1 -> j3\n"), "\(dot)")
        gate.open()
        await chain.ended()
    }

    /// Names that mean something to Graphviz or Mermaid.
    private static let oddNames = [
        "say \"a\" 'b' `c`", "two\nlines", "<b>bold</b> <br/> &amp; &lt; AT&T &#65; #35;", "[1] {2} (3) |4| <5>",
        "back\\slash \\n \\N \\l \\\"", "emoji 🧵👩‍👩‍👧 é", "a;b%%{init}%% %%c", "--> j0 -.-> end",
        "1. first\n- second\n# third",
        "العربية 中文", "*a* _b_ **c** ~d~", "$x$ $$y$$", "https://x.example/a_b?c=d&amp=e", "subgraph",
        "nul\u{0}bell\u{7}", "accents &\u{301}lt; \"\u{301} \\\u{301}",
    ]

    @Test("DIA-1: odd names, many jobs and a circle through a job elsewhere are drawn")
    func oddQueue() async throws {
        let queue = NetworkQueue(name: Self.oddNames.joined(separator: " "))
        queue.isSuspended = true
        let jobs = (0..<200).map { number in
            let job = TestJob()
            job.name = number < Self.oddNames.count ? Self.oddNames[number] : "job \(number)"
            return job
        }
        for (job, next) in zip(jobs, jobs.dropFirst(7)) { next.addDependency(job) }
        let elsewhere = BlockOperation {}
        elsewhere.name = "elsewhere"
        jobs[0].addDependency(elsewhere)
        queue.addOperations(jobs, waitUntilFinished: false)
        // Not seen by the queue.
        elsewhere.addDependency(jobs[7])
        let (text, dot, mermaid) = (queue.graph(), queue.dotGraph(), queue.mermaidGraph())
        expect(text.components(separatedBy: "in a cycle").count, equals: 3, "\(text)")
        expect(dot.components(separatedBy: " color=red ").count, equals: 4, "\(dot)")
        expect(dot.contains("&amp;lt; AT&amp;T ") && dot.contains("'nulbell'"), "\(dot)")
        expect(dot.unicodeScalars.contains(Array("accents &amp;\u{301}lt; \\\"\u{301} \\\\\u{301}".unicodeScalars)))
        expect(mermaid.components(separatedBy: ":::circle").count, equals: 4, "\(mermaid)")
        // .ci/formats asks for the pictures, and compares the names in them.
        if let path = ProcessInfo.processInfo.environment["GRAPH_OUT"] {
            let folder = URL(fileURLWithPath: path)
            try Data(dot.utf8).write(to: folder.appendingPathComponent("graph.dot"))
            try Data(mermaid.utf8).write(to: folder.appendingPathComponent("graph.mmd"))
            let names = jobs.map { $0.name?.filter { $0 == "\n" || $0 >= " " } }
            try JSONEncoder().encode(names).write(to: folder.appendingPathComponent("names.json"))
        }
        queue.cancelAllOperations()
        for job in jobs { await job.ended() }
        withExtendedLifetime(elsewhere) {}
    }
}
