import Foundation

/// Where among the parameters a value stands, `filter.tags[3]`, and how dates and bytes are written there.
struct ParameterPath {
    /// Under the error of what lies too deep.
    struct TooDeep: Error {}

    /// How deep containers may lie in one another. Deeper ones come from a container that holds itself.
    static let deepest = 100

    /// The steps back to the outermost level. The text is made of them only when it is needed, for most never is.
    private indirect enum Trail {
        case start
        case key(String, Trail)
        case index(Int, Trail)
    }

    let styles: ParameterStyles
    private var trail = Trail.start
    private var depth = 0

    init(styles: ParameterStyles = ParameterStyles()) {
        self.styles = styles
    }

    func appending(_ key: String) -> ParameterPath {
        var path = self
        path.trail = .key(key, trail)
        return path
    }

    func appending(_ index: Int) -> ParameterPath {
        var path = self
        path.trail = .index(index, trail)
        return path
    }

    /// `filter.tags[3]`; empty for the outermost level.
    var text: String {
        steps.reduce("") { text, step in
            if let index = step.intValue { return text + "[\(index)]" }
            return text.isEmpty ? step.stringValue : text + "." + step.stringValue
        }
    }

    /// From the outermost level on.
    var steps: [ParameterKey] {
        var steps: [ParameterKey] = []
        var trail = trail
        while true {
            switch trail {
            case .start: return steps.reversed()
            case .key(let key, let rest):
                steps.append(ParameterKey(stringValue: key))
                trail = rest
            case .index(let index, let rest):
                steps.append(ParameterKey(intValue: index))
                trail = rest
            }
        }
    }

    /// - Throws: when this is too deep.
    func inside() throws(NetworkError) -> ParameterPath {
        guard depth < Self.deepest else { throw tooDeep() }
        return deeper()
    }

    /// The inside without a look at the depth, for a place where nothing can be thrown.
    func deeper() -> ParameterPath {
        var path = self
        path.depth += 1
        return path
    }

    var isTooDeep: Bool { depth > Self.deepest }

    func tooDeep() -> NetworkError {
        failure("values lie more than \(Self.deepest) deep in one another; does one hold itself?", TooDeep())
    }

    func failure(_ reason: String, _ underlying: (any Error)? = nil) -> NetworkError {
        let text = text
        // A path of a hundred levels is long, and its beginning says where to look.
        let place = text.count > 200 ? text.prefix(200) + "…" : text
        let message = place.isEmpty ? reason : "parameter \(place): \(reason)"
        return NetworkError(code: .invalidRequest, message: message, underlying: underlying)
    }
}

/// One step of a ``ParameterPath``.
struct ParameterKey: CodingKey {
    let stringValue: String
    let intValue: Int?

    init(stringValue: String) {
        self.stringValue = stringValue
        intValue = nil
    }

    init(intValue: Int) {
        stringValue = String(intValue)
        self.intValue = intValue
    }
}
