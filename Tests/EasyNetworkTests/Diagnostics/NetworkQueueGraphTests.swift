import Foundation
import Testing

@testable import EasyNetwork

@Suite("The graph of a queue", .timeLimit(.minutes(5)))
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
        #expect(text.hasPrefix("a \"queue\": 3 jobs, suspended\n"), "\(text)")
        #expect(text.contains("\n'sign-in': waits because the queue is suspended\n"), "\(text)")
        #expect(text.contains(", high: waits for 'sign-in'; waits for 'elsewhere', which is on no queue\n"), "\(text)")

        let mermaid = queue.graph(.mermaid)
        #expect(mermaid.contains("title: \"a \\\"queue\\\": 3 jobs, suspended\"\n---\nflowchart LR\n"), "\(mermaid)")
        #expect(mermaid.contains("'list #91;#34;1#34;#93;<br/>--#62; #60;b#62;', high<br/>waits for"), "\(mermaid)")
        #expect(mermaid.contains("    j0 -.-> j1\n    j3 --> j1\n"), "\(mermaid)")
        #expect(mermaid.contains("\"]:::elsewhere\n"), "\(mermaid)")

        let dot = queue.graph(.dot)
        #expect(dot.contains("label=\"a \\\"queue\\\": 3 jobs, suspended\""), "\(dot)")
        #expect(dot.contains("j1 [label=\"'list [\\\"1\\\"]\\n--> <b>', high\\nwaits for"), "\(dot)")
        #expect(dot.contains("j0 -> j1 [style=dashed]\n    j3 -> j1\n}\n"), "\(dot)")
        queue.cancelAllOperations()
        for job in jobs where job.name != "elsewhere" { await job.finished() }
        #expect(queue.graph() == "a \"queue\": 0 jobs, suspended\n")
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
        let (dot, mermaid) = (queue.graph(.dot), queue.graph(.mermaid))
        #expect(
            dot.contains(
                "subgraph cluster0 { label=\"'batch'\"\n        j1 [label=\"'child'\\nruns\" penwidth=3]\n    }"
            ),
            "\(dot)"
        )
        #expect(
            mermaid.contains("subgraph g0[\"'batch'\"]\n        j1[\"'child'<br/>runs\"]:::running\n    end"),
            "\(mermaid)"
        )
        gate.open()
        await batch.finished()
    }
}
