/// A request to generate.
struct RequestDeclaration {
    struct Property {
        let name: String
        let type: SwiftType
        var comment = Comment()
        /// The initial value, as a Swift expression.
        var initial: String?
    }

    /// A response or an error, by its status.
    struct Answer {
        enum Content: Equatable {
            case none, text, data
            case json(SwiftType)
        }

        /// `200`, `2XX` or `default`.
        let status: String
        let content: Content

        var type: SwiftType? {
            switch content {
            case .none: nil
            case .text: .named("String")
            case .data: .named("Data")
            case .json(let type): type
            }
        }
    }

    let name: String
    let tag: String?
    let comment: Comment
    let isDeprecated: Bool
    var properties: [Property] = []
    /// The members that the protocol requires, each with one or more lines.
    var members: [[String]] = []
    /// The keys of the parameters, if an encoder writes them.
    var codingKeys: [(name: String, key: String)]?
    /// The responses of a success. `failures` has the other ones.
    var answers: [Answer] = []
    var failures: [Answer] = []
    var nested: [Declaration] = []
}
