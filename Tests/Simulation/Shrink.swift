extension History {
    /// The smallest one found that breaks the same law.
    func shrunk(_ law: String) -> History {
        var (best, before, triesLeft) = (self, [Int](), 4_000)
        func test(_ change: (inout [Int]) -> Void) {
            var given = best.choices.taken
            change(&given)
            guard triesLeft > 0, given != best.choices.taken else { return }
            // Another order of the work may be needed now.
            for offset in 0..<4 as Range<UInt64> {
                triesLeft -= 1
                let history = History.make(best.seed &+ offset &* 1_000_003, Choices(given: given))
                if history.live().law == law { return best = history }
            }
        }
        repeat {
            before = best.choices.taken
            for count in [8, 4, 2, 1] {
                for end in stride(from: best.choices.parts.count, to: 0, by: -count) {
                    let parts = best.choices.parts.prefix(end).suffix(count)
                    test { choices in for part in parts.reversed() { choices.replaceSubrange(part, with: [0]) } }
                }
            }
            for index in best.choices.taken.indices.reversed() {
                test { if $0.indices.contains(index) { $0[index] = 0 } }
            }
        } while best.choices.taken != before && triesLeft > 0
        return best
    }

    /// The history in words: what is not as usual.
    var text: String {
        var lines = ["seed \(seed)", "settings" + Self.text(of: settings, but: Settings())]
        lines += settings.resources.map { "resource" + Self.text(of: $0, but: Resource()) }
        for job in jobs where !job.isRemoved {
            lines.append("job \(job.number): \(job.kind)" + Self.text(of: job, but: Job()))
        }
        lines += mails.map { "mail \($0.number)" + Self.text(of: $0, but: Mail(0, .current, 1)) }
        lines += acts.map { "\($0.moment): \($0.deed)" }
        lines += faults.map { "message \($0.message): \($0.kind)" }
        return lines.joined(separator: "\n")
    }

    private static func text<Value>(of value: Value, but usual: @autoclosure () -> Value) -> String {
        let usual = Choices.simplest(usual)
        return zip(Mirror(reflecting: value).children, Mirror(reflecting: usual).children).map { field, usual in
            let text = "\(field.value)"
            let isShown = text != "\(usual.value)" && !["number", "kind", "resources"].contains(field.label)
            return isShown ? " \(field.label ?? "")=\(text)" : ""
        }.joined()
    }
}
