import EasyNetwork
import Foundation

extension NetworkQueue {
    /// The jobs of the queue at this moment, and what each waits for, as lines for a terminal.
    ///
    /// ```swift
    /// print(queue.graph())
    /// // EasyNetwork.shared: 2 jobs
    /// // 'sign-in': runs
    /// // 'profile', high: waits for 'sign-in'
    /// ```
    ///
    /// Jobs that wait for each other in a circle are marked; the queue ends such a job itself, unless the circle leads
    /// through a plain `OperationQueue`. Linear in the number of jobs and dependencies.
    public func graph() -> String {
        JobDrawing(of: self).text
    }

    /// The jobs as in ``graph()``, as a flowchart of Mermaid, which Markdown on many sites shows.
    ///
    /// An arrow leads from a job to one that waits for it, dashed if that also runs after a failure.
    public func mermaidGraph() -> String {
        JobDrawing(of: self).mermaid
    }

    /// The jobs as in ``graph()``, as a digraph of Graphviz. The arrows are those of ``mermaidGraph()``.
    ///
    /// ```swift
    /// try Data(queue.dotGraph().utf8).write(to: URL(fileURLWithPath: "queue.dot"))   // dot -Tsvg queue.dot
    /// ```
    public func dotGraph() -> String {
        JobDrawing(of: self).dot
    }
}

/// The jobs of a queue with their texts, as they are drawn.
private struct JobDrawing {
    private struct Node {
        var label: String
        var state: String
        var group: ObjectIdentifier?
        var isHere = true
        var isRunning = false
        var isInCircle = false
    }

    /// `from` and `to` are indexes of nodes.
    private typealias Edge = (from: Int, to: Int, isOptional: Bool)

    private let title: String
    private var nodes: [Node] = []
    private var edges: [Edge] = []
    /// The name of each group whose children are drawn, in the order of the first child.
    private var groups: [(id: ObjectIdentifier, name: String)] = []

    init(of queue: NetworkQueue) {
        let (entries, isSuspended) = queue.drawnJobs
        // Outside the lock: names may be the user's code.
        title =
            "\(queue.queue.name ?? "queue"): \(entries.count) \(entries.count == 1 ? "job" : "jobs")"
            + (isSuspended ? ", suspended" : "")
        var indexes: [ObjectIdentifier: Int] = [:]
        for entry in entries {
            indexes[ObjectIdentifier(entry.operation)] = nodes.count
            let state = queue.explain(entry.operation).map(\.description).joined(separator: "; ")
            nodes.append(
                Node(
                    label: Self.label(of: entry.operation),
                    state: state,
                    group: entry.group,
                    isRunning: entry.isRunning
                )
            )
        }
        var others: [Operation] = []
        func addEdge(from other: Operation, to index: Int, _ policy: DependencyPolicy) {
            let from = indexes[ObjectIdentifier(other)] ?? nodes.count
            if from == nodes.count {
                indexes[ObjectIdentifier(other)] = from
                nodes.append(Node(label: Self.label(of: other), state: "is not on this queue", isHere: false))
                others.append(other)
            }
            edges.append((from: from, to: index, isOptional: policy == .allowFailure))
        }
        for (index, entry) in entries.enumerated() {
            for (other, policy) in entry.waitsFor { addEdge(from: other, to: index, policy) }
            guard let group = entry.group, !groups.contains(where: { $0.id == group }) else { continue }
            groups.append((group, indexes[group].map { nodes[$0].label } ?? "a group"))
        }
        // The queue does not end a circle through jobs that are elsewhere.
        while let other = others.popLast() {
            guard let index = indexes[ObjectIdentifier(other)] else { continue }
            for next in other.dependencies where !next.isFinished { addEdge(from: next, to: index, .requireSuccess) }
        }
        markCircles()
    }

    private static func label(of operation: Operation) -> String {
        operation.nameForMessages + (JobPriority(operation.queuePriority).word.map { ", \($0)" } ?? "")
    }

    /// Marks the circles, and what lies between two of them.
    private mutating func markCircles() {
        let waiting = rest { ($0.from, $0.to) }
        let awaited = rest { ($0.to, $0.from) }
        for index in nodes.indices { nodes[index].isInCircle = waiting[index] && awaited[index] }
    }

    /// Takes the first nodes away, then those that are first without them, and so on.
    ///
    /// - Returns: for each node whether it is left, since it is in a circle or behind one.
    private func rest(_ direction: (Edge) -> (from: Int, to: Int)) -> [Bool] {
        var counts = [Int](repeating: 0, count: nodes.count)
        var next = [[Int]](repeating: [], count: nodes.count)
        for edge in edges.map(direction) {
            counts[edge.to] += 1
            next[edge.from].append(edge.to)
        }
        var first = counts.indices.filter { counts[$0] == 0 }
        while let node = first.popLast() {
            for other in next[node] {
                counts[other] -= 1
                if counts[other] == 0 { first.append(other) }
            }
        }
        return counts.map { $0 > 0 }
    }

    // MARK: - Formats

    var text: String {
        let lines = nodes.filter(\.isHere).map { node in
            "\(node.label): \(node.state)\(node.isInCircle ? ", in a circle" : "")"
        }
        return ([title] + lines).joined(separator: "\n") + "\n"
    }

    var mermaid: String {
        var lines = ["---", "title: \(Self.quoted(title))", "---", "flowchart LR"]
        append(to: &lines, group: { "subgraph g\($0)[\"\(Self.mermaidText($1))\"]" }, end: "end") { index, node in
            let text = "\(Self.mermaidText(node.label))<br/>\(Self.mermaidText(node.state))"
            return "j\(index)[\"\(text)\"]\(Self.kind(of: node).map { ":::\($0)" } ?? "")"
        }
        for edge in edges { lines.append("    j\(edge.from) \(edge.isOptional ? "-.->" : "-->") j\(edge.to)") }
        lines += [
            "    classDef running stroke-width:3px", "    classDef elsewhere stroke-dasharray:4",
            "    classDef circle stroke:#c00,stroke-width:3px",
        ]
        return lines.joined(separator: "\n") + "\n"
    }

    var dot: String {
        var lines = ["digraph {", "    label=\(Self.dotText(title))", "    rankdir=LR", "    node [shape=box]"]
        append(to: &lines, group: { "subgraph cluster\($0) { label=\(Self.dotText($1))" }, end: "}") { index, node in
            let style =
                switch Self.kind(of: node) {
                case "circle": " color=red penwidth=3"
                case "running": " penwidth=3"
                case "elsewhere": " style=dashed"
                default: ""
                }
            return "j\(index) [label=\(Self.dotText(node.label + "\n" + node.state))\(style)]"
        }
        for edge in edges {
            lines.append("    j\(edge.from) -> j\(edge.to)\(edge.isOptional ? " [style=dashed]" : "")")
        }
        return (lines + ["}"]).joined(separator: "\n") + "\n"
    }

    /// Adds the lines of the nodes, those of a group together.
    private func append(
        to lines: inout [String],
        group: (Int, String) -> String,
        end: String,
        line: (Int, Node) -> String
    ) {
        for (number, (id, name)) in groups.enumerated() {
            lines.append("    " + group(number, name))
            for (index, node) in nodes.enumerated() where node.group == id {
                lines.append("        " + line(index, node))
            }
            lines.append("    " + end)
        }
        for (index, node) in nodes.enumerated() where node.group == nil { lines.append("    " + line(index, node)) }
    }

    private static func kind(of node: Node) -> String? {
        node.isInCircle ? "circle" : !node.isHere ? "elsewhere" : node.isRunning ? "running" : nil
    }

    /// A string of DOT, in which Graphviz reads entities of HTML.
    private static func dotText(_ text: String) -> String {
        quoted(text.replacingOccurrences(of: "&", with: "&amp;"))
    }

    /// A string of DOT or YAML.
    private static func quoted(_ text: String) -> String {
        var result = "\""
        for scalar in shown(text) {
            switch scalar {
            case "\n": result += "\\n"
            case "\"", "\\": result += "\\\(scalar)"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result + "\""
    }

    /// Mermaid knows entities by number, and reads some of a label as Markdown, HTML or TeX.
    private static func mermaidText(_ text: String) -> String {
        var result = ""
        for scalar in shown(text) {
            switch scalar {
            case "\n": result += "<br/>"
            case "\"", "#", "<", ">", "&", "`", "*", "_", "[", "]", "{", "}", "|", ";":
                result += "#\(scalar.value);"
            // With a space without width, as `\n` and `$$` mean something after the entities have been read.
            case "\\", "$": result += "#\(scalar.value);#8203;"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    /// Without control characters other than the line feed, which no picture can have.
    private static func shown(_ text: String) -> [Unicode.Scalar] {
        text.unicodeScalars.filter { $0 == "\n" || $0.properties.generalCategory != .control }
    }
}

extension JobPriority {
    /// Nil for the normal one.
    var word: String? {
        switch self {
        case .veryLow: "very low"
        case .low: "low"
        case .normal: nil
        case .high: "high"
        case .veryHigh: "very high"
        }
    }
}
