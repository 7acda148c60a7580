import EasyNetwork
import Foundation

extension NetworkQueue {
    /// Returns the current jobs of the queue, and what each waits for, as lines for a terminal.
    ///
    /// ```swift
    /// print(queue.graph())
    /// // EasyNetwork.shared: 2 jobs
    /// // 'sign-in': runs
    /// // 'profile', high: waits for 'sign-in'
    /// ```
    ///
    /// Five or more equal jobs are one line: `54 GetDetail: each waits for one of 3 slots`. The children of a group are
    /// below it, including children that have finished and children that are not enqueued yet.
    ///
    /// Jobs that wait for each other in a cycle are marked. The queue ends such a job itself, unless the cycle includes
    /// a plain `OperationQueue`. The method takes time linear in the number of jobs and dependencies.
    public func graph() -> String {
        JobDrawing(of: self).text
    }

    /// Returns the jobs of ``graph()`` as a Mermaid flowchart, which many sites show in Markdown.
    ///
    /// An arrow leads from a job to a job that waits for it. The arrow is dashed if that job runs even after a failure.
    public func mermaidGraph() -> String {
        JobDrawing(of: self).mermaid
    }

    /// Returns the jobs of ``graph()`` as a Graphviz digraph. Its arrows are the same as in ``mermaidGraph()``.
    ///
    /// ```swift
    /// try Data(queue.dotGraph().utf8).write(to: URL(fileURLWithPath: "queue.dot"))   // dot -Tsvg queue.dot
    /// ```
    public func dotGraph() -> String {
        JobDrawing(of: self).dot
    }
}

/// The jobs of a queue with their labels, as they are drawn.
private struct JobDrawing {
    fileprivate struct Node {
        var label: String
        var state: String
        /// The type of the operation. Jobs with the same type and wait reasons can be folded.
        let type: ObjectIdentifier
        let priority: String
        var reasons: [WaitReason] = []
        var group: ObjectIdentifier?
        /// Whether it is a job of this queue.
        var isHere = true
        /// Whether it is drawn as part of a group, but is not a job yet, or no longer.
        var isStep = false
        var isRunning = false
        var isInCircle = false
        /// Whether another node represents this one.
        var isFolded = false
    }

    /// A dependency between two nodes, which are given by their indexes.
    private struct Edge: Hashable {
        var from: Int
        var to: Int
        let isOptional: Bool
    }

    /// The number of equal siblings from which they are drawn as one.
    private static let foldCount = 5

    private let title: String
    private var nodes: [Node] = []
    private var edges: [Edge] = []
    /// The nodes that are in no group, and the nodes of each group, in their order.
    private var roots: [Int] = []
    private var children: [ObjectIdentifier: [Int]] = [:]
    /// The groups, by the indexes of their nodes.
    private var groups: [Int: ObjectIdentifier] = [:]

    init(of queue: NetworkQueue) {
        let (entries, isSuspended) = queue.drawnJobs
        // The title is made outside the lock, because names can be user code.
        title =
            "\(queue.queue.name ?? "queue"): \(entries.count) \(entries.count == 1 ? "job" : "jobs")"
            + (isSuspended ? ", suspended" : "")
        var indexes: [ObjectIdentifier: Int] = [:]
        func add(_ operation: Operation, _ node: Node) -> Int {
            indexes[ObjectIdentifier(operation)] = nodes.count
            nodes.append(node)
            return nodes.count - 1
        }
        for entry in entries {
            let reasons = queue.explain(entry.operation)
            var node = Node(entry.operation, reasons.map(\.description).joined(separator: "; "))
            // The remaining seconds differ only by the time of the query.
            node.reasons = reasons.map { if case .rate = $0 { .rate(seconds: 0) } else { $0 } }
            (node.group, node.isRunning) = (entry.group, entry.isRunning)
            _ = add(entry.operation, node)
        }
        var others: [Operation] = []
        func addEdge(from other: Operation, to index: Int, _ policy: DependencyPolicy) {
            var from = indexes[ObjectIdentifier(other)]
            if from == nil {
                var node = Node(other, "is not on this queue")
                node.isHere = false
                from = add(other, node)
                others.append(other)
            }
            if let from { edges.append(Edge(from: from, to: index, isOptional: policy == .allowFailure)) }
        }
        for (index, entry) in entries.enumerated() {
            for (other, policy) in entry.waitsFor { addEdge(from: other, to: index, policy) }
        }
        // A group knows its finished and its future steps, which the queue does not list.
        var pending = entries.compactMap { $0.operation as? GroupOperation }
        while let group = pending.popLast() {
            let id = ObjectIdentifier(group)
            var previous: Int?
            for child in group.operations {
                var index = indexes[ObjectIdentifier(child)]
                if index == nil {
                    var node = Node(child, Self.state(ofStep: child))
                    (node.isHere, node.isStep) = (false, true)
                    index = add(child, node)
                    if !child.isFinished { others.append(child) }
                    if let group = child as? GroupOperation, !child.isFinished { pending.append(group) }
                }
                guard let index else { continue }
                nodes[index].group = id
                children[id, default: []].append(index)
                // The order of finished steps is not drawn.
                if let previous, group is ChainOperation, !child.isFinished {
                    edges.append(Edge(from: previous, to: index, isOptional: false))
                }
                previous = index
            }
            if let index = indexes[id], children[id] != nil { groups[index] = id }
        }
        // Jobs elsewhere are followed, too, because the queue does not end a cycle through them.
        while let other = others.popLast() {
            guard let index = indexes[ObjectIdentifier(other)] else { continue }
            for next in other.dependencies where !next.isFinished { addEdge(from: next, to: index, .requireSuccess) }
        }
        place()
        markCircles()
        fold()
    }

    private static func state(ofStep operation: NetworkOperation) -> String {
        guard operation.isFinished else { return operation.isExecuting ? "runs elsewhere" : "comes later" }
        switch operation.error?.code {
        case nil: return "has succeeded"
        case .cancelled?: return "was cancelled"
        case let code?: return "has failed: \(code)"
        }
    }

    /// Assigns each node to the roots or to a group.
    private mutating func place() {
        let drawn = Set(groups.values)
        for (index, node) in nodes.enumerated() {
            guard let group = node.group else {
                roots.append(index)
                continue
            }
            // The node of the group is elsewhere.
            if !drawn.contains(group) { children[group, default: []].append(index) }
        }
    }

    /// Marks the nodes that are in a cycle or between two cycles.
    private mutating func markCircles() {
        let waiting = rest { ($0.from, $0.to) }
        let awaited = rest { ($0.to, $0.from) }
        for index in nodes.indices { nodes[index].isInCircle = waiting[index] && awaited[index] }
    }

    /// Removes the nodes without predecessors, then the nodes that have become first, and so on.
    ///
    /// - Returns: for each node whether it remains, because it is in a cycle or follows one.
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

    // MARK: - Folding

    /// The properties that equal siblings share.
    private struct Likeness: Hashable {
        let type: ObjectIdentifier
        let priority: String
        let state: String
        let reasons: [WaitReason]
        let isHere: Bool
        let isRunning: Bool
        let from: [Edge]
        let to: [Edge]
    }

    /// Makes the first of equal siblings represent all of them.
    private mutating func fold() {
        var from = [[Edge]](repeating: [], count: nodes.count)
        var to = from
        for edge in edges {
            from[edge.to].append(Edge(from: edge.from, to: 0, isOptional: edge.isOptional))
            to[edge.from].append(Edge(from: 0, to: edge.to, isOptional: edge.isOptional))
        }
        func likeness(_ index: Int) -> Likeness {
            let node = nodes[index]
            return Likeness(
                type: node.type,
                priority: node.priority,
                state: node.reasons.isEmpty ? node.state : "",
                reasons: node.reasons,
                isHere: node.isHere,
                isRunning: node.isRunning,
                from: from[index],
                to: to[index]
            )
        }
        func folded(_ siblings: [Int]) -> [Int] {
            guard siblings.count >= Self.foldCount else { return siblings }
            let alike = Dictionary(
                grouping: siblings.filter { groups[$0] == nil && !nodes[$0].isInCircle },
                by: likeness
            )
            for same in alike.values where same.count >= Self.foldCount {
                let (first, last) = (nodes[same[0]].label, nodes[same[same.count - 1]].label)
                let isOne = same.allSatisfy { nodes[$0].label == first }
                for index in same { nodes[index].isFolded = true }
                nodes[same[0]].isFolded = false
                nodes[same[0]].label = isOne ? "\(same.count) \(first)" : "\(same.count) jobs, \(first) to \(last)"
                nodes[same[0]].state = "each " + nodes[same[0]].state
            }
            return siblings.filter { !nodes[$0].isFolded }
        }
        roots = folded(roots)
        for (group, siblings) in children { children[group] = folded(siblings) }
        edges.removeAll { nodes[$0.from].isFolded || nodes[$0.to].isFolded }
    }

    // MARK: - Formats

    private enum Piece {
        case node(Int)
        case begin(ObjectIdentifier, isHere: Bool)
        case end
    }

    /// Visits the nodes in the order in which they are drawn. A group's own node comes first in the group.
    ///
    /// - Parameter visit: called with each piece and the number of groups around it.
    private func walk(_ visit: (Piece, _ depth: Int) -> Void) {
        func pieces(_ indexes: [Int]) -> [Piece] {
            indexes.map { index in groups[index].map { .begin($0, isHere: true) } ?? .node(index) }
        }
        let drawn = Set(groups.values)
        let own = Dictionary(uniqueKeysWithValues: groups.map { ($1, $0) })
        let elsewhere = children.filter { !drawn.contains($0.key) }.sorted {
            ($0.value.first ?? 0) < ($1.value.first ?? 0)
        }
        // A stack replaces recursion, because groups can be nested deeply.
        var stack: [Piece] = (pieces(roots) + elsewhere.map { .begin($0.key, isHere: false) }).reversed()
        var depth = 0
        while let piece = stack.popLast() {
            if case .end = piece { depth -= 1 }
            visit(piece, depth)
            guard case .begin(let group, _) = piece else { continue }
            depth += 1
            stack.append(.end)
            stack += pieces(children[group] ?? []).reversed()
            if let index = own[group] { stack.append(.node(index)) }
        }
    }

    var text: String {
        var lines = [title]
        walk { piece, depth in
            guard case .node(let index) = piece, nodes[index].isHere || nodes[index].isStep else { return }
            let node = nodes[index]
            // The line of a group itself comes before its children, and is indented less.
            let indent = max(0, groups[index] == nil ? depth : depth - 1)
            lines.append(
                String(repeating: "  ", count: indent)
                    + "\(node.label): \(node.state)\(node.isInCircle ? ", in a cycle" : "")"
            )
        }
        return lines.joined(separator: "\n") + "\n"
    }

    var mermaid: String {
        var lines = ["---", "title: \(Self.quoted(title))", "---", "flowchart LR"]
        append(to: &lines, group: { "subgraph g\($0)[\"\($1.isEmpty ? " " : $1)\"]" }, end: "end") { index, node in
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

    /// Adds the lines of the nodes, with the nodes of each group together.
    ///
    /// - Parameter group: returns the first line of a group from its number and title. The title is empty if the
    ///   group's own node is drawn.
    private func append(
        to lines: inout [String],
        group: (Int, String) -> String,
        end: String,
        line: (Int, Node) -> String
    ) {
        var (number, added) = (0, [String]())
        walk { piece, depth in
            let text: String
            switch piece {
            case .node(let index): text = line(index, nodes[index])
            case .begin(_, let isHere):
                text = group(number, isHere ? "" : "a group")
                number += 1
            case .end: text = end
            }
            added.append(String(repeating: "    ", count: depth + 1) + text)
        }
        lines += added
    }

    private static func kind(of node: Node) -> String? {
        node.isInCircle ? "circle" : !node.isHere ? "elsewhere" : node.isRunning ? "running" : nil
    }

    /// Returns a DOT string, in which Graphviz interprets HTML entities.
    private static func dotText(_ text: String) -> String {
        // Scalars are compared, as Graphviz does: in Swift, "&" followed by a combining accent is a different
        // character.
        quoted(text.unicodeScalars.map { $0 == "&" ? "&amp;" : String($0) }.joined())
    }

    /// Returns a DOT or YAML string.
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

    /// Returns the text of a Mermaid label. Mermaid supports entities by number, and interprets parts of a label as
    /// Markdown, HTML or TeX.
    private static func mermaidText(_ text: String) -> String {
        var result = ""
        for scalar in shown(text) {
            switch scalar {
            case "\n": result += "<br/>"
            case "\"", "#", "<", ">", "&", "`", "*", "_", "[", "]", "{", "}", "|", ";":
                result += "#\(scalar.value);"
            // A zero-width space follows, because `\n` and `$$` are interpreted after the entities.
            case "\\", "$": result += "#\(scalar.value);#8203;"
            default: result.unicodeScalars.append(scalar)
            }
        }
        return result
    }

    /// Returns the scalars without control characters, which no picture can contain. Line feeds are kept.
    private static func shown(_ text: String) -> [Unicode.Scalar] {
        text.unicodeScalars.filter { $0 == "\n" || $0.properties.generalCategory != .control }
    }
}

extension JobDrawing.Node {
    init(_ operation: Operation, _ state: String) {
        let priority = JobPriority(operation.queuePriority).word.map { ", \($0)" } ?? ""
        self.init(
            label: operation.nameForMessages + priority,
            state: state,
            type: ObjectIdentifier(Swift.type(of: operation)),
            priority: priority
        )
    }
}

extension JobPriority {
    /// The word for the priority; `nil` for the normal one.
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
